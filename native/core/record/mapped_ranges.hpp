// Collects ranges of mapped memory, to flush or invalidate all of them with one call.
//
// A recording may name the same few ranges in each of its operations, or very many ranges once. So ranges are
// only appended, and sorted and united once their number has doubled: n of them take n log n steps, and few
// distinct ones little memory.
#pragma once

#include "base/vulkan.hpp"

#include <cstddef>
#include <vector>

namespace kp {

class MappedRanges {
public:
    void clear() noexcept {
        ranges_.clear();
        limit_ = first_limit;
    }
    void add(const VkMappedMemoryRange& range) {
        if (ranges_.size() >= limit_) {
            settle();
            limit_ = ranges_.size() < first_limit / 2 ? first_limit : 2 * ranges_.size();
        }
        ranges_.push_back(range);
    }
    // Call it after the last add(): from then on, the ranges are in the order of their memory and offset, and
    // none touches another.
    void settle();
    [[nodiscard]] const std::vector<VkMappedMemoryRange>& ranges() const noexcept { return ranges_; }

private:
    static constexpr size_t first_limit = 64;
    std::vector<VkMappedMemoryRange> ranges_;
    size_t limit_ = first_limit;
};

}  // namespace kp
