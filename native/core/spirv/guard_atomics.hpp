// Skips atomics on buffers if their index is beyond the array, for drivers with a robustBufferAccess that
// does not cover atomics.
//
// Such an index cannot be clamped to the last element as in spirv/clamp.hpp, because the atomic would change
// that element. Instead, the operation moves into a branch that runs only if the index is below the array's
// length; otherwise its result is 0. Not covered: pointers that do not come from access chains on a variable
// (function parameters, variable pointers, buffer references), and atomics in the first block of a loop if
// that block itself branches within the loop.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kp {

// The module with its atomics guarded; empty if there is nothing to guard. `words` must be a valid module.
// Throws Error(invalid_argument) if it is malformed.
[[nodiscard]] std::vector<uint32_t> guarded_atomics(std::span<const uint32_t> words);

}  // namespace kp
