#include "memory.hpp"

#include "device.hpp"
#include "error.hpp"
#include "first_touch.hpp"

#include <algorithm>
#include <bit>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace kp {
namespace {

constexpr uint64_t first_block = uint64_t{1} << 20;
constexpr uint64_t largest_block = uint64_t{64} << 20;
constexpr uint64_t huge_page = uint64_t{2} << 20;
constexpr uint64_t host_copy_alignment = 64;  // a cache line; also a multiple of every texel size

uint64_t round_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

// CPU drivers hand out anonymous memory: with huge pages the first touch of 64 MiB takes 32 page faults, not 16,384. On
// other mappings the kernel refuses the advice, which costs nothing.
void advise_huge_pages(void* address, uint64_t size) {
#ifdef __linux__
    if (size < huge_page_threshold) return;
    constexpr uintptr_t page = 4096;
    const uintptr_t begin = (reinterpret_cast<uintptr_t>(address) + page - 1) & ~(page - 1);
    const uintptr_t end = (reinterpret_cast<uintptr_t>(address) + size) & ~(page - 1);
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
    (void)address;
    (void)size;
#endif
}

std::string mebibytes(uint64_t bytes) {
    const uint64_t tenths = bytes * 10 / (uint64_t{1} << 20);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " MiB";
}

}  // namespace

struct MemoryBlock {
    MemoryAllocator* owner = nullptr;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    VkBuffer buffer = VK_NULL_HANDLE;
    std::byte* mapped = nullptr;
    uint64_t size = 0;      // what the ranges divide
    uint64_t bias = 0;      // where they begin in the memory
    uint64_t reserved = 0;  // what the driver gave
    uint32_t type = 0;
    MemoryPool pool = MemoryPool::buffers;
    VkMemoryPropertyFlags flags = 0;
    bool dedicated = false;
    bool adopted = false;
    FreeList ranges;

    explicit MemoryBlock(uint64_t bytes) : size(bytes), ranges(bytes) {}
};

Allocation::~Allocation() {
    if (block_) block_->owner->release(block_, size_, node_);
}

