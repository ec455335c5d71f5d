#include "resource/resource_range.hpp"

#include <algorithm>

namespace kp {

std::string ResourceRange::label() const {
    if (whole()) return resource->label();
    return resource->label() + " (bytes " + std::to_string(offset) + " to " + std::to_string(end()) + ")";
}

std::vector<ResourceRange> merged(std::vector<ResourceRange> ranges) {
    std::vector<ResourceRange> result;
    result.reserve(ranges.size());
    for (auto& range : ranges) {
        // What it overlaps melts into it, and with what that overlapped in turn: ranges of the result never overlap.
        for (auto other = result.begin(); other != result.end();) {
            if (!other->overlaps(range)) {
                ++other;
                continue;
            }
            const uint64_t end = std::max(range.end(), other->end());
            range.offset = std::min(range.offset, other->offset);
            range.size = end - range.offset;
            other = result.erase(other);
        }
        result.push_back(std::move(range));
    }
    return result;
}

}  // namespace kp
