// Atomics on buffers whose index lies beyond the array are left out, for drivers whose robustBufferAccess does not see to them.
//
// An index cannot be held to the last element as in spirv/clamp.hpp: the atomic would change it. So the operation moves into a
// branch that is taken if the index is below the array's length; its result is 0 otherwise. Not covered: pointers that come
// from elsewhere than access chains on a variable (functions' parameters, variable pointers, buffer references), and atomics in the
// first block of a loop that itself branches within the loop.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kp {

// The module with its atomics guarded; empty if there is nothing to guard. `words` must be a valid module. Throws
// Error(invalid_argument) for what is malformed.
[[nodiscard]] std::vector<uint32_t> guarded_atomics(std::span<const uint32_t> words);

}  // namespace kp
