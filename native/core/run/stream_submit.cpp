// How a recorded stream gets to its queue, and back.

#include "base/error.hpp"
#include "device/device.hpp"
#include "resource/resource.hpp"
#include "run/stream.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <thread>

namespace kp {
namespace {

// How often a recording is built anew for what others change meanwhile.
constexpr int most_attempts = 16;

bool promised(const std::vector<Point>& points) {
    return std::all_of(points.begin(), points.end(),
                       [](const Point& point) { return point.timeline->promised() >= point.value; });
}

std::string listed(const std::vector<std::string>& names) {
    constexpr size_t most = 8;
    std::string list;
    for (size_t i = 0; i < names.size() && i < most; ++i) list += (i ? ", " : "") + names[i];
    if (names.size() > most) list += " and " + std::to_string(names.size() - most) + " more";
    return list;
}

}  // namespace

// Between the look at what others change and the new last point. make_stale() waits while it lasts, which is one driver call.
class Stream::Submitting {
public:
    explicit Submitting(Stream& stream) : flag_(stream.submitting_) {
        flag_.store(true, std::memory_order_seq_cst);
    }
    Submitting(const Submitting&) = delete;
    Submitting& operator=(const Submitting&) = delete;
    ~Submitting() { flag_.store(false, std::memory_order_release); }

private:
    std::atomic<bool>& flag_;
};

Point Stream::last_point() const noexcept { return point_of(last_.load(std::memory_order_acquire)); }

Point Stream::point_of(uint64_t last) const noexcept {
    if (last == 0) return {};
    if (last & own_bit) return {own_.timeline, last & ~own_bit};
    return {queue_, last};
}

bool Stream::is_working() noexcept {
    if (!is_running()) return false;
    const uint64_t number = last_.load(std::memory_order_acquire);
    const Point last = point_of(number);
    if (!last.timeline || last.timeline->failed(last.value)) return true;
    return !((number & own_bit) ? last.timeline->passed(last.value)
                                : last.timeline->known_reached(last.value));
}

void Stream::require_not_running() {
    if (is_running() && (is_working() || !poll()))
        throw Error(ErrorKind::failed_precondition,
                    "The " + label() + " is already running. Call eval_await() before evaluating it again");
}

bool Stream::make_ready() {
    require_init("evaluate");
    require_not_running();
    if (!built_ || stale_.load(std::memory_order_relaxed)) [[unlikely]] {
        if (operations_.empty()) {
            recording_ = false;
            return false;
        }
        build();
    }
    recording_ = false;
    return true;
}

bool Stream::fit_to_submit() const noexcept {
    return !stale_.load(std::memory_order_seq_cst) && held_back_.load(std::memory_order_seq_cst) == 0;
}

void Stream::check_interference() {
    {
        const std::lock_guard lock(device().graph_mutex());
        check_mappings();
    }
    require_init("evaluate");
}

void Stream::flush() const {
    if (!prepares_) [[likely]]
        return;
    if (resets_queries_on_host_) device().vk().vkResetQueryPool(device().handle(), queries_, 0, query_count_);
    if (!needs_flush_) return;
    if (undeclared_) device().memory().flush_in_place();
    device().flush(plan_.flushes(), label().c_str());
}

void Stream::await_edges() const {
    if (!needs_flush_ || !device().deliveries().any()) return;
    for (const Point& point : device().deliveries().in_the_way(plan_.flushes()))
        point.timeline->wait_until(point.value);
}

void Stream::require_clear_of(std::span<const VkMappedMemoryRange> edges) {
    const VkMappedMemoryRange* edge = find_overlap(edges, plan_.flushes());
    if (!edge) return;
    std::string name = "a tensor";
    {
        const std::lock_guard lock(device().graph_mutex());
        for (const auto& planned : plan_.objects()) {
            const auto* resource = dynamic_cast<const Resource*>(planned.object);
            if (!resource || !resource->is_init() || !resource->has_host_copy() ||
                !resource->host_copy_made())
                continue;
            const VkMappedMemoryRange range = resource->host_memory().mapped_range();
            if (find_overlap({&range, 1}, {edge, 1})) name = "the " + resource->label();
        }
    }
    throw Error(
        ErrorKind::failed_precondition,
        "The " + label() + " cannot be submitted: it syncs bytes of " + name + " that lie within " +
            std::to_string(edge->size) +
            " bytes of the end of a part which OpSyncLocal is to bring to the host before, in work that "
            "is held or in the same submission. On this memory, which is not coherent, the part has to "
            "arrive first: submit the two apart, or sync parts that begin and end at multiples of " +
            std::to_string(device().memory().atom()) + " bytes (nonCoherentAtomSize)");
}

void Stream::note_submitted(uint64_t last) noexcept {
    last_.store(last, std::memory_order_release);
    running_.store(true, std::memory_order_release);
    timed_ = true;
}

bool Stream::submit() {
    const Driving driving(*this);
    return submit_driven();
}

bool Stream::submit_driven() {
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        if (!make_ready()) return false;
        if (needs_flush_) [[unlikely]]
            await_edges();
        if (device().gate().holds()) [[unlikely]] {
            submit_driven(device(), *queue_, {this}, {});
            return true;
        }
        const bool ordered = has_rivals_.load(std::memory_order_acquire) || has_waits_;
        {
            std::unique_lock<std::mutex> order;
            if (ordered) [[unlikely]] {
                order = std::unique_lock(device().order_mutex());
                const std::vector<Point> points = ends_on_other_queues();
                if (!promised(points)) {
                    order.unlock();
                    submit_driven(device(), *queue_, {this}, {});
                    return true;
                }
                submission_.clear_waits();
                for (const auto& point : points) submission_.add_wait(point);
                has_waits_ = !points.empty();
            }
            const Submitting submitting(*this);
            // A stream of another queue that was built a moment ago either sees this one submitting, or is seen here.
            if (!ordered && has_rivals_.load(std::memory_order_seq_cst)) continue;
            if (fit_to_submit()) [[likely]] {
                flush();
                try {
                    note_submitted(queue_->submit(submission_));
                } catch (const Error& error) {
                    rethrow_unsubmitted({this}, error);
                }
                if (undeclared_) [[unlikely]]
                    queue_->note_undeclared(last_point().value);
                return true;
            }
        }
        check_interference();
    }
    throw Error(ErrorKind::failed_precondition,
                "The " + label() + " cannot be evaluated: an operation changes it each time it is recorded");
}

