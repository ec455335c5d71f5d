#include "device.hpp"

#include <vector>

namespace benchmark_floor {

Device::Device() {
    vk_.load_global();
    create_instance();
    try {
        vk_.load_instance(instance_);
        choose_physical_device();
        create_device();
    } catch (...) {
        vk_.vkDestroyInstance(instance_, nullptr);
        throw;
    }
}

Device::~Device() {
    vk_.vkDestroyDevice(device_, nullptr);
    vk_.vkDestroyInstance(instance_, nullptr);
}

void Device::create_instance() {
    VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo create{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    create.pApplicationInfo = &application;
    check(vk_.vkCreateInstance(&create, nullptr, &instance_), "vkCreateInstance");
}

// The benchmarks let the loader see one driver only, so the first device with a compute queue is the one.
void Device::choose_physical_device() {
    uint32_t count = 0;
    check(vk_.vkEnumeratePhysicalDevices(instance_, &count, nullptr), "vkEnumeratePhysicalDevices");
    std::vector<VkPhysicalDevice> found(count);
    check(vk_.vkEnumeratePhysicalDevices(instance_, &count, found.data()), "vkEnumeratePhysicalDevices");
    for (VkPhysicalDevice candidate : found) {
        uint32_t families = 0;
        vk_.vkGetPhysicalDeviceQueueFamilyProperties(candidate, &families, nullptr);
        std::vector<VkQueueFamilyProperties> properties(families);
        vk_.vkGetPhysicalDeviceQueueFamilyProperties(candidate, &families, properties.data());
        for (uint32_t family = 0; family < families; ++family) {
            if (properties[family].queueFlags & VK_QUEUE_COMPUTE_BIT) {
                physical_ = candidate;
                family_ = family;
                return;
            }
        }
    }
    throw std::runtime_error("The Vulkan driver offers no device with a compute queue");
}

void Device::create_device() {
    // What the engine enables by default, so that the driver makes the same code of the same shader.
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
    timeline.timelineSemaphore = VK_TRUE;
    VkPhysicalDeviceFeatures features{};
    features.robustBufferAccess = VK_TRUE;
    const float priority = 1.0F;
    VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueFamilyIndex = family_;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkDeviceCreateInfo create{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    create.pNext = &timeline;
    create.queueCreateInfoCount = 1;
    create.pQueueCreateInfos = &queue;
    create.pEnabledFeatures = &features;
    check(vk_.vkCreateDevice(physical_, &create, nullptr, &device_), "vkCreateDevice");
    vk_.load_device(device_);
    vk_.vkGetDeviceQueue(device_, family_, 0, &queue_);
}

uint32_t Device::memory_type(uint32_t allowed, VkMemoryPropertyFlags required,
                             VkMemoryPropertyFlags preferred) const {
    VkPhysicalDeviceMemoryProperties memory;
    vk_.vkGetPhysicalDeviceMemoryProperties(physical_, &memory);
    for (const VkMemoryPropertyFlags wanted : {required | preferred, required})
        for (uint32_t type = 0; type < memory.memoryTypeCount; ++type)
            if ((allowed >> type & 1U) != 0 && (memory.memoryTypes[type].propertyFlags & wanted) == wanted)
                return type;
    throw std::runtime_error("The Vulkan driver has no memory type with the flags " +
                             std::to_string(required));
}

Buffer::Buffer(const Device& device, uint64_t size, VkMemoryPropertyFlags required,
               VkMemoryPropertyFlags preferred)
    : device_(device), size_(size) {
    const auto& vk = device.vk();
    VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    create.size = size;
    create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                   VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    check(vk.vkCreateBuffer(device.handle(), &create, nullptr, &buffer_), "vkCreateBuffer");
    VkMemoryRequirements needs;
    vk.vkGetBufferMemoryRequirements(device.handle(), buffer_, &needs);
    VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = device.memory_type(needs.memoryTypeBits, required, preferred);
    check(vk.vkAllocateMemory(device.handle(), &allocate, nullptr, &memory_), "vkAllocateMemory");
    check(vk.vkBindBufferMemory(device.handle(), buffer_, memory_, 0), "vkBindBufferMemory");
}

Buffer::~Buffer() {
    device_.vk().vkDestroyBuffer(device_.handle(), buffer_, nullptr);
    device_.vk().vkFreeMemory(device_.handle(), memory_, nullptr);
}

void* Buffer::map() {
    void* data = nullptr;
    check(device_.vk().vkMapMemory(device_.handle(), memory_, 0, VK_WHOLE_SIZE, 0, &data), "vkMapMemory");
    return data;
}

}  // namespace benchmark_floor
