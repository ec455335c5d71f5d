// Device memory. Coherent memory is one piece of storage. Non-coherent memory is two, what the host sees and
// what the device sees, with a snapshot of what the host saw at the last flush or invalidation. A line (an
// atom of nonCoherentAtomSize bytes) that the host has changed since is dirty, and a flush carries only dirty
// lines over, as a cache does: flushing what nobody wrote can not destroy newer results of the device.
//
// Comparing contents would miss a host that writes the very bytes which the snapshot has, after the device
// has written others. So what the device writes is replaced by noise on the host's side, in memory and
// snapshot, where it is clean: any later write of the host differs from it, and reading without an
// invalidation shows neither the old nor the new data.
#include "entry_points.hpp"

#include <algorithm>
#include <sys/mman.h>

namespace kpnull {
namespace {

constexpr VkDeviceSize kMapped =
    64 << 10;  // from this size on, storage is mapped: committed page by page on first use

uint8_t* allocate(VkDeviceSize size) {
    if (size < kMapped) {
        void* p = std::aligned_alloc(64, align_up(size, 64));
        if (p) std::memset(p, 0, size);
        return static_cast<uint8_t*>(p);
    }
    void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? nullptr : static_cast<uint8_t*>(p);
}
void release(uint8_t* bytes, VkDeviceSize size) {
    if (!bytes) return;
    if (size < kMapped)
        std::free(bytes);
    else
        munmap(bytes, size);
}

unsigned long long ull(VkDeviceSize value) { return value; }

// The byte range of a flush or invalidation, checked as the specification demands; empty when it is unusable.
std::pair<VkDeviceSize, VkDeviceSize> checked_range(const char* call, const VkMappedMemoryRange& range) {
    const DeviceMemory& m = *from<DeviceMemory>(range.memory);
    if (!m.mapped) {
        violation("%s: %s is not mapped", call, label(&m));
        return {0, 0};
    }
    const VkDeviceSize map_end = m.map_offset + m.map_size;
    const VkDeviceSize begin = range.offset;
    const VkDeviceSize end = range.size == VK_WHOLE_SIZE ? map_end : range.offset + range.size;
    if (begin % kAtomSize)
        violation("%s: offset %llu is not a multiple of nonCoherentAtomSize %llu", call, ull(begin),
                  ull(kAtomSize));
    if (end % kAtomSize && end != m.size)
        violation("%s: the range ends at %llu, neither a multiple of nonCoherentAtomSize %llu nor the "
                  "memory's size %llu",
                  call, ull(end), ull(kAtomSize), ull(m.size));
    if (begin < m.map_offset || end > map_end || begin > end) {
        violation("%s: range %llu..%llu lies outside the mapped range %llu..%llu", call, ull(begin), ull(end),
                  ull(m.map_offset), ull(map_end));
        return {0, 0};
    }
    return {begin, end};
}

void flush(DeviceMemory& m, VkDeviceSize begin, VkDeviceSize end) {
    constexpr VkDeviceSize kChunk = 4096;
    for (VkDeviceSize at = begin; at < end; at += kChunk) {
        const VkDeviceSize chunk_end = std::min(end, at + kChunk);
        if (!std::memcmp(m.host_bytes + at, m.snapshot + at, chunk_end - at)) continue;
        for (VkDeviceSize line = at; line < chunk_end; line += kAtomSize) {
            const VkDeviceSize n = std::min(kAtomSize, chunk_end - line);
            if (!std::memcmp(m.host_bytes + line, m.snapshot + line, n)) continue;
            std::memcpy(m.device_bytes + line, m.host_bytes + line, n);
            std::memcpy(m.snapshot + line, m.host_bytes + line, n);
        }
    }
}
uint64_t scramble(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}
void invalidate(DeviceMemory& m, VkDeviceSize begin, VkDeviceSize end) {
    constexpr VkDeviceSize kChunk = 4096;
    // Comparing first keeps untouched pages of a lazily committed allocation uncommitted.
    for (VkDeviceSize at = begin; at < end; at += kChunk) {
        const VkDeviceSize n = std::min(kChunk, end - at);
        if (std::memcmp(m.host_bytes + at, m.device_bytes + at, n))
            std::memcpy(m.host_bytes + at, m.device_bytes + at, n);
        if (std::memcmp(m.snapshot + at, m.device_bytes + at, n))
            std::memcpy(m.snapshot + at, m.device_bytes + at, n);
    }
}

// Takes `size` bytes of a heap, or says that they are not there.
bool take_heap(PhysicalDevice& physical, uint32_t heap, VkDeviceSize size) {
    uint64_t used = physical.heap_used[heap].load();
    do {
        if (size > physical.memory.memoryHeaps[heap].size - used) return false;
    } while (!physical.heap_used[heap].compare_exchange_weak(used, used + size));
    return true;
}

void check_overlap(DeviceMemory& memory, const Resource& resource, VkDeviceSize offset, VkDeviceSize end,
                   bool linear) {
    // Ranges do not overlap as a rule, so the one before this page is the farthest that can reach into it.
    auto at = memory.ranges.lower_bound(offset / kImageGranularity * kImageGranularity);
    if (at != memory.ranges.begin()) --at;
    for (; at != memory.ranges.end() && at->first < align_up(end, kImageGranularity); ++at) {
        const auto& [start, other] = *at;
        if (start < end && offset < other.end)
            violation("%s (%s) at %llu..%llu overlaps live %s (%s) at %llu..%llu in one memory",
                      kind_name(resource.kind), label(&resource), ull(offset), ull(end),
                      kind_name(other.object->kind), label(other.object), ull(start), ull(other.end));
        else if (linear != other.linear &&
                 (start < end ? (other.end - 1) / kImageGranularity == offset / kImageGranularity
                              : start / kImageGranularity == (end - 1) / kImageGranularity))
            violation("%s (%s) and %s (%s), one linear and one optimal, share a page of "
                      "bufferImageGranularity %llu",
                      kind_name(resource.kind), label(&resource), kind_name(other.object->kind),
                      label(other.object), ull(kImageGranularity));
    }
}

// A GPU may hold writes through two imports of one page apart, and let them reach the page in any order.
void note_import(const DeviceMemory& memory) {
    Device& device = *memory.device;
    const std::lock_guard lock(device.imports_mutex);
    for (const DeviceMemory* each : device.imports)
        if (memory.host_bytes < each->host_bytes + each->size &&
            each->host_bytes < memory.host_bytes + memory.size &&
            device.physical->properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU)
            violation(
                "vkAllocateMemory: %llu bytes at %p of the process overlap a living import of %llu bytes",
                ull(memory.size), static_cast<const void*>(memory.host_bytes), ull(each->size));
    device.imports.push_back(&memory);
}

}  // namespace

DeviceMemory::~DeviceMemory() {
    if (trapped) {
        unmap_trapped({device_bytes, host_bytes}, size);
    } else if (!coherent) {
        release(snapshot, size);
        if (host_bytes && !imported) release(host_bytes, size);
        release(device_bytes, size);
    } else if (!imported) {
        release(device_bytes, size);
    }
}

void device_wrote(const Resource& resource, const uint8_t* bytes, VkDeviceSize size) {
    DeviceMemory& m = *resource.memory;
    if (m.coherent) return;
    static std::atomic<uint64_t> writes{0};
    const uint64_t seed = writes.fetch_add(1) << 40;
    const VkDeviceSize begin = VkDeviceSize(bytes - m.device_bytes);
    for (VkDeviceSize i = begin; i < begin + size; ++i) {
        if (m.host_bytes[i] != m.snapshot[i]) continue;
        uint8_t noise = uint8_t(scramble(seed ^ i));
        if (noise == m.device_bytes[i]) noise ^= 0x55;
        m.host_bytes[i] = m.snapshot[i] = noise;
    }
}

void bind(Resource& resource, DeviceMemory* memory, VkDeviceSize offset, const VkMemoryRequirements& needs,
          bool linear) {
    if (resource.memory)
        violation("%s (%s) is bound to memory twice", kind_name(resource.kind), label(&resource));
    if (offset % needs.alignment)
        violation("%s (%s) is bound at %llu, not a multiple of its alignment %llu", kind_name(resource.kind),
                  label(&resource), ull(offset), ull(needs.alignment));
    if (!(needs.memoryTypeBits >> memory->type & 1))
        violation("%s (%s) is bound to memory type %u, which its memoryTypeBits exclude",
                  kind_name(resource.kind), label(&resource), memory->type);
    if (memory->dedicated && memory->dedicated != &resource)
        violation("%s (%s) is bound to memory dedicated to another resource", kind_name(resource.kind),
                  label(&resource));
    if (offset > memory->size || needs.size > memory->size - offset) {
        violation("%s (%s) needs %llu bytes at %llu of memory with %llu", kind_name(resource.kind),
                  label(&resource), ull(needs.size), ull(offset), ull(memory->size));
        return;
    }
    resource.memory = memory;
    resource.offset = offset;
    memory->bound.fetch_add(1, std::memory_order_relaxed);
    if (armed()) {
        std::lock_guard lock(memory->ranges_mutex);
        if (!memory->imported) check_overlap(*memory, resource, offset, offset + needs.size, linear);
        memory->ranges.emplace(offset, DeviceMemory::Range{offset + needs.size, linear, &resource});
        resource.tracked = true;
    }
}

void unbind(Resource& resource) {
    DeviceMemory* memory = resource.memory;
    if (!memory || memory->destroyed) return;
    memory->bound.fetch_sub(1, std::memory_order_relaxed);
    if (!resource.tracked) return;
    std::lock_guard lock(memory->ranges_mutex);
    auto [at, end] = memory->ranges.equal_range(resource.offset);
    for (; at != end; ++at) {
        if (at->second.object != &resource) continue;
        memory->ranges.erase(at);
        return;
    }
}

VKAPI_ATTR VkResult VKAPI_CALL vkAllocateMemory(VkDevice handle, const VkMemoryAllocateInfo* info,
                                                const VkAllocationCallbacks*, VkDeviceMemory* out) {
    KP_FAILABLE("vkAllocateMemory");
    auto* device = from<Device>(handle);
    PhysicalDevice& physical = *device->physical;
    const VkDeviceSize size = info->allocationSize;
    if (info->memoryTypeIndex >= physical.memory.memoryTypeCount || size == 0) {
        violation("vkAllocateMemory: %llu bytes of memory type %u", ull(size), info->memoryTypeIndex);
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    const VkMemoryType& type = physical.memory.memoryTypes[info->memoryTypeIndex];
    if (!(physical.usable_types >> info->memoryTypeIndex & 1))
        violation("vkAllocateMemory: memory type %u is lazily allocated or protected", info->memoryTypeIndex);
    if (device->allocations.fetch_add(1) >= physical.properties.limits.maxMemoryAllocationCount) {
        device->allocations.fetch_sub(1);
        return VK_ERROR_TOO_MANY_OBJECTS;
    }
    const auto* host_import = find_in_chain<VkImportMemoryHostPointerInfoEXT>(
        info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
    if (size > physical.instance->config.max_allocation)
        violation("vkAllocateMemory: %llu bytes exceed maxMemoryAllocationSize %llu", ull(size),
                  ull(physical.instance->config.max_allocation));
    VkResult failure = VK_SUCCESS;
    if (host_import && (reinterpret_cast<uintptr_t>(host_import->pHostPointer) % kImportAlignment ||
                        size % kImportAlignment)) {
        violation("vkAllocateMemory: an imported pointer %p of %llu bytes is not aligned to %llu",
                  host_import->pHostPointer, ull(size), ull(kImportAlignment));
        failure = VK_ERROR_INVALID_EXTERNAL_HANDLE;
    } else if (size > device->physical->instance->config.max_allocation ||
               (!host_import && !take_heap(physical, type.heapIndex, size))) {
        failure = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    if (failure != VK_SUCCESS) {
        device->allocations.fetch_sub(1);
        return failure;
    }
    const auto* priority = find_in_chain<VkMemoryPriorityAllocateInfoEXT>(
        info->pNext, VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT);
    if (priority && !device->extensions.contains("VK_EXT_memory_priority"))
        violation("vkAllocateMemory: a priority, and VK_EXT_memory_priority is not enabled");
    if (g_logging.load(std::memory_order_relaxed)) [[unlikely]]
        append_log("{\"bytes\":" + std::to_string(size) +
                   ",\"type\":" + std::to_string(info->memoryTypeIndex) +
                   ",\"priority\":" + (priority ? std::to_string(priority->priority) : "null") + "}");
    auto* m = create<DeviceMemory>(device);
    m->device = device;
    m->type = info->memoryTypeIndex;
    m->heap = type.heapIndex;
    m->size = size;
    m->host_visible = type.propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    m->coherent = !m->host_visible || (type.propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    m->imported = host_import != nullptr;
    if (const auto* flags = find_in_chain<VkMemoryAllocateFlagsInfo>(
            info->pNext, VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO))
        m->address = flags->flags & VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    if (const auto* dedicated = find_in_chain<VkMemoryDedicatedAllocateInfo>(
            info->pNext, VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO)) {
        if (dedicated->buffer) m->dedicated = from<Buffer>(dedicated->buffer);
        if (dedicated->image) m->dedicated = from<Image>(dedicated->image);
    }
    uint8_t* pointer = host_import ? static_cast<uint8_t*>(host_import->pHostPointer) : nullptr;
    constexpr VkMemoryPropertyFlags kLooked =
        VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    if (physical.instance->config.trap_reads && !pointer && m->coherent &&
        (type.propertyFlags & (kLooked | VK_MEMORY_PROPERTY_HOST_CACHED_BIT)) == kLooked) {
        const TrappedMemory made = map_trapped(size);
        m->device_bytes = made.device;
        m->host_bytes = made.host;
        m->trapped = made.host != nullptr;
    } else if (m->coherent) {
        m->device_bytes = m->host_bytes = pointer ? pointer : allocate(size);
    } else {
        m->host_bytes = pointer ? pointer : allocate(size);
        m->device_bytes = allocate(size);
        m->snapshot = allocate(size);
        if (pointer && m->device_bytes && m->snapshot) {
            std::memcpy(m->device_bytes, pointer, size);
            std::memcpy(m->snapshot, pointer, size);
        }
    }
    if (!m->device_bytes || !m->host_bytes || (!m->coherent && !m->snapshot)) {
        if (!m->imported) physical.heap_used[m->heap].fetch_sub(size);
        device->allocations.fetch_sub(1);
        retire(m);
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    if (pointer) note_import(*m);
    *out = to(m);
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL vkFreeMemory(VkDevice, VkDeviceMemory handle, const VkAllocationCallbacks*) {
    KP_COUNTED("vkFreeMemory");
    if (!handle) return;
    auto* m = from<DeviceMemory>(handle);
    if (const uint32_t bound = m->bound.load())
        violation("VkDeviceMemory (%s) of %llu bytes is freed with %u live resource(s) bound to it", label(m),
                  ull(m->size), bound);
    if (m->imported) {
        const std::lock_guard lock(m->device->imports_mutex);
        std::erase(m->device->imports, m);
    } else {
        m->device->physical->heap_used[m->heap].fetch_sub(m->size);
    }
    m->device->allocations.fetch_sub(1);
    // A resource that is still bound would touch freed storage when it is destroyed or copied: keep the
    // struct then.
    if (m->bound.load()) m->recorded = true;
    retire(m);
}

VKAPI_ATTR VkResult VKAPI_CALL vkMapMemory(VkDevice, VkDeviceMemory handle, VkDeviceSize offset,
                                           VkDeviceSize size, VkMemoryMapFlags, void** out) {
    KP_FAILABLE("vkMapMemory");
    auto* m = from<DeviceMemory>(handle);
    if (!m->host_visible) return VK_ERROR_MEMORY_MAP_FAILED;
    if (m->mapped) {
        violation("vkMapMemory: %s is mapped already", label(m));
        return VK_ERROR_MEMORY_MAP_FAILED;
    }
    if (offset >= m->size || (size != VK_WHOLE_SIZE && size > m->size - offset)) {
        violation("vkMapMemory: %llu bytes at %llu of memory with %llu", ull(size), ull(offset),
                  ull(m->size));
        return VK_ERROR_MEMORY_MAP_FAILED;
    }
    m->mapped = true;
    m->map_offset = offset;
    m->map_size = size == VK_WHOLE_SIZE ? m->size - offset : size;
    *out = m->host_bytes + offset;
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkUnmapMemory(VkDevice, VkDeviceMemory handle) {
    KP_COUNTED("vkUnmapMemory");
    auto* m = from<DeviceMemory>(handle);
    if (!m->mapped) violation("vkUnmapMemory: %s is not mapped", label(m));
    m->mapped = false;
}
VKAPI_ATTR VkResult VKAPI_CALL vkFlushMappedMemoryRanges(VkDevice, uint32_t count,
                                                         const VkMappedMemoryRange* ranges) {
    KP_FAILABLE("vkFlushMappedMemoryRanges");
    for (uint32_t i = 0; i < count; ++i) {
        const auto [begin, end] = checked_range("vkFlushMappedMemoryRanges", ranges[i]);
        DeviceMemory& m = *from<DeviceMemory>(ranges[i].memory);
        if (!m.coherent) flush(m, begin, end);
    }
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkInvalidateMappedMemoryRanges(VkDevice, uint32_t count,
                                                              const VkMappedMemoryRange* ranges) {
    KP_FAILABLE("vkInvalidateMappedMemoryRanges");
    for (uint32_t i = 0; i < count; ++i) {
        const auto [begin, end] = checked_range("vkInvalidateMappedMemoryRanges", ranges[i]);
        DeviceMemory& m = *from<DeviceMemory>(ranges[i].memory);
        if (!m.coherent) invalidate(m, begin, end);
    }
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkGetMemoryHostPointerPropertiesEXT(VkDevice device,
                                                                   VkExternalMemoryHandleTypeFlagBits type,
                                                                   const void* pointer,
                                                                   VkMemoryHostPointerPropertiesEXT* out) {
    KP_FAILABLE("vkGetMemoryHostPointerPropertiesEXT");
    if (!(type & (VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT |
                  VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_MAPPED_FOREIGN_MEMORY_BIT_EXT)) ||
        reinterpret_cast<uintptr_t>(pointer) % kImportAlignment)
        return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    const VkPhysicalDeviceMemoryProperties& memory = from<Device>(device)->physical->memory;
    const auto bits = [&](VkMemoryPropertyFlags wanted, VkMemoryPropertyFlags unwanted) {
        uint32_t found = 0;
        for (uint32_t i = 0; i < memory.memoryTypeCount; ++i)
            if ((memory.memoryTypes[i].propertyFlags & wanted) == wanted &&
                !(memory.memoryTypes[i].propertyFlags & unwanted))
                found |= 1u << i;
        return found;
    };
    // A discrete device reads host memory over the bus; an integrated one has nothing but memory that is
    // local too.
    constexpr VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    constexpr VkMemoryPropertyFlags coherent = visible | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    out->memoryTypeBits = bits(coherent, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    if (!out->memoryTypeBits) out->memoryTypeBits = bits(coherent, 0);
    if (!out->memoryTypeBits) out->memoryTypeBits = bits(visible, 0);
    return VK_SUCCESS;
}

}  // namespace kpnull
