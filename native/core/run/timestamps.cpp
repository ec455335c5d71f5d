#include "run/timestamps.hpp"

#include "base/error.hpp"
#include "device/device.hpp"

#include <array>
#include <utility>

namespace kp {

Timestamps::Timestamps(const Object& stream, const Queue& queue, int64_t limit)
    : stream_(stream),
      device_(stream.device()),
      limit_(limit),
      // Queues that only move memory may write timestamps but cannot record the reset of their queries.
      resets_on_host_((device_.physical().families[queue.family()].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) {
    if (queue.timestamp_bits() == 0)
        throw Error(ErrorKind::unimplemented,
                    "Queue family " + std::to_string(queue.family()) +
                        " of this device has no timestamps. Make the sequence without them");
    if (resets_on_host_ && !device_.enabled().v12.hostQueryReset)
        throw Error(ErrorKind::unimplemented,
                    "Queue family " + std::to_string(queue.family()) +
                        " of this device only moves memory: its timestamps need the device feature "
                        "'hostQueryReset', which '" +
                        device_.physical().properties.deviceName +
                        "' does not have. Make the sequence without timestamps, or on a queue that computes");
}

Timestamps::~Timestamps() { device_.vk().vkDestroyQueryPool(device_.handle(), queries_, nullptr); }

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
    count_ = static_cast<uint32_t>(names_.size()) + 1;
    if (count_ <= capacity_) return;
    capacity_ = 0;
    device_.vk().vkDestroyQueryPool(device_.handle(), std::exchange(queries_, nullptr), nullptr);
    VkQueryPoolCreateInfo create{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    create.queryType = VK_QUERY_TYPE_TIMESTAMP;
    create.queryCount = count_;
    check_vk(device_.vk().vkCreateQueryPool(device_.handle(), &create, nullptr, &queries_),
             "vkCreateQueryPool", stream_.label().c_str());
    capacity_ = count_;
}

void Timestamps::begin(VkCommandBuffer commands) const {
    if (!resets_on_host_) device_.vk().vkCmdResetQueryPool(commands, queries_, 0, count_);
}

void Timestamps::write(VkCommandBuffer commands, uint32_t index) const {
    device_.vk().vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, index);
}

void Timestamps::reset_on_host() const {
    if (resets_on_host_) device_.vk().vkResetQueryPool(device_.handle(), queries_, 0, count_);
}

std::vector<uint64_t> Timestamps::ticks() const {
    std::vector<uint64_t> ticks(count_);
    check_vk(device_.vk().vkGetQueryPoolResults(device_.handle(), queries_, 0, count_,
                                                ticks.size() * sizeof(uint64_t), ticks.data(),
                                                sizeof(uint64_t), VK_QUERY_RESULT_64_BIT),
             "vkGetQueryPoolResults", stream_.label().c_str());
    return ticks;
}

size_t Timestamps::ended() const {
    std::vector<std::array<uint64_t, 2>> ticks(count_);
    const VkResult result = device_.vk().vkGetQueryPoolResults(
        device_.handle(), queries_, 0, count_, ticks.size() * sizeof(ticks[0]), ticks.data(),
        sizeof(ticks[0]), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT);
    if (result == VK_SUCCESS || result == VK_NOT_READY)
        for (size_t i = 0; i < names_.size(); ++i)
            if (!ticks[i + 1][1]) return i;
    return names_.size();
}

}  // namespace kp
