// How large blocks are, and what they cost beyond what is live in them: the whole of the pure allocator, over
// a day.
#include "memory/block_growth.hpp"
#include "memory/free_list.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using kp::FreeList;
using Random = std::mt19937_64;

constexpr uint64_t MiB = uint64_t{1} << 20;
constexpr uint64_t kLargest = 64 * MiB;

// A pool of MemoryAllocator with a driver that never refuses: newest block first, one empty block kept.
class Pool {
public:
    struct Block {
        FreeList ranges;
        bool alone;
        Block(uint64_t size, bool own) : ranges(size), alone(own) {}
    };
    struct Range {
        Block* block;
        FreeList::Range at;
    };

    Range allocate(uint64_t size, uint64_t alignment) {
        const bool alone = kp::stands_alone(size, kLargest);
        uint64_t held = 0;
        for (auto it = blocks_.rbegin(); !alone && it != blocks_.rend(); ++it) {
            if ((*it)->alone) continue;
            held += (*it)->ranges.size();
            if (const auto at = (*it)->ranges.allocate(size, alignment)) return taken({it->get(), *at});
        }
        ++calls_;
        blocks_.push_back(
            std::make_unique<Block>(alone ? size : kp::next_block(size, held, kLargest), alone));
        reserved_ += blocks_.back()->ranges.size();
        const auto at = blocks_.back()->ranges.allocate(size, alignment);
        REQUIRE(at);
        return taken({blocks_.back().get(), *at});
    }

    void release(const Range& range) {
        Block& block = *range.block;
        block.ranges.release(range.at.node);
        used_ -= range.at.size;
        if (!block.ranges.empty()) return;
        const bool other_empty = std::any_of(blocks_.begin(), blocks_.end(), [&](const auto& other) {
            return other.get() != &block && other->ranges.empty();
        });
        if (!block.alone && !other_empty) return;
        reserved_ -= block.ranges.size();
        std::erase_if(blocks_, [&](const auto& other) { return other.get() == &block; });
    }

    [[nodiscard]] uint64_t used() const { return used_; }
    [[nodiscard]] uint64_t reserved() const { return reserved_; }
    [[nodiscard]] uint64_t calls() const { return calls_; }

private:
    Range taken(Range range) {
        used_ += range.at.size;
        return range;
    }

    std::vector<std::unique_ptr<Block>> blocks_;
    uint64_t used_ = 0;
    uint64_t reserved_ = 0;
    uint64_t calls_ = 0;  // of the driver
};

struct Traffic {
    const char* name;
    uint64_t live;  // bytes, around which allocations and releases balance
    uint64_t (*size)(Random&);
    double most;  // reserved bytes over live ones, less 1
};

uint64_t exponential(Random& random) {
    return 1 + static_cast<uint64_t>(std::exponential_distribution<double>(1.0 / 8192)(random));
}

// Mostly small parameters, arrays of any length, a few powers of two such as pictures.
uint64_t mixed(Random& random) {
    const uint64_t kind = random() % 100;
    if (kind < 60) return 1 + random() % 4096;
    if (kind < 90) return uint64_t{1} << (4 + random() % 13);
    return 4096 + random() % (60 * 1024);
}

uint64_t arrays(Random& random) { return random() % 8 == 0 ? uint64_t{400000} : 1 + random() % 2048; }

uint64_t spread(Random& random) {
    const uint64_t power = uint64_t{16} << (random() % 16);
    return power + random() % power;
}

constexpr int kDay = 1'000'000;  // operations: one every 86 ms for a day

}  // namespace

TEST_CASE("blocks: what the driver gives beyond what is live, over a day") {
    const Traffic traffics[] = {
        {"mixed sizes to 64 KiB, 64 MiB live", 64 * MiB, mixed, 0.15},
        {"mixed sizes to 64 KiB, 256 MiB live", 256 * MiB, mixed, 0.15},
        {"exponential sizes, mean 8 KiB, 64 MiB live", 64 * MiB, exponential, 0.15},
        {"arrays of 100,000 floats among small ones, 64 MiB live", 64 * MiB, arrays, 0.15},
        {"arrays of 100,000 floats among small ones, 256 MiB live", 256 * MiB, arrays, 0.15},
        {"16 B to 1 MiB, evenly by power of two, 64 MiB live", 64 * MiB, spread, 0.40},
        {"16 B to 1 MiB, evenly by power of two, 1 GiB live", 1024 * MiB, spread, 0.15},
    };
    for (const Traffic& traffic : traffics) {
        Pool pool;
        Random random(2024);
        std::vector<Pool::Range> live;
        double reserved = 0;
        double used = 0;
        uint64_t calls = 0;
        for (int i = 0; i < kDay; ++i) {
            const bool grow = pool.used() < traffic.live ? random() % 8 != 0 : random() % 8 == 0;
            if (live.empty() || grow) {
                live.push_back(pool.allocate(traffic.size(random), 256));
            } else {
                std::swap(live[random() % live.size()], live.back());
                pool.release(live.back());
                live.pop_back();
            }
            if (i == kDay / 2) calls = pool.calls();
            if (i < kDay / 2) continue;
            reserved += static_cast<double>(pool.reserved());
            used += static_cast<double>(pool.used());
        }
        const std::string name = traffic.name;
        const uint64_t later = pool.calls() - calls;
        MESSAGE(name << ": " << 100.0 * (reserved / used - 1.0) << " % beyond the live bytes, " << later
                     << " calls of the driver in the second half of the day");
        CHECK(reserved / used - 1.0 < traffic.most);
        CHECK(later < 200);
        for (const auto& range : live) pool.release(range);
        CHECK(pool.used() == 0);
        CHECK(pool.reserved() <= kLargest);  // one block, for the next one who comes
    }
}

TEST_CASE("blocks: sizes") {
    CHECK(kp::next_block(1000, 0, kLargest) == MiB);
    CHECK(kp::next_block(1000, MiB, kLargest) == 4 * MiB);
    CHECK(kp::next_block(1000, 63 * MiB, kLargest) == 4 * MiB);
    CHECK(kp::next_block(1000, 64 * MiB, kLargest) == 8 * MiB);
    CHECK(kp::next_block(1000, uint64_t{1} << 40, kLargest) == kLargest);
    CHECK(kp::next_block(3 * MiB, 0, kLargest) == 8 * MiB);
    CHECK(kp::next_block(32 * MiB, 0, kLargest) == kLargest);
    CHECK(kp::next_block(MiB, 8 * MiB, 2 * MiB) == 2 * MiB);
    CHECK(kp::largest_block_on(256 * MiB, kLargest) == 32 * MiB);
    CHECK(kp::largest_block_on(uint64_t{1} << 40, kLargest) == kLargest);
    CHECK(kp::largest_block_on(MiB, kLargest) == MiB);
    CHECK(!kp::stands_alone(32 * MiB, kLargest));
    CHECK(kp::stands_alone(32 * MiB + 1, kLargest));

    // No gibibyte takes many calls, and what a request needs always fits.
    uint64_t held = 0;
    int calls = 0;
    for (; held < 16384 * MiB; ++calls) held += kp::next_block(4096, held, kLargest);
    CHECK(calls < 320);
    for (uint64_t size = 1; size <= kLargest / 2; size = size * 3 / 2 + 1)
        CHECK(kp::next_block(size, 0, kLargest) >= size);
}
