#include "record/stream_plan.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <functional>

namespace kp {

void StreamPlan::begin(uint64_t epoch, uint64_t atom) {
    epoch_ = epoch;
    asks_remaking_ = false;
    undeclared_ = false;
    objects_.clear();
    commands_.clear();
    uses_.clear();
    host_visible_.clear();
    device_slots_.clear();
    device_numbers_.clear();
    brought_.clear();
    synced_.clear();
    flushes_.clear();
    invalidates_.clear();
    downloaded_.clear();
    edges_.begin(atom);
    edge_atoms_.clear();
    landings_.clear();
}

void StreamPlan::begin_operation() { commands_.push_back({static_cast<uint32_t>(uses_.size()), 0, false}); }

uint32_t StreamPlan::object_slot(Object& object) {
    if (object.epoch_ != epoch_) {
        object.epoch_ = epoch_;
        object.slot_ = static_cast<uint32_t>(objects_.size());
        objects_.push_back({.object = &object});
        device_numbers_.push_back(0);
    }
    return object.slot_;
}

void StreamPlan::add_use(uint32_t resource, UseKind kind, const ResourceRange& range,
                         std::optional<bool> whole) {
    const uint64_t begin = range.resource->first_byte() + range.offset;
    uses_.push_back({resource, kind, begin, begin + range.size, whole});
    ++commands_.back().count;
}

void StreamPlan::add_range(MappedRanges& ranges, const Allocation& memory, const ResourceRange& part) {
    if (!memory.mapped() || memory.coherent()) return;
    // An optimal image's bytes in memory are not its texels in order, so it is moved as a whole.
    ranges.add(part.whole() ? memory.mapped_range() : memory.mapped_range(part.offset, part.size));
}

uint32_t StreamPlan::ordering_slot(Resource& resource, uint32_t slot) {
    Object& by = resource.ordered_by();
    if (&by == &resource) [[likely]]
        return slot;
    if (by.epoch_ != epoch_) keep(by.shared_from_this());
    return object_slot(by);
}

void StreamPlan::use(const ResourceRange& range, UseKind kind, std::optional<bool> whole) {
    Resource& resource = *range.resource;
    const uint32_t slot = object_slot(resource);
    if (range.size == 0) return;  // mentioned, but not used
    const uint32_t order = ordering_slot(resource, slot);
    if (device_numbers_[order] == 0) {
        host_visible_.push_back(resource.device_memory().mapped() != nullptr ? 1 : 0);
        device_slots_.push_back(resource.has_host_copy() ? slot : no_slot);
        device_numbers_[order] = static_cast<uint32_t>(host_visible_.size());
    }
    device_numbers_[slot] = device_numbers_[order];
    const bool written = writes(kind);
    if (written) resource.require_writable();
    objects_[slot].used = true;
    for (const uint32_t each : {slot, order}) objects_[each].written = objects_[each].written || written;
    if (!resource.has_host_copy() && resource.memory_type() != MemoryType::storage) {
        add_range(flushes_, resource.device_memory(), range);
        if (written) add_range(invalidates_, resource.device_memory(), range);
    }
    add_use(device_numbers_[slot] - 1, kind, range, whole);
}

void StreamPlan::overwrite(const ResourceRange& range) {
    const uint32_t slot = object_slot(*range.resource);
    if (!objects_[slot].used) objects_[slot].overwritten = range.whole();
    use(range, UseKind::transfer_write, true);
}

void StreamPlan::use_host(const ResourceRange& range, UseKind kind) {
    Resource& resource = *range.resource;
    const uint32_t slot = object_slot(resource);
    if (range.size == 0) return;
    if (resource.host_epoch_ != epoch_) {
        resource.host_epoch_ = epoch_;
        resource.host_slot_ = static_cast<uint32_t>(host_visible_.size());
        host_visible_.push_back(1);
        device_slots_.push_back(no_slot);
    }
    if (writes(kind)) {
        objects_[slot].written = true;
        const Allocation& memory = resource.host_memory();
        if (memory.mapped() && !memory.coherent()) {
            if (downloaded_.empty() || downloaded_.back().resource != &resource)
                downloaded_.push_back({&resource, resource.host_slot_});
            edges_.download(resource.host_slot_, range.offset, range.size, resource.nbytes());
        }
    } else {
        add_range(flushes_, resource.host_memory(), range);
    }
    add_use(resource.host_slot_, kind, range);
}

void StreamPlan::settle_host_side() {
    if (!downloaded_.empty()) settle_downloads();
    flushes_.settle();
    invalidates_.settle();
}

void StreamPlan::settle_downloads() {
    const auto number = [](const HostCopyNumber& each) { return each.number; };
    if (!std::ranges::is_sorted(downloaded_, {}, number)) std::ranges::sort(downloaded_, {}, number);
    const auto twice = std::ranges::unique(downloaded_, {}, number);
    downloaded_.erase(twice.begin(), twice.end());
    edges_.settle();
    auto of = downloaded_.begin();  // the landings are in the order of the numbers, too
    for (const auto& [copy, piece] : edges_.landings()) {
        while (of->number != copy) ++of;
        const Allocation& memory = of->resource->host_memory();
        const VkMappedMemoryRange range = memory.mapped_range(piece.offset, piece.size);
        if (piece.slot != HostPiece::in_place) {
            edge_atoms_.push_back(range);
            landings_.push_back({memory.mapped() + piece.offset, piece.slot, piece.size});
            continue;
        }
        // Flush it before as well: otherwise a cache line that the host changed could be written back at
        // any later moment, over the device's writes.
        flushes_.add(range);
        invalidates_.add(range);
    }
    if (slot_bytes() != 0) std::ranges::sort(downloaded_, std::less<>(), &HostCopyNumber::resource);
}

std::vector<HostPiece> StreamPlan::host_pieces(const ResourceRange& range, SyncDirection direction) {
    const auto found =
        std::ranges::lower_bound(downloaded_, range.resource.get(), std::less<>(), &HostCopyNumber::resource);
    if (found == downloaded_.end() || found->resource != range.resource.get())
        return {{range.offset, range.size}};
    return direction == SyncDirection::to_host ? edges_.downloaded(found->number, range.offset, range.size)
                                               : edges_.uploaded(found->number, range.offset, range.size);
}

void Recorder::sync(const ResourceRange& range, VkBuffer buffer, SyncDirection direction) {
    const Resource& resource = *range.resource;
    const bool down = direction == SyncDirection::to_host;
    if (plan_.slot_bytes() == 0) [[likely]] {
        const uint64_t at = resource.host_offset() + range.offset;
        const VkBufferCopy region{down ? range.offset : at, down ? at : range.offset, range.size};
        vk.vkCmdCopyBuffer(commands, down ? buffer : resource.host_buffer(),
                           down ? resource.host_buffer() : buffer, 1, &region);
        return;
    }
    // Pieces in the copy and pieces in slots lie in two buffers.
    std::vector<VkBufferCopy> regions[2];
    for (const HostPiece& piece : plan_.host_pieces(range, direction)) {
        const bool in_slot = piece.slot != HostPiece::in_place;
        const uint64_t at = in_slot ? first_slot_ + piece.slot : resource.host_offset() + piece.offset;
        regions[in_slot ? 1 : 0].push_back({down ? piece.offset : at, down ? at : piece.offset, piece.size});
    }
    for (const bool in_slot : {false, true}) {
        const auto& some = regions[in_slot ? 1 : 0];
        const VkBuffer host = in_slot ? slots_ : resource.host_buffer();
        if (!some.empty())
            vk.vkCmdCopyBuffer(commands, down ? buffer : host, down ? host : buffer,
                               static_cast<uint32_t>(some.size()), some.data());
    }
}

void Recorder::barrier(const Barrier& barrier) const {
    if (barrier.src_stages == 0) return;
    VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    memory.srcAccessMask = barrier.src_access;
    memory.dstAccessMask = barrier.dst_access;
    const bool accesses = (barrier.src_access | barrier.dst_access) != 0;
    vk.vkCmdPipelineBarrier(commands, barrier.src_stages, barrier.dst_stages, 0, accesses ? 1 : 0, &memory, 0,
                            nullptr, 0, nullptr);
}

VkCommandBuffer Recorder::begin_secondary() {
    const VkCommandBuffer made = secondaries_.make();
    VkCommandBufferInheritanceInfo inherited{VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO};
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
    begin.pInheritanceInfo = &inherited;
    check_vk(vk.vkBeginCommandBuffer(made, &begin), "vkBeginCommandBuffer", "repeated operations");
    return made;
}

void Recorder::end_secondary(VkCommandBuffer made) const {
    check_vk(vk.vkEndCommandBuffer(made), "vkEndCommandBuffer", "repeated operations");
}

void StreamPlan::mention(Object& object) { object_slot(object); }

void StreamPlan::bring_to_device(const ResourceRange& range) {
    if (range.size == 0) return;
    const uint32_t slot = object_slot(*range.resource);
    const uint32_t order = ordering_slot(*range.resource, slot);
    const uint64_t begin = range.resource->first_byte() + range.offset;
    brought_.push_back({slot, begin, begin + range.size});
    if (order != slot) brought_.push_back({order, begin, begin + range.size});
    add_range(flushes_, range.resource->device_memory(), range);
}

void StreamPlan::note_sync(const ResourceRange& range, SyncDirection direction) {
    if (range.size == 0) return;
    const auto kind = direction == SyncDirection::to_device ? Effect::Kind::upload : Effect::Kind::download;
    synced_.push_back({object_slot(*range.resource),
                       static_cast<uint32_t>(commands_.size() - 1),
                       {range.offset, range.end(), kind}});
}

bool StreamPlan::touches(uint32_t slot, uint64_t begin, uint64_t end, bool writers_only) const noexcept {
    const uint32_t number = device_numbers_[slot];
    for (const Use& use : uses_)
        if (use.resource + 1 == number && use.begin < end && begin < use.end &&
            (!writers_only || writes(use.kind)))
            return true;
    if (writers_only) return false;
    return std::any_of(brought_.begin(), brought_.end(), [&](const Brought& each) {
        return each.slot == slot && each.begin < end && begin < each.end;
    });
}

Moved StreamPlan::moved(const CommandUses& command) const {
    Moved moved;
    for (uint32_t i = command.first; i < command.first + command.count; ++i) {
        const Use& use = uses_[i];
        uint64_t bytes = 0;
        each_used(use, [&](const Resource& resource, uint64_t begin, uint64_t end) {
            bytes = std::max(bytes, resource.kind() == ObjectKind::image ? resource.nbytes() : end - begin);
        });
        if (reads(use.kind)) moved.read += bytes;
        if (writes(use.kind)) moved.written += bytes;
    }
    return moved;
}

void StreamPlan::full_barrier() {
    commands_.back().full_barrier = true;
    undeclared_ = true;
}

}  // namespace kp
