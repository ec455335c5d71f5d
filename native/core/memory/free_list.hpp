// Pure offset suballocator over [0, size): no device handle, and no memory except its bookkeeping.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace kp {

// Two-level segregated fit (Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems",
// ECRTS 2004): allocate and release are O(1) in the number of live ranges. 64-bit offsets. Not thread-safe,
// const members included.
//
// Sizes and offsets are exact to the byte: there is no rounding, and the gap before an aligned range is a
// normal free piece. allocate() tries a bounded number of pieces. So in a space that is nearly full, with
// more than that many pieces of almost the requested size, it may miss one that would just have fitted. It
// never misses a piece that is longer by the alignment and 1/64.
class FreeList {
public:
    struct Range {
        uint64_t offset = 0;
        uint64_t size = 0;
        uint32_t node = UINT32_MAX;  // handle for release()
    };

    explicit FreeList(uint64_t size);

    // `size` must be at least 1 and `alignment` a power of two, or it throws. nullopt if no free range fits.
    [[nodiscard]] std::optional<Range> allocate(uint64_t size, uint64_t alignment);
    // Ignores a handle that is not live, so that a second release cannot damage the list.
    void release(uint32_t node) noexcept;

    [[nodiscard]] uint64_t size() const noexcept;
    [[nodiscard]] uint64_t used() const noexcept;  // bytes in live ranges (alignment padding counted as free)
    [[nodiscard]] uint64_t largest_free() const noexcept;  // exact
    [[nodiscard]] uint32_t count() const noexcept;         // live ranges
    [[nodiscard]] bool empty() const noexcept { return count() == 0; }
    // For tests: all ranges in order of offset, free or live. Checks nothing.
    struct Piece {
        uint64_t offset, size;
        bool free;
    };
    [[nodiscard]] std::vector<Piece> pieces() const;

private:
    friend struct FreeListTestAccess;  // reads steps_

    static constexpr uint32_t kNone = UINT32_MAX;
    static constexpr uint32_t kColumnBits = 6;  // 64 classes per power of two: one machine word, 1.6 % apart
    static constexpr uint32_t kColumns = 1u << kColumnBits;

    enum class State : uint8_t { vacant, free, live };

    // A piece of the space, or a vacant slot. Slots never move, so a slot's index is the handle of a live
    // range.
    struct Node {
        uint64_t offset = 0;
        uint64_t size = 0;
        uint32_t before = kNone;  // neighbours by offset
        uint32_t after = kNone;
        uint32_t previous_free = kNone;  // neighbours in the size class's list; free pieces only
        uint32_t next_free = kNone;      // also links the vacant slots
        State state = State::vacant;
    };

    [[nodiscard]] static uint32_t class_of(uint64_t size) noexcept;
    [[nodiscard]] static uint32_t class_all_fit(uint64_t size) noexcept;
    [[nodiscard]] uint32_t next_class(uint32_t from) const noexcept;

    [[nodiscard]] uint32_t find(uint64_t size, uint64_t alignment) const noexcept;
    [[nodiscard]] uint32_t probe(uint32_t first, uint32_t last, uint32_t tries, uint64_t size,
                                 uint64_t alignment) const noexcept;
    [[nodiscard]] uint32_t carve(uint32_t node, uint64_t size, uint64_t alignment);

    void insert_free(uint32_t node) noexcept;
    void remove_free(uint32_t node) noexcept;
    void absorb_after(uint32_t node) noexcept;
    [[nodiscard]] uint32_t take_slot() noexcept;
    void reserve_slots(uint32_t wanted);

    uint64_t size_ = 0;
    uint64_t used_ = 0;
    uint32_t count_ = 0;
    std::vector<Node> nodes_;  // nodes_[0] is always the piece at offset 0
    uint32_t vacant_ = kNone;  // head of the stack of vacant slots
    uint32_t vacant_count_ = 0;

    uint64_t rows_used_ = 0;              // bit r: row r has a class with a free piece
    std::vector<uint64_t> columns_used_;  // per row, bit c: class (r, c) has a free piece
    std::vector<uint32_t> heads_;         // per class, the first free piece

    // The longest free piece, if known. Searching for it walks only one class, and only on request.
    mutable uint64_t largest_ = 0;
    mutable bool largest_known_ = true;
    mutable uint64_t steps_ = 0;  // pieces visited or relinked so far; tests count them instead of time
};

}  // namespace kp
