// The device work that new objects need before their first use: fills (mgr.zeros, mgr.full), the layout
// transitions of images, and contents that the host cannot write in place.
//
// No thread waits for this work, and no object gets a submission of its own. The work is collected here and
// handed to the device's first queue as one submission. Contents are copied to staging memory, which is kept
// until the device has read it, so the caller may change its own memory at once.
//
// The rule: nothing uses an object's memory before its collected work was handed over, and everything that
// uses it runs after that work. Each way to use an object keeps it by itself:
//  - Recordings (kernels, copies, fills, sync operations; one-shots are recordings too): planning asks
//    must_be_brought(), and the build hands over all that it names before it plans again. A submission to
//    the first queue follows the work by the order of submissions; one to another queue waits for the point
//    in the marks. on_handed_over() orders built recordings that do not declare their uses.
//  - The host's reads, writes and mappings, and copies to another device: pending() hands over and gives
//    the point to wait for.
//  - Exports (DLPack, the buffer protocol, handles and addresses as integers) and host arrays over the
//    memory: the call hands over before the address leaves it. So no other API, library or process gets
//    memory before its work was handed over.
//  - Waits for all work (mgr.synchronize, mgr.destroy): submit() comes first.
// A new way to use an object's memory must do the same: call Resource::bring() (or initial_end()), and order
// itself after the point.
//
// If an object is dropped before its work was handed over, the work is dropped too; after that, the
// submission keeps the memory alive. Work that the driver refused stays collected, so no use can see an
// object without it.
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
    std::atomic<uint64_t> value{0};      // end of the last piece handed over, on the first queue; 0 if none
};

// The object that the work belongs to.
struct InitialTarget {
    std::weak_ptr<void> side;  // of the object: its memory and its Vulkan handles
    std::shared_ptr<InitialMarks> marks;
};

class InitialWork {
public:
    static constexpr size_t most_items = 4096;
    static constexpr uint64_t most_collected = uint64_t{16} << 20;
    static constexpr uint64_t most_staged = uint64_t{64} << 20;

    // `queue`: the queue that the work goes to. `on_handed_over` gets the end of each submission first,
    // before any other code does.
    InitialWork(DeviceContext& context, MemoryAllocator& memory, Queue& queue, Retire& retired,
                std::function<void(Point)> on_handed_over);
    InitialWork(const InitialWork&) = delete;
    InitialWork& operator=(const InitialWork&) = delete;
    ~InitialWork();

    // An image's transition out of its initial layout. It comes before all other collected work.
    void transition(InitialTarget target, const VkImageMemoryBarrier& barrier);
    // Commands that write `size` bytes of the object; no other work uses its memory yet.
    void fill(InitialTarget target, uint64_t size, std::function<void(VkCommandBuffer)> commands);
    // Commands that copy `size` bytes of `data`, which lie at an offset in the VkBuffer passed to
    // `commands`. They come after fills. Returns false and collects nothing if there are too many bytes or
    // not enough memory for them. The caller then hands over the collected work and uploads in another way.
    [[nodiscard]] bool
    upload(InitialTarget target, const void* data, uint64_t size,
           std::function<void(VkCommandBuffer commands, VkBuffer from, uint64_t offset)> commands);

    // Hands over all collected work. When this returns, the work is with the queue, whichever thread
    // submitted it. If it throws, the work is still collected. Do not call it under the graph mutex.
    void submit();
    // The end of the work handed over; no timeline if there was none.
    [[nodiscard]] Point handed_over() const noexcept;
    // Frees the collected work of objects that are gone.
    void trim() noexcept;
    // Drops collected work, and resources kept for reuse. For the closing of the device.
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
        uint64_t bytes = 0;  // that the commands write
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
        LockRank::initial_submission};  // held while a submission is made; taken before the other locks
    RankedMutex mutex_{LockRank::initial_items};  // guards the collected work
    std::vector<Item> items_;
    std::shared_ptr<Chunk> chunk_;      // the chunk being filled
    std::atomic<size_t> collected_{0};  // items, including those that are being handed over
    std::atomic<uint64_t> staged_{0};   // bytes of all chunks
    std::atomic<uint64_t> unsent_{0};   // bytes of collected contents
    std::atomic<uint64_t> last_{0};
    RankedMutex idle_mutex_{LockRank::initial_idle};
    std::vector<Commands> idle_;
};

}  // namespace kp
