// Recording of barriers and events. All are kept in the form of synchronization2.
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

void record(CommandBuffer& cb, VkDependencyFlags flags, uint32_t memory_count, const VkMemoryBarrier2* memory,
            uint32_t buffer_count, const VkBufferMemoryBarrier2* buffers, uint32_t image_count,
            const VkImageMemoryBarrier2* images) {
    auto* c =
        cb.emit<BarrierCommand>(Op::Barrier, memory_count * sizeof *memory + buffer_count * sizeof *buffers +
                                                 image_count * sizeof *images);
    *c = {memory_count, buffer_count, image_count, flags};
    auto* at = reinterpret_cast<uint8_t*>(c + 1);
    const auto append = [&at](const void* from_items, size_t bytes) {
        if (bytes) std::memcpy(at, from_items, bytes);
        at += bytes;
    };
    append(memory, memory_count * sizeof *memory);
    append(buffers, buffer_count * sizeof *buffers);
    append(images, image_count * sizeof *images);
    for (uint32_t i = 0; i < buffer_count; ++i) {
        auto* buffer = from<Buffer>(buffers[i].buffer);
        cb.refer(buffer);
        if (buffers[i].offset >= buffer->size ||
            (buffers[i].size != VK_WHOLE_SIZE && buffers[i].size > buffer->size - buffers[i].offset))
            violation("a barrier names %llu bytes at %llu of VkBuffer (%s) with %llu",
                      (unsigned long long)buffers[i].size, (unsigned long long)buffers[i].offset,
                      label(buffer), (unsigned long long)buffer->size);
    }
    for (uint32_t i = 0; i < image_count; ++i) {
        cb.refer(from<Image>(images[i].image));
        // A transition from UNDEFINED discards the contents, and here it really does.
        if (images[i].oldLayout == VK_IMAGE_LAYOUT_UNDEFINED &&
            images[i].newLayout != VK_IMAGE_LAYOUT_UNDEFINED)
            cb.effects = true;
    }
}
void record(CommandBuffer& cb, const Collected& all, VkDependencyFlags flags) {
    record(cb, flags, uint32_t(all.memory.size()), all.memory.data(), uint32_t(all.buffers.size()),
           all.buffers.data(), uint32_t(all.images.size()), all.images.data());
}
void record(CommandBuffer& cb, const VkDependencyInfo& info) {
    record(cb, info.dependencyFlags, info.memoryBarrierCount, info.pMemoryBarriers,
           info.bufferMemoryBarrierCount, info.pBufferMemoryBarriers, info.imageMemoryBarrierCount,
           info.pImageMemoryBarriers);
}
void record_event(CommandBuffer& cb, Op op, VkEvent event) {
    cb.emit<EventCommand>(op)->event = from<Event>(event);
    cb.refer(from<Event>(event));
    cb.effects = true;
}
void record_wait(CommandBuffer& cb, uint32_t count, const VkEvent* events) {
    auto* c = cb.emit<WaitEventsCommand>(Op::WaitEvents, count * sizeof(Event*));
    c->count = count;
    std::memcpy(c + 1, events, count * sizeof(Event*));
    for (uint32_t i = 0; i < count; ++i) cb.refer(from<Event>(events[i]));
    cb.effects = true;
}
CommandBuffer& of(VkCommandBuffer handle) {
    CommandBuffer& cb = *from<CommandBuffer>(handle);
    if (cb.state != RecordState::Recording)
        violation("a barrier or event: VkCommandBuffer (%s) is not recording", label(&cb));
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
VKAPI_ATTR void VKAPI_CALL vkCmdPipelineBarrier2(VkCommandBuffer cb, const VkDependencyInfo* info) {
    KP_COUNTED("vkCmdPipelineBarrier2");
    record(of(cb), *info);
}
VKAPI_ATTR void VKAPI_CALL vkCmdSetEvent(VkCommandBuffer cb, VkEvent event, VkPipelineStageFlags) {
    KP_COUNTED("vkCmdSetEvent");
    record_event(of(cb), Op::SetEvent, event);
}
VKAPI_ATTR void VKAPI_CALL vkCmdSetEvent2(VkCommandBuffer cb, VkEvent event, const VkDependencyInfo*) {
    KP_COUNTED("vkCmdSetEvent2");
    record_event(of(cb), Op::SetEvent, event);
}
VKAPI_ATTR void VKAPI_CALL vkCmdResetEvent(VkCommandBuffer cb, VkEvent event, VkPipelineStageFlags) {
    KP_COUNTED("vkCmdResetEvent");
    record_event(of(cb), Op::ResetEvent, event);
}
VKAPI_ATTR void VKAPI_CALL vkCmdResetEvent2(VkCommandBuffer cb, VkEvent event, VkPipelineStageFlags2) {
    KP_COUNTED("vkCmdResetEvent2");
    record_event(of(cb), Op::ResetEvent, event);
}
VKAPI_ATTR void VKAPI_CALL vkCmdWaitEvents(VkCommandBuffer cb, uint32_t count, const VkEvent* events,
                                           VkPipelineStageFlags source, VkPipelineStageFlags target,
                                           uint32_t memory_count, const VkMemoryBarrier* memory,
                                           uint32_t buffer_count, const VkBufferMemoryBarrier* buffers,
                                           uint32_t image_count, const VkImageMemoryBarrier* images) {
    KP_COUNTED("vkCmdWaitEvents");
    record_wait(of(cb), count, events);
    record(of(cb), collect(source, target, memory_count, memory, buffer_count, buffers, image_count, images),
           0);
}
VKAPI_ATTR void VKAPI_CALL vkCmdWaitEvents2(VkCommandBuffer cb, uint32_t count, const VkEvent* events,
                                            const VkDependencyInfo* infos) {
    KP_COUNTED("vkCmdWaitEvents2");
    record_wait(of(cb), count, events);
    for (uint32_t i = 0; i < count; ++i) record(of(cb), infos[i]);
}

}  // namespace kpnull
