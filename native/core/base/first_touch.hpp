// Writes memory that was never touched before. This takes most of the time of making a large tensor.
//
// A CPU driver's memory is the system's own anonymous memory, which we request in huge pages. At the first
// touch of such a page, Linux zeroes it from the far end towards the touched address, so that this address is
// in the cache afterwards. If a copy touches a page at its start, the page is zeroed downwards, which takes
// three times as long as upwards (64 MiB: 6 ms against 2 ms). So each page is touched at its end before
// copying into it, and copied page by page, while it is still in the cache. On other memory this costs one
// store for each 2 MiB, and no copy is long enough for memcpy to bypass the caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kp {

// From this size on, memory is in huge pages if the system has them.
inline constexpr uint64_t huge_page_threshold = uint64_t{4} << 20;

// memcpy, or memmove if the two overlap, for memory that may be fresh.
void first_copy(std::byte* to, const void* from, uint64_t size) noexcept;

// Repeats `pattern` (not empty) over fresh memory, from its first byte on.
void first_fill(std::byte* to, std::span<const std::byte> pattern, uint64_t size) noexcept;

}  // namespace kp
