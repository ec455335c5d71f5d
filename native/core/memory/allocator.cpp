#include "memory/allocator.hpp"

#include "adapter/context.hpp"
#include "base/error.hpp"
#include "base/first_touch.hpp"
#include "base/mebibytes.hpp"
#include "memory/block_growth.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace kp {
namespace {

constexpr auto in_place_memory = "memory that an operation may use without saying so";
constexpr uint64_t huge_page = uint64_t{2} << 20;
constexpr uint64_t least_page = 4096;
constexpr uint64_t host_copy_alignment = 64;  // a cache line; also a multiple of every texel size

uint64_t round_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

// CPU drivers hand out anonymous memory: with huge pages the first touch of 64 MiB takes 32 page faults, not
// 16,384. On other mappings the kernel refuses the advice, which costs nothing.
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

uint64_t largest_block(uint64_t heap, const MemoryOptions& options, uint64_t max_allocation) {
    uint64_t largest = std::min(largest_block_on(heap, options.largest_block), max_allocation);
    if (options.limit != 0) largest = std::min(largest, largest_block_under(options.limit, largest));
    return largest;
}

}  // namespace

Allocation::~Allocation() {
    if (block_ && owns_) block_->owner->release(block_, offset_, size_, node_);
}

void Allocation::swap(Allocation& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(offset_, other.offset_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
    std::swap(node_, other.node_);
    std::swap(owns_, other.owns_);
}

Allocation Allocation::part(uint64_t offset, uint64_t size) const noexcept {
    Allocation part;
    part.block_ = block_;
    part.offset_ = offset_ + offset;
    part.size_ = size;
    part.mapped_ = mapped_ ? mapped_ + offset : nullptr;
    part.owns_ = false;
    return part;
}

VkDeviceMemory Allocation::memory() const noexcept { return block_ ? block_->memory : VK_NULL_HANDLE; }
VkBuffer Allocation::block_buffer() const noexcept { return block_ ? block_->buffer : VK_NULL_HANDLE; }
bool Allocation::coherent() const noexcept {
    return block_ && (block_->flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
}
bool Allocation::device_local() const noexcept {
    return block_ && (block_->flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
}

uint32_t Allocation::type() const noexcept { return block_ ? block_->type : UINT32_MAX; }

float Allocation::priority() const noexcept { return block_ ? block_->priority : default_priority; }

bool Allocation::cached() const noexcept {
    return block_ && (block_->flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
}

void Allocation::set_label(const std::string& label) {
    if (block_) block_->owner->relabel(*block_, node_, label);
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

MemoryAllocator::MemoryAllocator(DeviceContext& context, const MemoryOptions& options,
                                 MemoryCallbacks callbacks)
    : context_(context),
      callbacks_(std::move(callbacks)),
      properties_(context.physical().memory),
      options_(options),
      atom_(std::max<uint64_t>(1, context.physical().properties.limits.nonCoherentAtomSize)),
      max_allocation_(context.physical().max_allocation) {
    for (uint32_t i = 0; i < properties_.memoryHeapCount; ++i) {
        heaps_[i].size = properties_.memoryHeaps[i].size;
        heaps_[i].device_local = properties_.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
    }
    for (const auto use : {MemoryUse::device, MemoryUse::host, MemoryUse::device_and_host})
        ranked_[static_cast<size_t>(use)] = rank_memory_types(properties_, use);
    if (const auto& host = ranked_[static_cast<size_t>(MemoryUse::host)]; !host.empty())
        host_copies_cached_ =
            properties_.memoryTypes[host.front()].propertyFlags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    const auto& enabled = context.enabled_extensions();
    has_budget_ =
        std::find(enabled.begin(), enabled.end(), VK_EXT_MEMORY_BUDGET_EXTENSION_NAME) != enabled.end();
    for (uint32_t type = 0; type < properties_.memoryTypeCount; ++type)
        if (const auto flags = flags_of(type);
            (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) && !(flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT))
            in_place_needs_sync_ = true;
}

MemoryAllocator::~MemoryAllocator() {
    for (auto& by_pool : pools_)
        for (auto& pool : by_pool)
            for (auto& block : pool.blocks) destroy_block(block.get());
    for (auto& block : adopted_) destroy_block(block.get());
}

VkMemoryPropertyFlags MemoryAllocator::flags_of(uint32_t type) const noexcept {
    VkMemoryPropertyFlags flags = properties_.memoryTypes[type].propertyFlags;
    if (options_.force_non_coherent) flags &= ~VkMemoryPropertyFlags{VK_MEMORY_PROPERTY_HOST_COHERENT_BIT};
    return flags;
}

uint64_t MemoryAllocator::below_limit() const noexcept {
    if (options_.limit == 0) return UINT64_MAX;
    uint64_t reserved = 0;
    for (uint32_t i = 0; i < properties_.memoryHeapCount; ++i) reserved += heaps_[i].reserved;
    return options_.limit > reserved ? options_.limit - reserved : 0;
}

void MemoryAllocator::refresh_budget(bool now) noexcept {
    if (!has_budget_) return;
    // Other processes change it slowly; our own use is counted without a query.
    const auto time = std::chrono::steady_clock::now();
    if (!now && time - budget_time_ < std::chrono::milliseconds(50)) return;
    budget_time_ = time;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    properties.pNext = &budget;
    vkGetPhysicalDeviceMemoryProperties2(context_.physical().handle, &properties);
    for (uint32_t i = 0; i < properties_.memoryHeapCount; ++i) {
        heaps_[i].budget = budget.heapBudget[i];
        room_then_[i] =
            budget.heapBudget[i] > budget.heapUsage[i] ? budget.heapBudget[i] - budget.heapUsage[i] : 0;
        reserved_then_[i] = heaps_[i].reserved;
    }
}

uint64_t MemoryAllocator::below_budget(uint32_t heap) noexcept {
    refresh_budget(false);
    const auto& now = heaps_[heap];
    if (!has_budget_) return now.size > now.reserved ? now.size - now.reserved : 0;
    const uint64_t room = room_then_[heap] + reserved_then_[heap];
    return room > now.reserved ? room - now.reserved : 0;
}

std::vector<uint32_t> MemoryAllocator::types_with(MemoryUse use, uint32_t type_bits,
                                                  VkMemoryPropertyFlags required) const {
    std::vector<uint32_t> types;
    for (const uint32_t type : ranked_[static_cast<size_t>(use)])
        if ((type_bits & (1u << type)) &&
            (properties_.memoryTypes[type].propertyFlags & required) == required)
            types.push_back(type);
    return types;
}

bool MemoryAllocator::has_priorities() const noexcept {
    return context_.enabled().memory_priority.memoryPriority;
}

bool MemoryAllocator::has_device_and_host(uint32_t type_bits) const noexcept {
    constexpr VkMemoryPropertyFlags both =
        VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    for (uint32_t i = 0; i < properties_.memoryTypeCount; ++i)
        if ((type_bits & (1u << i)) && (properties_.memoryTypes[i].propertyFlags & both) == both) return true;
    return false;
}

MemoryBlock* MemoryAllocator::make_block(uint32_t type, const Request& request, uint64_t size, bool dedicated,
                                         VkResult& result) {
    const MemoryPool pool = request.pool;
    auto& vk = context_.vk();
    auto& heap = heaps_[properties_.memoryTypes[type].heapIndex];
    auto block = std::make_unique<MemoryBlock>(size);
    // A CPU driver's memory begins at malloc's address. If a block begins on a huge page, it is in huge pages
    // throughout, and copies run at memcpy's rate. The skipped bytes are never touched, so they only cost
    // address space; but a limit counts them, so there are none under a limit.
    const bool for_one = dedicated || request.footprint() > size / 2;
    const bool aligns = for_one && size >= huge_page_threshold && size + huge_page <= heap.size &&
                        options_.limit == 0 && size + huge_page <= max_allocation_ &&
                        context_.physical().properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    block->reserved = aligns ? size + huge_page : size;
    block->owner = this;
    block->type = type;
    block->pool = pool;
    block->dedicated = dedicated;
    block->flags = flags_of(type);
    block->priority = request.priority;

    VkMemoryRequirements needs{};
    needs.size = block->reserved;
    if (pool == MemoryPool::host_copies) {
        VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
        create.size = block->reserved;
        create.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
        context_.share(create);
        result = vk.vkCreateBuffer(context_.handle(), &create, nullptr, &block->buffer);
        if (result != VK_SUCCESS) return nullptr;
        vk.vkGetBufferMemoryRequirements(context_.handle(), block->buffer, &needs);
    }

    VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate.allocationSize = needs.size;
    allocate.memoryTypeIndex = type;
    if (context_.buffer_addresses() && pool == MemoryPool::buffers) allocate.pNext = &flags;
    VkMemoryPriorityAllocateInfoEXT priority{VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT};
    priority.priority = request.priority;
    if (request.priority != default_priority) {
        priority.pNext = allocate.pNext;
        allocate.pNext = &priority;
    }
    if (needs.size > max_allocation_)
        result = VK_ERROR_OUT_OF_DEVICE_MEMORY;  // a block's buffer may need more than its size
    else if (live_allocations() >= context_.limits().maxMemoryAllocationCount)
        result = VK_ERROR_TOO_MANY_OBJECTS;
    else
        result = vk.vkAllocateMemory(context_.handle(), &allocate, nullptr, &block->memory);
    if (result == VK_SUCCESS && block->buffer != VK_NULL_HANDLE)
        result = vk.vkBindBufferMemory(context_.handle(), block->buffer, block->memory, 0);
    if (result == VK_SUCCESS && (block->flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) {
        void* address = nullptr;
        result = vk.vkMapMemory(context_.handle(), block->memory, 0, VK_WHOLE_SIZE, 0, &address);
        block->mapped = static_cast<std::byte*>(address);
        if (result == VK_SUCCESS) advise_huge_pages(address, needs.size);
        uint64_t skip = (huge_page - reinterpret_cast<uintptr_t>(address) % huge_page) % huge_page;
        if (!dedicated) skip = round_up(skip, least_page);  // for requests of other alignments
        if (result == VK_SUCCESS && aligns && skip % request.alignment == 0) block->bias = skip;
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
    auto& vk = context_.vk();
    if (block->buffer != VK_NULL_HANDLE) vk.vkDestroyBuffer(context_.handle(), block->buffer, nullptr);
    if (block->memory != VK_NULL_HANDLE) vk.vkFreeMemory(context_.handle(), block->memory, nullptr);
    block->buffer = VK_NULL_HANDLE;
    block->memory = VK_NULL_HANDLE;
}

void MemoryAllocator::forget_block(const MemoryBlock& block) noexcept {
    auto& heap = heaps_[properties_.memoryTypes[block.type].heapIndex];
    heap.reserved -= block.reserved;
    --heap.blocks;
}

Allocation MemoryAllocator::take(MemoryBlock& block, const Request& request) {
    if (block.bias % request.alignment != 0) return {};
    const auto range = block.ranges.allocate(request.footprint(), request.alignment);
    if (!range) return {};
    if (request.front != 0) {
        try {
            guard(block, range->node, block.bias + range->offset + request.front, request);
        } catch (...) {
            block.ranges.release(range->node);
            throw;
        }
    }
    auto& heap = heaps_[properties_.memoryTypes[block.type].heapIndex];
    Allocation allocation;
    allocation.block_ = &block;
    allocation.offset_ = block.bias + range->offset + request.front;
    allocation.size_ = request.size;
    allocation.node_ = range->node;
    heap.used += request.size;
    heap.peak = std::max(heap.peak, heap.used);
    ++heap.allocations;
    const bool staged = options_.force_staging && request.use == MemoryUse::device;
    allocation.mapped_ = block.mapped && !staged ? block.mapped + allocation.offset_ : nullptr;
    return allocation;
}

Allocation MemoryAllocator::allocate_in(uint32_t type, Request request, bool within_budget) {
    Pool& pool = pools_[type][static_cast<size_t>(request.pool)];
    const uint32_t heap_index = properties_.memoryTypes[type].heapIndex;
    const auto& heap = heaps_[heap_index];
    const VkMemoryPropertyFlags flags = flags_of(type);
    const bool visible = flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    const bool by_atoms = visible && !(flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    if (by_atoms) {
        request.alignment = std::max(request.alignment, atom_);
        request.size = round_up(request.size, atom_);
        // A guard has its own atoms: invalidating it must not undo the host's writes beside it.
        request.own = request.size;
    }
    if (options_.debug && visible) {
        request.front = round_up(guard_bytes, request.alignment);
        request.tail = by_atoms ? round_up(guard_bytes, atom_) : guard_bytes;
    }
    const uint64_t size = request.footprint();
    const uint64_t block_limit = largest_block(heap.size, options_, max_allocation_);
    if (size > max_allocation_) refuse_size(size, request.what);

    const bool dedicated = stands_alone(size, block_limit) || request.priority != default_priority;
    if (!dedicated) {
        // The newest blocks are the most likely to have room; the others empty in time.
        for (auto it = pool.blocks.rbegin(); it != pool.blocks.rend(); ++it)
            if (!(*it)->dedicated)
                if (auto allocation = take(**it, request)) return allocation;
    }
    last_result_ = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    if (size > heap.size) return {};  // such a request is invalid use, which a driver need not refuse cleanly
    uint64_t room = below_limit();
    if (size > room) {
        limited_ = true;
        return {};
    }
    if (within_budget) room = std::min(room, below_budget(heap_index));
    if (size > room) return {};
    VkResult result = VK_SUCCESS;
    if (dedicated) {
        MemoryBlock* block = make_block(type, request, size, true, result);
        last_result_ = result;
        return block ? take(*block, request) : Allocation{};
    }
    uint64_t held = 0;
    for (const auto& block : pool.blocks)
        if (!block->dedicated) held += block->reserved;
    uint64_t wanted = next_block(size, held, block_limit);
    while (wanted > room) wanted = std::max(size, wanted / 2);
    // A nearly full heap may still have room for less than a whole block.
    for (;; wanted = std::max(size, wanted / 2)) {
        MemoryBlock* block = make_block(type, request, wanted, false, result);
        last_result_ = result;
        if (block) return take(*block, request);
        if (wanted == size ||
            (result != VK_ERROR_OUT_OF_DEVICE_MEMORY && result != VK_ERROR_OUT_OF_HOST_MEMORY))
            return {};
    }
}

Allocation MemoryAllocator::try_types(uint32_t type_bits, const Request& request) {
    last_result_ = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    limited_ = false;
    // The driver's budget is an estimate. It tells which heap is full, but requests beyond it are still
    // tried.
    for (const bool within_budget : {true, false}) {
        uint32_t best_heap = UINT32_MAX;
        for (const uint32_t type : ranked_[static_cast<size_t>(request.use)]) {
            if (!(type_bits & (1u << type))) continue;
            const uint32_t heap = properties_.memoryTypes[type].heapIndex;
            if (best_heap == UINT32_MAX) best_heap = heap;
            auto allocation = allocate_in(type, request, within_budget);
            if (!allocation) continue;
            if (heap != best_heap && within_budget)
                context_.note_once("Memory heap " + std::to_string(best_heap) + " (" +
                                   mebibytes(heaps_[best_heap].size) +
                                   ") has no room left for what is best placed there: heap " +
                                   std::to_string(heap) + " serves instead, which may be slower");
            return allocation;
        }
    }
    return {};
}

Allocation MemoryAllocator::allocate(const VkMemoryRequirements& needs, MemoryUse use, MemoryPool pool,
                                     const char* what, uint64_t own, float priority) {
    const Request request{.size = needs.size,
                          .own = own != 0 ? own : needs.size,
                          .alignment = std::max<uint64_t>(1, needs.alignment),
                          .use = use,
                          .pool = pool,
                          .what = what,
                          .priority = has_priorities() ? priority : default_priority};
    VkResult result = VK_SUCCESS;
    bool limited = false;
    std::string heaps;
    // The staging ring is released last, because the next transfer takes it again.
    for (bool again = false;; again = true) {
        if (again && !callbacks_.on_pressure()) break;
        const std::lock_guard lock(mutex_);
        if (auto allocation = try_types(needs.memoryTypeBits, request)) return allocation;
        // Empty blocks of other types and sizes may hold the missing memory.
        if (trim_locked() != 0)
            if (auto allocation = try_types(needs.memoryTypeBits, request)) return allocation;
        result = last_result_;
        limited = limited_;
        heaps = describe_heaps();
    }
    refuse(request, result, limited, heaps);
}

uint64_t MemoryAllocator::live_allocations() const noexcept {
    uint64_t count = adopted_.size();
    for (const auto& heap : heaps_) count += heap.blocks;
    return count;
}

void MemoryAllocator::require_allocation(uint64_t size, const char* what, bool taken) {
    if (size > max_allocation_) refuse_size(size, what);
    const std::lock_guard lock(mutex_);
    if (taken && size > below_limit()) (void)trim_locked();
    if (taken && size > below_limit())
        throw Error(ErrorKind::out_of_memory, std::string("Out of device memory: ") + what + " needs " +
                                                  std::to_string(size) + " bytes, and memory_limit leaves " +
                                                  std::to_string(below_limit()) + ". " + describe_heaps());
    if (live_allocations() >= context_.limits().maxMemoryAllocationCount) refuse_count(what);
}

void MemoryAllocator::refuse_size(uint64_t size, const char* what) const {
    throw Error(ErrorKind::out_of_memory,
                std::string("Out of device memory: ") + what + " needs " + std::to_string(size) +
                    " bytes, but '" + context_.physical().properties.deviceName + "' allocates at most " +
                    std::to_string(max_allocation_) +
                    " bytes at once (maxMemoryAllocationSize): split it into several");
}

void MemoryAllocator::refuse_count(const char* what) const {
    throw Error(ErrorKind::out_of_memory,
                std::string("Out of device memory: ") + what + " needs an allocation of its own, but '" +
                    context_.physical().properties.deviceName + "' allows " +
                    std::to_string(context_.limits().maxMemoryAllocationCount) +
                    " (maxMemoryAllocationCount), and so many live. Free large tensors and imported arrays "
                    "with destroy(), or use fewer and larger ones");
}

void MemoryAllocator::refuse(const Request& request, VkResult result, bool limited,
                             const std::string& heaps) {
    if (!limited && result == VK_ERROR_TOO_MANY_OBJECTS) refuse_count(request.what);
    if (!limited && result != VK_ERROR_OUT_OF_DEVICE_MEMORY && result != VK_ERROR_OUT_OF_HOST_MEMORY)
        throw_vk(result, "vkAllocateMemory", request.what);
    std::string text = std::string(limited ? "Out of memory under the limit" : "Out of device memory") +
                       ": " + request.what + " needs " + mebibytes(request.size);
    if (limited) text += ", and this Manager takes at most " + mebibytes(options_.limit) + " (memory_limit)";
    text += ". Heaps: " + heaps;
    if (const std::string largest = callbacks_.holders(); !largest.empty()) text += ". Largest: " + largest;
    text += limited ? ". Free tensors with destroy(), use smaller ones, or raise memory_limit"
                    : ". Free tensors with destroy(), use smaller ones, or use another device";
    throw Error(ErrorKind::out_of_memory, text, limited ? VK_SUCCESS : result);
}

Allocation MemoryAllocator::allocate_host_copy(uint64_t size, const char* what) {
    if (host_copy_types_ == 0) {
        // The types that a transfer buffer may use do not depend on its size, so query them once.
        VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
        create.size = 4096;
        create.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
        context_.share(create);
        VkBuffer buffer = VK_NULL_HANDLE;
        check_vk(context_.vk().vkCreateBuffer(context_.handle(), &create, nullptr, &buffer), "vkCreateBuffer",
                 what);
        VkMemoryRequirements probe{};
        context_.vk().vkGetBufferMemoryRequirements(context_.handle(), buffer, &probe);
        context_.vk().vkDestroyBuffer(context_.handle(), buffer, nullptr);
        const std::lock_guard lock(mutex_);
        host_copy_types_ = probe.memoryTypeBits;
    }
    VkMemoryRequirements needs{};
    needs.size = round_up(size, host_copy_alignment);
    needs.alignment = host_copy_alignment;
    needs.memoryTypeBits = host_copy_types_;
    return allocate(needs, MemoryUse::host, MemoryPool::host_copies, what, size);
}

Allocation MemoryAllocator::adopt(VkDeviceMemory memory, uint32_t type, uint64_t size, std::byte* mapped,
                                  bool taken) {
    auto block = std::make_unique<MemoryBlock>(size);
    const std::lock_guard lock(mutex_);
    auto& place = adopted_.emplace_back();
    // From here on nothing throws: until now the caller owned the memory.
    block->owner = this;
    block->memory = memory;
    block->mapped = mapped;
    block->type = type;
    block->flags = properties_.memoryTypes[type].propertyFlags;
    block->adopted = true;
    block->taken = taken;
    count_adopted(*block, true);
    place = std::move(block);
    Allocation allocation;
    allocation.block_ = place.get();
    allocation.size_ = size;
    allocation.mapped_ = mapped;
    return allocation;
}

void MemoryAllocator::count_adopted(const MemoryBlock& block, bool comes) noexcept {
    auto& heap = heaps_[properties_.memoryTypes[block.type].heapIndex];
    const uint64_t bytes = comes ? block.size : uint64_t{0} - block.size;
    if (!block.taken) {
        heap.imported += bytes;
        return;
    }
    heap.reserved += bytes;
    heap.used += bytes;
    heap.peak = std::max(heap.peak, heap.used);
    heap.allocations += comes ? 1 : UINT32_MAX;
}

void MemoryAllocator::clean_lines(const MemoryBlock& block, uint64_t offset, uint64_t size) noexcept {
    VkMappedMemoryRange range{VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE};
    range.memory = block.memory;
    range.offset = offset;
    range.size = size;
    try {
        context_.flush({&range, 1}, "memory that is given back");
    } catch (const Error&) {
        return;  // out of host memory, and there is no caller to tell
    }
}

void MemoryAllocator::release(MemoryBlock* block, uint64_t offset, uint64_t size, uint32_t node) noexcept {
    const std::lock_guard lock(mutex_);
    auto& heap = heaps_[properties_.memoryTypes[block->type].heapIndex];
    if (block->adopted) {
        count_adopted(*block, false);
        destroy_block(block);
        std::erase_if(adopted_, [&](const auto& other) { return other.get() == block; });
        return;
    }
    if (options_.debug && block->mapped) unguard(*block, node);
    if (block->mapped && !block->dedicated && !(block->flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT))
        clean_lines(*block, offset, size);
    block->ranges.release(node);
    heap.used -= size;
    --heap.allocations;
    if (!block->ranges.empty()) return;
    auto& pool = pools_[block->type][static_cast<size_t>(block->pool)];
    if (!block->dedicated) {
        uint64_t held = 0;
        for (const auto& each : pool.blocks)
            if (!each->dedicated) held += each->reserved;
        const uint64_t largest = largest_block(heap.size, options_, max_allocation_);
        const uint64_t usual = usual_block(held, largest);
        const auto others = [&] {
            EmptyBlocks bytes;
            for (const auto& each : pool.blocks)
                if (each.get() != block && !each->dedicated && each->ranges.empty())
                    (each->size > usual ? bytes.larger : bytes.usual) += each->size;
            return bytes;
        };
        while (!keeps_empty(block->size, usual, others(), largest)) {
            // A larger block takes the place of those that became empty before it.
            const auto before = std::find_if(pool.blocks.begin(), pool.blocks.end(), [&](const auto& each) {
                return block->size > usual && each.get() != block && !each->dedicated && each->ranges.empty();
            });
            if (before == pool.blocks.end()) break;
            forget_block(**before);
            destroy_block(before->get());
            pool.blocks.erase(before);
        }
        if (keeps_empty(block->size, usual, others(), largest) &&
            (options_.idle_limit == UINT64_MAX || idle_locked() <= options_.idle_limit))
            return;
    }
    forget_block(*block);
    destroy_block(block);
    std::erase_if(pool.blocks, [&](const auto& other) { return other.get() == block; });
}

std::vector<VkMappedMemoryRange> MemoryAllocator::in_place() const {
    std::vector<VkMappedMemoryRange> ranges;
    if (!in_place_needs_sync_) return ranges;
    const auto add = [&](const MemoryBlock& block) {
        if (!block.mapped || (block.flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)) return;
        VkMappedMemoryRange range{VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE};
        range.memory = block.memory;
        range.size = VK_WHOLE_SIZE;
        ranges.push_back(range);
    };
    for (const auto& pools : pools_)
        for (const MemoryPool pool : {MemoryPool::buffers, MemoryPool::images})
            for (const auto& block : pools[static_cast<size_t>(pool)].blocks) add(*block);
    for (const auto& block : adopted_) add(*block);
    return ranges;
}

void MemoryAllocator::flush_in_place() {
    // Under the lock: a block that is freed meanwhile must not be named.
    const std::lock_guard lock(mutex_);
    context_.flush(in_place(), in_place_memory);
}

void MemoryAllocator::invalidate_in_place() {
    // Flush the host's writes first: invalidating would drop them.
    flush_in_place();
    const std::lock_guard lock(mutex_);
    context_.invalidate(in_place(), in_place_memory);
}

uint64_t MemoryAllocator::trim() noexcept {
    const std::lock_guard lock(mutex_);
    return trim_locked();
}

uint64_t MemoryAllocator::idle_locked() const noexcept {
    uint64_t bytes = 0;
    for (const auto& pools : pools_)
        for (const auto& pool : pools)
            for (const auto& block : pool.blocks)
                if (block->ranges.empty()) bytes += block->reserved;
    return bytes;
}

uint64_t MemoryAllocator::trim_locked() noexcept {
    uint64_t bytes = 0;
    for (auto& pools : pools_)
        for (auto& pool : pools) {
            std::erase_if(pool.blocks, [&](const auto& block) {
                if (!block->ranges.empty()) return false;
                bytes += block->reserved;
                forget_block(*block);
                destroy_block(block.get());
                return true;
            });
        }
    return bytes;
}

std::array<HeapStatistics, VK_MAX_MEMORY_HEAPS> MemoryAllocator::statistics() {
    const std::lock_guard lock(mutex_);
    refresh_budget(true);
    auto heaps = heaps_;
    for (uint32_t type = 0; type < properties_.memoryTypeCount; ++type)
        for (const auto& pool : pools_[type])
            for (const auto& block : pool.blocks) {
                auto& largest = heaps[properties_.memoryTypes[type].heapIndex].largest_free;
                largest = std::max(largest, block->ranges.largest_free());
            }
    return heaps;
}

uint64_t MemoryAllocator::used() noexcept {
    const std::lock_guard lock(mutex_);
    return std::accumulate(heaps_.begin(), heaps_.end(), uint64_t{0},
                           [](uint64_t sum, const HeapStatistics& heap) { return sum + heap.used; });
}

void MemoryAllocator::reset_peak() noexcept {
    const std::lock_guard lock(mutex_);
    for (auto& heap : heaps_) heap.peak = heap.used;
}

std::string MemoryAllocator::describe_heaps() const {
    std::string text;
    for (uint32_t i = 0; i < properties_.memoryHeapCount; ++i) {
        const auto& heap = heaps_[i];
        text += (text.empty() ? "" : "; ") + std::string("heap ") + std::to_string(i) +
                (heap.device_local ? " (device): " : " (host): ") + mebibytes(heap.used) + " in " +
                std::to_string(heap.allocations) + " allocations, " + mebibytes(heap.reserved) +
                " reserved of " + mebibytes(heap.size);
        if (heap.budget != 0) text += " (budget " + mebibytes(heap.budget) + ")";
    }
    return text;
}

// -- guards; see memory/guard.hpp

void MemoryAllocator::sync_guards(MemoryBlock& block, const GuardedRange& guarded, bool from_host) noexcept {
    if (block.flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) return;
    VkMappedMemoryRange ranges[2]{};
    for (auto& range : ranges) {
        range.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE;
        range.memory = block.memory;
    }
    ranges[0].offset = guarded.offset - guarded.front;
    ranges[0].size = guarded.front;
    ranges[1].offset = guarded.offset + guarded.size;
    ranges[1].size = guarded.tail;
    // A debugging aid must not make the watched call fail. At worst, an unsynchronised guard misses device
    // writes.
    if (from_host)
        (void)context_.vk().vkFlushMappedMemoryRanges(context_.handle(), 2, ranges);
    else
        (void)context_.vk().vkInvalidateMappedMemoryRanges(context_.handle(), 2, ranges);
}

void MemoryAllocator::guard(MemoryBlock& block, uint32_t node, uint64_t offset, const Request& request) {
    auto& guarded = block.guarded[node];
    guarded = {offset, request.own, request.front, request.tail, request.what};
    write_guard(block.mapped + offset - guard_bytes);
    write_guard(block.mapped + offset + request.own);
    sync_guards(block, guarded, true);
}

std::string MemoryAllocator::inspect(MemoryBlock& block, const GuardedRange& guarded) {
    sync_guards(block, guarded, false);
    // Copied in one piece: the memory may be uncached, and each access to a byte crosses the bus.
    std::array<std::byte, guard_bytes> front, tail;
    std::memcpy(front.data(), block.mapped + guarded.offset - guard_bytes, guard_bytes);
    std::memcpy(tail.data(), block.mapped + guarded.offset + guarded.size, guard_bytes);
    const uint64_t before = broken_bytes(front.data());
    const uint64_t behind = broken_bytes(tail.data());
    if (before == 0 && behind == 0) return {};
    return "memory of " + guarded.label + " (" + std::to_string(guarded.size) +
           " bytes) was overrun: " + std::to_string(before) + " of the " + std::to_string(guard_bytes) +
           " guard bytes before it and " + std::to_string(behind) +
           " of those behind it were overwritten. Look for a shader that indexes past the end, or "
           "foreign code that writes through its address";
}

void MemoryAllocator::unguard(MemoryBlock& block, uint32_t node) noexcept {
    const auto found = block.guarded.find(node);
    if (found == block.guarded.end()) return;
    try {
        if (auto report = inspect(block, found->second); !report.empty())
            context_.report({"error", "kompute-memory-guard", std::move(report)});
    } catch (const std::bad_alloc&) {
        // The report is lost; the release must not be.
    }
    // A block with a single allocation goes back to the driver at once.
    if (!block.dedicated)
        std::memset(block.mapped + found->second.offset, std::to_integer<int>(poison_value),
                    found->second.size);
    block.guarded.erase(found);
}

void MemoryAllocator::relabel(MemoryBlock& block, uint32_t node, const std::string& label) {
    if (!options_.debug) return;
    const std::lock_guard lock(mutex_);
    if (const auto found = block.guarded.find(node); found != block.guarded.end())
        found->second.label = label;
}

std::vector<std::string> MemoryAllocator::check_guards() {
    std::vector<std::string> reports;
    const std::lock_guard lock(mutex_);
    for (auto& pools : pools_)
        for (auto& pool : pools)
            for (auto& block : pool.blocks)
                for (auto& [node, guarded] : block->guarded) {
                    auto report = inspect(*block, guarded);
                    if (report.empty()) continue;
                    reports.push_back(std::move(report));
                    // Reported once: it must not be reported again when the memory is released.
                    write_guard(block->mapped + guarded.offset - guard_bytes);
                    write_guard(block->mapped + guarded.offset + guarded.size);
                    sync_guards(*block, guarded, true);
                }
    return reports;
}

}  // namespace kp
