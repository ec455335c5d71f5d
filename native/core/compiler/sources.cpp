#include "compiler/sources.hpp"

#include "base/error.hpp"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace kp {
namespace {

namespace fs = std::filesystem;

// Stops an include that includes itself without a guard, before it fills the memory.
constexpr size_t max_depth = 64;
constexpr size_t max_inclusions = 10'000;
constexpr uintmax_t max_file_bytes = 64u << 20;

// Windows would interpret a std::string in its code page; elsewhere the bytes pass unchanged.
fs::path path_of(const std::string& utf8) {
    return {std::u8string(reinterpret_cast<const char8_t*>(utf8.data()), utf8.size())};
}

std::string text_of(const fs::path& path) {
    const std::u8string generic = path.generic_u8string();
    return {reinterpret_cast<const char*>(generic.data()), generic.size()};
}

std::string directory_of(const std::string& name) {
    const size_t slash = name.find_last_of("/\\");
    return slash == std::string::npos ? "" : name.substr(0, slash + 1);
}

std::string joined(const std::string& directory, const std::string& name) {
    if (directory.empty() || path_of(name).is_absolute()) return name;
    const char last = directory.back();
    return last == '/' || last == '\\' ? directory + name : directory + "/" + name;
}

bool names_a_file(const std::string& source_name) {
    return !source_name.empty() && source_name.front() != '<';
}

}  // namespace

const TokenLines& SourceFile::split() {
    if (!token_lines) token_lines = one_token_per_line(text);
    return *token_lines;
}

ShaderSources::ShaderSources(const CompileRequest& request) : request_(request) {
    SourceFile main;
    main.name = request.name;
    main.text = request.source;
    main.on_disk = names_a_file(request.name);
    if (main.on_disk) main.directory = directory_of(request.name);
    (void)add(std::move(main));
}

SourceFile* ShaderSources::find(std::string_view tag_or_name) {
    const auto found = by_name_.find(tag_or_name);
    return found == by_name_.end() ? nullptr : &files_[found->second];
}

const ShaderSources::Include& ShaderSources::include(const std::string& requested, bool angled,
                                                     const std::string& from, size_t depth) {
    if (depth > max_depth) {
        refused_ = {nullptr, "includes nest more than " + std::to_string(max_depth) + " deep here; does '" +
                                 requested +
                                 "' include itself? Give it an include guard (#ifndef, #define, #endif)"};
        return refused_;
    }
    if (++inclusions_ > max_inclusions) {
        refused_ = {nullptr, "more than " + std::to_string(max_inclusions) +
                                 " inclusions in one compilation; give the included files include guards"};
        return refused_;
    }
    auto key = std::make_tuple(from, angled, requested);
    auto found = resolved_.find(key);
    if (found == resolved_.end()) {
        // glslang first looks up "name" as it stands, then as <name>; the message shows the first answer.
        const auto quoted = resolved_.find(std::make_tuple(from, false, requested));
        Include answer = angled && quoted != resolved_.end() && !quoted->second.file
                             ? quoted->second
                             : resolve(requested, angled, find(from));
        found = resolved_.emplace(std::move(key), std::move(answer)).first;
    }
    return found->second;
}

