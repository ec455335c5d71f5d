// Clamps array indices that may be out of bounds to the last element, for arrays that the device's robustness
// does not protect.
//
// robustBufferAccess only bounds accesses to buffers. An index beyond an array in shared or private memory,
// among push constants or of descriptors ends the process on a CPU driver and loses the device on a GPU.
// SPIRV-Tools has a pass for this (graphics robust access), but it does not fit. It clamps indices into
// buffers too: a write beyond a buffer's end, which the device drops, would change the buffer's last element.
// It also refuses modules with buffer references or variable pointers.
//
// The largest possible value of an index is derived from the integer operations that bound it (masks,
// remainders, minima, the invocation's number within its group). An index that stays below the length costs
// nothing; any other index costs one minimum. Not covered: the element operand of OpPtrAccessChain (variable
// pointers), memory behind buffer references, and arrays of descriptors of run-time length.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kp {

struct Clamped {
    std::vector<uint32_t> words;  // empty: the module needs no change
    uint32_t indices = 0;         // number of indices that are now clamped
    uint32_t safe = 0;            // number of non-constant indices that need no clamp
};

// `words` must be a valid module. Throws Error(invalid_argument) if it is malformed.
[[nodiscard]] Clamped clamped(std::span<const uint32_t> words);

}  // namespace kp
