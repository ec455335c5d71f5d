#include "resource/memory_report.hpp"

#include "device/device.hpp"
#include "resource/resource.hpp"

#include <algorithm>

namespace kp {

std::string mebibytes(uint64_t bytes) {
    const uint64_t mebibyte = uint64_t{1} << 20;
    if (bytes < mebibyte / 10) return std::to_string(bytes) + " bytes";
    const uint64_t tenths = bytes / mebibyte * 10 + bytes % mebibyte * 10 / mebibyte;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " MiB";
}

std::vector<MemoryHolder> memory_holders(Device& device) {
    std::vector<MemoryHolder> holders;
    for (const auto& resource : device.resources())
        holders.push_back({resource->name(), resource->kind(), resource->held_bytes()});
    return holders;
}

std::string describe_largest(Device& device, size_t count) {
    auto holders = memory_holders(device);
    count = std::min(count, holders.size());
    std::partial_sort(holders.begin(), holders.begin() + static_cast<ptrdiff_t>(count), holders.end(),
                      [](const MemoryHolder& a, const MemoryHolder& b) { return a.bytes > b.bytes; });
    std::string text;
    for (size_t i = 0; i < count; ++i) {
        const auto& holder = holders[i];
        text += (i == 0 ? "" : ", ") + std::string(to_string(holder.kind)) +
                (holder.name.empty() ? " (unnamed) " : " '" + holder.name + "' ") + mebibytes(holder.bytes);
    }
    return text;
}

}  // namespace kp
