// The texts of one compilation: the source and its includes, found, read and checked once.
#pragma once

#include "compiler/diagnostic.hpp"
#include "compiler/request.hpp"
#include "compiler/text.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace kp {

struct SourceFile {
    std::string name;  // for messages
    std::string
        tag;  // the name that the compiler gets, so that a file name cannot confuse the parsing of messages
    std::string text;
    std::string directory;  // searched first for its own relative includes; ends with '/', or ""
    bool on_disk = false;   // `directory` is in the file system; otherwise among the virtual files
    ShaderTextFacts facts;
    std::optional<TokenLines> token_lines;

    [[nodiscard]] const TokenLines& split();
};

class ShaderSources {
public:
    // Refers to `request`, which must outlive this.
    explicit ShaderSources(const CompileRequest& request);
    ShaderSources(const ShaderSources&) = delete;
    ShaderSources& operator=(const ShaderSources&) = delete;

    [[nodiscard]] SourceFile& main() { return files_.front(); }
    [[nodiscard]] std::deque<SourceFile>& files() { return files_; }
    // By tag or by name; null if there is none.
    [[nodiscard]] SourceFile* find(std::string_view tag_or_name);

    struct Include {
        SourceFile* file = nullptr;  // null: `problem` gives the reason
        std::string problem;
    };
    // Resolves an #include in `from`: <angled> skips the directory of the including file.
    [[nodiscard]] const Include& include(const std::string& requested, bool angled, const std::string& from,
                                         size_t depth);

    // The included files on disk, each once, in the order of their first use.
    [[nodiscard]] std::vector<std::string> included() const;
    // Every file system path at which an include was looked up, found or not.
    [[nodiscard]] std::vector<IncludeProbe> take_probes();

private:
    [[nodiscard]] Include resolve(const std::string& requested, bool angled, const SourceFile* from);
    [[nodiscard]] Include read(const std::string& path);
    [[nodiscard]] Include add(SourceFile file);

    const CompileRequest& request_;
    std::deque<SourceFile> files_;  // a deque keeps addresses stable
    std::map<std::tuple<std::string, bool, std::string>, Include> resolved_;
    std::map<std::string, size_t, std::less<>> by_name_;  // tags and names -> index in files_
    std::map<std::string, size_t> by_path_;               // of files on disk
    std::map<std::string, std::optional<std::string>>
        probes_;  // path -> content; nullopt if there is no file
    Include refused_;
    size_t inclusions_ = 0;
};

}  // namespace kp
