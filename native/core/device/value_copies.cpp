#include "device/value_copies.hpp"

#include <algorithm>

namespace kp {

void ValueCopies::allocate(MemoryAllocator& memory) {
    if (size != 0) copies = memory.allocate_host_copy(size, "the values of operations (Manager(debug=...))");
}

void ValueCopies::record(const DeviceContext& device, VkCommandBuffer commands, uint32_t position) const {
    const auto [first, last] = std::ranges::equal_range(parts, position, {}, &Part::position);
    if (first == last) return;
    const auto& vk = device.vk();
    const auto wait = [&] {
        VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
        barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
        barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
        vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                                &barrier, 0, nullptr, 0, nullptr);
    };
    wait();
    for (auto part = first; part != last; ++part) {
        if (part->image != VK_NULL_HANDLE) {
            VkBufferImageCopy texels = part->texels;
            texels.bufferOffset += copies.offset();
            vk.vkCmdCopyImageToBuffer(commands, part->image, VK_IMAGE_LAYOUT_GENERAL, copies.block_buffer(),
                                      1, &texels);
            continue;
        }
        const VkBufferCopy region{part->begin, copies.offset() + part->at, part->end - part->begin};
        vk.vkCmdCopyBuffer(commands, part->buffer, copies.block_buffer(), 1, &region);
    }
    wait();
}

std::vector<std::byte> ValueCopies::take(const DeviceContext& device) const {
    if (size == 0) return {};
    if (!copies.coherent()) {
        const VkMappedMemoryRange range = copies.mapped_range();
        device.invalidate({&range, 1}, "the values of operations");
    }
    return {copies.mapped(), copies.mapped() + size};
}

}  // namespace kp
