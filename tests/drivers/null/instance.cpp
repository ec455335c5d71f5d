// Instances, debug_utils, and the queries of a physical device.
#include "entry_points.hpp"

#include <algorithm>
#include <cstdio>

namespace kpnull {

namespace {
VkExtensionProperties extension(const char* name, uint32_t version) {
    VkExtensionProperties e{};
    std::snprintf(e.extensionName, sizeof e.extensionName, "%s", name);
    e.specVersion = version;
    return e;
}
void copy_chain(void* next, const std::vector<PropertyStruct>& known) {
    for (auto* node = static_cast<VkBaseOutStructure*>(next); node; node = node->pNext)
        for (const PropertyStruct& p : known)
            if (p.type == node->sType) std::memcpy(node + 1, p.bytes.data(), p.bytes.size());
}
}  // namespace

const std::vector<VkExtensionProperties>& instance_extensions() {
    static const auto* list = new std::vector<VkExtensionProperties>{extension("VK_EXT_debug_utils", 2)};
    return *list;
}

Instance::~Instance() {
    for (PhysicalDevice* device : devices) {
        unlink(device);
        delete device;
    }
}

VKAPI_ATTR VkResult VKAPI_CALL vkEnumerateInstanceVersion(uint32_t* version) {
    KP_COUNTED("vkEnumerateInstanceVersion");
    Config config;
    if (!Config::read(config)) return VK_ERROR_INITIALIZATION_FAILED;
    *version = config.api_version;
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkEnumerateInstanceExtensionProperties(const char* layer, uint32_t* count,
                                                                      VkExtensionProperties* out) {
    KP_COUNTED("vkEnumerateInstanceExtensionProperties");
    if (layer) return VK_ERROR_LAYER_NOT_PRESENT;
    const auto& list = instance_extensions();
    return fill_array(list.data(), list.size(), count, out);
}
VKAPI_ATTR VkResult VKAPI_CALL vkEnumerateInstanceLayerProperties(uint32_t* count, VkLayerProperties*) {
    KP_COUNTED("vkEnumerateInstanceLayerProperties");
    *count = 0;
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreateInstance(const VkInstanceCreateInfo* info,
                                                const VkAllocationCallbacks*, VkInstance* out) {
    KP_FAILABLE("vkCreateInstance");
    Config config;
    if (!Config::read(config)) return VK_ERROR_INITIALIZATION_FAILED;
    for (uint32_t i = 0; i < info->enabledExtensionCount; ++i) {
        const auto& list = instance_extensions();
        if (std::none_of(list.begin(), list.end(), [&](const VkExtensionProperties& e) {
                return !std::strcmp(e.extensionName, info->ppEnabledExtensionNames[i]);
            }))
            return VK_ERROR_EXTENSION_NOT_PRESENT;
    }
    auto* instance = create<Instance>(nullptr);
    instance->config = config;
    if (info->pApplicationInfo && info->pApplicationInfo->apiVersion)
        instance->application_api = info->pApplicationInfo->apiVersion;
    for (uint32_t i = 0; i < info->enabledExtensionCount; ++i)
        instance->extensions.emplace_back(info->ppEnabledExtensionNames[i]);
    for (uint32_t i = 0; i < config.devices; ++i) {
        auto* device = create<PhysicalDevice>(instance);
        device->instance = instance;
        device->index = i;
        describe(*device);
        instance->devices.push_back(device);
    }
    *out = to(instance);
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyInstance(VkInstance handle, const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyInstance");
    if (!handle) return;
    auto* instance = from<Instance>(handle);
    note_orphans(instance);
    for (PhysicalDevice* physical : instance->devices) note_orphans(physical);
    retire(instance);
}

VKAPI_ATTR VkResult VKAPI_CALL vkEnumeratePhysicalDevices(VkInstance instance, uint32_t* count,
                                                          VkPhysicalDevice* out) {
    // The loader (1.3.239) goes on with the count when the call fails; what it had there was never
    // initialised.
    const uint32_t capacity = out ? *count : 0;
    *count = 0;
    KP_FAILABLE("vkEnumeratePhysicalDevices");
    *count = capacity;
    std::vector<VkPhysicalDevice> handles;
    for (PhysicalDevice* device : from<Instance>(instance)->devices) handles.push_back(to(device));
    return fill_array(handles.data(), handles.size(), count, out);
}
VKAPI_ATTR VkResult VKAPI_CALL vkEnumeratePhysicalDeviceGroups(VkInstance instance, uint32_t* count,
                                                               VkPhysicalDeviceGroupProperties* out) {
    KP_FAILABLE("vkEnumeratePhysicalDeviceGroups");
    const auto& devices = from<Instance>(instance)->devices;
    if (!out) {
        *count = uint32_t(devices.size());
        return VK_SUCCESS;
    }
    const uint32_t n = std::min(*count, uint32_t(devices.size()));
    for (uint32_t i = 0; i < n; ++i) {
        out[i].physicalDeviceCount = 1;
        out[i].physicalDevices[0] = to(devices[i]);
        out[i].subsetAllocation = VK_FALSE;
    }
    *count = n;
    return n < devices.size() ? VK_INCOMPLETE : VK_SUCCESS;
}

// ----------------------------------------------------------------------------------------- debug_utils

VKAPI_ATTR VkResult VKAPI_CALL vkCreateDebugUtilsMessengerEXT(VkInstance instance,
                                                              const VkDebugUtilsMessengerCreateInfoEXT*,
                                                              const VkAllocationCallbacks*,
                                                              VkDebugUtilsMessengerEXT* out) {
    KP_FAILABLE("vkCreateDebugUtilsMessengerEXT");
    *out = to(create<DebugUtilsMessenger>(from<Instance>(instance)));
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyDebugUtilsMessengerEXT(VkInstance, VkDebugUtilsMessengerEXT messenger,
                                                           const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyDebugUtilsMessengerEXT");
    destroy<DebugUtilsMessenger>(messenger);
}
VKAPI_ATTR void VKAPI_CALL vkSubmitDebugUtilsMessageEXT(VkInstance, VkDebugUtilsMessageSeverityFlagBitsEXT,
                                                        VkDebugUtilsMessageTypeFlagsEXT,
                                                        const VkDebugUtilsMessengerCallbackDataEXT*) {
    KP_COUNTED(
        "vkSubmitDebugUtilsMessageEXT");  // the loader calls the messengers; a driver has nothing to add
}
VKAPI_ATTR VkResult VKAPI_CALL vkSetDebugUtilsObjectNameEXT(VkDevice,
                                                            const VkDebugUtilsObjectNameInfoEXT* info) {
    KP_FAILABLE("vkSetDebugUtilsObjectNameEXT");
    auto* object = reinterpret_cast<Object*>(info->objectHandle);
    if (!object || info->objectType == VK_OBJECT_TYPE_UNKNOWN) return VK_SUCCESS;
    if (kind_object_type(object->kind) != info->objectType) {
        violation("vkSetDebugUtilsObjectNameEXT: a %s is named as object type %d", kind_name(object->kind),
                  int(info->objectType));
        return VK_SUCCESS;
    }
    std::free(object->name);
    object->name = info->pObjectName && *info->pObjectName ? strdup(info->pObjectName) : nullptr;
    return VK_SUCCESS;
}

// ----------------------------------------------------------------------------- physical device queries

VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceFeatures(VkPhysicalDevice device,
                                                       VkPhysicalDeviceFeatures* out) {
    KP_COUNTED("vkGetPhysicalDeviceFeatures");
    *out = from<PhysicalDevice>(device)->features;
}
VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceFeatures2(VkPhysicalDevice device,
                                                        VkPhysicalDeviceFeatures2* out) {
    KP_COUNTED("vkGetPhysicalDeviceFeatures2");
    const PhysicalDevice& d = *from<PhysicalDevice>(device);
    out->features = d.features;
    for (auto* node = static_cast<VkBaseOutStructure*>(out->pNext); node; node = node->pNext)
        for (const FeatureStruct& f : d.feature_structs)
            if (f.type == node->sType)
                std::memcpy(node + 1, f.values.data(), f.values.size() * sizeof(VkBool32));
}
VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceProperties(VkPhysicalDevice device,
                                                         VkPhysicalDeviceProperties* out) {
    KP_COUNTED("vkGetPhysicalDeviceProperties");
    *out = from<PhysicalDevice>(device)->properties;
}
VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceProperties2(VkPhysicalDevice device,
                                                          VkPhysicalDeviceProperties2* out) {
    KP_COUNTED("vkGetPhysicalDeviceProperties2");
    const PhysicalDevice& d = *from<PhysicalDevice>(device);
    out->properties = d.properties;
    copy_chain(out->pNext, d.property_structs);
}
VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceMemoryProperties(VkPhysicalDevice device,
                                                               VkPhysicalDeviceMemoryProperties* out) {
    KP_COUNTED("vkGetPhysicalDeviceMemoryProperties");
    *out = from<PhysicalDevice>(device)->memory;
}
VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceMemoryProperties2(VkPhysicalDevice device,
                                                                VkPhysicalDeviceMemoryProperties2* out) {
    KP_COUNTED("vkGetPhysicalDeviceMemoryProperties2");
    const PhysicalDevice& d = *from<PhysicalDevice>(device);
    out->memoryProperties = d.memory;
    if (auto* budget = find_in_chain<VkPhysicalDeviceMemoryBudgetPropertiesEXT>(
            out->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT)) {
        for (uint32_t i = 0; i < VK_MAX_MEMORY_HEAPS; ++i) {
            budget->heapBudget[i] = i < d.memory.memoryHeapCount ? d.memory.memoryHeaps[i].size : 0;
            budget->heapUsage[i] = i < d.memory.memoryHeapCount ? d.heap_used[i].load() : 0;
        }
    }
}
VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice device, uint32_t* count,
                                                                    VkQueueFamilyProperties* out) {
    KP_COUNTED("vkGetPhysicalDeviceQueueFamilyProperties");
    const auto& families = from<PhysicalDevice>(device)->families;
    fill_array(families.data(), families.size(), count, out);
}
VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceQueueFamilyProperties2(VkPhysicalDevice device, uint32_t* count,
                                                                     VkQueueFamilyProperties2* out) {
    KP_COUNTED("vkGetPhysicalDeviceQueueFamilyProperties2");
    const auto& families = from<PhysicalDevice>(device)->families;
    if (!out) {
        *count = uint32_t(families.size());
        return;
    }
    *count = std::min(*count, uint32_t(families.size()));
    for (uint32_t i = 0; i < *count; ++i) out[i].queueFamilyProperties = families[i];
}
VKAPI_ATTR VkResult VKAPI_CALL vkEnumerateDeviceExtensionProperties(VkPhysicalDevice device,
                                                                    const char* layer, uint32_t* count,
                                                                    VkExtensionProperties* out) {
    const uint32_t capacity = out ? *count : 0;  // as in vkEnumeratePhysicalDevices
    *count = 0;
    KP_FAILABLE("vkEnumerateDeviceExtensionProperties");
    *count = capacity;
    if (layer) return VK_ERROR_LAYER_NOT_PRESENT;
    const auto& list = from<PhysicalDevice>(device)->extensions;
    return fill_array(list.data(), list.size(), count, out);
}
VKAPI_ATTR VkResult VKAPI_CALL vkEnumerateDeviceLayerProperties(VkPhysicalDevice, uint32_t* count,
                                                                VkLayerProperties*) {
    KP_COUNTED("vkEnumerateDeviceLayerProperties");
    *count = 0;
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkGetPhysicalDeviceToolProperties(VkPhysicalDevice, uint32_t* count,
                                                                 VkPhysicalDeviceToolProperties*) {
    KP_FAILABLE("vkGetPhysicalDeviceToolProperties");
    *count = 0;
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceExternalBufferProperties(
    VkPhysicalDevice, const VkPhysicalDeviceExternalBufferInfo* info, VkExternalBufferProperties* out) {
    KP_COUNTED("vkGetPhysicalDeviceExternalBufferProperties");
    auto& p = out->externalMemoryProperties;
    p = {};
    if (info->handleType == VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT) {
        p.externalMemoryFeatures = VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
        p.compatibleHandleTypes = info->handleType;
    }
}
VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceExternalFenceProperties(
    VkPhysicalDevice, const VkPhysicalDeviceExternalFenceInfo*, VkExternalFenceProperties* out) {
    KP_COUNTED("vkGetPhysicalDeviceExternalFenceProperties");
    out->exportFromImportedHandleTypes = out->compatibleHandleTypes = 0;
    out->externalFenceFeatures = 0;
}
VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceExternalSemaphoreProperties(
    VkPhysicalDevice handle, const VkPhysicalDeviceExternalSemaphoreInfo* info,
    VkExternalSemaphoreProperties* out) {
    KP_COUNTED("vkGetPhysicalDeviceExternalSemaphoreProperties");
    const auto* type =
        find_in_chain<VkSemaphoreTypeCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
    const bool has = from<PhysicalDevice>(handle)->has_extension("VK_KHR_external_semaphore_fd") && type &&
                     type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE &&
                     info->handleType == VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
    out->exportFromImportedHandleTypes = out->compatibleHandleTypes = has ? info->handleType : 0;
    out->externalSemaphoreFeatures =
        has ? VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT : 0;
}
VkResult VKAPI_CALL cooperative_matrices(VkPhysicalDevice, uint32_t* count,
                                         CooperativeMatrixProperties* out) {
    KP_FAILABLE("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    constexpr auto type = static_cast<VkStructureType>(1000506001);
    constexpr uint32_t float16 = 0, float32 = 1, sint8 = 3, sint32 = 5, subgroup = 3;
    static const CooperativeMatrixProperties all[] = {
        {type, nullptr, 16, 16, 16, float16, float16, float32, float32, VK_FALSE, subgroup},
        {type, nullptr, 16, 16, 32, sint8, sint8, sint32, sint32, VK_FALSE, subgroup},
        {type, nullptr, 16, 16, 16, 12345, 12345, 12345, 12345, VK_FALSE, subgroup}};  // of a later extension
    if (out != nullptr)
        for (uint32_t i = 0; i < *count; ++i)
            if (out[i].sType != type) violation("VkCooperativeMatrixPropertiesKHR has another sType");
    return fill_array(all, 3, count, out);
}
VKAPI_ATTR VkResult VKAPI_CALL vkGetPhysicalDeviceCalibrateableTimeDomainsEXT(VkPhysicalDevice,
                                                                              uint32_t* count,
                                                                              VkTimeDomainEXT* out) {
    KP_FAILABLE("vkGetPhysicalDeviceCalibrateableTimeDomainsEXT");
    static const VkTimeDomainEXT domains[] = {VK_TIME_DOMAIN_DEVICE_EXT, VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT,
                                              VK_TIME_DOMAIN_CLOCK_MONOTONIC_RAW_EXT};
    return fill_array(domains, 3, count, out);
}

}  // namespace kpnull
