#include "pipeline/debugger.hpp"

#include "adapter/context.hpp"
#include "base/error.hpp"
#include "compiler/compile.hpp"

#include <algorithm>
#include <cstring>

namespace kp {
namespace {

constexpr uint64_t bytes = uint64_t{DebugBuffer::words} * sizeof(uint32_t);
constexpr uint64_t shadow_bytes = uint64_t{DebugShadow::words} * sizeof(uint32_t);
constexpr const char* what = "the buffer of debug=";

}  // namespace

Debugger::Debugger(DeviceContext& context, MemoryAllocator& memory, const Instruments& wanted)
    : context_(context), wanted_(wanted) {
    try {
        make(records_, bytes, MemoryUse::host, memory);
        std::memset(records_.memory.mapped(), 0, bytes);
        if (!records_.memory.coherent()) {
            const VkMappedMemoryRange range = records_.memory.mapped_range();
            check_vk(context_.vk().vkFlushMappedMemoryRanges(context_.handle(), 1, &range),
                     "vkFlushMappedMemoryRanges", what);
        }
        if (wanted_.races) make(shadow_, shadow_bytes, MemoryUse::device, memory);
        make_set();
    } catch (...) {
        destroy();
        throw;
    }
}

Debugger::~Debugger() { destroy(); }

void Debugger::make(Made& buffer, uint64_t size, MemoryUse use, MemoryAllocator& memory) {
    auto& vk = context_.vk();
    VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    create.size = size;
    create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    check_vk(vk.vkCreateBuffer(context_.handle(), &create, nullptr, &buffer.handle), "vkCreateBuffer", what);
    VkMemoryRequirements needs{};
    vk.vkGetBufferMemoryRequirements(context_.handle(), buffer.handle, &needs);
    buffer.memory = memory.allocate(needs, use, MemoryPool::buffers, what);
    check_vk(vk.vkBindBufferMemory(context_.handle(), buffer.handle, buffer.memory.memory(),
                                   buffer.memory.offset()),
             "vkBindBufferMemory", what);
}

void Debugger::make_set() {
    auto& vk = context_.vk();
    const uint32_t count = wanted_.races ? 2 : 1;
    std::array<VkDescriptorSetLayoutBinding, 2> bindings{};
    for (uint32_t i = 0; i < count; ++i) {
        bindings[i].binding = i;
        bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        bindings[i].descriptorCount = 1;
        bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    VkDescriptorSetLayoutCreateInfo layout{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    layout.bindingCount = count;
    layout.pBindings = bindings.data();
    check_vk(vk.vkCreateDescriptorSetLayout(context_.handle(), &layout, nullptr, &layout_),
             "vkCreateDescriptorSetLayout", what);
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, count};
    VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.maxSets = 1;
    pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    check_vk(vk.vkCreateDescriptorPool(context_.handle(), &pool, nullptr, &pool_), "vkCreateDescriptorPool",
             what);
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = pool_;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &layout_;
    check_vk(vk.vkAllocateDescriptorSets(context_.handle(), &allocate, &set_), "vkAllocateDescriptorSets",
             what);
    const std::array<VkDescriptorBufferInfo, 2> infos{
        {{records_.handle, 0, bytes}, {shadow_.handle, 0, shadow_bytes}}};
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set_;
    write.descriptorCount = count;  // of the binding, and of those after it
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = infos.data();
    vk.vkUpdateDescriptorSets(context_.handle(), 1, &write, 0, nullptr);
}

void Debugger::destroy() noexcept {
    auto& vk = context_.vk();
    vk.vkDestroyDescriptorPool(context_.handle(), pool_, nullptr);
    vk.vkDestroyDescriptorSetLayout(context_.handle(), layout_, nullptr);
    vk.vkDestroyBuffer(context_.handle(), records_.handle, nullptr);
    vk.vkDestroyBuffer(context_.handle(), shadow_.handle, nullptr);
}

std::vector<uint32_t> Debugger::instrument(std::span<const uint32_t> words, uint32_t set, uint32_t& number) {
    {
        const std::lock_guard lock(mutex_);
        number = static_cast<uint32_t>(modules_.size());
        modules_.emplace_back();
    }
    Instrumented made = instrumented(words, wanted_, set, number);
    if (!made.words.empty()) {
        if (const uint32_t most = context_.limits().maxBoundDescriptorSets; set >= most)
            throw Error(ErrorKind::unimplemented,
                        "The shader uses all " + std::to_string(most) + " descriptor sets of '" +
                            context_.physical().properties.deviceName +
                            "' (maxBoundDescriptorSets), and debug= needs one: use fewer sets, or open the "
                            "Manager without debug=");
        ValidationOptions rules = ValidationOptions::lenient(3);
        made.problem = validate_spirv(made.words, rules);
    }
    if (!made.problem.empty())
        throw Error(ErrorKind::unimplemented, "debug= cannot look into the shader: " + made.problem +
                                                  ". Change it, or open the Manager without debug=");
    const std::lock_guard lock(mutex_);
    modules_[number] = {std::move(made.sites), std::move(made.shadowed)};
    return std::move(made.words);
}

bool Debugger::shadows(uint32_t module) {
    const std::lock_guard lock(mutex_);
    return modules_[module].shadowed.any;
}

void Debugger::begin_shadow(VkCommandBuffer commands, const Dispatch& dispatch) {
    using S = DebugShadow;
    Shadowed shadowed;
    {
        const std::lock_guard lock(mutex_);
        shadowed = modules_[dispatch.module].shadowed;
    }
    if (!shadowed.any) return;
    std::array<uint32_t, S::slots> head{};
    head[S::groups_x] = dispatch.groups[0];
    head[S::groups_y] = dispatch.groups[1];
    head[S::local_x] = dispatch.local_size[0];
    head[S::local_y] = dispatch.local_size[1];
    head[S::local_z] = dispatch.local_size[2];
    uint64_t used = 0;
    if (const uint64_t size = (dispatch.shared_bytes + shadowed.smallest - 1) / shadowed.smallest) {
        const uint64_t groups = dispatch.counts != VK_NULL_HANDLE
                                    ? UINT32_MAX
                                    : uint64_t{dispatch.groups[0]} * dispatch.groups[1] * dispatch.groups[2];
        const uint64_t shown = std::min(groups, S::most_slots / 4 / size);
        head[S::shared + 1] = static_cast<uint32_t>(shown);
        used = shown * size;
    }
    // Bindings over the same bytes have the same slots.
    std::vector<std::pair<Bound, uint32_t>> bound;  // with the place in the head
    for (const Bound& each : dispatch.memory) {
        const auto found =
            std::find(shadowed.buffers.begin(), shadowed.buffers.end(), std::pair(each.set, each.binding));
        if (found == shadowed.buffers.end()) continue;
        bound.emplace_back(each, S::buffers + 2 * static_cast<uint32_t>(found - shadowed.buffers.begin()));
    }
    std::sort(bound.begin(), bound.end(), [](const auto& a, const auto& b) {
        return std::pair(a.first.memory, a.first.begin) < std::pair(b.first.memory, b.first.begin);
    });
    uint64_t first = 0, begin = 0, end = 0, share = 0;
    const void* memory = nullptr;
    for (size_t i = 0; i < bound.size(); ++i) {
        const auto& [each, place] = bound[i];
        if (memory == nullptr || each.memory != memory || each.begin >= end) {
            first = used;
            share = (S::most_slots - used) / (bound.size() - i);
            memory = each.memory;
            begin = each.begin;
            end = each.end;
        }
        end = std::max(end, each.end);
        const uint64_t skipped = std::min((each.begin - begin) / shadowed.granule, share);
        const uint64_t size = (each.end - each.begin) / shadowed.granule;
        const uint64_t shown = std::min(size, share - skipped);
        head[place] = static_cast<uint32_t>(first + skipped);
        head[place + 1] = static_cast<uint32_t>(shown);
        used = std::max(used, first + skipped + shown);
    }
    auto& vk = context_.vk();
    vk.vkCmdUpdateBuffer(commands, shadow_.handle, 0, sizeof head, head.data());
    if (used != 0)
        vk.vkCmdFillBuffer(commands, shadow_.handle, S::slots * sizeof(uint32_t),
                           used * S::slot_words * sizeof(uint32_t), 0);
    if (dispatch.counts == VK_NULL_HANDLE) return;
    const VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_TRANSFER_WRITE_BIT,
                                  VK_ACCESS_TRANSFER_WRITE_BIT};
    vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1,
                            &barrier, 0, nullptr, 0, nullptr);
    const VkBufferCopy copy{dispatch.counts_offset, S::groups_x * sizeof(uint32_t), 2 * sizeof(uint32_t)};
    vk.vkCmdCopyBuffer(commands, dispatch.counts, shadow_.handle, 1, &copy);
}

