#include "sync/gate.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace kp {
namespace {

bool covered(const std::vector<Point>& promised, const Point& point) {
    return std::any_of(promised.begin(), promised.end(), [&](const Point& p) {
        return p.timeline == point.timeline && p.value >= point.value;
    });
}

bool all_promised(const std::vector<Point>& waits, const std::vector<Point>& besides = {}) {
    return std::all_of(waits.begin(), waits.end(), [&](const Point& wait) {
        return wait.timeline->promised() >= wait.value || covered(besides, wait);
    });
}

void require_above_promised(const Point& signal) {
    const uint64_t promised = signal.timeline->promised();
    if (signal.value <= promised)
        throw Error(ErrorKind::invalid_argument,
                    "The semaphore cannot be signalled to " + std::to_string(signal.value) + ": it is at " +
                        std::to_string(promised) +
                        ", or will be through work that was submitted, and a timeline only goes up");
}

void require_possible(const SubmitOrder& order) {
    for (const Point& wait : order.waits) wait.timeline->require_sound(wait.value);
    for (const Point& signal : order.signals) {
        signal.timeline->require_sound(signal.value);
        require_above_promised(signal);
    }
}

}  // namespace

uint64_t Gate::submit(const Submission& submission) {
    require_possible(submission.order);
    PreparedSubmit prepared;
    prepared.prepare(*submission.queue, submission.commands);
    for (const Point& wait : submission.order.waits) prepared.add_wait(wait);
    for (const Point& signal : submission.order.signals) prepared.add_signal(signal);
    for (const Point& end : submission.ends) prepared.add_signal(end);
    prepared.deliveries = submission.deliveries;
    const uint64_t value = submission.queue->submit(prepared);
    if (submission.undeclared) submission.queue->note_undeclared(value);
    for (const Point& signal : submission.order.signals) signal.timeline->promise(signal.value);
    for (const Point& end : submission.ends) {
        end.timeline->note_place(end.value, {submission.queue, value});
        end.timeline->promise(end.value);
    }
    return value;
}

void Gate::note_uses(const Submission& submission, uint64_t value) {
    for (const auto& semaphore : submission.order.semaphores) semaphore->note_use({submission.queue, value});
}

uint64_t Gate::pass(Submission& submission, const std::function<void(Submission&)>& hold) {
    const std::lock_guard lock(mutex_);
    if (all_promised(submission.order.waits)) return submit(submission);
    require_possible(submission.order);
    held_.reserve(held_.size() + 1);
    hold(submission);
    held_.push_back(std::move(submission));
    count_.store(held_.size(), std::memory_order_release);
    return 0;
}

void Gate::release() noexcept {
    if (!holds()) return;
    std::vector<Submission> dropped;
    std::vector<std::pair<Submission, uint64_t>> submitted;
    try {
        {
            const std::lock_guard lock(mutex_);
            submitted = release_ready(dropped);
        }
        for (const auto& [submission, value] : submitted) note_uses(submission, value);
    } catch (...) {
        return;  // out of host memory: the next signal releases the held work
    }
}

std::vector<std::pair<Submission, uint64_t>> Gate::release_ready(std::vector<Submission>& dropped) {
    std::vector<std::pair<Submission, uint64_t>> submitted;
    for (size_t i = 0; i < held_.size();) {
        if (!all_promised(held_[i].order.waits)) {
            ++i;
            continue;
        }
        submitted.reserve(submitted.size() + 1);
        dropped.reserve(dropped.size() + 1);
        Submission ready = std::move(held_[i]);
        held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
        try {
            const uint64_t value = submit(ready);
            submitted.emplace_back(std::move(ready), value);
        } catch (const Error& error) {
            // The error can reach only the threads that wait for this submission.
            cancel_one(ready, error);
            dropped.push_back(std::move(ready));
            cancel_failed(dropped);
        }
        i = 0;  // it may have promised a value that an earlier one waits for
    }
    count_.store(held_.size(), std::memory_order_release);
    return submitted;
}

