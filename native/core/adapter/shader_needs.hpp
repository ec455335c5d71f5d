// The requirements of a module's capabilities, extensions and execution modes on a device, each checked by
// name. Pure.
//
// The rules are Vulkan's tables "SPIR-V capabilities" and "SPIR-V extensions". Names that are in no table
// here are refused, because a driver that does not know them may do anything. An extension that only permits
// another declaration (a capability, an execution mode, a decoration) is checked through that declaration.
#pragma once

#include "adapter/shader_host.hpp"
#include "spirv/shader_info.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kp {

// The requirements of the module that `host` does not meet: findings of the kinds capability, extension, mode
// and feature. Throws Error(invalid_argument) for a malformed module.
[[nodiscard]] std::vector<Finding> unmet_needs(std::span<const uint32_t> words, const ShaderInfo& info,
                                               const ShaderHost& host);

inline constexpr const char* bfloat16_extension = "VK_KHR_shader_bfloat16";

// Extensions without features that add something to compute shaders: enabled on every device that has them.
inline constexpr const char* shader_extensions[] = {
    "VK_KHR_shader_non_semantic_info",
    "VK_EXT_shader_subgroup_ballot",
    "VK_EXT_shader_subgroup_vote",
    "VK_AMD_gcn_shader",
    "VK_AMD_shader_ballot",
    "VK_AMD_shader_trinary_minmax",
    "VK_NV_shader_subgroup_partitioned",
    "VK_GOOGLE_decorate_string",
    "VK_GOOGLE_hlsl_functionality1",
    "VK_GOOGLE_user_type",
};

}  // namespace kp
