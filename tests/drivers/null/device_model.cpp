// What the physical device says about itself: limits, properties, memory types, queue families, extensions.
#include "common.hpp"

#include <algorithm>
#include <cstdio>

namespace kpnull {
namespace {

template <class Struct>
void add(PhysicalDevice& device, VkStructureType type, const Struct& value) {
    const auto* begin = reinterpret_cast<const uint8_t*>(&value) + sizeof(VkBaseOutStructure);
    device.property_structs.push_back(
        {type, std::vector<uint8_t>(begin, reinterpret_cast<const uint8_t*>(&value) + sizeof value)});
}
// The fields from `first` up to the end of `last`: what an older struct has in the one that absorbed it.
template <class First, class Last>
void add_part(PhysicalDevice& device, VkStructureType type, const First& first, const Last& last) {
    const auto* begin = reinterpret_cast<const uint8_t*>(&first);
    const auto* end = reinterpret_cast<const uint8_t*>(&last) + sizeof last;
    device.property_structs.push_back({type, std::vector<uint8_t>(begin, end)});
}

void set_memory(PhysicalDevice& device, const Config& config, bool integrated) {
    constexpr VkMemoryPropertyFlags device_local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    constexpr VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    constexpr VkMemoryPropertyFlags coherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    VkPhysicalDeviceMemoryProperties& m = device.memory;
    const auto heap = [&](uint64_t mib, VkMemoryHeapFlags flags) {
        m.memoryHeaps[m.memoryHeapCount++] = {mib << 20, flags};
    };
    const auto type = [&](VkMemoryPropertyFlags flags, uint32_t heap_index) {
        m.memoryTypes[m.memoryTypeCount++] = {flags, heap_index};
    };
    if (config.profile && !integrated) {
        for (const auto& [mib, flags] : config.profile->heaps) heap(mib ? mib : config.heap_mib, flags);
        for (const VkMemoryType& each : config.profile->types) m.memoryTypes[m.memoryTypeCount++] = each;
        device.usable_types = (1u << m.memoryTypeCount) - 1;
        return;
    }
    heap(config.heap_mib, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT);
    if (integrated || config.memory == "unified") {
        type(device_local | visible | coherent | cached, 0);
    } else if (config.memory == "noncoherent") {
        // Not what the specification allows (some type must be coherent): it leaves a framework no way around
        // flushing.
        heap(config.host_heap_mib, 0);
        type(device_local, 0);
        type(visible | cached, 1);
    } else if (config.memory == "exotic") {
        heap(config.host_heap_mib, 0);
        type(device_local | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT, 0);
        type(device_local | VK_MEMORY_PROPERTY_PROTECTED_BIT, 0);
        type(device_local, 0);
        type(visible | coherent, 1);
    } else {
        heap(config.host_heap_mib, 0);
        heap(256, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT);
        type(device_local, 0);
        type(visible | coherent, 1);
        type(visible | cached, 1);
        type(device_local | visible | coherent, 2);
    }
    for (uint32_t i = 0; i < m.memoryTypeCount; ++i)
        if (!(m.memoryTypes[i].propertyFlags &
              (VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT)))
            device.usable_types |= 1u << i;
}

void set_extensions(PhysicalDevice& device, const Config& config) {
    static constexpr std::pair<const char*, uint32_t> kAll[] = {
        {"VK_KHR_16bit_storage", 1},
        {"VK_KHR_8bit_storage", 1},
        {"VK_KHR_dedicated_allocation", 3},
        {"VK_KHR_driver_properties", 1},
        {"VK_KHR_external_fence", 1},
        {"VK_KHR_external_memory", 1},
        {"VK_KHR_external_semaphore", 1},
        {"VK_KHR_format_feature_flags2", 2},
        {"VK_KHR_image_format_list", 1},
        {"VK_KHR_maintenance2", 1},
        {"VK_KHR_maintenance3", 1},
        {"VK_KHR_maintenance4", 2},
        {"VK_KHR_relaxed_block_layout", 1},
        {"VK_KHR_shader_atomic_int64", 1},
        {"VK_KHR_shader_float16_int8", 1},
        {"VK_KHR_shader_float_controls", 4},
        {"VK_KHR_shader_integer_dot_product", 1},
        {"VK_KHR_shader_non_semantic_info", 1},
        {"VK_KHR_shader_subgroup_extended_types", 1},
        {"VK_KHR_shader_terminate_invocation", 1},
        {"VK_KHR_spirv_1_4", 1},
        {"VK_KHR_storage_buffer_storage_class", 1},
        {"VK_KHR_timeline_semaphore", 2},
        {"VK_KHR_uniform_buffer_standard_layout", 1},
        {"VK_KHR_variable_pointers", 1},
        {"VK_KHR_vulkan_memory_model", 3},
        {"VK_KHR_zero_initialize_workgroup_memory", 1},
        {"VK_EXT_calibrated_timestamps", 2},
        {"VK_EXT_descriptor_indexing", 2},
        {"VK_EXT_external_memory_host", 1},
        {"VK_EXT_image_robustness", 1},
        {"VK_EXT_inline_uniform_block", 1},
        {"VK_EXT_memory_budget", 1},
        {"VK_EXT_pci_bus_info", 2},
        {"VK_EXT_pipeline_creation_cache_control", 3},
        {"VK_EXT_pipeline_creation_feedback", 1},
        {"VK_EXT_robustness2", 1},
        {"VK_EXT_scalar_block_layout", 1},
        {"VK_EXT_shader_atomic_float", 1},
        {"VK_EXT_shader_demote_to_helper_invocation", 1},
        {"VK_EXT_subgroup_size_control", 2},
        {"VK_EXT_tooling_info", 1}};
    const auto offer = [&](bool has, const char* name, uint32_t version) {
        if (!has) return;
        VkExtensionProperties e{};
        std::snprintf(e.extensionName, sizeof e.extensionName, "%s", name);
        e.specVersion = version;
        device.extensions.push_back(e);
    };
    for (const auto& [name, version] : kAll) {
        if (config.bare) break;
        const auto& off = config.disabled_extensions;
        if (std::find(off.begin(), off.end(), name) != off.end()) continue;
        if (config.no_timeline && !std::strcmp(name, "VK_KHR_timeline_semaphore")) continue;
        offer(true, name, version);
    }
    offer(config.executables, "VK_KHR_pipeline_executable_properties", 1);
    offer(config.fault, "VK_EXT_device_fault", 2);
    offer(config.portability, "VK_KHR_portability_subset", 1);
    offer(config.cooperative, "VK_KHR_cooperative_matrix", 2);
    offer(config.bfloat16, "VK_KHR_shader_bfloat16", 1);
    offer(config.priorities, "VK_EXT_memory_priority", 1);
    offer(config.priorities, "VK_EXT_pageable_device_local_memory", 1);
    offer(config.semaphore_fd, "VK_KHR_external_semaphore_fd", 1);
}

VkPhysicalDeviceVulkan11Properties make_v11(const PhysicalDevice& device, const Config& config) {
    VkPhysicalDeviceVulkan11Properties p{};
    std::memcpy(p.deviceUUID, "kp-null-device-0", VK_UUID_SIZE);
    p.deviceUUID[VK_UUID_SIZE - 1] = uint8_t('0' + device.index);
    std::memcpy(p.driverUUID, "kp-null-driver-1", VK_UUID_SIZE);
    p.deviceNodeMask = 1;
    p.subgroupSize = config.subgroup;
    p.subgroupSupportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
    p.subgroupSupportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_VOTE_BIT |
                                    VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT |
                                    VK_SUBGROUP_FEATURE_SHUFFLE_BIT |
                                    VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT |
                                    VK_SUBGROUP_FEATURE_CLUSTERED_BIT | VK_SUBGROUP_FEATURE_QUAD_BIT;
    p.pointClippingBehavior = VK_POINT_CLIPPING_BEHAVIOR_ALL_CLIP_PLANES;
    p.maxMultiviewViewCount = 6;
    p.maxMultiviewInstanceIndex = (1u << 27) - 1;
    p.maxPerSetDescriptors = config.max_set_descriptors;
    p.maxMemoryAllocationSize = config.max_allocation;
    return p;
}

VkPhysicalDeviceVulkan12Properties make_v12(const Config& config) {
    const VkPhysicalDeviceLimits& l = config.limits;
    VkPhysicalDeviceVulkan12Properties p{};
    p.driverID = VkDriverId(0x4b50);  // no registered driver
    std::snprintf(p.driverName, sizeof p.driverName, "null driver");
    std::snprintf(p.driverInfo, sizeof p.driverInfo, "executes everything but shaders");
    p.conformanceVersion = {1, 3, 0, 0};
    p.denormBehaviorIndependence = p.roundingModeIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
    p.shaderSignedZeroInfNanPreserveFloat16 = p.shaderSignedZeroInfNanPreserveFloat32 =
        p.shaderSignedZeroInfNanPreserveFloat64 = p.shaderDenormPreserveFloat32 =
            p.shaderRoundingModeRTEFloat32 = VK_TRUE;
    p.maxUpdateAfterBindDescriptorsInAllPools = 1u << 20;
    p.shaderStorageBufferArrayNonUniformIndexingNative = VK_TRUE;
    // No device allows fewer descriptors that are updated after binding than others.
    const auto of_array = [](uint32_t others) { return std::max(others, 1u << 20); };
    p.maxPerStageDescriptorUpdateAfterBindSamplers = of_array(l.maxPerStageDescriptorSamplers);
    p.maxPerStageDescriptorUpdateAfterBindUniformBuffers = of_array(l.maxPerStageDescriptorUniformBuffers);
    p.maxPerStageDescriptorUpdateAfterBindStorageBuffers = of_array(l.maxPerStageDescriptorStorageBuffers);
    p.maxPerStageDescriptorUpdateAfterBindSampledImages = of_array(l.maxPerStageDescriptorSampledImages);
    p.maxPerStageDescriptorUpdateAfterBindStorageImages = of_array(l.maxPerStageDescriptorStorageImages);
    p.maxPerStageUpdateAfterBindResources = of_array(l.maxPerStageResources);
    p.maxPerStageDescriptorUpdateAfterBindInputAttachments =
        p.maxDescriptorSetUpdateAfterBindInputAttachments = 8;
    p.maxDescriptorSetUpdateAfterBindSamplers = of_array(l.maxDescriptorSetSamplers);
    p.maxDescriptorSetUpdateAfterBindUniformBuffers = of_array(l.maxDescriptorSetUniformBuffers);
    p.maxDescriptorSetUpdateAfterBindStorageBuffers = of_array(l.maxDescriptorSetStorageBuffers);
    p.maxDescriptorSetUpdateAfterBindSampledImages = of_array(l.maxDescriptorSetSampledImages);
    p.maxDescriptorSetUpdateAfterBindStorageImages = of_array(l.maxDescriptorSetStorageImages);
    p.maxDescriptorSetUpdateAfterBindUniformBuffersDynamic =
        p.maxDescriptorSetUpdateAfterBindStorageBuffersDynamic = 16;
    p.supportedDepthResolveModes = p.supportedStencilResolveModes = VK_RESOLVE_MODE_SAMPLE_ZERO_BIT;
    p.maxTimelineSemaphoreValueDifference = UINT64_MAX / 2;
    p.framebufferIntegerColorSampleCounts = VK_SAMPLE_COUNT_1_BIT;
    return p;
}

VkPhysicalDeviceVulkan13Properties make_v13(const Config& config) {
    VkPhysicalDeviceVulkan13Properties p{};
    p.minSubgroupSize = config.least_subgroup ? std::min(config.least_subgroup, config.subgroup)
                                              : std::max(1u, config.subgroup / 2);
    p.maxSubgroupSize = config.subgroup;
    p.maxComputeWorkgroupSubgroups =
        std::max(1u, config.limits.maxComputeWorkGroupInvocations / p.minSubgroupSize);
    p.requiredSubgroupSizeStages = VK_SHADER_STAGE_COMPUTE_BIT;
    p.maxInlineUniformBlockSize = 256;
    p.maxPerStageDescriptorInlineUniformBlocks = p.maxPerStageDescriptorUpdateAfterBindInlineUniformBlocks =
        p.maxDescriptorSetInlineUniformBlocks = p.maxDescriptorSetUpdateAfterBindInlineUniformBlocks = 16;
    p.maxInlineUniformTotalSize = 4096;
    p.integerDotProduct8BitUnsignedAccelerated = p.integerDotProduct8BitSignedAccelerated =
        p.integerDotProduct4x8BitPackedUnsignedAccelerated =
            p.integerDotProduct4x8BitPackedSignedAccelerated = VK_TRUE;
    p.storageTexelBufferOffsetAlignmentBytes = p.uniformTexelBufferOffsetAlignmentBytes = 16;
    p.storageTexelBufferOffsetSingleTexelAlignment = p.uniformTexelBufferOffsetSingleTexelAlignment = VK_TRUE;
    p.maxBufferSize = 1ull << 40;
    return p;
}

void set_property_structs(PhysicalDevice& d, const Config& config) {
    const auto v11 = make_v11(d, config);
    const auto v12 = make_v12(config);
    const auto v13 = make_v13(config);
#define KP_P(NAME) VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##NAME
    if (config.api_version >= VK_API_VERSION_1_2) {
        add(d, KP_P(VULKAN_1_1_PROPERTIES), v11);
        add(d, KP_P(VULKAN_1_2_PROPERTIES), v12);
    }
    if (config.api_version >= VK_API_VERSION_1_3) add(d, KP_P(VULKAN_1_3_PROPERTIES), v13);
    add_part(d, KP_P(ID_PROPERTIES), v11.deviceUUID, v11.deviceLUIDValid);
    add_part(d, KP_P(SUBGROUP_PROPERTIES), v11.subgroupSize, v11.subgroupQuadOperationsInAllStages);
    add_part(d, KP_P(POINT_CLIPPING_PROPERTIES), v11.pointClippingBehavior, v11.pointClippingBehavior);
    add_part(d, KP_P(MULTIVIEW_PROPERTIES), v11.maxMultiviewViewCount, v11.maxMultiviewInstanceIndex);
    add_part(d, KP_P(PROTECTED_MEMORY_PROPERTIES), v11.protectedNoFault, v11.protectedNoFault);
    VkPhysicalDeviceMaintenance3Properties maintenance3{};
    maintenance3.maxPerSetDescriptors = v11.maxPerSetDescriptors;
    maintenance3.maxMemoryAllocationSize = v11.maxMemoryAllocationSize;
    add(d, KP_P(MAINTENANCE_3_PROPERTIES), maintenance3);
    add_part(d, KP_P(DRIVER_PROPERTIES), v12.driverID, v12.conformanceVersion);
    add_part(d, KP_P(FLOAT_CONTROLS_PROPERTIES), v12.denormBehaviorIndependence,
             v12.shaderRoundingModeRTZFloat64);
    add_part(d, KP_P(DESCRIPTOR_INDEXING_PROPERTIES), v12.maxUpdateAfterBindDescriptorsInAllPools,
             v12.maxDescriptorSetUpdateAfterBindInputAttachments);
    add_part(d, KP_P(DEPTH_STENCIL_RESOLVE_PROPERTIES), v12.supportedDepthResolveModes,
             v12.independentResolve);
    add_part(d, KP_P(SAMPLER_FILTER_MINMAX_PROPERTIES), v12.filterMinmaxSingleComponentFormats,
             v12.filterMinmaxImageComponentMapping);
    add_part(d, KP_P(TIMELINE_SEMAPHORE_PROPERTIES), v12.maxTimelineSemaphoreValueDifference,
             v12.maxTimelineSemaphoreValueDifference);
    add_part(d, KP_P(SUBGROUP_SIZE_CONTROL_PROPERTIES), v13.minSubgroupSize, v13.requiredSubgroupSizeStages);
    add_part(d, KP_P(INLINE_UNIFORM_BLOCK_PROPERTIES), v13.maxInlineUniformBlockSize,
             v13.maxDescriptorSetUpdateAfterBindInlineUniformBlocks);
    add_part(d, KP_P(SHADER_INTEGER_DOT_PRODUCT_PROPERTIES), v13.integerDotProduct8BitUnsignedAccelerated,
             v13.integerDotProductAccumulatingSaturating64BitMixedSignednessAccelerated);
    add_part(d, KP_P(TEXEL_BUFFER_ALIGNMENT_PROPERTIES), v13.storageTexelBufferOffsetAlignmentBytes,
             v13.uniformTexelBufferOffsetSingleTexelAlignment);
    add_part(d, KP_P(MAINTENANCE_4_PROPERTIES), v13.maxBufferSize, v13.maxBufferSize);
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host{};
    host.minImportedHostPointerAlignment = kImportAlignment;
    add(d, KP_P(EXTERNAL_MEMORY_HOST_PROPERTIES_EXT), host);
    VkPhysicalDevicePushDescriptorPropertiesKHR push{};
    push.maxPushDescriptors = 32;
    add(d, KP_P(PUSH_DESCRIPTOR_PROPERTIES_KHR), push);
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci{};
    pci.pciBus = 1 + d.index;
    add(d, KP_P(PCI_BUS_INFO_PROPERTIES_EXT), pci);
    VkPhysicalDeviceRobustness2PropertiesEXT robustness{};
    robustness.robustStorageBufferAccessSizeAlignment = 4;
    robustness.robustUniformBufferAccessSizeAlignment = 4;
    add(d, KP_P(ROBUSTNESS_2_PROPERTIES_EXT), robustness);
#undef KP_P
}

}  // namespace

bool PhysicalDevice::has_extension(const char* name) const {
    return std::any_of(extensions.begin(), extensions.end(),
                       [&](const VkExtensionProperties& e) { return !std::strcmp(e.extensionName, name); });
}

void describe(PhysicalDevice& device) {
    const Config& config = device.instance->config;
    const bool integrated = device.index == 1;
    VkPhysicalDeviceProperties& p = device.properties;
    p.apiVersion = VK_MAKE_API_VERSION(0, 1, VK_API_VERSION_MINOR(config.api_version), VK_HEADER_VERSION);
    p.driverVersion = VK_MAKE_API_VERSION(0, 1, 0, 0);
    p.vendorID = config.vendor;
    p.deviceID = 1 + device.index;
    const Profile* profile = integrated ? nullptr : config.profile;
    p.deviceType = integrated || config.memory == "unified" ? VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU
                                                            : VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    std::snprintf(p.deviceName, sizeof p.deviceName, "Null %s",
                  p.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU ? "Discrete" : "Integrated");
    if (profile) {
        p.deviceType = profile->type;
        std::snprintf(p.deviceName, sizeof p.deviceName, "%s", profile->device_name);
    }
    std::memcpy(p.pipelineCacheUUID, "kp-null-cache-00", VK_UUID_SIZE);
    p.pipelineCacheUUID[VK_UUID_SIZE - 1] = uint8_t('0' + device.index);
    p.limits = config.limits;
    p.limits.timestampComputeAndGraphics = config.timestamp_bits != 0;
    set_memory(device, config, integrated);
    set_extensions(device, config);
    describe_features(device, config);
    set_property_structs(device, config);
    constexpr VkQueueFlags compute = VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT;
    device.families = {{compute | VK_QUEUE_GRAPHICS_BIT, 4, config.timestamp_bits, {1, 1, 1}},
                       {compute, 2, config.timestamp_bits, {1, 1, 1}},
                       {VK_QUEUE_TRANSFER_BIT, 1, config.transfer_timestamps, {1, 1, 1}}};
}

}  // namespace kpnull
