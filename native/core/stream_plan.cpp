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

void StreamPlan::add_use(uint32_t resource, UseKind kind, uint64_t size) {
    uses_.push_back({resource, kind, 0, size});
    ++commands_.back().count;
}

void StreamPlan::add_range(std::vector<VkMappedMemoryRange>& ranges, const Allocation& memory) {
    if (!memory.mapped() || memory.coherent()) return;
    const VkMappedMemoryRange range = memory.mapped_range();
    const bool known = std::any_of(ranges.begin(), ranges.end(), [&](const VkMappedMemoryRange& other) {
        return other.memory == range.memory && other.offset == range.offset;
    });
    if (!known) ranges.push_back(range);
}

void StreamPlan::use(Resource& resource, UseKind kind) {
    const uint32_t slot = object_slot(resource);
    if (device_numbers_[slot] == 0) {
        host_visible_.push_back(resource.device_memory().mapped() != nullptr ? 1 : 0);
        device_numbers_[slot] = static_cast<uint32_t>(host_visible_.size());
    }
    const bool written = writes(kind);
    objects_[slot].written = objects_[slot].written || written;
    if (!resource.has_host_copy() && resource.memory_type() != MemoryType::storage) {
        add_range(flushes_, resource.device_memory());
        if (written) add_range(invalidates_, resource.device_memory());
    }
    add_use(device_numbers_[slot] - 1, kind, std::max<uint64_t>(resource.nbytes(), 1));
}

void StreamPlan::use_host(Resource& resource, UseKind kind) {
    const uint32_t slot = object_slot(resource);
    if (resource.host_epoch_ != epoch_) {
        resource.host_epoch_ = epoch_;
        resource.host_slot_ = static_cast<uint32_t>(host_visible_.size());
        host_visible_.push_back(1);
    }
    // Flushed before a write of the device's, too: a line that the host changed would go out at any later moment, over
    // what the device wrote.
    add_range(flushes_, resource.host_memory());
    if (writes(kind)) {
        objects_[slot].written = true;
        add_range(invalidates_, resource.host_memory());
    }
    add_use(resource.host_slot_, kind, resource.nbytes());
}

void StreamPlan::mention(Object& object) { object_slot(object); }

void StreamPlan::bring_to_device(Resource& resource) { add_range(flushes_, resource.device_memory()); }

void StreamPlan::bring_to_host(Resource& resource) {
    // Invalidating drops what the host wrote and did not flush.
    add_range(flushes_, resource.device_memory());
    add_range(invalidates_, resource.device_memory());
}

void StreamPlan::full_barrier() { commands_.back().full_barrier = true; }

}  // namespace kp
