#include "sync/freshness.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace kp {
namespace {

// A resource with more segments than this is tracked as a whole only.
constexpr size_t most_segments = 64;

uint64_t value_at(std::span<const Point> points, const Timeline* timeline) {
    for (const Point& point : points)
        if (point.timeline == timeline) return point.value;
    return 0;
}

}  // namespace

void FreshnessRecord::split(uint64_t at) {
    const auto found = std::ranges::upper_bound(segments_, at, {}, &Segment::begin);
    if (found == segments_.begin()) return;
    const auto before = found - 1;
    if (before->begin == at || before->end <= at) return;
    Segment rest = *before;
    before->end = at;
    rest.begin = at;
    segments_.insert(found, std::move(rest));
}

std::span<FreshnessRecord::Segment> FreshnessRecord::cover(uint64_t begin, uint64_t end) {
    if (segments_.size() == 1 && segments_[0].begin == begin && segments_[0].end == end) [[likely]]
        return segments_;
    if (segments_.empty()) {
        segments_.push_back({begin, end});
        return segments_;
    }
    if (segments_.size() >= most_segments) merge_all();
    split(begin);
    split(end);
    auto at = std::ranges::lower_bound(segments_, begin, {}, &Segment::begin);
    const auto first = at - segments_.begin();
    for (uint64_t next = begin; next < end; next = at->end, ++at)
        if (at == segments_.end() || at->begin != next)
            at = segments_.insert(at, {next, at == segments_.end() ? end : std::min(end, at->begin)});
    return {segments_.begin() + first, at};
}

void FreshnessRecord::merge_all() {
    std::vector<Event> events;
    for (const Segment& segment : segments_) {
        for (const Point& point : segment.base) add(events, {point, UINT32_MAX, Last::unknown});
        for (const Event& event : segment.events) add(events, {event.at, UINT32_MAX, Last::unknown});
    }
    Segment whole{segments_.front().begin, segments_.back().end, Freshness::unknown};
    whole.events = std::move(events);
    segments_.clear();
    segments_.push_back(std::move(whole));
}

void FreshnessRecord::add(std::vector<Event>& events, const Event& event) {
    for (Event& known : events) {
        if (known.at.timeline != event.at.timeline) continue;
        replace(known, event);
        return;
    }
    events.push_back(event);
}

void FreshnessRecord::note_run_anywhere(const Effect& effect, const Run& run) noexcept {
    try {
        const Event event{run.end, run.rank, static_cast<Last>(effect.kind)};
        for (Segment& segment : cover(effect.begin, effect.end)) {
            if (event.at.value <= value_at(segment.base, event.at.timeline)) continue;
            // A timeline knows the place of the last value that it was raised for.
            if (event.at.timeline->has_places()) [[unlikely]] {
                const std::vector<Event> known = std::exchange(segment.events, {});
                for (Event each : known) {
                    each.at = each.at.timeline->place(each.at.value);
                    add(segment.events, each);
                }
            }
            add(segment.events, event);
        }
    } catch (const std::bad_alloc&) {
        note_lost();
    }
}

void FreshnessRecord::note_host(uint64_t begin, uint64_t end, Freshness left, std::span<const Point> now,
                                bool wrote) noexcept {
    if (begin >= end) return;
    try {
        for (Segment& segment : cover(begin, end)) {
            segment.left = left;
            segment.base.assign(now.begin(), now.end());
            segment.events.clear();
            segment.wrote = wrote;
        }
    } catch (const std::bad_alloc&) {
        note_lost();
    }
}

Freshness FreshnessRecord::state(const Segment& segment, const std::vector<Point>& undeclared) {
    std::vector<Event> events;
    bool held = false;
    for (Event event : segment.events) {
        Timeline& own = *event.at.timeline;
        if (own.failed(event.at.value)) continue;  // cancelled: nothing of it ran
        event.at = own.place(event.at.value);
        if (event.at.timeline->promised() < event.at.value)
            held = held || event.last == Last::write || event.last == Last::unknown;
        else if (event.at.value > value_at(segment.base, event.at.timeline))
            add(events, event);
    }
    bool newer = false;
    bool same = false;
    bool vague = false;
    for (const Event& event : events) {
        switch (event.last) {
        case Last::write: newer = true; break;
        case Last::upload: same = true; break;
        case Last::unknown: vague = true; break;
        case Last::download:
            // A download in flight has not reached the host copy.
            if (event.at.timeline->passed(event.at.value))
                same = true;
            else
                (event.wrote ? newer : vague) = true;
        }
    }
    Freshness found = events.empty()             ? segment.left
                      : vague || (newer && same) ? Freshness::unknown
                      : newer                    ? Freshness::behind
                                                 : Freshness::matches;
    if (found != Freshness::matches) return found;
    const auto settled = [&](const Point& point) {
        return point.value <= value_at(segment.base, point.timeline) ||
               (events.size() == 1 && events[0].at.timeline == point.timeline &&
                events[0].at.value > point.value);
    };
    return held || !std::ranges::all_of(undeclared, settled) ? Freshness::unknown : Freshness::matches;
}

bool FreshnessRecord::left_behind(uint64_t begin, uint64_t end) const noexcept {
    // Held work counts as cancelled, because it may still be, after which no recording is built again.
    const auto not_sent = [](const Event& event) {
        const Point at = event.at.timeline->place(event.at.value);
        return event.at.timeline->failed(event.at.value) || at.timeline->promised() < at.value;
    };
    return std::ranges::any_of(segments_, [&](const Segment& segment) {
        return segment.begin < end && begin < segment.end && segment.wrote &&
               std::ranges::all_of(segment.events, not_sent);
    });
}

Freshness FreshnessRecord::freshness(uint64_t begin, uint64_t end,
                                     const std::vector<Point>& undeclared) const {
    Freshness found = shared_ ? Freshness::unknown : Freshness::matches;
    const auto merge = [&found](Freshness part) {
        if (found == Freshness::matches || part == Freshness::behind || part == Freshness::partly)
            found = part;
    };
    uint64_t next = begin;
    for (const Segment& segment : segments_) {
        if (segment.end <= begin || segment.begin >= end) continue;
        if (segment.begin > next) merge(state({}, undeclared));
        next = segment.end;
        merge(state(segment, undeclared));
        if (found == Freshness::behind) return found;
    }
    if (next < end) merge(state({}, undeclared));
    return found;
}

}  // namespace kp