void Stream::require_possible(const SubmitOrder& order) {
    for (const Point& wait : order.waits)
        for (const Point& signal : order.signals)
            if (wait.timeline == signal.timeline && wait.value >= signal.value &&
                wait.timeline->promised() < wait.value)
                throw Error(ErrorKind::invalid_argument,
                            "The work waits for the value " + std::to_string(wait.value) +
                                " of a semaphore that it signals itself to " + std::to_string(signal.value) +
                                ": it would never start");
}

void Stream::require_once(const std::vector<Stream*>& streams) {
    for (size_t i = 0; i < streams.size(); ++i)
        if (std::find(streams.begin(), streams.begin() + static_cast<ptrdiff_t>(i), streams[i]) !=
            streams.begin() + static_cast<ptrdiff_t>(i))
            throw Error(
                ErrorKind::invalid_argument,
                "The " + streams[i]->label() +
                    " is given twice: one submission runs it once. Record its operations in a second one");
}

std::vector<Stream*> Stream::make_ready(const std::vector<Stream*>& streams) {
    std::vector<Stream*> ready;
    // While one of them is built, another one may be destroyed: by code that is called, or beside it.
    std::optional<Building> building;
    if (streams.size() > 1) building.emplace(streams);
    for (Stream* stream : streams)
        if (stream->make_ready()) ready.push_back(stream);
    return ready;
}

