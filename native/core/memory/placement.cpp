#include "memory/placement.hpp"

#include <algorithm>

namespace kp {
namespace {

constexpr uint64_t small_bar = uint64_t{256} << 20;

constexpr VkMemoryPropertyFlags never =
    VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
    VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;

}  // namespace

bool is_large_device_heap(const VkPhysicalDeviceMemoryProperties& memory, uint32_t heap) noexcept {
    if (!(memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)) return false;
    uint64_t largest = 0;
    for (uint32_t i = 0; i < memory.memoryHeapCount; ++i)
        if (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)
            largest = std::max<uint64_t>(largest, memory.memoryHeaps[i].size);
    const uint64_t size = memory.memoryHeaps[heap].size;
    return size > small_bar && size >= largest / 2;
}

std::vector<uint32_t> rank_memory_types(const VkPhysicalDeviceMemoryProperties& memory, MemoryUse use) {
    struct Ranked {
        int score;
        uint32_t type;
    };
    std::vector<Ranked> order;
    for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
        const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
        if (flags & never) continue;
        const bool local = flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
        const bool visible = flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
        const bool cached = flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
        const bool coherent = flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        int score = 0;
        switch (use) {
        case MemoryUse::device:
            if (visible && coherent && is_large_device_heap(memory, memory.memoryTypes[i].heapIndex))
                score = 2;
            else
                score = visible ? 0 : 1;
            score += local ? 8 : 0;
            break;
        case MemoryUse::host:
            if (!visible) continue;
            // Reading uncached memory is tens of times slower than flushing cached memory.
            score = (cached ? 8 : 0) + (local ? 0 : 4) + (coherent ? 2 : 0);
            break;
        case MemoryUse::device_and_host:
            if (!visible) continue;
            score = (local ? 16 : 0) + (cached ? 8 : 0) + (coherent ? 2 : 0);
            break;
        }
        order.push_back({score, i});
    }
    // The enumeration order breaks ties, because Vulkan sorts types by performance.
    std::stable_sort(order.begin(), order.end(),
                     [](const Ranked& a, const Ranked& b) { return a.score > b.score; });
    std::vector<uint32_t> types;
    for (const auto& entry : order) types.push_back(entry.type);
    return types;
}

}  // namespace kp
