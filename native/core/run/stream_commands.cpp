#include "run/stream_commands.hpp"

#include "base/error.hpp"
#include "device/device.hpp"

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
        handle_ = allocate(stream, pool_, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
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

void StreamCommands::free_secondaries() noexcept {
    if (secondaries_.empty()) [[likely]]
        return;
    device_.vk().vkFreeCommandBuffers(device_.handle(), pool_, static_cast<uint32_t>(secondaries_.size()),
                                      secondaries_.data());
    secondaries_.clear();
}

StreamCommands::Open::Open(StreamCommands& commands) : commands_(&commands) {
    commands.free_secondaries();
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    check_vk(commands.device_.vk().vkBeginCommandBuffer(commands.handle_, &begin), "vkBeginCommandBuffer",
             commands.stream_.label().c_str());
}

StreamCommands::Open::~Open() {
    if (!commands_) return;
    commands_->device_.vk().vkResetCommandBuffer(commands_->handle_, 0);
    commands_->free_secondaries();
}

void StreamCommands::Open::end() {
    check_vk(commands_->device_.vk().vkEndCommandBuffer(commands_->handle_), "vkEndCommandBuffer",
             commands_->stream_.label().c_str());
    commands_ = nullptr;
}

}  // namespace kp