void Gate::cancel_one(const Submission& submission, const Error& error) noexcept {
    const auto fail_from = [&](Timeline& timeline, uint64_t first, uint64_t last) {
        try {
            timeline.fail(first, last, error);
        } catch (...) {
            return;  // out of host memory: waiting threads wait until they are interrupted
        }
    };
    for (const Point& signal : submission.order.signals)
        if (signal.value > signal.timeline->promised())
            fail_from(*signal.timeline, signal.timeline->promised() + 1, UINT64_MAX);
    for (const Point& end : submission.ends) {
        fail_from(*end.timeline, end.value, end.value);
        try {
            // Nothing runs, so no memory is in use: the point counts as passed.
            end.timeline->raise(end.value);
        } catch (const Error&) {
            continue;  // a lost device
        }
    }
}

void Gate::cancel_failed(std::vector<Submission>& dropped, std::vector<std::string>* told, const char* why) {
    for (bool progress = true; progress;) {
        progress = false;
        for (size_t i = 0; i < held_.size() && !progress; ++i) {
            try {
                for (const Point& wait : held_[i].order.waits) wait.timeline->require_sound(wait.value);
            } catch (const Error& error) {
                const bool first = why && std::ranges::any_of(held_[i].order.waits, [](const Point& wait) {
                                       return wait.timeline->owner() && wait.timeline->failed(wait.value);
                                   });
                if (told)
                    told->push_back(first ? what_did_not_run(held_[i], why)
                                          : "The " + held_[i].label + " comes after that, so it did not run");
                dropped.push_back(std::move(held_[i]));
                held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
                cancel_one(dropped.back(), error);
                progress = true;
            }
        }
    }
    count_.store(held_.size(), std::memory_order_release);
}

void Gate::signal(Timeline& timeline, uint64_t value) {
    {
        const std::lock_guard lock(mutex_);
        timeline.require_sound(value);
        require_above_promised({&timeline, value});
        timeline.raise(value);
    }
    release();
}

void Gate::fail(Timeline& timeline, const Error& error) {
    std::vector<Submission> dropped;  // freed after the lock
    const std::lock_guard lock(mutex_);
    timeline.fail(timeline.promised() + 1, UINT64_MAX, error);
    cancel_failed(dropped);
}

std::vector<std::string> Gate::abandon(Timeline& timeline) {
    std::vector<std::string> told;
    std::vector<Submission> dropped;  // freed after the lock
    const std::lock_guard lock(mutex_);
    timeline.abandon();
    // The host can still raise the semaphores that it has; all other values come from held work only.
    std::vector<Point> reachable;
    std::vector<Timeline*> abandoned{&timeline};
    for (const Submission& held : held_)
        for (const Point& wait : held.order.waits) {
            if (!wait.timeline->owner()) continue;
            if (wait.timeline->abandoned())
                abandoned.push_back(wait.timeline);
            else
                merge_point(reachable, {wait.timeline, UINT64_MAX});
        }
    (void)released(reachable);
    for (Timeline* each : abandoned) {
        uint64_t highest = each->promised();
        for (const Point& point : reachable)
            if (point.timeline == each) highest = std::max(highest, point.value);
        if (each->failed(UINT64_MAX)) continue;
        each->fail(highest + 1, UINT64_MAX,
                   Error(ErrorKind::cancelled, "Nothing can raise the " + each->owner()->timeline_label() +
                                                   " above " + std::to_string(highest) +
                                                   " any more: its last reference is gone"));
    }
    cancel_failed(dropped, &told, "when the semaphore was dropped");
    return told;
}

std::string Gate::missing(const Submission& submission) const {
    std::string text;
    for (const Point& wait : submission.order.waits) {
        if (wait.timeline->promised() >= wait.value) continue;
        std::string what = "other work";
        for (const auto& semaphore : submission.order.semaphores)
            if (&semaphore->timeline() == wait.timeline)
                what = "the " + semaphore->timeline_label() + " to reach " + std::to_string(wait.value) +
                       " (it is at " + std::to_string(wait.timeline->promised()) + ")";
        for (const Submission& other : held_)
            if (std::any_of(other.ends.begin(), other.ends.end(),
                            [&](const Point& end) { return end.timeline == wait.timeline; }))
                what = "the " + other.label;
        text += (text.empty() ? "" : " and for ") + what;
    }
    return text;
}

std::string Gate::what_did_not_run(const Submission& submission, const char* why) const {
    return "The " + submission.label + " did not run: it waited for " + missing(submission) + " " + why;
}

