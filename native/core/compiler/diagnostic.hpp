// A compiler's messages with their places, and the paths at which it looked for includes.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kp {

struct Diagnostic {
    std::string file;      // as the compiler names it; "<source>" for text without a path
    uint32_t line = 0;     // 1-based; 0 if unknown
    uint32_t column = 0;   // 1-based; 0 if unknown
    std::string severity;  // "error", "warning", "note"
    std::string message;
    std::string source_line;  // "" if unknown
};

// A path at which an include was looked up.
struct IncludeProbe {
    std::string path;
    bool found = false;
    std::string content;  // as read, if it was found
};

class ShaderCompileFailure : public Error {
public:
    ShaderCompileFailure(const std::string& text, std::vector<Diagnostic> diagnostics)
        : Error(ErrorKind::shader_compile, text), diagnostics_(std::move(diagnostics)) {}
    [[nodiscard]] const std::vector<Diagnostic>& diagnostics() const noexcept { return diagnostics_; }
    // The paths at which includes were looked up before the failure: a file at one of them may fix it.
    [[nodiscard]] const std::vector<IncludeProbe>& probes() const noexcept { return probes_; }
    void set_probes(std::vector<IncludeProbe> probes) { probes_ = std::move(probes); }

private:
    std::vector<Diagnostic> diagnostics_;
    std::vector<IncludeProbe> probes_;
};

}  // namespace kp
