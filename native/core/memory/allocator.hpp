// Device memory in blocks: a few large vkAllocateMemory calls; FreeList hands out offsets inside them.
//
// Model. Each pair (memory type, pool) owns a list of blocks of 1 to 64 MiB; memory/block_growth.hpp gives
// their sizes. A request above half the largest block gets its own allocation. Host-visible blocks stay
// mapped for their whole life. Pools separate objects that must not share a page: buffers (linear), images in
// optimal tiling (bufferImageGranularity) and host copies. The blocks of host copies carry one VkBuffer over
// the whole block, so that a host copy needs no Vulkan object of its own.
//
// Non-coherent memory: offsets and sizes are multiples of nonCoherentAtomSize, so that flushing one object
// never touches a neighbour.
//
// memory/placement.hpp chooses the memory types for a use. If a type's heap is full, by the driver's budget
// or because it refused, the next type is used and a note says so. If all types refuse, empty blocks go back
// to the driver and the request is tried again; then it fails with an error that names the largest users of
// the memory.
#pragma once

#include "base/ranked.hpp"
#include "base/vulkan.hpp"
#include "memory/block.hpp"
#include "memory/placement.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kp {

class DeviceContext;
class MemoryAllocator;

// A live range of device memory; its destructor releases it.
class Allocation {
public:
    Allocation() = default;
    Allocation(Allocation&& other) noexcept { swap(other); }
    Allocation& operator=(Allocation&& other) noexcept {
        Allocation(std::move(other)).swap(*this);
        return *this;
    }
    ~Allocation();

    explicit operator bool() const noexcept { return block_ != nullptr; }
    [[nodiscard]] VkDeviceMemory memory() const noexcept;
    [[nodiscard]] VkBuffer block_buffer() const noexcept;  // host copies only
    [[nodiscard]] uint64_t offset() const noexcept { return offset_; }
    [[nodiscard]] uint64_t size() const noexcept { return size_; }
    [[nodiscard]] std::byte* mapped() const noexcept { return mapped_; }  // null if the host cannot access it
    [[nodiscard]] bool coherent() const noexcept;
    [[nodiscard]] bool cached() const noexcept;
    [[nodiscard]] bool device_local() const noexcept;
    [[nodiscard]] uint32_t type() const noexcept;  // Vulkan's number of the memory type
    [[nodiscard]] float priority() const noexcept;
    // The range to flush or invalidate; only meaningful if !coherent(). For a part: the atoms that contain
    // it.
    [[nodiscard]] VkMappedMemoryRange mapped_range() const noexcept;
    [[nodiscard]] VkMappedMemoryRange mapped_range(uint64_t offset, uint64_t size) const noexcept;
    // A part, which must not outlive this allocation and releases nothing.
    [[nodiscard]] Allocation part(uint64_t offset, uint64_t size) const noexcept;
    // The name in reports of broken guards; no effect if memory is not guarded.
    void set_label(const std::string& label);

private:
    friend class MemoryAllocator;
    void swap(Allocation& other) noexcept;

    MemoryBlock* block_ = nullptr;
    uint64_t offset_ = 0;
    uint64_t size_ = 0;
    std::byte* mapped_ = nullptr;
    uint32_t node_ = UINT32_MAX;
    bool owns_ = true;
};

struct HeapStatistics {
    uint64_t size = 0;  // bytes of the heap, as the device reports
    bool device_local = false;
    uint64_t reserved = 0;  // bytes taken from the driver
    uint64_t used = 0;      // bytes in live allocations
    uint64_t peak = 0;      // most bytes in live allocations, ever or since reset_peak()
    uint64_t imported =
        0;  // bytes of the process, or of others, that the device uses in place; not counted above
    uint64_t budget = 0;  // bytes that this process may take in all, by the driver's estimate; 0: unknown
    uint64_t largest_free = 0;  // bytes of the longest hole in its blocks
    uint32_t blocks = 0;
    uint32_t allocations = 0;
};

