#include "transient.hpp"

#include "device.hpp"
#include "error.hpp"

namespace kp {

Point submit_transient(Device& device, const std::function<void(VkCommandBuffer)>& commands) {
    struct Pool {
        Device& device;
        VkCommandPool handle = VK_NULL_HANDLE;
        explicit Pool(Device& d) : device(d) {}
        Pool(const Pool&) = delete;
        Pool& operator=(const Pool&) = delete;
        ~Pool() { device.vk().vkDestroyCommandPool(device.handle(), handle, nullptr); }
    };
    auto& vk = device.vk();
    Queue& queue = *device.queues().front().queue;
    const auto pool = std::make_shared<Pool>(device);
    VkCommandPoolCreateInfo create{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    create.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
    create.queueFamilyIndex = queue.family();
    check_vk(vk.vkCreateCommandPool(device.handle(), &create, nullptr, &pool->handle), "vkCreateCommandPool",
             "a transfer");
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = pool->handle;
    allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate.commandBufferCount = 1;
    VkCommandBuffer buffer = VK_NULL_HANDLE;
    check_vk(vk.vkAllocateCommandBuffers(device.handle(), &allocate, &buffer), "vkAllocateCommandBuffers",
             "a transfer");
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    check_vk(vk.vkBeginCommandBuffer(buffer, &begin), "vkBeginCommandBuffer", "a transfer");
    commands(buffer);
    check_vk(vk.vkEndCommandBuffer(buffer), "vkEndCommandBuffer", "a transfer");
    PreparedSubmit submission;
    submission.prepare(queue, {buffer});
    const Point point{&queue, queue.submit(submission)};
    try {
        device.retired().push({point}, pool);
    } catch (...) {  // no memory for the list: then the pool is freed here, once it is no longer in use
        while (!queue.wait(point.value, UINT64_C(1'000'000'000))) {}
        throw;
    }
    return point;
}

}  // namespace kp
