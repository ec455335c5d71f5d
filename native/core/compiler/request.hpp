// The settings of one compilation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace kp {

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

}  // namespace kp
