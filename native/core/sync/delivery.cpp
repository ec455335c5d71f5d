#include "sync/delivery.hpp"

#include "base/error.hpp"
#include "device/device.hpp"
#include "sync/queue.hpp"

#include <algorithm>
#include <cstring>

namespace kp {

const VkMappedMemoryRange* find_overlap(std::span<const VkMappedMemoryRange> some,
                                        std::span<const VkMappedMemoryRange> others) noexcept {
    for (const auto& a : some)
        for (const auto& b : others)
            if (a.memory == b.memory && a.offset < b.offset + b.size && b.offset < a.offset + a.size)
                return &a;
    return nullptr;
}

void Deliveries::expect(Queue& queue, uint64_t value, const PreparedSubmit& submission) {
    Expected expected;
    expected.queue = &queue;
    expected.value = value;
    expected.deliveries = submission.deliveries;
    for (size_t i = 0; i < submission.signal_semaphores.size(); ++i)
        expected.ends.push_back({submission.signal_semaphores[i], submission.signal_values[i]});
    const std::lock_guard lock(mutex_);
    expected_.push_back(std::move(expected));
    count_.store(expected_.size(), std::memory_order_release);
}

void Deliveries::cancel(const Queue& queue, uint64_t value) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase_if(expected_, [&](const Expected& e) { return e.queue == &queue && e.value == value; });
    count_.store(expected_.size(), std::memory_order_release);
}

std::vector<Point> Deliveries::in_the_way(std::span<const VkMappedMemoryRange> ranges) {
    const std::lock_guard lock(mutex_);
    std::vector<Point> points;
    for (const Expected& each : expected_)
        for (const auto& delivery : each.deliveries)
            if (find_overlap(delivery->edges, ranges)) merge_point(points, {each.queue, each.value});
    return points;
}

void Deliveries::abandon() noexcept {
    const std::lock_guard lock(mutex_);
    expected_.clear();
    count_.store(0, std::memory_order_release);
}

VkResult Deliveries::has_arrived(const Device& device, const Expected& each, bool& arrived) {
    for (const Counter& end : each.ends) {
        auto seen = std::find_if(counters_.begin(), counters_.end(),
                                 [&](const Counter& c) { return c.semaphore == end.semaphore; });
        if (seen == counters_.end()) {
            Counter now{end.semaphore, 0};
            const VkResult result =
                device.vk().vkGetSemaphoreCounterValue(device.handle(), end.semaphore, &now.value);
            if (result != VK_SUCCESS) return result;
            seen = counters_.insert(counters_.end(), now);
        }
        if (seen->value >= end.value) {
            arrived = true;
            break;
        }
    }
    return VK_SUCCESS;
}

VkResult Deliveries::look(const Device& device, Counter known) {
    // What a submission came after had ended before it, and so shows its end to whoever asks from then on. A turn may have asked
    // before. So there is another one while a turn finds something new and an earlier submission is still missing.
    for (bool again = true; again;) {
        again = false;
        counters_.assign(1, known);
        bool missing = false;
        for (Expected& each : expected_) {
            if (each.arrived) continue;
            if (const VkResult result = has_arrived(device, each, each.arrived); result != VK_SUCCESS)
                return result;
            again = again || (each.arrived && missing);
            missing = missing || !each.arrived;
        }
    }
    return VK_SUCCESS;
}

void Deliveries::deliver(Device& device, const Delivery& delivery) {
    if (delivery.all_in_place) device.memory().invalidate_in_place();
    device.invalidate(delivery.invalidates, "what a sequence wrote");
    for (const auto& [to, from, size] : delivery.landings) std::memcpy(to, from, size);
}

void Deliveries::drop_delivered() noexcept {
    std::erase_if(expected_, [](const Expected& each) { return each.deliveries.empty(); });
    count_.store(expected_.size(), std::memory_order_release);
}

void Deliveries::receive(Device& device, const Timeline& timeline, uint64_t value) {
    VkResult result = VK_SUCCESS;
    {
        const std::lock_guard lock(mutex_);
        if (expected_.empty()) return;
        result = look(device, {timeline.semaphore(), value});
        if (result == VK_SUCCESS) {
            struct Drop {
                Deliveries& all;
                ~Drop() { all.drop_delivered(); }
            } const drop{*this};
            for (Expected& each : expected_) {
                if (!each.arrived) continue;
                for (const auto& delivery : each.deliveries) deliver(device, *delivery);
                each.deliveries.clear();
            }
        }
    }
    if (result == VK_ERROR_DEVICE_LOST) device.throw_lost("vkGetSemaphoreCounterValue", "a timeline");
    check_vk(result, "vkGetSemaphoreCounterValue", "a timeline");
}

}  // namespace kp
