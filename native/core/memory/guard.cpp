#include "memory/guard.hpp"

#include "device/device.hpp"
#include "memory/block.hpp"

#include <array>
#include <cstring>

namespace kp {

void MemoryAllocator::sync_guards(MemoryBlock& block, const Guarded& guarded, bool from_host) noexcept {
    if (block.flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) return;
    VkMappedMemoryRange ranges[2]{};
    for (auto& range : ranges) {
        range.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE;
        range.memory = block.memory;
    }
    ranges[0].offset = guarded.offset - guarded.front;
    ranges[0].size = guarded.front;
    ranges[1].offset = guarded.offset + guarded.size;
    ranges[1].size = guarded.tail;
    // A debugging aid must not fail the call that it watches: an unsynchronised guard at worst misses what the device wrote.
    if (from_host)
        (void)device_.vk().vkFlushMappedMemoryRanges(device_.handle(), 2, ranges);
    else
        (void)device_.vk().vkInvalidateMappedMemoryRanges(device_.handle(), 2, ranges);
}

void MemoryAllocator::guard(MemoryBlock& block, uint32_t node, uint64_t offset, const Request& request) {
    auto& guarded = block.guarded[node];
    guarded = {offset, request.own, request.front, request.tail, request.what};
    write_guard(block.mapped + offset - guard_bytes);
    write_guard(block.mapped + offset + request.own);
    sync_guards(block, guarded, true);
}

std::string MemoryAllocator::inspect(MemoryBlock& block, const Guarded& guarded) {
    sync_guards(block, guarded, false);
    // In one piece: the memory may not be cached, and each look at a byte of it crosses the bus.
    std::array<std::byte, guard_bytes> front, tail;
    std::memcpy(front.data(), block.mapped + guarded.offset - guard_bytes, guard_bytes);
    std::memcpy(tail.data(), block.mapped + guarded.offset + guarded.size, guard_bytes);
    const uint64_t before = broken_bytes(front.data());
    const uint64_t behind = broken_bytes(tail.data());
    if (before == 0 && behind == 0) return {};
    return "memory of " + guarded.label + " (" + std::to_string(guarded.size) +
           " bytes) was overrun: " + std::to_string(before) + " of the " + std::to_string(guard_bytes) +
           " guard bytes before it and " + std::to_string(behind) +
           " of those behind it were overwritten. Look for a shader that indexes past the end, or "
           "foreign code that writes through its address";
}

void MemoryAllocator::unguard(MemoryBlock& block, uint32_t node) noexcept {
    const auto found = block.guarded.find(node);
    if (found == block.guarded.end()) return;
    try {
        if (auto report = inspect(block, found->second); !report.empty())
            device_.report({"error", "kompute-memory-guard", std::move(report)});
    } catch (const std::bad_alloc&) {
        // The report is lost; the release must not be.
    }
    // A block of one allocation goes back to the driver at once.
    if (!block.dedicated)
        std::memset(block.mapped + found->second.offset, std::to_integer<int>(poison_value),
                    found->second.size);
    block.guarded.erase(found);
}

void MemoryAllocator::relabel(MemoryBlock& block, uint32_t node, const std::string& label) {
    if (!options_.debug) return;
    const std::lock_guard lock(mutex_);
    if (const auto found = block.guarded.find(node); found != block.guarded.end())
        found->second.label = label;
}

std::vector<std::string> MemoryAllocator::check_guards() {
    std::vector<std::string> reports;
    const std::lock_guard lock(mutex_);
    for (auto& pools : pools_)
        for (auto& pool : pools)
            for (auto& block : pool.blocks)
                for (auto& [node, guarded] : block->guarded) {
                    auto report = inspect(*block, guarded);
                    if (report.empty()) continue;
                    reports.push_back(std::move(report));
                    // Reported once: it must not come up again when the memory is released.
                    write_guard(block->mapped + guarded.offset - guard_bytes);
                    write_guard(block->mapped + guarded.offset + guarded.size);
                    sync_guards(*block, guarded, true);
                }
    return reports;
}

}  // namespace kp
