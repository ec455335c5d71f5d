// MappedRanges against a model of single bytes, and the search among its ranges against all pairs.
#include "record/mapped_ranges.hpp"
#include "sync/delivery.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

namespace {

VkDeviceMemory memory(uintptr_t number) { return reinterpret_cast<VkDeviceMemory>(0x1000 * (number + 1)); }

VkMappedMemoryRange range(uintptr_t number, uint64_t offset, uint64_t size) {
    VkMappedMemoryRange made{VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE};
    made.memory = memory(number);
    made.offset = offset;
    made.size = size;
    return made;
}

constexpr size_t blocks = 3;
constexpr uint64_t length = 512;
using Bytes = std::array<std::array<bool, length>, blocks>;

void set(Bytes& bytes, size_t block, uint64_t offset, uint64_t size) {
    for (uint64_t at = offset; at < offset + size; ++at) bytes[block][at] = true;
}

}  // namespace

TEST_CASE("mapped ranges cover the bytes that were added, in order and apart") {
    std::mt19937 random(7);
    for (int turn = 0; turn < 200; ++turn) {
        const auto below = [&](uint64_t n) { return random() % n; };
        kp::MappedRanges ranges;
        Bytes expected{};
        const uint64_t most = 1 + below(40);
        for (uint64_t i = 0, count = below(300); i < count; ++i) {
            const size_t block = below(blocks);
            const uint64_t offset = below(length), size = 1 + below(std::min(most, length - offset));
            ranges.add(range(block, offset, size));
            set(expected, block, offset, size);
        }
        ranges.settle();
        Bytes found{};
        const auto& all = ranges.ranges();
        for (size_t i = 0; i < all.size(); ++i) {
            for (size_t block = 0; block < blocks; ++block)
                if (all[i].memory == memory(block)) set(found, block, all[i].offset, all[i].size);
            if (i == 0 || all[i - 1].memory != all[i].memory) continue;
            CHECK(all[i - 1].offset + all[i - 1].size < all[i].offset);
        }
        CHECK(found == expected);

        // Any range overlaps one of them if and only if it has a byte of them.
        for (int probe = 0; probe < 20; ++probe) {
            const size_t block = below(blocks);
            const uint64_t offset = below(length), size = 1 + below(std::min<uint64_t>(9, length - offset));
            bool overlaps = false;
            for (uint64_t at = offset; at < offset + size; ++at) overlaps = overlaps || expected[block][at];
            const std::array<VkMappedMemoryRange, 2> some{range(blocks, 0, length),
                                                          range(block, offset, size)};
            CHECK((kp::find_overlap(some, all) == &some[1]) == overlaps);
        }
    }
}

TEST_CASE("a few ranges that are added very often take little memory") {
    kp::MappedRanges ranges;
    size_t most = 0;
    for (uint64_t i = 0; i < 100'000; ++i) {
        ranges.add(range(i % 2, 100 * (i % 4), 50));
        most = std::max(most, ranges.ranges().size());
    }
    CHECK(most <= 64);
    ranges.settle();
    CHECK(ranges.ranges().size() == 4);
    ranges.clear();
    CHECK(ranges.ranges().empty());
}
