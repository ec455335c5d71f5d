#include "run/queue_order.hpp"

#include "base/error.hpp"
#include "device/device.hpp"
#include "device/initial_work.hpp"
#include "resource/resource.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace kp {

QueueOrder::QueueOrder(const Object& stream, Queue& queue, StreamPlan& plan, const LastRun& run,
                       std::vector<std::shared_ptr<Object>> disjoint)
    : stream_(stream),
      queue_(queue),
      plan_(plan),
      run_(run),
      several_(device().queues().size() > 1),
      disjoint_(std::move(disjoint)) {
    for (const auto& object : disjoint_) {
        object->require_init("list as disjoint");
        if (&object->device() != &device())
            throw Error(ErrorKind::invalid_argument,
                        "disjoint: the " + object->label() + " belongs to another Manager than the sequence");
    }
}

// Memory of the process is disjoint if all tensors over it that this recording uses are.
void QueueOrder::note_disjoint() noexcept {
    if (disjoint_.empty()) return;
    auto& objects = plan_.objects();
    for (auto& planned : objects)
        planned.disjoint =
            planned.object->kind() == ObjectKind::host_pages ||
            std::ranges::any_of(disjoint_, [&](const auto& each) { return each.get() == planned.object; });
    for (const auto& planned : objects)
        if (planned.used && !planned.disjoint) objects[planned.object->ordered_by().slot_].disjoint = false;
}

template <typename Each>
void QueueOrder::each_user(const Object& object, const Each& each) {
    for (const auto& user : object.users_) {
        QueueOrder& other = user.recording->order();
        if (const PlannedObject& there = other.object(user.slot); !there.disjoint) each(other, there.written);
    }
}

template <typename Each>
void QueueOrder::each_built(const Each& each) const {
    for (Recording* recording : device().built_recordings()) {
        QueueOrder& other = recording->order();
        each(other, other.plan_.undeclared());
    }
}

// -- which crossings are contested, as recordings come and go -----------------------------------------------

void QueueOrder::add_contested() {
    crossed_.reserve(contested_ + size_t{1});
    ++contested_;
    crossed_changed_ = true;
    note();
}

void QueueOrder::drop_contested() noexcept {
    --contested_;
    crossed_changed_ = true;
    note();
}

template <typename Others>
void QueueOrder::begin_crossing(Crossing& crossing, bool writes, const Others& others) {
    const bool before = crossing.contested();
    crossing.add(queue_, writes);
    if (!crossing.contested()) return;
    add_contested();
    if (before) return;
    // Until now, the others did not note their ends.
    size_t count = 1;
    others([&](QueueOrder&, bool) { ++count; });
    crossing.reserve(2 * count);  // and for those that are about to note one: see note_end()
    others([&](QueueOrder& other, bool other_writes) {
        other.add_contested();
        // From here on it submits in order, unless it is submitting now.
        if (const Point end = other.run_.settled_end(); end.timeline) crossing.note(end, other_writes);
    });
}

template <typename Others>
void QueueOrder::end_crossing(Crossing& crossing, bool writes, const Others& others) noexcept {
    const bool before = crossing.contested();
    crossing.remove(queue_, writes);
    if (!before || crossing.contested()) return;
    crossing.forget();
    others([](QueueOrder& other, bool) { other.drop_contested(); });
}

void QueueOrder::enter(Recording& recording) {
    note_disjoint();
    if (!several_) return;
    auto& built = device().built_recordings();
    begin_crossing(device().undeclared_crossing(), plan_.undeclared(),
                   [&](const auto& each) { each_built(each); });
    link_ = static_cast<uint32_t>(built.size());
    built.push_back(&recording);
    std::vector<Point> points;
    device().add_undeclared(points, false);
    if (plan_.undeclared()) merge_point(points, device().initial_work().handed_over());
    for (const Point& point : points) inherit(point);
}

void QueueOrder::enter(const PlannedObject& planned) {
    if (!several_) return;
    Object& object = *planned.object;
    const auto others = [&](const auto& each) { each_user(object, each); };
    if (!object.crossing_ && !object.users_.empty() &&
        &object.users_.front().recording->order().queue_ != &queue_) {
        object.crossing_ = std::make_unique<Crossing>();
        others([&](const QueueOrder& other, bool writes) { object.crossing_->add(other.queue_, writes); });
    }
    if (object.crossing_ && !planned.disjoint) begin_crossing(*object.crossing_, planned.written, others);
    for (const Point& point : object.left_behind_) inherit(point);
    if (planned.used) inherit(static_cast<Resource&>(object).initial_point());
}

