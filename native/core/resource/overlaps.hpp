// Finds the bytes that a list of ranges names more than once. Takes n log n steps.
#pragma once

#include "resource/resource.hpp"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace kp {

// The union of ranges, as disjoint ranges. Ranges that only touch stay apart.
[[nodiscard]] std::vector<ResourceRange> merged(std::vector<ResourceRange> ranges);

struct Repetitions {
    // For each range, the index of the first range that is equal to it (its own index if none comes before).
    std::vector<size_t> first;
    // The indices of two ranges that overlap and are not equal, in ascending order.
    std::optional<std::pair<size_t, size_t>> overlap;
};
[[nodiscard]] Repetitions repetitions(const std::vector<ResourceRange>& ranges);

}  // namespace kp
