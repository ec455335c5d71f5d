// FreeList against a model that knows nothing of size classes: a map of the live ranges by offset.
#include "memory/free_list.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace kp {
// The work that allocate and release did, in pieces looked at or relinked: it does not depend on the machine.
struct FreeListTestAccess {
    static uint64_t steps(const FreeList& list) { return list.steps_; }
};
}  // namespace kp

namespace {

using kp::FreeList;

// The most that one allocate or release may do, whatever the number of ranges: 4 + 4 + 1 + 64 probes, and the
// relinking.
constexpr uint64_t kMostSteps = 80;

struct Model {
    uint64_t size;
    std::map<uint64_t, FreeList::Range> live;  // by offset

    struct Gap {
        uint64_t offset, size;
    };

    [[nodiscard]] std::vector<Gap> gaps() const {
        std::vector<Gap> all;
        uint64_t end = 0;
        for (const auto& [offset, range] : live) {
            if (offset > end) all.push_back({end, offset - end});
            end = offset + range.size;
        }
        if (size > end) all.push_back({end, size - end});
        return all;
    }

    [[nodiscard]] bool fits(uint64_t wanted, uint64_t alignment) const {
        const auto all = gaps();
        return std::any_of(all.begin(), all.end(), [&](const Gap& gap) {
            const uint64_t padding = (alignment - gap.offset % alignment) % alignment;
            return gap.size >= padding && gap.size - padding >= wanted;
        });
    }

    // Every statistic and every piece that the list reports, against what the model says.
    void check(const FreeList& list) const {
        uint64_t used = 0;
        uint64_t largest = 0;
        for (const auto& [offset, range] : live) used += range.size;
        const auto all = gaps();
        for (const Gap& gap : all) largest = std::max(largest, gap.size);
        CHECK(list.size() == size);
        CHECK(list.used() == used);
        CHECK(list.count() == live.size());
        CHECK(list.empty() == live.empty());
        CHECK(list.largest_free() == largest);

        const auto pieces = list.pieces();
        CHECK(pieces.size() == live.size() + all.size());  // so every free neighbour has been merged
        uint64_t end = 0;
        bool tiled = true;
        bool agree = true;
        for (const FreeList::Piece& piece : pieces) {
            tiled = tiled && piece.offset == end && piece.size > 0;
            end = piece.offset + piece.size;
            const auto found = live.find(piece.offset);
            agree = agree && piece.free == (found == live.end()) &&
                    (piece.free || found->second.size == piece.size);
        }
        CHECK(tiled);
        CHECK(agree);
        CHECK(end == size);
    }

    // Adds a range that the list gave out; false if it overlaps another one or leaves the space.
    [[nodiscard]] bool add(const FreeList::Range& range) {
        const auto [place, added] = live.emplace(range.offset, range);
        if (!added || range.offset > size || range.size > size - range.offset) return false;
        if (place != live.begin()) {
            const auto& before = std::prev(place)->second;
            if (before.offset + before.size > range.offset) return false;
        }
        const auto after = std::next(place);
        return after == live.end() || range.offset + range.size <= after->first;
    }
};

// Live ranges in no particular order, so that a random one is found and removed in constant time.
FreeList::Range take_random(std::vector<FreeList::Range>& ranges, std::mt19937_64& random) {
    std::swap(ranges[random() % ranges.size()], ranges.back());
    const FreeList::Range range = ranges.back();
    ranges.pop_back();
    return range;
}

// What programs allocate: mostly small parameters, arrays of any length, and a few powers of two such as
// pictures.
uint64_t mixed_size(std::mt19937_64& random) {
    const uint64_t kind = random() % 100;
    if (kind < 60) return 1 + random() % 4096;
    if (kind < 90) return uint64_t{1} << (4 + random() % 13);
    return 4096 + random() % (60 * 1024);
}

// Every power of two from 16 B to 1 MiB is equally likely, so that a few long ranges hold nearly all bytes.
uint64_t spread_size(std::mt19937_64& random) {
    const uint64_t power = uint64_t{16} << (random() % 16);
    return power + random() % power;
}

uint64_t exponential_size(std::mt19937_64& random) {
    return 1 + static_cast<uint64_t>(std::exponential_distribution<double>(1.0 / 8192)(random));
}

uint64_t mixed_alignment(std::mt19937_64& random) {
    return uint64_t{1} << (random() % 4 == 0 ? random() % 13 : 4 + random() % 5);
}

}  // namespace

