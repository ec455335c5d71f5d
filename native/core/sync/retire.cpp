#include "sync/retire.hpp"

#include <algorithm>
#include <utility>

namespace kp {
namespace {

bool due(const std::vector<Point>& points) noexcept {
    for (const auto& point : points)
        if (!point.timeline->passed(point.value)) return false;
    return true;
}

}  // namespace

class Retire::Chain {
public:
    Chain() = default;
    Chain(const Chain&) = delete;
    Chain& operator=(const Chain&) = delete;
    ~Chain() {
        // The payloads' destructors may retire further objects: the caller holds no lock.
        while (first_) delete std::exchange(first_, first_->next);
    }
    void add(Entry* entry) noexcept {
        entry->next = std::exchange(first_, entry);
        ++size_;
    }
    [[nodiscard]] Entry* take() noexcept { return first_ ? std::exchange(first_, first_->next) : nullptr; }
    [[nodiscard]] size_t size() const noexcept { return size_; }

private:
    Entry* first_ = nullptr;
    size_t size_ = 0;
};

namespace {

// The order of a heap with the least value first.
constexpr auto later = [](const auto* left, const auto* right) {
    return left->points.back().value > right->points.back().value;
};

}  // namespace

Retire::Lane& Retire::lane_of(Timeline* timeline) {
    Lane& lane = lanes_[timeline];
    lane.timeline = timeline;
    if (active_.capacity() < lanes_.size()) active_.reserve(2 * lanes_.size());
    return lane;
}

void Retire::push(std::vector<Point> points, std::shared_ptr<void> payload) {
    if (points.empty() || due(points)) return;  // `payload` dies here, outside of any lock
    auto entry = std::make_unique<Entry>();
    entry->points = std::move(points);
    const std::lock_guard lock(mutex_);
    // Room first, so that later moves between lanes allocate nothing.
    for (const Point& point : entry->points) {
        Lane& lane = lane_of(point.timeline);
        if (lane.entries.capacity() <= lane.expected) lane.entries.reserve(2 * lane.expected + 8);
    }
    for (const Point& point : entry->points) ++lanes_.find(point.timeline)->second.expected;
    entry->payload = std::move(payload);
    enter(entry.release());
    count_.fetch_add(1, std::memory_order_release);
}

void Retire::enter(Entry* entry) noexcept {
    Lane& lane = lanes_.find(entry->points.back().timeline)->second;
    lane.entries.push_back(entry);
    std::push_heap(lane.entries.begin(), lane.entries.end(), later);
    if (!std::exchange(lane.active, true)) active_.push_back(&lane);
}

void Retire::advance(Entry* entry, Chain& due) noexcept {
    auto& points = entry->points;
    while (!points.empty()) {
        const Point point = points.back();
        if (!point.timeline->passed(point.value)) {
            enter(entry);
            return;
        }
        --lanes_.find(point.timeline)->second.expected;
        points.pop_back();
    }
    due.add(entry);
}

void Retire::take_due(Lane& lane, Chain& due) noexcept {
    auto& entries = lane.entries;
    Chain passed;
    if (lane.timeline->has_failures()) [[unlikely]] {
        // Cancelled work: a value may have failed before an earlier one was reached.
        std::erase_if(entries, [&](Entry* entry) {
            if (!lane.timeline->passed(entry->points.back().value)) return false;
            passed.add(entry);
            return true;
        });
        std::make_heap(entries.begin(), entries.end(), later);
    } else {
        while (!entries.empty() && lane.timeline->passed(entries.front()->points.back().value)) {
            std::pop_heap(entries.begin(), entries.end(), later);
            passed.add(entries.back());
            entries.pop_back();
        }
    }
    while (Entry* entry = passed.take()) advance(entry, due);
}

void Retire::collect() noexcept {
    if (empty()) return;
    Chain due;  // freed after the lock
    const std::lock_guard lock(mutex_);
    // Entries that move on to another lane go only to one that has not passed their point, so lanes that
    // become active meanwhile need no look.
    for (size_t i = active_.size(); i-- > 0;) take_due(*active_[i], due);
    std::erase_if(active_, [](Lane* lane) {
        lane->active = !lane->entries.empty();
        return !lane->active;
    });
    count_.fetch_sub(due.size(), std::memory_order_release);
}

void Retire::drain() noexcept {
    while (true) {
        Chain all;
        const std::lock_guard lock(mutex_);
        for (Lane* lane : active_)
            for (Entry* entry : lane->entries) all.add(entry);
        active_.clear();
        lanes_.clear();
        count_.store(0, std::memory_order_release);
        if (all.size() == 0) return;
    }
}

}  // namespace kp
