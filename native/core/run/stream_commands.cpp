#include "run/stream_commands.hpp"

#include "base/error.hpp"
#include "device/device.hpp"

#include <span>
#include <utility>

namespace kp {
namespace {

VkCommandBuffer allocate(const Object& stream, VkCommandPool pool, VkCommandBufferLevel level) {
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = pool;
    allocate.level = level;
    allocate.commandBufferCount = 1;
    VkCommandBuffer made = VK_NULL_HANDLE;
    Device& device = stream.device();
    check_vk(device.vk().vkAllocateCommandBuffers(device.handle(), &allocate, &made),
             "vkAllocateCommandBuffers", stream.label().c_str());
    return made;
}

}  // namespace

StreamCommands::StreamCommands(const Object& stream, const Queue& queue)
    : stream_(stream), device_(stream.device()) {
    auto& vk = device_.vk();
    VkCommandPoolCreateInfo create{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    create.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    create.queueFamilyIndex = queue.family();
    check_vk(vk.vkCreateCommandPool(device_.handle(), &create, nullptr, &pool_), "vkCreateCommandPool",
             stream.label().c_str());
    try {
        handles_.push_back(allocate(stream, pool_, VK_COMMAND_BUFFER_LEVEL_PRIMARY));
    } catch (...) {
        vk.vkDestroyCommandPool(device_.handle(), pool_, nullptr);
        throw;
    }
}

StreamCommands::~StreamCommands() { device_.vk().vkDestroyCommandPool(device_.handle(), pool_, nullptr); }

VkCommandBuffer StreamCommands::make() {
    secondaries_.reserve(secondaries_.size() + 1);
    secondaries_.push_back(allocate(stream_, pool_, VK_COMMAND_BUFFER_LEVEL_SECONDARY));
    return secondaries_.back();
}

VkCommandBuffer StreamCommands::next() {
    // The barriers of the recording order its parts. Validation layers do not follow chains of them from one
    // submission to the next, though.
    constexpr VkMemoryBarrier all{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_MEMORY_WRITE_BIT,
                                  VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
    device_.vk().vkCmdPipelineBarrier(handles_.back(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                      VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1, &all, 0, nullptr, 0, nullptr);
    end_last();
    handles_.reserve(handles_.size() + 1);
    handles_.push_back(allocate(stream_, pool_, VK_COMMAND_BUFFER_LEVEL_PRIMARY));
    begin_last();
    return handles_.back();
}

void StreamCommands::free_others() noexcept {
    const auto free = [&](std::span<const VkCommandBuffer> some) {
        if (!some.empty())
            device_.vk().vkFreeCommandBuffers(device_.handle(), pool_, static_cast<uint32_t>(some.size()),
                                              some.data());
    };
    free(secondaries_);
    secondaries_.clear();
    free(std::span(handles_).subspan(1));
    handles_.resize(1);
}

void StreamCommands::begin_last() const {
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    check_vk(device_.vk().vkBeginCommandBuffer(handles_.back(), &begin), "vkBeginCommandBuffer",
             stream_.label().c_str());
}

void StreamCommands::end_last() const {
    check_vk(device_.vk().vkEndCommandBuffer(handles_.back()), "vkEndCommandBuffer", stream_.label().c_str());
}

StreamCommands::Open::Open(StreamCommands& commands) : commands_(&commands) {
    commands.free_others();
    commands.begin_last();
}

StreamCommands::Open::~Open() {
    if (!commands_) return;
    commands_->free_others();
    commands_->device_.vk().vkResetCommandBuffer(commands_->handle(), 0);
}

void StreamCommands::Open::end() {
    commands_->end_last();
    commands_ = nullptr;
}

}  // namespace kp