void Debugger::hide_all(VkCommandBuffer commands) {
    const std::array<uint32_t, DebugShadow::slots> head{};  // has slots for no memory
    context_.vk().vkCmdUpdateBuffer(commands, shadow_.handle, 0, sizeof head, head.data());
}

void Debugger::begin(VkCommandBuffer commands, const std::string& operation, const Dispatch* dispatch) {
    uint32_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        const auto [entry, added] =
            numbers_.try_emplace(operation, static_cast<uint32_t>(operations_.size()));
        if (added) operations_.push_back(operation);
        number = entry->second;
    }
    auto& vk = context_.vk();
    // Indirect counts may be those that a shader, a copy or the host wrote.
    VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_MEMORY_WRITE_BIT,
                            VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
    vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0,
                            1, &barrier, 0, nullptr, 0, nullptr);
    vk.vkCmdUpdateBuffer(commands, records_.handle, DebugBuffer::operation * sizeof(uint32_t), sizeof number,
                         &number);
    if (shadow_.handle != VK_NULL_HANDLE) {
        if (dispatch)
            begin_shadow(commands, *dispatch);
        else
            hide_all(commands);
    }
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
    vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0,
                            1, &barrier, 0, nullptr, 0, nullptr);
}

void Debugger::end(VkCommandBuffer commands) noexcept {
    const VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT,
                                  VK_ACCESS_HOST_READ_BIT};
    context_.vk().vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                       VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

