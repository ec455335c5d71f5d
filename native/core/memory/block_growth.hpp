// Computes how much memory a pool requests from the driver at once. Pure: numbers only.
//
// Model. Each block is one driver call, which takes 10 to 500 us, and a device may allow only 4,096 of them,
// so blocks must be large. But the unused part of a block is lost to all other users. So a new block is an
// eighth of the pool's current size: the last block, which may be nearly empty, then costs at most 12 %, and
// 16 GiB take some 300 calls. Below 32 MiB, if an eighth would be less, blocks have the size from which the
// system uses huge pages; only the first is smaller, for the many scripts that need no other.
//
// A request that is large beside such a block would leave most of it useless to others of its size. Its
// block holds as many of them as fit in the usual size, and one at least: a lone tensor of 17 MiB takes
// 17 MiB. No block but the first is smaller than the size from which the system uses huge pages.
//
// Searching the newest block first empties the old, small ones over time; empty blocks are then given back.
// Measured over a day of random traffic in tests/native/memory/test_block_growth.cpp.
#pragma once

#include "base/first_touch.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace kp {

inline constexpr uint64_t first_block = uint64_t{1} << 20;
// The sizes of blocks for large requests are multiples of this, which many drivers use as their page.
inline constexpr uint64_t block_step = uint64_t{64} << 10;

// The largest block on a heap of `heap` bytes, at most `wanted`: an eighth of the heap, so 32 MiB of 256 MiB.
constexpr uint64_t largest_block_on(uint64_t heap, uint64_t wanted) noexcept {
    return std::max(first_block, std::min(wanted, std::bit_floor(heap / 8)));
}

// The largest block under a limit of `limit` bytes: a 64th of it. Programs come close to a limit as a rule,
// to a heap seldom, and what is free in pieces of blocks does not help large tensors then.
constexpr uint64_t largest_block_under(uint64_t limit, uint64_t wanted) noexcept {
    return std::max(block_step, std::min(wanted, std::bit_floor(limit / 64)));
}

// True if a request gets its own memory, because it would make most of the rest of any block useless.
constexpr bool stands_alone(uint64_t size, uint64_t largest) noexcept { return size > largest / 2; }

// The size of blocks for requests that are small beside it, but for the first block.
constexpr uint64_t usual_block(uint64_t held, uint64_t largest) noexcept {
    return std::min(largest, std::max(huge_page_threshold, std::bit_floor(held / 8)));
}

// The next block for a request of `size` that does not stand alone, if the pool's shared blocks hold `held`
// bytes.
constexpr uint64_t next_block(uint64_t size, uint64_t held, uint64_t largest) noexcept {
    const bool first = held == 0 && size <= first_block;
    const uint64_t usual = first ? std::min(largest, first_block) : usual_block(held, largest);
    if (size <= usual / 8) return usual;
    // A whole number of such requests, so that others of this size leave no rest.
    const uint64_t each = (size + block_step - 1) / block_step * block_step;
    const uint64_t least = std::min(usual, huge_page_threshold);
    uint64_t block = std::max<uint64_t>(1, usual / each) * each;
    if (held == 0)
        block = std::max(block, least);
    else
        while (block < least) block += each;
    return std::min(largest, block);
}

// The empty shared blocks of a pool, beside one that has become empty.
struct EmptyBlocks {
    uint64_t usual = 0;   // bytes of those of the usual size or below
    uint64_t larger = 0;  // bytes of those that large requests made
};

// True if a block of `size` that has become empty stays with the pool; else it goes back to the driver. A few
// stay, so that a loop that makes and drops the same tensors does not call the driver each time: one of the
// usual size or below, larger ones of half the largest block together, and never more than the largest block
// in all. A larger block takes the place of empty ones for which that leaves no room.
constexpr bool keeps_empty(uint64_t size, uint64_t usual, const EmptyBlocks& others,
                           uint64_t largest) noexcept {
    if (others.usual + others.larger == 0) return true;
    if (size + others.usual + others.larger > largest) return false;
    return size > usual ? size + others.larger <= largest / 2 : others.usual == 0;
}

}  // namespace kp
