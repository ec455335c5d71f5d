#include "base/number_cast.hpp"

#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

namespace kp {
namespace {

template <typename T>
struct Type {
    using type = T;
};

// body(Type<T>()) for the C++ type of `number`.
template <typename Body>
auto with_type(Number number, const Body& body) {
    switch (number) {
    case Number::i8: return body(Type<int8_t>());
    case Number::u8: return body(Type<uint8_t>());
    case Number::i16: return body(Type<int16_t>());
    case Number::u16: return body(Type<uint16_t>());
    case Number::i32: return body(Type<int32_t>());
    case Number::u32: return body(Type<uint32_t>());
    case Number::i64: return body(Type<int64_t>());
    case Number::u64: return body(Type<uint64_t>());
    case Number::f32: return body(Type<float>());
    case Number::f64: break;
    }
    return body(Type<double>());
}

template <typename From, typename To>
constexpr bool converts_to = std::is_floating_point_v<To> || std::is_integral_v<From>;

// The loops have no branch and no comparison, so that compilers vectorize them on any processor. Ranges of
// integers are powers of two: a number fits if, moved to begin at 0, it has no bit above the range.
template <typename From, typename To>
bool integers_fit(const From* data, uint64_t count) noexcept {
    using Bits = std::make_unsigned_t<From>;
    constexpr int from = std::numeric_limits<Bits>::digits, to = std::numeric_limits<To>::digits;
    constexpr bool both_signed = std::is_signed_v<From> && std::is_signed_v<To>;
    if constexpr (std::in_range<To>(std::numeric_limits<From>::max()) &&
                  std::in_range<To>(std::numeric_limits<From>::min())) {
        return true;
    } else {
        // `to` counts the bits without the sign.
        constexpr int shift = both_signed ? to + 1 : to < from ? to : from - 1;
        constexpr Bits begin = both_signed ? Bits{1} << to : 0;
        Bits beyond = 0;
        for (uint64_t i = 0; i < count; ++i)
            beyond |= static_cast<Bits>(static_cast<Bits>(static_cast<Bits>(data[i]) + begin) >> shift);
        return beyond == 0;
    }
}

// Without the sign, the bits of floats are ordered as their sizes are; infinity and NaN have larger bits than
// all finite numbers.
uint64_t size_bits(double number) noexcept { return std::bit_cast<uint64_t>(number) & (~uint64_t{0} >> 1); }

bool doubles_fit(const double* data, uint64_t count) noexcept {
    constexpr uint64_t top = uint64_t{1} << 63;
    // Numbers round to 2**128 from here on.
    constexpr uint64_t first_beyond = std::bit_cast<uint64_t>(0x1.ffffffp127);
    constexpr uint64_t infinite = std::bit_cast<uint64_t>(std::numeric_limits<double>::infinity());
    uint64_t beyond = 0;
    for (uint64_t i = 0; i < count; ++i) beyond |= size_bits(data[i]) + (top - first_beyond);
    if (!(beyond & top)) [[likely]]
        return true;
    for (uint64_t i = 0; i < count; ++i)
        if (size_bits(data[i]) >= first_beyond && size_bits(data[i]) < infinite) return false;
    return true;
}

}  // namespace

std::optional<Number> number_of(char kind, uint64_t bytes) noexcept {
    const bool is_signed = kind == 'i';
    if (kind == 'f')
        return bytes == 4   ? std::optional(Number::f32)
               : bytes == 8 ? std::optional(Number::f64)
                            : std::nullopt;
    if (!is_signed && kind != 'u') return std::nullopt;
    switch (bytes) {
    case 1: return is_signed ? Number::i8 : Number::u8;
    case 2: return is_signed ? Number::i16 : Number::u16;
    case 4: return is_signed ? Number::i32 : Number::u32;
    case 8: return is_signed ? Number::i64 : Number::u64;
    default: return std::nullopt;
    }
}

uint64_t bytes_of(Number number) noexcept {
    return with_type(number, [](auto type) { return uint64_t{sizeof(typename decltype(type)::type)}; });
}

bool is_float(Number number) noexcept { return number == Number::f32 || number == Number::f64; }

bool converts(Number from, Number to) noexcept { return is_float(to) || !is_float(from); }

bool fit(Number from, Number to, const void* data, uint64_t count) noexcept {
    return with_type(from, [&](auto source) {
        using From = typename decltype(source)::type;
        return with_type(to, [&](auto target) {
            using To = typename decltype(target)::type;
            if constexpr (std::is_integral_v<From> && std::is_integral_v<To>)
                return integers_fit<From, To>(static_cast<const From*>(data), count);
            else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, float>)
                return doubles_fit(static_cast<const double*>(data), count);
            else
                return converts_to<From, To>;
        });
    });
}

void convert(Number from, Number to, const void* data, uint64_t count, void* out) noexcept {
    with_type(from, [&](auto source) {
        using From = typename decltype(source)::type;
        with_type(to, [&](auto target) {
            using To = typename decltype(target)::type;
            if constexpr (converts_to<From, To>) {
                const auto* __restrict given = static_cast<const From*>(data);
                auto* __restrict made = static_cast<To*>(out);
                for (uint64_t i = 0; i < count; ++i) made[i] = static_cast<To>(given[i]);
            }
        });
    });
}

}  // namespace kp
