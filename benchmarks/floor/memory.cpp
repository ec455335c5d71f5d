#include "memory.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include <sys/mman.h>

namespace benchmark_floor {
namespace {

constexpr size_t huge_page = size_t{2} << 20;

void* make(size_t bytes, int content) {
    const size_t rounded = (bytes + huge_page - 1) / huge_page * huge_page;
    void* block = std::aligned_alloc(huge_page, rounded);
    if (block == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    madvise(block, rounded, MADV_HUGEPAGE);
#endif
    std::memset(block, content, rounded);
    return block;
}

}  // namespace

CopyPair::CopyPair(size_t bytes) : bytes_(bytes), from_(make(bytes, 1)), to_(make(bytes, 2)) {}

CopyPair::~CopyPair() {
    std::free(from_);
    std::free(to_);
}

void CopyPair::copy() const noexcept {
    std::memcpy(to_, from_, bytes_);
    // Nobody reads the copy: without this the compiler may leave it out.
    asm volatile("" : : "r"(to_) : "memory");
}

}  // namespace benchmark_floor
