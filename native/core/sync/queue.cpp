#include "sync/queue.hpp"

#include "adapter/context.hpp"
#include "base/error.hpp"

namespace kp {

void PreparedSubmit::prepare(const Queue& queue, std::vector<VkCommandBuffer> buffers) {
    commands = std::move(buffers);
    signal_semaphores.assign(1, queue.semaphore());
    signal_values.assign(1, 0);
    relink();
}

void PreparedSubmit::relink() {
    info.pNext = &timeline;
    info.commandBufferCount = static_cast<uint32_t>(commands.size());
    info.pCommandBuffers = commands.data();
    info.signalSemaphoreCount = static_cast<uint32_t>(signal_semaphores.size());
    info.pSignalSemaphores = signal_semaphores.data();
    info.waitSemaphoreCount = static_cast<uint32_t>(wait_semaphores.size());
    info.pWaitSemaphores = wait_semaphores.data();
    info.pWaitDstStageMask = wait_stages.data();
    timeline.signalSemaphoreValueCount = info.signalSemaphoreCount;
    timeline.pSignalSemaphoreValues = signal_values.data();
    timeline.waitSemaphoreValueCount = info.waitSemaphoreCount;
    timeline.pWaitSemaphoreValues = wait_values.data();
}

void PreparedSubmit::add_wait(Point point) {
    wait_semaphores.push_back(point.timeline->semaphore());
    wait_values.push_back(point.value);
    wait_stages.push_back(VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
    relink();
}

void PreparedSubmit::add_signal(Point point) {
    signal_semaphores.insert(signal_semaphores.end() - 1, point.timeline->semaphore());
    signal_values.insert(signal_values.end() - 1, point.value);
    relink();
}

void PreparedSubmit::clear_waits() {
    wait_semaphores.clear();
    wait_values.clear();
    wait_stages.clear();
    relink();
}

Queue::Queue(const TimelineParts& parts, uint32_t family, uint32_t index, uint32_t timestamp_bits)
    : Timeline(parts, 0, "a queue's timeline"),
      context_(parts.context),
      deliveries_(parts.deliveries),
      send_(parts.context.vk().vkQueueSubmit),
      family_(family),
      index_(index),
      timestamp_bits_(timestamp_bits) {
    context_.vk().vkGetDeviceQueue(context_.handle(), family, index, &handle_);
}

uint64_t Queue::submit(PreparedSubmit& submission) {
    const std::lock_guard lock(mutex_);
    const uint64_t value = submitted() + 1;
    submission.signal_values.back() = value;
    // Call it before the queue has the submission: from then on, any thread may learn of its end.
    if (!submission.deliveries.empty()) [[unlikely]]
        deliveries_.expect({this, value}, submission.deliveries, submission.signal_semaphores,
                           submission.signal_values);
    // A lost device takes no submissions, and the validation layer counts refused ones as submitted.
    (void)context_.vk();  // the call's messages belong to this device
    const bool apart = submission.info.commandBufferCount > 1 && context_.watchdog() > 0 &&
                       send_ == context_.vk().vkQueueSubmit;  // a profile takes them together
    const VkResult result = context_.lost() ? VK_ERROR_DEVICE_LOST
                            : apart         ? send_apart(submission)
                                            : send_(handle_, 1, &submission.info, VK_NULL_HANDLE);
    if (result != VK_SUCCESS) [[unlikely]] {
        if (!submission.deliveries.empty()) deliveries_.cancel({this, value});
        const std::string what =
            "a submission to queue " + std::to_string(index_) + " of family " + std::to_string(family_);
        if (result == VK_ERROR_DEVICE_LOST) context_.throw_lost("vkQueueSubmit", what);
        throw_vk(result, "vkQueueSubmit", what);
    }
    promise(value);
    return value;
}

// All wait for the waits of the first; the last one signals once all have ended.
VkResult Queue::send_apart(const PreparedSubmit& submission) const {
    const VkSubmitInfo& whole = submission.info;
    VkSubmitInfo one{VK_STRUCTURE_TYPE_SUBMIT_INFO};
    one.commandBufferCount = 1;
    std::vector<VkSubmitInfo> infos(whole.commandBufferCount, one);
    for (uint32_t i = 0; i < whole.commandBufferCount; ++i)
        infos[i].pCommandBuffers = whole.pCommandBuffers + i;
    const VkTimelineSemaphoreSubmitInfo& values = submission.timeline;
    VkTimelineSemaphoreSubmitInfo begin{values.sType}, end{values.sType};
    begin.waitSemaphoreValueCount = values.waitSemaphoreValueCount;
    begin.pWaitSemaphoreValues = values.pWaitSemaphoreValues;
    end.signalSemaphoreValueCount = values.signalSemaphoreValueCount;
    end.pSignalSemaphoreValues = values.pSignalSemaphoreValues;
    infos.front().pNext = &begin;
    infos.front().waitSemaphoreCount = whole.waitSemaphoreCount;
    infos.front().pWaitSemaphores = whole.pWaitSemaphores;
    infos.front().pWaitDstStageMask = whole.pWaitDstStageMask;
    infos.back().pNext = &end;
    infos.back().signalSemaphoreCount = whole.signalSemaphoreCount;
    infos.back().pSignalSemaphores = whole.pSignalSemaphores;
    return send_(handle_, static_cast<uint32_t>(infos.size()), infos.data(), VK_NULL_HANDLE);
}

void Queue::send_through(PFN_vkQueueSubmit send) {
    const std::lock_guard lock(mutex_);
    send_ = send ? send : context_.vk().vkQueueSubmit;
}

bool Queue::while_idle(const std::function<void()>& look) {
    const std::lock_guard lock(mutex_);
    if (context_.lost() || !reached(submitted())) return false;
    look();
    return true;
}

void Queue::let_finish() noexcept {
    const std::lock_guard lock(mutex_);
    if (!context_.lost()) context_.vk().vkQueueWaitIdle(handle_);
}

void Queue::note_undeclared(uint64_t value) noexcept {
    uint64_t known = undeclared_.load(std::memory_order_relaxed);
    while (known < value && !undeclared_.compare_exchange_weak(known, value, std::memory_order_acq_rel)) {}
}

}  // namespace kp
