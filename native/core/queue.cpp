#include "queue.hpp"

#include "device.hpp"
#include "error.hpp"

namespace kp {

void merge_point(std::vector<Point>& points, Point point) {
    for (auto& known : points) {
        if (known.queue == point.queue) {
            known.value = known.value > point.value ? known.value : point.value;
            return;
        }
    }
    points.push_back(point);
}

void PreparedSubmit::prepare(const Queue& queue, VkCommandBuffer buffer) {
    commands = buffer;
    signal = queue.timeline();
    relink();
}

void PreparedSubmit::relink() {
    info.pNext = &timeline;
    info.commandBufferCount = commands != VK_NULL_HANDLE ? 1 : 0;
    info.pCommandBuffers = &commands;
    info.signalSemaphoreCount = 1;
    info.pSignalSemaphores = &signal;
    info.waitSemaphoreCount = static_cast<uint32_t>(wait_semaphores.size());
    info.pWaitSemaphores = wait_semaphores.data();
    info.pWaitDstStageMask = wait_stages.data();
    timeline.signalSemaphoreValueCount = 1;
    timeline.pSignalSemaphoreValues = &signal_value;
    timeline.waitSemaphoreValueCount = info.waitSemaphoreCount;
    timeline.pWaitSemaphoreValues = wait_values.data();
}

void PreparedSubmit::add_wait(Point point) {
    wait_semaphores.push_back(point.queue->timeline());
    wait_values.push_back(point.value);
    wait_stages.push_back(VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
    relink();
}

void PreparedSubmit::clear_waits() {
    wait_semaphores.clear();
    wait_values.clear();
    wait_stages.clear();
    relink();
}

Queue::Queue(Device& device, uint32_t family, uint32_t index, uint32_t timestamp_bits)
    : device_(device), family_(family), index_(index), timestamp_bits_(timestamp_bits) {
    device_.vk().vkGetDeviceQueue(device_.handle(), family, index, &handle_);
    VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    VkSemaphoreCreateInfo create{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    create.pNext = &type;
    check_vk(device_.vk().vkCreateSemaphore(device_.handle(), &create, nullptr, &timeline_),
             "vkCreateSemaphore", "a queue's timeline");
}

Queue::~Queue() { device_.vk().vkDestroySemaphore(device_.handle(), timeline_, nullptr); }

uint64_t Queue::submit(PreparedSubmit& submission) {
    const std::lock_guard lock(mutex_);
    const uint64_t value = submitted_.load(std::memory_order_relaxed) + 1;
    submission.signal_value = value;
    const VkResult result = device_.vk().vkQueueSubmit(handle_, 1, &submission.info, VK_NULL_HANDLE);
    if (result != VK_SUCCESS) [[unlikely]] {
        if (result == VK_ERROR_DEVICE_LOST) device_.mark_lost();
        throw_vk(result, "vkQueueSubmit",
                 "a submission to queue " + std::to_string(index_) + " of family " + std::to_string(family_));
    }
    submitted_.store(value, std::memory_order_release);
    return value;
}

void Queue::note_completed(uint64_t value) noexcept {
    uint64_t known = completed_.load(std::memory_order_relaxed);
    while (known < value && !completed_.compare_exchange_weak(known, value, std::memory_order_acq_rel)) {}
}

bool Queue::reached(uint64_t value) {
    if (completed_.load(std::memory_order_acquire) >= value) return true;
    uint64_t now = 0;
    const VkResult result = device_.vk().vkGetSemaphoreCounterValue(device_.handle(), timeline_, &now);
    if (result != VK_SUCCESS) [[unlikely]] {
        if (result == VK_ERROR_DEVICE_LOST) device_.mark_lost();
        throw_vk(result, "vkGetSemaphoreCounterValue", "a queue's timeline");
    }
    note_completed(now);
    return now >= value;
}

bool Queue::wait(uint64_t value, uint64_t nanoseconds) {
    if (completed_.load(std::memory_order_acquire) >= value) return true;
    VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.semaphoreCount = 1;
    info.pSemaphores = &timeline_;
    info.pValues = &value;
    const VkResult result = device_.vk().vkWaitSemaphores(device_.handle(), &info, nanoseconds);
    if (result == VK_TIMEOUT) return false;
    if (result != VK_SUCCESS) [[unlikely]] {
        if (result == VK_ERROR_DEVICE_LOST) device_.mark_lost();
        throw_vk(result, "vkWaitSemaphores", "a queue's timeline");
    }
    note_completed(value);
    return true;
}

void Queue::wait_until(uint64_t value) {
    // In slices: drivers differ in how they read a time-out that never ends.
    while (!wait(value, UINT64_C(1'000'000'000))) {}
}

}  // namespace kp
