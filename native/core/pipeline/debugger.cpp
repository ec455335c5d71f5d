#include "pipeline/debugger.hpp"

#include "adapter/context.hpp"
#include "base/error.hpp"
#include "compiler/compile.hpp"

#include <cstring>

namespace kp {
namespace {

constexpr uint64_t bytes = uint64_t{DebugBuffer::words} * sizeof(uint32_t);

}  // namespace

Debugger::Debugger(DeviceContext& context, MemoryAllocator& memory, const Instruments& wanted)
    : context_(context), wanted_(wanted) {
    try {
        auto& vk = context_.vk();
        VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
        create.size = bytes;
        create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
        check_vk(vk.vkCreateBuffer(context_.handle(), &create, nullptr, &buffer_), "vkCreateBuffer",
                 "the buffer of debug=");
        VkMemoryRequirements needs{};
        vk.vkGetBufferMemoryRequirements(context_.handle(), buffer_, &needs);
        memory_ = memory.allocate(needs, MemoryUse::host, MemoryPool::buffers, "the buffer of debug=");
        check_vk(vk.vkBindBufferMemory(context_.handle(), buffer_, memory_.memory(), memory_.offset()),
                 "vkBindBufferMemory", "the buffer of debug=");
        std::memset(memory_.mapped(), 0, bytes);
        if (!memory_.coherent()) {
            const VkMappedMemoryRange range = memory_.mapped_range();
            check_vk(vk.vkFlushMappedMemoryRanges(context_.handle(), 1, &range), "vkFlushMappedMemoryRanges",
                     "the buffer of debug=");
        }
        make_set();
    } catch (...) {
        destroy();
        throw;
    }
}

Debugger::~Debugger() { destroy(); }

void Debugger::make_set() {
    auto& vk = context_.vk();
    VkDescriptorSetLayoutBinding binding{};
    binding.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    binding.descriptorCount = 1;
    binding.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    VkDescriptorSetLayoutCreateInfo layout{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
    layout.bindingCount = 1;
    layout.pBindings = &binding;
    check_vk(vk.vkCreateDescriptorSetLayout(context_.handle(), &layout, nullptr, &layout_),
             "vkCreateDescriptorSetLayout", "the buffer of debug=");
    const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1};
    VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.maxSets = 1;
    pool.poolSizeCount = 1;
    pool.pPoolSizes = &size;
    check_vk(vk.vkCreateDescriptorPool(context_.handle(), &pool, nullptr, &pool_), "vkCreateDescriptorPool",
             "the buffer of debug=");
    VkDescriptorSetAllocateInfo allocate{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO};
    allocate.descriptorPool = pool_;
    allocate.descriptorSetCount = 1;
    allocate.pSetLayouts = &layout_;
    check_vk(vk.vkAllocateDescriptorSets(context_.handle(), &allocate, &set_), "vkAllocateDescriptorSets",
             "the buffer of debug=");
    const VkDescriptorBufferInfo info{buffer_, 0, bytes};
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set_;
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = &info;
    vk.vkUpdateDescriptorSets(context_.handle(), 1, &write, 0, nullptr);
}

void Debugger::destroy() noexcept {
    auto& vk = context_.vk();
    vk.vkDestroyDescriptorPool(context_.handle(), pool_, nullptr);
    vk.vkDestroyDescriptorSetLayout(context_.handle(), layout_, nullptr);
    vk.vkDestroyBuffer(context_.handle(), buffer_, nullptr);
}

std::vector<uint32_t> Debugger::instrument(std::span<const uint32_t> words, uint32_t set) {
    uint32_t number = 0;
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
    if (!made.problem.empty()) {
        context_.note("A shader runs without debug=: " + made.problem);
        return {};
    }
    const std::lock_guard lock(mutex_);
    modules_[number] = std::move(made.sites);
    return std::move(made.words);
}

void Debugger::begin(VkCommandBuffer commands, const std::string& operation) {
    uint32_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        const auto [entry, added] =
            numbers_.try_emplace(operation, static_cast<uint32_t>(operations_.size()));
        if (added) operations_.push_back(operation);
        number = entry->second;
    }
    auto& vk = context_.vk();
    VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
                            VK_ACCESS_TRANSFER_WRITE_BIT};
    vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0,
                            1, &barrier, 0, nullptr, 0, nullptr);
    vk.vkCmdUpdateBuffer(commands, buffer_, DebugBuffer::operation * sizeof(uint32_t), sizeof number,
                         &number);
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
    const VkMappedMemoryRange range = memory_.coherent() ? VkMappedMemoryRange{} : memory_.mapped_range();
    if (!memory_.coherent())
        check_vk(vk.vkInvalidateMappedMemoryRanges(context_.handle(), 1, &range),
                 "vkInvalidateMappedMemoryRanges", "the buffer of debug=");
    auto* const words = reinterpret_cast<uint32_t*>(memory_.mapped());
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
    if (!memory_.coherent())
        check_vk(vk.vkFlushMappedMemoryRanges(context_.handle(), 1, &range), "vkFlushMappedMemoryRanges",
                 "the buffer of debug=");
    return records;
}

std::vector<DebugSite> Debugger::sites(uint32_t module) {
    const std::lock_guard lock(mutex_);
    return module < modules_.size() ? modules_[module] : std::vector<DebugSite>{};
}

std::string Debugger::operation(uint32_t number) {
    const std::lock_guard lock(mutex_);
    return number < operations_.size() ? operations_[number] : std::string();
}

}  // namespace kp
