#include "stream_plan.hpp"

#include <algorithm>

namespace kp {

void StreamPlan::begin(uint64_t epoch) {
    epoch_ = epoch;
    objects_.clear();
    commands_.clear();
    uses_.clear();
    host_visible_.clear();
    device_numbers_.clear();
    brought_.clear();
    flushes_.clear();
    invalidates_.clear();
}

void StreamPlan::begin_operation() { commands_.push_back({static_cast<uint32_t>(uses_.size()), 0, false}); }

uint32_t StreamPlan::object_slot(Object& object) {
    if (object.epoch_ != epoch_) {
        object.epoch_ = epoch_;
        object.slot_ = static_cast<uint32_t>(objects_.size());
        objects_.push_back({&object, false, 0});
        device_numbers_.push_back(0);
    }
    return object.slot_;
}

void StreamPlan::add_use(uint32_t resource, UseKind kind, const ResourceRange& range) {
    uses_.push_back({resource, kind, range.offset, range.end()});
    ++commands_.back().count;
}

void StreamPlan::add_range(std::vector<VkMappedMemoryRange>& ranges, const Allocation& memory,
                           const ResourceRange& part) {
    if (!memory.mapped() || memory.coherent()) return;
    // An optimal image's bytes in memory are not those of its texels in order: it goes as a whole.
    const VkMappedMemoryRange range =
        part.whole() ? memory.mapped_range() : memory.mapped_range(part.offset, part.size);
    for (auto& other : ranges) {
        if (other.memory != range.memory || other.offset > range.offset + range.size ||
            range.offset > other.offset + other.size)
            continue;
        const uint64_t end = std::max(other.offset + other.size, range.offset + range.size);
        other.offset = std::min(other.offset, range.offset);
        other.size = end - other.offset;
        return;
    }
    ranges.push_back(range);
}

void StreamPlan::use(const ResourceRange& range, UseKind kind) {
    Resource& resource = *range.resource;
    const uint32_t slot = object_slot(resource);
    if (range.size == 0) return;  // mentioned, and not used
    if (device_numbers_[slot] == 0) {
        host_visible_.push_back(resource.device_memory().mapped() != nullptr ? 1 : 0);
        device_numbers_[slot] = static_cast<uint32_t>(host_visible_.size());
    }
    const bool written = writes(kind);
    if (written) resource.require_writable();
    objects_[slot].written = objects_[slot].written || written;
    if (!resource.has_host_copy() && resource.memory_type() != MemoryType::storage) {
        add_range(flushes_, resource.device_memory(), range);
        if (written) add_range(invalidates_, resource.device_memory(), range);
    }
    add_use(device_numbers_[slot] - 1, kind, range);
}

void StreamPlan::use_host(const ResourceRange& range, UseKind kind) {
    Resource& resource = *range.resource;
    const uint32_t slot = object_slot(resource);
    if (range.size == 0) return;
    if (resource.host_epoch_ != epoch_) {
        resource.host_epoch_ = epoch_;
        resource.host_slot_ = static_cast<uint32_t>(host_visible_.size());
        host_visible_.push_back(1);
    }
    // Flushed before a write of the device's, too: a line that the host changed would go out at any later moment, over
    // what the device wrote.
    add_range(flushes_, resource.host_memory(), range);
    if (writes(kind)) {
        objects_[slot].written = true;
        add_range(invalidates_, resource.host_memory(), range);
    }
    add_use(resource.host_slot_, kind, range);
}

void StreamPlan::mention(Object& object) { object_slot(object); }

void StreamPlan::bring_to_device(const ResourceRange& range) {
    if (range.size == 0) return;
    brought_.push_back({object_slot(*range.resource), range.offset, range.end()});
    add_range(flushes_, range.resource->device_memory(), range);
}

void StreamPlan::bring_to_host(const ResourceRange& range) {
    if (range.size == 0) return;
    brought_.push_back({object_slot(*range.resource), range.offset, range.end()});
    // Invalidating drops what the host wrote and did not flush.
    add_range(flushes_, range.resource->device_memory(), range);
    add_range(invalidates_, range.resource->device_memory(), range);
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

Object* StreamPlan::object_of(uint32_t resource) const noexcept {
    const auto found = std::find(device_numbers_.begin(), device_numbers_.end(), resource + 1);
    return found == device_numbers_.end()
               ? nullptr
               : objects_[static_cast<size_t>(found - device_numbers_.begin())].object;
}

void StreamPlan::full_barrier() { commands_.back().full_barrier = true; }

}  // namespace kp