// Callbacks that the allocator uses if memory is short. Called without its lock; the caller's locks may be
// held.
struct MemoryCallbacks {
    std::function<bool()> on_pressure;  // no memory is left: frees spare memory; returns true if it freed any
    std::function<std::string()> holders;  // largest users, for the error: "tensor 'w' 512.0 MiB, ..."
};

class MemoryAllocator {
public:
    MemoryAllocator(DeviceContext& context, const MemoryOptions& options, MemoryCallbacks callbacks);
    ~MemoryAllocator();

    // First collect the objects that the device has finished with, without holding a lock: they may hold the
    // missing memory. Throws Error(out_of_memory) that names `what`, its size and the heaps' state.
    // Thread-safe, like the whole class. `own`: bytes of the object itself, if the driver requires more; 0:
    // all. `priority`: from 0 to 1, of what shall stay in device memory; one that is not the default takes a
    // block of its own.
    [[nodiscard]] Allocation allocate(const VkMemoryRequirements& needs, MemoryUse use, MemoryPool pool,
                                      const char* what, uint64_t own = 0, float priority = default_priority);
    // True if the device heeds priorities.
    [[nodiscard]] bool has_priorities() const noexcept;
    // A host-visible range inside a block's own VkBuffer, for copies to and from the device.
    [[nodiscard]] Allocation allocate_host_copy(uint64_t size, const char* what);

    // Takes ownership of memory that was allocated elsewhere; the allocation's destructor frees it. `mapped`:
    // its address for the host. `taken`: it was taken from the driver, after require_allocation(). Otherwise
    // it counts as imported.
    [[nodiscard]] Allocation adopt(VkDeviceMemory memory, uint32_t type, uint64_t size, std::byte* mapped,
                                   bool taken = false);

    // For work that may use any memory: flush all host writes in place (not to host copies) before it, and
    // invalidate for all device writes there after it. Does nothing if memory is coherent.
    [[nodiscard]] bool in_place_needs_sync() const noexcept { return in_place_needs_sync_; }
    void flush_in_place();
    void invalidate_in_place();

    [[nodiscard]] uint64_t atom() const noexcept { return atom_; }
    [[nodiscard]] uint64_t max_allocation() const noexcept { return max_allocation_; }

    // Gives empty blocks back to the driver; returns their bytes.
    uint64_t trim() noexcept;

