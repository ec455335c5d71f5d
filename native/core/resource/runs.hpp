// The bytes of a strided part of a buffer: runs of one length at regular distances, on any number of axes. A
// column of a matrix is one axis of runs of one element. Pure.
#pragma once

#include "base/error.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace kp {

class Runs {
public:
    struct Axis {
        uint64_t count = 1;
        uint64_t stride = 0;  // bytes from one to the next
    };

    // `offset`: the first run's; `length`: bytes of each run; `axes`: the outermost first. Throws
    // Error(out_of_range) if the part has more bytes than fit 64 bits.
    Runs(uint64_t offset, uint64_t length, std::vector<Axis> axes)
        : offset_(offset), length_(length), axes_(std::move(axes)) {
        bytes_ = extent_ = length_;
        for (const Axis& axis : axes_) {
            bytes_ = times(bytes_, axis.count);
            if (axis.count > 1) extent_ = plus(extent_, times(axis.count - 1, axis.stride));
        }
        if (bytes_ == 0) extent_ = 0;
        (void)plus(offset_, extent_);
    }

    [[nodiscard]] uint64_t offset() const noexcept { return offset_; }
    // Bytes of one run.
    [[nodiscard]] uint64_t length() const noexcept { return length_; }
    // Bytes of all runs together.
    [[nodiscard]] uint64_t bytes() const noexcept { return bytes_; }
    // Bytes from the first run's begin to the last run's end.
    [[nodiscard]] uint64_t extent() const noexcept { return extent_; }

    // Whether the places of the runs grow as their packed places do, and no two overlap.
    [[nodiscard]] bool ascending() const noexcept {
        uint64_t inner = length_;
        for (size_t axis = axes_.size(); axis-- > 0;) {
            const auto& [count, stride] = axes_[axis];
            if (count == 0) return true;
            if (count > 1 && stride < inner) return false;
            inner += (count - 1) * stride;
        }
        return true;
    }
    // The number of packed bytes with places before `place`. For ascending runs.
    [[nodiscard]] uint64_t packed(uint64_t place) const noexcept {
        if (place <= offset_) return 0;
        if (place >= offset_ + extent_) return bytes_;
        uint64_t rest = place - offset_;
        uint64_t run = 0;
        for (const auto& [count, stride] : axes_) {
            const uint64_t at = count > 1 ? std::min(rest / stride, count - 1) : 0;
            run = run * count + at;
            rest -= at * stride;
        }
        return run * length_ + std::min(rest, length_);
    }

    // Calls row(place in the buffer, packed place, bytes of each, stride, count) for the pieces of runs among
    // `size` packed bytes from `begin`: `count` pieces with `stride` bytes from one place to the next.
    // Packed, all pieces follow each other, the last axis fastest.
    template <typename Row>
    void each_row(uint64_t begin, uint64_t size, const Row& row) const {
        if (size == 0) return;
        uint64_t rest = begin / length_;
        uint64_t within = begin % length_;
        uint64_t place = offset_;
        std::vector<uint64_t> at(axes_.size());
        for (size_t axis = axes_.size(); axis-- > 0;) {
            at[axis] = rest % axes_[axis].count;
            rest /= axes_[axis].count;
            place += at[axis] * axes_[axis].stride;
        }
        const uint64_t stride = axes_.empty() ? 0 : axes_.back().stride;
        for (uint64_t packed = begin, end = begin + size; packed < end;) {
            uint64_t bytes = length_ - within;
            uint64_t count = 1;
            if (within != 0 || end - packed < length_)
                bytes = std::min(bytes, end - packed);
            else if (!axes_.empty())
                count = std::min(axes_.back().count - at.back(), (end - packed) / length_);
            row(place + within, packed, bytes, stride, count);
            packed += bytes * count;
            within = 0;
            for (size_t axis = axes_.size(), steps = count; axis-- > 0; steps = 1) {
                place += steps * axes_[axis].stride;
                if ((at[axis] += steps) < axes_[axis].count) break;
                place -= at[axis] * axes_[axis].stride;
                at[axis] = 0;
            }
        }
    }

    // Calls piece(place in the buffer, packed place, size) for each of these pieces.
    template <typename Piece>
    void each(uint64_t begin, uint64_t size, const Piece& piece) const {
        each_row(begin, size,
                 [&](uint64_t place, uint64_t packed, uint64_t bytes, uint64_t stride, uint64_t count) {
                     for (uint64_t at = 0; at < count; ++at)
                         piece(place + at * stride, packed + at * bytes, bytes);
                 });
    }

private:
    static constexpr uint64_t most = std::numeric_limits<uint64_t>::max();
    static uint64_t times(uint64_t a, uint64_t b) {
        if (b != 0 && a > most / b) too_many();
        return a * b;
    }
    static uint64_t plus(uint64_t a, uint64_t b) {
        if (a > most - b) too_many();
        return a + b;
    }
    [[noreturn]] static void too_many() {
        throw Error(ErrorKind::out_of_range, "A part of a tensor has at most 2**64 bytes");
    }

    uint64_t offset_;
    uint64_t length_;
    uint64_t bytes_ = 0;
    uint64_t extent_ = 0;
    std::vector<Axis> axes_;
};

}  // namespace kp
