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

// A pool of MemoryAllocator with a driver that never refuses: newest block first, few empty blocks kept.
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
        uint64_t held = 0;
        for (const auto& each : blocks_)
            if (!each->alone) held += each->ranges.size();
        const uint64_t size = block.ranges.size();
        const uint64_t usual = kp::usual_block(held, kLargest);
        const auto others = [&] {
            kp::EmptyBlocks bytes;
            for (const auto& each : blocks_)
                if (each.get() != &block && !each->alone && each->ranges.empty())
                    (each->ranges.size() > usual ? bytes.larger : bytes.usual) += each->ranges.size();
            return bytes;
        };
        while (!block.alone && !kp::keeps_empty(size, usual, others(), kLargest)) {
            const auto before = std::find_if(blocks_.begin(), blocks_.end(), [&](const auto& each) {
                return size > usual && each.get() != &block && !each->alone && each->ranges.empty();
            });
            if (before == blocks_.end()) break;
            reserved_ -= (*before)->ranges.size();
            blocks_.erase(before);
        }
        if (!block.alone && kp::keeps_empty(size, usual, others(), kLargest)) return;
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
    double most;           // reserved bytes over live ones, less 1
    uint64_t calls = 200;  // of the driver at most, in the second half of the day
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

uint64_t large(Random& random) { return MiB + random() % (31 * MiB); }

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
        {"1 to 32 MiB, 256 MiB live", 256 * MiB, large, 0.45, kDay / 10},
        {"1 to 32 MiB, 4 GiB live", 4096 * MiB, large, 0.35, kDay / 50},
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
        CHECK(later < traffic.calls);
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
    CHECK(kp::next_block(MiB / 8, 0, kLargest) == MiB);
    CHECK(kp::next_block(700'000, 0, kLargest) == MiB);
    // Large requests: what they need, a whole number of them, huge pages.
    CHECK(kp::next_block(17 * MiB, 0, kLargest) == 17 * MiB);
    CHECK(kp::next_block(17 * MiB - 1, 0, kLargest) == 17 * MiB);
    CHECK(kp::next_block(9 * MiB, 3 * MiB, kLargest) == 9 * MiB);
    CHECK(kp::next_block(17 * MiB, 1024 * MiB, kLargest) == 51 * MiB);
    CHECK(kp::next_block(5 * MiB, 128 * MiB, kLargest) == 15 * MiB);
    CHECK(kp::next_block(3 * MiB, 0, kLargest) == 4 * MiB);
    CHECK(kp::next_block(3 * MiB / 2, 0, kLargest) == 4 * MiB);
    CHECK(kp::next_block(32 * MiB, 0, kLargest) == 32 * MiB);
    CHECK(kp::next_block(MiB, 8 * MiB, 2 * MiB) == 2 * MiB);
    CHECK(kp::largest_block_on(256 * MiB, kLargest) == 32 * MiB);
    CHECK(kp::largest_block_on(uint64_t{1} << 40, kLargest) == kLargest);
    CHECK(kp::largest_block_on(MiB, kLargest) == MiB);
    CHECK(kp::largest_block_under(600 * MiB, kLargest) == 8 * MiB);
    CHECK(kp::largest_block_under(16 * MiB, kLargest) == MiB / 4);
    CHECK(kp::largest_block_under(MiB, kLargest) == MiB / 16);
    CHECK(kp::largest_block_under(uint64_t{1} << 40, kLargest) == kLargest);
    CHECK(!kp::stands_alone(32 * MiB, kLargest));
    CHECK(kp::stands_alone(32 * MiB + 1, kLargest));

    // No gibibyte takes many calls, and what a request needs always fits.
    uint64_t held = 0;
    int calls = 0;
    for (; held < 16384 * MiB; ++calls) held += kp::next_block(4096, held, kLargest);
    CHECK(calls < 320);
    for (uint64_t largest = MiB; largest <= kLargest; largest *= 2)
        for (uint64_t size = 1; size <= largest / 2; size = size * 3 / 2 + 1)
            for (uint64_t before = 0; before <= 1024 * MiB; before = before * 2 + MiB) {
                const uint64_t block = kp::next_block(size, before, largest);
                CHECK(block >= size);
                CHECK(block <= largest);
            }
}

TEST_CASE("blocks: equal large tensors leave little unused, and take few calls of the driver") {
    for (uint64_t size = MiB; size <= 32 * MiB; size += MiB / 2 + 4096) {
        Pool pool;
        std::vector<Pool::Range> live;
        double most = 0;
        while (pool.used() < 4096 * MiB) {
            live.push_back(pool.allocate(size, 256));
            if (pool.used() > 64 * MiB)
                most =
                    std::max(most, static_cast<double>(pool.reserved()) / static_cast<double>(pool.used()));
        }
        CAPTURE(size);
        CHECK(most < 1.36);
        CHECK(pool.reserved() < pool.used() + pool.used() / 12);
        CHECK(pool.calls() < 320);
        CHECK(pool.calls() <= live.size());
        // A lone one: within the size from which the system uses huge pages, and the step of sizes.
        Pool lone;
        (void)lone.allocate(size, 256);
        CHECK(lone.reserved() <= std::max(4 * MiB, size + MiB / 16));
    }
    // A loop over temporaries of several sizes calls the driver only in its first round.
    Pool pool;
    uint64_t first = 0;
    for (int round = 0; round < 100; ++round) {
        std::vector<Pool::Range> live;
        for (const uint64_t size : {17 * MiB, 9 * MiB, 2 * MiB, MiB / 2})
            live.push_back(pool.allocate(size, 256));
        for (const auto& range : live) pool.release(range);
        if (round == 0) first = pool.calls();
    }
    CHECK(pool.calls() == first);
    // Nor does a loop over one of another size, whatever became empty before.
    for (const uint64_t size : {24 * MiB, 30 * MiB, 5 * MiB, 32 * MiB}) {
        pool.release(pool.allocate(size, 256));
        first = pool.calls();
        for (int round = 0; round < 10; ++round) pool.release(pool.allocate(size, 256));
        CHECK(pool.calls() == first);
        CHECK(pool.reserved() <= kLargest);
    }
}