std::string Gate::why_held(std::vector<Point> points) {
    const std::lock_guard lock(mutex_);
    std::vector<const Submission*> seen;
    std::vector<Point> semaphores;
    while (!points.empty()) {
        const Point point = points.back();
        points.pop_back();
        if (point.timeline->promised() >= point.value || point.timeline->failed(point.value)) continue;
        // Held work may raise it; then the waits of that work are missing.
        bool raised = false;
        for (const Submission& held : held_) {
            if (!covered(held.ends, point) && !covered(held.order.signals, point)) continue;
            raised = true;
            if (std::find(seen.begin(), seen.end(), &held) != seen.end()) continue;
            seen.push_back(&held);
            points.insert(points.end(), held.order.waits.begin(), held.order.waits.end());
        }
        if (!raised && point.timeline->owner()) merge_point(semaphores, point);
    }
    std::string text;
    for (const Point& point : semaphores)
        text += (text.empty() ? "" : " and for ") + ("the " + point.timeline->owner()->timeline_label()) +
                " to reach " + std::to_string(point.value) + " (it is at " +
                std::to_string(point.timeline->promised()) + ")";
    if (text.empty()) return text;
    return (seen.empty() ? std::string("This") : "The " + seen.front()->label) + " waits for " + text;
}

std::vector<std::string> Gate::cancel(const char* why) noexcept {
    std::vector<std::string> told;
    if (!holds()) return told;
    std::vector<Submission> held;  // freed after the lock
    const std::lock_guard lock(mutex_);
    try {
        for (const Submission& submission : held_) told.push_back(what_did_not_run(submission, why));
    } catch (...) {
        told.resize(held_.size());  // out of host memory: continue, because the steps below matter more
    }
    held.swap(held_);
    count_.store(0, std::memory_order_release);
    for (size_t i = 0; i < held.size(); ++i) cancel_one(held[i], Error(ErrorKind::cancelled, told[i]));
    return told;
}

std::vector<std::string> Gate::cancel(const Point& end, const char* why) {
    std::vector<std::string> told;
    if (!holds()) return told;
    std::vector<Submission> dropped;  // freed after the lock
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(held_.begin(), held_.end(), [&](const Submission& submission) {
        return std::any_of(submission.ends.begin(), submission.ends.end(), [&](const Point& each) {
            return each.timeline == end.timeline && each.value == end.value;
        });
    });
    if (found == held_.end()) return told;
    told.push_back(what_did_not_run(*found, why));
    dropped.push_back(std::move(*found));
    held_.erase(found);
    cancel_one(dropped.front(), Error(ErrorKind::cancelled, told.front()));
    cancel_failed(dropped, &told);
    return told;
}

std::vector<Point> Gate::ends(bool undeclared_only) {
    const std::lock_guard lock(mutex_);
    std::vector<Point> points;
    for (const auto& submission : held_)
        if (submission.undeclared || !undeclared_only)
            for (const Point& end : submission.ends) merge_point(points, end);
    return points;
}

std::vector<VkMappedMemoryRange> Gate::edges(const std::vector<Point>& later) {
    const std::lock_guard lock(mutex_);
    std::vector<VkMappedMemoryRange> edges;
    for (const auto& submission : held_) {
        if (std::any_of(submission.ends.begin(), submission.ends.end(),
                        [&](const Point& end) { return covered(later, end); }))
            continue;
        for (const auto& delivery : submission.deliveries)
            edges.insert(edges.end(), delivery->edges.begin(), delivery->edges.end());
    }
    return edges;
}

std::vector<Point> Gate::released_by(const std::vector<Point>& signals) {
    const std::lock_guard lock(mutex_);
    std::vector<Point> promised = signals;
    return released(promised);
}

std::vector<Point> Gate::released(std::vector<Point>& promised) const {
    std::vector<Point> released;
    std::vector<bool> gone(held_.size());
    for (bool progress = true; progress;) {
        progress = false;
        for (size_t i = 0; i < held_.size(); ++i) {
            if (gone[i] || !all_promised(held_[i].order.waits, promised)) continue;
            gone[i] = progress = true;
            for (const Point& signal : held_[i].order.signals) merge_point(promised, signal);
            for (const Point& end : held_[i].ends) {
                merge_point(promised, end);
                merge_point(released, end);
            }
        }
    }
    return released;
}

}  // namespace kp
