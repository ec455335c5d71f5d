// A pattern is reduced to its shortest period, and becomes a word wherever one repeats it.
#include "base/fill_pattern.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

using namespace kp;
using namespace std::string_view_literals;

TEST_CASE("a pattern's period is the shortest that divides the element") {
    CHECK(FillPattern("\0\0\0\0\0\0\0\0"sv).period() == 1);
    CHECK(FillPattern("abababab"sv).period() == 2);
    CHECK(FillPattern("abcabc"sv).period() == 3);
    CHECK(FillPattern("abcab"sv).period() == 5);  // repeats, but does not divide
    CHECK(FillPattern("abcdabcd"sv).period() == 4);
    CHECK(FillPattern("x"sv).period() == 1);
    CHECK(FillPattern(""sv).period() == 1);
}

TEST_CASE("a word stands for the periods that divide it") {
    const auto same = [](const FillPattern& pattern, std::string_view bytes) {
        const auto word = pattern.word();
        return word && std::memcmp(&*word, bytes.data(), 4) == 0;
    };
    CHECK(same(FillPattern("aaaa"sv), "aaaa"sv));
    CHECK(same(FillPattern("abab"sv), "abab"sv));
    CHECK(same(FillPattern("abcdabcd"sv), "abcd"sv));
    CHECK_FALSE(FillPattern("abc"sv).word());
    CHECK_FALSE(FillPattern("abcdefgh"sv).word());
}

TEST_CASE("write repeats the element from the first byte to the last") {
    for (const auto element : {"abcdefgh"sv, "abc"sv, "aaaa"sv, "0123456789abcdef0123"sv}) {
        const FillPattern pattern(element);
        std::vector<char> bytes(1003, '#');
        pattern.write(reinterpret_cast<std::byte*>(bytes.data()), 1000);
        for (size_t i = 0; i < 1000; ++i) REQUIRE(bytes[i] == element[i % element.size()]);
        CHECK(bytes[1000] == '#');
    }
}
