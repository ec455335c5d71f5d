// A fence: points on timelines that tell when submitted work is done. Immutable; holds nothing that the work uses.
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
    // `kept`: the owners of timelines that the points are on, where not the device's own.
    Fence(std::shared_ptr<Device> device, std::vector<Point> points,
          std::vector<std::shared_ptr<TimelineOwner>> kept = {});
    // Done when all of them are.
    [[nodiscard]] static std::shared_ptr<Fence> join(const std::vector<std::shared_ptr<Fence>>& fences);
    // The end of a stream's last submission.
    [[nodiscard]] static std::shared_ptr<Fence> of(const std::vector<std::shared_ptr<Stream>>& streams);

    // One driver call for each timeline at most. Throws on a lost device, and what made the work fail.
    [[nodiscard]] bool done();
    // Waits up to `nanoseconds`; false on time-out. Throws as done() does.
    [[nodiscard]] bool wait(uint64_t nanoseconds);

    [[nodiscard]] const std::vector<std::shared_ptr<Device>>& devices() const noexcept { return devices_; }
    [[nodiscard]] const std::vector<Point>& points() const noexcept { return points_; }
    [[nodiscard]] const std::vector<std::shared_ptr<TimelineOwner>>& kept() const noexcept { return kept_; }

private:
    Fence() = default;
    void settle();
    [[noreturn]] void rethrow(const Error& error) const;

    // Of each device, since points of several Managers can be joined.
    std::vector<std::shared_ptr<Device>> devices_;
    std::vector<Point> points_;
    // The streams that were submitted, with their ends: collected when the work is done.
    std::vector<std::pair<std::weak_ptr<Stream>, Point>> streams_;
    std::vector<std::shared_ptr<TimelineOwner>> kept_;
};

// Records one operation, submits it on the first queue and lets go of the recording: it is ordered after earlier work on what
// it uses and before later work, as any stream is.
[[nodiscard]] std::shared_ptr<Fence> submit_once(const OperationPtr& operation);

}  // namespace kp