void Stream::require_together(Device& device, const std::vector<Stream*>& streams, const SubmitOrder& order) {
    require_possible(order);
    require_once(streams);
    std::deque<Driving> driving;
    for (Stream* stream : streams) driving.emplace_back(*stream);
    const std::vector<Stream*> ready = make_ready(streams);
    Gate& gate = device.gate();
    const std::lock_guard order_lock(device.order_mutex());
    const bool held = gate.holds() || !promised(order.waits);
    // The last queue's submission signals, which may release what is held.
    const auto last = std::find_if(streams.rbegin(), streams.rend(), [&](const Stream* stream) {
                          return stream->queue_ != streams.back()->queue_;
                      }).base();
    const std::vector<Point> later = gate.released_by(order.signals);
    for (size_t i = 0; i < ready.size(); ++i) {
        Stream& stream = *ready[i];
        if (!stream.fit_to_submit()) stream.check_interference();
        if (!stream.needs_flush_) continue;
        const bool signals = std::find(last, streams.end(), &stream) != streams.end();
        stream.require_clear_of(gate.edges(signals ? later : std::vector<Point>{}));
        // Of another queue it waits on the host, unless that is held.
        for (size_t j = 0; j < i; ++j)
            if (held || ready[j]->queue_ == stream.queue_)
                for (const auto& earlier : ready[j]->submission_.deliveries)
                    stream.require_clear_of(earlier->edges);
    }
}

void Stream::submit_together(Device& device, Queue& queue, const std::vector<Stream*>& streams,
                             const SubmitOrder& order) {
    require_possible(order);
    require_once(streams);
    std::deque<Driving> driving;
    for (Stream* stream : streams) driving.emplace_back(*stream);
    submit_driven(device, queue, streams, order);
}

void Stream::submit_driven(Device& device, Queue& queue, const std::vector<Stream*>& streams,
                           const SubmitOrder& order) {
    Gate& gate = device.gate();
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        const std::vector<Stream*> ready = make_ready(streams);
        for (const Stream* stream : ready) stream->await_edges();
        if (ready.empty() && order.waits.empty() && order.signals.empty()) return;

        std::unique_lock order_lock(device.order_mutex());
        Submission submission;
        submission.queue = &queue;
        submission.order = order;
        const std::vector<Point> later =
            gate.holds() ? gate.released_by(order.signals) : std::vector<Point>{};
        for (Stream* stream : ready) {
            if (stream->needs_flush_) {
                for (const auto& earlier : submission.deliveries) stream->require_clear_of(earlier->edges);
                if (gate.holds()) stream->require_clear_of(gate.edges(later));
            }
            for (const Point& point : stream->ends_on_other_queues())
                if (!std::any_of(later.begin(), later.end(),
                                 [&](const Point& p) { return p.timeline == point.timeline; }))
                    merge_point(submission.order.waits, point);
            if (gate.holds()) stream->merge_held(submission.order.waits, later);
            submission.commands.push_back(stream->commands_);
            submission.undeclared = submission.undeclared || stream->undeclared_;
            for (const auto& each : stream->submission_.deliveries) submission.deliveries.push_back(each);
        }
        if (!promised(submission.order.waits)) {
            if (uncover(device, ready)) continue;
            for (Stream* stream : ready)
                if (!stream->own_.timeline) stream->own_ = device.take_timeline();
            // A run that is cancelled is forgotten, and must not take the memory of the one before along.
            const std::lock_guard graph(device.graph_mutex());
            for (Stream* stream : ready) stream->note_effects();
        }
        const auto hold = [&](Submission& held) {
            held.label = label_of(ready);
            for (Stream* stream : ready) held.ends.push_back(stream->next_own());
        };

        Stream* unfit = nullptr;
        uint64_t value = 0;
        {
            std::deque<Submitting> submitting;
            for (Stream* stream : ready) submitting.emplace_back(*stream);
            for (Stream* stream : ready)
                if (!stream->fit_to_submit()) unfit = stream;
            if (!unfit) {
                for (const Stream* stream : ready) stream->flush();
                try {
                    value = gate.pass(submission, hold);
                } catch (const Error& error) {
                    rethrow_unsubmitted(ready, error);
                }
                for (uint32_t i = 0; i < ready.size(); ++i) ready[i]->rank_ = i;
                for (Stream* stream : ready)
                    stream->note_submitted(value ? value : stream->own_.value | own_bit);
            }
        }
        order_lock.unlock();
        if (!unfit) {
            if (value) Gate::note_uses(submission, value);
            gate.release();
            return;
        }
        unfit->check_interference();
    }
    throw Error(ErrorKind::failed_precondition,
                "The sequences cannot be evaluated: an operation changes them each time they are recorded");
}

