// Guard bytes: in a debug run they surround each range of host-visible memory, to detect writes beyond it.
//
// A pattern is written before and after the range. The one after it begins right after the object's own
// bytes, inside any padding that the driver or we add; in non-coherent memory it begins with the next atom
// instead. Our code never writes there, so a changed byte was written by a shader past its buffer's end, or
// by foreign code through an address. Released memory is poisoned: later reads of it give a value that is
// easy to recognise, instead of plausible data.
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

// The number of guard bytes that differ from the pattern.
[[nodiscard]] inline uint64_t broken_bytes(const std::byte* at) noexcept {
    uint64_t broken = 0;
    for (uint64_t i = 0; i < guard_bytes; ++i) broken += at[i] != guard_value ? 1 : 0;
    return broken;
}

}  // namespace kp
