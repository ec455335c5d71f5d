// Copies and fills that go page by page leave the same bytes as one memcpy, and touch nothing beside them.
#include "base/first_touch.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <vector>

using namespace kp;

namespace {

constexpr std::byte untouched{0xA5};
constexpr size_t margin = 64;

std::vector<std::byte> numbered(size_t size) {
    std::vector<std::byte> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 31 + i / 4096) % 251 + 1);
    return bytes;
}

bool all(const std::byte* begin, size_t size, std::byte value) {
    return std::all_of(begin, begin + size, [&](std::byte byte) { return byte == value; });
}

}  // namespace

TEST_CASE("first_copy and first_fill at any size and alignment") {
    constexpr size_t page = size_t{2} << 20;
    for (const size_t size :
         {size_t{0}, size_t{1}, size_t{4096}, 2 * page - 1, 2 * page, 2 * page + 1, 3 * page + 12345}) {
        for (const size_t shift : {size_t{0}, size_t{1}, size_t{63}}) {
            CAPTURE(size);
            CAPTURE(shift);
            const auto source = numbered(size);
            std::vector<std::byte> memory(size + 2 * margin + shift, untouched);
            std::byte* to = memory.data() + margin + shift;

            first_copy(to, source.data(), size);
            CHECK(std::equal(source.begin(), source.end(), to));
            CHECK(all(memory.data(), margin + shift, untouched));
            CHECK(all(to + size, margin, untouched));

            for (const size_t period : {1, 2, 3, 16, 1000, 70000}) {
                CAPTURE(period);
                const auto pattern = numbered(period);
                first_fill(to, pattern, size);
                bool repeats = true;
                for (size_t i = 0; i < size; ++i) repeats = repeats && to[i] == pattern[i % period];
                CHECK(repeats);
                CHECK(all(memory.data(), margin + shift, untouched));
                CHECK(all(to + size, margin, untouched));
            }
        }
    }
}

TEST_CASE("first_copy between ranges that overlap is memmove") {
    constexpr size_t size = size_t{6} << 20;
    for (const ptrdiff_t distance : {ptrdiff_t{0}, ptrdiff_t{1}, ptrdiff_t{3} << 20}) {
        CAPTURE(distance);
        const auto expected = numbered(size);
        std::vector<std::byte> memory(size + static_cast<size_t>(distance));
        for (const bool forward : {false, true}) {
            std::byte* from = memory.data() + (forward ? distance : 0);
            std::byte* to = memory.data() + (forward ? 0 : distance);
            std::copy(expected.begin(), expected.end(), from);
            first_copy(to, from, size);
            CHECK(std::equal(expected.begin(), expected.end(), to));
        }
    }
}
