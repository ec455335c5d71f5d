// Submits streams, alone or several as one, and collects their ends.
#include "run/stream.hpp"

#include "base/error.hpp"
#include "device/device.hpp"
#include "pipeline/division.hpp"
#include "pipeline/pipeline_store.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

namespace kp {
namespace {

// How often a recording is rebuilt because its objects change meanwhile.
constexpr int most_attempts = 16;

bool promised(const std::vector<Point>& points) {
    return std::all_of(points.begin(), points.end(),
                       [](const Point& point) { return point.timeline->promised() >= point.value; });
}

bool on_timeline_of_any(const Point& point, const std::vector<Point>& points) {
    return std::any_of(points.begin(), points.end(),
                       [&](const Point& each) { return each.timeline == point.timeline; });
}

std::string listed(const std::vector<std::string>& names) {
    constexpr size_t most = 8;
    std::string list;
    for (size_t i = 0; i < names.size() && i < most; ++i) list += (i ? ", " : "") + names[i];
    if (names.size() > most) list += " and " + std::to_string(names.size() - most) + " more";
    return list;
}

void require_possible(const SubmitOrder& order) {
    for (const Point& wait : order.waits)
        for (const Point& signal : order.signals)
            if (wait.timeline == signal.timeline && wait.value >= signal.value &&
                wait.timeline->promised() < wait.value)
                throw Error(ErrorKind::invalid_argument,
                            "The work waits for the value " + std::to_string(wait.value) +
                                " of a semaphore that it signals itself to " + std::to_string(signal.value) +
                                ": it would never start");
}

}  // namespace

bool Stream::make_ready() {
    require_init("evaluate");
    if (is_running() && (is_working() || !poll()))
        throw Error(ErrorKind::failed_precondition,
                    "The " + label() + " is already running. Call eval_await() before evaluating it again");
    if (!timed_.empty() && learn_rates()) [[unlikely]]
        built_ = false;
    if (!built_ || built_recording_.is_stale(std::memory_order_relaxed)) [[unlikely]] {
        if (operations_.empty()) {
            recording_ = false;
            return false;
        }
        build();
    }
    recording_ = false;
    return true;
}

bool Stream::learn_rates() {
    const Point last = last_point();
    // A run that was cancelled, or that failed before it began, has reset no queries.
    if (!timestamps_ || !timestamps_->timed() || !last.timeline || last.timeline->failed(last.value))
        return false;
    const std::vector<uint64_t> ticks = timestamps_->queries().ticks();
    const uint32_t bits = queue_.timestamp_bits();
    const uint64_t mask = bits < 64 ? (uint64_t{1} << bits) - 1 : UINT64_MAX;
    const double period = double{device().limits().timestampPeriod} * 1e-9;
    bool other = false;
    for (size_t i = 0; i < timed_.size(); ++i) {
        const Recorder::Timed& each = timed_[i];
        // Of repetitions, only the time of all is known.
        const auto is_same = [&](size_t at) {
            return at < timed_.size() && timed_[at].operation == each.operation;
        };
        if (each.operation + 1 >= ticks.size() || is_same(i + 1) || is_same(i - 1)) continue;
        const uint64_t took = (ticks[each.operation + 1] - ticks[each.operation]) & mask;
        // A run among other work, or with other numbers, may have been shorter.
        const double seconds = std::max(static_cast<double>(took) * period / static_cast<double>(each.groups),
                                        each.pipeline->seconds_of_group * 0.5);
        each.pipeline->seconds_of_group = static_cast<float>(std::max(seconds, 1e-30));
        if (!each.pipeline->divisible) continue;
        const uint64_t due = parts_of(each.groups, seconds, device().watchdog() / 2);
        other = other || due > each.parts || due * 2 < each.parts;
    }
    return other;
}

void Stream::check_interference() {
    {
        const std::lock_guard lock(device().graph_mutex());
        built_recording_.check_mappings();
    }
    require_init("evaluate");
}

void Stream::prepare_run() const {
    if (timestamps_) timestamps_->queries().reset_on_host();
    host_.flush();
}

// -- one stream ---------------------------------------------------------------------------------------------

bool Stream::submit() {
    const Turn::Taken turn = turn_.drive();
    return submit_driven();
}

inline void Stream::send() {
    if (host_.needs_flush() || timestamps_) [[unlikely]]
        prepare_run();
    try {
        note_submitted(queue_.submit(submission_));
    } catch (const Error& error) {
        rethrow_unsubmitted({this}, error);
    }
    if (built_recording_.plan().undeclared()) [[unlikely]]
        queue_.note_undeclared(last_point().value);
}

bool Stream::submit_driven() {
    const QueueOrder& order = built_recording_.order();
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        if (!make_ready()) return false;
        if (host_.needs_flush()) [[unlikely]]
            host_.await_edges();
        if (device().gate().holds()) [[unlikely]] {
            submit_driven(device(), queue_, {this}, {});
            return true;
        }
        if (order.any(std::memory_order_acquire) || has_waits_) [[unlikely]] {
            if (submit_in_order()) return true;
        } else {
            const LastRun::Submitting submitting(run_);
            // A stream of another queue that was built a moment ago either sees this stream submitting, or
            // is seen here.
            if (order.any(std::memory_order_seq_cst)) continue;
            if (built_recording_.fit_to_submit()) [[likely]] {
                send();
                return true;
            }
        }
        check_interference();
    }
    throw Error(ErrorKind::failed_precondition,
                "The " + label() + " cannot be evaluated: an operation changes it each time it is recorded");
}