Debugger::Records Debugger::take() {
    auto& vk = context_.vk();
    const VkMappedMemoryRange range =
        records_.memory.coherent() ? VkMappedMemoryRange{} : records_.memory.mapped_range();
    if (!records_.memory.coherent())
        check_vk(vk.vkInvalidateMappedMemoryRanges(context_.handle(), 1, &range),
                 "vkInvalidateMappedMemoryRanges", what);
    auto* const words = reinterpret_cast<uint32_t*>(records_.memory.mapped());
    Records records;
    records.dropped = words[DebugBuffer::dropped];
    const uint32_t used = std::min(words[DebugBuffer::used], DebugBuffer::capacity);
    uint32_t end = 0;
    // The first record that did not fit has no words: all after it were counted as dropped.
    while (end < used) {
        const uint32_t size = words[DebugBuffer::records + end];
        if (size < DebugBuffer::head || size > used - end) break;
        end += size;
    }
    records.words.assign(words + DebugBuffer::records, words + DebugBuffer::records + end);
    if (words[DebugBuffer::used] == 0 && records.dropped == 0) return records;
    std::memset(words + DebugBuffer::records, 0, uint64_t{used} * sizeof(uint32_t));
    words[DebugBuffer::used] = 0;
    words[DebugBuffer::dropped] = 0;
    if (!records_.memory.coherent())
        check_vk(vk.vkFlushMappedMemoryRanges(context_.handle(), 1, &range), "vkFlushMappedMemoryRanges",
                 what);
    return records;
}

std::vector<DebugSite> Debugger::sites(uint32_t module) {
    const std::lock_guard lock(mutex_);
    return module < modules_.size() ? modules_[module].sites : std::vector<DebugSite>{};
}

std::string Debugger::operation(uint32_t number) {
    const std::lock_guard lock(mutex_);
    return number < operations_.size() ? operations_[number] : std::string();
}

}  // namespace kp
