// The log of executed commands, as JSON objects: enough for an independent model of hazards (who reads and
// writes which bytes, with which barriers between).
#include "commands.hpp"

#include <cstdio>

namespace kpnull {
namespace {

std::string quote(const char* text, size_t length) {
    std::string out = "\"";
    for (size_t i = 0; i < length; ++i) {
        const char c = text[i];
        if (c == '"' || c == '\\')
            out += '\\', out += c;
        else if (static_cast<unsigned char>(c) < 0x20)
            out += ' ';
        else
            out += c;
    }
    return out + "\"";
}
std::string quote(const char* text) { return quote(text, std::strlen(text)); }

struct Json {
    std::string text;
    explicit Json(const char* op) { text = std::string("{\"op\":\"") + op + "\""; }
    Json() { text = "{"; }
    Json& raw(const char* key, const std::string& value) {
        if (text.size() > 1) text += ',';
        text += std::string("\"") + key + "\":" + value;
        return *this;
    }
    Json& number(const char* key, uint64_t value) { return raw(key, std::to_string(value)); }
    Json& object(const char* key, const Object* o) {
        raw(key, std::to_string(reinterpret_cast<uintptr_t>(o)));
        if (o && o->name) raw((std::string(key) + "_name").c_str(), quote(o->name));
        return *this;
    }
    std::string end() { return text + "}"; }
};

template <class T, class F>
std::string list(const T* items, uint64_t count, F format) {
    std::string out = "[";
    for (uint64_t i = 0; i < count; ++i) out += (i ? "," : "") + format(items[i]);
    return out + "]";
}
std::string triple(uint64_t x, uint64_t y, uint64_t z) {
    return "[" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + "]";
}
std::string extent(const VkExtent3D& e) { return triple(e.width, e.height, e.depth); }
std::string offset(const VkOffset3D& o) { return triple(uint64_t(o.x), uint64_t(o.y), uint64_t(o.z)); }
std::string layers(const VkImageSubresourceLayers& l) {
    return Json()
        .number("level", l.mipLevel)
        .number("layer", l.baseArrayLayer)
        .number("layers", l.layerCount)
        .end();
}
template <class Barrier>
Json scopes(const Barrier& b) {
    Json j;
    j.number("src_stage", b.srcStageMask).number("src_access", b.srcAccessMask);
    j.number("dst_stage", b.dstStageMask).number("dst_access", b.dstAccessMask);
    return j;
}

std::string barrier(const BarrierCommand& c) {
    const auto* memory = reinterpret_cast<const VkMemoryBarrier2*>(&c + 1);
    const auto* buffers = reinterpret_cast<const VkBufferMemoryBarrier2*>(memory + c.memory);
    const auto* images = reinterpret_cast<const VkImageMemoryBarrier2*>(buffers + c.buffers);
    Json j("barrier");
    j.raw("memory", list(memory, c.memory, [](const auto& b) { return scopes(b).end(); }));
    j.raw("buffers", list(buffers, c.buffers, [](const auto& b) {
              const auto* buffer = from<Buffer>(b.buffer);
              return scopes(b)
                  .object("buffer", buffer)
                  .number("offset", b.offset)
                  .number("size", b.size == VK_WHOLE_SIZE ? buffer->size - b.offset : b.size)
                  .number("src_family", b.srcQueueFamilyIndex)
                  .number("dst_family", b.dstQueueFamilyIndex)
                  .end();
          }));
    j.raw("images", list(images, c.images, [](const auto& b) {
              return scopes(b)
                  .object("image", from<Image>(b.image))
                  .number("old_layout", b.oldLayout)
                  .number("new_layout", b.newLayout)
                  .number("src_family", b.srcQueueFamilyIndex)
                  .number("dst_family", b.dstQueueFamilyIndex)
                  .end();
          }));
    return j.end();
}

// State that dispatches inherit while a command buffer is walked.
struct Bound {
    const Pipeline* pipeline = nullptr;
    const DescriptorSet* sets[16] = {};
    std::vector<uint8_t> push;
};

void bind(Bound& bound, const BindSetsCommand& c) {
    const auto* sets = behind<BindSetsCommand, DescriptorSet*>(&c);
    for (uint32_t i = 0; i < c.sets && c.first + i < std::size(bound.sets); ++i)
        bound.sets[c.first + i] = sets[i];
}

std::string bindings(const Bound& bound) {
    std::string out = "[";
    for (uint32_t s = 0; s < std::size(bound.sets); ++s) {
        if (!bound.sets[s]) continue;
        const DescriptorSet& set = *bound.sets[s];
        for (const auto& b : set.bindings) {
            for (uint32_t e = 0; e < b.count && b.first + e < set.descriptors.size(); ++e) {
                const Descriptor& d = set.descriptors[b.first + e];
                if (!d.object) continue;
                Json j;
                j.number("set", s).number("binding", b.binding).number("element", e).number("type", d.type);
                if (d.object->kind == Kind::Buffer) {
                    j.object("buffer", d.object).number("offset", d.offset).number("range", d.range);
                } else if (d.object->kind == Kind::BufferView) {
                    const auto* view = static_cast<const BufferView*>(d.object);
                    j.object("buffer", view->buffer)
                        .number("offset", view->offset)
                        .number("range", view->range);
                } else if (d.object->kind == Kind::ImageView) {
                    j.object("image", static_cast<const ImageView*>(d.object)->image);
                }
                out += (out.size() > 1 ? "," : "") + j.end();
            }
        }
    }
    return out + "]";
}

void dispatch(Bound& bound, const char* op, const std::string& groups, Json extra = Json()) {
    std::string push;
    for (uint8_t byte : bound.push) {
        char hex[3];
        std::snprintf(hex, sizeof hex, "%02x", byte);
        push += hex;
    }
    Json j(op);
    j.object("pipeline", bound.pipeline)
        .raw("groups", groups)
        .raw("bindings", bindings(bound))
        .raw("push", quote(push.c_str()));
    if (extra.text.size() > 1) j.text += "," + extra.text.substr(1);
    append_log(j.end());
}

std::string buffer_image(const char* op, const BufferImageCommand& c) {
    Json j(op);
    j.object("buffer", c.buffer).object("image", c.image);
    j.raw("regions",
          list(behind<BufferImageCommand, VkBufferImageCopy>(&c), c.count, [](const VkBufferImageCopy& r) {
              return Json()
                  .number("offset", r.bufferOffset)
                  .number("row_length", r.bufferRowLength)
                  .number("image_height", r.bufferImageHeight)
                  .raw("subresource", layers(r.imageSubresource))
                  .raw("image_offset", offset(r.imageOffset))
                  .raw("extent", extent(r.imageExtent))
                  .end();
          }));
    return j.end();
}

std::string query_command(const char* op, const QueriesCommand& c) {
    return Json(op).object("pool", c.pool).number("first", c.first).number("count", c.count).end();
}
void log_one(Bound& bound, Op op, const void* p) {
    switch (op) {
    case Op::CopyBuffer: {
        const auto& c = *static_cast<const CopyBufferCommand*>(p);
        append_log(Json("copy_buffer")
                       .object("src", c.source)
                       .object("dst", c.target)
                       .raw("regions", list(behind<CopyBufferCommand, VkBufferCopy>(&c), c.count,
                                            [](const VkBufferCopy& r) {
                                                return Json()
                                                    .number("src_offset", r.srcOffset)
                                                    .number("dst_offset", r.dstOffset)
                                                    .number("size", r.size)
                                                    .end();
                                            }))
                       .end());
        break;
    }
    case Op::FillBuffer: {
        const auto& c = *static_cast<const FillCommand*>(p);
        append_log(Json("fill_buffer")
                       .object("dst", c.target)
                       .number("offset", c.offset)
                       .number("size", c.size)
                       .number("value", c.value)
                       .end());
        break;
    }
    case Op::UpdateBuffer: {
        const auto& c = *static_cast<const UpdateCommand*>(p);
        append_log(Json("update_buffer")
                       .object("dst", c.target)
                       .number("offset", c.offset)
                       .number("size", c.size)
                       .end());
        break;
    }
    case Op::CopyBufferToImage:
        append_log(buffer_image("copy_buffer_to_image", *static_cast<const BufferImageCommand*>(p)));
        break;
    case Op::CopyImageToBuffer:
        append_log(buffer_image("copy_image_to_buffer", *static_cast<const BufferImageCommand*>(p)));
        break;
    case Op::CopyImage: {
        const auto& c = *static_cast<const CopyImageCommand*>(p);
        append_log(Json("copy_image")
                       .object("src", c.source)
                       .object("dst", c.target)
                       .number("count", c.count)
                       .end());
        break;
    }
    case Op::BindPipeline: bound.pipeline = static_cast<const BindPipelineCommand*>(p)->pipeline; break;
    case Op::BindSets: bind(bound, *static_cast<const BindSetsCommand*>(p)); break;
    case Op::PushConstants: {
        const auto& c = *static_cast<const PushCommand*>(p);
        if (bound.push.size() < size_t(c.offset) + c.size) bound.push.resize(size_t(c.offset) + c.size);
        std::memcpy(bound.push.data() + c.offset, &c + 1, c.size);
        break;
    }
    case Op::Dispatch: {
        const auto& c = *static_cast<const DispatchCommand*>(p);
        Json extra;
        if (c.base[0] || c.base[1] || c.base[2]) extra.raw("base", triple(c.base[0], c.base[1], c.base[2]));
        dispatch(bound, "dispatch", triple(c.groups[0], c.groups[1], c.groups[2]), extra);
        break;
    }
    case Op::DispatchIndirect: {
        const auto& c = *static_cast<const DispatchIndirectCommand*>(p);
        uint32_t groups[3] = {};
        if (c.buffer->memory && c.offset + 12 <= c.buffer->size)
            std::memcpy(groups, c.buffer->bytes() + c.offset, 12);
        dispatch(bound, "dispatch_indirect", triple(groups[0], groups[1], groups[2]),
                 Json().object("indirect", c.buffer).number("indirect_offset", c.offset));
        break;
    }
    case Op::Barrier: append_log(barrier(*static_cast<const BarrierCommand*>(p))); break;
    case Op::ResetQueries:
        append_log(query_command("reset_queries", *static_cast<const QueriesCommand*>(p)));
        break;
    case Op::WriteTimestamp: {
        const auto& c = *static_cast<const TimestampCommand*>(p);
        append_log(Json("write_timestamp")
                       .object("pool", c.pool)
                       .number("query", c.query)
                       .number("stage", c.stage)
                       .end());
        break;
    }
    case Op::Label: {
        const auto& c = *static_cast<const LabelCommand*>(p);
        const std::string text(behind<LabelCommand, char>(&c), c.size);
        append_log(Json("label").raw("text", quote(text.c_str())).end());
        break;
    }
    case Op::Execute: log_commands(*static_cast<const ExecuteCommand*>(p)->secondary); break;
    }
}

}  // namespace

void log_submission(const Queue& queue, uint64_t number) {
    append_log(Json("submit")
                   .number("submission", number)
                   .number("family", queue.family)
                   .number("queue", queue.index)
                   .end());
}

void log_commands(const CommandBuffer& buffer) {
    Bound bound;
    for_each_command(buffer, [&](Op op, const void* p) { log_one(bound, op, p); });
}

}  // namespace kpnull
