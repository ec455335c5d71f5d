// A VkQueue with the lock that Vulkan requires, and one timeline semaphore that counts its submissions.
#pragma once

#include "base/ranked.hpp"
#include "sync/delivery.hpp"
#include "sync/timeline.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace kp {

class Queue;

// A submission with its structs filled in once: command buffers, waits, and signals. The last signal is on
// the queue's own timeline, and submit() patches only its value.
//
// It must be the last: a thread that has seen the queue's timeline pass considers the whole submission
// done, and may destroy the other semaphores. Mesa's software queues signal one semaphore after the other,
// and would still be signalling those.
struct PreparedSubmit {
    VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    VkTimelineSemaphoreSubmitInfo timeline{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
    std::vector<VkCommandBuffer> commands;
    std::vector<VkSemaphore> signal_semaphores;
    std::vector<uint64_t> signal_values;
    std::vector<VkSemaphore> wait_semaphores;
    std::vector<uint64_t> wait_values;
    std::vector<VkPipelineStageFlags> wait_stages;
    std::vector<std::shared_ptr<const Delivery>> deliveries;  // results for the host, if any

    PreparedSubmit() = default;
    PreparedSubmit(const PreparedSubmit&) = delete;  // the structs point into it
    PreparedSubmit& operator=(const PreparedSubmit&) = delete;

    void prepare(const Queue& queue, std::vector<VkCommandBuffer> buffers);
    void add_wait(Point point);
    void add_signal(Point point);
    void clear_waits();

private:
    void relink();
};

// Its timeline counts its submissions.
class Queue final : public Timeline {
public:
    Queue(const TimelineParts& parts, uint32_t family, uint32_t index, uint32_t timestamp_bits);

    // Submits; returns the timeline value that marks the end. Thread-safe. If it throws Error, nothing was
    // submitted.
    uint64_t submit(PreparedSubmit& submission);

    // Later submissions go through `send`, which stands for vkQueueSubmit and is called under the queue's
    // lock; null: to the driver again. When this returns, no call of the former one is under way.
    void send_through(PFN_vkQueueSubmit send);

    // Calls `look` while nothing runs and nothing can be submitted. False, without a call, if work runs.
    [[nodiscard]] bool while_idle(const std::function<void()>& look);

    // All submissions have passed: returns when the driver is done with their semaphores, too. Mesa's
    // software queues give back those that a submission waited for after they have signalled its end.
    void let_finish() noexcept;

    [[nodiscard]] uint64_t submitted() const noexcept { return promised(); }
    // The last submission so far with an operation that does not declare its uses, and so may use any
    // object; 0 if there is none.
    [[nodiscard]] uint64_t undeclared() const noexcept { return undeclared_.load(std::memory_order_acquire); }
    void note_undeclared(uint64_t value) noexcept;
    [[nodiscard]] VkQueue handle() const noexcept { return handle_; }
    [[nodiscard]] uint32_t family() const noexcept { return family_; }
    [[nodiscard]] uint32_t index() const noexcept { return index_; }
    [[nodiscard]] uint32_t timestamp_bits() const noexcept { return timestamp_bits_; }

private:
    // Each command buffer as a submission of its own, in one call: a watchdog looks at each.
    VkResult send_apart(const PreparedSubmit& submission) const;

    DeviceContext& context_;
    Deliveries& deliveries_;
    VkQueue handle_ = VK_NULL_HANDLE;
    PFN_vkQueueSubmit send_;  // under mutex_
    uint32_t family_;
    uint32_t index_;
    uint32_t timestamp_bits_;
    RankedMutex mutex_{LockRank::queue};
    std::atomic<uint64_t> undeclared_{0};
};

}  // namespace kp
