#include "resource/object.hpp"

#include "base/error.hpp"
#include "device/device.hpp"

namespace kp {

Object::Object(std::shared_ptr<Device> device, ObjectKind kind) : Member(kind), device_(std::move(device)) {
    device_->require_open("make an object");  // make_object lists it
    device_->count(kind, 1);
}

Object::~Object() {
    device_->forget(*this);
    device_->count(kind(), -1);
}

void Object::set_name(const std::string& name) {
    const std::lock_guard lock(device_->names_mutex());
    name_ = name;
}

std::string Object::name() const {
    const std::lock_guard lock(device_->names_mutex());
    return name_;
}

void Object::name_handles(const std::function<void(const std::string&)>& each) {
    // destroy() passes through this lock before it gives a handle away.
    const std::lock_guard lock(device_->graph_mutex());
    if (is_init()) each(name());
}

std::string Object::label() const {
    const std::string given = name();
    return given.empty() ? std::string(to_string(kind()))
                         : std::string(to_string(kind())) + " '" + given + "'";
}

void Object::require_init(const char* action) const {
    if (is_init()) return;
    if (const std::string given_to = taker(); !given_to.empty())
        throw Error(ErrorKind::donated, std::string("Cannot ") + action + " the " + label() +
                                            (name().empty() ? detail() : "") + ": it was donated to " +
                                            given_to + ". Do not donate it, or keep a copy");
    const std::string why = device_->foreign()
                                ? "it belongs to the parent process, whose device this one cannot use"
                            : device_->is_open() ? "it was destroyed"
                                                 : "its Manager was destroyed";
    throw Error(ErrorKind::failed_precondition, std::string("Cannot ") + action + " the " + label() +
                                                    (name().empty() ? detail() : "") + ": " + why +
                                                    ". Make a new one");
}

namespace {

// True if new work on the objects of `recording` must wait for its end `end`. Cancelled work did not run,
// so it is not waited for. A reader is an exception: it gets the error, until a wait for that work has
// reported it, because the contents lack the effects of that work.
bool concerns(const Recording& recording, const Point& end, bool reads) {
    return end.timeline && ((reads && recording.is_running()) || !end.timeline->failed(end.value));
}

}  // namespace

std::vector<Point> Object::pending(bool writers_only) {
    const Point initial = initial_end();
    const std::lock_guard lock(device_->graph_mutex());
    const Object& by = ordered_by();
    std::vector<Point> points = by.left_behind_;
    if (initial.timeline) merge_point(points, initial);
    // No owner of this cancelled work is left to report its error to.
    std::erase_if(points, [](const Point& point) { return point.timeline->failed(point.value); });
    for (const auto& user : by.users_)
        if (!writers_only || user.recording->writes(user.slot))
            if (const Point point = user.recording->last_point();
                concerns(*user.recording, point, writers_only))
                merge_point(points, point);
    device_->add_undeclared(points, false);
    return points;
}

void Object::hold_back(const Held& held, std::vector<Point>& points) {
    for (const Point& point : left_behind_)
        if (!point.timeline->failed(point.value)) merge_point(points, point);
    for (const auto& user : users_)
        if (user.recording->touches(user.slot, held))
            if (const Point point = user.recording->hold_back(); concerns(*user.recording, point, true))
                merge_point(points, point);
    device_->add_undeclared(points, false);
}

void Object::let_go(const Held& held) noexcept {
    // Matches hold_back(): a recording that was built meanwhile does not touch these bytes; otherwise its
    // build would have failed.
    for (const auto& user : users_)
        if (user.recording->touches(user.slot, held)) user.recording->let_go();
}

void Object::settle_covers(bool outdate) noexcept {
    for (const auto& user : users_) {
        user.recording->settle_covers();
        if (!outdate || !user.recording->covers(user.slot)) continue;
        (void)user.recording->make_stale();  // it may be in the middle of its submission
        user.recording->settle_covers();
    }
}

void Object::add_last_runs(uint64_t begin, uint64_t end, FreshnessRecord& record) const {
    for (const auto& user : users_) user.recording->add_last_run(user.slot, begin, end, record);
}

void Object::tell_host_write(uint64_t begin, uint64_t end) const noexcept {
    for (const auto& user : users_) user.recording->note_host_write(user.slot, begin, end);
}

void Object::outdate_recordings() noexcept {
    for (const auto& user : users_) (void)user.recording->make_stale();
}

void Object::donate(const std::string& taker) {
    {
        const std::lock_guard lock(device_->names_mutex());
        taker_ = taker;
    }
    destroy();
}

std::string Object::taker() const {
    const std::lock_guard lock(device_->names_mutex());
    return taker_;
}

void Object::destroy() {
    std::vector<Point> points;
    {
        const std::lock_guard lock(device_->graph_mutex());
        if (!end_once()) return;
        points = left_behind_;
        for (const auto& user : users_)
            if (const Point point = user.recording->make_stale(); point.timeline) merge_point(points, point);
    }
    device_->add_undeclared(points, true);
    device_->forget(*this);
    release(std::move(points));
}

void Object::leave_behind(Point point) {
    const std::lock_guard lock(device_->graph_mutex());
    merge_point(left_behind_, point);
}

void Object::finalize() noexcept {
    if (!end_once()) return;
    try {
        // Destroyed streams may have left work in flight. Living recordings hold a reference to the object,
        // so there are none here.
        device_->add_undeclared(left_behind_, true);
        release(std::move(left_behind_));
    } catch (...) {
        // Out of host memory for the list of objects to free later: leak until the device ends.
        return;
    }
}

}  // namespace kp
