// How much a pool of device memory asks the driver for at once. Pure: numbers only.
//
// The model. Each block is one call of the driver's, which takes 10 to 500 us and of which a device may allow no more than
// 4,096, so blocks have to be large; but what a block holds beyond what is live is lost to everybody else. So a block is an
// eighth of what the pool holds already: the last one, which may be nearly empty, then costs 12 % at most, and 16 GiB take
// some 300 calls. Below 32 MiB, where an eighth would be less, blocks are as large as huge pages of the system want; only the
// first is smaller, for the many scripts that need no other.
//
// Searching the newest block first empties the old, small ones over time, which are then given back. Measured over a day of
// random traffic in tests/native/memory/test_block_growth.cpp.
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

// Whether a request gets memory of its own: it would leave most of any block's rest useless.
constexpr bool stands_alone(uint64_t size, uint64_t largest) noexcept { return size > largest / 2; }

// The next block for a request of `size` that does not stand alone, where the pool's shared blocks hold `held` bytes.
constexpr uint64_t next_block(uint64_t size, uint64_t held, uint64_t largest) noexcept {
    uint64_t block = held == 0 ? first_block : std::max(huge_page_threshold, std::bit_floor(held / 8));
    while (block < size * 2) block *= 2;
    return std::min(block, largest);
}

}  // namespace kp
