// The results that submitted work brings to the host, and the time of their delivery: the host's side of
// memory that is cached but not coherent.
//
// The rule: every way to learn that work is done makes its results visible. On such memory, the host sees
// the device's writes only after an invalidation, and there are many ways to learn of an end: a wait for
// the sequence or for a fence, a semaphore, an await, a poll, the end of later work on the same queue, or
// the release of memory. All of them query a timeline in the end. So each submission with results for the
// host is noted here before its queue gets it. If a timeline turns out to be further than was known, it
// receives all results that are due before it reports its value (Timeline::note_completed). "Reached"
// therefore implies "visible". A second invalidation must not happen: it could drop the host's later
// writes.
//
// Learning of one end implies learning of all work before it, on any queue. That work has raised a timeline
// that the submission waited for, or the timeline of its own queue, which signals in order. So receive()
// queries the counters of all noted submissions, including the users' semaphores that they signal: a
// queue's own counter is raised last and may lag behind. It delivers in the order of submission: if two
// submissions write the same bytes, the later one is not received before the earlier.
//
// Downloads into atoms that a recording shares with the host go through slots (see record/host_edges.hpp)
// and are copied to their place here.
//
// Memory is freed, and a semaphore destroyed, only by a thread that has learned of the end of the
// submissions that use it, so after their results were received. Therefore this class owns none of them.
//
// Locks: this lock is taken inside any other lock except the allocator's. No thread waits for the device
// while holding it.
#pragma once

#include "base/ranked.hpp"
#include "base/vulkan.hpp"
#include "sync/point.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace kp {

class Allocation;
class DeviceContext;
class MemoryAllocator;

// The first of `some` that overlaps one of `others`; null if none does. `others` are in the order of their
// memory and offset, and disjoint.
[[nodiscard]] const VkMappedMemoryRange* find_overlap(std::span<const VkMappedMemoryRange> some,
                                                      std::span<const VkMappedMemoryRange> others) noexcept;

// The results that one recording brings to the host after each run.
struct Delivery {
    std::vector<VkMappedMemoryRange> invalidates;  // exactly the atoms that the device writes
    // The recording does not declare its uses: invalidate all memory that host and device share in place.
    bool all_in_place = false;
    struct Landing {
        std::byte* to = nullptr;
        const std::byte* from = nullptr;
        uint64_t size = 0;
    };
    std::vector<Landing> landings;           // after `invalidates` has brought the slots in
    std::vector<VkMappedMemoryRange> edges;  // the atoms that they land in
    std::shared_ptr<const Allocation> slots;

    [[nodiscard]] bool empty() const noexcept { return invalidates.empty() && !all_in_place; }
};

class Deliveries {
public:
    Deliveries(DeviceContext& context, MemoryAllocator& memory) : context_(context), memory_(memory) {}

    // True if deliveries are due.
    [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }

    // Call it before a submission with `deliveries` goes to a queue. The submission raises the queue's
    // timeline at its `end` and signals `semaphores` to `values`, that timeline's semaphore among them.
    void expect(Point end, const std::vector<std::shared_ptr<const Delivery>>& deliveries,
                const std::vector<VkSemaphore>& semaphores, const std::vector<uint64_t>& values);
    // Call it if the queue refused the submission.
    void cancel(Point end) noexcept;
    // Call it when the host has learned that `semaphore` is at `value`. Delivers all results that are due.
    // Throws Error; they are still due then.
    void receive(VkSemaphore semaphore, uint64_t value);
    // The ends of work in flight that will still write one of these ranges.
    [[nodiscard]] std::vector<Point> in_the_way(std::span<const VkMappedMemoryRange> ranges);
    // The device is lost or closes: drops all deliveries.
    void abandon() noexcept;

private:
    struct Counter {
        VkSemaphore semaphore = VK_NULL_HANDLE;
        uint64_t value = 0;
    };
    struct Expected {
        Point end;                  // on its queue
        std::vector<Counter> ends;  // any of them shows the end
        std::vector<std::shared_ptr<const Delivery>> deliveries;
        bool arrived = false;
    };

    // Both are called under the lock and return the driver's error.
    [[nodiscard]] VkResult look(Counter known);
    [[nodiscard]] VkResult has_arrived(const Expected& each, bool& arrived);
    void deliver(const Delivery& delivery);
    void drop_delivered() noexcept;

    DeviceContext& context_;
    MemoryAllocator& memory_;
    RankedMutex mutex_{LockRank::deliveries};
    std::vector<Expected> expected_;  // in the order of submission
    std::vector<Counter> counters_;   // the counters that look() has read in one turn
    std::atomic<size_t> count_{0};
};

}  // namespace kp
