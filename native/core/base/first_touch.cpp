#include "base/first_touch.hpp"

#include <algorithm>
#include <cstring>

namespace kp {
namespace {

constexpr uint64_t huge_page = uint64_t{2} << 20;  // x86-64 and most of AArch64; elsewhere a part of a page

// Calls work(offset, size) for each huge page, after touching the last byte of it that belongs to us.
template <class Work>
void by_huge_page(std::byte* to, uint64_t size, Work&& work) noexcept {
    if (size < huge_page_threshold) {
        work(uint64_t{0}, size);
        return;
    }
    for (uint64_t done = 0; done < size;) {
        const uint64_t into_page = reinterpret_cast<uintptr_t>(to + done) % huge_page;
        const uint64_t piece = std::min(size - done, huge_page - into_page);
        // Volatile, or the compiler would drop a store that the next call overwrites.
        *static_cast<volatile std::byte*>(to + done + piece - 1) = std::byte{0};
        work(done, piece);
        done += piece;
    }
}

}  // namespace

void first_copy(std::byte* to, const void* from, uint64_t size) noexcept {
    const auto* source = static_cast<const std::byte*>(from);
    if (size == 0) return;  // either pointer may be null then
    // If they overlap, touching would change bytes that are not read yet: a caller may pass a view of this
    // memory.
    const auto begin = reinterpret_cast<uintptr_t>(to), other = reinterpret_cast<uintptr_t>(source);
    if (begin < other + size && other < begin + size) {
        std::memmove(to, from, size);
        return;
    }
    by_huge_page(to, size,
                 [&](uint64_t offset, uint64_t piece) { std::memcpy(to + offset, source + offset, piece); });
}

void first_fill(std::byte* to, std::span<const std::byte> pattern, uint64_t size) noexcept {
    const uint64_t period = pattern.size();
    if (period == 1) {
        by_huge_page(to, size, [&](uint64_t offset, uint64_t piece) {
            std::memset(to + offset, std::to_integer<int>(pattern[0]), piece);
        });
        return;
    }
    // A short pattern is copied from a buffer that holds it many times. Never from bytes already written: the
    // host may have to read that memory word by word across a bus.
    constexpr uint64_t most = 16 * 1024;
    std::byte repeated[most];
    const std::byte* source = pattern.data();
    uint64_t unit = period;
    if (period <= most / 2) {
        source = repeated;
        const uint64_t whole = std::min(most, std::max(size, period)) / period * period;
        std::memcpy(repeated, pattern.data(), period);
        while (unit < whole) {
            const uint64_t more = std::min(unit, whole - unit);
            std::memcpy(repeated + unit, repeated, more);
            unit += more;
        }
    }
    by_huge_page(to, size, [&](uint64_t offset, uint64_t piece) {
        for (uint64_t at = offset, end = offset + piece; at < end;) {
            const uint64_t phase = at % unit;
            const uint64_t length = std::min(unit - phase, end - at);
            std::memcpy(to + at, source + phase, length);
            at += length;
        }
    });
}

}  // namespace kp