std::string Stream::label_of(const std::vector<Stream*>& streams) {
    if (streams.empty()) return "submission without sequences";
    std::string text;
    for (const Stream* stream : streams)
        text += (text.empty() ? "" : " and the ") + stream->label() + " (" +
                listed(stream->names_of_operations()) + ")";
    return text;
}

std::vector<std::string> Stream::cancel_held() {
    const Point last = last_point();
    if (!is_running() || !last.timeline) return {};
    auto told = device().gate().cancel(last, "when it was destroyed");
    if (!told.empty()) device().wake_waiters();
    return told;
}

Point Stream::next_own() { return {own_.timeline, ++own_.value}; }

std::vector<Point> Stream::ends_on_other_queues() {
    const std::lock_guard lock(device().graph_mutex());
    if (std::erase_if(inherited_, [](const Point& point) { return point.timeline->passed(point.value); }))
        note_rivals();
    std::vector<Point> points = inherited_;
    for (const Stream* rival : rivals_) {
        // It may be on its way without having seen us.
        while (rival->submitting_.load(std::memory_order_seq_cst)) std::this_thread::yield();
        // What was cancelled did not run: there is nothing to come after.
        if (const Point point = rival->last_point(); point.timeline && !point.timeline->failed(point.value))
            merge_point(points, point);
    }
    return points;
}

void Stream::merge_held(std::vector<Point>& waits, const std::vector<Point>& later) {
    const auto merge = [&](const Point& point) {
        if (!point.timeline || point.timeline->promised() >= point.value) return;  // cancelled, or on its way
        if (std::none_of(later.begin(), later.end(),
                         [&](const Point& p) { return p.timeline == point.timeline; }))
            merge_point(waits, point);
    };
    for (const Point& end : device().gate().ends(!undeclared_)) merge(end);
    const std::lock_guard lock(device().graph_mutex());
    for (const auto& planned : plan_.objects()) {
        for (const Point& point : planned.object->left_behind_) merge(point);
        for (const auto& user : planned.object->users_)
            if (user.stream != this &&
                (user.stream->undeclared_ || ((planned.written || user.stream->writes(user.slot)) &&
                                              !apart_from(*user.stream, *planned.object))))
                merge(user.stream->last_point());
    }
}

bool Stream::poll() {
    if (!is_running()) return true;
    const uint64_t number = last_.load(std::memory_order_acquire);
    const Point last = point_of(number);
    if (!last.timeline) return true;  // cancelled, and another thread was told
    try {
        if (!last.timeline->reached(last.value)) return false;
    } catch (const Error& error) {
        // Somebody is told: it runs no longer. eval_await() is told, too.
        if (last.timeline->failed(last.value)) finish(number);
        rethrow(error);
    }
    finish(number);
    return true;
}

bool Stream::wait(uint64_t nanoseconds) {
    const uint64_t number = last_.load(std::memory_order_acquire);
    const Point last = point_of(number);
    if (!last.timeline)
        return true;  // nothing was submitted, or it was cancelled and another thread was told
    if (!is_running() && !last.timeline->failed(last.value)) return true;
    try {
        if (!last.timeline->wait(last.value, nanoseconds, &was_long_)) return false;
    } catch (const Error& error) {
        if (last.timeline->failed(last.value)) forget_cancelled();
        rethrow(error);
    }
    finish(number);
    return true;
}

