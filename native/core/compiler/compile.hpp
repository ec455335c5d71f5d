// Source text to SPIR-V and back: GLSL through shaderc, validation and disassembly through
// SPIRV-Tools, decompilation through SPIRV-Cross. Needs no device handle.
#pragma once

#include "compiler/diagnostic.hpp"
#include "compiler/request.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kp {

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

// The checks of `compile` that do not read the source. Throws Error(invalid_argument).
void check_request(const CompileRequest& request);

// Thread-safe; one compiler object for the process. Throws ShaderCompileFailure; its text shows every
// diagnostic as
//   blur.comp:12:9: error: 'foo' : undeclared identifier
//      12 |     x = foo;
//         |         ^
[[nodiscard]] CompileOutput compile(const CompileRequest& request);

// The step after the front end of another compiler: our optimizer, so that names and interfaces survive as
// they do in `compile`. `name` is the source's name in messages.
[[nodiscard]] CompileOutput finish_spirv(std::vector<uint32_t> words, const std::string& name,
                                         OptimizeFor aim, const std::string& target);

// The text of a ShaderCompileFailure with these diagnostics.
[[nodiscard]] std::string render(const std::vector<Diagnostic>& diagnostics);

struct ValidationOptions {
    uint32_t vulkan_minor = 2;  // environment Vulkan 1.x
    bool scalar_block_layout = false;
    bool uniform_buffer_standard_layout = true;
    bool relax_block_layout = true;
    bool workgroup_scalar_block_layout = false;

    // For modules from elsewhere: every layout that some device takes.
    static ValidationOptions lenient(uint32_t vulkan_minor) {
        ValidationOptions options;
        options.vulkan_minor = vulkan_minor;
        options.scalar_block_layout = options.workgroup_scalar_block_layout = true;
        return options;
    }
};

// "" if valid, else the validator's message (with the offending instruction disassembled if it names one).
[[nodiscard]] std::string validate_spirv(std::span<const uint32_t> words, const ValidationOptions& options);

// "5394 (CooperativeVectorNV)" if the validator's message is about a capability newer than it; else "".
[[nodiscard]] std::string unknown_capability(const std::string& problem);

[[nodiscard]] std::string disassemble_spirv(std::span<const uint32_t> words, bool friendly_names = true);
// Throws ShaderCompileFailure; `name` is the file name in its messages.
[[nodiscard]] std::vector<uint32_t> assemble_spirv(const std::string& text, uint32_t vulkan_minor = 2,
                                                   const std::string& name = "<source>");
[[nodiscard]] std::string decompile_spirv(std::span<const uint32_t> words, SourceLanguage language,
                                          const std::string& entry = "main");

}  // namespace kp
