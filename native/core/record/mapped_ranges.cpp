#include "record/mapped_ranges.hpp"

#include <algorithm>
#include <functional>

namespace kp {

void MappedRanges::settle() {
    std::ranges::sort(ranges_, [](const VkMappedMemoryRange& a, const VkMappedMemoryRange& b) {
        return a.memory == b.memory ? a.offset < b.offset : std::less<>()(a.memory, b.memory);
    });
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
