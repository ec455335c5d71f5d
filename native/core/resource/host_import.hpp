// Memory of the process that the device uses in place (VK_EXT_external_memory_host).
//
// Drivers take whole pages: the pointer and the size must be multiples of minImportedHostPointerAlignment.
// Some drivers accept an unaligned pointer without an error and then use the wrong bytes, so the alignment
// is checked here, before Vulkan sees the pointer.
//
// The size is rounded up. That is safe within one page: memory is mapped in pages, so the bytes between the
// end of the array and the end of its last page exist, and kompute_py does not touch them, because the
// VkBuffer ends with the array. It is not safe if the alignment is more than a page (the next page may be
// unmapped or belong to other data), or if the array's size is not a multiple of four: buffers are filled
// and copied in words, and the bytes of the last word may belong to other data. Both are allowed if the
// caller says that the memory behind the array is its own (`padded`).
#pragma once

#include "memory/allocator.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kp {

class Device;

struct HostRange {
    std::byte* data = nullptr;
    uint64_t nbytes = 0;
    uint64_t padded = 0;  // bytes from `data` on that belong to the owner; at least nbytes
    // Addresses of memory that contains these bytes and belongs to the owner; 0: unknown.
    uint64_t root_begin = 0;
    uint64_t root_end = 0;
    bool read_only = false;  // the device must not write it
    // Keeps the bytes alive; dropped once the device's memory over them is freed, on the thread that frees
    // it.
    std::shared_ptr<void> owner;
};

// Call it before making a buffer for the range, because that is invalid use if the device cannot import the
// range. Throws Error(invalid_argument) that names the alignment if the range does not have it, and
// Error(unimplemented) without the extension.
void check_host_import(const Device& device, const HostRange& range);

// The bytes of the whole pages of the checked range. Throws Error(unimplemented) if they do not suffice for a
// buffer that needs `needs`.
[[nodiscard]] uint64_t check_needs(const Device& device, const HostRange& range,
                                   const VkMemoryRequirements& needs);

// Imports memory of whole pages as a type of these bits. Throws Error(unimplemented) if the driver does not
// import such memory.
[[nodiscard]] Allocation import_host(Device& device, std::byte* data, uint64_t size, uint32_t type_bits);

}  // namespace kp
