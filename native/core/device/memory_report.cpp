#include "device/memory_report.hpp"

#include "base/mebibytes.hpp"

#include <algorithm>

namespace kp {

std::vector<MemoryHolder> holdings(const std::vector<std::shared_ptr<Member>>& members) {
    std::vector<MemoryHolder> holders;
    holders.reserve(members.size());
    for (const auto& member : members)
        holders.push_back({member->name(), member->kind(), member->held_bytes()});
    return holders;
}

std::string describe_largest(std::vector<MemoryHolder> holders, size_t count) {
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