    [[nodiscard]] std::array<HeapStatistics, VK_MAX_MEMORY_HEAPS> statistics();
    // Bytes in live allocations, of all heaps.
    [[nodiscard]] uint64_t used() noexcept;
    void reset_peak() noexcept;
    [[nodiscard]] const MemoryOptions& options() const noexcept { return options_; }
    // True if memory of host copies is cached by the CPU, so that reading it is fast.
    [[nodiscard]] bool host_copies_cached() const noexcept { return host_copies_cached_; }
    // Call it before memory is allocated outside our blocks. Throws Error(out_of_memory) that names `what` if
    // that is more than the device allocates at once, or one allocation more than it allows. `taken`: from
    // the driver, so that our limit counts.
    void require_allocation(uint64_t size, const char* what, bool taken = false);
    // Sentences about overwritten guard bytes of live allocations. Empty without MemoryOptions::debug.
    [[nodiscard]] std::vector<std::string> check_guards();
    // The memory types among these bits that serve `use` and have all of these properties, best first.
    [[nodiscard]] std::vector<uint32_t> types_with(MemoryUse use, uint32_t type_bits,
                                                   VkMemoryPropertyFlags required) const;
    // True if a memory type among these bits is both device-local and host-visible.
    [[nodiscard]] bool has_device_and_host(uint32_t type_bits) const noexcept;

private:
    friend class Allocation;
    friend struct MemoryBlock;
    struct Request {
        uint64_t size = 0;
        uint64_t own = 0;  // bytes of it that our code may write; the rest is guarded too
        uint64_t alignment = 1;
        MemoryUse use = MemoryUse::device;
        MemoryPool pool = MemoryPool::buffers;
        const char* what = "";
        float priority = default_priority;
        uint64_t front = 0;  // guards; they depend on the type
        uint64_t tail = 0;
        [[nodiscard]] uint64_t footprint() const noexcept { return front + size + tail; }
    };
    void release(MemoryBlock* block, uint64_t offset, uint64_t size, uint32_t node) noexcept;
    // Flushes host writes that are no longer needed. Otherwise they would go out later, over the writes of
    // the next owner's device work.
    void clean_lines(const MemoryBlock& block, uint64_t offset, uint64_t size) noexcept;
    Allocation try_types(uint32_t type_bits, const Request& request);
    // `within_budget`: makes no block that exceeds the driver's budget.
    Allocation allocate_in(uint32_t type, Request request, bool within_budget);
    [[nodiscard]] Allocation take(MemoryBlock& block, const Request& request);
    MemoryBlock* make_block(uint32_t type, const Request& request, uint64_t size, bool dedicated,
                            VkResult& result);
    void destroy_block(MemoryBlock* block) noexcept;
    void forget_block(const MemoryBlock& block) noexcept;
    void count_adopted(const MemoryBlock& block, bool comes) noexcept;
    uint64_t trim_locked() noexcept;
    // Bytes taken from the driver that nothing uses: those of empty blocks.
    [[nodiscard]] uint64_t idle_locked() const noexcept;
    [[nodiscard]] uint64_t live_allocations() const noexcept;
    [[noreturn]] void refuse_size(uint64_t size, const char* what) const;
    [[noreturn]] void refuse_count(const char* what) const;
    [[noreturn]] void refuse(const Request& request, VkResult result, bool limited, const std::string& heaps);
    [[nodiscard]] VkMemoryPropertyFlags flags_of(uint32_t type) const noexcept;
    // Bytes that remain below the limit, and below the driver's budget of a heap.
    [[nodiscard]] uint64_t below_limit() const noexcept;
    [[nodiscard]] uint64_t below_budget(uint32_t heap) noexcept;
    void refresh_budget(bool now) noexcept;
    [[nodiscard]] std::string describe_heaps() const;

    // -- guards; see memory/guard.hpp
    void guard(MemoryBlock& block, uint32_t node, uint64_t offset, const Request& request);
    // The fault of the guards, or "".
    [[nodiscard]] std::string inspect(MemoryBlock& block, const GuardedRange& guarded);
    void unguard(MemoryBlock& block, uint32_t node) noexcept;
    void relabel(MemoryBlock& block, uint32_t node, const std::string& label);
    void sync_guards(MemoryBlock& block, const GuardedRange& guarded, bool from_host) noexcept;

    [[nodiscard]] std::vector<VkMappedMemoryRange> in_place() const;

    struct Pool {
        std::vector<std::unique_ptr<MemoryBlock>> blocks;
    };

    DeviceContext& context_;
    const MemoryCallbacks callbacks_;
    const VkPhysicalDeviceMemoryProperties& properties_;
    const MemoryOptions options_;
    uint64_t atom_;
    const uint64_t max_allocation_;  // maxMemoryAllocationSize
    bool host_copies_cached_ = false;
    std::vector<std::unique_ptr<MemoryBlock>> adopted_;
    mutable RankedMutex mutex_{LockRank::memory};
    std::array<std::array<Pool, 3>, VK_MAX_MEMORY_TYPES> pools_;
    std::array<HeapStatistics, VK_MAX_MEMORY_HEAPS> heaps_{};
    VkResult last_result_ = VK_SUCCESS;
    bool limited_ = false;  // our limit, not the driver, refused last
    // The driver's answer, and our reserved bytes at that time: between queries we count ourselves.
    bool has_budget_ = false;
    bool in_place_needs_sync_ = false;  // some memory that the host accesses is not coherent
    std::chrono::steady_clock::time_point budget_time_{};
    uint64_t room_then_[VK_MAX_MEMORY_HEAPS]{};
    uint64_t reserved_then_[VK_MAX_MEMORY_HEAPS]{};
    std::atomic<uint32_t> host_copy_types_{
        0};  // type bits for a host copy's block buffer; 0: not queried yet
    std::array<std::vector<uint32_t>, 3>
        ranked_;  // by use, over all types; filtered by type bits at the call
};

}  // namespace kp