bool Stream::submit_in_order() {
    std::unique_lock lock(device().order_mutex());
    QueueOrder& order = built_recording_.order();
    const std::vector<Point> points = order.ends_on_other_queues(1);
    if (!promised(points)) {
        lock.unlock();
        submit_driven(device(), queue_, {this}, {});
        return true;
    }
    submission_.clear_waits();
    for (const auto& point : points) submission_.add_wait(point);
    has_waits_ = !points.empty();
    {
        const LastRun::Submitting submitting(run_);
        if (!built_recording_.fit_to_submit()) return false;
        send();
    }
    order.note_end();
    return true;
}

// -- several streams ----------------------------------------------------------------------------------------

std::vector<Turn::Taken> Stream::drive_all(const std::vector<Stream*>& streams) {
    std::vector<Turn::Taken> turns;
    for (auto each = streams.begin(); each != streams.end(); ++each) {
        if (std::find(streams.begin(), each, *each) != each)
            throw Error(
                ErrorKind::invalid_argument,
                "The " + (*each)->label() +
                    " is given twice: one submission runs it once. Record its operations in a second one");
        turns.push_back((*each)->turn_.drive());
    }
    return turns;
}

std::vector<Stream*> Stream::make_ready(const std::vector<Stream*>& streams) {
    std::vector<Stream*> ready;
    // While one stream is built, foreign code or another thread may destroy another one.
    std::optional<Building> building;
    if (streams.size() > 1) building.emplace(streams);
    for (Stream* stream : streams)
        if (stream->make_ready()) ready.push_back(stream);
    return ready;
}

bool Stream::uncover(Device& device, const std::vector<Stream*>& streams) {
    const std::lock_guard lock(device.graph_mutex());
    bool any = false;
    for (Stream* stream : streams) {
        if (!stream->built_recording_.uncover()) continue;
        any = true;
        stream->built_ = false;
    }
    return any;
}

