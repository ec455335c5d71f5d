// Bytes of a resource: what a tensor, or a view of a part of one, names. Operations and bindings speak of ranges, so that a
// part is ordered, moved and bound without the rest. An image is always whole: texels do not follow byte ranges.
#pragma once

#include "resource/resource.hpp"

#include <memory>
#include <string>
#include <vector>

namespace kp {

struct ResourceRange {
    std::shared_ptr<Resource> resource;
    uint64_t offset = 0;
    uint64_t size = 0;

    ResourceRange() = default;
    ResourceRange(std::shared_ptr<Resource> whole) : resource(std::move(whole)), size(resource->nbytes()) {}
    ResourceRange(std::shared_ptr<Resource> part, uint64_t begin, uint64_t bytes)
        : resource(std::move(part)), offset(begin), size(bytes) {}

    [[nodiscard]] uint64_t end() const noexcept { return offset + size; }
    [[nodiscard]] bool whole() const noexcept { return offset == 0 && size == resource->nbytes(); }
    [[nodiscard]] bool overlaps(const ResourceRange& other) const noexcept {
        return resource == other.resource && size != 0 && other.size != 0 && offset < other.end() &&
               other.offset < end();
    }
    // "tensor 'weights'", or "tensor 'weights' (bytes 64 to 128)": how messages call it.
    [[nodiscard]] std::string label() const;

    friend bool operator==(const ResourceRange&, const ResourceRange&) = default;
};

// The union of ranges, as ranges of which none overlaps another.
[[nodiscard]] std::vector<ResourceRange> merged(std::vector<ResourceRange> ranges);

}  // namespace kp
