#include "record/host_edges.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace kp {

void HostEdges::begin(uint64_t atom) {
    atom_ = atom;
    slot_bytes_ = 0;
    ranges_.clear();
    slots_.clear();
    landings_.clear();
}

void HostEdges::download(uint32_t copy, uint64_t offset, uint64_t size, uint64_t length) {
    if (size != 0) ranges_.push_back({copy, offset, offset + size, length});
}

uint64_t HostEdges::slot_for(uint32_t copy, uint64_t atom) {
    // Ranges come in order, so if two of them share an atom, its slot is the newest.
    if (!slots_.empty() && slots_.back().copy == copy && slots_.back().atom == atom) return slots_.back().at;
    slots_.push_back({copy, atom, slot_bytes_, {}});
    slot_bytes_ += atom_;
    return slots_.back().at;
}

void HostEdges::settle() {
    const auto earlier = [](const Range& a, const Range& b) {
        return std::tie(a.copy, a.begin) < std::tie(b.copy, b.begin);
    };
    if (!std::ranges::is_sorted(ranges_, earlier)) std::ranges::sort(ranges_, earlier);
    size_t count = 0;
    for (const Range& range : ranges_) {
        if (count != 0 && ranges_[count - 1].copy == range.copy && range.begin <= ranges_[count - 1].end)
            ranges_[count - 1].end = std::max(ranges_[count - 1].end, range.end);
        else
            ranges_[count++] = range;
    }
    ranges_.resize(count);
    for (const auto& [copy, first, last, length] : ranges_) {
        const auto land = [&, copy = copy](uint64_t begin, uint64_t end, bool in_slot) {
            if (begin >= end) return;
            const uint64_t atom = begin / atom_ * atom_;
            const uint64_t slot = in_slot ? slot_for(copy, atom) + (begin - atom) : HostPiece::in_place;
            landings_.push_back({copy, {begin, end - begin, slot}});
        };
        // The atoms that the range begins or ends inside of.
        const uint64_t head = first % atom_ != 0 ? std::min(last, first / atom_ * atom_ + atom_) : first;
        const uint64_t tail =
            last % atom_ != 0 && last != length ? std::max(head, last / atom_ * atom_) : last;
        land(first, head, true);
        land(head, tail, false);
        land(tail, last, true);
    }
}

template <typename Each>
void HostEdges::divide(uint32_t copy, uint64_t offset, uint64_t size, const Each& each) const {
    const uint64_t end = offset + size;
    const auto after = std::lower_bound(
        slots_.begin(), slots_.end(), std::make_pair(copy, offset / atom_ * atom_),
        [](const Slot& slot, const auto& key) { return std::make_pair(slot.copy, slot.atom) < key; });
    uint64_t at = offset;
    for (auto slot = after; slot != slots_.end() && slot->copy == copy && slot->atom < end; ++slot) {
        if (at < slot->atom) each(at, slot->atom, nullptr);
        const uint64_t begin = std::max(at, slot->atom);
        at = std::min(end, slot->atom + atom_);
        each(begin, at, &*slot);
    }
    if (at < end) each(at, end, nullptr);
}

std::vector<HostPiece> HostEdges::downloaded(uint32_t copy, uint64_t offset, uint64_t size) {
    std::vector<HostPiece> pieces;
    divide(copy, offset, size, [&](uint64_t begin, uint64_t end, const Slot* slot) {
        pieces.push_back({begin, end - begin, slot ? slot->at + (begin - slot->atom) : HostPiece::in_place});
        if (slot) slots_[static_cast<size_t>(slot - slots_.data())].written.emplace_back(begin, end);
    });
    return pieces;
}

std::vector<HostPiece> HostEdges::uploaded(uint32_t copy, uint64_t offset, uint64_t size) const {
    std::vector<HostPiece> pieces;
    const auto add = [&](uint64_t begin, uint64_t end, uint64_t slot) {
        if (begin < end) pieces.push_back({begin, end - begin, slot});
    };
    divide(copy, offset, size, [&](uint64_t begin, uint64_t end, const Slot* slot) {
        if (!slot) return add(begin, end, HostPiece::in_place);
        // Split into runs of bytes that were, or were not, downloaded before.
        const auto written = [&](uint64_t byte) {
            return std::any_of(slot->written.begin(), slot->written.end(),
                               [&](const auto& w) { return w.first <= byte && byte < w.second; });
        };
        for (uint64_t at = begin, next = begin; at < end; at = next) {
            const bool there = written(at);
            while (next < end && written(next) == there) ++next;
            add(at, next, there ? slot->at + (at - slot->atom) : HostPiece::in_place);
        }
    });
    return pieces;
}

}  // namespace kp
