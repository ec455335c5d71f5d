// A fence: points on queues' timelines that tell when submitted work is done. Immutable; holds nothing that the work uses.
#pragma once

#include "operation.hpp"
#include "queue.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace kp {

class Device;

class Fence {
public:
    // `written`: what the work writes and the host sees in place; brought to the host when the work is done.
    Fence(std::shared_ptr<Device> device, std::vector<Point> points,
          std::vector<std::weak_ptr<Resource>> written);
    // Done when all of them are.
    [[nodiscard]] static std::shared_ptr<Fence> join(const std::vector<std::shared_ptr<Fence>>& fences);

    // One driver call for each queue at most. Throws on a lost device.
    [[nodiscard]] bool done();
    // Waits up to `nanoseconds`; false on time-out. Throws on a lost device.
    [[nodiscard]] bool wait(uint64_t nanoseconds);

private:
    void settle();

    // Of each device, since points of several Managers can be joined.
    std::vector<std::shared_ptr<Device>> devices_;
    std::vector<Point> points_;
    std::vector<std::weak_ptr<Resource>> written_;
};

// Records one operation, submits it on the first queue and lets go of the recording: it is ordered after earlier work on what
// it uses and before later work, as any stream is.
[[nodiscard]] std::shared_ptr<Fence> submit_once(const OperationPtr& operation);

}  // namespace kp
