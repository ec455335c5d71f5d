// Submission and execution order.
//
// A submission whose waits are satisfied, on a queue with nothing before it, executes within vkQueueSubmit:
// no copy, no allocation, no other thread. Otherwise it is held in its queue's list and executes, in order,
// on whichever thread signals what it waits for. With gpu_us set, every submission is held and the queue's
// worker executes it that much later.
#include "commands.hpp"
#include "entry_points.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

namespace kpnull {
namespace {

// A VkSubmitInfo with what belongs to it.
struct View {
    const VkSubmitInfo& info;
    const VkTimelineSemaphoreSubmitInfo* timeline;
    explicit View(const VkSubmitInfo& i)
        : info(i),
          timeline(i.pNext ? find_in_chain<VkTimelineSemaphoreSubmitInfo>(
                                 i.pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO)
                           : nullptr) {}
    uint32_t waits() const { return info.waitSemaphoreCount; }
    uint32_t signals() const { return info.signalSemaphoreCount; }
    uint32_t buffers() const { return info.commandBufferCount; }
    SemaphoreUse wait(uint32_t i) const {
        return {from<Semaphore>(info.pWaitSemaphores[i]),
                timeline && i < timeline->waitSemaphoreValueCount ? timeline->pWaitSemaphoreValues[i] : 0};
    }
    SemaphoreUse signal(uint32_t i) const {
        return {from<Semaphore>(info.pSignalSemaphores[i]),
                timeline && i < timeline->signalSemaphoreValueCount ? timeline->pSignalSemaphoreValues[i]
                                                                    : 0};
    }
    CommandBuffer* buffer(uint32_t i) const { return from<CommandBuffer>(info.pCommandBuffers[i]); }
};

bool satisfied(const SemaphoreUse& use) {
    return use.semaphore->payload->value.load(std::memory_order_acquire) >= use.value;
}
void signal(const SemaphoreUse& use) {
    Semaphore& s = *use.semaphore;
    const uint64_t current = s.payload->value.load(std::memory_order_relaxed);
    if (use.value <= current) {
        violation("VkSemaphore (%s) is signalled with %llu, not above its value %llu", label(&s),
                  (unsigned long long)use.value, (unsigned long long)current);
        return;  // a counter never goes back
    }
    s.payload->value.store(use.value);
    // Threads that wait on other devices; their queues look when they have something to do.
    if (s.payload->exported)
        for_each_live(
            Kind::Device, [](Object* o, void*) { static_cast<Device*>(o)->wake(); }, nullptr);
}

// Whether a command buffer may run. False has been noted.
bool usable(Queue& queue, CommandBuffer& cb) {
    if (cb.state != RecordState::Executable) [[unlikely]] {
        violation("VkCommandBuffer (%s) is submitted but is not executable", label(&cb));
        return false;
    }
    if (cb.pool->family != queue.family) [[unlikely]]
        violation("VkCommandBuffer (%s) of queue family %u is submitted to family %u", label(&cb),
                  cb.pool->family, queue.family);
    if (cb.checked_epoch != queue.device->destroy_epoch.load(std::memory_order_relaxed)) [[unlikely]]
        return references_alive(cb);
    return true;
}
void log_if_asked(CommandBuffer& cb) {
    if (g_logging.load(std::memory_order_relaxed)) [[unlikely]]
        log_commands(cb);
}

// What vkQueueSubmit does for each submission that need not wait. Call with the device's mutex held.
void run_now(Queue& queue, const View& view) {
    std::optional<LogTogether> together;
    if (g_logging.load(std::memory_order_relaxed)) [[unlikely]] {
        together.emplace();
        log_submission(queue, next_submission_number());
    }
    for (uint32_t i = 0; i < view.buffers(); ++i) {
        CommandBuffer& cb = *view.buffer(i);
        if (!usable(queue, cb)) continue;
        queue.dispatches += cb.dispatches;
        log_if_asked(cb);
        if (cb.effects) execute(cb);
        if (cb.usage & VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT) cb.state = RecordState::Invalid;
    }
    together.reset();
    for (uint32_t i = 0; i < view.signals(); ++i) signal(view.signal(i));
}

void retain(Submission& s, Object* object) {
    object->pending.fetch_add(1);
    s.retained.push_back(object);
}
void retain_buffer(Submission& s, CommandBuffer* cb) {
    retain(s, cb);
    for (Object* object : cb->references) {
        if (object->kind == Kind::CommandBuffer)
            retain_buffer(s, static_cast<CommandBuffer*>(object));
        else
            retain(s, object);
    }
}
void release(Submission& s) {
    for (Object* object : s.retained) object->pending.fetch_sub(1);
    s.retained.clear();
}

void hold(Queue& queue, const View& view) {
    Submission& s = queue.pending.emplace_back();
    if (queue.device->asynchronous) s.accepted_ns = device_time_ns();
    for (uint32_t i = 0; i < view.waits(); ++i) {
        s.waits.push_back(view.wait(i));
        retain(s, s.waits.back().semaphore);
    }
    for (uint32_t i = 0; i < view.signals(); ++i) {
        s.signals.push_back(view.signal(i));
        retain(s, s.signals.back().semaphore);
    }
    for (uint32_t i = 0; i < view.buffers(); ++i) {
        CommandBuffer* cb = view.buffer(i);
        if (!usable(queue, *cb)) continue;
        if (cb->pending && !(cb->usage & VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT))
            violation("VkCommandBuffer (%s) is submitted again while pending, without SIMULTANEOUS_USE",
                      label(cb));
        s.command_buffers.push_back(cb);
        retain_buffer(s, cb);
    }
    queue.outstanding.fetch_add(1);
    queue.device->held.fetch_add(1);
}

bool ready(const Submission& s) { return std::all_of(s.waits.begin(), s.waits.end(), satisfied); }

void execute_held(Queue& queue, Submission& s) {
    std::optional<LogTogether> together;
    if (g_logging.load(std::memory_order_relaxed)) {
        together.emplace();
        log_submission(queue, next_submission_number());
    }
    for (CommandBuffer* cb : s.command_buffers) {
        if (cb->checked_epoch != queue.device->destroy_epoch.load() && !references_alive(*cb)) continue;
        queue.dispatches += cb->dispatches;
        log_if_asked(*cb);
        if (cb->effects) execute(*cb);
        if (cb->usage & VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT) cb->state = RecordState::Invalid;
    }
}
// Releases before it signals, because who sees the signal may destroy the objects at once; the queue is idle
// only after.
void finish(Queue& queue, Submission& s) {
    release(s);
    for (const SemaphoreUse& use : s.signals) signal(use);
    queue.outstanding.fetch_sub(1);
    queue.device->held.fetch_sub(1);
}

// Runs what has become ready, on all queues, until nothing is. Call with the device's mutex held.
void pump(Device& device) {
    bool progress = true;
    while (progress && device.held.load() != 0) {
        progress = false;
        for (Queue* queue : device.queues) {
            while (!queue->pending.empty() && ready(queue->pending.front())) {
                Submission s = std::move(queue->pending.front());
                queue->pending.pop_front();
                execute_held(*queue, s);
                finish(*queue, s);
                progress = true;
            }
        }
    }
}

void lose_locked(Device& device) {
    device.lost = true;
    for (Queue* queue : device.queues) {
        for (Submission& s : queue->pending) release(s);
        queue->outstanding.fetch_sub(queue->pending.size());
        device.held.fetch_sub(queue->pending.size());
        queue->pending.clear();
    }
    device.work.notify_all();
}

// Whether the device survives this submission (see kpnull_lose_device).
bool survives(Device& device) {
    if (device.lost.load(std::memory_order_relaxed)) [[unlikely]]
        return false;
    const int64_t left = device.submits_until_lost.load(std::memory_order_relaxed);
    if (left < 0) [[likely]]
        return true;
    device.submits_until_lost = left - 1;
    if (left > 0) return true;
    lose_locked(device);
    return false;
}

VkResult submit(Queue& queue, uint32_t count, const VkSubmitInfo* infos) {
    Device& device = *queue.device;
    if (device.physical->instance->config.trap_reads) [[unlikely]]
        close_trapped();
    {
        std::lock_guard lock(device.mutex);
        if (!survives(device)) [[unlikely]] {
            device.wake();
            return VK_ERROR_DEVICE_LOST;
        }
        for (uint32_t i = 0; i < count; ++i) {
            const View view(infos[i]);
            bool now = !device.asynchronous && queue.pending.empty();
            for (uint32_t w = 0; now && w < view.waits(); ++w) now = satisfied(view.wait(w));
            if (now)
                run_now(queue, view);
            else
                hold(queue, view);
        }
        if (device.held.load(std::memory_order_relaxed) != 0) {
            if (device.asynchronous)
                device.work.notify_all();
            else
                pump(device);
        }
    }
    device.wake();
    return VK_SUCCESS;
}

void work(Queue& queue) {
    Device& device = *queue.device;
    const auto duration = std::chrono::microseconds(device.physical->instance->config.gpu_us);
    std::unique_lock lock(device.mutex);
    for (;;) {
        device.work.wait(
            lock, [&] { return device.stop || (!queue.pending.empty() && ready(queue.pending.front())); });
        if (device.stop) return;
        const bool timed = !queue.pending.front().command_buffers.empty();
        const uint64_t began = device_time_ns();
        if (timed) {
            // Interruptible: losing or destroying the device must not wait for a simulated hour.
            device.work.wait_for(lock, duration, [&] { return device.stop || queue.pending.empty(); });
            // Polled, because a test changes it without the device's lock.
            while (g_paused.load() && !device.stop && !queue.pending.empty())
                device.work.wait_for(lock, std::chrono::milliseconds(1));
            if (device.stop || queue.pending.empty()) continue;
        }
        Submission s = std::move(queue.pending.front());
        queue.pending.pop_front();
        lock.unlock();
        begin_work(s.accepted_ns, began);
        execute_held(queue, s);
        lock.lock();
        if (device.lost) {
            release(s);
            queue.outstanding.fetch_sub(1);
            device.held.fetch_sub(1);
        } else {
            finish(queue, s);
        }
        device.work.notify_all();
        lock.unlock();
        device.wake();
        lock.lock();
    }
}

}  // namespace

void start_worker(Queue& queue) {
    queue.worker = std::thread([&queue] { work(queue); });
}
void stop_workers(Device& device) {
    {
        std::lock_guard lock(device.mutex);
        device.stop = true;
        device.work.notify_all();
    }
    for (Queue* queue : device.queues)
        if (queue->worker.joinable()) queue->worker.join();
}

void Device::lose() {
    {
        std::lock_guard lock(mutex);
        lose_locked(*this);
    }
    wake();
}
void Device::wake_slow() {
    std::lock_guard lock(wait_mutex);
    wait_changed.notify_all();
}
VkResult Device::wait_slow(uint64_t timeout_ns, bool (*ready)(void*), void* context) {
    using namespace std::chrono;
    const uint64_t endless_ns = physical->instance->config.max_wait_ms * 1000000;
    const bool endless = timeout_ns > endless_ns;
    const auto deadline = steady_clock::now() + nanoseconds(std::min(timeout_ns, endless_ns));
    waiters.fetch_add(1, std::memory_order_seq_cst);
    VkResult result = VK_SUCCESS;
    {
        std::unique_lock lock(wait_mutex);
        for (;;) {
            if (ready(context)) break;
            if (lost) {
                result = VK_ERROR_DEVICE_LOST;
                break;
            }
            if (wait_changed.wait_until(lock, deadline) == std::cv_status::timeout) {
                if (!ready(context)) result = VK_TIMEOUT;
                break;
            }
        }
    }
    waiters.fetch_sub(1);
    if (result == VK_TIMEOUT && endless) {
        violation("a wait without end has lasted %llu ms: nothing signals what it waits for",
                  (unsigned long long)physical->instance->config.max_wait_ms);
        lose();
        return VK_ERROR_DEVICE_LOST;
    }
    return result;
}

// Shared with sync.cpp.
void signal_from_host(Device& device, Semaphore& semaphore, uint64_t value) {
    {
        std::lock_guard lock(device.mutex);
        signal({&semaphore, value});
        if (device.asynchronous)
            device.work.notify_all();
        else
            pump(device);
    }
    device.wake();
}

VKAPI_ATTR VkResult VKAPI_CALL vkQueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos,
                                             VkFence fence) {
    KP_FAILABLE("vkQueueSubmit");
    if (fence) violation("vkQueueSubmit: the null driver has no fences");
    return submit(*from<Queue>(queue), count, infos);
}
VKAPI_ATTR VkResult VKAPI_CALL vkQueueWaitIdle(VkQueue handle) {
    KP_FAILABLE("vkQueueWaitIdle");
    Queue& queue = *from<Queue>(handle);
    if (queue.device->lost) return VK_ERROR_DEVICE_LOST;
    return queue.device->wait(UINT64_MAX, [&] { return queue.outstanding.load() == 0; });
}
VKAPI_ATTR VkResult VKAPI_CALL vkDeviceWaitIdle(VkDevice handle) {
    KP_FAILABLE("vkDeviceWaitIdle");
    Device& device = *from<Device>(handle);
    if (device.lost) return VK_ERROR_DEVICE_LOST;
    return device.wait(UINT64_MAX, [&] { return device.held.load() == 0; });
}

}  // namespace kpnull
