// SPIR-V for tests, assembled from text that a reader can follow.
#pragma once

#include "base/error.hpp"
#include "spirv/reflect.hpp"

#include <doctest/doctest.h>
#include <spirv-tools/libspirv.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace spirv_text {

// Fails the test, with the assembler's message, where the text is wrong.
inline std::vector<uint32_t> assemble(const std::string& text, spv_target_env env = SPV_ENV_UNIVERSAL_1_3) {
    spvtools::SpirvTools tools(env);
    std::string messages;
    tools.SetMessageConsumer(
        [&](spv_message_level_t, const char*, const spv_position_t& at, const char* message) {
            messages += "line " + std::to_string(at.line + 1) + ": " + message + "\n";
        });
    std::vector<uint32_t> words;
    const bool assembled = tools.Assemble(text, &words);
    REQUIRE_MESSAGE(assembled, messages);
    return words;
}

// Also checks that the module is valid, so that a test is about something that can happen.
inline std::vector<uint32_t> assemble_valid(const std::string& text,
                                            spv_target_env env = SPV_ENV_UNIVERSAL_1_3) {
    std::vector<uint32_t> words = assemble(text, env);
    spvtools::SpirvTools tools(env);
    std::string messages;
    tools.SetMessageConsumer([&](spv_message_level_t, const char*, const spv_position_t&,
                                 const char* message) { messages += std::string(message) + "\n"; });
    const bool valid = tools.Validate(words);
    REQUIRE_MESSAGE(valid, messages);
    return words;
}

// A compute shader's head: capabilities, memory model, entry point.
inline std::string head(const std::string& capabilities = "", const std::string& size = "LocalSize 1 1 1",
                        const std::string& addressing = "Logical") {
    return "OpCapability Shader\n" + capabilities + "\nOpMemoryModel " + addressing +
           " GLSL450\nOpEntryPoint GLCompute %main \"main\"\nOpExecutionMode %main " + size + "\n";
}

inline const std::string empty_main =
    "%main = OpFunction %void None %fn\n%entry = OpLabel\nOpReturn\nOpFunctionEnd\n";
inline const std::string basics = "%void = OpTypeVoid\n%fn = OpTypeFunction %void\n%uint = OpTypeInt 32 0\n"
                                  "%float = OpTypeFloat 32\n%bool = OpTypeBool\n";

// The message of the Error that reflecting throws; "" where it throws none.
inline std::string error_of(const std::vector<uint32_t>& words, const std::string& entry = "main") {
    try {
        (void)kp::reflect(words, entry);
    } catch (const kp::Error& error) {
        CHECK(error.kind() == kp::ErrorKind::invalid_argument);
        return error.what();
    }
    return "";
}

inline bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

inline const kp::BindingInfo& binding(const kp::ShaderInfo& info, const std::string& name) {
    const auto found = std::find_if(info.bindings.begin(), info.bindings.end(),
                                    [&](const kp::BindingInfo& b) { return b.instance_name == name; });
    REQUIRE_MESSAGE(found != info.bindings.end(), "no binding " << name);
    return *found;
}

inline std::string access(const kp::ShaderInfo& info, const std::string& name) {
    return kp::to_string(binding(info, name).access);
}

}  // namespace spirv_text
