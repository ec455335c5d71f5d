// Writing memory that nobody has touched yet, which is where making a large tensor spends its time.
//
// A CPU driver's memory is the system's own anonymous memory, and we ask for it in huge pages. Linux zeroes such a page at
// its first touch from the far end towards the address touched, so that the caller finds that address in the cache. Touched
// at its start, as a copy does, a page is zeroed downwards, which takes three times as long as upwards (64 MiB: 6 ms against
// 2 ms). So touch each page at its end before copying into it; and copy page by page, while it is still in the cache. On
// other memory it costs one store for each 2 MiB, and that no copy is long enough for memcpy to go past the caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kp {

// From this size on memory is in huge pages where the system has them.
inline constexpr uint64_t huge_page_threshold = uint64_t{4} << 20;

// memcpy, or memmove where the two overlap, for memory that may be fresh.
void first_copy(std::byte* to, const void* from, uint64_t size) noexcept;

// Repeats `pattern` (not empty) over fresh memory, from its first byte on.
void first_fill(std::byte* to, std::span<const std::byte> pattern, uint64_t size) noexcept;

}  // namespace kp
