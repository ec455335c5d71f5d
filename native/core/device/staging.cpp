#include "device/staging.hpp"

#include "adapter/context.hpp"
#include "base/error.hpp"
#include "device/profiler.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

namespace kp {

Staging::~Staging() { clear(); }

void Staging::clear() noexcept {
    const std::lock_guard lock(mutex_);
    for (auto& slot : slots_) {
        slot.memory = Allocation();
        slot.commands = VK_NULL_HANDLE;
        slot.value = 0;
    }
    if (pool_ != VK_NULL_HANDLE) context_.vk().vkDestroyCommandPool(context_.handle(), pool_, nullptr);
    pool_ = VK_NULL_HANDLE;
}

void Staging::release_memory() noexcept {
    const std::lock_guard lock(mutex_);
    for (auto& slot : slots_) slot.memory = Allocation();
}

bool Staging::release_idle_memory() noexcept {
    // A transfer of this very thread may be the one that needs memory.
    if (owner_.load(std::memory_order_relaxed) == std::this_thread::get_id()) return false;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    bool any = false;
    for (auto& slot : slots_) {
        any = any || slot.memory;
        slot.memory = Allocation();
    }
    return any;
}

Staging::Owned::Owned(Staging& staging) : staging_(staging), lock_(staging.mutex_) {
    staging_.owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
}

Staging::Owned::~Owned() { staging_.owner_.store({}, std::memory_order_relaxed); }

uint64_t Staging::slot_bytes() const noexcept {
    return std::min(uint64_t{4} << 20, context_.physical().max_allocation);
}

Staging::Slot& Staging::slot(size_t index, bool with_memory) {
    auto& vk = context_.vk();
    if (pool_ == VK_NULL_HANDLE) {
        VkCommandPoolCreateInfo create{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
        create.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT | VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
        create.queueFamilyIndex = queue_.family();
        check_vk(vk.vkCreateCommandPool(context_.handle(), &create, nullptr, &pool_), "vkCreateCommandPool",
                 "staging");
    }
    Slot& slot = slots_[index];
    if (slot.commands == VK_NULL_HANDLE) {
        VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
        allocate.commandPool = pool_;
        allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
        allocate.commandBufferCount = 1;
        check_vk(vk.vkAllocateCommandBuffers(context_.handle(), &allocate, &slot.commands),
                 "vkAllocateCommandBuffers", "staging");
        slot.submission.prepare(queue_, {slot.commands});
    }
    if (with_memory && !slot.memory)
        slot.memory = memory_.allocate_host_copy(slot_bytes(), "the staging ring");
    return slot;
}

void Staging::submit(Slot& slot, const std::function<void(VkCommandBuffer)>& commands) {
    auto& vk = context_.vk();
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    check_vk(vk.vkBeginCommandBuffer(slot.commands, &begin), "vkBeginCommandBuffer", "staging");
    // All earlier work on this queue, of any kind, is over and visible after this; transfers here are rare
    // and large.
    VkMemoryBarrier barrier{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    vk.vkCmdPipelineBarrier(slot.commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                            0, 1, &barrier, 0, nullptr, 0, nullptr);
    commands(slot.commands);
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vk.vkCmdPipelineBarrier(slot.commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                            &barrier, 0, nullptr, 0, nullptr);
    check_vk(vk.vkEndCommandBuffer(slot.commands), "vkEndCommandBuffer", "staging");
    slot.value = queue_.submit(slot.submission);
}

void Staging::wait(Slot& slot) {
    if (slot.value == 0) return;
    try {
        queue_.wait_until(slot.value);
    } catch (...) {
        // The wait failed, not the work. The caller is about to free memory that the GPU may still use, so
        // poll until the work ends. On a lost device, polling fails too, and the memory is no longer in
        // use.
        try {
            while (!queue_.reached(slot.value)) std::this_thread::yield();
        } catch (const Error&) {
            slot.value = 0;
        }
        slot.value = 0;
        throw;
    }
    slot.value = 0;
}

Staging::SeeThrough::~SeeThrough() {
    for (auto& slot : staging.slots_) {
        try {
            staging.wait(slot);
        } catch (...) {
            continue;  // the work has ended all the same
        }
    }
}

void Staging::run(const std::function<void(VkCommandBuffer)>& commands) {
    const Owned owned(*this);
    Slot& only = slot(0, false);
    wait(only);
    const Profiler::Naming naming("transfer");
    submit(only, commands);
    wait(only);
}

void Staging::upload(VkBuffer destination, uint64_t offset, const void* data, uint64_t size) {
    upload(
        data, size, slot_bytes(),
        [&](VkCommandBuffer commands, VkBuffer host, uint64_t host_offset, uint64_t begin, uint64_t bytes) {
            const VkBufferCopy region{host_offset, offset + begin, bytes};
            context_.vk().vkCmdCopyBuffer(commands, host, destination, 1, &region);
        });
}

void Staging::download(VkBuffer source, uint64_t offset, void* out, uint64_t size) {
    auto* const destination = static_cast<std::byte*>(out);
    download(source, offset, size, [&](const std::byte* landed, uint64_t begin, uint64_t bytes) {
        std::memcpy(destination + begin, landed, bytes);
    });
}

void Staging::download(VkBuffer source, uint64_t offset, uint64_t size, const Land& land) {
    download(
        size, slot_bytes(),
        [&](VkCommandBuffer commands, VkBuffer host, uint64_t host_offset, uint64_t begin, uint64_t bytes) {
            const VkBufferCopy region{offset + begin, host_offset, bytes};
            context_.vk().vkCmdCopyBuffer(commands, source, host, 1, &region);
        },
        land);
}

void Staging::upload(const void* data, uint64_t size, uint64_t step, const Record& record) {
    retired_.collect();  // the ring may need memory; collect() may take other locks
    const Owned owned(*this);
    const SeeThrough guard{*this};
    const auto* source = static_cast<const std::byte*>(data);
    size_t turn = 0;
    for (uint64_t done = 0; done < size; ++turn) {
        Slot& current = slot(turn % slots_.size(), true);
        wait(current);
        const uint64_t bytes = std::min(step, size - done);
        std::memcpy(current.memory.mapped(), source + done, bytes);
        if (!current.memory.coherent()) {
            const VkMappedMemoryRange range = current.memory.mapped_range();
            context_.flush({&range, 1}, "staging");
        }
        const Profiler::Naming naming("upload", bytes, bytes);
        submit(current, [&](VkCommandBuffer commands) {
            record(commands, current.memory.block_buffer(), current.memory.offset(), done, bytes);
        });
        done += bytes;
    }
    for (auto& each : slots_) wait(each);
}

void Staging::download(void* out, uint64_t size, uint64_t step, const Record& record) {
    auto* const destination = static_cast<std::byte*>(out);
    download(size, step, record, [&](const std::byte* landed, uint64_t begin, uint64_t bytes) {
        std::memcpy(destination + begin, landed, bytes);
    });
}

void Staging::download(uint64_t size, uint64_t step, const Record& record, const Land& receive) {
    retired_.collect();  // as in upload()
    const Owned owned(*this);
    const SeeThrough guard{*this};
    struct Chunk {
        uint64_t begin = 0;
        uint64_t bytes = 0;
    };
    std::array<Chunk, 2> flying{};
    const auto land = [&](size_t index) {
        Slot& landed = slots_[index];
        if (flying[index].bytes == 0) return;
        wait(landed);
        if (!landed.memory.coherent()) {
            const VkMappedMemoryRange range = landed.memory.mapped_range();
            context_.invalidate({&range, 1}, "staging");
        }
        receive(landed.memory.mapped(), flying[index].begin, flying[index].bytes);
        flying[index].bytes = 0;
    };
    size_t turn = 0;
    for (uint64_t done = 0; done < size; ++turn) {
        const size_t index = turn % slots_.size();
        Slot& current = slot(index, true);
        wait(current);
        land(index);
        const uint64_t bytes = std::min(step, size - done);
        const Profiler::Naming naming("download", bytes, bytes);
        submit(current, [&](VkCommandBuffer commands) {
            record(commands, current.memory.block_buffer(), current.memory.offset(), done, bytes);
        });
        flying[index] = {done, bytes};
        done += bytes;
    }
    land(turn % slots_.size());
    land((turn + 1) % slots_.size());
}

}  // namespace kp
