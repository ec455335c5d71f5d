// Grids in parts: each group once, and no part longer than it may be.
#include "pipeline/division.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

using namespace kp;

namespace {

// How often each group runs; the largest part.
std::pair<std::map<std::array<uint32_t, 3>, int>, uint64_t> run(const std::vector<Box>& boxes) {
    std::map<std::array<uint32_t, 3>, int> times;
    uint64_t largest = 0;
    for (const auto& [base, groups] : boxes) {
        largest = std::max(largest, uint64_t{groups[0]} * groups[1] * groups[2]);
        for (uint32_t x = 0; x < groups[0]; ++x)
            for (uint32_t y = 0; y < groups[1]; ++y)
                for (uint32_t z = 0; z < groups[2]; ++z) ++times[{base[0] + x, base[1] + y, base[2] + z}];
    }
    return {times, largest};
}

}  // namespace

TEST_CASE("the parts of a grid are the grid") {
    for (const Box& grid :
         {Box{{0, 0, 0}, {1, 1, 1}}, Box{{0, 0, 0}, {100, 1, 1}}, Box{{3, 0, 7}, {10, 7, 5}},
          Box{{0, 0, 2}, {1, 1, 97}}, Box{{0, 4, 0}, {8, 8, 8}}})
        for (const uint64_t parts : {1, 2, 3, 7, 64, 350, 100000}) {
            const uint64_t count = uint64_t{grid.groups[0]} * grid.groups[1] * grid.groups[2];
            const auto boxes = divided(grid, parts);
            const auto [times, largest] = run(boxes);
            CHECK(boxes.size() >= std::min(parts, count));
            CHECK(times.size() == count);
            for (const auto& [group, number] : times) {
                CHECK(number == 1);
                for (std::size_t axis = 0; axis < 3; ++axis) {
                    CHECK(group[axis] >= grid.base[axis]);
                    CHECK(group[axis] < grid.base[axis] + grid.groups[axis]);
                }
            }
            if (grid.groups[1] == 1 && grid.groups[2] == 1) CHECK(largest <= (count + parts - 1) / parts);
        }
}

TEST_CASE("the number of parts follows from the rate") {
    CHECK(parts_of(1000, 0.01, 1.0) == 10);
    CHECK(parts_of(1000, 0.001, 1.0) == 1);
    CHECK(parts_of(1000, 0.0010001, 1.0) == 2);
    CHECK(parts_of(1000, 1e-9, 1.0) == 1);
    CHECK(parts_of(1000, 50.0, 1.0) == 1000);  // a group is not divided
    CHECK(parts_of(8, 0, 1.0) == 1);
    CHECK(parts_of(320, 0, 1.0) == 20);
    CHECK(parts_of(1'000'000, 0, 1.0) == 64);
}
