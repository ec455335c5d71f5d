// A list of objects to free once the GPU is done with them.
#pragma once

#include "base/ranked.hpp"
#include "sync/queue.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace kp {

// Payloads are any objects that free Vulkan objects in their destructors. The list needs only their
// ownership.
class Retire {
public:
    // Frees `payload` (by dropping it) once every point is reached; at once if all are reached already.
    void push(std::vector<Point> points, std::shared_ptr<void> payload);
    // Frees the payloads that are due. Never waits. Cheap if the list is empty.
    void collect() noexcept;
    // Frees all payloads. The caller knows that the device is idle (or lost).
    void drain() noexcept;
    [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_acquire) == 0; }

private:
    struct Entry {
        std::vector<Point> points;
        std::shared_ptr<void> payload;
    };
    RankedMutex mutex_{LockRank::retired};
    std::vector<Entry> entries_;
    std::atomic<size_t> count_{0};
};

}  // namespace kp
