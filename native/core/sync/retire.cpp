#include "sync/retire.hpp"

namespace kp {
namespace {

bool due(const std::vector<Point>& points) noexcept {
    for (const auto& point : points)
        if (!point.timeline->passed(point.value)) return false;
    return true;
}

}  // namespace

void Retire::push(std::vector<Point> points, std::shared_ptr<void> payload) {
    if (points.empty() || due(points)) return;  // `payload` dies here, outside of any lock
    const std::lock_guard lock(mutex_);
    entries_.push_back({std::move(points), std::move(payload)});
    count_.store(entries_.size(), std::memory_order_release);
}

void Retire::collect() noexcept {
    if (empty()) return;
    // Free payloads after the lock is released, because their destructors may retire further objects.
    std::vector<Entry> finished;
    {
        const std::lock_guard lock(mutex_);
        size_t kept = 0;
        for (auto& entry : entries_) {
            if (due(entry.points))
                finished.push_back(std::move(entry));
            else if (&entries_[kept] != &entry)
                entries_[kept++] = std::move(entry);
            else
                ++kept;
        }
        entries_.resize(kept);
        count_.store(kept, std::memory_order_release);
    }
}

void Retire::drain() noexcept {
    while (true) {
        std::vector<Entry> all;
        {
            const std::lock_guard lock(mutex_);
            all.swap(entries_);
            count_.store(0, std::memory_order_release);
        }
        if (all.empty()) return;
    }
}

}  // namespace kp
