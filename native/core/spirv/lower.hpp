// Rewrites valid code that some drivers do not take in the way that all of them take.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kp {

// The module with each OpCopyLogical as copies of its elements (Mesa 22.3 refuses it between structs of other
// names) and, if `without_unrolling`, without the hint to unroll loops. Empty: the module needs no change.
// `words` must be a valid module. Throws Error(invalid_argument) if it is malformed.
[[nodiscard]] std::vector<uint32_t> lowered(std::span<const uint32_t> words, bool without_unrolling);

}  // namespace kp
