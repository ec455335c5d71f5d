// Device memory in blocks: a few large vkAllocateMemory calls, offsets inside them handed out by FreeList.
//
// The model. Each pair (memory type, pool) owns a list of blocks. Blocks start at 1 MiB and double to 64 MiB (less on a small
// heap), so a small script commits little and a large one makes few driver calls. A request above half the largest block
// gets an allocation of its own. Host-visible blocks stay mapped for their whole life. Pools keep apart what must not share
// a page: buffers (linear), images in optimal tiling (bufferImageGranularity) and host copies, whose blocks carry one VkBuffer
// over the whole block so that a host copy costs no Vulkan object of its own.
//
// Non-coherent memory: offsets and sizes are multiples of nonCoherentAtomSize, so that flushing one object never touches a
// neighbour. Protected and lazily allocated types are never picked.
#pragma once

#include "free_list.hpp"
#include "vulkan.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kp {

class Device;
class MemoryAllocator;
struct MemoryBlock;

enum class MemoryPool : uint8_t { buffers, images, host_copies };

// How the memory will be used; each tries a list of property sets in order of preference.
enum class MemoryUse : uint8_t {
    device,           // device-local; the host need not see it
    host,             // host-visible, cached where possible; outside device memory where there is a choice
    device_and_host,  // device-local and host-visible; falls back to `host`
};

// A live range of device memory; gives it back when it dies.
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
    [[nodiscard]] std::byte* mapped() const noexcept { return mapped_; }  // null when the host cannot see it
    [[nodiscard]] bool coherent() const noexcept;
    [[nodiscard]] bool device_local() const noexcept;
    // The range to flush or invalidate; only meaningful where !coherent(). Of a part: the atoms that hold it.
    [[nodiscard]] VkMappedMemoryRange mapped_range() const noexcept;
    [[nodiscard]] VkMappedMemoryRange mapped_range(uint64_t offset, uint64_t size) const noexcept;

private:
    friend class MemoryAllocator;
    void swap(Allocation& other) noexcept;

    MemoryBlock* block_ = nullptr;
    uint64_t offset_ = 0;
    uint64_t size_ = 0;
    std::byte* mapped_ = nullptr;
    uint32_t node_ = UINT32_MAX;
};

struct HeapStatistics {
    uint64_t size = 0;  // bytes of the heap, as the device reports
    bool device_local = false;
    uint64_t reserved = 0;  // bytes taken from the driver
    uint64_t used = 0;      // bytes in live allocations
    uint64_t peak = 0;      // most bytes ever in live allocations
    uint32_t blocks = 0;
    uint32_t allocations = 0;
};

class MemoryAllocator {
public:
    explicit MemoryAllocator(Device& device);
    ~MemoryAllocator();

    // Throws Error(out_of_memory) that names `what`, its size and the heaps' state. Thread-safe, as all of this class.
    [[nodiscard]] Allocation allocate(const VkMemoryRequirements& needs, MemoryUse use, MemoryPool pool,
                                      const char* what);
    // A host-visible range inside a block's own VkBuffer, for copies to and from the device.
    [[nodiscard]] Allocation allocate_host_copy(uint64_t size, const char* what);

    // Takes over memory that was made elsewhere, and frees it when the allocation dies. `mapped` is where the host sees
    // it. It counts towards no heap: it is the process's memory, not the driver's.
    [[nodiscard]] Allocation adopt(VkDeviceMemory memory, uint32_t type, uint64_t size, std::byte* mapped);

    // Gives the blocks that hold nothing back to the driver.
    void trim() noexcept;

    [[nodiscard]] std::array<HeapStatistics, VK_MAX_MEMORY_HEAPS> statistics() const;
    // Whether `device_and_host` finds memory that is both, among these type bits.
    [[nodiscard]] bool has_device_and_host(uint32_t type_bits) const noexcept;

private:
    friend class Allocation;
    void release(MemoryBlock* block, uint64_t size, uint32_t node) noexcept;
    Allocation allocate_in(uint32_t type, MemoryPool pool, uint64_t size, uint64_t alignment);
    MemoryBlock* make_block(uint32_t type, MemoryPool pool, uint64_t size, uint64_t alignment, bool dedicated,
                            VkResult& result);
    void destroy_block(MemoryBlock* block) noexcept;
    // Memory types in order of preference for `use`.
    [[nodiscard]] std::vector<uint32_t> rank(uint32_t type_bits, MemoryUse use) const;
    [[nodiscard]] std::string describe_heaps() const;

    struct Pool {
        std::vector<std::unique_ptr<MemoryBlock>> blocks;
        uint64_t next_size = 0;
    };

    Device& device_;
    const VkPhysicalDeviceMemoryProperties& properties_;
    uint64_t atom_;
    std::vector<std::unique_ptr<MemoryBlock>> adopted_;
    mutable std::mutex mutex_;
    std::array<std::array<Pool, 3>, VK_MAX_MEMORY_TYPES> pools_;
    std::array<HeapStatistics, VK_MAX_MEMORY_HEAPS> heaps_{};
    VkResult last_result_ = VK_SUCCESS;
    std::atomic<uint32_t> host_copy_types_{
        0};  // type bits that a host copy's block buffer may live in; 0: not asked yet
    std::array<std::vector<uint32_t>, 3>
        ranked_;  // by use, over all types; filtered by type bits at the call
};

}  // namespace kp
