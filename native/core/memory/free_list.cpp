// Model. Pieces, free or live, tile the space [0, size). Each knows its neighbours by offset. Two free pieces
// never touch: release() merges with both neighbours at once.
//
// Free pieces are in lists by size class. Classes form rows (powers of two) of 64 columns (equal steps);
// sizes below 64 have a class each. One bit per class says if its list has a piece, and one bit per row if
// any of its classes has one. So the smallest class that can serve a request is two bit scans away, for any
// number of pieces.
//
// A class holds sizes that differ by up to 1/64, so a piece in the request's own class may be too short, and
// a long enough piece may have a bad offset for the alignment. Plain TLSF therefore starts one class higher
// and asks for size + alignment. That skips the very hole that the last tensor of the same size has left.
// find() first tries a few pieces of the own class, then of the next ones. Only after that does it take the
// size that cannot fail.
#include "memory/free_list.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "base/error.hpp"

namespace kp {

namespace {

// The number of pieces that allocate() may try: in the request's own class, in those above, and before it
// gives up. The first two are small because a miss there costs little space; the last is larger because a
// miss costs a whole block.
constexpr uint32_t kOwnClassTries = 4;
constexpr uint32_t kUpperClassTries = 4;
constexpr uint32_t kLastTries = 64;

// Bytes from `offset` to the next multiple of `alignment`. Rounding the offset itself up could overflow; this
// cannot.
constexpr uint64_t gap_before(uint64_t offset, uint64_t alignment) noexcept {
    return (~offset + 1) & (alignment - 1);
}

}  // namespace

// The class that includes `size`, numbered row by row, so that class + 1 holds the next longer sizes.
uint32_t FreeList::class_of(uint64_t size) noexcept {
    if (size < kColumns) return static_cast<uint32_t>(size);
    const auto power = static_cast<uint32_t>(std::bit_width(size)) - 1;
    const uint32_t row = power - kColumnBits + 1;
    const auto column = static_cast<uint32_t>(size >> (power - kColumnBits)) & (kColumns - 1);
    return row * kColumns + column;
}

// The lowest class in which every piece is at least `size` long.
uint32_t FreeList::class_all_fit(uint64_t size) noexcept {
    const uint32_t own = class_of(size);
    if (size < kColumns) return own;
    const auto power = static_cast<uint32_t>(std::bit_width(size)) - 1;
    const uint64_t below_step = (uint64_t{1} << (power - kColumnBits)) - 1;
    return own + ((size & below_step) != 0 ? 1 : 0);
}

// The first class from `from` on that has a free piece, or kNone.
uint32_t FreeList::next_class(uint32_t from) const noexcept {
    const uint32_t row = from / kColumns;
    if (row >= columns_used_.size()) return kNone;
    const uint64_t columns = columns_used_[row] & (~uint64_t{0} << (from % kColumns));
    if (columns != 0) return row * kColumns + static_cast<uint32_t>(std::countr_zero(columns));
    const uint64_t rows =
        rows_used_ & (~uint64_t{0} << (row + 1));  // at most 59 rows, so the shift is below 64
    if (rows == 0) return kNone;
    const auto upper = static_cast<uint32_t>(std::countr_zero(rows));
    return upper * kColumns + static_cast<uint32_t>(std::countr_zero(columns_used_[upper]));
}

FreeList::FreeList(uint64_t size) : size_(size) {
    if (size == 0) return;
    const uint32_t rows = class_of(size) / kColumns + 1;
    columns_used_.assign(rows, 0);
    heads_.assign(size_t{rows} * kColumns, kNone);
    nodes_.push_back({.offset = 0, .size = size});
    insert_free(0);
}

std::optional<FreeList::Range> FreeList::allocate(uint64_t size, uint64_t alignment) {
    if (size == 0) throw Error(ErrorKind::internal, "FreeList::allocate: size is 0; ask for at least 1 byte");
    if (!std::has_single_bit(alignment))
        throw Error(ErrorKind::internal,
                    "FreeList::allocate: alignment " + std::to_string(alignment) + " is not a power of two");
    if (size > size_ - used_) return std::nullopt;
    const uint32_t found = find(size, alignment);
    if (found == kNone) return std::nullopt;
    const uint32_t node = carve(found, size, alignment);
    used_ += size;
    ++count_;
    return Range{nodes_[node].offset, size, node};
}

uint32_t FreeList::find(uint64_t size, uint64_t alignment) const noexcept {
    const uint32_t own = class_of(size);
    const uint32_t upper = class_all_fit(size);
    uint32_t found = kNone;
    if (own != upper) found = probe(own, own, kOwnClassTries, size, alignment);
    if (found == kNone) found = probe(upper, kNone, kUpperClassTries, size, alignment);
    if (found != kNone) return found;

    uint32_t last = kNone;  // classes from here on need no search
    if (size <= UINT64_MAX - (alignment - 1)) {
        const uint32_t certain = class_all_fit(size + (alignment - 1));
        found = probe(certain, kNone, 1, size, alignment);
        if (found != kNone) return found;
        last = certain;
    }
    return probe(own, last, kLastTries, size, alignment);
}

// The first of at most `tries` pieces, in the classes `first` to `last`, that holds `size` bytes at
// `alignment`.
uint32_t FreeList::probe(uint32_t first, uint32_t last, uint32_t tries, uint64_t size,
                         uint64_t alignment) const noexcept {
    for (uint32_t c = next_class(first); c != kNone && c <= last; c = next_class(c + 1)) {
        for (uint32_t node = heads_[c]; node != kNone; node = nodes_[node].next_free) {
            if (tries-- == 0) return kNone;
            ++steps_;
            const Node& piece = nodes_[node];
            if (piece.size >= size && gap_before(piece.offset, alignment) <= piece.size - size) return node;
        }
    }
    return kNone;
}

// Makes a live range out of the free piece `node`; the parts before and after it stay free.
uint32_t FreeList::carve(uint32_t node, uint64_t size, uint64_t alignment) {
    reserve_slots(2);  // may throw, so before anything changes
    remove_free(node);
    const uint64_t gap = gap_before(nodes_[node].offset, alignment);
    uint32_t range = node;
    if (gap != 0) {
        // The gap keeps the slot and the range gets a new one, so that slot 0 stays the piece at offset 0.
        range = take_slot();
        Node& front = nodes_[node];
        nodes_[range] = {
            .offset = front.offset + gap, .size = front.size - gap, .before = node, .after = front.after};
        if (front.after != kNone) nodes_[front.after].before = range;
        front.after = range;
        front.size = gap;
        insert_free(node);
    }
    Node& live = nodes_[range];
    live.state = State::live;
    if (live.size > size) {
        const uint32_t rest = take_slot();
        nodes_[rest] = {
            .offset = live.offset + size, .size = live.size - size, .before = range, .after = live.after};
        if (live.after != kNone) nodes_[live.after].before = rest;
        live.after = rest;
        live.size = size;
        insert_free(rest);
    }
    return range;
}

void FreeList::release(uint32_t node) noexcept {
    if (node >= nodes_.size() || nodes_[node].state != State::live) return;
    used_ -= nodes_[node].size;
    --count_;
    const uint32_t after = nodes_[node].after;
    if (after != kNone && nodes_[after].state == State::free) {
        remove_free(after);
        absorb_after(node);
    }
    const uint32_t before = nodes_[node].before;
    if (before != kNone && nodes_[before].state == State::free) {
        remove_free(before);
        absorb_after(before);
        node = before;
    }
    insert_free(node);
}

// Extends `node` over the piece after it; that piece's slot becomes vacant.
void FreeList::absorb_after(uint32_t node) noexcept {
    ++steps_;
    Node& keep = nodes_[node];
    const uint32_t gone = keep.after;
    keep.size += nodes_[gone].size;
    keep.after = nodes_[gone].after;
    if (keep.after != kNone) nodes_[keep.after].before = node;
    nodes_[gone] = {.next_free = vacant_};
    vacant_ = gone;
    ++vacant_count_;
}

void FreeList::insert_free(uint32_t node) noexcept {
    ++steps_;
    Node& piece = nodes_[node];
    const uint32_t c = class_of(piece.size);
    piece.state = State::free;
    piece.previous_free = kNone;
    piece.next_free = heads_[c];
    if (heads_[c] != kNone) nodes_[heads_[c]].previous_free = node;
    heads_[c] = node;
    columns_used_[c / kColumns] |= uint64_t{1} << (c % kColumns);
    rows_used_ |= uint64_t{1} << (c / kColumns);
    if (piece.size >=
        largest_) {  // also if it is unknown: largest_ is then an upper bound of the remaining pieces
        largest_ = piece.size;
        largest_known_ = true;
    }
}

void FreeList::remove_free(uint32_t node) noexcept {
    ++steps_;
    const Node& piece = nodes_[node];
    const uint32_t c = class_of(piece.size);
    if (piece.next_free != kNone) nodes_[piece.next_free].previous_free = piece.previous_free;
    if (piece.previous_free != kNone) {
        nodes_[piece.previous_free].next_free = piece.next_free;
    } else {
        heads_[c] = piece.next_free;
        if (heads_[c] == kNone) {
            columns_used_[c / kColumns] &= ~(uint64_t{1} << (c % kColumns));
            if (columns_used_[c / kColumns] == 0) rows_used_ &= ~(uint64_t{1} << (c / kColumns));
        }
    }
    if (piece.size == largest_) largest_known_ = false;
}

// Reserves slots in advance, so that take_slot() cannot fail in the middle of a change.
void FreeList::reserve_slots(uint32_t wanted) {
    while (vacant_count_ < wanted) {
        nodes_.push_back({.next_free = vacant_});
        vacant_ = static_cast<uint32_t>(nodes_.size() - 1);
        ++vacant_count_;
    }
}

uint32_t FreeList::take_slot() noexcept {
    ++steps_;
    const uint32_t slot = vacant_;
    vacant_ = nodes_[slot].next_free;
    --vacant_count_;
    return slot;
}

uint64_t FreeList::size() const noexcept { return size_; }
uint64_t FreeList::used() const noexcept { return used_; }
uint32_t FreeList::count() const noexcept { return count_; }

uint64_t FreeList::largest_free() const noexcept {
    if (!largest_known_) {
        largest_ = 0;
        if (rows_used_ != 0) {
            const auto row = static_cast<uint32_t>(std::bit_width(rows_used_)) - 1;
            const auto column = static_cast<uint32_t>(std::bit_width(columns_used_[row])) - 1;
            for (uint32_t node = heads_[row * kColumns + column]; node != kNone;
                 node = nodes_[node].next_free)
                largest_ = std::max(largest_, nodes_[node].size);
        }
        largest_known_ = true;
    }
    return largest_;
}

std::vector<FreeList::Piece> FreeList::pieces() const {
    std::vector<Piece> all;
    if (nodes_.empty()) return all;
    for (uint32_t node = 0; node != kNone; node = nodes_[node].after)
        all.push_back({nodes_[node].offset, nodes_[node].size, nodes_[node].state == State::free});
    return all;
}

}  // namespace kp
