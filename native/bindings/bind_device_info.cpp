#include "bind_device_info.hpp"

namespace kp {
namespace {

py::tuple three(const uint32_t (&values)[3]) { return py::make_tuple(values[0], values[1], values[2]); }

template <size_t size>
std::string hex(const uint8_t (&bytes)[size]) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (const uint8_t byte : bytes) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

const char* type_name(VkPhysicalDeviceType type) {
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return "cpu";
    default: return "other";
    }
}

py::dict limits_of(const VkPhysicalDeviceLimits& limits) {
    py::dict result;
#define KP_LIMIT(name) result[#name] = limits.name
    KP_LIMIT(maxImageDimension1D);
    KP_LIMIT(maxImageDimension2D);
    KP_LIMIT(maxImageDimension3D);
    KP_LIMIT(maxImageArrayLayers);
    KP_LIMIT(maxTexelBufferElements);
    KP_LIMIT(maxUniformBufferRange);
    KP_LIMIT(maxStorageBufferRange);
    KP_LIMIT(maxPushConstantsSize);
    KP_LIMIT(maxMemoryAllocationCount);
    KP_LIMIT(maxSamplerAllocationCount);
    KP_LIMIT(bufferImageGranularity);
    KP_LIMIT(maxBoundDescriptorSets);
    KP_LIMIT(maxPerStageDescriptorSamplers);
    KP_LIMIT(maxPerStageDescriptorUniformBuffers);
    KP_LIMIT(maxPerStageDescriptorStorageBuffers);
    KP_LIMIT(maxPerStageDescriptorSampledImages);
    KP_LIMIT(maxPerStageDescriptorStorageImages);
    KP_LIMIT(maxPerStageResources);
    KP_LIMIT(maxDescriptorSetSamplers);
    KP_LIMIT(maxDescriptorSetUniformBuffers);
    KP_LIMIT(maxDescriptorSetStorageBuffers);
    KP_LIMIT(maxDescriptorSetSampledImages);
    KP_LIMIT(maxDescriptorSetStorageImages);
    KP_LIMIT(maxComputeSharedMemorySize);
    KP_LIMIT(maxComputeWorkGroupInvocations);
    KP_LIMIT(minMemoryMapAlignment);
    KP_LIMIT(minTexelBufferOffsetAlignment);
    KP_LIMIT(minUniformBufferOffsetAlignment);
    KP_LIMIT(minStorageBufferOffsetAlignment);
    KP_LIMIT(timestampPeriod);
    KP_LIMIT(optimalBufferCopyOffsetAlignment);
    KP_LIMIT(optimalBufferCopyRowPitchAlignment);
    KP_LIMIT(nonCoherentAtomSize);
#undef KP_LIMIT
    result["maxComputeWorkGroupCount"] = three(limits.maxComputeWorkGroupCount);
    result["maxComputeWorkGroupSize"] = three(limits.maxComputeWorkGroupSize);
    return result;
}

py::object node(VkBool32 has, int64_t major, int64_t minor) {
    return has ? py::object(py::make_tuple(major, minor)) : py::object(py::none());
}

py::list subgroup_operations(const PhysicalDevice& device) {
    py::list result;
    if (device.v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT)
        for (const auto& [name, bit] : subgroup_operation_names)
            if (device.v11.subgroupSupportedOperations & bit) result.append(name);
    return result;
}

}  // namespace

