// A recording as it is built: the plan of its operations' uses, the barriers that order them, and the notes
// about it at each object that it uses.
//
// From the build on, the recording is listed among the users of its objects. Other threads may destroy such
// an object, change or map it at any moment: they take the graph mutex, mark each of its recordings stale (or
// hold it back), and wait until a submission in progress is made, so that they know its end. The driving
// thread looks at these marks between raising LastRun::Submitting and the submission, and takes no lock for
// that.
//
// The recording also knows, from its last run and its plan, what happened to device memory and host copies:
// an object asks it when someone wants to know (sync/freshness.hpp), and is told before the recording
// forgets.
#pragma once

#include "base/ranked.hpp"
#include "device/recording.hpp"
#include "record/operation.hpp"
#include "record/stream_plan.hpp"
#include "resource/object.hpp"
#include "run/last_run.hpp"
#include "run/queue_order.hpp"
#include "run/turn.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace kp {

class BuiltRecording final : public Recording {
public:
    BuiltRecording(const Object& stream, Queue& queue, const Turn& turn, const LastRun& run,
                   std::vector<std::shared_ptr<Object>> disjoint)
        : stream_(stream), turn_(turn), run_(run), order_(stream, queue, plan_, run, std::move(disjoint)) {}
    ~BuiltRecording() = default;

    [[nodiscard]] StreamPlan& plan() noexcept { return plan_; }
    [[nodiscard]] const StreamPlan& plan() const noexcept { return plan_; }
    [[nodiscard]] const BarrierPlan& barriers() const noexcept { return barriers_; }

    // Plans and registers, or returns the resources to bring to the device first. Operations that must be
    // made again first make plan().asks_remaking() true. Objects that the plan kept go to `outdated`, to be
    // freed without a lock.
    [[nodiscard]] std::vector<std::shared_ptr<Resource>> make(const std::vector<OperationPtr>& operations,
                                                              StreamPlan::Kept& outdated);
    // Leaves the objects: the operations go, and others will come.
    void leave();
    // Under the graph mutex.
    void unregister() noexcept;
    // Warns, once, if it sends host copies that the host's writes to device memory left behind.
    void warn_of_old_copies();

    [[nodiscard]] bool is_stale(std::memory_order order) const noexcept { return stale_.load(order); }
    // While LastRun::Submitting lasts.
    [[nodiscard]] bool fit_to_submit() const noexcept {
        return !is_stale(std::memory_order_seq_cst) && held_back_.load(std::memory_order_seq_cst) == 0;
    }
    // Throws if a mapping holds the recording back. Under the graph mutex.
    void check_mappings();
    // For work that will be held, which may be cancelled: it does not cover. True if the recording must be
    // built again for that. Under the graph mutex.
    [[nodiscard]] bool uncover() noexcept;
    void cover_again() noexcept { may_cover_ = true; }
    // Notes on the used objects what the last run did to them. Call it before the recording forgets the
    // objects or the run. Under the graph mutex.
    void note_effects() noexcept;

    // For other threads, through the objects.
    Point make_stale() noexcept override;
    Point hold_back() noexcept override;
    void let_go() noexcept override { held_back_.fetch_sub(1, std::memory_order_release); }
    [[nodiscard]] Point last_point() const noexcept override { return run_.end(); }
    [[nodiscard]] bool is_running() const noexcept override { return run_.is_running(); }
    [[nodiscard]] bool writes(uint32_t slot) const noexcept override { return plan_.objects()[slot].written; }
    [[nodiscard]] bool touches(uint32_t slot, const Part& part) const noexcept override {
        return plan_.touches(slot, part.begin, part.end, part.writers_only);
    }
    [[nodiscard]] bool covers(uint32_t slot) const noexcept override { return plan_.objects()[slot].covered; }
    void settle_covers() noexcept override;
    void add_last_run(uint32_t slot, uint64_t begin, uint64_t end,
                      FreshnessRecord& record) const noexcept override;
    void note_host_write(uint32_t slot, uint64_t begin, uint64_t end) noexcept override;
    [[nodiscard]] QueueOrder& order() noexcept override { return order_; }
    void come_after(Point point) override { order_.come_after(point); }
    // True if this thread is in the recording code of an operation, in a stream that overwrites the whole
    // resource before that operation.
    [[nodiscard]] static bool covered_by_caller(Resource& resource);

private:
    // Every Recording is of this class.
    [[nodiscard]] static BuiltRecording& of(Recording& recording) noexcept {
        return static_cast<BuiltRecording&>(recording);
    }
    [[nodiscard]] Device& device() const noexcept { return stream_.device(); }
    [[nodiscard]] Resource& resource(uint32_t slot) const noexcept {
        return static_cast<Resource&>(*plan_.objects()[slot].object);
    }
    [[nodiscard]] std::vector<std::shared_ptr<Resource>> absent();
    void enlist();

    const Object& stream_;
    const Turn& turn_;
    const LastRun& run_;
    StreamPlan plan_;
    BarrierPlan barriers_;
    QueueOrder order_;
    bool registered_ = false;             // the plan's objects list this recording among their users
    bool may_cover_ = true;               // see Recording::covers
    bool covers_ = false;                 // some of the plan's objects are covered; under the graph mutex
    bool warned_of_old_copies_ = false;   // under the graph mutex
    uint64_t built_after_ = 0;            // the run's number at the time of the build
    std::atomic<bool> stale_{false};      // an object was destroyed, or an operation changed
    std::atomic<uint32_t> held_back_{0};  // number of mappings of resources that the recording uses
};

}  // namespace kp
