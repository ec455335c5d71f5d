// Rewrites valid code that some drivers do not take in the way that all of them take.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kp {

// The module with
// - each OpCopyLogical as copies of its elements: Mesa 22.3 refuses it between structs of other names;
// - remainders of signed ints by a division: Vulkan leaves OpSRem and OpSMod of negative ints open (without
//   maintenance8), and NVIDIA's driver gives neither C's remainder nor Python's;
// - if `without_unrolling`, no hint to unroll loops.
// Empty: the module needs no change.
// `words` must be a valid module. Throws Error(invalid_argument) if it is malformed.
[[nodiscard]] std::vector<uint32_t> lowered(std::span<const uint32_t> words, bool without_unrolling);

}  // namespace kp
