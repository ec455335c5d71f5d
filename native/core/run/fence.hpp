// A fence: points on timelines that tell when submitted work is done. Immutable. It holds no resources of
// the work.
#pragma once

#include "base/error.hpp"
#include "record/operation.hpp"
#include "sync/timeline.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kp {

class Device;
class Stream;

class Fence {
public:
    // `kept`: the owners of those timelines of the points that do not belong to the device.
    Fence(std::shared_ptr<Device> device, std::vector<Point> points,
          std::vector<std::shared_ptr<TimelineOwner>> kept = {});
    // Done when all the fences are done.
    [[nodiscard]] static std::shared_ptr<Fence> join(const std::vector<std::shared_ptr<Fence>>& fences);
    // The end of a stream's last submission.
    [[nodiscard]] static std::shared_ptr<Fence> of(const std::vector<std::shared_ptr<Stream>>& streams);

    // Makes at most one driver call for each timeline. Throws if the device is lost, and rethrows the error
    // that made the work fail.
    [[nodiscard]] bool done();
    // Waits up to `nanoseconds`; returns false on time-out. Throws as done() does.
    [[nodiscard]] bool wait(uint64_t nanoseconds);

    [[nodiscard]] const std::vector<std::shared_ptr<Device>>& devices() const noexcept { return devices_; }
    [[nodiscard]] const std::vector<Point>& points() const noexcept { return points_; }
    [[nodiscard]] const std::vector<std::shared_ptr<TimelineOwner>>& kept() const noexcept { return kept_; }

private:
    Fence() = default;
    void settle();
    [[noreturn]] void rethrow(const Error& error) const;

    // Several devices, because points of several Managers can be joined.
    std::vector<std::shared_ptr<Device>> devices_;
    std::vector<Point> points_;
    // The submitted streams with their ends. They are collected when the work is done.
    std::vector<std::pair<std::weak_ptr<Stream>, Point>> streams_;
    std::vector<std::shared_ptr<TimelineOwner>> kept_;
};

// Records one operation, submits it on the first queue and drops the recording. As with any stream, it runs
// after earlier work on the resources that it uses and before later work.
[[nodiscard]] std::shared_ptr<Fence> submit_once(const OperationPtr& operation);

}  // namespace kp
