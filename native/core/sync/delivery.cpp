#include "sync/delivery.hpp"

#include "adapter/context.hpp"
#include "base/error.hpp"
#include "memory/allocator.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

namespace kp {

const VkMappedMemoryRange* find_overlap(std::span<const VkMappedMemoryRange> some,
                                        std::span<const VkMappedMemoryRange> others) noexcept {
    for (const auto& a : some) {
        // The last of `others` that begins before the end of `a`.
        const auto after = std::ranges::partition_point(others, [&](const VkMappedMemoryRange& b) {
            return b.memory == a.memory ? b.offset < a.offset + a.size : std::less<>()(b.memory, a.memory);
        });
        if (after == others.begin()) continue;
        const VkMappedMemoryRange& b = *(after - 1);
        if (b.memory == a.memory && a.offset < b.offset + b.size) return &a;
    }
    return nullptr;
}

void Deliveries::expect(Point end, const std::vector<std::shared_ptr<const Delivery>>& deliveries,
                        const std::vector<VkSemaphore>& semaphores, const std::vector<uint64_t>& values) {
    Expected expected;
    expected.end = end;
    expected.deliveries = deliveries;
    for (size_t i = 0; i < semaphores.size(); ++i) expected.ends.push_back({semaphores[i], values[i]});
    const std::lock_guard lock(mutex_);
    expected_.push_back(std::move(expected));
    count_.store(expected_.size(), std::memory_order_release);
}

void Deliveries::cancel(Point end) noexcept {
    std::vector<std::shared_ptr<const Delivery>> dropped;  // freed after the lock
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(expected_, [&](const Expected& each) {
        return each.end.timeline == end.timeline && each.end.value == end.value;
    });
    if (found == expected_.end()) return;
    dropped.swap(found->deliveries);
    expected_.erase(found);
    count_.store(expected_.size(), std::memory_order_release);
}

std::vector<Point> Deliveries::in_the_way(std::span<const VkMappedMemoryRange> ranges) {
    const std::lock_guard lock(mutex_);
    std::vector<Point> points;
    for (const Expected& each : expected_)
        for (const auto& delivery : each.deliveries)
            if (find_overlap(delivery->edges, ranges)) merge_point(points, each.end);
    return points;
}

void Deliveries::abandon() noexcept {
    const std::lock_guard lock(mutex_);
    expected_.clear();
    count_.store(0, std::memory_order_release);
}

VkResult Deliveries::has_arrived(const Expected& each, bool& arrived) {
    for (const Counter& end : each.ends) {
        auto seen = std::find_if(counters_.begin(), counters_.end(),
                                 [&](const Counter& c) { return c.semaphore == end.semaphore; });
        if (seen == counters_.end()) {
            Counter now{end.semaphore, 0};
            const VkResult result =
                context_.vk().vkGetSemaphoreCounterValue(context_.handle(), end.semaphore, &now.value);
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

VkResult Deliveries::look(Counter known) {
    // Work that a submission came after ended before it, and a query from then on shows that end. This turn
    // may have queried it earlier. So look again if a turn found a new end while an earlier submission is
    // still missing.
    for (bool again = true; again;) {
        again = false;
        counters_.assign(1, known);
        bool missing = false;
        for (Expected& each : expected_) {
            if (each.arrived) continue;
            if (const VkResult result = has_arrived(each, each.arrived); result != VK_SUCCESS) return result;
            again = again || (each.arrived && missing);
            missing = missing || !each.arrived;
        }
    }
    return VK_SUCCESS;
}

void Deliveries::deliver(const Delivery& delivery) {
    if (delivery.all_in_place) memory_.invalidate_in_place();
    context_.invalidate(delivery.invalidates, "what a sequence wrote");
    for (const auto& [to, from, size] : delivery.landings) std::memcpy(to, from, size);
}

void Deliveries::drop_delivered() noexcept {
    std::erase_if(expected_, [](const Expected& each) { return each.deliveries.empty(); });
    count_.store(expected_.size(), std::memory_order_release);
}

void Deliveries::receive(VkSemaphore semaphore, uint64_t value) {
    VkResult result = VK_SUCCESS;
    {
        const std::lock_guard lock(mutex_);
        if (expected_.empty()) return;
        result = look({semaphore, value});
        if (result == VK_SUCCESS) {
            struct Drop {
                Deliveries& all;
                ~Drop() { all.drop_delivered(); }
            } const drop{*this};
            for (Expected& each : expected_) {
                if (!each.arrived) continue;
                for (const auto& delivery : each.deliveries) deliver(*delivery);
                each.deliveries.clear();
            }
        }
    }
    if (result == VK_ERROR_DEVICE_LOST) context_.throw_lost("vkGetSemaphoreCounterValue", "a timeline");
    check_vk(result, "vkGetSemaphoreCounterValue", "a timeline");
}

}  // namespace kp
