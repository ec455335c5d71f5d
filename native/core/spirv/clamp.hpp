// Indices that may lie outside of an array are held to its last element, where no robustness of the device helps.
//
// robustBufferAccess bounds accesses to buffers alone. An index beyond an array in shared or private memory, among push
// constants or of descriptors ends the process on a CPU's driver and loses the device on a GPU. SPIRV-Tools has a pass for
// this (graphics robust access), which cannot serve: it clamps indices into buffers too, so that a write beyond a buffer's end, which
// the device drops, would land in the buffer's last element; and it refuses modules with buffer references or variable
// pointers.
//
// What an index can be at most is followed through the integer operations that bound it (masks, remainders, minima, the
// number of the invocation within its group), and an index that stays below the length costs nothing. Another one costs one
// minimum. Not covered: the element operand of OpPtrAccessChain (variable pointers), memory behind buffer references, and
// arrays of descriptors of run-time length.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kp {

struct Clamped {
    std::vector<uint32_t> words;  // empty: nothing had to be changed
    uint32_t indices = 0;         // that are held now
    uint32_t safe = 0;            // that are not constant and need not be held
};

// `words` must be a valid module. Throws Error(invalid_argument) for what is malformed.
[[nodiscard]] Clamped clamped(std::span<const uint32_t> words);

}  // namespace kp