void Stream::require_together(Device& device, const std::vector<Stream*>& streams, const SubmitOrder& order) {
    require_possible(order);
    const std::vector<Turn::Taken> turns = drive_all(streams);
    const std::vector<Stream*> ready = make_ready(streams);
    Gate& gate = device.gate();
    const std::lock_guard order_lock(device.order_mutex());
    const bool held = gate.holds() || !promised(order.waits);
    // The last queue's submission signals, which may release held work.
    const auto last = std::find_if(streams.rbegin(), streams.rend(), [&](const Stream* stream) {
                          return &stream->queue_ != &streams.back()->queue_;
                      }).base();
    const std::vector<Point> later = gate.released_by(order.signals);
    for (size_t i = 0; i < ready.size(); ++i) {
        Stream& stream = *ready[i];
        if (!stream.built_recording_.fit_to_submit()) stream.check_interference();
        if (!stream.host_.needs_flush()) continue;
        const bool signals = std::find(last, streams.end(), &stream) != streams.end();
        stream.host_.require_clear_of(gate.edges(signals ? later : std::vector<Point>{}));
        // Unless the submission is held, the host waits for deliveries of other queues.
        for (size_t j = 0; j < i; ++j)
            if (held || &ready[j]->queue_ == &stream.queue_)
                for (const auto& earlier : ready[j]->submission_.deliveries)
                    stream.host_.require_clear_of(earlier->edges);
    }
}

void Stream::submit_together(Device& device, Queue& queue, const std::vector<Stream*>& streams,
                             const SubmitOrder& order) {
    require_possible(order);
    const std::vector<Turn::Taken> turns = drive_all(streams);
    submit_driven(device, queue, streams, order);
}