void Allocation::swap(Allocation& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(offset_, other.offset_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
    std::swap(node_, other.node_);
}

VkDeviceMemory Allocation::memory() const noexcept { return block_ ? block_->memory : VK_NULL_HANDLE; }
VkBuffer Allocation::block_buffer() const noexcept { return block_ ? block_->buffer : VK_NULL_HANDLE; }
bool Allocation::coherent() const noexcept {
    return block_ && (block_->flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
}
bool Allocation::device_local() const noexcept {
    return block_ && (block_->flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
}

VkMappedMemoryRange Allocation::mapped_range() const noexcept {
    VkMappedMemoryRange range{VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE};
    range.memory = memory();
    range.offset = offset_;
    range.size = size_;
    return range;
}

VkMappedMemoryRange Allocation::mapped_range(uint64_t offset, uint64_t size) const noexcept {
    VkMappedMemoryRange range = mapped_range();
    if (!block_) return range;
    // Offset and size of the allocation are multiples of the atom, so rounding never leaves it.
    const uint64_t atom = block_->owner->atom_;
    const uint64_t begin = offset / atom * atom;
    range.offset += begin;
    range.size = std::min(round_up(offset + size, atom), size_) - begin;
    return range;
}

MemoryAllocator::MemoryAllocator(Device& device)
    : device_(device),
      properties_(device.physical().memory),
      atom_(std::max<uint64_t>(1, device.physical().properties.limits.nonCoherentAtomSize)) {
    for (uint32_t i = 0; i < properties_.memoryHeapCount; ++i) {
        heaps_[i].size = properties_.memoryHeaps[i].size;
        heaps_[i].device_local = properties_.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
    }
    for (const auto use : {MemoryUse::device, MemoryUse::host, MemoryUse::device_and_host})
        ranked_[static_cast<size_t>(use)] = rank(UINT32_MAX, use);
}

MemoryAllocator::~MemoryAllocator() {
    for (auto& by_pool : pools_)
        for (auto& pool : by_pool)
            for (auto& block : pool.blocks) destroy_block(block.get());
    for (auto& block : adopted_) destroy_block(block.get());
}

std::vector<uint32_t> MemoryAllocator::rank(uint32_t type_bits, MemoryUse use) const {
    struct Ranked {
        int score;
        uint32_t type;
    };
    std::vector<Ranked> order;
    for (uint32_t i = 0; i < properties_.memoryTypeCount; ++i) {
        if (!(type_bits & (1u << i))) continue;
        const VkMemoryPropertyFlags flags = properties_.memoryTypes[i].propertyFlags;
        if (flags & (VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
                     VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD))
            continue;
        const bool local = flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
        const bool visible = flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
        const bool cached = flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
        const bool coherent = flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        int score = 0;
        switch (use) {
        case MemoryUse::device:
            // On a discrete GPU the host-visible part of its memory is small: leave it to those who ask for it.
            score = (local ? 8 : 0) + (visible ? 0 : 1);
            break;
        case MemoryUse::host:
            if (!visible) continue;
            // Reading uncached memory is tens of times slower than flushing cached memory.
            score = (cached ? 8 : 0) + (local ? 0 : 4) + (coherent ? 2 : 0);
            break;
        case MemoryUse::device_and_host:
            if (!visible) continue;
            score = (local ? 16 : 0) + (cached ? 8 : 0) + (coherent ? 2 : 0);
            break;
        }
        order.push_back({score, i});
    }
    // The enumeration order breaks ties, as Vulkan sorts types by performance.
    std::stable_sort(order.begin(), order.end(),
                     [](const Ranked& a, const Ranked& b) { return a.score > b.score; });
    std::vector<uint32_t> types;
    for (const auto& entry : order) types.push_back(entry.type);
    return types;
}

bool MemoryAllocator::has_device_and_host(uint32_t type_bits) const noexcept {
    constexpr VkMemoryPropertyFlags both =
        VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    for (uint32_t i = 0; i < properties_.memoryTypeCount; ++i)
        if ((type_bits & (1u << i)) && (properties_.memoryTypes[i].propertyFlags & both) == both) return true;
    return false;
}

MemoryBlock* MemoryAllocator::make_block(uint32_t type, MemoryPool pool, uint64_t size, uint64_t alignment,
                                         bool dedicated, VkResult& result) {
    auto& vk = device_.vk();
    auto& heap = heaps_[properties_.memoryTypes[type].heapIndex];
    auto block = std::make_unique<MemoryBlock>(size);
    // A CPU driver's memory begins where malloc put it. What begins on a huge page is in huge pages from end to end, and
    // copies at memcpy's rate; the bytes that this skips are never touched, so they cost address space alone.
    const bool aligns = dedicated && size >= huge_page_threshold && size + huge_page <= heap.size &&
                        device_.physical().properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    block->reserved = aligns ? size + huge_page : size;
    block->owner = this;
    block->type = type;
    block->pool = pool;
    block->dedicated = dedicated;
    block->flags = properties_.memoryTypes[type].propertyFlags;

    VkMemoryRequirements needs{};
    needs.size = block->reserved;
    if (pool == MemoryPool::host_copies) {
        VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
        create.size = block->reserved;
        create.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
        device_.share(create);
        result = vk.vkCreateBuffer(device_.handle(), &create, nullptr, &block->buffer);
        if (result != VK_SUCCESS) return nullptr;
        vk.vkGetBufferMemoryRequirements(device_.handle(), block->buffer, &needs);
    }

    VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = type;
    if (device_.buffer_addresses() && pool == MemoryPool::buffers) allocate.pNext = &flags;
    result = vk.vkAllocateMemory(device_.handle(), &allocate, nullptr, &block->memory);
    if (result == VK_SUCCESS && block->buffer != VK_NULL_HANDLE)
        result = vk.vkBindBufferMemory(device_.handle(), block->buffer, block->memory, 0);
    if (result == VK_SUCCESS && (block->flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) {
        void* address = nullptr;
        result = vk.vkMapMemory(device_.handle(), block->memory, 0, VK_WHOLE_SIZE, 0, &address);
        block->mapped = static_cast<std::byte*>(address);
        if (result == VK_SUCCESS) advise_huge_pages(address, needs.size);
        const uint64_t skip = (huge_page - reinterpret_cast<uintptr_t>(address) % huge_page) % huge_page;
        if (result == VK_SUCCESS && aligns && skip % alignment == 0) block->bias = skip;
    }
    if (result != VK_SUCCESS) {
        destroy_block(block.get());
        return nullptr;
    }
    heap.reserved += block->reserved;
    ++heap.blocks;
    auto& blocks = pools_[type][static_cast<size_t>(pool)].blocks;
    blocks.push_back(std::move(block));
    return blocks.back().get();
}

void MemoryAllocator::destroy_block(MemoryBlock* block) noexcept {
    auto& vk = device_.vk();
    if (block->buffer != VK_NULL_HANDLE) vk.vkDestroyBuffer(device_.handle(), block->buffer, nullptr);
    if (block->memory != VK_NULL_HANDLE) vk.vkFreeMemory(device_.handle(), block->memory, nullptr);
    block->buffer = VK_NULL_HANDLE;
    block->memory = VK_NULL_HANDLE;
}

Allocation MemoryAllocator::allocate_in(uint32_t type, MemoryPool pool_kind, uint64_t size,
                                        uint64_t alignment) {
    Pool& pool = pools_[type][static_cast<size_t>(pool_kind)];
    auto& heap = heaps_[properties_.memoryTypes[type].heapIndex];
    const auto& flags = properties_.memoryTypes[type].propertyFlags;
    if ((flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) && !(flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)) {
        alignment = std::max(alignment, atom_);
        size = round_up(size, atom_);
    }
    // An eighth of the heap at most: on a 256 MiB heap blocks stop at 32 MiB.
    const uint64_t block_limit =
        std::max(first_block, std::min(largest_block, std::bit_floor(heap.size / 8)));

    const auto take = [&](MemoryBlock* block) -> Allocation {
        const auto range = block->ranges.allocate(size, alignment);
        if (!range) return {};
        Allocation allocation;
        allocation.block_ = block;
        allocation.offset_ = block->bias + range->offset;
        allocation.size_ = size;
        allocation.node_ = range->node;
        allocation.mapped_ = block->mapped ? block->mapped + allocation.offset_ : nullptr;
        heap.used += size;
        heap.peak = std::max(heap.peak, heap.used);
        ++heap.allocations;
        return allocation;
    };

    const bool dedicated = size > block_limit / 2;
    if (!dedicated) {
        // The newest blocks are the largest and the most likely to have room.
        for (auto it = pool.blocks.rbegin(); it != pool.blocks.rend(); ++it)
            if (!(*it)->dedicated)
                if (auto allocation = take(it->get())) return allocation;
    }
    VkResult result = VK_SUCCESS;
    if (size > heap.size) {  // asking for it is invalid use, not a way to be refused
        last_result_ = VK_ERROR_OUT_OF_DEVICE_MEMORY;
        return {};
    }
    if (dedicated) {
        MemoryBlock* block = make_block(type, pool_kind, size, alignment, true, result);
        last_result_ = result;
        return block ? take(block) : Allocation{};
    }
    uint64_t wanted = std::max(pool.next_size, first_block);
    while (wanted < size * 2) wanted *= 2;
    wanted = std::min(wanted, block_limit);
    // A nearly full heap may still have room for less than a whole block.
    for (;; wanted = std::max(size, wanted / 2)) {
        MemoryBlock* block = make_block(type, pool_kind, wanted, alignment, false, result);
        last_result_ = result;
        if (block) {
            pool.next_size = std::min(wanted * 2, block_limit);
            return take(block);
        }
        if (wanted == size ||
            (result != VK_ERROR_OUT_OF_DEVICE_MEMORY && result != VK_ERROR_OUT_OF_HOST_MEMORY))
            return {};
    }
}

Allocation MemoryAllocator::allocate(const VkMemoryRequirements& needs, MemoryUse use, MemoryPool pool,
                                     const char* what) {
    device_.retired().collect();
    const std::lock_guard lock(mutex_);
    last_result_ = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    for (const uint32_t type : ranked_[static_cast<size_t>(use)]) {
        if (!(needs.memoryTypeBits & (1u << type))) continue;
        if (auto allocation = allocate_in(type, pool, needs.size, needs.alignment)) return allocation;
    }
    const VkResult result = last_result_;
    if (result != VK_ERROR_OUT_OF_DEVICE_MEMORY && result != VK_ERROR_OUT_OF_HOST_MEMORY)
        throw_vk(result, "vkAllocateMemory", what);
    throw Error(ErrorKind::out_of_memory,
                std::string("Out of device memory: ") + what + " needs " + mebibytes(needs.size) +
                    ". Heaps: " + describe_heaps() +
                    ". Free tensors with destroy(), use smaller ones, or use another device",
                result);
}

Allocation MemoryAllocator::allocate_host_copy(uint64_t size, const char* what) {
    if (host_copy_types_ == 0) {
        // Which types a transfer buffer may live in does not depend on its size; ask once.
        VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
        create.size = 4096;
        create.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
        device_.share(create);
        VkBuffer buffer = VK_NULL_HANDLE;
        check_vk(device_.vk().vkCreateBuffer(device_.handle(), &create, nullptr, &buffer), "vkCreateBuffer",
                 what);
        VkMemoryRequirements probe{};
        device_.vk().vkGetBufferMemoryRequirements(device_.handle(), buffer, &probe);
        device_.vk().vkDestroyBuffer(device_.handle(), buffer, nullptr);
        const std::lock_guard lock(mutex_);
        host_copy_types_ = probe.memoryTypeBits;
    }
    VkMemoryRequirements needs{};
    needs.size = round_up(size, host_copy_alignment);
    needs.alignment = host_copy_alignment;
    needs.memoryTypeBits = host_copy_types_;
    return allocate(needs, MemoryUse::host, MemoryPool::host_copies, what);
}

Allocation MemoryAllocator::adopt(VkDeviceMemory memory, uint32_t type, uint64_t size, std::byte* mapped) {
    auto block = std::make_unique<MemoryBlock>(size);
    const std::lock_guard lock(mutex_);
    auto& place = adopted_.emplace_back();
    // From here on nothing throws: until then the memory is the caller's.
    block->owner = this;
    block->memory = memory;
    block->mapped = mapped;
    block->type = type;
    block->flags = properties_.memoryTypes[type].propertyFlags;
    block->adopted = true;
    place = std::move(block);
    Allocation allocation;
    allocation.block_ = place.get();
    allocation.size_ = size;
    allocation.mapped_ = mapped;
    return allocation;
}

void MemoryAllocator::release(MemoryBlock* block, uint64_t size, uint32_t node) noexcept {
    const std::lock_guard lock(mutex_);
    if (block->adopted) {
        destroy_block(block);
        std::erase_if(adopted_, [&](const auto& other) { return other.get() == block; });
        return;
    }
    block->ranges.release(node);
    auto& heap = heaps_[properties_.memoryTypes[block->type].heapIndex];
    heap.used -= size;
    --heap.allocations;
    if (!block->ranges.empty()) return;
    // One empty block a pool is kept, so that a loop that makes and drops one tensor does not call the driver each time.
    auto& pool = pools_[block->type][static_cast<size_t>(block->pool)];
    if (!block->dedicated) {
        const bool other_empty = std::any_of(pool.blocks.begin(), pool.blocks.end(), [&](const auto& other) {
            return other.get() != block && other->ranges.empty();
        });
        if (!other_empty) return;
    }
    heap.reserved -= block->reserved;
    --heap.blocks;
    destroy_block(block);
    std::erase_if(pool.blocks, [&](const auto& other) { return other.get() == block; });
}

void MemoryAllocator::trim() noexcept {
    const std::lock_guard lock(mutex_);
    for (auto& pools : pools_)
        for (auto& pool : pools)
            std::erase_if(pool.blocks, [&](const auto& block) {
                if (!block->ranges.empty()) return false;
                auto& heap = heaps_[properties_.memoryTypes[block->type].heapIndex];
                heap.reserved -= block->reserved;
                --heap.blocks;
                destroy_block(block.get());
                return true;
            });
}

std::array<HeapStatistics, VK_MAX_MEMORY_HEAPS> MemoryAllocator::statistics() const {
    const std::lock_guard lock(mutex_);
    return heaps_;
}

std::string MemoryAllocator::describe_heaps() const {
    std::string text;
    for (uint32_t i = 0; i < properties_.memoryHeapCount; ++i) {
        const auto& heap = heaps_[i];
        text += (text.empty() ? "" : "; ") + std::string("heap ") + std::to_string(i) +
                (heap.device_local ? " (device): " : " (host): ") + mebibytes(heap.used) + " in " +
                std::to_string(heap.allocations) + " allocations, " + mebibytes(heap.reserved) +
                " reserved of " + mebibytes(heap.size);
    }
    return text;
}

}  // namespace kp
