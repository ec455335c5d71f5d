#include "run/fence.hpp"

#include "base/error.hpp"
#include "device/device.hpp"
#include "resource/make_object.hpp"
#include "run/stream.hpp"

#include <algorithm>
#include <chrono>

namespace kp {

Fence::Fence(std::shared_ptr<Device> device, std::vector<Point> points,
             std::vector<std::shared_ptr<TimelineOwner>> kept)
    : devices_{std::move(device)}, points_(std::move(points)), kept_(std::move(kept)) {}

std::shared_ptr<Fence> Fence::join(const std::vector<std::shared_ptr<Fence>>& fences) {
    const std::shared_ptr<Fence> joined(new Fence());
    const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    for (const auto& fence : fences) {
        for (const auto& device : fence->devices_)
            if (std::find(joined->devices_.begin(), joined->devices_.end(), device) == joined->devices_.end())
                joined->devices_.push_back(device);
        for (const Point& point : fence->points_) merge_point(joined->points_, point);
        append(joined->streams_, fence->streams_);
        append(joined->kept_, fence->kept_);
    }
    return joined;
}

std::shared_ptr<Fence> Fence::of(const std::vector<std::shared_ptr<Stream>>& streams) {
    const std::shared_ptr<Fence> fence(new Fence());
    for (const auto& stream : streams) {
        if (std::find(fence->devices_.begin(), fence->devices_.end(), stream->shared_device()) ==
            fence->devices_.end())
            fence->devices_.push_back(stream->shared_device());
        const Point last = stream->last_point();
        if (!last.timeline) continue;
        merge_point(fence->points_, last);
        fence->streams_.emplace_back(stream, last);
    }
    return fence;
}

bool Fence::done() {
    try {
        for (const Point& point : points_)
            if (!point.timeline->reached(point.value)) return false;
    } catch (const Error& error) {
        rethrow(error);
    }
    settle();
    return true;
}

void Fence::rethrow(const Error& error) const {
    // A stream that reports cancelled work is no longer running afterwards, as after eval_await().
    for (const auto& [each, end] : streams_) {
        const auto stream = each.lock();
        if (!stream || !end.timeline->failed(end.value)) continue;
        const Point last = stream->last_point();
        if (last.timeline != end.timeline || last.value != end.value) continue;
        try {
            (void)stream->poll();
        } catch (const Error&) {
            continue;  // the same error
        }
    }
    if (error.kind() == ErrorKind::device_lost) {
        for (const auto& [each, end] : streams_)
            if (const auto stream = each.lock()) stream->explain_loss();
        for (const auto& device : devices_)
            if (device->lost()) device->rethrow_explained(error);
    }
    throw;
}

bool Fence::wait(uint64_t nanoseconds) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::nanoseconds(std::min<uint64_t>(nanoseconds, INT64_MAX / 2));
    for (const Point& point : points_) {
        const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - Clock::now()).count();
        try {
            if (!point.timeline->wait(point.value, left > 0 ? static_cast<uint64_t>(left) : 0)) return false;
        } catch (const Error& error) {
            rethrow(error);
        }
    }
    settle();
    return true;
}

void Fence::settle() {
    for (const auto& [each, end] : streams_) {
        const auto stream = each.lock();
        if (!stream || !stream->is_running()) continue;
        const Point last = stream->last_point();
        if (last.timeline == end.timeline && last.value == end.value) (void)stream->poll();
    }
    // Work keeps its resources until a call collects them.
    for (const auto& device : devices_) device->retired().collect();
}

std::shared_ptr<Fence> submit_once(const OperationPtr& operation) {
    const auto device = operation->device().shared();
    const auto stream = make_object<Stream>(device, 0, 0);
    stream->record(operation);
    stream->submit();
    return std::make_shared<Fence>(device, std::vector<Point>{stream->last_point()});
}

}  // namespace kp
