// Waits for many fences on one thread.
//
// The thread sleeps in one wait-any over the lowest watched value of each timeline and over a timeline of
// its own. Raising that timeline wakes the thread to look again.
//
// lavapipe spins in a wait for any of several semaphores, and takes a core from the shaders. There the thread
// queries the counters instead, and sleeps in between for an eighth of the time that it has waited so far.
#pragma once

#include "base/ranked.hpp"
#include "device/device.hpp"
#include "run/fence.hpp"
#include "sync/timeline.hpp"

#include <atomic>
#include <condition_variable>
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

    // Makes wait() report when those points of the fence that are on this device have passed. Returns the
    // number that it reports.
    uint64_t watch(std::shared_ptr<Fence> fence);
    // wait() no longer reports this number.
    void forget(uint64_t number) noexcept;
    // For the one thread that waits: the numbers that have passed since, reached or failed. Empty after
    // `nanoseconds`, or after a wake-up without news.
    [[nodiscard]] std::vector<uint64_t> wait(uint64_t nanoseconds);
    // From now on, wait() returns at once.
    void close() noexcept;
    [[nodiscard]] bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
    // Call it after a failure, so that the thread looks.
    void wake() noexcept override;

private:
    struct Watched {
        std::shared_ptr<Fence> fence;
        size_t next = 0;  // the first of its points that has not passed
    };

    // Under the lock: moves on to the first point that has not passed; false if all have passed.
    bool settle_down(uint64_t number, Watched& watched);
    // Under the lock: stops watching. The caller drops the result after releasing the lock, because a fence
    // may hold the last reference to a semaphore, and the semaphore's end wakes the waiters.
    [[nodiscard]] Watched take(uint64_t number) noexcept;
    void wake_locked() noexcept;
    // Under the lock: stops watching what has passed since, and returns its numbers. The caller drops `gone`
    // after releasing the lock, as above.
    [[nodiscard]] std::vector<uint64_t> collect(std::vector<Watched>& gone);
    // wait() on a driver that spins.
    [[nodiscard]] std::vector<uint64_t> poll(uint64_t nanoseconds);

    std::shared_ptr<Device> device_;
    const bool polls_;
    Timeline waking_;
    RankedMutex mutex_{LockRank::waiter};
    std::condition_variable_any changed_;  // of woken_, if the thread polls
    std::unordered_map<uint64_t, Watched> watched_;
    std::map<Timeline*, std::multimap<uint64_t, uint64_t>> due_;  // by timeline: value -> number
    std::vector<uint64_t> finished_;                              // passed before they were watched
    std::map<Timeline*, uint64_t> sleeping_;                      // the values that the thread is waiting for
    uint64_t next_ = 1;
    uint64_t woken_ = 0;
    std::atomic<bool> closed_{false};
};

}  // namespace kp
