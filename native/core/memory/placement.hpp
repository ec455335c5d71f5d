// Ranks memory types for each use: a pure function of the device's description.
//
// Model. Three kinds of machine matter. On a discrete GPU with a small host-visible window (256 MiB, a "small
// BAR"), that window is reserved for requests of deviceAndHost. If the window covers most of the device's
// memory (a resizable BAR), the host can write all of it in place, so `device` memory is taken from it and
// writes need no staging. If device and host share memory (integrated GPUs, CPU drivers, Apple's), the same
// rule finds the shared types. For `device`, non-coherent types rank after types that need no flush: staged
// data gains nothing from them.
#pragma once

#include "base/vulkan.hpp"

#include <cstdint>
#include <vector>

namespace kp {

// The use of the memory; each use tries a list of property sets in order of preference.
enum class MemoryUse : uint8_t {
    device,           // device-local; the host need not access it
    host,             // host-visible, cached if possible; outside device memory if there is a choice
    device_and_host,  // device-local and host-visible; falls back to `host`
};

// Memory settings that are chosen when the device is opened.
struct MemoryOptions {
    uint64_t largest_block = uint64_t{64} << 20;  // bytes; blocks grow up to it
    uint64_t limit = 0;                // most bytes to take from the driver, over all heaps; 0: no limit
    uint64_t idle_limit = UINT64_MAX;  // most bytes to keep in blocks that nothing uses
    bool debug = false;                // guard bytes around host-visible allocations, poison on free
    bool force_staging = false;        // `device` memory counts as not host-visible
    bool force_non_coherent = false;   // coherent memory is flushed and invalidated too
};

// Memory types for `use`, best first. Never includes protected, lazily allocated and AMD's debugging types.
[[nodiscard]] std::vector<uint32_t> rank_memory_types(const VkPhysicalDeviceMemoryProperties& memory,
                                                      MemoryUse use);

// True if the heap is as good as all of the device's memory: at least half of its largest device-local heap,
// and more than the 256 MiB of a small BAR.
[[nodiscard]] bool is_large_device_heap(const VkPhysicalDeviceMemoryProperties& memory,
                                        uint32_t heap) noexcept;

}  // namespace kp