void QueueOrder::leave() noexcept {
    if (!several_) return;
    auto& built = device().built_recordings();
    built[link_] = built.back();
    built[link_]->order().link_ = link_;
    built.pop_back();
    end_crossing(device().undeclared_crossing(), plan_.undeclared(),
                 [&](const auto& each) { each_built(each); });
}

void QueueOrder::leave(const PlannedObject& planned) noexcept {
    Object& object = *planned.object;
    if (!object.crossing_) return;
    if (!planned.disjoint)
        end_crossing(*object.crossing_, planned.written, [&](const auto& each) { each_user(object, each); });
    if (object.users_.empty()) object.crossing_.reset();
}

void QueueOrder::forget_crossed() noexcept {
    crossed_.clear();
    crossed_changed_ = false;
    contested_ = 0;
    note();
}

// -- ends that the users of a thing leave to each other -----------------------------------------------------

const std::vector<QueueOrder::Crossed>& QueueOrder::crossed() noexcept {
    if (!std::exchange(crossed_changed_, false)) return crossed_;
    crossed_.clear();
    if (device().undeclared_crossing().contested())
        crossed_.push_back({&device().undeclared_crossing(), plan_.undeclared()});
    for (const auto& planned : plan_.objects())
        if (Crossing* crossing = planned.object->crossing_.get();
            crossing && crossing->contested() && !planned.disjoint)
            crossed_.push_back({crossing, planned.written});
    return crossed_;
}

std::vector<Point> QueueOrder::ends_on_other_queues(size_t submitted) {
    const std::lock_guard lock(device().graph_mutex());
    if (std::erase_if(inherited_, [](const Point& point) { return point.timeline->passed(point.value); }))
        note();
    std::vector<Point> points = inherited_;
    for (const auto& [crossing, writes] : crossed()) {
        crossing->collect(queue_, writes, points);
        crossing->reserve(submitted);
    }
    return points;
}

void QueueOrder::note_end() noexcept {
    const std::lock_guard lock(device().graph_mutex());
    const Point last = run_.end();
    for (const auto& [crossing, writes] : crossed()) crossing->note(last, writes);
}

void QueueOrder::merge_held(std::vector<Point>& waits, const std::vector<Point>& later) {
    const auto merge = [&](const Point& point) {
        if (!point.timeline || point.timeline->promised() >= point.value) return;  // cancelled, or submitted
        if (std::none_of(later.begin(), later.end(),
                         [&](const Point& p) { return p.timeline == point.timeline; }))
            merge_point(waits, point);
    };
    for (const Point& end : device().gate().ends(!plan_.undeclared())) merge(end);
    const std::lock_guard lock(device().graph_mutex());
    for (const auto& planned : plan_.objects()) {
        for (const Point& point : planned.object->left_behind_) merge(point);
        for (const auto& user : planned.object->users_) {
            const QueueOrder& other = user.recording->order();
            const PlannedObject& there = other.object(user.slot);
            if (&other != this && (other.plan_.undeclared() || ((planned.written || there.written) &&
                                                                !planned.disjoint && !there.disjoint)))
                merge(other.run_.end());
        }
    }
}

void QueueOrder::pass_on(Point last) {
    const auto leave_to = [&](QueueOrder& other, bool conflicts) {
        if (!conflicts || &other.queue_ == &queue_) return;
        merge_point(other.inherited_, last);
        other.note();
    };
    if (device().undeclared_crossing().contested())
        each_built(
            [&](QueueOrder& other, bool undeclared) { leave_to(other, undeclared || plan_.undeclared()); });
    for (const auto& planned : plan_.objects()) {
        Object& object = *planned.object;
        merge_point(object.left_behind_, last);
        if (!object.crossing_ || !object.crossing_->contested() || planned.disjoint) continue;
        each_user(object,
                  [&](QueueOrder& other, bool writes) { leave_to(other, planned.written || writes); });
    }
}

void QueueOrder::come_after(Point point) {
    if (!plan_.undeclared()) return;
    inherit(point);
    note();
}

}  // namespace kp
