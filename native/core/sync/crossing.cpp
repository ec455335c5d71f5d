#include "sync/crossing.hpp"

#include "sync/queue.hpp"

#include <algorithm>

namespace kp {
namespace {

// Removes the ends that are known to have come, or will never come because the work was cancelled. Held work
// that went to its queue meanwhile takes its place there.
void settle(std::vector<Point>& points) noexcept {
    size_t count = 0;
    for (const Point& noted : points) {
        if (noted.timeline->failed(noted.value)) continue;
        const Point point = noted.timeline->place(noted.value);
        if (point.timeline->known_reached(point.value)) continue;
        const auto end = points.begin() + static_cast<ptrdiff_t>(count);
        const auto known = std::find_if(points.begin(), end,
                                        [&](const Point& each) { return each.timeline == point.timeline; });
        if (known == end)
            points[count++] = point;
        else
            known->value = std::max(known->value, point.value);
    }
    points.resize(count);
}

void collect_from(std::vector<Point>& noted, const Queue& queue, std::vector<Point>& points) {
    settle(noted);
    for (const Point& point : noted)
        if (point.timeline != &queue) merge_point(points, point);
}

}  // namespace

void Crossing::add(const Queue& queue, bool writes) {
    auto found = std::ranges::find(users_, &queue, &Users::queue);
    if (found == users_.end()) found = users_.insert(found, {&queue, 0});
    if (found->count++ == 0) ++queues_;
    if (writes) ++writers_;
}

void Crossing::remove(const Queue& queue, bool writes) noexcept {
    if (--std::ranges::find(users_, &queue, &Users::queue)->count == 0) --queues_;
    if (writes) --writers_;
}

void Crossing::reserve(size_t count) {
    reads_.reserve(reads_.size() + count);
    writes_.reserve(writes_.size() + count);
}

void Crossing::note(Point end, bool writes) noexcept {
    std::vector<Point>& points = writes ? writes_ : reads_;
    settle(points);
    merge_point(points, end);  // there is room: see reserve()
}

void Crossing::collect(const Queue& queue, bool writes, std::vector<Point>& points) {
    collect_from(writes_, queue, points);
    if (writes) collect_from(reads_, queue, points);
}

void Crossing::forget() noexcept {
    reads_.clear();
    writes_.clear();
}

}  // namespace kp
