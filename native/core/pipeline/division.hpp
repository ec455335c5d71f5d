// Grids in parts, for systems that reset a device if its work runs for too long. Pure.
//
// A part is a dispatch with a base, so gl_WorkGroupID and gl_GlobalInvocationID stay what they are in the
// whole grid; only gl_NumWorkGroups does not, and shaders that read it run whole. A kernel's rate is measured
// with each run. Until it is known, a grid runs in many parts.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace kp {

// In how many parts a grid of so many groups has to run, so that each takes `allowed` seconds at most, if a
// group took `seconds` (0: nobody knows).
[[nodiscard]] uint64_t parts_of(uint64_t groups, double seconds, double allowed);

struct Box {
    std::array<uint32_t, 3> base{};
    std::array<uint32_t, 3> groups{};
};

// The boxes that the grid consists of: as many as `parts`, or more where that is no product of axes' parts.
[[nodiscard]] std::vector<Box> divided(const Box& grid, uint64_t parts);

}  // namespace kp
