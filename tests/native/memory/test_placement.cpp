// The order of memory types, on machines as their drivers describe them.
#include "memory/placement.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace {

using kp::MemoryUse;
using kp::rank_memory_types;
using Types = std::vector<uint32_t>;

constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
constexpr VkMemoryPropertyFlags coherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
constexpr uint64_t mib = uint64_t{1} << 20;
constexpr uint64_t gib = uint64_t{1} << 30;

struct Machine : VkPhysicalDeviceMemoryProperties {
    Machine() : VkPhysicalDeviceMemoryProperties{} {}
    Machine& heap(uint64_t size, bool device) {
        memoryHeaps[memoryHeapCount++] = {size, device ? VkMemoryHeapFlags{VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}
                                                       : VkMemoryHeapFlags{0}};
        return *this;
    }
    Machine& type(VkMemoryPropertyFlags flags, uint32_t of_heap) {
        memoryTypes[memoryTypeCount++] = {flags, of_heap};
        return *this;
    }
};

}  // namespace

TEST_CASE("memory placement: a small BAR is left to deviceAndHost") {
    const auto machine = Machine()
                             .heap(8 * gib, true)
                             .heap(32 * gib, false)
                             .heap(256 * mib, true)
                             .type(local, 0)
                             .type(visible | coherent, 1)
                             .type(visible | coherent | cached, 1)
                             .type(local | visible | coherent, 2);
    CHECK(rank_memory_types(machine, MemoryUse::device) == Types{0, 3, 1, 2});
    CHECK(rank_memory_types(machine, MemoryUse::host) == Types{2, 1, 3});
    CHECK(rank_memory_types(machine, MemoryUse::device_and_host) == Types{3, 2, 1});
    CHECK(kp::is_large_device_heap(machine, 0));
    CHECK(!kp::is_large_device_heap(machine, 1));
    CHECK(!kp::is_large_device_heap(machine, 2));
}

TEST_CASE("memory placement: the small BAR of a small GPU is small too") {
    // Half of the device's memory, and still only a window.
    const auto machine = Machine()
                             .heap(512 * mib, true)
                             .heap(256 * mib, true)
                             .type(local, 0)
                             .type(local | visible | coherent, 1);
    CHECK(rank_memory_types(machine, MemoryUse::device) == Types{0, 1});
}

TEST_CASE("memory placement: with a resizable BAR device memory is written in place") {
    // One heap for both types, as NVIDIA's driver has it; a heap of its own for the window, as older ones of
    // AMD.
    const auto one = Machine()
                         .heap(24 * gib, true)
                         .heap(64 * gib, false)
                         .type(local, 0)
                         .type(visible | coherent, 1)
                         .type(visible | coherent | cached, 1)
                         .type(local | visible | coherent, 0);
    CHECK(rank_memory_types(one, MemoryUse::device) == Types{3, 0, 1, 2});
    CHECK(rank_memory_types(one, MemoryUse::host).front() == 2);  // downloads stay in cached memory
    const auto two =
        Machine().heap(8 * gib, true).heap(8 * gib, true).type(local, 0).type(local | visible | coherent, 1);
    CHECK(rank_memory_types(two, MemoryUse::device) == Types{1, 0});
}

TEST_CASE("memory placement: where device and host share memory the shared type serves all") {
    const auto integrated = Machine()
                                .heap(16 * gib, true)
                                .type(local, 0)
                                .type(local | visible | coherent, 0)
                                .type(local | visible | coherent | cached, 0);
    CHECK(rank_memory_types(integrated, MemoryUse::device) == Types{1, 2, 0});
    CHECK(rank_memory_types(integrated, MemoryUse::host).front() == 2);
    CHECK(rank_memory_types(integrated, MemoryUse::device_and_host).front() == 2);
    const auto lavapipe = Machine().heap(4 * gib, true).type(local | visible | coherent | cached, 0);
    for (const auto use : {MemoryUse::device, MemoryUse::host, MemoryUse::device_and_host})
        CHECK(rank_memory_types(lavapipe, use) == Types{0});
}

TEST_CASE("memory placement: non-coherent memory serves device only after what needs no flush") {
    const auto apple = Machine()
                           .heap(16 * gib, true)
                           .type(local, 0)
                           .type(local | visible | cached, 0)
                           .type(local | visible | coherent | cached, 0)
                           .type(local | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT, 0);
    CHECK(rank_memory_types(apple, MemoryUse::device) == Types{2, 0, 1});
    CHECK(rank_memory_types(apple, MemoryUse::host) == Types{2, 1});
    const auto never_coherent =
        Machine().heap(4 * gib, true).heap(4 * gib, false).type(local, 0).type(visible | cached, 1);
    CHECK(rank_memory_types(never_coherent, MemoryUse::device) == Types{0, 1});
    CHECK(rank_memory_types(never_coherent, MemoryUse::device_and_host) == Types{1});
}

TEST_CASE("memory placement: types with a price or a trap are never picked") {
    const auto machine = Machine()
                             .heap(8 * gib, true)
                             .type(local | VK_MEMORY_PROPERTY_PROTECTED_BIT, 0)
                             .type(local | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT, 0)
                             .type(local | visible | coherent | VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD |
                                       VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD,
                                   0);
    for (const auto use : {MemoryUse::device, MemoryUse::host, MemoryUse::device_and_host})
        CHECK(rank_memory_types(machine, use).empty());
}
