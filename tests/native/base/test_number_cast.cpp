// Each pair of types at the ends of the ranges, against the standard library's own comparison of integers.
#include "base/number_cast.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

using namespace kp;

namespace {

template <typename T>
constexpr Number number = Number::i8;
template <>
constexpr Number number<uint8_t> = Number::u8;
template <>
constexpr Number number<int16_t> = Number::i16;
template <>
constexpr Number number<uint16_t> = Number::u16;
template <>
constexpr Number number<int32_t> = Number::i32;
template <>
constexpr Number number<uint32_t> = Number::u32;
template <>
constexpr Number number<int64_t> = Number::i64;
template <>
constexpr Number number<uint64_t> = Number::u64;
template <>
constexpr Number number<float> = Number::f32;
template <>
constexpr Number number<double> = Number::f64;

// Numbers of T around every power of two, and their negatives.
template <typename T>
std::vector<T> interesting() {
    std::vector<T> found{std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
    for (int bit = 0; bit < 64; ++bit)
        for (const uint64_t sign : {uint64_t{0}, ~uint64_t{0}})
            for (const uint64_t near : {~uint64_t{0}, uint64_t{0}, uint64_t{1}})
                found.push_back(static_cast<T>((((uint64_t{1} << bit) + near) ^ sign)));
    return found;
}

template <typename From, typename To>
void check_integers() {
    const auto values = interesting<From>();
    for (const From value : values) {
        // Beside numbers that fit, at every place of a vector.
        std::vector<From> data(37, From{1});
        for (size_t at = 0; at < data.size(); at += 5) {
            data[at] = value;
            REQUIRE(fit(number<From>, number<To>, data.data(), data.size()) == std::in_range<To>(value));
            data[at] = From{1};
        }
    }
    std::vector<To> made(values.size());
    convert(number<From>, number<To>, values.data(), values.size(), made.data());
    for (size_t i = 0; i < values.size(); ++i) REQUIRE(made[i] == static_cast<To>(values[i]));
}

template <typename From, typename... To>
void check_all() {
    (check_integers<From, To>(), ...);
    const auto values = interesting<From>();
    std::vector<float> floats(values.size());
    REQUIRE(converts(number<From>, Number::f32));
    REQUIRE_FALSE(converts(Number::f32, number<From>));
    REQUIRE(fit(number<From>, Number::f32, values.data(), values.size()));
    convert(number<From>, Number::f32, values.data(), values.size(), floats.data());
    for (size_t i = 0; i < values.size(); ++i) REQUIRE(floats[i] == static_cast<float>(values[i]));
}

template <typename... T>
void check_pairs() {
    (check_all<T, T...>(), ...);
}

}  // namespace

TEST_CASE("integers fit where the standard library finds them in range") {
    check_pairs<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>();
}

TEST_CASE("a float64 fits float32 unless it is finite and would become infinite") {
    const double infinity = std::numeric_limits<double>::infinity();
    const double most = std::numeric_limits<float>::max();
    const double rounds_up = 0x1.ffffffp127;
    for (const double sign : {1.0, -1.0}) {
        for (const double value :
             {0.0, 1e-310, 1.0, most, std::nextafter(most, infinity), std::nextafter(rounds_up, 0.0),
              infinity, std::nan(""), rounds_up, std::nextafter(rounds_up, infinity), 1e300,
              std::numeric_limits<double>::max()}) {
            std::vector<double> data(19, 0.5);
            data[7] = sign * value;
            std::vector<float> made(data.size());
            const bool fits = fit(Number::f64, Number::f32, data.data(), data.size());
            CHECK(fits == !(std::isfinite(value) && value >= rounds_up));
            if (!fits) continue;
            convert(Number::f64, Number::f32, data.data(), data.size(), made.data());
            CHECK(std::isfinite(made[7]) == std::isfinite(value));
            if (!std::isnan(value)) CHECK(made[7] == static_cast<float>(sign * value));
        }
    }
}

TEST_CASE("numbers are named by NumPy's kind and size") {
    CHECK(number_of('i', 4) == Number::i32);
    CHECK(number_of('u', 8) == Number::u64);
    CHECK(number_of('f', 8) == Number::f64);
    CHECK_FALSE(number_of('f', 2));
    CHECK_FALSE(number_of('b', 1));
    CHECK_FALSE(number_of('i', 16));
    CHECK_FALSE(number_of('c', 8));
    for (const Number each : {Number::i8, Number::u16, Number::i32, Number::u64, Number::f32, Number::f64})
        CHECK(number_of(is_float(each)                               ? 'f'
                        : each == Number::u16 || each == Number::u64 ? 'u'
                                                                     : 'i',
                        bytes_of(each)) == each);
}