TEST_CASE("free list: an empty space is one free piece and can be taken whole") {
    for (const uint64_t size : {uint64_t{1}, uint64_t{63}, uint64_t{64}, uint64_t{65}, uint64_t{1000},
                                uint64_t{1} << 26, (uint64_t{1} << 40) + 12345, UINT64_MAX}) {
        CAPTURE(size);
        FreeList list(size);
        Model model{size, {}};
        model.check(list);
        CHECK(!list.allocate(size, 1)->offset);
        CHECK(list.used() == size);
        CHECK(list.largest_free() == 0);
        CHECK(!list.allocate(1, 1));
        list.release(0);
        model.check(list);
    }
}

TEST_CASE("free list: a space of no bytes gives nothing") {
    FreeList list(0);
    CHECK(!list.allocate(1, 1));
    CHECK(list.pieces().empty());
    CHECK(list.largest_free() == 0);
    list.release(0);
    CHECK(list.empty());
}

TEST_CASE("free list: sizes and alignments that make no sense throw and change nothing") {
    FreeList list(1024);
    CHECK_THROWS_AS((void)list.allocate(0, 16), kp::Error);
    CHECK_THROWS_AS((void)list.allocate(16, 0), kp::Error);
    CHECK_THROWS_AS((void)list.allocate(16, 24), kp::Error);
    Model{1024, {}}.check(list);
}

TEST_CASE("free list: requests near 2^64 neither overflow nor succeed") {
    FreeList list(1 << 20);
    CHECK(!list.allocate(UINT64_MAX, 1));
    CHECK(!list.allocate(UINT64_MAX - 5, uint64_t{1} << 63));
    CHECK(!list.allocate((1 << 20) + 1, 1));
    CHECK(list.allocate(1 << 20, uint64_t{1} << 63)->offset == 0);  // offset 0 has every alignment
}

TEST_CASE("free list: the gap in front of an aligned range stays usable") {
    FreeList list(4096);
    const auto small = list.allocate(10, 1);
    const auto aligned = list.allocate(1024, 1024);
    REQUIRE(aligned);
    CHECK(aligned->offset == 1024);
    CHECK(list.used() == 1034);
    const auto in_gap = list.allocate(1014, 2);
    REQUIRE(in_gap);
    CHECK(in_gap->offset == 10);
    list.release(aligned->node);
    list.release(small->node);
    list.release(in_gap->node);
    Model{4096, {}}.check(list);
}

TEST_CASE("free list: a hole of exactly the size asked is reused before fresh space, at every class") {
    std::mt19937_64 random(7);
    for (int round = 0; round < 500; ++round) {
        FreeList list(uint64_t{1} << 32);
        const uint64_t size = 1 + random() % (uint64_t{1} << (1 + random() % 30));
        const uint64_t alignment = uint64_t{1} << (random() % 9);
        CAPTURE(size);
        CAPTURE(alignment);
        const auto hole = list.allocate(size, alignment);
        REQUIRE(hole);
        REQUIRE(list.allocate(1, 1));  // keeps the hole from merging with what follows
        list.release(hole->node);
        CHECK(list.allocate(size, alignment)->offset == hole->offset);
    }
}

TEST_CASE("free list: handles that are not live are ignored") {
    FreeList list(1024);
    const auto a = list.allocate(100, 1);
    const auto b = list.allocate(100, 1);
    REQUIRE(b);
    list.release(UINT32_MAX);
    list.release(12345);
    list.release(a->node);
    list.release(a->node);
    CHECK(list.count() == 1);
    CHECK(list.used() == 100);
    Model{1024, {{b->offset, *b}}}.check(list);
}

