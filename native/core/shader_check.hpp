// What a device would refuse about a shader: the one place that knows, for algorithms and for shaders that are checked with
// no device opened. Pure.
#pragma once

#include "spirv_reflect.hpp"

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
    ShaderLimits limits;

    [[nodiscard]] bool has(const std::string& feature) const;
};

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

enum class FindingKind : uint8_t { device, version, validation, capability, feature, limit };

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
