// The part of compiler/compile.hpp that starts from SPIR-V: SPIRV-Tools validates and disassembles,
// SPIRV-Cross decompiles.
#include "base/deep_stack.hpp"
#include "compiler/compile.hpp"
#include "compiler/diagnostics.hpp"
#include "compiler/text.hpp"
#include "spirv/shader_info.hpp"

#include <spirv-tools/libspirv.hpp>
#include <spirv_cross/spirv_hlsl.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace kp {
namespace {

[[noreturn]] void invalid(const std::string& message) {
    throw Error(ErrorKind::invalid_argument, to_valid_utf8(message));
}

spv_target_env environment_of(uint32_t vulkan_minor) {
    switch (vulkan_minor) {
    case 0: return SPV_ENV_VULKAN_1_0;
    case 1: return SPV_ENV_VULKAN_1_1;
    case 2: return SPV_ENV_VULKAN_1_2;
    case 3: return SPV_ENV_VULKAN_1_3;
    default: invalid("there are rules for Vulkan 1.0 to 1.3, not for 1." + std::to_string(vulkan_minor));
    }
}

std::string trimmed(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

void require_valid(std::span<const uint32_t> words) {
    const std::string problem = validate_spirv(words, ValidationOptions::lenient(3));
    if (!problem.empty()) invalid("cannot decompile what is not valid SPIR-V: " + problem);
}

template <class Compiler>
void choose_entry(Compiler& compiler, const std::string& entry) {
    std::string choices;
    for (const spirv_cross::EntryPoint& point : compiler.get_entry_points_and_stages()) {
        if (point.execution_model != spv::ExecutionModelGLCompute) continue;
        if (point.name == entry) {
            compiler.set_entry_point(entry, spv::ExecutionModelGLCompute);
            return;
        }
        choices += (choices.empty() ? "'" : ", '") + point.name + "'";
    }
    throw Error(ErrorKind::not_found, to_valid_utf8("the module has no compute entry point '" + entry +
                                                    "'; it has " + (choices.empty() ? "none" : choices)));
}

std::string to_glsl(std::vector<uint32_t> words, const std::string& entry) {
    spirv_cross::CompilerGLSL compiler(std::move(words));
    choose_entry(compiler, entry);
    spirv_cross::CompilerGLSL::Options options = compiler.get_common_options();
    options.version = 450;
    options.es = false;
    options.vulkan_semantics = true;
    compiler.set_common_options(options);
    return compiler.compile();
}

std::string to_hlsl(std::vector<uint32_t> words, const std::string& entry) {
    spirv_cross::CompilerHLSL compiler(std::move(words));
    choose_entry(compiler, entry);
    spirv_cross::CompilerHLSL::Options options = compiler.get_hlsl_options();
    options.shader_model = 60;
    compiler.set_hlsl_options(options);
    return compiler.compile();
}

// The version in a disassembler's leading comment "; Version: 1.3", in the form of a module's second word; 0
// if none.
uint32_t version_in_comments(std::string_view text) {
    constexpr std::string_view label = "; Version: ";
    while (text.starts_with(';')) {
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        if (line.starts_with(label) && line.size() >= label.size() + 3) {
            const char major = line[label.size()], point = line[label.size() + 1],
                       minor = line[label.size() + 2];
            if (major == '1' && point == '.' && minor >= '0' && minor <= '6')
                return 0x10000u | static_cast<uint32_t>(minor - '0') << 8;
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return 0;
}

// SPIRV-Tools before 2024 knows compute derivatives by their older extension alone, which is the same and has
// a name of as many words.
std::vector<uint32_t> with_known_extensions(std::span<const uint32_t> words) {
    constexpr std::string_view newer = "SPV_KHR_compute_shader_derivatives",
                               older = "SPV_NV_compute_shader_derivatives";
    std::vector<uint32_t> known(words.begin(), words.end());
    const std::string_view bytes(reinterpret_cast<const char*>(words.data()), words.size_bytes());
    const size_t at = bytes.find(newer);
    if (at != std::string_view::npos && at % 4 == 0 && (words[at / 4 - 1] & 0xFFFF) == spv::OpExtension) {
        char* name = reinterpret_cast<char*>(known.data()) + at;
        std::fill_n(std::ranges::copy(older, name).out, newer.size() - older.size(), '\0');
    }
    return known;
}

// Adds the name to "Invalid capability operand: 5394", the message of a validator older than the capability.
std::string with_capability_names(std::string text) {
    constexpr std::string_view label = "capability operand: ";
    for (size_t at = text.find(label); at != std::string::npos; at = text.find(label, at)) {
        at += label.size();
        size_t end = at;
        while (end < text.size() && end < at + 9 && text[end] >= '0' && text[end] <= '9') ++end;
        if (end == at) continue;
        const std::string name =
            capability_name(static_cast<uint32_t>(std::stoul(text.substr(at, end - at))));
        if (!name.starts_with("capability ")) text.insert(end, " (" + name + ")");
    }
    return text;
}

}  // namespace

std::string unknown_capability(const std::string& problem) {
    constexpr std::string_view label = "Invalid capability operand: ";
    const size_t at = problem.find(label);
    if (at == std::string::npos) return "";
    const size_t begin = at + label.size();
    return problem.substr(begin, problem.find('\n', at) - begin);
}

std::string validate_spirv(std::span<const uint32_t> words, const ValidationOptions& options) {
    spvtools::SpirvTools tools(environment_of(options.vulkan_minor));
    std::string messages;
    tools.SetMessageConsumer(
        [&](spv_message_level_t level, const char*, const spv_position_t& at, const char* message) {
            if (level > SPV_MSG_ERROR) return;
            if (!messages.empty()) messages += "\n";
            // The index counts instructions; it is 0 if the message is about the whole module.
            if (at.index > 0) messages += "instruction " + std::to_string(at.index) + ": ";
            messages += message;
        });
    spvtools::ValidatorOptions validator;
    validator.SetScalarBlockLayout(options.scalar_block_layout);
    validator.SetUniformBufferStandardLayout(options.uniform_buffer_standard_layout);
    validator.SetRelaxBlockLayout(options.relax_block_layout);
    validator.SetWorkgroupScalarBlockLayout(options.workgroup_scalar_block_layout);
    const std::vector<uint32_t> known = with_known_extensions(words);
    if (tools.Validate(known.data(), known.size(), validator)) return "";
    const std::string text = with_capability_names(to_valid_utf8(trimmed(messages)));
    return text.empty() ? "the validator rejects the module without saying why" : text;
}

std::string disassemble_spirv(std::span<const uint32_t> words, bool friendly_names) {
    // The newest environment reads the instructions of all versions.
    spvtools::SpirvTools tools(SPV_ENV_UNIVERSAL_1_6);
    std::string messages;
    tools.SetMessageConsumer(
        [&](spv_message_level_t, const char*, const spv_position_t&, const char* message) {
            messages += std::string(messages.empty() ? "" : "; ") + message;
        });
    uint32_t options = SPV_BINARY_TO_TEXT_OPTION_INDENT;
    if (friendly_names) options |= SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES;
    std::string text;
    if (!tools.Disassemble(words.data(), words.size(), &text, options)) {
        const std::string capability = unknown_capability(with_capability_names(messages));
        if (!capability.empty())
            throw Error(ErrorKind::unimplemented, "The module has the SPIR-V capability " + capability +
                                                      ", which kompute_py's tools do not know");
        invalid("these " + std::to_string(words.size() * 4) + " bytes are not SPIR-V: " + trimmed(messages));
    }
    return to_valid_utf8(text);
}

std::vector<uint32_t> assemble_spirv(const std::string& text, uint32_t vulkan_minor,
                                     const std::string& name) {
    spvtools::SpirvTools tools(environment_of(vulkan_minor));
    const std::string file = to_valid_utf8(name);
    std::vector<Diagnostic> diagnostics;
    tools.SetMessageConsumer(
        [&](spv_message_level_t level, const char*, const spv_position_t& at, const char* message) {
            const auto line = static_cast<uint32_t>(at.line) + 1;
            diagnostics.push_back({file, line, static_cast<uint32_t>(at.column) + 1,
                                   level <= SPV_MSG_ERROR ? "error" : "warning",
                                   to_valid_utf8(trimmed(message)), to_valid_utf8(line_of_text(text, line))});
        });
    std::vector<uint32_t> words;
    if (!tools.Assemble(text.data(), text.size(), &words)) {
        if (diagnostics.empty())
            diagnostics.push_back({file, 0, 0, "error", "the assembler rejects the text", ""});
        const std::string shown = render_diagnostics(diagnostics);
        throw ShaderCompileFailure(shown, std::move(diagnostics));
    }
    // The assembler writes the target's newest version, in which the disassembled module may not be valid.
    // The version in the comments may be wrong too: someone may have edited the text and kept them.
    const uint32_t version = version_in_comments(text);
    if (words.size() < 2 || words[1] == version) return words;
    const ValidationOptions lenient = ValidationOptions::lenient(vulkan_minor);
    const uint32_t newest = words[1];
    if (version == 0) {
        // Without such a comment: the newest version in which the module is valid.
        for (; words[1] >= 0x10000u; words[1] -= 0x100u)
            if (validate_spirv(words, lenient).empty()) return words;
        words[1] = newest;
        return words;
    }
    words[1] = version;
    if (validate_spirv(words, lenient).empty()) return words;
    words[1] = newest;
    if (!validate_spirv(words, lenient).empty()) words[1] = version;
    return words;
}

std::string decompile_spirv(std::span<const uint32_t> words, SourceLanguage language,
                            const std::string& entry) {
    // SPIRV-Cross trusts its input, and recurses over nested control flow.
    require_valid(words);
    std::string out;
    run_with_deep_stack([&] {
        try {
            std::vector<uint32_t> copy(words.begin(), words.end());
            out = language == SourceLanguage::hlsl ? to_hlsl(std::move(copy), entry)
                                                   : to_glsl(std::move(copy), entry);
        } catch (const spirv_cross::CompilerError& error) {
            throw Error(ErrorKind::unimplemented,
                        std::string("SPIRV-Cross cannot express this module in ") +
                            (language == SourceLanguage::hlsl ? "HLSL: " : "GLSL: ") +
                            to_valid_utf8(error.what()));
        }
    });
    return to_valid_utf8(out);
}

}  // namespace kp
