// What all tensors over the same memory of the process share: the users and the mappings of these bytes.
//
// An array may be imported several times: whole, in parts, in parts that overlap. Each import is a tensor
// with a VkDeviceMemory and a lifetime of its own, but a hazard does not ask through which the bytes are
// used. So a use of such a tensor counts at the addresses of its bytes, as one of the HostPages that all
// imports share which overlap, directly or by way of others (Object::ordered_by). Two imports without common
// bytes are ordered like two tensors.
#pragma once

#include "resource/object.hpp"

#include <cstdint>
#include <memory>

namespace kp {

class HostPages final : public Object {
public:
    // For an import of the bytes from `begin` to `end` (addresses): the pages of the living imports that
    // overlap it. Those of several become one; recordings that use them are built again.
    [[nodiscard]] static std::shared_ptr<HostPages> over(const std::shared_ptr<Device>& device,
                                                         uint64_t begin, uint64_t end);
    // Ends of the work that may still write these bytes through a tensor.
    [[nodiscard]] static std::vector<Point> writers(Device& device, uint64_t begin, uint64_t end);

    // These pages, or those that they have become part of. Under the graph mutex.
    [[nodiscard]] HostPages& joined() noexcept;
    [[nodiscard]] Object& ordered_by() noexcept override { return joined(); }

    explicit HostPages(std::shared_ptr<Device> device) : Object(std::move(device), ObjectKind::host_pages) {}

private:
    [[nodiscard]] bool overlaps(uint64_t begin, uint64_t end) const noexcept {
        return begin_ < end && begin < end_;
    }
    void take_in(HostPages& other);
    void release(std::vector<Point>) override {}

    // Guarded by the graph mutex.
    uint64_t begin_ = 0;
    uint64_t end_ = 0;
    std::shared_ptr<HostPages> part_of_;
};

}  // namespace kp
