#include "first_touch.hpp"

#include <algorithm>
#include <cstring>

namespace kp {
namespace {

constexpr uint64_t huge_page = uint64_t{2} << 20;  // x86-64 and most of AArch64; elsewhere a piece of a page

// Calls work(offset, size) for each huge page, after its last byte that belongs to us was touched.
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
    // The touches would change what is still to be read: a caller may pass a view of this very memory.
    const auto begin = reinterpret_cast<uintptr_t>(to), other = reinterpret_cast<uintptr_t>(source);
    if (begin < other + size && other < begin + size) {
        std::memmove(to, from, size);
        return;
    }
    by_huge_page(to, size,
                 [&](uint64_t offset, uint64_t piece) { std::memcpy(to + offset, source + offset, piece); });
}

void first_zero(std::byte* to, uint64_t size) noexcept {
    by_huge_page(to, size, [&](uint64_t offset, uint64_t piece) { std::memset(to + offset, 0, piece); });
}

}  // namespace kp
