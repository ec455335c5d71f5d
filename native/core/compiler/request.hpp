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

struct CompileRequest {
    std::string source;
    std::string name = "<source>";  // file name for messages and for relative includes
    std::string entry = "main";
    std::vector<std::pair<std::string, std::string>> defines;
    std::vector<std::string> include_dirs;
    std::map<std::string, std::string> virtual_includes;  // name -> text, searched before the directories
    OptimizeFor optimize = OptimizeFor::performance;
    bool debug_info = false;
    std::string target = "vulkan1.2";  // vulkan1.0 .. vulkan1.3
    std::string spirv_version;         // "1.0" .. "1.6"; "": the newest that the target supports
    std::string glsl_version;          // "460", "310 es": overrides #version; "": #version, else 450
    bool auto_bind = false;            // numbers bindings that the source leaves out
    bool hlsl_offsets = false;         // lays out GLSL blocks as HLSL would
};

}  // namespace kp
