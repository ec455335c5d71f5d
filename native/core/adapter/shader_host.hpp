// The properties of a device that matter to a shader, and findings about requirements that it does not meet.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kp {

// The limits of VkPhysicalDeviceLimits that bound a single shader.
// clang-format off
#define KP_SHADER_LIMITS(X) \
    X(maxComputeWorkGroupInvocations) X(maxComputeSharedMemorySize) X(maxPushConstantsSize) \
    X(maxBoundDescriptorSets) X(maxPerStageResources) \
    X(maxPerStageDescriptorStorageBuffers) X(maxPerStageDescriptorUniformBuffers) \
    X(maxPerStageDescriptorStorageImages) X(maxPerStageDescriptorSampledImages) \
    X(maxPerStageDescriptorSamplers) \
    X(maxDescriptorSetStorageBuffers) X(maxDescriptorSetUniformBuffers) \
    X(maxDescriptorSetStorageImages) X(maxDescriptorSetSampledImages) X(maxDescriptorSetSamplers)
// clang-format on

struct ShaderLimits {
#define X(name) uint32_t name = 0;
    KP_SHADER_LIMITS(X)
#undef X
    std::array<uint32_t, 3> maxComputeWorkGroupSize{};
};

// VkSubgroupFeatureFlagBits by name.
inline constexpr std::array<std::pair<const char*, uint32_t>, 8> subgroup_operation_names{{
    {"basic", 0x01},
    {"vote", 0x02},
    {"arithmetic", 0x04},
    {"ballot", 0x08},
    {"shuffle", 0x10},
    {"shuffle_relative", 0x20},
    {"clustered", 0x40},
    {"quad", 0x80},
}};

// The subgroups of compute shaders.
struct ShaderSubgroups {
    uint32_t size = 0;  // if none is asked for
    uint32_t least = 0, most = 0;
    uint32_t most_in_workgroup = 0;
    bool in_compute = false;  // whether compute shaders may ask for a size
};

// The properties of a device that matter to a shader.
struct ShaderHost {
    std::string name;
    uint32_t vulkan = 0;                // as VK_MAKE_API_VERSION
    std::vector<std::string> features;  // under Vulkan's names
    uint32_t subgroup_operations = 0;   // VkSubgroupFeatureFlags of compute shaders
    ShaderSubgroups subgroups;
    // From VkPhysicalDeviceFloatControlsProperties: the names of the true properties, and the widths that
    // must agree (in Vulkan's numbering).
    std::vector<std::string> float_controls;
    uint32_t denorm_independence = 2;  // VkShaderFloatControlsIndependence
    uint32_t rounding_independence = 2;
    std::vector<std::string> extensions;  // of the device
    ShaderLimits limits;

    [[nodiscard]] bool has(const std::string& feature) const;
};

// The properties of VkPhysicalDeviceFloatControlsProperties that a shader may need.
// clang-format off
#define KP_FLOAT_CONTROLS(X) \
    X(shaderSignedZeroInfNanPreserveFloat16) X(shaderSignedZeroInfNanPreserveFloat32) \
    X(shaderSignedZeroInfNanPreserveFloat64) \
    X(shaderDenormPreserveFloat16) X(shaderDenormPreserveFloat32) X(shaderDenormPreserveFloat64) \
    X(shaderDenormFlushToZeroFloat16) X(shaderDenormFlushToZeroFloat32) X(shaderDenormFlushToZeroFloat64) \
    X(shaderRoundingModeRTEFloat16) X(shaderRoundingModeRTEFloat32) X(shaderRoundingModeRTEFloat64) \
    X(shaderRoundingModeRTZFloat16) X(shaderRoundingModeRTZFloat32) X(shaderRoundingModeRTZFloat64)
// clang-format on

// VkShaderFloatControlsIndependence by name.
inline constexpr std::array<const char*, 3> float_independence_names{"32 bits only", "all", "none"};

enum class FindingKind : uint8_t { device, version, validation, capability, feature, extension, mode, limit };

// Numbers for limits, text otherwise; empty if there is no value.
using FindingValue = std::variant<std::monostate, uint64_t, std::string>;

struct Finding {
    FindingKind kind = FindingKind::limit;
    std::string what;  // "maxComputeSharedMemorySize", "Int64", "scalarBlockLayout"
    FindingValue needed;
    FindingValue has;
    std::string message;  // a sentence
};

[[nodiscard]] const char* to_string(FindingKind kind) noexcept;  // "limit"

}  // namespace kp
