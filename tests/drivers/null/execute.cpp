// Execution of recorded commands: real copies, fills and queries. A region that does not fit
// is noted and skipped: a wrong command must not take the process with it.
#include "commands.hpp"

#include <algorithm>

namespace kpnull {
namespace {

unsigned long long ull(VkDeviceSize v) { return v; }

uint8_t* span(const Buffer* buffer, VkDeviceSize offset, VkDeviceSize size, const char* what) {
    if (!buffer->memory) {
        violation("%s: VkBuffer (%s) is not bound to memory", what, label(buffer));
        return nullptr;
    }
    if (offset > buffer->size || size > buffer->size - offset) {
        violation("%s: %llu bytes at %llu of VkBuffer (%s) with %llu", what, ull(size), ull(offset),
                  label(buffer), ull(buffer->size));
        return nullptr;
    }
    return buffer->bytes() + offset;
}

struct Box {
    uint32_t level, layer, layers;
    VkOffset3D offset;
    VkExtent3D extent;
};
bool fits(const Image& image, const Box& box, const char* what) {
    const bool ok = [&] {
        if (!image.memory || box.level >= image.levels.size()) return false;
        if (uint64_t(box.layer) + box.layers > image.info.arrayLayers) return false;
        const VkExtent3D& e = image.levels[box.level].extent;
        return box.offset.x >= 0 && box.offset.y >= 0 && box.offset.z >= 0 &&
               uint64_t(box.offset.x) + box.extent.width <= e.width &&
               uint64_t(box.offset.y) + box.extent.height <= e.height &&
               uint64_t(box.offset.z) + box.extent.depth <= e.depth;
    }();
    if (!ok)
        violation("%s: VkImage (%s) is not bound, or the region (level %u, layers %u+%u, %ux%ux%u at "
                  "%d,%d,%d) lies outside "
                  "of it",
                  what, label(&image), box.level, box.layer, box.layers, box.extent.width, box.extent.height,
                  box.extent.depth, box.offset.x, box.offset.y, box.offset.z);
    return ok;
}

void copy_buffer(const CopyBufferCommand& c) {
    const auto* regions = behind<CopyBufferCommand, VkBufferCopy>(&c);
    for (uint64_t i = 0; i < c.count; ++i) {
        const uint8_t* source =
            span(c.source, regions[i].srcOffset, regions[i].size, "vkCmdCopyBuffer (source)");
        uint8_t* target = span(c.target, regions[i].dstOffset, regions[i].size, "vkCmdCopyBuffer (target)");
        if (!source || !target) continue;
        if (source < target + regions[i].size && target < source + regions[i].size)
            violation("vkCmdCopyBuffer: source (%s) and target (%s) overlap", label(c.source),
                      label(c.target));
        std::memmove(target, source, regions[i].size);
        device_wrote(*c.target, target, regions[i].size);
    }
}

void fill_buffer(const FillCommand& c) {
    uint8_t* target = span(c.target, c.offset, c.size, "vkCmdFillBuffer");
    if (!target) return;
    const uint8_t low = uint8_t(c.value);
    if (c.value == low * 0x01010101u) {
        std::memset(target, low, c.size);
    } else {
        for (VkDeviceSize at = 0; at + 4 <= c.size; at += 4) std::memcpy(target + at, &c.value, 4);
    }
    device_wrote(*c.target, target, c.size);
}

void update_buffer(const UpdateCommand& c) {
    uint8_t* target = span(c.target, c.offset, c.size, "vkCmdUpdateBuffer");
    if (!target) return;
    std::memcpy(target, behind<UpdateCommand, uint8_t>(&c), c.size);
    device_wrote(*c.target, target, c.size);
}

void copy_buffer_image(const BufferImageCommand& c, bool to_image) {
    const char* what = to_image ? "vkCmdCopyBufferToImage" : "vkCmdCopyImageToBuffer";
    const Image& image = *c.image;
    const auto* regions = behind<BufferImageCommand, VkBufferImageCopy>(&c);
    for (uint64_t i = 0; i < c.count; ++i) {
        const VkBufferImageCopy& r = regions[i];
        const Box box{r.imageSubresource.mipLevel, r.imageSubresource.baseArrayLayer,
                      r.imageSubresource.layerCount, r.imageOffset, r.imageExtent};
        if (!fits(image, box, what)) continue;
        const VkDeviceSize row_bytes = VkDeviceSize(r.imageExtent.width) * image.texel_bytes;
        const VkDeviceSize pitch =
            r.bufferRowLength ? VkDeviceSize(r.bufferRowLength) * image.texel_bytes : row_bytes;
        const VkDeviceSize rows = r.bufferImageHeight ? r.bufferImageHeight : r.imageExtent.height;
        const VkDeviceSize slices = VkDeviceSize(box.layers) * r.imageExtent.depth;
        const VkDeviceSize used = ((slices - 1) * rows + r.imageExtent.height - 1) * pitch + row_bytes;
        uint8_t* bytes = span(c.buffer, r.bufferOffset, used, what);
        if (!bytes) continue;
        if (r.bufferOffset % 4 && r.bufferOffset % image.texel_bytes)
            violation("%s: bufferOffset %llu is not a multiple of the texel size %u", what,
                      ull(r.bufferOffset), image.texel_bytes);
        for (uint32_t layer = 0; layer < box.layers; ++layer)
            for (uint32_t z = 0; z < r.imageExtent.depth; ++z)
                for (uint32_t y = 0; y < r.imageExtent.height; ++y) {
                    uint8_t* row = bytes + ((layer * r.imageExtent.depth + z) * rows + y) * pitch;
                    uint8_t* texels =
                        image.texel(box.level, box.layer + layer, uint32_t(r.imageOffset.x),
                                    uint32_t(r.imageOffset.y) + y, uint32_t(r.imageOffset.z) + z);
                    std::memcpy(to_image ? texels : row, to_image ? row : texels, row_bytes);
                    if (to_image)
                        device_wrote(image, texels, row_bytes);
                    else
                        device_wrote(*c.buffer, row, row_bytes);
                }
    }
}

void copy_image(const CopyImageCommand& c) {
    const auto* regions = behind<CopyImageCommand, VkImageCopy>(&c);
    if (c.source->texel_bytes != c.target->texel_bytes) {
        violation("vkCmdCopyImage: texels of %u and %u bytes", c.source->texel_bytes, c.target->texel_bytes);
        return;
    }
    for (uint64_t i = 0; i < c.count; ++i) {
        const VkImageCopy& r = regions[i];
        const Box from_box{r.srcSubresource.mipLevel, r.srcSubresource.baseArrayLayer,
                           r.srcSubresource.layerCount, r.srcOffset, r.extent};
        const Box to_box{r.dstSubresource.mipLevel, r.dstSubresource.baseArrayLayer,
                         r.dstSubresource.layerCount, r.dstOffset, r.extent};
        if (!fits(*c.source, from_box, "vkCmdCopyImage (source)") ||
            !fits(*c.target, to_box, "vkCmdCopyImage (target)"))
            continue;
        const VkDeviceSize row_bytes = VkDeviceSize(r.extent.width) * c.source->texel_bytes;
        for (uint32_t layer = 0; layer < std::min(from_box.layers, to_box.layers); ++layer)
            for (uint32_t z = 0; z < r.extent.depth; ++z)
                for (uint32_t y = 0; y < r.extent.height; ++y) {
                    uint8_t* target =
                        c.target->texel(to_box.level, to_box.layer + layer, uint32_t(r.dstOffset.x),
                                        uint32_t(r.dstOffset.y) + y, uint32_t(r.dstOffset.z) + z);
                    const uint8_t* source =
                        c.source->texel(from_box.level, from_box.layer + layer, uint32_t(r.srcOffset.x),
                                        uint32_t(r.srcOffset.y) + y, uint32_t(r.srcOffset.z) + z);
                    std::memmove(target, source, row_bytes);
                    device_wrote(*c.target, target, row_bytes);
                }
    }
}

// Calls visit(row, bytes) for every row of every subresource of a range.
template <class Visit>
void for_each_row(const Image& image, const VkImageSubresourceRange& range, Visit visit) {
    const uint32_t levels = uint32_t(image.levels.size());
    const uint32_t last_level =
        range.levelCount == VK_REMAINING_MIP_LEVELS ? levels : range.baseMipLevel + range.levelCount;
    const uint32_t last_layer = range.layerCount == VK_REMAINING_ARRAY_LAYERS
                                    ? image.info.arrayLayers
                                    : range.baseArrayLayer + range.layerCount;
    if (!image.memory || last_level > levels || last_layer > image.info.arrayLayers) {
        violation("VkImage (%s) is not bound, or a subresource range lies outside of it", label(&image));
        return;
    }
    for (uint32_t layer = range.baseArrayLayer; layer < last_layer; ++layer)
        for (uint32_t level = range.baseMipLevel; level < last_level; ++level) {
            const VkExtent3D& e = image.levels[level].extent;
            for (uint32_t z = 0; z < e.depth; ++z)
                for (uint32_t y = 0; y < e.height; ++y) {
                    uint8_t* row = image.texel(level, layer, 0, y, z);
                    visit(row, size_t(e.width) * image.texel_bytes);
                    device_wrote(image, row, size_t(e.width) * image.texel_bytes);
                }
        }
}

// The specification leaves the contents of an image undefined after such a transition; a pattern that no test
// expects shows whoever relies on them.
void discard_images(const BarrierCommand& c) {
    const auto* at = reinterpret_cast<const uint8_t*>(&c + 1) + c.memory * sizeof(VkMemoryBarrier2) +
                     c.buffers * sizeof(VkBufferMemoryBarrier2);
    const auto* images = reinterpret_cast<const VkImageMemoryBarrier2*>(at);
    for (uint32_t i = 0; i < c.images; ++i)
        if (images[i].oldLayout == VK_IMAGE_LAYOUT_UNDEFINED &&
            images[i].newLayout != VK_IMAGE_LAYOUT_UNDEFINED)
            for_each_row(*from<Image>(images[i].image), images[i].subresourceRange,
                         [](uint8_t* row, size_t bytes) { std::memset(row, 0xcd, bytes); });
}

void check_indirect(const DispatchIndirectCommand& c) {
    const uint8_t* bytes = span(c.buffer, c.offset, 12, "vkCmdDispatchIndirect");
    if (!bytes) return;
    uint32_t groups[3];
    std::memcpy(groups, bytes, 12);
    const VkPhysicalDeviceLimits& limits =
        static_cast<Device*>(c.buffer->parent)->physical->properties.limits;
    for (int i = 0; i < 3; ++i)
        if (groups[i] > limits.maxComputeWorkGroupCount[i])
            violation("vkCmdDispatchIndirect: %u groups on axis %d exceed maxComputeWorkGroupCount %u",
                      groups[i], i, limits.maxComputeWorkGroupCount[i]);
}

struct Clock {
    uint64_t accepted = 0, began = 0;  // 0: executed as it is submitted
    bool worked = false;
    uint64_t time(VkPipelineStageFlags2 stage) const {
        if (accepted && stage == VK_PIPELINE_STAGE_2_TOP_OF_PIPE_BIT) return accepted;
        return began && !worked ? began : device_time_ns();
    }
};
thread_local Clock t_clock;

void write_timestamp(const TimestampCommand& c) {
    if (c.query >= c.pool->count) {
        violation("vkCmdWriteTimestamp: query %u of VkQueryPool (%s) with %u", c.query, label(c.pool),
                  c.pool->count);
        return;
    }
    if (c.pool->states[c.query] != QueryState::Reset)
        violation("vkCmdWriteTimestamp: query %u of VkQueryPool (%s) was not reset", c.query, label(c.pool));
    const uint64_t valid = c.bits == 64 ? UINT64_MAX : (uint64_t{1} << c.bits) - 1;
    c.pool->values[c.query] = t_clock.time(c.stage) & valid;
    c.pool->states[c.query] = QueryState::Available;
}

bool works(Op op) {
    switch (op) {
    case Op::CopyBuffer:
    case Op::FillBuffer:
    case Op::UpdateBuffer:
    case Op::CopyBufferToImage:
    case Op::CopyImageToBuffer:
    case Op::CopyImage:
    case Op::Dispatch:
    case Op::DispatchIndirect: return true;
    default: return false;
    }
}

}  // namespace

void begin_work(uint64_t accepted_ns, uint64_t began_ns) { t_clock = {accepted_ns, began_ns, false}; }

void execute(const CommandBuffer& buffer) {
    for_each_command(buffer, [](Op op, const void* p) {
        t_clock.worked |= works(op);
        switch (op) {
        case Op::CopyBuffer: copy_buffer(*static_cast<const CopyBufferCommand*>(p)); break;
        case Op::FillBuffer: fill_buffer(*static_cast<const FillCommand*>(p)); break;
        case Op::UpdateBuffer: update_buffer(*static_cast<const UpdateCommand*>(p)); break;
        case Op::CopyBufferToImage:
            copy_buffer_image(*static_cast<const BufferImageCommand*>(p), true);
            break;
        case Op::CopyImageToBuffer:
            copy_buffer_image(*static_cast<const BufferImageCommand*>(p), false);
            break;
        case Op::CopyImage: copy_image(*static_cast<const CopyImageCommand*>(p)); break;
        case Op::DispatchIndirect: check_indirect(*static_cast<const DispatchIndirectCommand*>(p)); break;
        case Op::Barrier: discard_images(*static_cast<const BarrierCommand*>(p)); break;
        case Op::ResetQueries: {
            const auto* c = static_cast<const QueriesCommand*>(p);
            reset_queries(*c->pool, c->first, c->count);
            break;
        }
        case Op::WriteTimestamp: write_timestamp(*static_cast<const TimestampCommand*>(p)); break;
        case Op::Execute: execute(*static_cast<const ExecuteCommand*>(p)->secondary); break;
        case Op::BindPipeline:
        case Op::BindSets:
        case Op::PushConstants:
        case Op::Dispatch:
        case Op::Label: break;
        }
    });
}

}  // namespace kpnull
