// The search for overlapping ranges against a model of single bytes and against all pairs.
#include "resource/overlaps.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace {

// As a ResourceRange, without a device.
struct Range {
    std::shared_ptr<size_t> resource;
    uint64_t offset = 0;
    uint64_t size = 0;

    [[nodiscard]] uint64_t end() const { return offset + size; }
    [[nodiscard]] kp::ResourceRange::Place place() const { return {resource.get(), offset, end()}; }
    [[nodiscard]] bool overlaps(const Range& other) const {
        return size != 0 && other.size != 0 && resource == other.resource && offset < other.end() &&
               other.offset < end();
    }
    friend bool operator==(const Range&, const Range&) = default;
};

std::shared_ptr<size_t> resource(size_t number) {
    static std::array<size_t, 50> all{};
    return {std::shared_ptr<void>(), &all.at(number)};
}

using Bytes = std::set<std::pair<const size_t*, uint64_t>>;

Bytes bytes_of(const std::vector<Range>& ranges) {
    Bytes bytes;
    for (const auto& range : ranges)
        for (uint64_t at = range.offset; at < range.end(); ++at) bytes.emplace(range.resource.get(), at);
    return bytes;
}

std::vector<Range> random_ranges(std::mt19937& random) {
    const auto below = [&](uint64_t n) { return random() % n; };
    const uint64_t resources = 1 + below(6), length = 1 + below(100);
    std::vector<Range> ranges;
    for (uint64_t i = 0, count = below(12); i < count; ++i) {
        const uint64_t begin = below(length);
        ranges.emplace_back(resource(below(resources)), begin,
                            below(std::min<uint64_t>(8, length - begin) + 1));
    }
    return ranges;
}

}  // namespace

TEST_CASE("merged ranges have the same bytes, each once") {
    std::mt19937 random(3);
    for (int turn = 0; turn < 2000; ++turn) {
        const auto ranges = random_ranges(random);
        const auto merged = kp::merged(ranges);
        const Bytes bytes = bytes_of(merged);
        CHECK(bytes == bytes_of(ranges));
        uint64_t size = 0;
        for (const auto& range : merged) size += range.size;
        CHECK(size == bytes.size());
    }
}

TEST_CASE("ranges that do not overlap stay as they are, in their order") {
    std::vector<Range> ranges;
    for (uint64_t i = 0; i < 50; ++i) ranges.emplace_back(resource(i * 7 % 50), 4 * (i % 3), 4);
    CHECK(kp::merged(ranges) == ranges);
    const std::vector<Range> touching{{resource(1), 4, 4}, {resource(1), 0, 4}};
    CHECK(kp::merged(touching) == touching);
}

TEST_CASE("repetitions: equal ranges and overlaps are those of all pairs") {
    std::mt19937 random(5);
    int overlapping = 0;
    for (int turn = 0; turn < 5000; ++turn) {
        const auto ranges = random_ranges(random);
        const auto found = kp::repetitions(ranges);
        REQUIRE(found.first.size() == ranges.size());
        bool overlap = false;
        for (size_t i = 0; i < ranges.size(); ++i)
            for (size_t j = 0; j < i; ++j)
                overlap = overlap || (ranges[i].overlaps(ranges[j]) && ranges[i] != ranges[j]);
        CHECK(found.overlap.has_value() == overlap);
        if (found.overlap) {
            ++overlapping;
            const auto [a, b] = *found.overlap;
            CHECK(a < b);
            CHECK(ranges[a].overlaps(ranges[b]));
            CHECK(ranges[a] != ranges[b]);
            continue;
        }
        for (size_t i = 0; i < ranges.size(); ++i) {
            if (ranges[i].size == 0) continue;
            const auto first = std::find(ranges.begin(), ranges.end(), ranges[i]) - ranges.begin();
            CHECK(found.first[i] == static_cast<size_t>(first));
        }
    }
    CHECK(overlapping > 500);
}
