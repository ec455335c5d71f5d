#include "resource/host_import.hpp"

#include "base/error.hpp"
#include "device/device.hpp"

#include <algorithm>

#ifdef _WIN32
#include <windows.h>
#else
#include <unistd.h>
#endif

namespace kp {
namespace {

uint64_t page_size() {
#ifdef _WIN32
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwPageSize;
#else
    const long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? static_cast<uint64_t>(size) : 4096;
#endif
}

std::string fix(uint64_t alignment) {
    return ". Make the array with kp.aligned_empty(shape, dtype), which aligns it to " +
           std::to_string(std::max(alignment, page_size())) + " bytes and pads it, or let it be copied";
}

void check_range(const HostRange& range, uint64_t alignment) {
    const auto address = reinterpret_cast<uintptr_t>(range.data);
    if (const uint64_t off = address % alignment; off != 0)
        throw Error(ErrorKind::invalid_argument, "The array cannot be imported: it begins " +
                                                     std::to_string(off) + " bytes after a multiple of " +
                                                     std::to_string(alignment) +
                                                     " (minImportedHostPointerAlignment)" + fix(alignment));
    const uint64_t rounded = (range.nbytes + alignment - 1) / alignment * alignment;
    if (rounded <= range.padded) return;
    if (range.nbytes % 4 != 0 && range.padded < ((range.nbytes + 3) & ~uint64_t{3}))
        throw Error(ErrorKind::invalid_argument, "The array cannot be imported: its " +
                                                     std::to_string(range.nbytes) +
                                                     " bytes are no multiple of 4, and the bytes behind "
                                                     "it are not its own" +
                                                     fix(alignment));
    if (rounded != range.nbytes && alignment > page_size())
        throw Error(ErrorKind::invalid_argument,
                    "The array cannot be imported: the device takes multiples of " +
                        std::to_string(alignment) + " bytes, it has " + std::to_string(range.nbytes) +
                        ", and the pages behind it are not its own" + fix(alignment));
}

void check_import(VkResult result, const char* call) {
    if (result == VK_ERROR_INVALID_EXTERNAL_HANDLE)
        throw Error(
            ErrorKind::unimplemented,
            "The driver refuses to import this memory (VK_ERROR_INVALID_EXTERNAL_HANDLE): it may be a "
            "file's, read-only, or imported already; let it be copied",
            result);
    check_vk(result, call, "memory of an array");
}

// A type of coherent memory that such a pointer can be imported as. It must be coherent, because the host
// keeps using its own pointer and there is no mapping to flush through.
uint32_t memory_type(Device& device, const std::byte* data, uint32_t type_bits) {
    VkMemoryHostPointerPropertiesEXT pointer{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    check_import(
        device.vk().vkGetMemoryHostPointerPropertiesEXT(device.handle(), host_import_handle, data, &pointer),
        "vkGetMemoryHostPointerPropertiesEXT");
    const auto& properties = device.physical().memory;
    constexpr VkMemoryPropertyFlags needed =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    constexpr VkMemoryPropertyFlags never =
        VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < properties.memoryTypeCount; ++i) {
        const VkMemoryPropertyFlags flags = properties.memoryTypes[i].propertyFlags;
        if (!(pointer.memoryTypeBits & type_bits & (1u << i))) continue;
        if ((flags & needed) != needed || (flags & never)) continue;
        // The CPU caches pages of the process; a cached type tells the driver so.
        if (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) return i;
        if (best == UINT32_MAX) best = i;
    }
    if (best == UINT32_MAX)
        throw Error(ErrorKind::unimplemented, "The device has no memory type that tensors over an array of "
                                              "the process could have; let it be copied");
    return best;
}

}  // namespace

void check_host_import(const Device& device, const HostRange& range) {
    const uint64_t alignment = device.physical().host_import_alignment;
    if (alignment == 0)
        throw Error(ErrorKind::unimplemented, std::string("'") + device.physical().properties.deviceName +
                                                  "' does not import memory of the process "
                                                  "(VK_EXT_external_memory_host); let it be copied");
    check_range(range, alignment);
}

uint64_t check_needs(const Device& device, const HostRange& range, const VkMemoryRequirements& needs) {
    const uint64_t alignment = device.physical().host_import_alignment;
    const uint64_t size = (range.nbytes + alignment - 1) / alignment * alignment;
    if (needs.size > size || reinterpret_cast<uintptr_t>(range.data) % needs.alignment != 0)
        throw Error(ErrorKind::unimplemented,
                    "The array cannot be imported: a buffer of " + std::to_string(range.nbytes) +
                        " bytes needs " + std::to_string(needs.size) + " bytes on a multiple of " +
                        std::to_string(needs.alignment) + " on this device; let it be copied");
    return size;
}

Allocation import_host(Device& device, std::byte* data, uint64_t size, uint32_t type_bits) {
    device.memory().require_allocation(size, "an imported array");

    VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkImportMemoryHostPointerInfoEXT import{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT};
    import.handleType = host_import_handle;
    import.pHostPointer = data;
    if (device.buffer_addresses()) import.pNext = &flags;
    VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate.pNext = &import;
    allocate.allocationSize = size;
    allocate.memoryTypeIndex = memory_type(device, data, type_bits);
    VkDeviceMemory memory = VK_NULL_HANDLE;
    const VkResult result = device.vk().vkAllocateMemory(device.handle(), &allocate, nullptr, &memory);
    check_import(result, "vkAllocateMemory");
    try {
        return device.memory().adopt(memory, allocate.memoryTypeIndex, size, data);
    } catch (...) {
        device.vk().vkFreeMemory(device.handle(), memory, nullptr);
        throw;
    }
}

}  // namespace kp
