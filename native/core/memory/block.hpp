// One driver allocation that the allocator divides. For the allocator's own files.
#pragma once

#include "base/vulkan.hpp"
#include "memory/free_list.hpp"
#include "memory/guard.hpp"
#include "memory/placement.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace kp {

class MemoryAllocator;

enum class MemoryPool : uint8_t { buffers, images, host_copies };

// Of memory without VkMemoryPriorityAllocateInfoEXT, by Vulkan's rule.
constexpr float default_priority = 0.5f;

struct MemoryBlock {
    MemoryAllocator* owner = nullptr;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    VkBuffer buffer = VK_NULL_HANDLE;
    std::byte* mapped = nullptr;
    uint64_t size = 0;      // bytes that the ranges divide
    uint64_t bias = 0;      // start of the ranges in the memory
    uint64_t reserved = 0;  // bytes taken from the driver
    uint32_t type = 0;
    float priority = default_priority;
    MemoryPool pool = MemoryPool::buffers;
    VkMemoryPropertyFlags flags = 0;
    bool dedicated = false;
    bool adopted = false;
    bool taken = false;  // adopted memory that was taken from the driver
    FreeList ranges;
    std::unordered_map<uint32_t, GuardedRange> guarded;  // by the ranges' nodes

    explicit MemoryBlock(uint64_t bytes) : size(bytes), ranges(bytes) {}
};

}  // namespace kp
