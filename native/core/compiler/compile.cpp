// A compilation in up to two passes. The first makes the module. Only if it has messages does a second pass
// follow, over the same text with one token on each line. Its messages give the places of the first pass's
// messages (compiler/text.hpp).
#include "compiler/compile.hpp"

#include "base/deep_stack.hpp"
#include "compiler/diagnostics.hpp"
#include "compiler/sources.hpp"
#include "spirv/module.hpp"

#include <shaderc/shaderc.hpp>
#include <spirv-tools/libspirv.h>
#include <spirv-tools/optimizer.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

namespace kp {
namespace {

constexpr int assumed_version = 450;  // of GLSL without #version

struct Target {
    const char* name;
    shaderc_env_version vulkan;
    shaderc_spirv_version spirv;
    spv_target_env environment;
};

struct SpirvVersion {
    const char* name;
    shaderc_spirv_version version;
};

constexpr std::array<SpirvVersion, 7> spirv_versions{{{"1.0", shaderc_spirv_version_1_0},
                                                      {"1.1", shaderc_spirv_version_1_1},
                                                      {"1.2", shaderc_spirv_version_1_2},
                                                      {"1.3", shaderc_spirv_version_1_3},
                                                      {"1.4", shaderc_spirv_version_1_4},
                                                      {"1.5", shaderc_spirv_version_1_5},
                                                      {"1.6", shaderc_spirv_version_1_6}}};

struct GlslVersion {
    int number = 0;  // 0: the source's version
    shaderc_profile profile = shaderc_profile_none;
};

constexpr std::array<Target, 4> targets{{
    {"vulkan1.0", shaderc_env_version_vulkan_1_0, shaderc_spirv_version_1_0, SPV_ENV_VULKAN_1_0},
    {"vulkan1.1", shaderc_env_version_vulkan_1_1, shaderc_spirv_version_1_3, SPV_ENV_VULKAN_1_1},
    {"vulkan1.2", shaderc_env_version_vulkan_1_2, shaderc_spirv_version_1_5, SPV_ENV_VULKAN_1_2},
    {"vulkan1.3", shaderc_env_version_vulkan_1_3, shaderc_spirv_version_1_6, SPV_ENV_VULKAN_1_3},
}};

[[noreturn]] void invalid(const std::string& message) {
    throw Error(ErrorKind::invalid_argument, to_valid_utf8(message));
}

const Target& target_named(const std::string& name) {
    std::string choices;
    for (const Target& target : targets) {
        if (name == target.name) return target;
        choices += choices.empty() ? target.name : std::string(", ") + target.name;
    }
    invalid("'" + name + "' is not a target; choose one of " + choices);
}

// The SPIR-V version to write.
shaderc_spirv_version spirv_version(const CompileRequest& request, const Target& target) {
    if (request.spirv_version.empty()) return target.spirv;
    std::string choices;
    for (const SpirvVersion& version : spirv_versions) {
        if (version.version > target.spirv) break;
        if (request.spirv_version == version.name) return version.version;
        choices += (choices.empty() ? "" : ", ") + std::string(version.name);
    }
    invalid("'" + request.spirv_version + "' is not a version of SPIR-V that belongs to " + target.name +
            "; choose one of " + choices);
}

// The versions that have compute shaders.
bool is_glsl_version(int number) {
    static constexpr std::array<int, 7> numbers{310, 320, 420, 430, 440, 450, 460};
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

// "460", "450core", "310 es".
GlslVersion glsl_version(const CompileRequest& request) {
    GlslVersion out;
    const std::string& text = request.glsl_version;
    if (text.empty()) return out;
    size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
    std::string profile = text.substr(digits);
    profile.erase(0, profile.find_first_not_of(' '));
    out.number = digits > 0 && digits < 5 ? std::stoi(text.substr(0, digits)) : -1;
    if (!is_glsl_version(out.number))
        invalid("'" + text +
                "' is not a version of GLSL with compute shaders; choose one of 310 es, 320 es, 420, 430, "
                "440, 450, 460");
    const bool embedded = out.number < 420;
    if (profile == "es" && embedded)
        out.profile = shaderc_profile_es;
    else if (profile == "compatibility" && !embedded)
        out.profile = shaderc_profile_compatibility;
    else if ((profile.empty() || profile == "core") && !embedded)
        out.profile = shaderc_profile_core;
    else
        invalid("'" + text + "' is not a profile of GLSL " + std::to_string(out.number) + "; choose " +
                (embedded ? "es" : "core or compatibility"));
    return out;
}

bool is_name(std::string_view text) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !text.empty() && letter(text.front()) &&
           std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// A name, or a macro with parameters: "SQUARE(x)".
bool is_macro_head(std::string_view text) {
    const size_t open = text.find('(');
    if (open == std::string_view::npos) return is_name(text);
    if (!is_name(text.substr(0, open)) || text.back() != ')') return false;
    const std::string_view parameters = text.substr(open + 1, text.size() - open - 2);
    return parameters.find_first_of(std::string_view("()\r\n\0", 5)) == std::string_view::npos;
}

[[noreturn]] void fail(std::vector<Diagnostic> diagnostics) {
    std::string text = render_diagnostics(diagnostics);
    throw ShaderCompileFailure(text, std::move(diagnostics));
}

[[noreturn]] void fail(const SourceFile& file, TextPosition at, const std::string& message) {
    fail({{to_valid_utf8(file.name), at.line, at.column, "error", message,
           to_valid_utf8(line_of_text(file.text, at.line))}});
}

// Rejects text that must not reach glslang: with a version that has no compute shaders it prints thousands of
// lines of its own declarations to standard output.
void check_text(const SourceFile& source, bool version_is_forced) {
    const ShaderTextFacts& facts = source.facts;
    if (!facts.problem.empty()) fail(source, facts.problem_at, facts.problem);
    if (facts.blank) fail(source, {}, "the source is empty");
    if (!facts.has_version || version_is_forced) return;
    if (facts.version < 0) fail(source, facts.version_at, "#version needs a number, as in '#version 450'");
    const std::string number = std::to_string(facts.version);
    const bool embedded = facts.version == 310 || facts.version == 320;
    if (facts.version < 420 && !embedded)
        fail(source, facts.version_at,
             "compute shaders need version 430 or later (or 310 es) of GLSL; '#version 450' is usual");
    if (!is_glsl_version(static_cast<int>(std::min<int64_t>(facts.version, 9999))))
        fail(source, facts.version_at, "there is no GLSL " + number + "; '#version 450' is usual");
    if (!facts.version_is_clean)
        fail(source, facts.version_at,
             "#version takes a number and a profile, as in '#version 450 core', and nothing else");
    const std::string& profile = facts.profile;
    if (embedded && profile != "es")
        fail(source, facts.version_at,
             "GLSL " + number + " has the profile es: '#version " + number + " es'");
    if (!embedded && !profile.empty() && profile != "core" && profile != "compatibility")
        fail(source, facts.version_at,
             "'" + to_valid_utf8(profile) + "' is not a profile of GLSL " + number +
                 "; choose core or compatibility");
}

// The version in the source's #version, which check_text has accepted. glslang always gets it as the forced
// version and never reads its own: it would parse its declarations for that version, and print them if this
// fails.
GlslVersion stated_version(const ShaderTextFacts& facts) {
    const shaderc_profile profile = facts.profile == "es"              ? shaderc_profile_es
                                    : facts.profile == "core"          ? shaderc_profile_core
                                    : facts.profile == "compatibility" ? shaderc_profile_compatibility
                                                                       : shaderc_profile_none;
    return {static_cast<int>(facts.version), profile};
}

class Includer : public shaderc::CompileOptions::IncluderInterface {
public:
    Includer(ShaderSources& sources, bool split, bool real_names)
        : sources_(sources), split_(split), real_names_(real_names) {}

    shaderc_include_result* GetInclude(const char* requested, shaderc_include_type type, const char* from,
                                       size_t depth) override {
        auto* result = new shaderc_include_result{};
        // No exception may pass through the compiler. An empty source name tells shaderc of a failure.
        try {
            const ShaderSources::Include& include =
                sources_.include(requested, type == shaderc_include_type_standard, from, depth);
            if (SourceFile* file = include.file) {
                const std::string& name = real_names_ ? file->name : file->tag;
                set(*result, name, split_ ? file->split().text : file->text);
            } else {
                set(*result, none_, include.problem);
            }
        } catch (const std::exception& error) {
            failure_ = error.what();
            set(*result, none_, failure_);
        }
        return result;
    }

    void ReleaseInclude(shaderc_include_result* result) override { delete result; }

private:
    static void set(shaderc_include_result& result, const std::string& name, const std::string& content) {
        result.source_name = name.c_str();
        result.source_name_length = name.size();
        result.content = content.c_str();
        result.content_length = content.size();
    }

    ShaderSources& sources_;
    bool split_;
    bool real_names_;
    std::string none_;
    std::string failure_;
};

// Creating a compiler takes as long as a hundred small compilations, and one serves any number of threads. It
// is never destroyed: a daemon thread may still compile while the process runs its destructors.
const shaderc::Compiler& compiler() {
    static const shaderc::Compiler& instance = *new shaderc::Compiler;
    return instance;
}

struct PassResult {
    bool succeeded = false;
    bool has_warnings = false;
    std::vector<uint32_t> spirv;
    std::string log;
};

// Whether the module declares one of these. (Capabilities come first in a module.)
bool declares_any(const std::vector<uint32_t>& words, std::initializer_list<uint32_t> capabilities) {
    constexpr size_t header = 5;
    for (size_t at = header; at + 1 < words.size() && (words[at] & 0xFFFFu) == spv::OpCapability; at += 2)
        if (std::ranges::find(capabilities, words[at + 1]) != capabilities.end()) return true;
    return false;
}

// Passes of the optimizer crash on types of cooperative matrices.
bool beyond_optimizer(const std::vector<uint32_t>& words) {
    return declares_any(words,
                        {spv::CapabilityCooperativeMatrixNV, spirv::newer::capability_cooperative_matrix});
}

std::vector<uint32_t> optimized(const std::vector<uint32_t>& words, OptimizeFor aim, const Target& target,
                                const std::string& name) {
    spvtools::Optimizer optimizer(target.environment);
    std::string messages;
    optimizer.SetMessageConsumer(
        [&](spv_message_level_t level, const char*, const spv_position_t&, const char* message) {
            if (level <= SPV_MSG_ERROR) messages += std::string(messages.empty() ? "" : "; ") + message;
        });
    if (aim == OptimizeFor::size)
        optimizer.RegisterSizePasses();
    else
        optimizer.RegisterPerformancePasses();
    spvtools::OptimizerOptions options;
    options.set_run_validator(false);
    // Tensors and constants are matched by number, so unused ones must not vanish.
    options.set_preserve_bindings(true);
    options.set_preserve_spec_constants(true);
    std::vector<uint32_t> out;
    if (!optimizer.Run(words.data(), words.size(), &out, options))
        throw Error(ErrorKind::internal, "the SPIR-V optimizer failed on " + to_valid_utf8(name) + ": " +
                                             to_valid_utf8(messages) + "; compile with optimize=\"none\"");
    return out;
}

// Whether the optimizer may make a module of this one that validators refuse: it turns conversions of
// constants into constants of 8 and 16 bits, where the module only stores such numbers, and members of local
// structs into variables, without the decoration that an address needs.
bool needs_check_after(const std::vector<uint32_t>& words) {
    return declares_any(
        words, {spv::CapabilityStorageBuffer16BitAccess, spv::CapabilityUniformAndStorageBuffer16BitAccess,
                spv::CapabilityStoragePushConstant16, spv::CapabilityStorageBuffer8BitAccess,
                spv::CapabilityUniformAndStorageBuffer8BitAccess, spv::CapabilityStoragePushConstant8,
                spv::CapabilityPhysicalStorageBufferAddresses});
}

// Users cannot find the fault of a compiler in their source.
void require_sound(const std::vector<uint32_t>& words, OptimizeFor aim, const std::string& name) {
    const std::string problem = validate_spirv(words, ValidationOptions::lenient(3));
    if (problem.empty()) return;
    const std::string shown = to_valid_utf8(name);
    if (const std::string capability = unknown_capability(problem); !capability.empty()) {
        if (aim == OptimizeFor::nothing) return;
        throw Error(ErrorKind::unimplemented,
                    shown + " needs the SPIR-V capability " + capability +
                        ", which kompute_py's tools do not know; compile with optimize=\"none\" to get the "
                        "module as the compiler makes it");
    }
    if (problem.find("is not the Entry Point operand of an OpEntryPoint") != std::string::npos) {
        const size_t at = problem.find("[%") + 2;
        fail({{shown, 0, 0, "error",
               "[numthreads] belongs to the entry point alone; take it from '" +
                   problem.substr(at, problem.find(']', at) - at) + "', which is not the entry point",
               ""}});
    }
    fail({{shown, 0, 0, "error",
           "the compiler made SPIR-V that is not valid, which is a fault of the compiler, not of the "
           "source: " +
               problem,
           ""}});
}

// Optimizes `out.spirv`, and keeps the original module as the source's declarations.
void optimize(CompileOutput& out, OptimizeFor aim, const Target& target, const std::string& name) {
    if (beyond_optimizer(out.spirv)) return;
    require_sound(out.spirv, aim, name);
    if (aim == OptimizeFor::nothing) return;
    std::vector<uint32_t> fast = optimized(out.spirv, aim, target, name);
    if (needs_check_after(out.spirv) && !validate_spirv(fast, ValidationOptions::lenient(3)).empty()) return;
    if (fast != out.spirv) out.declared = std::exchange(out.spirv, std::move(fast));
}

class Compilation {
public:
    Compilation(const CompileRequest& request, const Target& target)
        : request_(request),
          target_(target),
          spirv_(spirv_version(request, target)),
          glsl_(glsl_version(request)),
          sources_(request) {}

    CompileOutput run() {
        try {
            return compiled();
        } catch (ShaderCompileFailure& failure) {
            failure.set_probes(sources_.take_probes());
            throw;
        }
    }

private:
    CompileOutput compiled() {
        check_text(sources_.main(), glsl_.number != 0);
        // Debug information needs the real names of files; messages are parsed more safely with our own.
        const PassResult first = pass(false, request_.debug_info);
        CompileOutput out;
        if (!first.succeeded || first.has_warnings) {
            const std::string& log = request_.debug_info ? pass(false, false).log : first.log;
            std::vector<Diagnostic> diagnostics = parse_compiler_log(log);
            place(diagnostics);
            if (!first.succeeded) fail_with(std::move(diagnostics));
            // The caller asked for a version other than the source's.
            if (glsl_.number != 0)
                std::erase_if(diagnostics, [](const Diagnostic& d) {
                    return d.message.starts_with("(version, profile) forced to be");
                });
            out.warnings = std::move(diagnostics);
        }
        out.spirv = first.spirv;
        name_entry(out.spirv);
        optimize(out, request_.optimize, target_, request_.name);
        out.included = sources_.included();
        out.probes = sources_.take_probes();
        return out;
    }

    PassResult pass(bool split, bool for_debugging) {
        shaderc::CompileOptions options;
        options.SetSourceLanguage(shaderc_source_language_glsl);
        options.SetTargetEnvironment(shaderc_target_env_vulkan, static_cast<uint32_t>(target_.vulkan));
        options.SetTargetSpirv(spirv_);
        // shaderc's own optimization would strip the names, which reflection shows.
        options.SetOptimizationLevel(shaderc_optimization_level_zero);
        if (for_debugging) options.SetGenerateDebugInfo();
        options.SetAutoBindUniforms(request_.auto_bind);
        options.SetHlslOffsets(request_.hlsl_offsets);
        SourceFile& main = sources_.main();
        if (glsl_.number != 0)
            options.SetForcedVersionProfile(glsl_.number, glsl_.profile);
        else if (!main.facts.has_version)
            options.SetForcedVersionProfile(assumed_version, shaderc_profile_core);
        else
            options.SetForcedVersionProfile(stated_version(main.facts).number,
                                            stated_version(main.facts).profile);
        for (const auto& [name, value] : request_.defines) options.AddMacroDefinition(name, value);
        options.SetIncluder(std::make_unique<Includer>(sources_, split, for_debugging));

        const std::string& text = split ? main.split().text : main.text;
        const std::string& name = for_debugging ? main.name : main.tag;
        const shaderc::SpvCompilationResult result = compiler().CompileGlslToSpv(
            text.data(), text.size(), shaderc_compute_shader, name.c_str(), "main", options);
        PassResult out;
        out.succeeded = result.GetCompilationStatus() == shaderc_compilation_status_success;
        out.has_warnings = result.GetNumWarnings() > 0;
        out.log = result.GetErrorMessage();
        if (out.succeeded) out.spirv.assign(result.cbegin(), result.cend());
        return out;
    }

    // Sets each diagnostic's real file name, column and source line.
    void place(std::vector<Diagnostic>& diagnostics) {
        const std::vector<Diagnostic> exact = parse_compiler_log(pass(true, false).log);
        const bool same = std::equal(diagnostics.begin(), diagnostics.end(), exact.begin(), exact.end(),
                                     [](const Diagnostic& a, const Diagnostic& b) {
                                         return a.severity == b.severity && a.message == b.message;
                                     });
        for (size_t i = 0; i < diagnostics.size(); ++i) {
            Diagnostic& diagnostic = diagnostics[i];
            SourceFile* named = sources_.find(diagnostic.file);
            SourceFile* file = same ? sources_.find(exact[i].file) : named;
            if (same && file && exact[i].line > 0)
                place_at_token(diagnostic, *file, exact[i].line, file == named);
            else if (file && diagnostic.line > 0 && !file->facts.has_line_directive)
                place_at_word(diagnostic, *file);
            if (named) diagnostic.file = to_valid_utf8(named->name);
        }
        drop_aftermath(diagnostics);
    }

    static void place_at_token(Diagnostic& diagnostic, SourceFile& file, uint32_t token_line,
                               bool same_file) {
        const TokenLines& lines = file.split();
        if (token_line > lines.positions.size()) return;  // the end of the file
        const TextPosition at = lines.positions[token_line - 1];
        if (same_file && !file.facts.has_line_directive) diagnostic.line = at.line;
        const std::string_view line = line_of_text(file.text, at.line);
        diagnostic.source_line = to_valid_utf8(line);
        diagnostic.column = at.column;
        const std::string_view word = quoted_token(diagnostic.message);
        if (word.empty()) return;
        // A directive is one token here; the message may be about a word of it.
        if (line.substr(std::min(line.find_first_not_of(" \t"), line.size())).starts_with("#")) {
            if (const uint32_t column = column_of_word(line, word)) diagnostic.column = column;
        } else if (is_name(word)) {
            // For a call, glslang gives the closing bracket, but names the function.
            if (const uint32_t column = column_of_word(line, word, at.column)) diagnostic.column = column;
        }
    }

    // Used if the two passes disagree: the first place on the line with the word that the message names.
    static void place_at_word(Diagnostic& diagnostic, const SourceFile& file) {
        const std::string_view line = line_of_text(file.text, diagnostic.line);
        diagnostic.source_line = to_valid_utf8(line);
        diagnostic.column = column_of_word(line, quoted_token(diagnostic.message));
    }

    [[noreturn]] void fail_with(std::vector<Diagnostic> diagnostics) {
        if (diagnostics.empty()) fail(sources_.main(), {}, "the compiler failed without saying why");
        fail(std::move(diagnostics));
    }

    // GLSL's function is always `main`; the module's entry point gets the requested name.
    void name_entry(std::vector<uint32_t>& words) {
        static constexpr size_t header = 5;
        static constexpr uint32_t entry_point =
            15;  // OpEntryPoint: execution model, function, name, interface
        for (size_t at = header; at < words.size();) {
            const size_t length = words[at] >> 16;
            if (length == 0 || at + length > words.size()) break;
            if ((words[at] & 0xFFFF) != entry_point || length < 4) {
                at += length;
                continue;
            }
            const char* name = reinterpret_cast<const char*>(&words[at + 3]);
            const size_t old_length = strnlen(name, (length - 3) * 4);
            if (std::string_view(name, old_length) == request_.entry) return;
            const size_t old_words = old_length / 4 + 1;
            std::vector<uint32_t> fresh(request_.entry.size() / 4 + 1, 0);
            std::memcpy(fresh.data(), request_.entry.data(), request_.entry.size());
            const auto first = words.begin() + static_cast<ptrdiff_t>(at) + 3;
            words[at] = entry_point | static_cast<uint32_t>(length - old_words + fresh.size()) << 16;
            const auto gap = words.erase(first, first + static_cast<ptrdiff_t>(old_words));
            words.insert(gap, fresh.begin(), fresh.end());
            return;
        }
        fail(sources_.main(), {}, "the source has no entry point; a compute shader needs 'void main()'");
    }

    const CompileRequest& request_;
    const Target& target_;
    shaderc_spirv_version spirv_;
    GlslVersion glsl_;
    ShaderSources sources_;
};

}  // namespace

std::string compiler_id() {
    unsigned int version = 0;
    unsigned int revision = 0;
    shaderc_get_spv_version(&version, &revision);
    // The build's id covers the archives that are linked in. Only a shared SPIRV-Tools itself knows which
    // version was loaded.
    return std::string(KP_COMPILER_ID) + "; SPIR-V " + std::to_string(version) + "." +
           std::to_string(revision) + "; " + spvSoftwareVersionDetailsString();
}

CompileOutput finish_spirv(std::vector<uint32_t> words, const std::string& name, OptimizeFor aim,
                           const std::string& target) {
    CompileOutput out;
    out.spirv = std::move(words);
    const Target& chosen = target_named(target);
    run_with_deep_stack([&] { optimize(out, aim, chosen, name); });
    return out;
}

std::string render(const std::vector<Diagnostic>& diagnostics) { return render_diagnostics(diagnostics); }

void check_request(const CompileRequest& request) {
    static constexpr std::string_view line_ends("\r\n\0", 3);
    spirv_version(request, target_named(request.target));
    if (request.name.empty() || request.name.find_first_of(line_ends) != std::string::npos)
        invalid("the source's name must be one line of text");
    if (!is_name(request.entry))
        invalid("'" + request.entry + "' cannot be an entry point: its name is letters, digits and _");
    for (const auto& [name, value] : request.defines) {
        if (!is_macro_head(name))
            invalid("cannot define '" + name + "': a macro's name is letters, digits and _");
        if (value.find_first_of(line_ends) != std::string::npos)
            invalid("cannot define " + name + ": a macro's value is one line of text");
    }
    for (const std::string& directory : request.include_dirs)
        if (directory.empty() || directory.find('\0') != std::string::npos)
            invalid(
                "an include directory must not be empty or contain a NUL character; '.' is the current one");
}

CompileOutput compile(const CompileRequest& request) {
    check_request(request);
    const Target& target = target_named(request.target);
    CompileOutput out;
    run_with_deep_stack([&] { out = Compilation(request, target).run(); });
    return out;
}

}  // namespace kp
