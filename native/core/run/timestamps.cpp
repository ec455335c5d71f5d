#include "run/timestamps.hpp"

#include "base/error.hpp"
#include "device/device.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace kp {

Timestamps::Timestamps(const Object& stream, const Queue& queue, int64_t limit)
    : stream_(stream), device_(stream.device()), queue_(queue), limit_(limit) {
    if (queue.timestamp_bits() == 0)
        throw Error(ErrorKind::unimplemented,
                    "Queue family " + std::to_string(queue.family()) +
                        " of this device has no timestamps. Make the sequence without them");
    if (TimestampQueries::resets_on_host(device_, queue) && !device_.enabled().v12.hostQueryReset)
        throw Error(ErrorKind::unimplemented,
                    "Queue family " + std::to_string(queue.family()) +
                        " of this device only moves memory: its timestamps need the device feature "
                        "'hostQueryReset', which '" +
                        device_.physical().properties.deviceName +
                        "' does not have. Make the sequence without timestamps, or on a queue that computes");
}

void Timestamps::require_room(size_t count) const {
    if (limit_ > 0 && count >= static_cast<uint64_t>(limit_))
        throw Error(ErrorKind::out_of_range,
                    "The " + stream_.label() + " has room for the timestamps of " + std::to_string(limit_) +
                        " operations, and that many are recorded. Make it with a larger "
                        "total_timestamps, or with timestamps=True");
}

void Timestamps::prepare(std::vector<std::string> names) {
    timed_ = false;
    names_ = std::move(names);
    const auto count = static_cast<uint32_t>(names_.size()) + 1;
    if (queries_ && queries_->count() == count) return;
    queries_.reset();
    queries_.emplace(device_, queue_, count, stream_.label());
}

std::vector<uint64_t> Timestamps::ticks() const {
    std::vector<std::array<uint64_t, 2>> results;
    check_vk(queries_->read(results), "vkGetQueryPoolResults", stream_.label().c_str());
    std::vector<uint64_t> ticks(results.size());
    std::ranges::transform(results, ticks.begin(), [](const auto& each) { return each[0]; });
    return ticks;
}

size_t Timestamps::ended() const {
    std::vector<std::array<uint64_t, 2>> ticks;
    const VkResult result = queries_->read(ticks);
    if (result == VK_SUCCESS || result == VK_NOT_READY)
        for (size_t i = 0; i < names_.size(); ++i)
            if (!ticks[i + 1][1]) return i;
    return names_.size();
}

}  // namespace kp
