// What submitted work brings to the host, and when: the host's side of memory that is cached but not
// coherent.
//
// The rule: every way to learn that work is done makes its results visible. On such memory the host sees what
// the device wrote only after an invalidation, and there are many ways to learn: a wait for the sequence or
// for a fence, a semaphore, an await, a poll, the end of later work on the same queue, or that memory is free
// again. All of them end in a look at a timeline. So each submission that brings something to the host is
// noted here before its queue gets it, and a timeline that turns out to be further than was known receives
// all that is due before it says so (Timeline::note_completed). "Reached" therefore implies "visible", and
// nobody invalidates a second time: that could drop what the host has written since.
//
// Learning of one end is learning of all that it came after, on any queue. What came before it has raised a
// timeline that it waited for, or its own queue's, whose signals come in order. So receive() asks for the
// counters of all submissions that are noted, including the users' semaphores that they signal: a queue's own
// counter is raised last and may lag behind. It delivers in the order of submission: of two submissions that
// write the same bytes, the later one is not received before the earlier.
//
// What a recording downloads into atoms that it shares with the host goes through slots (see
// record/host_edges.hpp) and lands here.
//
// Memory is freed, and a semaphore destroyed, only by someone who has learned that the submissions that use
// it are done, and so after what they bring was received. Therefore nothing is owned here.
//
// Locks: the lock here is taken inside any other one but the allocator's. Nothing waits for the device while
// holding it.
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

// The first of `some` that overlaps one of `others`; null: none does.
[[nodiscard]] const VkMappedMemoryRange* find_overlap(std::span<const VkMappedMemoryRange> some,
                                                      std::span<const VkMappedMemoryRange> others) noexcept;

// What one recording brings to the host each time it has run.
struct Delivery {
    std::vector<VkMappedMemoryRange> invalidates;  // exactly the atoms that the device writes
    // It does not say what it uses: all memory that host and device share in place.
    bool all_in_place = false;
    struct Landing {
        std::byte* to = nullptr;
        const std::byte* from = nullptr;
        uint64_t size = 0;
    };
    std::vector<Landing> landings;           // once `invalidates` has brought the slots in
    std::vector<VkMappedMemoryRange> edges;  // the atoms that they land in
    std::shared_ptr<const Allocation> slots;

    [[nodiscard]] bool empty() const noexcept { return invalidates.empty() && !all_in_place; }
};

class Deliveries {
public:
    Deliveries(DeviceContext& context, MemoryAllocator& memory) : context_(context), memory_(memory) {}

    // Whether something is due.
    [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }

    // A submission that brings `deliveries` is about to go to a queue, whose timeline it raises at its `end`;
    // it signals `semaphores` to `values`, that timeline's among them.
    void expect(Point end, const std::vector<std::shared_ptr<const Delivery>>& deliveries,
                const std::vector<VkSemaphore>& semaphores, const std::vector<uint64_t>& values);
    // The queue did not take it.
    void cancel(Point end) noexcept;
    // The host has learned that `semaphore` is at `value`: brings what is due. Throws Error; then it stays
    // due.
    void receive(VkSemaphore semaphore, uint64_t value);
    // The ends of work in flight that is still to land in one of these ranges.
    [[nodiscard]] std::vector<Point> in_the_way(std::span<const VkMappedMemoryRange> ranges);
    // The device is lost or closes: nothing will come any more.
    void abandon() noexcept;

private:
    struct Counter {
        VkSemaphore semaphore = VK_NULL_HANDLE;
        uint64_t value = 0;
    };
    struct Expected {
        Point end;                  // on its queue
        std::vector<Counter> ends;  // any of them tells
        std::vector<std::shared_ptr<const Delivery>> deliveries;
        bool arrived = false;
    };

    // Under the lock, both. Return what the driver refuses with.
    [[nodiscard]] VkResult look(Counter known);
    [[nodiscard]] VkResult has_arrived(const Expected& each, bool& arrived);
    void deliver(const Delivery& delivery);
    void drop_delivered() noexcept;

    DeviceContext& context_;
    MemoryAllocator& memory_;
    RankedMutex mutex_{LockRank::deliveries};
    std::vector<Expected> expected_;  // in the order of submission
    std::vector<Counter> counters_;   // what look() has seen in one turn
    std::atomic<size_t> count_{0};
};

}  // namespace kp