TEST_CASE("free list: neighbours merge whichever order three of them are released in") {
    std::vector<int> order{0, 1, 2};
    do {
        FreeList list(300);
        std::vector<FreeList::Range> ranges;
        for (int i = 0; i < 3; ++i) ranges.push_back(*list.allocate(100, 1));
        for (const int i : order) list.release(ranges[static_cast<size_t>(i)].node);
        CHECK(list.pieces().size() == 1);
        CHECK(list.largest_free() == 300);
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("free list: random programs agree with the model at every step") {
    for (uint64_t seed = 1; seed <= 40; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 random(seed);
        const uint64_t size = 1 + random() % (uint64_t{1} << (8 + random() % 16));
        FreeList list(size);
        Model model{size, {}};
        std::vector<FreeList::Range> ranges;
        int refused = 0;
        for (int step = 0; step < 600; ++step) {
            if (ranges.empty() || random() % 5 < 3) {
                const uint64_t wanted = 1 + random() % std::max<uint64_t>(1, size / (1 + random() % 64));
                const uint64_t alignment = uint64_t{1} << (random() % 10);
                const bool fits = model.fits(wanted, alignment);
                const auto range = list.allocate(wanted, alignment);
                REQUIRE(range.has_value() == fits);  // exact, as fewer than 64 pieces are in question here
                if (range) {
                    REQUIRE(range->size == wanted);
                    REQUIRE(range->offset % alignment == 0);
                    REQUIRE(model.add(*range));
                    ranges.push_back(*range);
                } else {
                    ++refused;
                }
            } else {
                const auto range = take_random(ranges, random);
                list.release(range.node);
                model.live.erase(range.offset);
            }
            model.check(list);
        }
        CHECK(refused > 0);  // the space was full at times, else half of the test tests nothing
        while (!ranges.empty()) {
            const auto range = take_random(ranges, random);
            list.release(range.node);
            model.live.erase(range.offset);
        }
        model.check(list);
        CHECK(list.pieces().size() == 1);
    }
}

TEST_CASE("free list: offsets beyond 4 GiB are exact") {
    std::mt19937_64 random(64);
    const uint64_t size = (uint64_t{1} << 44) + 4097;
    FreeList list(size);
    Model model{size, {}};
    uint64_t furthest = 0;
    for (int i = 0; i < 300; ++i) {
        const uint64_t wanted = 1 + random() % (uint64_t{1} << 36);
        const auto range = list.allocate(wanted, uint64_t{1} << (random() % 30));
        if (!range) continue;
        REQUIRE(model.add(*range));
        furthest = std::max(furthest, range->offset);
    }
    CHECK(furthest > (uint64_t{1} << 40));
    model.check(list);
}

namespace {

// The textbook policy, at O(log n) and more: of all holes that hold the range, the shortest, then the lowest.
class BestFit {
public:
    explicit BestFit(uint64_t size) { add(0, size); }

    uint64_t allocate(uint64_t size, uint64_t alignment) {
        for (auto it = by_size_.lower_bound({size, 0}); it != by_size_.end(); ++it) {
            const auto [hole, offset] = *it;
            const uint64_t padding = (alignment - offset % alignment) % alignment;
            if (hole < size + padding) continue;
            remove(offset, hole);
            if (padding > 0) add(offset, padding);
            if (hole > size + padding) add(offset + padding + size, hole - size - padding);
            return offset + padding;
        }
        return UINT64_MAX;
    }

    void release(uint64_t offset, uint64_t size) {
        auto next = by_offset_.lower_bound(offset);
        if (next != by_offset_.begin()) {
            const auto [lower, lower_size] = *std::prev(next);
            if (lower + lower_size == offset) {
                remove(lower, lower_size);
                offset = lower;
                size += lower_size;
            }
        }
        next = by_offset_.lower_bound(offset);
        if (next != by_offset_.end() && next->first == offset + size) {
            const auto [upper, upper_size] = *next;
            remove(upper, upper_size);
            size += upper_size;
        }
        add(offset, size);
    }

private:
    void add(uint64_t offset, uint64_t size) {
        by_offset_.emplace(offset, size);
        by_size_.emplace(size, offset);
    }
    void remove(uint64_t offset, uint64_t size) {
        by_offset_.erase(offset);
        by_size_.erase({size, offset});
    }

    std::map<uint64_t, uint64_t> by_offset_;
    std::set<std::pair<uint64_t, uint64_t>> by_size_;
};

struct Workload {
    const char* name;
    uint64_t (*size)(std::mt19937_64&);
    uint64_t (*alignment)(std::mt19937_64&);
};

uint64_t align_64(std::mt19937_64&) { return 64; }
uint64_t align_256(std::mt19937_64&) { return 256; }

constexpr int kDay = 2'000'000;  // operations: one every 43 ms for a day

// Two million random operations around 64 MiB of live ranges, each release at random. Returns the
// fragmentation as Johnstone and Wilson define it ("The memory fragmentation problem: solved?", ISMM 1998,
// their fourth measure, which the TLSF papers report too): the space that was ever needed, that is the
// furthest end of any range, over the most bytes that were ever live at once, less 1. Holes and alignment
// padding both count. `allocate` returns a Range.
template <typename Allocate, typename Release>
double fragmentation_over_a_day(const Workload& workload, Allocate allocate, Release release) {
    constexpr uint64_t kTarget = 64ull << 20;
    std::mt19937_64 random(2024);
    std::vector<FreeList::Range> ranges;
    uint64_t used = 0;
    uint64_t most_used = 0;
    uint64_t furthest = 0;
    for (int i = 0; i < kDay; ++i) {
        const bool grow = used < kTarget ? random() % 8 != 0 : random() % 8 == 0;
        if (ranges.empty() || grow) {
            const uint64_t size = workload.size(random);
            ranges.push_back(allocate(size, workload.alignment(random)));
            used += size;
            furthest = std::max(furthest, ranges.back().offset + size);
            most_used = std::max(most_used, used);
        } else {
            const auto range = take_random(ranges, random);
            release(range);
            used -= range.size;
        }
    }
    return static_cast<double>(furthest) / static_cast<double>(most_used) - 1.0;
}

double fragmentation_of_list(const Workload& workload) {
    FreeList list(uint64_t{1} << 34);
    uint64_t most_steps = 0;
    uint64_t before = 0;
    const auto count_steps = [&] {
        const uint64_t steps = kp::FreeListTestAccess::steps(list);
        most_steps = std::max(most_steps, steps - before);
        before = steps;
    };
    count_steps();
    most_steps = 0;
    const double fragmentation = fragmentation_over_a_day(
        workload,
        [&](uint64_t size, uint64_t alignment) {
            const auto range = list.allocate(size, alignment);
            REQUIRE(range);
            count_steps();
            return *range;
        },
        [&](const FreeList::Range& range) {
            list.release(range.node);
            count_steps();
        });
    const std::string name = workload.name;
    MESSAGE(name << ": " << 100.0 * fragmentation << " % fragmentation, "
                 << static_cast<double>(before) / kDay << " steps an operation, at most " << most_steps);
    CHECK(most_steps <= kMostSteps);
    return fragmentation;
}

}  // namespace

TEST_CASE("free list: a day of mixed traffic stays below 15 % fragmentation") {
    const Workload workloads[] = {
        {"mixed sizes to 64 KiB, alignment 64", mixed_size, align_64},
        {"mixed sizes to 64 KiB, alignment 256", mixed_size, align_256},
        {"mixed sizes to 64 KiB, mixed alignments", mixed_size, mixed_alignment},
        {"exponential sizes, mean 8 KiB", exponential_size, align_64},
        {"arrays of 100,000 floats among small ones",
         [](std::mt19937_64& random) { return random() % 8 == 0 ? uint64_t{400000} : 1 + random() % 2048; },
         align_64},
    };
    for (const Workload& workload : workloads) CHECK(fragmentation_of_list(workload) < 0.15);
}

// Here no policy comes near 15 %: 700 ranges hold all bytes, and a hole for one of the few long ones is rare.
// The measure is then the exact best fit (first fit by address, and small ranges kept apart, end at 25 %).
// With 1 GiB of such ranges it is below 15 % again: memory/test_block_growth.cpp.
TEST_CASE("free list: where a few long ranges hold all bytes, it is as tight as an exact best fit") {
    const Workload workload{"sizes from 16 B to 1 MiB, evenly by power of two", spread_size, align_64};
    BestFit best(uint64_t{1} << 34);
    const double exact = fragmentation_over_a_day(
        workload,
        [&](uint64_t size, uint64_t alignment) {
            return FreeList::Range{best.allocate(size, alignment), size, 0};
        },
        [&](const FreeList::Range& range) { best.release(range.offset, range.size); });
    MESSAGE("exact best fit: " << 100.0 * exact << " % fragmentation");
    CHECK(1.0 + fragmentation_of_list(workload) < 1.05 * (1.0 + exact));
}

TEST_CASE("free list: an operation costs the same with 100 and with 100,000 live ranges") {
    struct Cost {
        double mean = 0;
        uint64_t most = 0;
    };
    const auto measure = [](size_t live) {
        std::mt19937_64 random(5);
        FreeList list(uint64_t{1} << 40);
        std::vector<FreeList::Range> ranges;
        while (ranges.size() < live)
            ranges.push_back(*list.allocate(mixed_size(random), mixed_alignment(random)));
        Cost cost;
        constexpr int kRounds = 100'000;
        const uint64_t start = kp::FreeListTestAccess::steps(list);
        for (int i = 0; i < kRounds; ++i) {
            uint64_t before = kp::FreeListTestAccess::steps(list);
            list.release(take_random(ranges, random).node);
            uint64_t after = kp::FreeListTestAccess::steps(list);
            cost.most = std::max(cost.most, after - before);
            before = after;
            ranges.push_back(*list.allocate(mixed_size(random), mixed_alignment(random)));
            after = kp::FreeListTestAccess::steps(list);
            cost.most = std::max(cost.most, after - before);
        }
        CHECK(list.count() == live);
        cost.mean = static_cast<double>(kp::FreeListTestAccess::steps(list) - start) / (2.0 * kRounds);
        for (const auto& range : ranges) list.release(range.node);
        CHECK(list.pieces().size() == 1);
        CHECK(list.largest_free() == list.size());
        return cost;
    };
    const Cost few = measure(100);
    const Cost many = measure(100'000);
    MESSAGE("steps an operation: " << few.mean << " with 100 live, " << many.mean << " with 100,000; at most "
                                   << few.most << " and " << many.most);
    CHECK(many.most <= kMostSteps);
    CHECK(many.mean < 1.5 * few.mean);
}

TEST_CASE(
    "free list: a full space with thousands of holes just too short is given up after a bounded search") {
    FreeList list(uint64_t{64} << 20);
    std::vector<FreeList::Range> ranges;
    while (const auto range = list.allocate(1024, 1)) ranges.push_back(*range);
    for (size_t i = 0; i < ranges.size(); i += 2) list.release(ranges[i].node);
    const uint64_t before = kp::FreeListTestAccess::steps(list);
    CHECK(!list.allocate(1025, 1));
    CHECK(!list.allocate(1024, 2048 * 4096));  // only the hole at 0 has it, and it is one of 32,768
    CHECK(kp::FreeListTestAccess::steps(list) - before <= 2 * kMostSteps);
    for (size_t i = 0; i < ranges.size() / 2; ++i)
        REQUIRE(list.allocate(1024, 1));  // while every hole still serves
    CHECK(list.largest_free() == 0);
}

TEST_CASE("free list: slots are reused, so bookkeeping does not grow with the number of operations") {
    FreeList list(1 << 20);
    std::set<uint32_t> nodes;
    for (int i = 0; i < 10'000; ++i) {
        const auto a = list.allocate(1000, 64);
        const auto b = list.allocate(3000, 256);
        REQUIRE(b);
        nodes.insert({a->node, b->node});
        list.release(a->node);
        list.release(b->node);
    }
    CHECK(nodes.size() < 16);
}
