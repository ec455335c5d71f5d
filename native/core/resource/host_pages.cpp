#include "resource/host_pages.hpp"

#include "base/error.hpp"
#include "device/device.hpp"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

namespace kp {
namespace {

using Found = std::vector<std::shared_ptr<SharedPages>>;

// The living ones that overlap the range. Under the imports mutex; the caller may become the last owner of
// one.
Found overlapping(Device& device, uint64_t begin, uint64_t end) {
    Found found;
    std::erase_if(device.shared_pages(), [&](const std::weak_ptr<void>& each) {
        auto pages = std::static_pointer_cast<SharedPages>(each.lock());
        if (!pages) return true;
        if (begin < pages->end && pages->begin < end) found.push_back(std::move(pages));
        return false;
    });
    return found;
}

[[noreturn]] void refuse(const SharedPages& other, uint64_t begin, uint64_t end) {
    const uint64_t bytes = std::min(end, other.end) - std::max(begin, other.begin);
    throw Error(ErrorKind::failed_precondition,
                "The array cannot be imported: " + std::to_string(bytes) + " of its " +
                    std::to_string(end - begin) + " bytes are also those of a tensor over " +
                    std::to_string(other.end - other.begin) +
                    " bytes, which does not contain the others, and a device may confuse two imports of one "
                    "memory. Make the tensor over the whole array first and use parts of it, t[a:b]; or let "
                    "go of the other tensor and wait for its work; or copy the array (copy=\"always\")");
}

std::shared_ptr<SharedPages> made(const std::shared_ptr<Device>& device, uint64_t begin, uint64_t end) {
    auto pages = std::make_shared<SharedPages>();
    pages->begin = begin;
    pages->end = end;
    pages->order = std::make_shared<HostPages>(device);
    return pages;
}

}  // namespace

std::shared_ptr<SharedPages> import_pages(const std::shared_ptr<Device>& device, HostRange& range,
                                          const VkMemoryRequirements& needs) {
    auto begin = reinterpret_cast<uintptr_t>(range.data);
    uint64_t end = begin + check_needs(*device, range, needs);
    // All of an array of known extent is imported, so that tensors over other parts can share it.
    const uint64_t alignment = device->physical().host_import_alignment;
    const uint64_t first = (range.root_begin + alignment - 1) / alignment * alignment;
    const uint64_t last = range.root_end / alignment * alignment;
    if (first <= begin && end <= last && last - first <= device->memory().max_allocation()) {
        begin = first;
        end = last;
    }
    auto pages = made(device, begin, end);
    Found found;
    const std::lock_guard lock(device->imports_mutex());
    found = overlapping(*device, begin, end);
    for (const auto& each : found)
        if (each->begin <= begin && end <= each->end) return each;
    if (!found.empty()) refuse(*found.front(), begin, end);
    pages->owner = std::move(range.owner);
    pages->memory =
        import_host(*device, reinterpret_cast<std::byte*>(begin), end - begin, needs.memoryTypeBits);
    device->shared_pages().push_back(pages);
    return pages;
}

std::shared_ptr<SharedPages> shared_pages(const std::shared_ptr<Device>& device, uint64_t key,
                                          uint64_t size) {
    auto pages = made(device, key, key + size);
    Found found;
    const std::lock_guard lock(device->imports_mutex());
    found = overlapping(*device, key, key + size);
    if (!found.empty()) return found.front();
    device->shared_pages().push_back(pages);
    return pages;
}

std::vector<Point> writers_of_pages(Device& device, uint64_t begin, uint64_t end) {
    Found found;
    {
        const std::lock_guard lock(device.imports_mutex());
        found = overlapping(device, begin, end);
    }
    std::vector<Point> points;
    for (const auto& each : found)
        for (const Point& point : each->order->pending(true)) merge_point(points, point);
    return points;
}

}  // namespace kp
