// A VkQueue with the lock that Vulkan asks of us and one timeline semaphore that counts its submissions.
#pragma once

#include "vulkan.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace kp {

class Device;
class Queue;

// "When `queue` has finished submission number `value`."
struct Point {
    Queue* queue = nullptr;
    uint64_t value = 0;
};

// Keeps the later point for each queue.
void merge_point(std::vector<Point>& points, Point point);

// A submission whose structs were filled in once: one or two command buffers, the signal on the queue's own timeline and
// waits on other queues' timelines. submit() only patches values.
struct PreparedSubmit {
    VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    VkTimelineSemaphoreSubmitInfo timeline{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
    VkCommandBuffer commands = VK_NULL_HANDLE;
    VkSemaphore signal = VK_NULL_HANDLE;
    uint64_t signal_value = 0;
    std::vector<VkSemaphore> wait_semaphores;
    std::vector<uint64_t> wait_values;
    std::vector<VkPipelineStageFlags> wait_stages;

    PreparedSubmit() = default;
    PreparedSubmit(const PreparedSubmit&) = delete;  // the structs point into it
    PreparedSubmit& operator=(const PreparedSubmit&) = delete;

    void prepare(const Queue& queue, VkCommandBuffer buffer);
    void add_wait(Point point);
    void clear_waits();

private:
    void relink();
};

class Queue {
public:
    Queue(Device& device, uint32_t family, uint32_t index, uint32_t timestamp_bits);
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;
    ~Queue();

    // Submits and returns the timeline value that tells its end. Thread-safe. Throws Error; then nothing was submitted.
    uint64_t submit(PreparedSubmit& submission);

    // Whether submission `value` has finished. One call into the driver at most. Throws on a lost device.
    [[nodiscard]] bool reached(uint64_t value);
    // Waits up to `nanoseconds`; false on time-out. Throws on a lost device.
    [[nodiscard]] bool wait(uint64_t value, uint64_t nanoseconds);
    // Waits however long it takes. Throws as wait() does.
    void wait_until(uint64_t value);

    [[nodiscard]] uint64_t submitted() const noexcept { return submitted_.load(std::memory_order_acquire); }
    [[nodiscard]] VkQueue handle() const noexcept { return handle_; }
    [[nodiscard]] VkSemaphore timeline() const noexcept { return timeline_; }
    [[nodiscard]] uint32_t family() const noexcept { return family_; }
    [[nodiscard]] uint32_t index() const noexcept { return index_; }
    [[nodiscard]] uint32_t timestamp_bits() const noexcept { return timestamp_bits_; }

private:
    void note_completed(uint64_t value) noexcept;

    Device& device_;
    VkQueue handle_ = VK_NULL_HANDLE;
    VkSemaphore timeline_ = VK_NULL_HANDLE;
    uint32_t family_;
    uint32_t index_;
    uint32_t timestamp_bits_;
    std::mutex mutex_;
    std::atomic<uint64_t> submitted_{0};
    std::atomic<uint64_t> completed_{0};  // what is known; the semaphore may be further
};

}  // namespace kp
