#include "pipeline/division.hpp"

#include <algorithm>
#include <cmath>

namespace kp {
namespace {

constexpr uint64_t most_unknown = 64;      // parts of a grid without a known rate
constexpr uint64_t fewest_in_a_part = 16;  // groups of these: fewer run side by side anyway

}  // namespace

uint64_t parts_of(uint64_t groups, double seconds, double allowed) {
    if (seconds <= 0) return std::clamp<uint64_t>(groups / fewest_in_a_part, 1, most_unknown);
    const double parts = std::ceil(static_cast<double>(groups) * seconds / allowed);
    return parts < static_cast<double>(groups) ? std::max<uint64_t>(static_cast<uint64_t>(parts), 1) : groups;
}

std::vector<Box> divided(const Box& grid, uint64_t parts) {
    std::array<uint64_t, 3> counts{1, 1, 1};
    std::array<size_t, 3> axes{2, 1, 0};  // the slowest first among equals
    std::ranges::stable_sort(axes, [&](size_t a, size_t b) { return grid.groups[a] > grid.groups[b]; });
    for (const size_t axis : axes) {
        counts[axis] = std::clamp<uint64_t>(parts, 1, grid.groups[axis]);
        parts = (parts + counts[axis] - 1) / counts[axis];
    }
    std::vector<Box> boxes;
    boxes.reserve(counts[0] * counts[1] * counts[2]);
    std::array<uint64_t, 3> at{};
    for (at[2] = 0; at[2] < counts[2]; ++at[2])
        for (at[1] = 0; at[1] < counts[1]; ++at[1])
            for (at[0] = 0; at[0] < counts[0]; ++at[0]) {
                Box& box = boxes.emplace_back();
                for (size_t axis = 0; axis < 3; ++axis) {
                    const uint64_t size = grid.groups[axis];
                    const uint64_t first = size * at[axis] / counts[axis];
                    box.base[axis] = static_cast<uint32_t>(grid.base[axis] + first);
                    box.groups[axis] = static_cast<uint32_t>(size * (at[axis] + 1) / counts[axis] - first);
                }
            }
    return boxes;
}

}  // namespace kp
