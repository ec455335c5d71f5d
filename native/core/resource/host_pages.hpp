// Memory that several tensors may be over: memory of the process, which arrays have, and memory that other
// programs share.
//
// An array may be imported several times: whole, or in parts. A device need not see writes through one
// VkDeviceMemory in those through another, even if both are of the same pages and a barrier stands between
// (an NVIDIA H200 keeps the order of two fills through one import, not through two). So all tensors over the
// same bytes are over one import, the first, which contains the others. A range that overlaps a living import
// and is not contained in it is refused.
//
// A hazard does not ask through which tensor the bytes are used. So a use of such a tensor counts at the
// addresses of its bytes, as one of the HostPages that all tensors over the import share
// (Object::ordered_by).
#pragma once

#include "memory/allocator.hpp"
#include "resource/host_import.hpp"
#include "resource/object.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kp {

// The users and the mappings of these bytes, of all tensors over them.
class HostPages final : public Object {
public:
    explicit HostPages(std::shared_ptr<Device> device) : Object(std::move(device), ObjectKind::host_pages) {}

private:
    void release(std::vector<Point>) override {}
};

// Lives as long as the device may use the bytes.
struct SharedPages {
    uint64_t begin = 0;  // addresses
    uint64_t end = 0;
    std::shared_ptr<HostPages> order;
    std::shared_ptr<void> owner;  // of imported memory; declared first, so that it is freed after that memory
    Allocation memory;            // of imported memory
};

// The import that contains the range, or a new one, for a buffer that needs `needs`. Throws
// Error(failed_precondition) if the range overlaps living imports and none contains it, and what
// import_host() throws.
[[nodiscard]] std::shared_ptr<SharedPages> import_pages(const std::shared_ptr<Device>& device,
                                                        HostRange& range, const VkMemoryRequirements& needs);
// Of memory that other programs share, from `key` on: each tensor has an allocation of its own.
[[nodiscard]] std::shared_ptr<SharedPages> shared_pages(const std::shared_ptr<Device>& device, uint64_t key,
                                                        uint64_t size);
// Ends of the work that may still write these bytes through a tensor.
[[nodiscard]] std::vector<Point> writers_of_pages(Device& device, uint64_t begin, uint64_t end);

}  // namespace kp
