// Waits for many fences on one thread.
//
// The thread sleeps in one wait-any over the lowest value of interest on each timeline, and over a timeline of our own, which is
// raised to wake it when there is something new to look at.
#pragma once

#include "base/ranked.hpp"
#include "device/device.hpp"
#include "run/fence.hpp"
#include "sync/timeline.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace kp {

class Waiter final : public Wakeable {
public:
    explicit Waiter(std::shared_ptr<Device> device);
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    ~Waiter();

    // Has wait() tell when those of the fence's points that are on this device have passed: by which number.
    uint64_t watch(std::shared_ptr<Fence> fence);
    // wait() will not tell of it any more.
    void forget(uint64_t number) noexcept;
    // For the one thread that waits: the numbers of what has passed since, reached or failed; none after `nanoseconds`, or when
    // woken for nothing.
    [[nodiscard]] std::vector<uint64_t> wait(uint64_t nanoseconds);
    // From now on wait() returns at once.
    void close() noexcept;
    [[nodiscard]] bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
    // Something failed: have the thread look.
    void wake() noexcept override;

private:
    struct Watched {
        std::shared_ptr<Fence> fence;
        size_t next = 0;  // the first of its points that has not passed
    };

    // Under the lock: moves on to the first point that has not passed; false where there is none.
    bool settle_down(uint64_t number, Watched& watched);
    // Under the lock: no longer watched. The caller drops it without the lock: with a fence may go the last reference to a semaphore,
    // whose end wakes the waiters.
    [[nodiscard]] Watched take(uint64_t number) noexcept;
    void wake_locked() noexcept;

    std::shared_ptr<Device> device_;
    Timeline waking_;
    RankedMutex mutex_{LockRank::waiter};
    std::unordered_map<uint64_t, Watched> watched_;
    std::map<Timeline*, std::multimap<uint64_t, uint64_t>> due_;  // by timeline: value -> number
    std::vector<uint64_t> finished_;                              // passed when they were to be watched
    std::map<Timeline*, uint64_t> sleeping_;                      // what the thread waits for just now
    uint64_t next_ = 1;
    uint64_t woken_ = 0;
    std::atomic<bool> closed_{false};
};

}  // namespace kp