// The last operation that the timestamps say has not ended, or all of them where there are none to tell.
std::string Stream::what_ran() const {
    const std::vector<std::string>& names =
        timed_ && !timed_names_.empty() ? timed_names_ : names_of_operations();
    std::vector<std::array<uint64_t, 2>> ticks(timed_ && timestamp_limit_ != 0 ? query_count_ : 0);
    if (!ticks.empty() && ticks.size() == names.size() + 1) {
        const VkResult result = device().vk().vkGetQueryPoolResults(
            device().handle(), queries_, 0, query_count_, ticks.size() * sizeof(ticks[0]), ticks.data(),
            sizeof(ticks[0]), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT);
        if (result == VK_SUCCESS || result == VK_NOT_READY)
            for (size_t i = 0; i < names.size(); ++i)
                if (!ticks[i + 1][1])
                    return names[i] + ", operation " + std::to_string(i + 1) + " of " +
                           std::to_string(names.size()) + " of the " + label();
    }
    return what_runs(names);
}

std::string Stream::what_runs(const std::vector<std::string>& names) const {
    return (names.size() > 1 ? "one of " : "") + listed(names) + " of the " + label();
}

void Stream::explain_loss() const {
    if (!device().lost() || !is_running()) return;
    // What is held did not run.
    const Point last = last_point();
    if (!last.timeline || last.timeline->promised() < last.value) return;
    // Where another thread is recording or submitting just now, what ran is known by the sequence's name only.
    std::string work = "the " + label();
    if (take_turn(Turn::looking)) {
        work = what_ran();
        end_turn();
    }
    device().note_lost_work(work);
}

void Stream::rethrow(const Error& error) const {
    if (error.kind() != ErrorKind::device_lost || !device().lost_work().empty()) throw;
    explain_loss();
    const std::string work = device().lost_work();
    if (work.empty()) throw;
    throw Error(error.kind(), std::string(error.what()) + ". It was lost during " + work, error.vk_result());
}

void Stream::rethrow_unsubmitted(const std::vector<Stream*>& streams, const Error& error) {
    if (error.kind() != ErrorKind::device_lost || streams.empty()) throw;
    Device& device = streams.front()->device();
    // What is in flight was running; whoever waits for it will say so.
    if (!device.lost_work().empty() || !device.known_idle()) throw;
    std::string work = "the submission of ";
    for (size_t i = 0; i < streams.size(); ++i)
        work += (i ? ", " : "") + streams[i]->what_runs(streams[i]->names_of_operations());
    device.note_lost_work(work);
    throw Error(error.kind(), std::string(error.what()) + ". It was lost during " + work, error.vk_result());
}

// Nothing of it ran, and somebody was told: from here on it is as if it had not been submitted.
void Stream::forget_cancelled() noexcept {
    while (collecting_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    // Another thread may have been told meanwhile, and have submitted again.
    uint64_t last = last_.load(std::memory_order_acquire);
    const bool ran = is_running();
    if (const Point point = point_of(last); point.timeline && point.timeline->failed(point.value))
        if (last_.compare_exchange_strong(last, 0, std::memory_order_acq_rel) && ran)
            running_.store(false, std::memory_order_release);
    collecting_.store(false, std::memory_order_release);
}

bool Stream::is_complete() {
    const Point last = last_point();
    if (!last.timeline) return true;
    try {
        return last.timeline->reached(last.value);
    } catch (const Error&) {
        (void)poll();
        throw;
    }
}

void Stream::check_mappings() {
    for (uint32_t slot = 0; slot < plan_.objects().size(); ++slot) {
        const Object& object = *plan_.objects()[slot].object;
        if (object.kind() == ObjectKind::buffer || object.kind() == ObjectKind::image)
            static_cast<const Resource&>(object).require_unmapped(
                [&](const Object::Held& held) { return touches(slot, held); });
    }
}

void Stream::finish(uint64_t last) noexcept {
    // Fences and waits of other threads may be here for the same submission, or for one that was followed by another since. What it
    // wrote is visible already: whoever learned of the end has received it (see sync/delivery.hpp).
    while (collecting_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    if (is_running() && last_.load(std::memory_order_acquire) == last)
        running_.store(false, std::memory_order_release);
    collecting_.store(false, std::memory_order_release);
}

}  // namespace kp
