// Handles bytes of host copies that share an atom with bytes that a recording does not write. A pure
// function of the ranges.
//
// The host and the device must not write into one atom (nonCoherentAtomSize bytes) of memory that is cached
// and not coherent at the same time: their caches hold whole atoms, and the last write-back undoes the
// other side's bytes. A recording that downloads a part of a host copy leaves the rest of it to the host,
// which may write there while the recording runs. So if downloads do not fill an atom, their bytes in it go
// into a *slot*, an atom in a buffer of the recording's own, and the CPU copies those bytes to their place
// once the recording is done. The device never writes the atoms at a part's edges.
//
// Later uploads in the same recording read such bytes from the slot. Later recordings wait until the bytes
// have landed (Deliveries::in_the_way).
#pragma once

#include <cstdint>
#include <vector>

namespace kp {

// Adjacent bytes of a host copy, in the copy or in a slot.
struct HostPiece {
    static constexpr uint64_t in_place = UINT64_MAX;
    uint64_t offset = 0;  // in the copy
    uint64_t size = 0;
    uint64_t slot = in_place;  // offset in the slots
};

class HostEdges {
public:
    // Starts over. `atom`: a power of two.
    void begin(uint64_t atom);
    // Adds a download of bytes of the copy number `copy`, which has `length` bytes. No other copy shares
    // the atom that holds its last byte.
    void download(uint32_t copy, uint64_t offset, uint64_t size, uint64_t length);
    // Call it after all downloads, before the methods below.
    void settle();

    // True if no byte needs a slot.
    [[nodiscard]] bool empty() const noexcept { return slot_bytes_ == 0; }
    [[nodiscard]] uint64_t slot_bytes() const noexcept { return slot_bytes_; }

    // Call these while recording, operation by operation: the places to which a download writes its bytes,
    // and from which an upload reads them.
    [[nodiscard]] std::vector<HostPiece> downloaded(uint32_t copy, uint64_t offset, uint64_t size);
    [[nodiscard]] std::vector<HostPiece> uploaded(uint32_t copy, uint64_t offset, uint64_t size) const;

    struct Landing {
        uint32_t copy = 0;
        HostPiece piece;
    };
    // The device's writes to the copies: in place, whole atoms (or up to the copy's end); otherwise the
    // bytes of a slot.
    [[nodiscard]] const std::vector<Landing>& landings() const noexcept { return landings_; }

private:
    struct Range {
        uint32_t copy = 0;
        uint64_t begin = 0;
        uint64_t end = 0;
        uint64_t length = 0;
    };
    struct Slot {
        uint32_t copy = 0;
        uint64_t atom = 0;                                   // its first byte in the copy
        uint64_t at = 0;                                     // in the slots
        std::vector<std::pair<uint64_t, uint64_t>> written;  // bytes of the copy, so far
    };
    uint64_t slot_for(uint32_t copy, uint64_t atom);
    // Calls `each(begin, end, slot or null)` for the parts of a range that lie in the copy or in one slot.
    template <typename Each>
    void divide(uint32_t copy, uint64_t offset, uint64_t size, const Each& each) const;

    uint64_t atom_ = 1;
    uint64_t slot_bytes_ = 0;
    std::vector<Range> ranges_;
    std::vector<Slot> slots_;  // by copy and atom
    std::vector<Landing> landings_;
};

}  // namespace kp
