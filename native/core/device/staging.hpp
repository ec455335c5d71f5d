// One-shot transfers to and from memory that the host cannot address. Each call blocks until its data has
// arrived.
//
// Two slots of host memory, each with a command buffer: while the GPU copies one, the host fills or empties
// the other. Data of any size streams through them. A recorded operation does not use them: tensors own
// their whole host copies.
#pragma once

#include "base/ranked.hpp"
#include "memory/allocator.hpp"
#include "sync/queue.hpp"
#include "sync/retire.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

namespace kp {

class DeviceContext;

class Staging {
public:
    // `queue`: the queue that transfers go to.
    Staging(DeviceContext& context, MemoryAllocator& memory, Queue& queue, Retire& retired)
        : context_(context), memory_(memory), queue_(queue), retired_(retired) {}
    ~Staging();

    void upload(VkBuffer destination, uint64_t offset, const void* data, uint64_t size);
    void download(VkBuffer source, uint64_t offset, void* out, uint64_t size);
    // The same, with pieces handed to `land` in order, each while it lies in the ring.
    using Land = std::function<void(const std::byte* landed, uint64_t begin, uint64_t bytes)>;
    void download(VkBuffer source, uint64_t offset, uint64_t size, const Land& land);
    // Any copy between the device and host memory, in pieces of `step` bytes (at most slot_bytes()).
    // `record` gets a command buffer, the host's VkBuffer, the offset in it, and the range of the whole
    // that lies there.
    using Record = std::function<void(VkCommandBuffer commands, VkBuffer host, uint64_t host_offset,
                                      uint64_t begin, uint64_t bytes)>;
    void upload(const void* data, uint64_t size, uint64_t step, const Record& record);
    void download(void* out, uint64_t size, uint64_t step, const Record& record);
    void download(uint64_t size, uint64_t step, const Record& record, const Land& land);
    // The capacity of one slot: at most one allocation of the device.
    [[nodiscard]] uint64_t slot_bytes() const noexcept;
    // Records `commands` into a one-time command buffer on the first queue, with a full barrier before, and
    // waits for it.
    void run(const std::function<void(VkCommandBuffer)>& commands);
    // Releases the ring's memory; the next transfer allocates it again. Every transfer waits for its own
    // work, so none is in flight.
    void release_memory() noexcept;
    // The same unless a transfer is in progress; true if there was memory to release. For callers that have
    // run out of memory.
    bool release_idle_memory() noexcept;
    // Releases all resources; the device is idle.
    void clear() noexcept;

private:
    struct Slot {
        Allocation memory;
        VkCommandBuffer commands = VK_NULL_HANDLE;
        PreparedSubmit submission;
        uint64_t value = 0;  // its last submission
    };

    // The lock, and the thread that holds it.
    class Owned {
    public:
        explicit Owned(Staging& staging);
        Owned(const Owned&) = delete;
        Owned& operator=(const Owned&) = delete;
        ~Owned();

    private:
        Staging& staging_;
        std::lock_guard<RankedMutex> lock_;
    };

    Slot& slot(size_t index, bool with_memory);
    void submit(Slot& slot, const std::function<void(VkCommandBuffer)>& commands);
    void wait(Slot& slot);
    // If an exception leaves a transfer, its submitted work must end before the caller frees the memory
    // that it uses.
    struct SeeThrough {
        Staging& staging;
        ~SeeThrough();
    };

    DeviceContext& context_;
    MemoryAllocator& memory_;
    Queue& queue_;
    Retire& retired_;
    RankedMutex mutex_{LockRank::staging};
    std::atomic<std::thread::id> owner_{};
    VkCommandPool pool_ = VK_NULL_HANDLE;
    std::array<Slot, 2> slots_;
};

}  // namespace kp
