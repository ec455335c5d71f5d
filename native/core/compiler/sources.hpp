// The texts that take part in one compilation: the source itself and what it includes, found, read and checked once.
#pragma once

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

struct CompileRequest;
struct IncludeProbe;

struct SourceFile {
    std::string name;  // as messages show it
    std::string tag;  // as the compiler is told, so that no file name can confuse the reading of its messages
    std::string text;
    std::string
        directory;  // where its own relative includes are looked up first; with a '/' at the end, or ""
    bool on_disk = false;  // `directory` is one of the file system; of the virtual files otherwise
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
    // By tag or by name; null when there is none.
    [[nodiscard]] SourceFile* find(std::string_view tag_or_name);

    struct Include {
        SourceFile* file = nullptr;  // null: `problem` says why
        std::string problem;
    };
    // What #include means in `from`: <angled> skips the directory of the file that includes.
    [[nodiscard]] const Include& include(const std::string& requested, bool angled, const std::string& from,
                                         size_t depth);

    // The files on disk that were included, each once, in the order of their first use.
    [[nodiscard]] std::vector<std::string> included() const;
    // Every path of the file system at which an include was looked up, found or not.
    [[nodiscard]] std::vector<IncludeProbe> take_probes();

private:
    [[nodiscard]] Include resolve(const std::string& requested, bool angled, const SourceFile* from);
    [[nodiscard]] Include read(const std::string& path);
    [[nodiscard]] Include add(SourceFile file);

    const CompileRequest& request_;
    std::deque<SourceFile> files_;  // addresses stay
    std::map<std::tuple<std::string, bool, std::string>, Include> resolved_;
    std::map<std::string, size_t, std::less<>> by_name_;  // tags and names -> index in files_
    std::map<std::string, size_t> by_path_;               // of files on disk
    std::map<std::string, std::optional<std::string>>
        probes_;  // path -> content, none where there is no file
    Include refused_;
    size_t inclusions_ = 0;
};

}  // namespace kp
