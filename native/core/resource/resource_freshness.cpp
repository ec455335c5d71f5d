// Which side of a resource is newer: what the host and recordings tell of it (see resource/freshness.hpp).

#include "device/device.hpp"
#include "resource/resource.hpp"

#include <algorithm>
#include <new>
#include <vector>

namespace kp {

void Resource::note_host(uint64_t offset, uint64_t size, Freshness left) noexcept {
    if (!has_host_copy_) return;
    thread_local std::vector<Point> now;
    const std::lock_guard lock(device().graph_mutex());
    try {
        now.clear();
        for (const auto& logical : device().queues())
            merge_point(now, {logical.queue, logical.queue->submitted()});
    } catch (const std::bad_alloc&) {
        freshness_.note_lost();
        return;
    }
    freshness_.note_host(offset, offset + size, left, now);
}

void Resource::note_host_write(uint64_t offset, uint64_t size) noexcept {
    note_host(offset, size, Freshness::behind);
}

void Resource::note_match(uint64_t offset, uint64_t size) noexcept {
    note_host(offset, size, Freshness::matches);
}

void Resource::note_exported() {
    const std::lock_guard lock(device().graph_mutex());
    freshness_.note_shared();
}

void Resource::note_first_contents(bool of_host_copy) noexcept {
    if (!has_host_copy_) return;
    if (!of_host_copy && begins_undefined_) {
        note_host(0, nbytes_, Freshness::unknown);
        return;
    }
    // Work before this that does not say what it uses did nothing to them.
    const auto& queues = device().queues();
    if (std::any_of(queues.begin(), queues.end(),
                    [](const auto& logical) { return logical.queue->undeclared() != 0; }))
        note_match(0, nbytes_);
}

Freshness Resource::freshness(uint64_t offset, uint64_t size) {
    if (!has_host_copy_ || size == 0) return Freshness::matches;
    const uint64_t end = offset + size;
    std::vector<Point> undeclared;
    const std::lock_guard lock(device().graph_mutex());
    if (!is_init()) return Freshness::matches;
    settle_covers(false);
    if (brought_.load(std::memory_order_relaxed) == Brought::no) return Freshness::unsent;
    device().add_undeclared(undeclared, true);
    FreshnessRecord record = freshness_;
    add_last_runs(offset, end, record);
    if (std::any_of(mappings_.begin(), mappings_.end(), [&](const Mapped& mapping) {
            return mapping.writes && mapping.offset < end && offset < mapping.offset + mapping.size;
        }))
        record.note_shared();
    return record.freshness(offset, end, undeclared);
}

}  // namespace kp
