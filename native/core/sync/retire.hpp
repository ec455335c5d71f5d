// A list of objects to free once the GPU is done with them.
//
// Model. Each entry waits for points of one or several timelines, one after the other: it lies in the *lane*
// of one timeline, in a heap by value, and moves on to the lane of its next point when that timeline has
// passed. So a collection looks only at the first entry of each lane that is in use, however many entries
// there are behind it, and asks the driver once for each timeline.
#pragma once

#include "base/ranked.hpp"
#include "sync/queue.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace kp {

// Payloads are any objects that free Vulkan objects in their destructors. The list needs only their
// ownership.
class Retire {
public:
    Retire() = default;
    Retire(const Retire&) = delete;
    Retire& operator=(const Retire&) = delete;
    ~Retire() { drain(); }

    // Frees `payload` (by dropping it) once every point is reached; at once if all are reached already.
    void push(std::vector<Point> points, std::shared_ptr<void> payload);
    // Frees the payloads that are due. Never waits. Cheap if the list is empty, or if nothing is due.
    void collect() noexcept;
    // Frees all payloads. The caller knows that the device is idle (or lost).
    void drain() noexcept;
    [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }

private:
    struct Entry {
        std::vector<Point> points;  // that are not known to have passed; the last one is the lane's
        std::shared_ptr<void> payload;
        Entry* next = nullptr;  // in a chain of entries that left their lane
    };
    struct Lane {
        Timeline* timeline = nullptr;
        std::vector<Entry*> entries;  // a heap, the least value first
        size_t expected = 0;          // entries that are here or may come; there is room for so many
        bool active = false;
    };
    // Entries that are due, to be freed without the lock.
    class Chain;

    Lane& lane_of(Timeline* timeline);
    // These two allocate nothing.
    void enter(Entry* entry) noexcept;
    void take_due(Lane& lane, Chain& due) noexcept;
    // Drops the points that have passed, and enters the lane of one that has not.
    void advance(Entry* entry, Chain& due) noexcept;

    RankedMutex mutex_{LockRank::retired};
    std::unordered_map<Timeline*, Lane> lanes_;
    std::vector<Lane*> active_;  // those with entries; there is room for all lanes
    std::atomic<size_t> count_{0};
};

}  // namespace kp
