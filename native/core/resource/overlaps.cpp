#include "resource/overlaps.hpp"

#include <algorithm>
#include <functional>
#include <tuple>

namespace kp {
namespace {

struct Place : ResourceRange::Place {
    size_t index = 0;
};

// The places of all ranges that are not empty. Ranges of one memory are neighbours, in the order of their
// first bytes; of those that begin together, equal ones are neighbours, in their given order.
std::vector<Place> in_order(const std::vector<ResourceRange>& ranges) {
    std::vector<Place> places;
    places.reserve(ranges.size());
    for (size_t i = 0; i < ranges.size(); ++i)
        if (ranges[i].size != 0) places.push_back({ranges[i].place(), i});
    const auto before = [](const Place& a, const Place& b) {
        if (a.memory != b.memory) return std::less<>()(a.memory, b.memory);
        return std::tie(a.begin, a.end, a.index) < std::tie(b.begin, b.end, b.index);
    };
    if (!std::ranges::is_sorted(places, before)) std::ranges::sort(places, before);
    return places;
}

}  // namespace

std::vector<ResourceRange> merged(std::vector<ResourceRange> ranges) {
    if (ranges.size() < 2) return ranges;
    bool any = false;
    Place all;  // the present group of ranges that overlap; its first range becomes their union
    for (const Place& place : in_order(ranges)) {
        if (ranges[place.index].resource != ranges[all.index].resource || place.begin >= all.end) {
            all = place;
            continue;
        }
        any = true;
        all.end = std::max(all.end, place.end);
        ranges[all.index].size = all.end - all.begin;
        ranges[place.index].resource.reset();
    }
    if (any) std::erase_if(ranges, [](const ResourceRange& range) { return !range.resource; });
    return ranges;
}

Repetitions repetitions(const std::vector<ResourceRange>& ranges) {
    Repetitions found;
    found.first.reserve(ranges.size());
    for (size_t i = 0; i < ranges.size(); ++i) found.first.push_back(i);
    Place widest;  // of the ranges of the present memory, the one that ends last
    for (const Place& place : in_order(ranges)) {
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
