// Device memory that other Managers, processes and APIs use too, by a file descriptor
// (VK_KHR_external_memory_fd).
//
// Such memory is an allocation of its own. An importer must use the same driver on the same device, and
// give Vulkan the same size and memory type, so both travel with the descriptor. All tensors of a Device over
// one such memory are ordered like one tensor: they have the same `key`, which stands for an address, as that
// of memory of the process does (see resource/host_pages.hpp). Between Devices nothing is ordered.
#pragma once

#include "memory/allocator.hpp"

#include <cstdint>
#include <utility>

namespace kp {

class Device;

// An open file descriptor, or none. The destructor closes it.
class Descriptor {
public:
    explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor();

    [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
    // Another one of the same file. Throws Error(out_of_memory) if the process has too many open.
    [[nodiscard]] Descriptor copy() const;
    [[nodiscard]] int get() const noexcept { return fd_; }
    int release() noexcept { return std::exchange(fd_, -1); }

private:
    int fd_;
};

struct SharedMemory {
    uint64_t key = 0;   // the same for all tensors over this memory; the highest bit is set
    Descriptor fd;      // of the memory to import; none: new memory
    uint64_t size = 0;  // of the allocation to import
    uint32_t type = 0;  // of the memory to import, by Vulkan's number
};

// The keys of shared memory, which no address of the process has.
constexpr uint64_t first_shared_key = uint64_t{1} << 63;

constexpr VkExternalMemoryHandleTypeFlagBits shared_handle = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;

// Call it before making a buffer for such memory. Throws Error(unimplemented) if the device does not share
// memory of buffers in this way.
void check_sharing(const Device& device, bool importing);
// True if check_sharing does not throw.
[[nodiscard]] bool shares_memory(const Device& device, bool importing);

// Memory for a buffer that needs `needs`: new or imported. Throws Error(invalid_argument) if the memory to
// import does not fit the buffer or the use, Error(out_of_memory).
[[nodiscard]] Allocation share_memory(Device& device, SharedMemory& shared, VkBuffer buffer,
                                      const VkMemoryRequirements& needs, MemoryUse use);

// A new descriptor of memory that was not imported. Who imported some gives a copy of the descriptor on.
[[nodiscard]] Descriptor descriptor_of(Device& device, VkDeviceMemory memory);

}  // namespace kp