void Stream::submit_driven(Device& device, Queue& queue, const std::vector<Stream*>& streams,
                           const SubmitOrder& order) {
    Gate& gate = device.gate();
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        const std::vector<Stream*> ready = make_ready(streams);
        for (const Stream* stream : ready) stream->host_.await_edges();
        if (ready.empty() && order.waits.empty() && order.signals.empty()) return;

        std::unique_lock order_lock(device.order_mutex());
        Submission submission;
        submission.queue = &queue;
        submission.order = order;
        const std::vector<Point> later =
            gate.holds() ? gate.released_by(order.signals) : std::vector<Point>{};
        for (Stream* stream : ready) {
            if (stream->host_.needs_flush()) {
                for (const auto& earlier : submission.deliveries)
                    stream->host_.require_clear_of(earlier->edges);
                if (gate.holds()) stream->host_.require_clear_of(gate.edges(later));
            }
            QueueOrder& among_queues = stream->built_recording_.order();
            for (const Point& point : among_queues.ends_on_other_queues(ready.size()))
                if (!on_timeline_of_any(point, later)) merge_point(submission.order.waits, point);
            if (gate.holds()) among_queues.merge_held(submission.order.waits, later);
            const auto& commands = stream->commands_->handles();
            submission.commands.insert(submission.commands.end(), commands.begin(), commands.end());
            submission.undeclared = submission.undeclared || stream->built_recording_.plan().undeclared();
            for (const auto& each : stream->submission_.deliveries) submission.deliveries.push_back(each);
        }
        if (!promised(submission.order.waits)) {
            if (uncover(device, ready)) continue;
            for (Stream* stream : ready) stream->run_.prepare_own(device);
            // A cancelled run is forgotten, and must not make the effects of the run before it forgotten
            // too.
            const std::lock_guard graph(device.graph_mutex());
            for (Stream* stream : ready) stream->built_recording_.note_effects();
        }
        const auto hold = [&](Submission& held) {
            held.label = label_of(ready);
            for (Stream* stream : ready) held.ends.push_back(stream->run_.next_own());
        };

        Stream* unfit = nullptr;
        uint64_t value = 0;
        {
            std::deque<LastRun::Submitting> submitting;
            for (Stream* stream : ready) submitting.emplace_back(stream->run_);
            for (Stream* stream : ready)
                if (!stream->built_recording_.fit_to_submit()) unfit = stream;
            if (!unfit) {
                for (const Stream* stream : ready) stream->prepare_run();
                try {
                    value = gate.pass(submission, hold);
                } catch (const Error& error) {
                    rethrow_unsubmitted(ready, error);
                }
                for (uint32_t i = 0; i < ready.size(); ++i) {
                    ready[i]->run_.note_rank(i);
                    ready[i]->note_submitted(value);
                }
            }
        }
        if (!unfit)
            for (Stream* stream : ready) stream->built_recording_.order().note_end();
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

// -- the end of a submission --------------------------------------------------------------------------------

bool Stream::poll() {
    try {
        return run_.poll();
    } catch (const Error& error) {
        rethrow(error);
    }
}

bool Stream::wait(uint64_t nanoseconds) {
    try {
        return run_.wait(nanoseconds);
    } catch (const Error& error) {
        rethrow(error);
    }
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

std::vector<std::string> Stream::cancel_held() {
    const Point last = last_point();
    if (!is_running() || !last.timeline) return {};
    auto told = device().gate().cancel(last, "when it was destroyed");
    if (!told.empty()) device().wake_waiters();
    return told;
}

std::vector<uint64_t> Stream::timestamps() {
    const Turn::Taken turn = turn_.look();
    if (turn_.is_calling_out()) turn_.refuse_second_thread();
    require_idle("read the timestamps of");
    if (!timestamps_)
        throw Error(ErrorKind::failed_precondition,
                    "The " + label() +
                        " has no timestamps. Make it with total_timestamps=N or timestamps=True");
    if (!timestamps_->timed())
        throw Error(ErrorKind::failed_precondition,
                    "The " + label() + " was not evaluated yet, so it has no timestamps");
    return timestamps_->ticks();
}

std::vector<std::string> Stream::timed_names() const {
    const Turn::Taken turn = turn_.look();
    return timestamps_ ? timestamps_->names() : std::vector<std::string>{};
}

// -- the loss of the device ---------------------------------------------------------------------------------

// The first operation that has not ended according to its timestamp, or all operations if there are no
// timestamps.
std::string Stream::what_ran() const {
    if (!timestamps_ || !timestamps_->timed()) return what_runs(names_of_operations());
    const std::vector<std::string>& names = timestamps_->names();
    const size_t ended = timestamps_->ended();
    if (ended == names.size()) return what_runs(names);
    return names[ended] + ", operation " + std::to_string(ended + 1) + " of " + std::to_string(names.size()) +
           " of the " + label();
}

std::string Stream::what_runs(const std::vector<std::string>& names) const {
    return (names.size() > 1 ? "one of " : "") + listed(names) + " of the " + label();
}

std::string Stream::running_work() const {
    if (!is_running()) return {};
    // Held work did not run.
    const Point last = last_point();
    if (!last.timeline || last.timeline->promised() < last.value || last.timeline->known() >= last.value)
        return {};
    // If another thread is recording or submitting now, only the sequence's name is known.
    if (const Turn::Taken turn = turn_.try_look()) return what_ran();
    return "the " + label();
}

void Stream::explain_loss() const {
    if (!device().lost()) return;
    if (const std::string work = running_work(); !work.empty()) device().note_lost_work(work);
}

void Stream::rethrow(const Error& error) const {
    explain_loss();
    device().rethrow_explained(error);
}

void Stream::rethrow_unsubmitted(const std::vector<Stream*>& streams, const Error& error) {
    if (error.kind() != ErrorKind::device_lost || streams.empty()) throw;
    Device& device = streams.front()->device();
    // Work in flight was running; the wait for that work will name it.
    if (!device.lost_work().empty() || !device.known_idle()) throw;
    std::string work = "the submission of ";
    for (size_t i = 0; i < streams.size(); ++i)
        work += (i ? ", " : "") + streams[i]->what_runs(streams[i]->names_of_operations());
    device.note_lost_work(work);
    throw Error(error.kind(), std::string(error.what()) + ". It was lost during " + work, error.vk_result());
}

}  // namespace kp
