#include "adapter/physical_device.hpp"

#include "adapter/instance.hpp"
#include "adapter/shader_needs.hpp"
#include "base/error.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace kp {
namespace {

// minImportedHostPointerAlignment; 0 if tensors cannot use the process's memory.
uint64_t query_host_import_alignment(VkPhysicalDevice device) {
    VkPhysicalDeviceExternalBufferInfo buffer{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO};
    buffer.usage = buffer_usage;
    buffer.handleType = host_import_handle;
    VkExternalBufferProperties external{VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
    vkGetPhysicalDeviceExternalBufferProperties(device, &buffer, &external);
    if (!(external.externalMemoryProperties.externalMemoryFeatures &
          VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT))
        return 0;
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
    VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    properties.pNext = &host;
    vkGetPhysicalDeviceProperties2(device, &properties);
    return host.minImportedHostPointerAlignment;
}

// The allow-list: features that compute shaders can use. Graphics features are never enabled: some of them
// have a cost (robustness is chosen separately). clang-format never settles on how to wrap these lists.
// clang-format off
#define KP_CORE_FEATURES(X) \
    X(shaderFloat64) X(shaderInt64) X(shaderInt16) X(shaderStorageImageExtendedFormats) \
    X(shaderStorageImageReadWithoutFormat) X(shaderStorageImageWriteWithoutFormat) \
    X(shaderUniformBufferArrayDynamicIndexing) X(shaderSampledImageArrayDynamicIndexing) \
    X(shaderStorageBufferArrayDynamicIndexing) X(shaderStorageImageArrayDynamicIndexing) \
    X(shaderResourceMinLod) X(shaderImageGatherExtended) X(samplerAnisotropy)
#define KP_V11_FEATURES(X) \
    X(storageBuffer16BitAccess) X(uniformAndStorageBuffer16BitAccess) X(storagePushConstant16) \
    X(variablePointersStorageBuffer) X(variablePointers)
#define KP_V12_FEATURES(X) \
    X(storageBuffer8BitAccess) X(uniformAndStorageBuffer8BitAccess) X(storagePushConstant8) \
    X(shaderBufferInt64Atomics) X(shaderSharedInt64Atomics) X(shaderFloat16) X(shaderInt8) \
    X(descriptorIndexing) X(shaderUniformTexelBufferArrayDynamicIndexing) \
    X(shaderStorageTexelBufferArrayDynamicIndexing) X(shaderUniformBufferArrayNonUniformIndexing) \
    X(shaderSampledImageArrayNonUniformIndexing) X(shaderStorageBufferArrayNonUniformIndexing) \
    X(shaderStorageImageArrayNonUniformIndexing) X(shaderUniformTexelBufferArrayNonUniformIndexing) \
    X(shaderStorageTexelBufferArrayNonUniformIndexing) X(descriptorBindingPartiallyBound) \
    X(descriptorBindingVariableDescriptorCount) X(runtimeDescriptorArray) X(scalarBlockLayout) \
    X(uniformBufferStandardLayout) X(shaderSubgroupExtendedTypes) X(hostQueryReset) X(timelineSemaphore) \
    X(bufferDeviceAddress) X(vulkanMemoryModel) X(vulkanMemoryModelDeviceScope) \
    X(vulkanMemoryModelAvailabilityVisibilityChains)
#define KP_V13_FEATURES(X) \
    X(computeFullSubgroups) X(subgroupSizeControl) X(shaderDemoteToHelperInvocation) \
    X(shaderIntegerDotProduct) X(shaderTerminateInvocation) X(shaderZeroInitializeWorkgroupMemory) \
    X(maintenance4)
#define KP_ATOMIC_FLOAT_FEATURES(X) \
    X(shaderBufferFloat32Atomics) X(shaderBufferFloat32AtomicAdd) X(shaderBufferFloat64Atomics) \
    X(shaderBufferFloat64AtomicAdd) X(shaderSharedFloat32Atomics) X(shaderSharedFloat32AtomicAdd) \
    X(shaderSharedFloat64Atomics) X(shaderSharedFloat64AtomicAdd) X(shaderImageFloat32Atomics) \
    X(shaderImageFloat32AtomicAdd)
#define KP_ATOMIC_FLOAT2_FEATURES(X) \
    X(shaderBufferFloat16Atomics) X(shaderBufferFloat16AtomicAdd) X(shaderBufferFloat16AtomicMinMax) \
    X(shaderBufferFloat32AtomicMinMax) X(shaderBufferFloat64AtomicMinMax) \
    X(shaderSharedFloat16Atomics) X(shaderSharedFloat16AtomicAdd) X(shaderSharedFloat16AtomicMinMax) \
    X(shaderSharedFloat32AtomicMinMax) X(shaderSharedFloat64AtomicMinMax) X(shaderImageFloat32AtomicMinMax)
#define KP_SHADER_CLOCK_FEATURES(X) \
    X(shaderSubgroupClock) X(shaderDeviceClock)
#define KP_WORKGROUP_LAYOUT_FEATURES(X) \
    X(workgroupMemoryExplicitLayout) X(workgroupMemoryExplicitLayoutScalarBlockLayout) \
    X(workgroupMemoryExplicitLayout8BitAccess) X(workgroupMemoryExplicitLayout16BitAccess)
// clang-format on

template <typename Chain, typename Visit>
void each_feature(Chain& chain, Visit&& visit) {
    visit("robustBufferAccess", chain.core.features.robustBufferAccess);
#define X(name) visit(#name, chain.core.features.name);
    KP_CORE_FEATURES(X)
#undef X
#define X(name) visit(#name, chain.v11.name);
    KP_V11_FEATURES(X)
#undef X
#define X(name) visit(#name, chain.v12.name);
    KP_V12_FEATURES(X)
#undef X
#define X(name) visit(#name, chain.v13.name);
    KP_V13_FEATURES(X)
#undef X
#define X(name) visit(#name, chain.atomic_float.name);
    KP_ATOMIC_FLOAT_FEATURES(X)
#undef X
#define X(name) visit(#name, chain.atomic_float2.name);
    KP_ATOMIC_FLOAT2_FEATURES(X)
#undef X
#define X(name) visit(#name, chain.shader_clock.name);
    KP_SHADER_CLOCK_FEATURES(X)
#undef X
#define X(name) visit(#name, chain.workgroup_layout.name);
    KP_WORKGROUP_LAYOUT_FEATURES(X)
#undef X
    visit("shaderSubgroupUniformControlFlow", chain.uniform_control_flow.shaderSubgroupUniformControlFlow);
    visit("shaderImageInt64Atomics", chain.image_int64.shaderImageInt64Atomics);
    visit("robustBufferAccess2", chain.robustness2.robustBufferAccess2);
    visit("computeDerivativeGroupQuads", chain.derivatives.computeDerivativeGroupQuads);
    visit("computeDerivativeGroupLinear", chain.derivatives.computeDerivativeGroupLinear);
    visit("pipelineExecutableInfo", chain.executables.pipelineExecutableInfo);
    visit("deviceFault", chain.fault.deviceFault);
    visit("memoryPriority", chain.memory_priority.memoryPriority);
    visit("pageableDeviceLocalMemory", chain.pageable_memory.pageableDeviceLocalMemory);
    visit("shaderBFloat16Type", chain.bfloat16.shaderBFloat16Type);
    visit("shaderBFloat16DotProduct", chain.bfloat16.shaderBFloat16DotProduct);
    visit("shaderBFloat16CooperativeMatrix", chain.bfloat16.shaderBFloat16CooperativeMatrix);
    visit("cooperativeMatrix", chain.cooperative_matrix.cooperativeMatrix);
    visit("cooperativeMatrixRobustBufferAccess",
          chain.cooperative_matrix.cooperativeMatrixRobustBufferAccess);
}

constexpr const char* compute_derivatives_extension = "VK_KHR_compute_shader_derivatives";

bool contains(const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

FeatureChain::FeatureChain(uint32_t api_version, const std::vector<std::string>& available) {
    void** tail = &core.pNext;
    const auto link = [&tail](auto& structure) {
        *tail = &structure;
        tail = &structure.pNext;
    };
    const auto link_extension = [&](auto& structure, const char* extension) {
        if (!contains(available, extension)) return;
        link(structure);
        extensions_.push_back(extension);
    };
    if (api_version >= VK_API_VERSION_1_2) {
        link(v11);
        link(v12);
    }
    if (api_version >= VK_API_VERSION_1_3) {
        link(v13);
    } else {
        link_extension(subgroup_size, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
        link_extension(maintenance4, VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
    }
    link_extension(atomic_float, VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME);
    if (contains(available, VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME))
        link_extension(atomic_float2, VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME);
    link_extension(shader_clock, VK_KHR_SHADER_CLOCK_EXTENSION_NAME);
    link_extension(workgroup_layout, VK_KHR_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_EXTENSION_NAME);
    link_extension(uniform_control_flow, VK_KHR_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_EXTENSION_NAME);
    link_extension(image_int64, VK_EXT_SHADER_IMAGE_ATOMIC_INT64_EXTENSION_NAME);
    link_extension(robustness2, VK_EXT_ROBUSTNESS_2_EXTENSION_NAME);
    link_extension(derivatives, contains(available, compute_derivatives_extension)
                                    ? compute_derivatives_extension
                                    : VK_NV_COMPUTE_SHADER_DERIVATIVES_EXTENSION_NAME);
    link_extension(executables, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
    link_extension(fault, VK_EXT_DEVICE_FAULT_EXTENSION_NAME);
    link_extension(memory_priority, VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME);
    if (contains(available, VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME))
        link_extension(pageable_memory, VK_EXT_PAGEABLE_DEVICE_LOCAL_MEMORY_EXTENSION_NAME);
    link_extension(cooperative_matrix, cooperative_matrix_extension);
    link_extension(bfloat16, bfloat16_extension);
    for (const char* name : shader_extensions)
        if (contains(available, name)) extensions_.push_back(name);
}

void FeatureChain::query(VkPhysicalDevice device) {
    vkGetPhysicalDeviceFeatures2(device, &core);
    // Before Vulkan 1.3 the same features come from extensions; one name serves both.
    v13.subgroupSizeControl |= subgroup_size.subgroupSizeControl;
    v13.computeFullSubgroups |= subgroup_size.computeFullSubgroups;
    v13.maintenance4 |= maintenance4.maintenance4;
}

std::vector<std::string> FeatureChain::enable_from(const FeatureChain& supported,
                                                   const std::function<bool(const char*)>& wanted) {
    std::vector<std::string> names;
    std::vector<VkBool32> values;
    each_feature(supported, [&](const char* name, const VkBool32& value) {
        const bool on = value && wanted(name);
        values.push_back(on ? VK_TRUE : VK_FALSE);
        if (on) names.emplace_back(name);
    });
    size_t i = 0;
    each_feature(*this, [&](const char*, VkBool32& value) { value = values[i++]; });
    subgroup_size.subgroupSizeControl = v13.subgroupSizeControl;
    subgroup_size.computeFullSubgroups = v13.computeFullSubgroups;
    maintenance4.maintenance4 = v13.maintenance4;
    return names;
}

std::vector<std::pair<std::string, bool>> FeatureChain::list() const {
    std::vector<std::pair<std::string, bool>> result;
    each_feature(*this, [&](const char* name, const VkBool32& value) {
        result.emplace_back(name, value != VK_FALSE);
    });
    return result;
}

bool PhysicalDevice::has_extension(const char* name) const { return contains(extensions, name); }

bool PhysicalDevice::timestamps() const {
    return std::any_of(families.begin(), families.end(), [](const VkQueueFamilyProperties& family) {
        return (family.queueFlags & VK_QUEUE_COMPUTE_BIT) && family.timestampValidBits != 0;
    });
}

uint64_t PhysicalDevice::device_local_bytes() const {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < memory.memoryHeapCount; ++i)
        if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            bytes += memory.memoryHeaps[i].size;
    return bytes;
}

DeviceCandidate PhysicalDevice::candidate() const {
    DeviceCandidate result;
    result.index = index;
    result.vulkan_index = vulkan_index;
    result.has_twin = has_twin;
    result.broken = broken;
    result.name = properties.deviceName;
    result.type = static_cast<DeviceType>(properties.deviceType);
    result.vendor_id = properties.vendorID;
    result.device_id = properties.deviceID;
    std::copy(std::begin(v11.deviceUUID), std::end(v11.deviceUUID), result.uuid.begin());
    std::copy(std::begin(v11.driverUUID), std::end(v11.driverUUID), result.driver_uuid.begin());
    result.driver_name = v12.driverName;
    result.pci_address = pci_address;
    result.api_version = properties.apiVersion;
    result.device_local_bytes = device_local_bytes();
    for (const auto& [name, has] : features)
        if (name == "timelineSemaphore") result.timeline_semaphores = has;
    result.compute_queue =
        std::any_of(families.begin(), families.end(), [](const VkQueueFamilyProperties& family) {
            return (family.queueFlags & VK_QUEUE_COMPUTE_BIT) && family.queueCount != 0;
        });
    return result;
}

PhysicalDevice PhysicalDevice::query(VkInstance instance, VkPhysicalDevice handle, uint32_t index) {
    PhysicalDevice device;
    device.handle = handle;
    device.index = device.vulkan_index = index;
    try {
        device.ask(instance);
    } catch (const Error& error) {
        device.broken = error.what();
    }
    return device;
}

void PhysicalDevice::ask(VkInstance instance) {
    v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
    v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
    vkGetPhysicalDeviceProperties(handle, &properties);
    if (properties.apiVersion >= VK_API_VERSION_1_2) {
        VkPhysicalDeviceProperties2 asked{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
        asked.pNext = &v11;
        v11.pNext = &v12;
        vkGetPhysicalDeviceProperties2(handle, &asked);
        v11.pNext = nullptr;
        if (v11.maxMemoryAllocationSize != 0) max_allocation = v11.maxMemoryAllocationSize;
    }
    vkGetPhysicalDeviceMemoryProperties(handle, &memory);

    uint32_t count = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(handle, &count, nullptr);
    families.resize(count);
    vkGetPhysicalDeviceQueueFamilyProperties(handle, &count, families.data());

    VkResult result = vkEnumerateDeviceExtensionProperties(handle, nullptr, &count, nullptr);
    check_vk(result, "vkEnumerateDeviceExtensionProperties", properties.deviceName);
    std::vector<VkExtensionProperties> listed(count);
    result = vkEnumerateDeviceExtensionProperties(handle, nullptr, &count, listed.data());
    if (result != VK_INCOMPLETE)
        check_vk(result, "vkEnumerateDeviceExtensionProperties", properties.deviceName);
    for (uint32_t i = 0; i < count; ++i) extensions.emplace_back(listed[i].extensionName);

    if (properties.apiVersion >= VK_API_VERSION_1_3 || has_extension(VK_KHR_MAINTENANCE_4_EXTENSION_NAME)) {
        VkPhysicalDeviceMaintenance4Properties sizes{
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
        VkPhysicalDeviceProperties2 asked{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
        asked.pNext = &sizes;
        vkGetPhysicalDeviceProperties2(handle, &asked);
        if (sizes.maxBufferSize != 0) max_buffer_size = sizes.maxBufferSize;
    }

    if (properties.apiVersion >= VK_API_VERSION_1_3 ||
        has_extension(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) {
        subgroup_sizes.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES;
        VkPhysicalDeviceProperties2 asked{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
        asked.pNext = &subgroup_sizes;
        vkGetPhysicalDeviceProperties2(handle, &asked);
        subgroup_sizes.pNext = nullptr;
    }

    if (has_extension(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME)) {
        VkPhysicalDevicePCIBusInfoPropertiesEXT pci{
            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
        VkPhysicalDeviceProperties2 asked{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
        asked.pNext = &pci;
        vkGetPhysicalDeviceProperties2(handle, &asked);
        char text[48];
        std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", pci.pciDomain, pci.pciBus, pci.pciDevice,
                      pci.pciFunction);
        pci_address = text;
    }
    if (has_extension(VK_EXT_PHYSICAL_DEVICE_DRM_EXTENSION_NAME)) {
        drm.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRM_PROPERTIES_EXT;
        VkPhysicalDeviceProperties2 asked{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
        asked.pNext = &drm;
        vkGetPhysicalDeviceProperties2(handle, &asked);
        drm.pNext = nullptr;
    }

    if (has_extension(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME))
        host_import_alignment = query_host_import_alignment(handle);
    if (has_extension(cooperative_matrix_extension))
        cooperative_matrices = query_cooperative_matrices(instance, handle);

    FeatureChain chain(properties.apiVersion, extensions);
    chain.query(handle);
    features = chain.list();
}

DeviceList query_devices(const Instance& instance, const std::optional<std::string>& visible) {
    DeviceList all;
    uint32_t index = 0;
    for (VkPhysicalDevice handle : instance.physical_devices())
        all.devices.push_back(PhysicalDevice::query(instance.handle(), handle, index++));
    const auto same = [](const PhysicalDevice& a, const PhysicalDevice& b) {
        return std::memcmp(a.v11.deviceUUID, b.v11.deviceUUID, VK_UUID_SIZE) == 0 &&
               std::memcmp(a.v11.driverUUID, b.v11.driverUUID, VK_UUID_SIZE) == 0;
    };
    for (PhysicalDevice& device : all.devices)
        device.has_twin = std::count_if(all.devices.begin(), all.devices.end(),
                                        [&](const PhysicalDevice& other) { return same(device, other); }) > 1;
    if (!visible) return all;
    std::vector<DeviceCandidate> candidates;
    for (const auto& device : all.devices) candidates.push_back(device.candidate());
    DeviceList list;
    for (const uint32_t position : visible_positions(candidates, *visible, &list.repeated)) {
        list.devices.push_back(std::move(all.devices[position]));
        list.devices.back().index = static_cast<uint32_t>(list.devices.size() - 1);
    }
    list.hidden = all.devices.size() - list.devices.size();
    return list;
}

std::string vendor_name(uint32_t vendor_id) {
    switch (vendor_id) {
    case 0x1002: return "AMD";
    case 0x1010: return "Imagination";
    case 0x106B: return "Apple";
    case 0x10DE: return "NVIDIA";
    case 0x13B5: return "Arm";
    case 0x14E4: return "Broadcom";
    case 0x1AE0: return "Google";
    case 0x5143: return "Qualcomm";
    case 0x8086: return "Intel";
    case 0x10005: return "Mesa";
    default: return "unknown";
    }
}

std::string driver_id_name(VkDriverId id) {
    // VkDriverId from 1 on, without VK_DRIVER_ID_: headers are older than drivers.
    static constexpr std::array names{"AMD_PROPRIETARY",
                                      "AMD_OPEN_SOURCE",
                                      "MESA_RADV",
                                      "NVIDIA_PROPRIETARY",
                                      "INTEL_PROPRIETARY_WINDOWS",
                                      "INTEL_OPEN_SOURCE_MESA",
                                      "IMAGINATION_PROPRIETARY",
                                      "QUALCOMM_PROPRIETARY",
                                      "ARM_PROPRIETARY",
                                      "GOOGLE_SWIFTSHADER",
                                      "GGP_PROPRIETARY",
                                      "BROADCOM_PROPRIETARY",
                                      "MESA_LLVMPIPE",
                                      "MOLTENVK",
                                      "COREAVI_PROPRIETARY",
                                      "JUICE_PROPRIETARY",
                                      "VERISILICON_PROPRIETARY",
                                      "MESA_TURNIP",
                                      "MESA_V3DV",
                                      "MESA_PANVK",
                                      "SAMSUNG_PROPRIETARY",
                                      "MESA_VENUS",
                                      "MESA_DOZEN",
                                      "MESA_NVK",
                                      "IMAGINATION_OPEN_SOURCE_MESA",
                                      "MESA_HONEYKRISP",
                                      "VULKAN_SC_EMULATION_ON_VULKAN"};
    const auto number = static_cast<uint32_t>(id);
    return number - 1 < names.size() ? names[number - 1] : std::to_string(number);
}

std::string version_text(uint32_t version) {
    return std::to_string(VK_API_VERSION_MAJOR(version)) + "." +
           std::to_string(VK_API_VERSION_MINOR(version)) + "." +
           std::to_string(VK_API_VERSION_PATCH(version));
}

ShaderHost shader_host(const PhysicalDevice& device, std::vector<std::string> features) {
    ShaderHost host;
    host.name = device.properties.deviceName;
    host.vulkan = device.properties.apiVersion;
    host.features = std::move(features);
    if (device.v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT)
        host.subgroup_operations = device.v11.subgroupSupportedOperations;
    const auto& sizes = device.subgroup_sizes;
    host.subgroups = {device.v11.subgroupSize, sizes.minSubgroupSize, sizes.maxSubgroupSize,
                      sizes.maxComputeWorkgroupSubgroups,
                      (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0};
    const auto& limits = device.properties.limits;
#define X(name) host.limits.name = limits.name;
    KP_SHADER_LIMITS(X)
#undef X
    const auto& controls = device.v12;
#define X(property)                                                                                          \
    if (controls.property) host.float_controls.emplace_back(#property);
    KP_FLOAT_CONTROLS(X)
#undef X
    host.denorm_independence = static_cast<uint32_t>(controls.denormBehaviorIndependence);
    host.rounding_independence = static_cast<uint32_t>(controls.roundingModeIndependence);
    host.extensions = device.extensions;
    std::copy(std::begin(limits.maxComputeWorkGroupSize), std::end(limits.maxComputeWorkGroupSize),
              host.limits.maxComputeWorkGroupSize.begin());
    return host;
}

}  // namespace kp
