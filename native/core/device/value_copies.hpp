// Copies of the memory that the operations of a recording use, before and after each of them, in memory of
// the host.
//
// A recording that is built while somebody looks at values copies, before each operation, the ranges that it
// uses and that no earlier copy of the same run holds, and after it those that it wrote. So a run keeps each
// operation's results, and what it read to get them.
#pragma once

#include "adapter/context.hpp"
#include "device/member.hpp"
#include "memory/allocator.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kp {

struct ValueCopies {
    struct Part {
        std::shared_ptr<Member> memory;
        VkBuffer buffer = VK_NULL_HANDLE;
        VkImage image = VK_NULL_HANDLE;  // instead of a buffer: all of it
        VkBufferImageCopy texels{};      // ... to `at`
        uint64_t begin = 0;              // bytes of the memory
        uint64_t end = 0;
        uint64_t at = 0;        // where the copy begins
        uint32_t position = 0;  // it is copied before the operation of this number
    };
    struct Use {
        uint32_t before = 0;  // the part that holds what the range was
        uint32_t after = 0;   // ... and what the operation made of it; the same if it did not write it
        bool reads = false;
        std::optional<bool> whole;  // as in the plan's Use
    };

    std::vector<Part> parts;  // by position, in order
    std::vector<std::vector<Use>> operations;
    std::vector<std::shared_ptr<Member>> disjoint;  // memory that the recording declares so (QueueOrder)
    uint64_t size = 0;
    Allocation copies;

    // Allocates memory for the parts. Throws Error(out_of_memory).
    void allocate(MemoryAllocator& memory);
    // Appends the copies that come before the operation `position`, after all that was recorded earlier.
    void record(const DeviceContext& device, VkCommandBuffer commands, uint32_t position) const;
    // The copies of the last run.
    [[nodiscard]] std::vector<std::byte> take(const DeviceContext& device) const;
};

}  // namespace kp
