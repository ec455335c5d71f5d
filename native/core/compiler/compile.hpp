// Source text to SPIR-V and back: GLSL and HLSL through shaderc, validation and disassembly through
// SPIRV-Tools, decompilation through SPIRV-Cross. Needs no device handle.
#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <map>
#include <span>
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

enum class SourceLanguage : uint8_t { glsl, hlsl };
enum class OptimizeFor : uint8_t { nothing, size, performance };

// HLSL's registers by letter. Each letter has its own numbering; GLSL has one numbering.
struct RegisterBases {
    uint32_t textures = 0;  // t
    uint32_t writable = 0;  // u
    uint32_t buffers = 0;   // b
    uint32_t samplers = 0;  // s

    [[nodiscard]] bool any() const noexcept { return (textures | writable | buffers | samplers) != 0; }
};

struct CompileRequest {
    std::string source;
    std::string name = "<source>";  // file name for messages and for relative includes
    SourceLanguage language = SourceLanguage::glsl;
    std::string entry = "main";
    std::vector<std::pair<std::string, std::string>> defines;
    std::vector<std::string> include_dirs;
    std::map<std::string, std::string> virtual_includes;  // name -> text, searched before the directories
    OptimizeFor optimize = OptimizeFor::performance;
    bool debug_info = false;
    std::string target = "vulkan1.2";  // vulkan1.0 .. vulkan1.3
    std::string spirv_version;         // "1.0" .. "1.6"; "": the newest that the target supports
    std::string glsl_version;          // "460", "310 es": overrides #version; "": #version, else 450
    bool auto_bind = false;            // numbers bindings that the source leaves out; HLSL always does
    bool hlsl_offsets = false;         // lays out GLSL blocks as HLSL would
    bool hlsl_16bit_types = false;     // half, min16float and similar types have 16 bits
    RegisterBases register_bases;      // HLSL: added to a register's number to get the binding
};

struct CompileOutput {
    std::vector<uint32_t> spirv;
    // The module that the source declares, before the optimizer removed unreachable code; empty if it is
    // `spirv`.
    std::vector<uint32_t> declared;
    std::vector<Diagnostic> warnings;
    std::vector<std::string> included;  // files that were included, for watching
    // Everything that decides if the same request would give the same module again, each path once.
    std::vector<IncludeProbe> probes;
};

// Changes if the linked compilers change, or this library's processing around them.
[[nodiscard]] std::string compiler_id();

// Thread-safe; one compiler object for the process. Throws ShaderCompileFailure; its text shows every
// diagnostic as
//   blur.comp:12:9: error: 'foo' : undeclared identifier
//      12 |     x = foo;
//         |         ^
[[nodiscard]] CompileOutput compile(const CompileRequest& request);

// The steps after the front end of another compiler: warnings about bindings that two variables share (if
// `warn`), and our optimizer, so that names and interfaces survive as they do in `compile`. `name` is the
// source's name in messages.
[[nodiscard]] CompileOutput finish_spirv(std::vector<uint32_t> words, const std::string& name,
                                         OptimizeFor aim, const std::string& target, bool warn);

// The text of a ShaderCompileFailure with these diagnostics.
[[nodiscard]] std::string render(const std::vector<Diagnostic>& diagnostics);

struct ValidationOptions {
    uint32_t vulkan_minor = 2;  // environment Vulkan 1.x
    bool scalar_block_layout = false;
    bool uniform_buffer_standard_layout = true;
    bool relax_block_layout = true;
    bool workgroup_scalar_block_layout = false;
};

// "" if valid, else the validator's message (with the offending instruction disassembled if it names one).
[[nodiscard]] std::string validate_spirv(std::span<const uint32_t> words, const ValidationOptions& options);

[[nodiscard]] std::string disassemble_spirv(std::span<const uint32_t> words, bool friendly_names = true);
// Throws ShaderCompileFailure; `name` is the file name in its messages.
[[nodiscard]] std::vector<uint32_t> assemble_spirv(const std::string& text, uint32_t vulkan_minor = 2,
                                                   const std::string& name = "<source>");
[[nodiscard]] std::string decompile_spirv(std::span<const uint32_t> words, SourceLanguage language,
                                          const std::string& entry = "main");

}  // namespace kp
