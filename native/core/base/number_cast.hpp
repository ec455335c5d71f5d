// Converts arrays of numbers from one element type to another, and finds numbers that do not fit. Pure.
//
// Rounding is to the nearest, as in NumPy. Integers do not become other integers: out of range, they do not
// fit. A finite float64 that float32 would make infinite does not fit either. Floats do not convert to
// integers.
#pragma once

#include <cstdint>
#include <optional>

namespace kp {

enum class Number : uint8_t { i8, u8, i16, u16, i32, u32, i64, u64, f32, f64 };

// NumPy's kind ('i', 'u' or 'f') and the bytes of an element; nothing for other types.
[[nodiscard]] std::optional<Number> number_of(char kind, uint64_t bytes) noexcept;
[[nodiscard]] uint64_t bytes_of(Number number) noexcept;
[[nodiscard]] bool is_float(Number number) noexcept;
[[nodiscard]] bool converts(Number from, Number to) noexcept;

// Whether all `count` numbers fit. `data` is aligned to its type.
[[nodiscard]] bool fit(Number from, Number to, const void* data, uint64_t count) noexcept;
// Converts `count` numbers that fit. The two ranges do not overlap.
void convert(Number from, Number to, const void* data, uint64_t count, void* out) noexcept;

}  // namespace kp
