// Finds the bytes that a list of ranges names more than once. Takes n log n steps. A range is a
// ResourceRange, or has its `resource`, `size` and `place()`.
#pragma once

#include "resource/resource.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace kp {

struct IndexedPlace : ResourceRange::Place {
    size_t index = 0;
};

// The places of all ranges that are not empty. Ranges of one memory are neighbours, in the order of their
// first bytes; of those that begin together, equal ones are neighbours, in their given order.
template <typename Range>
std::vector<IndexedPlace> in_order(const std::vector<Range>& ranges) {
    std::vector<IndexedPlace> places;
    places.reserve(ranges.size());
    for (size_t i = 0; i < ranges.size(); ++i)
        if (ranges[i].size != 0) places.push_back({ranges[i].place(), i});
    const auto before = [](const IndexedPlace& a, const IndexedPlace& b) {
        if (a.memory != b.memory) return std::less<>()(a.memory, b.memory);
        return std::tie(a.begin, a.end, a.index) < std::tie(b.begin, b.end, b.index);
    };
    if (!std::ranges::is_sorted(places, before)) std::ranges::sort(places, before);
    return places;
}

// The union of ranges, as disjoint ranges. Ranges that only touch stay apart.
template <typename Range>
[[nodiscard]] std::vector<Range> merged(std::vector<Range> ranges) {
    if (ranges.size() < 2) return ranges;
    bool any = false;
    IndexedPlace all;  // the present group of ranges that overlap; its first range becomes their union
    for (const IndexedPlace& place : in_order(ranges)) {
        if (ranges[place.index].resource != ranges[all.index].resource || place.begin >= all.end) {
            all = place;
            continue;
        }
        any = true;
        all.end = std::max(all.end, place.end);
        ranges[all.index].size = all.end - all.begin;
        ranges[place.index].resource.reset();
    }
    if (any) std::erase_if(ranges, [](const Range& range) { return !range.resource; });
    return ranges;
}

struct Repetitions {
    // For each range, the index of the first range that is equal to it (its own index if none comes before).
    std::vector<size_t> first;
    // The indices of two ranges that overlap and are not equal, in ascending order.
    std::optional<std::pair<size_t, size_t>> overlap;
};
template <typename Range>
[[nodiscard]] Repetitions repetitions(const std::vector<Range>& ranges) {
    Repetitions found;
    found.first.reserve(ranges.size());
    for (size_t i = 0; i < ranges.size(); ++i) found.first.push_back(i);
    IndexedPlace widest;  // of the ranges of the present memory, the one that ends last
    for (const IndexedPlace& place : in_order(ranges)) {
        if (place.memory == widest.memory && place.begin < widest.end) {
            if (place.begin == widest.begin && place.end == widest.end) {
                found.first[place.index] = widest.index;
                continue;
            }
            const auto pair = std::minmax(widest.index, place.index);
            if (!found.overlap ||
                std::tie(pair.second, pair.first) < std::tie(found.overlap->second, found.overlap->first))
                found.overlap = pair;
        }
        if (place.memory != widest.memory || place.end > widest.end) widest = place;
    }
    return found;
}

}  // namespace kp
