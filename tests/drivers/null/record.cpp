// Command pools and buffers, and the recording of everything but barriers.
#include "commands.hpp"
#include "entry_points.hpp"

#include <algorithm>

namespace kpnull {
namespace {

std::atomic<uint64_t> g_serial{0};

CommandBuffer& recording(VkCommandBuffer handle, const char* call) {
    CommandBuffer& cb = *from<CommandBuffer>(handle);
    if (cb.state != RecordState::Recording)
        violation("%s: VkCommandBuffer (%s) is not recording", call, label(&cb));
    return cb;
}
// Changing what the device executes would be a race: note it, then let the device finish.
void wait_if_pending(CommandBuffer& cb, const char* call) {
    if (!cb.pending) return;
    violation("%s: VkCommandBuffer (%s) is in use by a pending submission", call, label(&cb));
    cb.device->wait(UINT64_MAX, [&] { return cb.pending == 0; });
}
void need_usage(const Buffer* buffer, VkBufferUsageFlags usage, const char* call) {
    if (!(buffer->usage & usage)) violation("%s: VkBuffer (%s) lacks usage %#x", call, label(buffer), usage);
}
template <class T, class Item>
Item* tail(T* command) {
    return reinterpret_cast<Item*>(command + 1);
}
void record_copy(VkCommandBuffer handle, VkBuffer source, VkBuffer target, uint32_t count,
                 const VkBufferCopy* regions, const char* call) {
    CommandBuffer& cb = recording(handle, call);
    auto* c = cb.emit<CopyBufferCommand>(Op::CopyBuffer, count * sizeof *regions);
    *c = {from<Buffer>(source), from<Buffer>(target), count};
    std::memcpy(tail<CopyBufferCommand, VkBufferCopy>(c), regions, count * sizeof *regions);
    need_usage(c->source, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, call);
    need_usage(c->target, VK_BUFFER_USAGE_TRANSFER_DST_BIT, call);
    cb.refer(c->source);
    cb.refer(c->target);
    cb.effects = true;
}
void record_buffer_image(VkCommandBuffer handle, Op op, VkBuffer buffer, VkImage image, uint32_t count,
                         const VkBufferImageCopy* regions, const char* call) {
    CommandBuffer& cb = recording(handle, call);
    auto* c = cb.emit<BufferImageCommand>(op, count * sizeof *regions);
    *c = {from<Buffer>(buffer), from<Image>(image), count};
    std::memcpy(tail<BufferImageCommand, VkBufferImageCopy>(c), regions, count * sizeof *regions);
    need_usage(c->buffer,
               op == Op::CopyBufferToImage ? VK_BUFFER_USAGE_TRANSFER_SRC_BIT
                                           : VK_BUFFER_USAGE_TRANSFER_DST_BIT,
               call);
    cb.refer(c->buffer);
    cb.refer(c->image);
    cb.effects = true;
}
void record_copy_image(VkCommandBuffer handle, VkImage source, VkImage target, uint32_t count,
                       const VkImageCopy* regions, const char* call) {
    CommandBuffer& cb = recording(handle, call);
    auto* c = cb.emit<CopyImageCommand>(Op::CopyImage, count * sizeof *regions);
    *c = {from<Image>(source), from<Image>(target), count};
    std::memcpy(tail<CopyImageCommand, VkImageCopy>(c), regions, count * sizeof *regions);
    cb.refer(c->source);
    cb.refer(c->target);
    cb.effects = true;
}

// What the dispatch will use: the bound sets and all that they name.
void refer_to_bound(CommandBuffer& cb, const char* call) {
    if (!cb.pipeline) violation("%s: no compute pipeline is bound", call);
    for (DescriptorSet* set : cb.sets) {
        if (!set) continue;
        cb.refer(set);
        for (const Descriptor& d : set->descriptors) {
            if (!d.object) continue;
            cb.refer(d.object);
            if (d.object->kind == Kind::BufferView) cb.refer(static_cast<BufferView*>(d.object)->buffer);
            if (d.object->kind == Kind::ImageView) cb.refer(static_cast<ImageView*>(d.object)->image);
        }
    }
    const auto& families = cb.device->physical->families;
    if (!(families[cb.pool->family].queueFlags & VK_QUEUE_COMPUTE_BIT))
        violation("%s: queue family %u has no compute", call, cb.pool->family);
}
void record_dispatch(CommandBuffer& cb, const uint32_t (&base)[3], const uint32_t (&groups)[3],
                     const char* call) {
    const VkPhysicalDeviceLimits& limits = cb.device->physical->properties.limits;
    for (int i = 0; i < 3; ++i)
        if (uint64_t(base[i]) + groups[i] > limits.maxComputeWorkGroupCount[i])
            violation("%s: %u groups on axis %d exceed maxComputeWorkGroupCount %u", call, groups[i], i,
                      limits.maxComputeWorkGroupCount[i]);
    refer_to_bound(cb, call);
    *cb.emit<DispatchCommand>(Op::Dispatch) = {{base[0], base[1], base[2]},
                                               {groups[0], groups[1], groups[2]}};
    ++cb.dispatches;
}
}  // namespace

void CommandBuffer::reset() {
    words.clear();
    references.clear();
    pipeline = nullptr;
    std::fill(std::begin(sets), std::end(sets), nullptr);
    effects = false;
    dispatches = 0;
    state = RecordState::Initial;
}

bool references_alive(CommandBuffer& cb) {
    const uint64_t epoch = cb.device->destroy_epoch.load();
    for (Object* object : cb.references) {
        if (object->destroyed) {
            violation("VkCommandBuffer (%s) is submitted, but %s (%s) which it uses is destroyed", label(&cb),
                      kind_name(object->kind), label(object));
            cb.state = RecordState::Invalid;
            return false;
        }
        if (object->kind == Kind::CommandBuffer && !references_alive(*static_cast<CommandBuffer*>(object)))
            return false;
    }
    cb.checked_epoch = epoch;
    return true;
}

// ----------------------------------------------------------------------------------- pools and buffers

VKAPI_ATTR VkResult VKAPI_CALL vkCreateCommandPool(VkDevice device, const VkCommandPoolCreateInfo* info,
                                                   const VkAllocationCallbacks*, VkCommandPool* out) {
    KP_FAILABLE("vkCreateCommandPool");
    auto* pool = create<CommandPool>(from<Device>(device));
    pool->device = from<Device>(device);
    pool->family = info->queueFamilyIndex;
    pool->flags = info->flags;
    *out = to(pool);
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyCommandPool(VkDevice, VkCommandPool handle,
                                                const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyCommandPool");
    if (!handle) return;
    auto* pool = from<CommandPool>(handle);
    for (CommandBuffer* cb : pool->buffers) retire(cb);
    pool->buffers.clear();
    retire(pool);
}
VKAPI_ATTR VkResult VKAPI_CALL vkResetCommandPool(VkDevice, VkCommandPool handle, VkCommandPoolResetFlags) {
    KP_FAILABLE("vkResetCommandPool");
    for (CommandBuffer* cb : from<CommandPool>(handle)->buffers) {
        wait_if_pending(*cb, "vkResetCommandPool");
        cb->reset();
    }
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkAllocateCommandBuffers(VkDevice device,
                                                        const VkCommandBufferAllocateInfo* info,
                                                        VkCommandBuffer* out) {
    KP_FAILABLE("vkAllocateCommandBuffers");
    auto* pool = from<CommandPool>(info->commandPool);
    for (uint32_t i = 0; i < info->commandBufferCount; ++i) {
        auto* cb = create<CommandBuffer>(from<Device>(device));
        cb->pool = pool;
        cb->device = from<Device>(device);
        cb->secondary = info->level == VK_COMMAND_BUFFER_LEVEL_SECONDARY;
        pool->buffers.insert(cb);
        out[i] = to(cb);
    }
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkFreeCommandBuffers(VkDevice, VkCommandPool pool, uint32_t count,
                                                const VkCommandBuffer* all) {
    KP_COUNTED("vkFreeCommandBuffers");
    for (uint32_t i = 0; i < count; ++i) {
        if (!all[i]) continue;
        from<CommandPool>(pool)->buffers.erase(from<CommandBuffer>(all[i]));
        retire(from<CommandBuffer>(all[i]));
    }
}
VKAPI_ATTR VkResult VKAPI_CALL vkBeginCommandBuffer(VkCommandBuffer handle,
                                                    const VkCommandBufferBeginInfo* info) {
    KP_FAILABLE("vkBeginCommandBuffer");
    CommandBuffer& cb = *from<CommandBuffer>(handle);
    wait_if_pending(cb, "vkBeginCommandBuffer");
    if (cb.state != RecordState::Initial &&
        !(cb.pool->flags & VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT))
        violation("vkBeginCommandBuffer: VkCommandBuffer (%s) is not in the initial state and its pool lacks "
                  "RESET_COMMAND_BUFFER",
                  label(&cb));
    cb.reset();
    cb.serial = g_serial.fetch_add(1) + 1;
    cb.checked_epoch = cb.device->destroy_epoch.load();
    cb.usage = info->flags;
    cb.state = RecordState::Recording;
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkEndCommandBuffer(VkCommandBuffer handle) {
    KP_FAILABLE("vkEndCommandBuffer");
    CommandBuffer& cb = recording(handle, "vkEndCommandBuffer");
    cb.state = RecordState::Executable;
    if (cb.labels) violation("vkEndCommandBuffer: %u label(s) of %s were not ended", cb.labels, label(&cb));
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkResetCommandBuffer(VkCommandBuffer handle, VkCommandBufferResetFlags) {
    KP_FAILABLE("vkResetCommandBuffer");
    CommandBuffer& cb = *from<CommandBuffer>(handle);
    wait_if_pending(cb, "vkResetCommandBuffer");
    cb.reset();
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL vkCmdBeginDebugUtilsLabelEXT(VkCommandBuffer handle,
                                                        const VkDebugUtilsLabelEXT* info) {
    KP_COUNTED("vkCmdBeginDebugUtilsLabelEXT");
    CommandBuffer& cb = recording(handle, "vkCmdBeginDebugUtilsLabelEXT");
    ++cb.labels;
    const size_t size = std::strlen(info->pLabelName);
    auto* c = cb.emit<LabelCommand>(Op::Label, size);
    c->size = size;
    std::memcpy(c + 1, info->pLabelName, size);
}
VKAPI_ATTR void VKAPI_CALL vkCmdEndDebugUtilsLabelEXT(VkCommandBuffer handle) {
    KP_COUNTED("vkCmdEndDebugUtilsLabelEXT");
    CommandBuffer& cb = recording(handle, "vkCmdEndDebugUtilsLabelEXT");
    if (cb.labels-- == 0) {
        cb.labels = 0;
        violation("vkCmdEndDebugUtilsLabelEXT: no label of %s has begun", label(&cb));
    }
}

// -------------------------------------------------------------------------------- state and dispatches

VKAPI_ATTR void VKAPI_CALL vkCmdBindPipeline(VkCommandBuffer handle, VkPipelineBindPoint,
                                             VkPipeline pipeline) {
    KP_COUNTED("vkCmdBindPipeline");
    CommandBuffer& cb = recording(handle, "vkCmdBindPipeline");
    cb.pipeline = from<Pipeline>(pipeline);
    cb.refer(cb.pipeline);
    cb.emit<BindPipelineCommand>(Op::BindPipeline)->pipeline = cb.pipeline;
}
VKAPI_ATTR void VKAPI_CALL vkCmdBindDescriptorSets(VkCommandBuffer handle, VkPipelineBindPoint,
                                                   VkPipelineLayout layout, uint32_t first, uint32_t count,
                                                   const VkDescriptorSet* sets, uint32_t offsets,
                                                   const uint32_t*) {
    KP_COUNTED("vkCmdBindDescriptorSets");
    CommandBuffer& cb = recording(handle, "vkCmdBindDescriptorSets");
    if (offsets) violation("vkCmdBindDescriptorSets: the null driver has no dynamic offsets");
    auto* c = cb.emit<BindSetsCommand>(Op::BindSets, count * sizeof(DescriptorSet*));
    *c = {from<PipelineLayout>(layout), first, count};
    auto* items = tail<BindSetsCommand, DescriptorSet*>(c);
    for (uint32_t i = 0; i < count; ++i) {
        items[i] = from<DescriptorSet>(sets[i]);
        if (first + i < std::size(cb.sets)) cb.sets[first + i] = items[i];
    }
}
VKAPI_ATTR void VKAPI_CALL vkCmdPushConstants(VkCommandBuffer handle, VkPipelineLayout layout,
                                              VkShaderStageFlags, uint32_t offset, uint32_t size,
                                              const void* values) {
    KP_COUNTED("vkCmdPushConstants");
    CommandBuffer& cb = recording(handle, "vkCmdPushConstants");
    auto* c = cb.emit<PushCommand>(Op::PushConstants, size);
    *c = {from<PipelineLayout>(layout), offset, size};
    std::memcpy(c + 1, values, size);
    if (offset + size > c->layout->push_bytes)
        violation("vkCmdPushConstants: bytes %u..%u of a layout with %u", offset, offset + size,
                  c->layout->push_bytes);
}
VKAPI_ATTR void VKAPI_CALL vkCmdDispatch(VkCommandBuffer handle, uint32_t x, uint32_t y, uint32_t z) {
    KP_COUNTED("vkCmdDispatch");
    record_dispatch(recording(handle, "vkCmdDispatch"), {0, 0, 0}, {x, y, z}, "vkCmdDispatch");
}
VKAPI_ATTR void VKAPI_CALL vkCmdDispatchBase(VkCommandBuffer handle, uint32_t base_x, uint32_t base_y,
                                             uint32_t base_z, uint32_t x, uint32_t y, uint32_t z) {
    KP_COUNTED("vkCmdDispatchBase");
    record_dispatch(recording(handle, "vkCmdDispatchBase"), {base_x, base_y, base_z}, {x, y, z},
                    "vkCmdDispatchBase");
}
VKAPI_ATTR void VKAPI_CALL vkCmdDispatchIndirect(VkCommandBuffer handle, VkBuffer buffer,
                                                 VkDeviceSize offset) {
    KP_COUNTED("vkCmdDispatchIndirect");
    CommandBuffer& cb = recording(handle, "vkCmdDispatchIndirect");
    refer_to_bound(cb, "vkCmdDispatchIndirect");
    cb.refer(from<Buffer>(buffer));
    need_usage(from<Buffer>(buffer), VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT, "vkCmdDispatchIndirect");
    *cb.emit<DispatchIndirectCommand>(Op::DispatchIndirect) = {from<Buffer>(buffer), offset};
    ++cb.dispatches;
    cb.effects = true;  // the group counts are read, and checked, when it executes
}

// ------------------------------------------------------------------------------------------- transfers

VKAPI_ATTR void VKAPI_CALL vkCmdCopyBuffer(VkCommandBuffer cb, VkBuffer source, VkBuffer target,
                                           uint32_t count, const VkBufferCopy* regions) {
    KP_COUNTED("vkCmdCopyBuffer");
    record_copy(cb, source, target, count, regions, "vkCmdCopyBuffer");
}
VKAPI_ATTR void VKAPI_CALL vkCmdFillBuffer(VkCommandBuffer handle, VkBuffer buffer, VkDeviceSize offset,
                                           VkDeviceSize size, uint32_t value) {
    KP_COUNTED("vkCmdFillBuffer");
    CommandBuffer& cb = recording(handle, "vkCmdFillBuffer");
    auto* target = from<Buffer>(buffer);
    need_usage(target, VK_BUFFER_USAGE_TRANSFER_DST_BIT, "vkCmdFillBuffer");
    if (offset % 4 || (size != VK_WHOLE_SIZE && size % 4))
        violation("vkCmdFillBuffer: offset %llu, size %llu are not multiples of 4",
                  (unsigned long long)offset, (unsigned long long)size);
    const VkDeviceSize bytes =
        size == VK_WHOLE_SIZE ? (target->size - std::min(offset, target->size)) / 4 * 4 : size;
    *cb.emit<FillCommand>(Op::FillBuffer) = {target, offset, bytes, value, 0};
    cb.refer(target);
    cb.effects = true;
}
VKAPI_ATTR void VKAPI_CALL vkCmdUpdateBuffer(VkCommandBuffer handle, VkBuffer buffer, VkDeviceSize offset,
                                             VkDeviceSize size, const void* data) {
    KP_COUNTED("vkCmdUpdateBuffer");
    CommandBuffer& cb = recording(handle, "vkCmdUpdateBuffer");
    auto* target = from<Buffer>(buffer);
    need_usage(target, VK_BUFFER_USAGE_TRANSFER_DST_BIT, "vkCmdUpdateBuffer");
    if (offset % 4 || size % 4 || size == 0 || size > 65536)
        violation("vkCmdUpdateBuffer: offset %llu, size %llu; multiples of 4, at most 65536 bytes",
                  (unsigned long long)offset, (unsigned long long)size);
    auto* c = cb.emit<UpdateCommand>(Op::UpdateBuffer, size);
    *c = {target, offset, size};
    std::memcpy(tail<UpdateCommand, uint8_t>(c), data, size);
    cb.refer(target);
    cb.effects = true;
}
VKAPI_ATTR void VKAPI_CALL vkCmdCopyBufferToImage(VkCommandBuffer cb, VkBuffer buffer, VkImage image,
                                                  VkImageLayout, uint32_t count,
                                                  const VkBufferImageCopy* regions) {
    KP_COUNTED("vkCmdCopyBufferToImage");
    record_buffer_image(cb, Op::CopyBufferToImage, buffer, image, count, regions, "vkCmdCopyBufferToImage");
}
VKAPI_ATTR void VKAPI_CALL vkCmdCopyImageToBuffer(VkCommandBuffer cb, VkImage image, VkImageLayout,
                                                  VkBuffer buffer, uint32_t count,
                                                  const VkBufferImageCopy* regions) {
    KP_COUNTED("vkCmdCopyImageToBuffer");
    record_buffer_image(cb, Op::CopyImageToBuffer, buffer, image, count, regions, "vkCmdCopyImageToBuffer");
}
VKAPI_ATTR void VKAPI_CALL vkCmdCopyImage(VkCommandBuffer cb, VkImage source, VkImageLayout, VkImage target,
                                          VkImageLayout, uint32_t count, const VkImageCopy* regions) {
    KP_COUNTED("vkCmdCopyImage");
    record_copy_image(cb, source, target, count, regions, "vkCmdCopyImage");
}

// ----------------------------------------------------------------------------------- queries, the rest

VKAPI_ATTR void VKAPI_CALL vkCmdResetQueryPool(VkCommandBuffer handle, VkQueryPool pool, uint32_t first,
                                               uint32_t count) {
    KP_COUNTED("vkCmdResetQueryPool");
    CommandBuffer& cb = recording(handle, "vkCmdResetQueryPool");
    *cb.emit<QueriesCommand>(Op::ResetQueries) = {from<QueryPool>(pool), first, count};
    cb.refer(from<QueryPool>(pool));
    cb.effects = true;
    if (!(cb.device->physical->families[cb.pool->family].queueFlags &
          (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT)))
        violation("vkCmdResetQueryPool: queue family %u has neither compute nor graphics", cb.pool->family);
}
namespace {
void record_timestamp(CommandBuffer& cb, QueryPool* pool, uint32_t query, VkPipelineStageFlags2 stage) {
    const uint32_t bits = cb.device->physical->families[cb.pool->family].timestampValidBits;
    *cb.emit<TimestampCommand>(Op::WriteTimestamp) = {pool, query, bits, stage};
    cb.refer(pool);
    cb.effects = true;
    if (bits == 0) violation("vkCmdWriteTimestamp: queue family %u has no timestamps", cb.pool->family);
}
}  // namespace
VKAPI_ATTR void VKAPI_CALL vkCmdWriteTimestamp(VkCommandBuffer handle, VkPipelineStageFlagBits stage,
                                               VkQueryPool pool, uint32_t query) {
    KP_COUNTED("vkCmdWriteTimestamp");
    record_timestamp(recording(handle, "vkCmdWriteTimestamp"), from<QueryPool>(pool), query, stage);
}
VKAPI_ATTR void VKAPI_CALL vkCmdExecuteCommands(VkCommandBuffer handle, uint32_t count,
                                                const VkCommandBuffer* secondaries) {
    KP_COUNTED("vkCmdExecuteCommands");
    CommandBuffer& cb = recording(handle, "vkCmdExecuteCommands");
    for (uint32_t i = 0; i < count; ++i) {
        auto* secondary = from<CommandBuffer>(secondaries[i]);
        if (!secondary->secondary || secondary->state != RecordState::Executable)
            violation("vkCmdExecuteCommands: VkCommandBuffer (%s) is not an executable secondary one",
                      label(secondary));
        cb.emit<ExecuteCommand>(Op::Execute)->secondary = secondary;
        cb.refer(secondary);
        cb.effects |= secondary->effects;
        cb.dispatches += secondary->dispatches;
    }
    cb.pipeline = nullptr;
    std::fill(std::begin(cb.sets), std::end(cb.sets), nullptr);
}

}  // namespace kpnull
