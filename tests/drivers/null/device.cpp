// Logical devices and their queues.
#include "entry_points.hpp"

#include <algorithm>

namespace kpnull {

void start_worker(Queue& queue);
void stop_workers(Device& device);

namespace {

bool covered(const VkBool32* asked, const VkBool32* offered, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (asked[i] && !offered[i]) return false;
    return true;
}
bool core_covered(const PhysicalDevice& physical, const VkPhysicalDeviceFeatures& asked) {
    return covered(reinterpret_cast<const VkBool32*>(&asked),
                   reinterpret_cast<const VkBool32*>(&physical.features), sizeof asked / sizeof(VkBool32));
}
VkResult check_features(const PhysicalDevice& physical, const VkDeviceCreateInfo& info) {
    if (info.pEnabledFeatures && !core_covered(physical, *info.pEnabledFeatures))
        return VK_ERROR_FEATURE_NOT_PRESENT;
    for (auto* node = static_cast<const VkBaseInStructure*>(info.pNext); node; node = node->pNext) {
        if (node->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2 &&
            !core_covered(physical, reinterpret_cast<const VkPhysicalDeviceFeatures2*>(node)->features))
            return VK_ERROR_FEATURE_NOT_PRESENT;
        for (const FeatureStruct& f : physical.feature_structs)
            if (f.type == node->sType &&
                !covered(reinterpret_cast<const VkBool32*>(node + 1), f.values.data(), f.values.size()))
                return VK_ERROR_FEATURE_NOT_PRESENT;
    }
    return VK_SUCCESS;
}
VkResult check_queues(const PhysicalDevice& physical, const VkDeviceCreateInfo& info) {
    for (uint32_t i = 0; i < info.queueCreateInfoCount; ++i) {
        const VkDeviceQueueCreateInfo& q = info.pQueueCreateInfos[i];
        bool repeated = false;
        for (uint32_t k = 0; k < i; ++k)
            repeated |= info.pQueueCreateInfos[k].queueFamilyIndex == q.queueFamilyIndex;
        if (q.queueFamilyIndex >= physical.families.size() || q.queueCount == 0 || repeated ||
            q.queueCount > physical.families[q.queueFamilyIndex].queueCount) {
            violation("vkCreateDevice: %u queue(s) of family %u are not to be had", q.queueCount,
                      q.queueFamilyIndex);
            return VK_ERROR_INITIALIZATION_FAILED;
        }
    }
    return VK_SUCCESS;
}

// The priorities of the queues by family, and the feature structs: each an array of numbers.
void log_device(const PhysicalDevice& physical, const VkDeviceCreateInfo& info) {
    const auto list = [](const auto* values, size_t count) {
        std::string text;
        for (size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + std::to_string(values[i]);
        return "[" + text + "]";
    };
    std::string text = "{\"priorities\":{";
    for (uint32_t i = 0; i < info.queueCreateInfoCount; ++i) {
        const VkDeviceQueueCreateInfo& q = info.pQueueCreateInfos[i];
        text += (i == 0 ? "\"" : ",\"") + std::to_string(q.queueFamilyIndex) +
                "\":" + list(q.pQueuePriorities, q.queueCount);
    }
    text += "},\"features\":{";
    const char* comma = "";
    for (auto* node = static_cast<const VkBaseInStructure*>(info.pNext); node; node = node->pNext)
        for (const FeatureStruct& f : physical.feature_structs)
            if (f.type == node->sType) {
                text += comma + ("\"" + std::to_string(f.type)) +
                        "\":" + list(reinterpret_cast<const VkBool32*>(node + 1), f.values.size());
                comma = ",";
            }
    append_log(text + "}}");
}

}  // namespace

Device::~Device() {
    for (Queue* queue : queues) {
        unlink(queue);
        delete queue;
    }
    for (Object* object : zombies) object->deleter(object);
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreateDevice(VkPhysicalDevice handle, const VkDeviceCreateInfo* info,
                                              const VkAllocationCallbacks*, VkDevice* out) {
    KP_FAILABLE("vkCreateDevice");
    auto* physical = from<PhysicalDevice>(handle);
    for (uint32_t i = 0; i < info->enabledExtensionCount; ++i)
        if (!physical->has_extension(info->ppEnabledExtensionNames[i])) return VK_ERROR_EXTENSION_NOT_PRESENT;
    const auto asks = [&](const char* name) {
        for (uint32_t i = 0; i < info->enabledExtensionCount; ++i)
            if (!std::strcmp(info->ppEnabledExtensionNames[i], name)) return true;
        return false;
    };
    if (physical->has_extension("VK_KHR_portability_subset") && !asks("VK_KHR_portability_subset"))
        violation("vkCreateDevice: the device has VK_KHR_portability_subset, which is not enabled");
    if (VkResult r = check_features(*physical, *info); r != VK_SUCCESS) return r;
    if (VkResult r = check_queues(*physical, *info); r != VK_SUCCESS) return r;
    if (g_logging.load(std::memory_order_relaxed)) log_device(*physical, *info);
    auto* device = create<Device>(physical);
    device->physical = physical;
    const Instance& instance = *physical->instance;
    device->api_version = std::min(instance.config.api_version, instance.application_api);
    for (uint32_t i = 0; i < info->enabledExtensionCount; ++i)
        device->extensions.insert(info->ppEnabledExtensionNames[i]);
    for (const std::string& name : instance.extensions) device->extensions.insert(name);
    for (uint32_t i = 0; i < info->queueCreateInfoCount; ++i) {
        const VkDeviceQueueCreateInfo& q = info->pQueueCreateInfos[i];
        for (uint32_t k = 0; k < q.queueCount; ++k) {
            auto* queue = create<Queue>(device);
            queue->device = device;
            queue->family = q.queueFamilyIndex;
            queue->index = k;
            queue->flags = q.flags;
            device->queues.push_back(queue);
        }
    }
    device->asynchronous = instance.config.gpu_us > 0;
    if (device->asynchronous)
        for (Queue* queue : device->queues) start_worker(*queue);
    *out = to(device);
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL vkDestroyDevice(VkDevice handle, const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyDevice");
    if (!handle) return;
    auto* device = from<Device>(handle);
    if (const uint64_t held = device->held.load(); held && !device->lost)
        violation("VkDevice (%s) is destroyed with %llu pending submission(s)", label(device),
                  (unsigned long long)held);
    stop_workers(*device);
    note_orphans(device);
    retire(device);
}

VKAPI_ATTR VkResult VKAPI_CALL vkGetDeviceFaultInfoEXT(VkDevice handle, VkDeviceFaultCountsEXT* counts,
                                                       VkDeviceFaultInfoEXT* info) {
    KP_FAILABLE("vkGetDeviceFaultInfoEXT");
    if (!from<Device>(handle)->lost) violation("vkGetDeviceFaultInfoEXT: the device is not lost");
    if (!info) {
        counts->addressInfoCount = 1;
        counts->vendorInfoCount = 1;
        counts->vendorBinarySize = 0;
        return VK_SUCCESS;
    }
    std::snprintf(info->description, sizeof info->description, "the null device was told to end");
    if (counts->addressInfoCount)
        info->pAddressInfos[0] = {VK_DEVICE_FAULT_ADDRESS_TYPE_WRITE_INVALID_EXT, 0xdead0000, 16};
    if (counts->vendorInfoCount) {
        std::snprintf(info->pVendorInfos[0].description, sizeof info->pVendorInfos[0].description, "a test");
        info->pVendorInfos[0].vendorFaultCode = 7;
        info->pVendorInfos[0].vendorFaultData = 9;
    }
    return VK_SUCCESS;
}

namespace {
VkQueue find_queue(VkDevice device, uint32_t family, uint32_t index, VkDeviceQueueCreateFlags flags) {
    for (Queue* queue : from<Device>(device)->queues)
        if (queue->family == family && queue->index == index && queue->flags == flags) return to(queue);
    violation("vkGetDeviceQueue: the device was created without queue %u of family %u", index, family);
    return VK_NULL_HANDLE;
}
}  // namespace

VKAPI_ATTR void VKAPI_CALL vkGetDeviceQueue(VkDevice device, uint32_t family, uint32_t index, VkQueue* out) {
    KP_COUNTED("vkGetDeviceQueue");
    *out = find_queue(device, family, index, 0);
}

}  // namespace kpnull