ShaderSources::Include ShaderSources::resolve(const std::string& requested, bool angled,
                                              const SourceFile* from) {
    std::vector<std::string> tried;
    // A virtual file may include its neighbour by its name in the same directory.
    std::vector<std::string> virtual_names{requested};
    if (!angled && from && !from->on_disk && !from->directory.empty())
        virtual_names.insert(virtual_names.begin(), joined(from->directory, requested));
    for (const std::string& name : virtual_names) {
        const auto found = request_.virtual_includes.find(name);
        if (found == request_.virtual_includes.end()) continue;
        const std::string label = "<virtual>/" + name;
        if (const auto known = by_path_.find(label); known != by_path_.end())
            return {&files_[known->second], ""};
        SourceFile file;
        file.name = name;
        file.text = found->second;
        file.directory = directory_of(name);
        Include added = add(std::move(file));
        if (added.file) by_path_.emplace(label, files_.size() - 1);
        return added;
    }

    std::vector<std::string> places;
    if (!angled && from && from->on_disk) places.push_back(from->directory);
    if (path_of(requested).is_absolute())
        places = {""};
    else
        places.insert(places.end(), request_.include_dirs.begin(), request_.include_dirs.end());
    for (const std::string& place : places) {
        const std::string path = joined(place, requested);
        std::error_code ignored;
        if (fs::exists(path_of(path), ignored)) return read(path);
        probes_.emplace(path, std::nullopt);
        tried.push_back(place.empty() ? "." : place);
    }

    std::string problem = "cannot find '" + requested + "'";
    if (tried.empty()) return {nullptr, problem + ": there is no directory to look in; give include_dirs"};
    problem += "; looked in ";
    for (size_t i = 0; i < tried.size(); ++i) problem += (i ? ", '" : "'") + tried[i] + "'";
    return {nullptr, problem};
}

ShaderSources::Include ShaderSources::read(const std::string& path) {
    const fs::path where = path_of(path);
    std::error_code failed;
    if (!fs::is_regular_file(where, failed)) return {nullptr, "'" + path + "' is not a file"};
    const fs::path canonical = fs::weakly_canonical(where, failed);
    const std::string key = failed ? path : text_of(canonical);
    if (const auto known = by_path_.find(key); known != by_path_.end()) {
        // Another path to the same file. It may be a link that will point elsewhere later.
        SourceFile& file = files_[known->second];
        if (const auto first = probes_.find(file.name); first != probes_.end())
            probes_.emplace(path, first->second);
        return {&file, ""};
    }

    if (const uintmax_t size = fs::file_size(where, failed); !failed && size > max_file_bytes)
        return {nullptr, "'" + path + "' has " + std::to_string(size) + " bytes; at most " +
                             std::to_string(max_file_bytes) + " are read"};
    std::ifstream stream(where, std::ios::binary);
    SourceFile file;
    file.text.assign(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    if (!stream.is_open() || stream.bad()) return {nullptr, "cannot read '" + path + "'"};
    probes_.insert_or_assign(path, file.text);
    file.name = path;
    file.directory = directory_of(path);
    file.on_disk = true;
    Include added = add(std::move(file));
    if (added.file) by_path_.emplace(key, files_.size() - 1);
    return added;
}

ShaderSources::Include ShaderSources::add(SourceFile file) {
    if (file.text.starts_with("\xEF\xBB\xBF")) file.text.erase(0, 3);  // the compilers do not accept the mark
    file.facts = inspect_shader_text(file.text);
    // A problem in the main source is reported with its line; in an included file, at the include.
    if (!files_.empty() && !file.facts.problem.empty())
        return {nullptr, "'" + file.name + "', line " + std::to_string(file.facts.problem_at.line) + ": " +
                             file.facts.problem};
    file.tag = "kp-source-" + std::to_string(files_.size());
    files_.push_back(std::move(file));
    SourceFile& added = files_.back();
    by_name_.emplace(added.tag, files_.size() - 1);
    by_name_.emplace(added.name, files_.size() - 1);
    return {&added, ""};
}

std::vector<std::string> ShaderSources::included() const {
    std::vector<std::string> names;
    for (size_t i = 1; i < files_.size(); ++i)
        if (files_[i].on_disk) names.push_back(files_[i].name);
    return names;
}

std::vector<IncludeProbe> ShaderSources::take_probes() {
    std::vector<IncludeProbe> out;
    out.reserve(probes_.size());
    for (auto& [path, content] : probes_)
        out.push_back({path, content.has_value(), std::move(content).value_or("")});
    probes_.clear();
    return out;
}

}  // namespace kp
