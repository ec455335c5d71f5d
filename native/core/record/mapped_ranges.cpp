#include "record/mapped_ranges.hpp"

#include <algorithm>
#include <functional>

namespace kp {

void MappedRanges::settle() {
    const auto earlier = [](const VkMappedMemoryRange& a, const VkMappedMemoryRange& b) {
        return a.memory == b.memory ? a.offset < b.offset : std::less<>()(a.memory, b.memory);
    };
    // Memory is handed out in rising order, so most recordings have their ranges in order.
    if (!std::ranges::is_sorted(ranges_, earlier)) std::ranges::sort(ranges_, earlier);
    size_t count = 0;
    for (const VkMappedMemoryRange& range : ranges_) {
        if (count != 0) {
            VkMappedMemoryRange& last = ranges_[count - 1];
            if (last.memory == range.memory && range.offset <= last.offset + last.size) {
                last.size = std::max(last.offset + last.size, range.offset + range.size) - last.offset;
                continue;
            }
        }
        ranges_[count++] = range;
    }
    ranges_.resize(count);
}

}  // namespace kp
