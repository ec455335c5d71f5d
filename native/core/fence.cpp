#include "fence.hpp"

#include "device.hpp"
#include "stream.hpp"

#include <algorithm>
#include <chrono>

namespace kp {

Fence::Fence(std::shared_ptr<Device> device, std::vector<Point> points,
             std::vector<std::weak_ptr<Resource>> written)
    : devices_{std::move(device)}, points_(std::move(points)), written_(std::move(written)) {}

std::shared_ptr<Fence> Fence::join(const std::vector<std::shared_ptr<Fence>>& fences) {
    auto joined =
        std::make_shared<Fence>(nullptr, std::vector<Point>{}, std::vector<std::weak_ptr<Resource>>{});
    joined->devices_.clear();
    for (const auto& fence : fences) {
        for (const auto& device : fence->devices_)
            if (std::find(joined->devices_.begin(), joined->devices_.end(), device) == joined->devices_.end())
                joined->devices_.push_back(device);
        for (const Point& point : fence->points_) merge_point(joined->points_, point);
        joined->written_.insert(joined->written_.end(), fence->written_.begin(), fence->written_.end());
    }
    return joined;
}

bool Fence::done() {
    for (const Point& point : points_)
        if (!point.queue->reached(point.value)) return false;
    settle();
    return true;
}

bool Fence::wait(uint64_t nanoseconds) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::nanoseconds(std::min<uint64_t>(nanoseconds, INT64_MAX / 2));
    for (const Point& point : points_) {
        const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now()).count();
        if (!point.queue->wait(point.value, left > 0 ? static_cast<uint64_t>(left) : 0)) return false;
    }
    settle();
    return true;
}

void Fence::settle() {
    for (const auto& each : written_)
        if (const auto resource = each.lock(); resource && resource->is_init()) resource->refresh();
    // What the work used is held until somebody looks.
    for (const auto& device : devices_) device->retired().collect();
}

std::shared_ptr<Fence> submit_once(const OperationPtr& operation) {
    const auto device = operation->device().shared_from_this();
    const auto stream = std::make_shared<Stream>(device, 0, 0);
    stream->record(operation);
    stream->submit();
    std::vector<std::weak_ptr<Resource>> written = stream->written_in_place();
    return std::make_shared<Fence>(device, std::vector<Point>{{&stream->queue(), stream->last_value()}},
                                   std::move(written));
}

}  // namespace kp
