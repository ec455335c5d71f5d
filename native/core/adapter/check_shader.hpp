// What a device would refuse about a shader: the one place that knows, for algorithms and for shaders that are checked with
// no device opened. Pure.
#pragma once

#include "spirv/reflect.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kp {

// The limits of VkPhysicalDeviceLimits that bound a shader by itself.
// clang-format off
#define KP_SHADER_LIMITS(X) \
    X(maxComputeWorkGroupInvocations) X(maxComputeSharedMemorySize) X(maxPushConstantsSize) \
    X(maxBoundDescriptorSets) X(maxPerStageResources) \
    X(maxPerStageDescriptorStorageBuffers) X(maxPerStageDescriptorUniformBuffers) \
    X(maxPerStageDescriptorStorageImages) X(maxPerStageDescriptorSampledImages) X(maxPerStageDescriptorSamplers) \
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

// A device as a shader sees it.
struct ShaderHost {
    std::string name;
    uint32_t vulkan = 0;                // as VK_MAKE_API_VERSION
    std::vector<std::string> features;  // under Vulkan's names
    uint32_t subgroup_operations = 0;   // VkSubgroupFeatureFlags, of compute shaders
    // Of VkPhysicalDeviceFloatControlsProperties: the names of those that are true, and which widths must agree (as Vulkan counts).
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
    X(shaderSignedZeroInfNanPreserveFloat16) X(shaderSignedZeroInfNanPreserveFloat32) X(shaderSignedZeroInfNanPreserveFloat64) \
    X(shaderDenormPreserveFloat16) X(shaderDenormPreserveFloat32) X(shaderDenormPreserveFloat64) \
    X(shaderDenormFlushToZeroFloat16) X(shaderDenormFlushToZeroFloat32) X(shaderDenormFlushToZeroFloat64) \
    X(shaderRoundingModeRTEFloat16) X(shaderRoundingModeRTEFloat32) X(shaderRoundingModeRTEFloat64) \
    X(shaderRoundingModeRTZFloat16) X(shaderRoundingModeRTZFloat32) X(shaderRoundingModeRTZFloat64)
// clang-format on

// VkShaderFloatControlsIndependence by name.
inline constexpr std::array<const char*, 3> float_independence_names{"32 bits only", "all", "none"};

// How many descriptors the arrays of run-time length have.
struct DescriptorCounts {
    struct Runtime {
        uint32_t set = 0;
        uint32_t binding = 0;
        uint32_t count = 1;
    };
    std::vector<Runtime> runtime;

    [[nodiscard]] uint32_t of(const BindingInfo& binding) const noexcept {
        for (const Runtime& each : runtime)
            if (each.set == binding.set && each.binding == binding.binding) return each.count;
        return binding.count == 0 ? 1 : binding.count;
    }
};

enum class FindingKind : uint8_t { device, version, validation, capability, feature, extension, mode, limit };

// Numbers for limits, words for the rest; nothing where there is nothing to say.
using FindingValue = std::variant<std::monostate, uint64_t, std::string>;

struct Finding {
    FindingKind kind = FindingKind::limit;
    std::string what;  // "maxComputeSharedMemorySize", "Int64", "scalarBlockLayout"
    FindingValue needed;
    FindingValue has;
    std::string message;  // a sentence
};

// The module as a whole: its version, its rules, what it declares to use.
[[nodiscard]] std::vector<Finding> check_module(std::span<const uint32_t> words, const ShaderInfo& info,
                                                const ShaderHost& host);
// The size of the push constants, which no specialization changes; part of check_limits.
[[nodiscard]] std::vector<Finding> check_push_constants(const ShaderInfo& info, const ShaderHost& host);
// Lengths of arrays that specialization constants make less than 1.
[[nodiscard]] std::vector<Finding> check_arrays(std::span<const uint32_t> words,
                                                std::span<const SpecValue> specialization);
// What each invocation has by itself: no compiler is given more than the largest that any device takes.
[[nodiscard]] std::vector<Finding> check_private_memory(std::span<const uint32_t> words,
                                                        std::span<const SpecValue> specialization);
// Sizes and counts; `info` has the specialization applied. Arrays of run-time length count as `counts` says: by itself such
// an array needs one descriptor. A binding that the code does not use has no place in the layout and counts nothing.
[[nodiscard]] std::vector<Finding> check_limits(const ShaderInfo& info, const ShaderHost& host,
                                                const DescriptorCounts& counts = {});

// The length that an array of descriptors of run-time length is to have: of the binding with this name.
using ArrayLength = std::pair<std::string, uint32_t>;

// Both, and what cannot be reflected at all, such as a module without this entry point.
[[nodiscard]] std::vector<Finding> check_shader(std::span<const uint32_t> words, const ShaderHost& host,
                                                const std::string& entry = "main",
                                                std::span<const SpecValue> specialization = {},
                                                std::span<const ArrayLength> lengths = {});

[[nodiscard]] const char* to_string(FindingKind kind) noexcept;  // "limit"

}  // namespace kp
