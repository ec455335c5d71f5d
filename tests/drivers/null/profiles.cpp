// Profiles: the kinds of real device that a program must be right on, in the numbers that matter to it.
//
// Each is a device of its kind as such devices describe themselves: memory types in their order, and the
// limits that are smaller or odder than those of the default device. Queue families stay those of the default
// device, so that programs with several queues run on every profile.
#include "common.hpp"

namespace kpnull {
namespace {

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kVisible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
constexpr VkMemoryPropertyFlags kCoherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
constexpr VkMemoryHeapFlags kLocalHeap = VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
constexpr uint32_t kMiB = 1u << 20;

void set_descriptors(VkPhysicalDeviceLimits& l, uint32_t samplers, uint32_t uniform, uint32_t storage,
                     uint32_t sampled, uint32_t images, uint32_t resources, uint32_t per_set) {
    l.maxPerStageDescriptorSamplers = samplers;
    l.maxPerStageDescriptorUniformBuffers = uniform;
    l.maxPerStageDescriptorStorageBuffers = storage;
    l.maxPerStageDescriptorSampledImages = sampled;
    l.maxPerStageDescriptorStorageImages = images;
    l.maxPerStageResources = resources;
    // A set serves all stages: devices allow `per_set` times what one stage may have.
    l.maxDescriptorSetSamplers = per_set * samplers;
    l.maxDescriptorSetUniformBuffers = per_set * uniform;
    l.maxDescriptorSetStorageBuffers = per_set * storage;
    l.maxDescriptorSetSampledImages = per_set * sampled;
    l.maxDescriptorSetStorageImages = per_set * images;
}
void set_images(VkPhysicalDeviceLimits& l, uint32_t flat, uint32_t deep, uint32_t layers, uint32_t texels) {
    l.maxImageDimension1D = l.maxImageDimension2D = l.maxImageDimensionCube = flat;
    l.maxImageDimension3D = deep;
    l.maxImageArrayLayers = layers;
    l.maxTexelBufferElements = texels;
}

// A desktop GPU behind a 256 MiB window (AMD's Polaris and Vega on a board without resizable BAR).
void small_bar(Config& c, VkPhysicalDeviceLimits& l) {
    c.vendor = 0x1002;
    c.heap_mib = 8192 - 256;
    c.transfer_timestamps = 64;
    c.subgroup = 64;
    c.max_allocation = 4ull << 30;
    l.maxStorageBufferRange = UINT32_MAX;
    l.maxUniformBufferRange = UINT32_MAX;
    l.maxPushConstantsSize = 256;
    l.maxBoundDescriptorSets = 32;
    l.maxComputeSharedMemorySize = 32768;
    for (uint32_t i = 0; i < 3; ++i) l.maxComputeWorkGroupSize[i] = 1024;
    l.minStorageBufferOffsetAlignment = l.minTexelBufferOffsetAlignment = 4;
    l.minUniformBufferOffsetAlignment = 4;
    set_descriptors(l, 1u << 23, 1u << 23, 1u << 23, 1u << 23, 1u << 23, 1u << 23, 1);
    set_images(l, 16384, 2048, 2048, 128 * kMiB);
}
// A desktop GPU whose whole memory the host maps, write-combined: reading it goes over the bus word by word.
void large_bar(Config& c, VkPhysicalDeviceLimits& l) {
    small_bar(c, l);
    c.heap_mib = 16384;
    c.subgroup = 32;
    l.maxPushConstantsSize = 256;
    l.maxComputeSharedMemorySize = 65536;
}
// An integrated GPU that shares the processor's cache (Intel's Xe).
void integrated(Config& c, VkPhysicalDeviceLimits& l) {
    c.vendor = 0x8086;
    c.least_subgroup = 8;
    c.heap_mib = 11776;
    c.max_allocation = 4ull << 30;
    c.disabled_features.emplace_back("shaderFloat64");
    l.maxStorageBufferRange = 1u << 30;
    l.maxUniformBufferRange = 1u << 30;
    l.maxPushConstantsSize = 128;
    l.maxBoundDescriptorSets = 8;
    l.maxComputeSharedMemorySize = 65536;
    for (uint32_t i = 0; i < 3; ++i) l.maxComputeWorkGroupSize[i] = 1024;
    l.minStorageBufferOffsetAlignment = 4;
    l.minTexelBufferOffsetAlignment = 16;
    l.minUniformBufferOffsetAlignment = 64;
    set_descriptors(l, 65536, 64, 65536, 65536, 65536, UINT32_MAX, 6);
    l.maxPerStageResources = UINT32_MAX;
    set_images(l, 16384, 2048, 2048, 128 * kMiB);
}
// A laptop's Radeon under Mesa's RADV: the firmware's carve-out and the host's memory are heaps of one kind
// of memory.
void radeon(Config& c, VkPhysicalDeviceLimits& l) {
    small_bar(c, l);
    c.heap_mib = 5120;
    l.maxComputeSharedMemorySize = 65536;
    l.maxComputeWorkGroupCount[0] = UINT32_MAX;
}
// A phone's GPU: cached memory is not coherent, and coherent memory is not cached (Arm's Mali).
void mobile(Config& c, VkPhysicalDeviceLimits& l) {
    c.vendor = 0x13B5;
    c.least_subgroup = 16;
    c.heap_mib = 5632;
    c.subgroup = 16;
    l.maxComputeWorkGroupInvocations = 512;
    c.max_allocation = 1ull << 30;
    c.disabled_features.emplace_back("shaderFloat64");
    c.disabled_extensions.emplace_back("VK_EXT_external_memory_host");
    l.maxStorageBufferRange = 128 * kMiB;
    l.maxUniformBufferRange = 65536;
    l.maxPushConstantsSize = 128;
    l.maxBoundDescriptorSets = 4;
    l.maxComputeSharedMemorySize = 32768;
    for (uint32_t i = 0; i < 3; ++i) l.maxComputeWorkGroupSize[i] = 512;
    l.minStorageBufferOffsetAlignment = 256;
    l.minTexelBufferOffsetAlignment = 256;
    l.minUniformBufferOffsetAlignment = 16;
    l.minMemoryMapAlignment = 64;
    set_descriptors(l, 128, 36, 35, 128, 8, 200, 6);
    set_images(l, 8192, 512, 256, 65536);
}
// Qualcomm's phones and laptops: one heap, wide subgroups, ranges of 128 MiB.
void adreno(Config& c, VkPhysicalDeviceLimits& l) {
    mobile(c, l);
    c.vendor = 0x5143;
    c.heap_mib = 7680;
    c.subgroup = c.least_subgroup = 64;
    l.maxComputeWorkGroupInvocations = 1024;
    for (uint32_t i = 0; i < 2; ++i) l.maxComputeWorkGroupSize[i] = 1024;
    l.maxComputeWorkGroupSize[2] = 64;
    l.maxPushConstantsSize = 256;
    l.minStorageBufferOffsetAlignment = l.minTexelBufferOffsetAlignment = l.minUniformBufferOffsetAlignment =
        64;
    set_descriptors(l, 500000, 500000, 500000, 500000, 500000, 1000000, 1);
    l.maxSamplerAllocationCount = 4000;
    set_images(l, 16384, 2048, 2048, 128 * kMiB);
}
// Limits at, or a little above, the least that Vulkan allows.
void small_limits(Config& c, VkPhysicalDeviceLimits& l) {
    c.heap_mib = 2048;
    l.maxComputeWorkGroupInvocations = 128;
    c.max_allocation = 1ull << 30;
    c.disabled_features.emplace_back("shaderFloat64");
    l.maxStorageBufferRange = 128 * kMiB;
    l.maxUniformBufferRange = 16384;
    l.maxPushConstantsSize = 128;
    l.maxBoundDescriptorSets = 4;
    l.maxComputeSharedMemorySize = 16384;
    l.maxComputeWorkGroupSize[0] = l.maxComputeWorkGroupSize[1] = 128;
    l.maxComputeWorkGroupSize[2] = 64;
    l.minStorageBufferOffsetAlignment = l.minTexelBufferOffsetAlignment = 256;
    l.minUniformBufferOffsetAlignment = 256;
    l.maxSamplerAllocationCount = 4000;
    set_descriptors(l, 16, 12, 30, 16, 8, 60, 6);
    set_images(l, 4096, 256, 256, 65536);
}
// Apple's GPUs under MoltenVK: a subset of Vulkan 1.2, whose limits are those of Metal's argument tables.
void apple(Config& c, VkPhysicalDeviceLimits& l) {
    c.vendor = 0x106B;
    c.least_subgroup = 32;
    c.api_version = VK_API_VERSION_1_2;
    c.portability = true;
    c.heap_mib = 10922;
    c.max_allocation = 4ull << 30;
    for (const char* off : {"shaderFloat64", "bufferDeviceAddress", "shaderBufferInt64Atomics",
                            "shaderSharedInt64Atomics", "robustBufferAccess2", "vulkanMemoryModel"})
        c.disabled_features.emplace_back(off);
    l.maxStorageBufferRange = UINT32_MAX;
    l.maxUniformBufferRange = UINT32_MAX;
    l.maxPushConstantsSize = 4096;
    l.maxBoundDescriptorSets = 8;
    l.maxComputeSharedMemorySize = 32768;
    for (uint32_t i = 0; i < 3; ++i) l.maxComputeWorkGroupSize[i] = 1024;
    l.minStorageBufferOffsetAlignment = l.minTexelBufferOffsetAlignment = 16;
    l.minUniformBufferOffsetAlignment = 16;
    set_descriptors(l, 16, 31, 31, 128, 8, 159, 5);
    set_images(l, 16384, 2048, 2048, 256 * kMiB);
}
// NVIDIA's desktop GPUs: memory types without any property come first, groups are flat in z and long in x.
void geforce(Config& c, VkPhysicalDeviceLimits& l) {
    c.vendor = 0x10DE;
    c.least_subgroup = 32;
    c.heap_mib = 8192 - 256;
    c.transfer_timestamps = 64;
    c.max_allocation = 4ull << 30;
    c.priorities = c.semaphore_fd = true;
    l.maxStorageBufferRange = UINT32_MAX;
    l.maxUniformBufferRange = 65536;
    l.maxPushConstantsSize = 256;
    l.maxBoundDescriptorSets = 32;
    l.maxComputeSharedMemorySize = 49152;
    l.maxComputeWorkGroupCount[0] = INT32_MAX;
    l.maxComputeWorkGroupSize[0] = l.maxComputeWorkGroupSize[1] = 1024;
    l.maxComputeWorkGroupSize[2] = 64;
    l.minStorageBufferOffsetAlignment = l.minTexelBufferOffsetAlignment = 16;
    l.minUniformBufferOffsetAlignment = 64;
    set_descriptors(l, 1u << 20, 1u << 20, 1u << 20, 1u << 20, 1u << 20, UINT32_MAX, 1);
    l.maxSamplerAllocationCount = 4000;
    set_images(l, 32768, 16384, 2048, 128 * kMiB);
}
// Vulkan 1.2 with nothing optional: no extension, and only the features that it demands.
void bare(Config& c, VkPhysicalDeviceLimits& l) {
    small_limits(c, l);
    c.disabled_features.clear();
    c.api_version = VK_API_VERSION_1_2;
    c.bare = true;
}

const Profile kProfiles[] = {
    {"apple",
     "Null Apple",
     VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
     {{0, kLocalHeap}},
     {{kLocal, 0}, {kLocal | kVisible | kCoherent | kCached, 0}},
     apple},
    {"geforce",
     "Null GeForce",
     VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
     {{0, kLocalHeap}, {16384, 0}, {256, kLocalHeap}},
     {{0, 1},
      {kLocal, 0},
      {kVisible | kCoherent, 1},
      {kVisible | kCoherent | kCached, 1},
      {kLocal | kVisible | kCoherent, 2}},
     geforce},
    {"bare",
     "Null Bare",
     VK_PHYSICAL_DEVICE_TYPE_OTHER,
     {{0, kLocalHeap}},
     {{kLocal | kVisible | kCoherent, 0}},
     bare},
    {"small_bar",
     "Null Small BAR",
     VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
     {{0, kLocalHeap}, {256, kLocalHeap}, {16384, 0}},
     {{kLocal, 0},
      {kVisible | kCoherent, 2},
      {kLocal | kVisible | kCoherent, 1},
      {kVisible | kCoherent | kCached, 2}},
     small_bar},
    {"large_bar",
     "Null Large BAR",
     VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
     {{0, kLocalHeap}, {16384, 0}},
     {{kLocal | kVisible | kCoherent, 0}, {kVisible | kCoherent, 1}, {kVisible | kCoherent | kCached, 1}},
     large_bar},
    {"integrated",
     "Null Integrated",
     VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
     {{0, kLocalHeap}},
     {{kLocal | kVisible | kCoherent | kCached, 0}},
     integrated},
    {"mobile",
     "Null Mobile",
     VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
     {{0, kLocalHeap}},
     {{kLocal, 0}, {kLocal | kVisible | kCoherent, 0}, {kLocal | kVisible | kCached, 0}},
     mobile},
    {"radeon",
     "Null Radeon",
     VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
     {{0, kLocalHeap}, {10240, 0}},
     {{kLocal, 0},
      {kLocal, 0},
      {kVisible | kCoherent, 1},
      {kLocal | kVisible | kCoherent, 0},
      {kVisible | kCoherent | kCached, 1}},
     radeon},
    {"adreno",
     "Null Adreno",
     VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
     {{0, kLocalHeap}},
     {{kLocal, 0}, {kLocal | kVisible | kCoherent, 0}, {kLocal | kVisible | kCached, 0}},
     adreno},
    {"small_limits",
     "Null Small Limits",
     VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
     {{0, kLocalHeap}},
     {{kLocal, 0}, {kLocal | kVisible | kCoherent | kCached, 0}},
     small_limits},
};

}  // namespace

const Profile* find_profile(const std::string& name) {
    for (const Profile& profile : kProfiles)
        if (name == profile.name) return &profile;
    return nullptr;
}

std::string profile_names() {
    std::string names;
    for (const Profile& profile : kProfiles) names += (names.empty() ? "" : "|") + std::string(profile.name);
    return names;
}

}  // namespace kpnull
