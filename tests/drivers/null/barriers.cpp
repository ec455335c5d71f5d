// Recording of barriers, which are kept in the form of synchronization2.
#include "commands.hpp"
#include "entry_points.hpp"

namespace kpnull {
namespace {

struct Collected {
    std::vector<VkMemoryBarrier2> memory;
    std::vector<VkBufferMemoryBarrier2> buffers;
    std::vector<VkImageMemoryBarrier2> images;
};

Collected collect(VkPipelineStageFlags source, VkPipelineStageFlags target, uint32_t memory_count,
                  const VkMemoryBarrier* memory, uint32_t buffer_count, const VkBufferMemoryBarrier* buffers,
                  uint32_t image_count, const VkImageMemoryBarrier* images) {
    Collected all;
    for (uint32_t i = 0; i < memory_count; ++i)
        all.memory.push_back({VK_STRUCTURE_TYPE_MEMORY_BARRIER_2, nullptr, source, memory[i].srcAccessMask,
                              target, memory[i].dstAccessMask});
    for (uint32_t i = 0; i < buffer_count; ++i) {
        const VkBufferMemoryBarrier& b = buffers[i];
        all.buffers.push_back({VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER_2, nullptr, source, b.srcAccessMask,
                               target, b.dstAccessMask, b.srcQueueFamilyIndex, b.dstQueueFamilyIndex,
                               b.buffer, b.offset, b.size});
    }
    for (uint32_t i = 0; i < image_count; ++i) {
        const VkImageMemoryBarrier& b = images[i];
        all.images.push_back({VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2, nullptr, source, b.srcAccessMask,
                              target, b.dstAccessMask, b.oldLayout, b.newLayout, b.srcQueueFamilyIndex,
                              b.dstQueueFamilyIndex, b.image, b.subresourceRange});
    }
    if (all.memory.empty() && all.buffers.empty() && all.images.empty())
        all.memory.push_back({VK_STRUCTURE_TYPE_MEMORY_BARRIER_2, nullptr, source, 0, target, 0});
    return all;
}

template <class Barriers>
size_t bytes_of(const Barriers& barriers) {
    return barriers.size() * sizeof barriers[0];
}

void record(CommandBuffer& cb, const Collected& all, VkDependencyFlags flags) {
    auto* c = cb.emit<BarrierCommand>(Op::Barrier,
                                      bytes_of(all.memory) + bytes_of(all.buffers) + bytes_of(all.images));
    *c = {uint32_t(all.memory.size()), uint32_t(all.buffers.size()), uint32_t(all.images.size()), flags};
    auto* at = reinterpret_cast<uint8_t*>(c + 1);
    const auto append = [&at](const auto& barriers) {
        if (!barriers.empty()) std::memcpy(at, barriers.data(), bytes_of(barriers));
        at += bytes_of(barriers);
    };
    append(all.memory);
    append(all.buffers);
    append(all.images);
    for (const VkBufferMemoryBarrier2& b : all.buffers) {
        auto* buffer = from<Buffer>(b.buffer);
        cb.refer(buffer);
        if (b.offset >= buffer->size || (b.size != VK_WHOLE_SIZE && b.size > buffer->size - b.offset))
            violation("a barrier names %llu bytes at %llu of VkBuffer (%s) with %llu",
                      (unsigned long long)b.size, (unsigned long long)b.offset, label(buffer),
                      (unsigned long long)buffer->size);
    }
    for (const VkImageMemoryBarrier2& b : all.images) {
        cb.refer(from<Image>(b.image));
        // A transition from UNDEFINED discards the contents, and here it really does.
        if (b.oldLayout == VK_IMAGE_LAYOUT_UNDEFINED && b.newLayout != VK_IMAGE_LAYOUT_UNDEFINED)
            cb.effects = true;
    }
}
CommandBuffer& of(VkCommandBuffer handle) {
    CommandBuffer& cb = *from<CommandBuffer>(handle);
    if (cb.state != RecordState::Recording)
        violation("a barrier: VkCommandBuffer (%s) is not recording", label(&cb));
    return cb;
}

}  // namespace

VKAPI_ATTR void VKAPI_CALL vkCmdPipelineBarrier(VkCommandBuffer cb, VkPipelineStageFlags source,
                                                VkPipelineStageFlags target, VkDependencyFlags flags,
                                                uint32_t memory_count, const VkMemoryBarrier* memory,
                                                uint32_t buffer_count, const VkBufferMemoryBarrier* buffers,
                                                uint32_t image_count, const VkImageMemoryBarrier* images) {
    KP_COUNTED("vkCmdPipelineBarrier");
    record(of(cb), collect(source, target, memory_count, memory, buffer_count, buffers, image_count, images),
           flags);
}

}  // namespace kpnull
