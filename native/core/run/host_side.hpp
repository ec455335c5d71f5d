// A built recording's exchange with the host through memory that is not coherent: the ranges to flush before
// each submission, and the results that each run brings (sync/delivery.hpp).
//
// Bytes move as whole atoms (nonCoherentAtomSize). So a recording that uploads or fills an atom comes after
// all work that still writes to it: it waits for work in flight, and is refused after held work.
#pragma once

#include "record/stream_plan.hpp"
#include "resource/object.hpp"
#include "sync/delivery.hpp"

#include <memory>
#include <span>
#include <vector>

namespace kp {

class HostSide {
public:
    HostSide(const Object& stream, const StreamPlan& plan) noexcept : stream_(stream), plan_(plan) {}

    // Call it when the plan is made. Returns what each run brings.
    [[nodiscard]] std::vector<std::shared_ptr<const Delivery>> prepare();
    [[nodiscard]] bool needs_flush() const noexcept { return needs_flush_; }
    void flush() const;
    // Waits for downloads in flight that will still write atoms which this recording uploads or fills.
    void await_edges() const;
    // Throws if the recording uploads or fills one of these atoms: other work will write them, and cannot
    // be waited for.
    void require_clear_of(std::span<const VkMappedMemoryRange> edges) const;

private:
    [[nodiscard]] Device& device() const noexcept { return stream_.device(); }

    const Object& stream_;
    const StreamPlan& plan_;
    bool needs_flush_ = false;
};

}  // namespace kp
