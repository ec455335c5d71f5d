// KP_NULL_DRIVER=key=value,key=value: what device an instance of the driver pretends to be.
#include "common.hpp"

#include <algorithm>
#include <cstdio>

namespace kpnull {
namespace {

// The default device's.
void set_limits(VkPhysicalDeviceLimits& l) {
    l.maxImageDimension1D = l.maxImageDimension2D = l.maxImageDimensionCube = 16384;
    l.maxImageDimension3D = 2048;
    l.maxImageArrayLayers = 2048;
    l.maxTexelBufferElements = 1u << 27;
    l.maxUniformBufferRange = 65536;
    l.maxStorageBufferRange = 1u << 30;
    l.maxPushConstantsSize = 256;
    l.maxMemoryAllocationCount = 4096;
    l.maxSamplerAllocationCount = 4000;
    l.bufferImageGranularity = kImageGranularity;
    l.maxBoundDescriptorSets = 8;
    l.maxPerStageDescriptorSamplers = l.maxPerStageDescriptorUniformBuffers =
        l.maxPerStageDescriptorStorageBuffers = l.maxPerStageDescriptorSampledImages =
            l.maxPerStageDescriptorStorageImages = 1u << 16;
    l.maxPerStageDescriptorInputAttachments = 8;
    l.maxPerStageResources = 1u << 18;
    l.maxDescriptorSetSamplers = l.maxDescriptorSetUniformBuffers = l.maxDescriptorSetStorageBuffers =
        l.maxDescriptorSetSampledImages = l.maxDescriptorSetStorageImages = 1u << 18;
    l.maxDescriptorSetUniformBuffersDynamic = l.maxDescriptorSetStorageBuffersDynamic = 16;
    l.maxDescriptorSetInputAttachments = 8;
    l.maxVertexInputAttributes = l.maxVertexInputBindings = 16;
    l.maxVertexInputAttributeOffset = 2047;
    l.maxVertexInputBindingStride = 2048;
    l.maxVertexOutputComponents = l.maxFragmentInputComponents = 64;
    l.maxFragmentOutputAttachments = l.maxColorAttachments = 8;
    l.maxFragmentDualSrcAttachments = 1;
    l.maxFragmentCombinedOutputResources = 1u << 16;
    l.maxComputeSharedMemorySize = 49152;
    for (uint32_t& n : l.maxComputeWorkGroupCount) n = 65535;
    l.maxComputeWorkGroupInvocations = 1024;
    l.maxComputeWorkGroupSize[0] = l.maxComputeWorkGroupSize[1] = 1024;
    l.maxComputeWorkGroupSize[2] = 64;
    l.subPixelPrecisionBits = l.subTexelPrecisionBits = l.mipmapPrecisionBits = 8;
    l.maxDrawIndexedIndexValue = UINT32_MAX;
    l.maxDrawIndirectCount = 1;
    l.maxSamplerLodBias = 15;
    l.maxSamplerAnisotropy = 16;
    l.maxViewports = 1;
    l.maxViewportDimensions[0] = l.maxViewportDimensions[1] = 16384;
    l.viewportBoundsRange[0] = -32768;
    l.viewportBoundsRange[1] = 32767;
    l.minMemoryMapAlignment = 64;
    l.minTexelBufferOffsetAlignment = 16;
    l.minUniformBufferOffsetAlignment = 64;
    l.minStorageBufferOffsetAlignment = 16;
    l.minTexelOffset = l.minTexelGatherOffset = -8;
    l.maxTexelOffset = l.maxTexelGatherOffset = 7;
    l.minInterpolationOffset = -0.5f;
    l.maxInterpolationOffset = 0.4375f;
    l.subPixelInterpolationOffsetBits = 4;
    l.maxFramebufferWidth = l.maxFramebufferHeight = 16384;
    l.maxFramebufferLayers = 1024;
    l.framebufferColorSampleCounts = l.framebufferDepthSampleCounts = l.framebufferStencilSampleCounts =
        l.framebufferNoAttachmentsSampleCounts = l.sampledImageColorSampleCounts =
            l.sampledImageIntegerSampleCounts = l.sampledImageDepthSampleCounts =
                l.sampledImageStencilSampleCounts = l.storageImageSampleCounts = VK_SAMPLE_COUNT_1_BIT;
    l.maxSampleMaskWords = 1;
    l.timestampComputeAndGraphics = VK_TRUE;
    l.timestampPeriod = 1.0f;
    l.discreteQueuePriorities = 2;
    l.pointSizeRange[0] = l.pointSizeRange[1] = l.lineWidthRange[0] = l.lineWidthRange[1] = 1;
    l.standardSampleLocations = VK_TRUE;
    l.optimalBufferCopyOffsetAlignment = l.optimalBufferCopyRowPitchAlignment = 16;
    l.nonCoherentAtomSize = kAtomSize;
}

// Limits by their names in Vulkan, so that a test can lower any that an application has to honour.
// clang-format off
#define KP_LIMITS(F) \
    F(maxImageDimension1D) F(maxImageDimension2D) F(maxImageDimension3D) F(maxImageArrayLayers) \
    F(maxTexelBufferElements) F(maxUniformBufferRange) F(maxStorageBufferRange) F(maxPushConstantsSize) \
    F(maxMemoryAllocationCount) F(maxSamplerAllocationCount) F(maxBoundDescriptorSets) \
    F(maxPerStageDescriptorSamplers) F(maxPerStageDescriptorUniformBuffers) \
    F(maxPerStageDescriptorStorageBuffers) F(maxPerStageDescriptorSampledImages) \
    F(maxPerStageDescriptorStorageImages) F(maxPerStageResources) F(maxDescriptorSetSamplers) \
    F(maxDescriptorSetUniformBuffers) F(maxDescriptorSetStorageBuffers) F(maxDescriptorSetSampledImages) \
    F(maxDescriptorSetStorageImages) F(maxComputeSharedMemorySize)
// clang-format on
std::map<std::string, uint32_t*> name_limits(Config& config) {
    std::map<std::string, uint32_t*> names{{"maxPerSetDescriptors", &config.max_set_descriptors}};
#define KP_NAME(f) names[#f] = &config.limits.f;
    KP_LIMITS(KP_NAME)
#undef KP_NAME
    return names;
}
std::map<std::string, VkDeviceSize*> name_sizes(Config& config) {
    VkPhysicalDeviceLimits& l = config.limits;
    return {{"minStorageBufferOffsetAlignment", &l.minStorageBufferOffsetAlignment},
            {"minUniformBufferOffsetAlignment", &l.minUniformBufferOffsetAlignment},
            {"minTexelBufferOffsetAlignment", &l.minTexelBufferOffsetAlignment},
            {"maxMemoryAllocationSize", &config.max_allocation}};
}
void set_invocations(Config& config, uint32_t n) {
    config.limits.maxComputeWorkGroupInvocations = n;
    config.limits.maxComputeWorkGroupSize[0] = config.limits.maxComputeWorkGroupSize[1] = n;
    config.limits.maxComputeWorkGroupSize[2] = std::min(64u, n);
}

bool number(const std::string& text, uint64_t& out) {
    if (text.empty() || text[0] == '-') return false;
    char* end = nullptr;
    out = std::strtoull(text.c_str(), &end, 0);
    return end && *end == 0;
}
std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    for (size_t at = 0; at <= text.size();) {
        const size_t end = std::min(text.find(separator, at), text.size());
        if (end > at) parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

bool apply(Config& config, const std::string& key, const std::string& value) {
    if (key == "memory") {
        config.memory = value;
        return value == "discrete" || value == "unified" || value == "noncoherent" || value == "exotic";
    }
    if (key == "api") {
        if (value == "1.1")
            config.api_version = VK_API_VERSION_1_1;
        else if (value == "1.2")
            config.api_version = VK_API_VERSION_1_2;
        else if (value == "1.3")
            config.api_version = VK_API_VERSION_1_3;
        else
            return false;
        return true;
    }
    if (key == "disable") {
        for (auto& feature : split(value, '+')) config.disabled_features.push_back(feature);
        return true;
    }
    if (key == "noext") {
        for (auto& extension : split(value, '+')) config.disabled_extensions.push_back(extension);
        return true;
    }
    if (key == "profile") {
        config.profile = find_profile(value);
        if (config.profile) config.profile->apply(config, config.limits);
        return config.profile != nullptr;
    }
    uint64_t n = 0;
    if (!number(value, n)) return false;
    if (const auto limits = name_limits(config); limits.contains(key))
        return *limits.at(key) = uint32_t(n), n <= UINT32_MAX;
    if (const auto sizes = name_sizes(config); sizes.contains(key)) return *sizes.at(key) = n, n >= 1;
    static const std::map<std::string, const char*> switches{
        {"int64", "shaderInt64"},     {"int16", "shaderInt16"},     {"int8", "shaderInt8"},
        {"float64", "shaderFloat64"}, {"float16", "shaderFloat16"}, {"bda", "bufferDeviceAddress"}};
    if (auto found = switches.find(key); found != switches.end()) {
        if (n == 0) config.disabled_features.emplace_back(found->second);
        return n <= 1;
    }
    if (key == "trap_reads") return config.trap_reads = n != 0, n <= 1 && (n == 0 || can_trap_reads());
    if (key == "no_timeline") return config.no_timeline = n != 0, n <= 1;
    if (key == "executables") return config.executables = n != 0, n <= 1;
    if (key == "fault") return config.fault = n != 0, n <= 1;
    if (key == "cooperative") return config.cooperative = n != 0, n <= 1;
    if (key == "bfloat16") return config.bfloat16 = n != 0, n <= 1;
    if (key == "devices") return config.devices = uint32_t(n), n <= 2;
    if (key == "heap_mib") return config.heap_mib = n, n >= 1;
    if (key == "host_heap_mib") return config.host_heap_mib = n, n >= 1;
    if (key == "gpu_us") return config.gpu_us = n, true;
    if (key == "compile_ms") return config.compile_ms = n, true;
    if (key == "max_wait_ms") return config.max_wait_ms = n, n >= 1;
    if (key == "groups") {
        for (uint32_t& count : config.limits.maxComputeWorkGroupCount) count = uint32_t(n);
        return n >= 1 && n <= UINT32_MAX;
    }
    if (key == "invocations") return set_invocations(config, uint32_t(n)), n >= 1 && n <= 65536;
    if (key == "subgroup") return config.subgroup = uint32_t(n), n >= 1 && n <= 128;
    if (key == "timestamp_bits") return config.timestamp_bits = uint32_t(n), n <= 64;
    if (key == "transfer_timestamps") return config.transfer_timestamps = uint32_t(n), n <= 64;
    return false;
}

}  // namespace

Config::Config() { set_limits(limits); }

bool Config::read(Config& config) {
    const char* text = std::getenv("KP_NULL_DRIVER");
    if (!text) return true;
    for (const std::string& item : split(text, ',')) {
        const size_t equals = item.find('=');
        if (equals == std::string::npos || !apply(config, item.substr(0, equals), item.substr(equals + 1))) {
            std::fprintf(
                stderr,
                "null driver: KP_NULL_DRIVER has the invalid item '%s'. Keys: profile=%s, "
                "memory=discrete|unified|noncoherent|exotic, api=1.1|1.2|1.3, devices=0..2, heap_mib, "
                "host_heap_mib, gpu_us, compile_ms, max_wait_ms, groups, invocations, subgroup, "
                "timestamp_bits=0..64, transfer_timestamps=0..64, trap_reads (x86-64 alone), no_timeline, "
                "cooperative, bfloat16, fault, executables, int64, "
                "int16, int8, "
                "float64, float16, bda "
                "(0|1), disable=feature+feature, noext=extension+extension, and limits by their names "
                "in Vulkan, such as maxStorageBufferRange\n",
                item.c_str(), profile_names().c_str());
            return false;
        }
    }
    return true;
}

}  // namespace kpnull
