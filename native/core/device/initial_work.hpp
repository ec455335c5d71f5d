// What new objects ask of the device before anybody uses them: fills (mgr.zeros, mgr.full), the layout of
// images, and contents that the host cannot write in place.
//
// Nobody waits for it, and no object gets a submission of its own. The work is collected here and handed to
// the device's first queue as one submission, ahead of whatever could see what it does: each use of an object
// asks its InitialMarks, hands over what is collected, and then comes after the point that the marks tell.
// Work on that queue comes after it anyway. Contents go through host memory of their own, which is kept until
// the device has read it, so that the caller's may change at once.
//
// An object that goes before its work was handed over takes the work along; later, the submission keeps the
// memory. Work that the driver refused stays collected: nobody sees an object without it.
//
// Bounded: `most_items` objects and `most_collected` bytes wait at a time, and `most_staged` bytes are held
// in all.
#pragma once

#include "base/ranked.hpp"
#include "memory/allocator.hpp"
#include "sync/queue.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace kp {

class DeviceContext;
class Retire;

// An object's own view of its work.
struct InitialMarks {
    std::atomic<uint32_t> collected{0};  // pieces that were not handed over yet
    std::atomic<uint64_t> value{0};      // where the last that was ends on the first queue; 0: there was none
};

// Whose work it is.
struct InitialTarget {
    std::weak_ptr<void> side;  // of the object: its memory and what Vulkan made over it
    std::shared_ptr<InitialMarks> marks;
};

class InitialWork {
public:
    static constexpr size_t most_items = 256;
    static constexpr uint64_t most_collected = uint64_t{16} << 20;
    static constexpr uint64_t most_staged = uint64_t{64} << 20;

    // `queue`: the one that it goes to. `on_handed_over` is told the end of each submission, before anybody
    // else is.
    InitialWork(DeviceContext& context, MemoryAllocator& memory, Queue& queue, Retire& retired,
                std::function<void(Point)> on_handed_over);
    InitialWork(const InitialWork&) = delete;
    InitialWork& operator=(const InitialWork&) = delete;
    ~InitialWork();

    // An image's way out of the layout that it was made in. Before all else that is collected.
    void transition(InitialTarget target, const VkImageMemoryBarrier& barrier);
    // Commands that write the object, whose memory nothing else uses yet.
    void fill(InitialTarget target, std::function<void(VkCommandBuffer)> commands);
    // Commands that copy `size` bytes of `data`, which are at an offset of the VkBuffer that they are given.
    // After fills. Returns false, with nothing collected, where the bytes are too many or there is no memory
    // for them: then the caller hands over what is collected and uploads in another way.
    [[nodiscard]] bool
    upload(InitialTarget target, const void* data, uint64_t size,
           std::function<void(VkCommandBuffer commands, VkBuffer from, uint64_t offset)> commands);

    // Hands over all that is collected: when this returns, by whatever thread, it is with the queue. Throws;
    // then it is still collected. Not under the graph mutex.
    void submit();
    // The end of what was handed over; no timeline: there was nothing.
    [[nodiscard]] Point handed_over() const noexcept;
    // Gives back what objects that are gone have left collected.
    void trim() noexcept;
    // Drops what is collected, and what is kept to be used again. The device closes.
    void clear() noexcept;

private:
    struct Chunk;
    struct Batch;
    struct Item {
        InitialTarget target;
        VkImageMemoryBarrier barrier{};  // of a transition
        std::function<void(VkCommandBuffer)> commands;
        std::shared_ptr<Chunk> chunk;
        bool uploads = false;
    };
    struct Commands {
        VkCommandPool pool = VK_NULL_HANDLE;
        VkCommandBuffer buffer = VK_NULL_HANDLE;
    };
    struct Place {
        std::shared_ptr<Chunk> chunk;
        uint64_t offset = 0;  // in the chunk
    };

    void collect(Item item);
    void drop_gone() noexcept;
    [[nodiscard]] uint64_t staged_limit() const noexcept;
    void make_room(uint64_t size);
    [[nodiscard]] Place place(uint64_t size);
    [[nodiscard]] Commands take_commands();
    void give_back(Commands commands) noexcept;
    void record(VkCommandBuffer commands, const std::vector<Item>& items) const;
    void hand_over(std::vector<Item>& items);

    DeviceContext& context_;
    MemoryAllocator& memory_;
    Queue& queue_;
    Retire& retired_;
    const std::function<void(Point)> on_handed_over_;
    RankedMutex submitting_{
        LockRank::initial_submission};            // held while a submission is made; comes before the others
    RankedMutex mutex_{LockRank::initial_items};  // what is collected
    std::vector<Item> items_;
    std::shared_ptr<Chunk> chunk_;      // the one that is being filled
    std::atomic<size_t> collected_{0};  // items, also those that are just being handed over
    std::atomic<uint64_t> staged_{0};   // bytes of all chunks
    std::atomic<uint64_t> unsent_{0};   // bytes that are collected
    std::atomic<uint64_t> last_{0};
    RankedMutex idle_mutex_{LockRank::initial_idle};
    std::vector<Commands> idle_;
};

}  // namespace kp
