// Computes how much memory a pool requests from the driver at once. Pure: numbers only.
//
// Model. Each block is one driver call, which takes 10 to 500 us, and a device may allow only 4,096 of them,
// so blocks must be large. But the unused part of a block is lost to all other users. So a new block is an
// eighth of the pool's current size: the last block, which may be nearly empty, then costs at most 12 %, and
// 16 GiB take some 300 calls. Below 32 MiB, if an eighth would be less, blocks have the size from which the
// system uses huge pages; only the first is smaller, for the many scripts that need no other.
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

// The largest block on a heap of `heap` bytes, at most `wanted`: an eighth of the heap, so 32 MiB of 256 MiB.
constexpr uint64_t largest_block_on(uint64_t heap, uint64_t wanted) noexcept {
    return std::max(first_block, std::min(wanted, std::bit_floor(heap / 8)));
}

// True if a request gets its own memory, because it would make most of the rest of any block useless.
constexpr bool stands_alone(uint64_t size, uint64_t largest) noexcept { return size > largest / 2; }

// The next block for a request of `size` that does not stand alone, if the pool's shared blocks hold `held`
// bytes.
constexpr uint64_t next_block(uint64_t size, uint64_t held, uint64_t largest) noexcept {
    uint64_t block = held == 0 ? first_block : std::max(huge_page_threshold, std::bit_floor(held / 8));
    while (block < size * 2) block *= 2;
    return std::min(block, largest);
}

}  // namespace kp
