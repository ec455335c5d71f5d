// Parts of every shape against a list of their bytes.
#include "resource/runs.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace kp;

namespace {

// The place of each packed byte.
std::vector<uint64_t> places(const Runs& runs) {
    std::vector<uint64_t> found;
    runs.each(0, runs.bytes(), [&](uint64_t place, uint64_t packed, uint64_t bytes) {
        REQUIRE(packed == found.size());
        for (uint64_t i = 0; i < bytes; ++i) found.push_back(place + i);
    });
    return found;
}

}  // namespace

TEST_CASE("packed() counts the bytes before a place") {
    for (const uint64_t offset : {0, 5})
        for (const uint64_t length : {1, 3})
            for (const auto& axes : {std::vector<Runs::Axis>{},
                                     {{4, 3}},
                                     {{3, 40}, {4, 7}},
                                     {{2, 200}, {1, 1}, {3, 50}, {2, 9}}}) {
                const Runs runs(offset, length, axes);
                REQUIRE(runs.ascending());
                const auto bytes = places(runs);
                for (uint64_t place = 0; place < offset + runs.extent() + 4; ++place) {
                    uint64_t before = 0;
                    for (const uint64_t each : bytes) before += each < place;
                    CHECK(runs.packed(place) == before);
                }
            }
}

TEST_CASE("pieces from any byte to any other are at the places of these bytes") {
    for (const uint64_t length : {1, 3})
        for (const auto& axes : {std::vector<Runs::Axis>{},
                                 {{4, 3}},
                                 {{3, 40}, {4, 7}},
                                 {{4, 7}, {3, 40}},
                                 {{2, 200}, {1, 1}, {3, 50}, {2, 9}}}) {
            const Runs runs(5, length, axes);
            const auto bytes = places(runs);
            REQUIRE(bytes.size() == runs.bytes());
            for (uint64_t begin = 0; begin <= runs.bytes(); ++begin)
                for (uint64_t end = begin; end <= runs.bytes(); ++end) {
                    std::vector<uint64_t> found;
                    runs.each_row(
                        begin, end - begin,
                        [&](uint64_t place, uint64_t packed, uint64_t size, uint64_t stride, uint64_t count) {
                            CHECK(packed == begin + found.size());
                            for (uint64_t at = 0; at < count; ++at)
                                for (uint64_t i = 0; i < size; ++i) found.push_back(place + at * stride + i);
                        });
                    CHECK(found == std::vector(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                                               bytes.begin() + static_cast<std::ptrdiff_t>(end)));
                }
        }
}

TEST_CASE("runs ascend if no later one begins before an earlier one ends") {
    CHECK(Runs(0, 4, {}).ascending());
    CHECK(Runs(0, 4, {{3, 4}}).ascending());
    CHECK(Runs(0, 4, {{1, 0}}).ascending());
    CHECK(Runs(0, 4, {{0, 1}}).ascending());
    CHECK_FALSE(Runs(0, 4, {{3, 2}}).ascending());
    CHECK_FALSE(Runs(0, 4, {{3, 8}, {2, 24}}).ascending());  // transposed
    CHECK_FALSE(Runs(0, 4, {{3, 24}, {4, 8}}).ascending());  // the last inner run ends at 28
    CHECK(Runs(0, 4, {{3, 28}, {4, 8}}).ascending());
}
