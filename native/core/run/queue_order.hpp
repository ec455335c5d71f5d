// The order of a recording's submissions among work of other queues (see sync/crossing.hpp).
//
// A built recording counts itself among the users of each crossing of its objects: there is one as soon as
// users of two queues have met there. It also takes part in the crossing of all memory that operations use
// without declaring it: such an operation may touch anything, so its recording is ordered with all others.
//
// While some of its crossings are contested, each submission waits for the ends noted there and notes its
// own. A recording that never met another queue checks one flag. Recordings that were destroyed while they
// ran leave their ends to those that must come after them.
//
// Guarded by the graph mutex, except for the flag.
#pragma once

#include "record/stream_plan.hpp"
#include "resource/object.hpp"
#include "run/last_run.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace kp {

class QueueOrder {
public:
    // `disjoint`: objects that this recording shares with work of other queues but uses different parts of.
    // No order is needed for them.
    QueueOrder(const Object& stream, Queue& queue, StreamPlan& plan, const LastRun& run,
               std::vector<std::shared_ptr<Object>> disjoint);
    QueueOrder(const QueueOrder&) = delete;
    QueueOrder& operator=(const QueueOrder&) = delete;

    // True if it uses contested things or has inherited ends.
    [[nodiscard]] bool any(std::memory_order order) const noexcept { return any_.load(order); }

    // While a recording that was just planned registers: first enter(), then enter(planned) before it is
    // among the object's users, then note().
    void enter(Recording& recording);
    void enter(const PlannedObject& planned);
    void note() noexcept { any_.store(contested_ != 0 || !inherited_.empty(), std::memory_order_seq_cst); }
    // While it leaves: first leave(), then leave(planned) when it is not among the object's users any more,
    // and forget_crossed() in the end.
    void leave() noexcept;
    void leave(const PlannedObject& planned) noexcept;
    void forget_crossed() noexcept;

    // Its operations go: others that come are ordered as those of a new recording.
    void forget_inherited() noexcept { inherited_.clear(); }
    // The stream ends while its work runs until `last`: leaves that end to others.
    void pass_on(Point last);
    [[nodiscard]] std::vector<std::shared_ptr<Object>> take_disjoint() noexcept {
        return std::move(disjoint_);
    }
    // If its uses are not declared, it runs after this point from now on.
    void come_after(Point point);

    // The next three take the graph mutex; call them under the order mutex. Before a submission: the ends
    // that it must wait for. `submitted`: the number of streams in the submission.
    [[nodiscard]] std::vector<Point> ends_on_other_queues(size_t submitted);
    // After it: its own end, for later ones.
    void note_end() noexcept;
    // Merges held work that must come before, except work that `later` would release.
    void merge_held(std::vector<Point>& waits, const std::vector<Point>& later);

private:
    [[nodiscard]] Device& device() const noexcept { return stream_.device(); }
    [[nodiscard]] const PlannedObject& object(uint32_t slot) const noexcept { return plan_.objects()[slot]; }
    void inherit(Point point) {
        if (point.timeline && point.timeline != &queue_) merge_point(inherited_, point);
    }
    void note_disjoint() noexcept;
    // Calls each(order, writes) with each recording that uses the object and needs an order there.
    template <typename Each>
    static void each_user(const Object& object, const Each& each);
    template <typename Each>
    void each_built(const Each& each) const;
    // `others` calls its argument with each other recording that uses the thing of the crossing, and with
    // whether that recording writes it.
    template <typename Others>
    void begin_crossing(Crossing& crossing, bool writes, const Others& others);
    template <typename Others>
    void end_crossing(Crossing& crossing, bool writes, const Others& others) noexcept;
    void add_contested();
    void drop_contested() noexcept;
    struct Crossed {
        Crossing* crossing = nullptr;
        bool writes = false;
    };
    [[nodiscard]] const std::vector<Crossed>& crossed() noexcept;

    const Object& stream_;
    Queue& queue_;
    StreamPlan& plan_;
    const LastRun& run_;
    const bool several_;  // the device has several queues
    std::vector<std::shared_ptr<Object>> disjoint_;
    std::vector<Crossed> crossed_;  // the contested things; has room for `contested_` entries
    uint32_t contested_ = 0;
    bool crossed_changed_ = false;  // crossed_ is out of date
    uint32_t link_ = 0;             // the index among the device's built recordings
    std::vector<Point> inherited_;  // ends of destroyed streams' work that may still run
    std::atomic<bool> any_{false};
};

}  // namespace kp
