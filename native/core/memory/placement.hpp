// Which memory types serve which use, in order: a pure function of what the device describes.
//
// The model. Three kinds of machine matter. On a discrete GPU with a small host-visible window (256 MiB, a "small BAR") that
// window is for those who ask for deviceAndHost. Where the window covers most of the device's memory (a resizable BAR), the host
// may write all of it in place, so `device` memory is taken from it and writes need no staging. Where device and host share
// memory (integrated GPUs, CPU drivers, Apple's), the same rule finds the shared types. Non-coherent types serve `device` only
// after those that need no flush: what is staged anyway gains nothing from them.
#pragma once

#include "base/vulkan.hpp"

#include <cstdint>
#include <vector>

namespace kp {

// How the memory will be used; each tries a list of property sets in order of preference.
enum class MemoryUse : uint8_t {
    device,           // device-local; the host need not see it
    host,             // host-visible, cached where possible; outside device memory where there is a choice
    device_and_host,  // device-local and host-visible; falls back to `host`
};

// What the one who opens the device decides about its memory.
struct MemoryOptions {
    uint64_t largest_block = uint64_t{64} << 20;  // bytes; blocks grow up to it
    uint64_t limit = 0;               // most bytes to take from the driver, over all heaps; 0: no limit
    bool debug = false;               // guard bytes around host-visible allocations, poison on free
    bool force_staging = false;       // `device` memory counts as not host-visible
    bool force_non_coherent = false;  // coherent memory is flushed and invalidated all the same
};

// Memory types for `use`, best first. Protected, lazily allocated and AMD's debugging types are never among them.
[[nodiscard]] std::vector<uint32_t> rank_memory_types(const VkPhysicalDeviceMemoryProperties& memory,
                                                      MemoryUse use);

// Whether the heap's device-local memory is as good as all that the device has: at least half of the largest such heap,
// and more than the 256 MiB of a small BAR.
[[nodiscard]] bool is_large_device_heap(const VkPhysicalDeviceMemoryProperties& memory,
                                        uint32_t heap) noexcept;

}  // namespace kp
