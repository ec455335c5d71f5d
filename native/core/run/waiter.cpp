#include "run/waiter.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace kp {

using namespace std::chrono_literals;

Waiter::Waiter(std::shared_ptr<Device> device)
    : device_(std::move(device)),
      polls_(device_->physical().v12.driverID == VK_DRIVER_ID_MESA_LLVMPIPE),
      waking_(device_->timeline_parts(), 0, "the waiting thread", true) {
    device_->add_waiter(*this);
}

Waiter::~Waiter() { device_->remove_waiter(*this); }

bool Waiter::settle_down(uint64_t number, Watched& watched) {
    const auto& points = watched.fence->points();
    for (; watched.next < points.size(); ++watched.next) {
        const Point& point = points[watched.next];
        if (&point.timeline->context() != device_.get() || point.timeline->passed(point.value)) continue;
        due_[point.timeline].emplace(point.value, number);
        return true;
    }
    return false;
}

uint64_t Waiter::watch(std::shared_ptr<Fence> fence) {
    device_->require_own();
    Watched gone;
    const std::lock_guard lock(mutex_);
    const uint64_t number = next_++;
    Watched& watched = watched_[number];
    watched.fence = std::move(fence);
    if (!settle_down(number, watched)) {
        gone = take(number);
        finished_.push_back(number);
        wake_locked();
        return number;
    }
    const Point& point = watched.fence->points()[watched.next];
    const auto asleep = sleeping_.find(point.timeline);
    if (asleep == sleeping_.end() || point.value < asleep->second) wake_locked();
    return number;
}

Waiter::Watched Waiter::take(uint64_t number) noexcept {
    const auto found = watched_.find(number);
    Watched watched = std::move(found->second);
    watched_.erase(found);
    return watched;
}

void Waiter::forget(uint64_t number) noexcept {
    Watched gone;
    const std::lock_guard lock(mutex_);
    const auto found = watched_.find(number);
    if (found == watched_.end()) return;
    const Point& point = found->second.fence->points()[found->second.next];
    const auto due = due_.find(point.timeline);
    for (auto [at, end] = due->second.equal_range(point.value); at != end; ++at) {
        if (at->second != number) continue;
        due->second.erase(at);
        break;
    }
    if (due->second.empty()) due_.erase(due);
    // The thread may sleep on a semaphore that the fence kept alive.
    wake_locked();
    gone = take(number);
}

std::vector<uint64_t> Waiter::poll(uint64_t nanoseconds) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::nanoseconds shortest = 50us, longest = 1ms;
    auto since = Clock::now();
    const auto end = since + std::chrono::nanoseconds(nanoseconds);
    std::vector<Watched> gone;
    std::unique_lock lock(mutex_);
    while (true) {
        std::vector<uint64_t> passed = collect(gone);
        const auto now = Clock::now();
        if (!passed.empty() || closed() || now >= end) return passed;
        const uint64_t known = woken_;
        const auto next = due_.empty() ? end : now + std::clamp((now - since) / 8, shortest, longest);
        if (changed_.wait_until(lock, next, [&] { return woken_ != known; })) since = Clock::now();
    }
}

std::vector<uint64_t> Waiter::wait(uint64_t nanoseconds) {
    if (polls_) return poll(nanoseconds);
    std::vector<VkSemaphore> semaphores;
    std::vector<uint64_t> values;
    std::vector<std::shared_ptr<Fence>> kept;  // keeps alive what the thread sleeps on
    std::vector<std::shared_lock<RankedSharedMutex>> used;
    {
        const std::lock_guard lock(mutex_);
        sleeping_.clear();
        if (!finished_.empty()) return std::exchange(finished_, {});
        semaphores.push_back(waking_.semaphore());
        values.push_back(woken_ + 1);
        for (const auto& [timeline, due] : due_) {
            const auto& [value, number] = *due.begin();
            // Do not use a semaphore that is being released: its release waits for this thread. The value
            // has then passed, see below.
            if (timeline->failed(value)) {
                nanoseconds = 0;
                continue;
            }
            used.push_back(timeline->use());
            semaphores.push_back(timeline->semaphore());
            values.push_back(value);
            kept.push_back(watched_[number].fence);
            sleeping_[timeline] = value;
        }
    }
    // A single semaphore is passed twice: see timeline.hpp on validation layers.
    if (semaphores.size() == 1) {
        semaphores.push_back(semaphores.front());
        values.push_back(values.front());
    }
    VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.flags = VK_SEMAPHORE_WAIT_ANY_BIT;
    info.semaphoreCount = static_cast<uint32_t>(semaphores.size());
    info.pSemaphores = semaphores.data();
    info.pValues = values.data();
    const VkResult result =
        device_->vk().vkWaitSemaphores(device_->handle(), &info, closed() ? 0 : nanoseconds);
    used.clear();
    if (result == VK_ERROR_DEVICE_LOST) device_->mark_lost();

    std::vector<Watched> gone;
    const std::lock_guard lock(mutex_);
    return collect(gone);
}

std::vector<uint64_t> Waiter::collect(std::vector<Watched>& gone) {
    sleeping_.clear();
    std::vector<uint64_t> passed = std::exchange(finished_, {});
    std::vector<uint64_t> moved;
    for (auto due = due_.begin(); due != due_.end();) {
        auto& [timeline, numbers] = *due;
        while (!numbers.empty() && timeline->passed(numbers.begin()->first)) {
            moved.push_back(numbers.begin()->second);
            numbers.erase(numbers.begin());
        }
        // Values need not fail in order.
        for (auto at = numbers.begin(); at != numbers.end() && timeline->has_failures();) {
            if (timeline->failed(at->first)) {
                moved.push_back(at->second);
                at = numbers.erase(at);
            } else {
                ++at;
            }
        }
        due = numbers.empty() ? due_.erase(due) : std::next(due);
    }
    for (const uint64_t number : moved) {
        Watched& watched = watched_[number];
        ++watched.next;
        if (settle_down(number, watched)) continue;
        gone.push_back(take(number));
        passed.push_back(number);
    }
    return passed;
}

void Waiter::wake_locked() noexcept {
    if (closed()) return;
    ++woken_;
    if (polls_) return changed_.notify_one();
    try {
        waking_.raise(woken_);
    } catch (const Error&) {
        return;  // the device is lost: every wait ends by itself
    }
}

void Waiter::wake() noexcept {
    const std::lock_guard lock(mutex_);
    wake_locked();
}

void Waiter::close() noexcept {
    const std::lock_guard lock(mutex_);
    if (closed()) return;
    wake_locked();
    closed_.store(true, std::memory_order_release);
}

}  // namespace kp
