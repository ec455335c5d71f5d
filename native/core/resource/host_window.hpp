// Memory of the process as a VkBuffer, for one transfer.
//
// A transfer between an image and the caller's array goes through the staging ring: the host copies the bytes
// to the ring, and the device from there. A CPU driver copies with the host's own processors, so both copies
// take time of the same memory. Such a driver gets the array's own pages instead
// (VK_EXT_external_memory_host) and copies once. A GPU would have to pin the pages first, which takes as long
// as a copy.
#pragma once

#include "memory/allocator.hpp"

#include <cstdint>
#include <memory>

namespace kp {

class Device;

class HostWindow {
public:
    // A window on the pages of these bytes; the other bytes of the pages are not touched. `writable`: the
    // transfer writes the bytes. Null if the device is no CPU, if it does not import these bytes, or if they
    // are few. `unit`: the offset in the buffer is to be a multiple of it.
    [[nodiscard]] static std::unique_ptr<HostWindow> open(Device& device, void* data, uint64_t nbytes,
                                                          uint64_t unit, bool writable);
    ~HostWindow();
    HostWindow(const HostWindow&) = delete;
    HostWindow& operator=(const HostWindow&) = delete;

    [[nodiscard]] VkBuffer buffer() const noexcept { return buffer_; }
    // Where the bytes begin in the buffer.
    [[nodiscard]] uint64_t offset() const noexcept { return offset_; }

private:
    explicit HostWindow(Device& device) : device_(device) {}

    Device& device_;
    Allocation memory_;
    VkBuffer buffer_ = VK_NULL_HANDLE;
    uint64_t offset_ = 0;
};

}  // namespace kp
