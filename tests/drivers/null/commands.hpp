// Recorded commands. A command buffer is one array of words: a head (operation, length) and a payload per
// command, the payload's own arrays directly behind it. It also lists each object that it names, so that a
// submission can tell whether one of them is gone, and it sums up what a submission needs to know: with no
// command that has an effect on memory, submitting costs an addition.
#pragma once

#include "common.hpp"

namespace kpnull {

enum class Op : uint32_t {
    CopyBuffer,
    FillBuffer,
    UpdateBuffer,
    CopyBufferToImage,
    CopyImageToBuffer,
    CopyImage,
    BindPipeline,
    BindSets,
    PushConstants,
    Dispatch,
    DispatchIndirect,
    Barrier,
    ResetQueries,
    WriteTimestamp,
    Execute,
    Label
};

// clang-format off
struct CopyBufferCommand { Buffer* source; Buffer* target; uint64_t count; };  // VkBufferCopy[]
struct FillCommand { Buffer* target; VkDeviceSize offset, size; uint32_t value, pad; };
struct UpdateCommand { Buffer* target; VkDeviceSize offset, size; };  // bytes
struct BufferImageCommand { Buffer* buffer; Image* image; uint64_t count; };  // VkBufferImageCopy[]
struct CopyImageCommand { Image* source; Image* target; uint64_t count; };  // VkImageCopy[]
struct BindPipelineCommand { Pipeline* pipeline; };
struct BindSetsCommand { PipelineLayout* layout; uint32_t first, sets; };  // DescriptorSet*[]
struct PushCommand { PipelineLayout* layout; uint32_t offset, size; };  // bytes
struct DispatchCommand { uint32_t base[3], groups[3]; };
struct DispatchIndirectCommand { Buffer* buffer; VkDeviceSize offset; };
// VkMemoryBarrier2[], VkBufferMemoryBarrier2[], VkImageMemoryBarrier2[]. Barriers of Vulkan 1.0 are widened
// to these; one with stages but no barrier structs becomes a memory barrier without accesses.
struct BarrierCommand { uint32_t memory, buffers, images, flags; };
struct QueriesCommand { QueryPool* pool; uint32_t first, count; };
struct TimestampCommand { QueryPool* pool; uint32_t query, bits; VkPipelineStageFlags2 stage; };
struct ExecuteCommand { CommandBuffer* secondary; };
struct LabelCommand { uint64_t size; };  // bytes
// clang-format on

struct CommandPool : Object {
    KP_OBJECT(CommandPool)
    Device* device = nullptr;
    uint32_t family = 0;
    VkCommandPoolCreateFlags flags = 0;
    std::unordered_set<CommandBuffer*> buffers;
};

enum class RecordState : uint8_t { Initial, Recording, Executable, Invalid };

struct CommandBuffer : Object {
    KP_OBJECT(CommandBuffer)
    CommandPool* pool = nullptr;
    Device* device = nullptr;
    bool secondary = false;
    uint32_t labels = 0;  // that have begun
    RecordState state = RecordState::Initial;
    bool effects = false;  // executing it changes something besides counts
    VkCommandBufferUsageFlags usage = 0;
    uint64_t dispatches = 0;
    uint64_t serial = 0;         // unique for each recording
    uint64_t checked_epoch = 0;  // Device::destroy_epoch at which every reference was known to be alive
    std::vector<uint64_t> words;
    std::vector<Object*> references;
    Pipeline* pipeline = nullptr;  // bound while recording
    DescriptorSet* sets[16] = {};

    void reset();
    void refer(Object* object) {
        if (!object || object->last_reference.load(std::memory_order_relaxed) == serial) return;
        object->last_reference.store(serial, std::memory_order_relaxed);
        object->recorded = true;
        references.push_back(object);
    }
    template <class T>
    T* emit(Op op, size_t extra_bytes = 0) {
        const size_t count = 1 + (sizeof(T) + extra_bytes + 7) / 8;
        const size_t at = words.size();
        words.resize(at + count);
        words[at] = uint64_t(op) | uint64_t(count) << 32;
        return reinterpret_cast<T*>(&words[at + 1]);
    }
};

template <class Visit>
void for_each_command(const CommandBuffer& buffer, Visit visit) {
    for (size_t at = 0; at < buffer.words.size();) {
        const uint64_t head = buffer.words[at];
        visit(Op(uint32_t(head)), static_cast<const void*>(&buffer.words[at + 1]));
        at += head >> 32;
    }
}
template <class T, class Item>
const Item* behind(const T* command) {
    return reinterpret_cast<const Item*>(command + 1);
}

// False (and a violation) when an object that the command buffer names is gone.
bool references_alive(CommandBuffer& buffer);
void execute(const CommandBuffer& buffer);
// With gpu_us, before what a submission has is executed at its end: when the queue got it, and when its time
// began. A timestamp at the top of the pipe waits for nothing and is of the former, another one before any
// work of the latter.
void begin_work(uint64_t accepted_ns, uint64_t began_ns);
void log_submission(const Queue& queue, uint64_t number);
void log_commands(const CommandBuffer& buffer);

}  // namespace kpnull
