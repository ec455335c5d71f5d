// Memory of the process that the device uses in place (VK_EXT_external_memory_host).
//
// Drivers take whole pages: the pointer and the size must be multiples of minImportedHostPointerAlignment. Some accept a
// pointer that is not, without a word, and then use other bytes than were meant; so it is checked here, before Vulkan sees
// it. A size is rounded up, which is safe within one page: memory is mapped in pages, so the bytes between the end of the
// array and the end of its last page are there, and nothing of ours touches them, since the VkBuffer ends with the array.
// It is not safe where the alignment is more than a page (the next page may be nobody's), nor where the array's size
// is no multiple of four: buffers are filled and copied in words, and the bytes of the last word may be a neighbour's.
// Both are allowed where the caller says that the room behind the array is its own (`padded`).
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
    uint64_t padded = 0;     // bytes from `data` on that are the owner's; at least nbytes
    bool read_only = false;  // nobody may write it through the device
    // Keeps the bytes; dropped once the device's memory over them is freed, on whatever thread that happens.
    std::shared_ptr<void> owner;
};

// To be asked before a buffer is made for the range, which is invalid use where the device imports nothing. Throws
// Error(invalid_argument) that names the alignment where the range has not got it, Error(unimplemented) without the extension.
void check_host_import(const Device& device, const HostRange& range);

// Imports the range, which was checked, for a buffer that needs `needs`. Throws Error(unimplemented) where the driver does not
// import such memory.
[[nodiscard]] Allocation import_host(Device& device, const HostRange& range,
                                     const VkMemoryRequirements& needs);

}  // namespace kp