py::dict device_info(const PhysicalDevice& device) {
    const auto& properties = device.properties;
    const auto& limits = properties.limits;
    py::dict result;
    result["index"] = device.index;
    result["vulkan_index"] = device.vulkan_index;
    result["device_name"] = properties.deviceName;
    result["max_work_group_count"] = three(limits.maxComputeWorkGroupCount);
    result["max_work_group_invocations"] = limits.maxComputeWorkGroupInvocations;
    result["max_work_group_size"] = three(limits.maxComputeWorkGroupSize);
    result["timestamps_supported"] = device.timestamps();
    result["timestamp_period"] = limits.timestampPeriod;
    result["vendor_id"] = properties.vendorID;
    result["vendor_name"] = vendor_name(properties.vendorID);
    result["device_id"] = properties.deviceID;
    result["uuid"] = hex(device.v11.deviceUUID);
    result["driver_uuid"] = hex(device.v11.driverUUID);
    result["pipeline_cache_uuid"] = hex(properties.pipelineCacheUUID);
    result["luid"] =
        device.v11.deviceLUIDValid ? py::object(py::str(hex(device.v11.deviceLUID))) : py::object(py::none());
    result["pci_address"] =
        device.pci_address.empty() ? py::object(py::none()) : py::object(py::str(device.pci_address));
    result["drm_primary"] = node(device.drm.hasPrimary, device.drm.primaryMajor, device.drm.primaryMinor);
    result["drm_render"] = node(device.drm.hasRender, device.drm.renderMajor, device.drm.renderMinor);
    result["driver_id"] = driver_id_name(device.v12.driverID);
    const VkConformanceVersion& tests = device.v12.conformanceVersion;
    result["conformance_version"] = std::to_string(tests.major) + "." + std::to_string(tests.minor) + "." +
                                    std::to_string(tests.subminor) + "." + std::to_string(tests.patch);
    result["driver_name"] = device.v12.driverName;
    result["driver_info"] = device.v12.driverInfo;
    result["driver_version"] = version_text(properties.driverVersion);
    result["api_version"] = version_text(properties.apiVersion);
    result["type"] = type_name(properties.deviceType);
    result["subgroup_size"] = device.v11.subgroupSize;
    const auto& sizes = device.subgroup_sizes;
    result["subgroup_sizes"] =
        sizes.minSubgroupSize == 0 || (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) == 0
            ? py::make_tuple(device.v11.subgroupSize, device.v11.subgroupSize)
            : py::make_tuple(sizes.minSubgroupSize, sizes.maxSubgroupSize);
    result["subgroup_operations"] = subgroup_operations(device);
    py::list matrices;
    for (const CooperativeMatrix& each : device.cooperative_matrices) {
        py::dict entry;
        entry["rows"] = each.rows;
        entry["columns"] = each.columns;
        entry["depth"] = each.depth;
        entry["left"] = each.left;
        entry["right"] = each.right;
        entry["added"] = each.added;
        entry["result"] = each.result;
        entry["saturating"] = each.saturating;
        entry["scope"] = each.scope;
        matrices.append(entry);
    }
    result["cooperative_matrices"] = matrices;
    py::dict controls;
#define X(name) controls[#name] = device.v12.name == VK_TRUE;
    KP_FLOAT_CONTROLS(X)
#undef X
    const auto independence = [](VkShaderFloatControlsIndependence value) {
        return float_independence_names[std::min(static_cast<uint32_t>(value), 2u)];
    };
    controls["denormBehaviorIndependence"] = independence(device.v12.denormBehaviorIndependence);
    controls["roundingModeIndependence"] = independence(device.v12.roundingModeIndependence);
    result["float_controls"] = controls;
    py::dict all_limits = limits_of(limits);
    all_limits["maxComputeWorkgroupSubgroups"] = sizes.maxComputeWorkgroupSubgroups;
    all_limits["maxPerSetDescriptors"] = device.v11.maxPerSetDescriptors;
    all_limits["maxMemoryAllocationSize"] = device.max_allocation;
    result["limits"] = all_limits;
    py::dict features;
    for (const auto& [name, has] : device.features) features[py::str(name)] = has;
    result["features"] = features;
    result["extensions"] = device.extensions;
    py::list families;
    for (size_t i = 0; i < device.families.size(); ++i) {
        const auto& family = device.families[i];
        py::dict entry;
        entry["index"] = i;
        entry["count"] = family.queueCount;
        entry["compute"] = (family.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0;
        // Vulkan: compute and graphics imply transfer, whether or not the bit is set.
        entry["transfer"] =
            (family.queueFlags & (VK_QUEUE_TRANSFER_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT)) != 0;
        entry["graphics"] = (family.queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0;
        entry["timestamp_valid_bits"] = family.timestampValidBits;
        families.append(entry);
    }
    result["queue_families"] = families;
    py::list heaps;
    for (uint32_t i = 0; i < device.memory.memoryHeapCount; ++i) {
        py::dict entry;
        entry["size"] = device.memory.memoryHeaps[i].size;
        entry["device_local"] = (device.memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
        heaps.append(entry);
    }
    result["memory_heaps"] = heaps;
    py::list types;
    for (uint32_t i = 0; i < device.memory.memoryTypeCount; ++i) {
        const auto flags = device.memory.memoryTypes[i].propertyFlags;
        py::dict entry;
        entry["heap"] = device.memory.memoryTypes[i].heapIndex;
        entry["device_local"] = (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
        entry["host_visible"] = (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
        entry["host_coherent"] = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
        entry["host_cached"] = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
        types.append(entry);
    }
    result["memory_types"] = types;
    result["device_local_bytes"] = device.device_local_bytes();
    return result;
}

py::tuple enumerate_devices(const std::optional<std::string>& visible, const std::string& driver) {
    DeviceList list;
    {
        const Unlocked unlocked;
        const auto instance = Instance::get({.driver = driver});
        list = query_devices(*instance, visible);
    }
    const auto& devices = list.devices;
    py::list result;
    for (const auto& device : devices)
        if (device.broken.empty()) result.append(device_info(device));
    // An empty list would mean that the device has none.
    if (result.empty() && !devices.empty())
        throw Error(ErrorKind::unavailable, std::string("No device says what it is. The first, '") +
                                                devices.front().properties.deviceName +
                                                "': " + devices.front().broken);
    return py::make_tuple(result, list.repeated);
}

py::dict select_device_for_python(const std::optional<uint32_t>& index, const std::string& preferences,
                                  const std::optional<std::string>& visible, const std::string& driver) {
    std::vector<DeviceCandidate> candidates;
    const auto instance = Instance::get({.driver = driver});
    const DeviceList list = query_devices(*instance, visible);
    for (const auto& device : list.devices) candidates.push_back(device.candidate());
    DeviceRequest request;
    request.index = index;
    request.preferences = preferences;
    Selection selection = select_device(candidates, request);
    selection.hidden = list.hidden;
    py::dict result;
    result["index"] = selection.position ? py::object(py::int_(candidates[*selection.position].index))
                                         : py::object(py::none());
    result["request"] = selection.request;
    py::list passed_over;
    for (const auto& rejection : selection.passed_over)
        passed_over.append(py::make_tuple(rejection.index, rejection.name, rejection.reason));
    result["passed_over"] = passed_over;
    result["error"] = selection.position ? "" : explain_failure(selection);
    return result;
}

py::dict loader_info_to_python() {
    const LoaderInfo info = loader_info();
    py::dict result;
    result["available"] = info.available;
    result["error"] = info.error;
    result["version"] = py::make_tuple(VK_API_VERSION_MAJOR(info.version), VK_API_VERSION_MINOR(info.version),
                                       VK_API_VERSION_PATCH(info.version));
    result["layers"] = info.layers;
    py::dict versions;
    for (size_t i = 0; i < info.layers.size(); ++i) {
        const uint32_t version = info.layer_versions[i];
        versions[py::str(info.layers[i])] = py::make_tuple(
            VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version), VK_API_VERSION_PATCH(version));
    }
    result["layer_versions"] = versions;
    result["extensions"] = info.extensions;
    return result;
}

}  // namespace kp
