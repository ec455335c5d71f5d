// Guard bytes: what a debug run puts around each range of host-visible memory, to tell who wrote beyond it.
//
// A pattern stands in front of the range and behind it: right behind what the object has, in the steps that a driver or we add
// to it, but for memory that is not coherent, where it begins with the next atom. Nothing of ours writes there, so a byte that differs was written by a
// shader past its buffer's end, or by foreign code through an address. Memory that is released is poisoned: what still
// reads it reads a value that is easy to recognise instead of what looks right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace kp {

inline constexpr uint64_t guard_bytes = 64;
inline constexpr auto guard_value = std::byte{0xfd};
inline constexpr auto poison_value = std::byte{0xdd};

// A range between two guards.
struct GuardedRange {
    uint64_t offset = 0;  // in the memory
    uint64_t size = 0;
    uint64_t front = 0;
    uint64_t tail = 0;
    std::string label;
};

inline void write_guard(std::byte* at) noexcept {
    std::memset(at, std::to_integer<int>(guard_value), guard_bytes);
}

// How many bytes of the guard differ from the pattern.
[[nodiscard]] inline uint64_t broken_bytes(const std::byte* at) noexcept {
    uint64_t broken = 0;
    for (uint64_t i = 0; i < guard_bytes; ++i) broken += at[i] != guard_value ? 1 : 0;
    return broken;
}

}  // namespace kp
