// Decides which submissions go to their queue now, and which ones the host holds.
//
// A queue runs its submissions in order. If a submission waits for a signal of a later submission to the
// same queue, it never ends, and with multiplexed queues it is unknown which queues are the same. So a
// submission goes to its queue only if each of its waits is promised (see sync/timeline.hpp). The others
// are held here. The call that promises a submission's last wait also submits it, so no thread is needed
// for that.
//
// The queue does not yet know the end of a held submission. Each of its streams therefore gets a point on
// the stream's own timeline, which the submission raises beside the queue's; threads that need the
// submission wait for that point. When a wait fails, the submission is cancelled: its points and signals
// fail with the same error. It is also cancelled when no signal can be expected any more: when its stream
// or its Manager is destroyed, when the program ends, and when the host has dropped a semaphore that no held
// work can raise. The call that does so is then told which work did not run.
//
// Locks: the gate's lock comes before those of queues. Callers may be between the check of their stream and
// its submission, and other threads spin on that while they hold the graph mutex. So code that holds the
// gate's lock must not take the graph mutex.
#pragma once

#include "base/ranked.hpp"
#include "sync/queue.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kp {

// A submission's waits and signals beyond those that its memory needs.
struct SubmitOrder {
    std::vector<Point> waits;
    std::vector<Point> signals;
    std::vector<std::shared_ptr<TimelineOwner>> semaphores;  // the owners of those timelines
};

// One vkQueueSubmit, to be made once.
struct Submission {
    Queue* queue = nullptr;
    std::vector<VkCommandBuffer> commands;
    SubmitOrder order;
    bool undeclared = false;  // an operation does not declare its uses, so all later work comes after it
    std::vector<std::shared_ptr<const Delivery>> deliveries;
    std::vector<Point> ends;  // of its streams, if it is held
    std::string label;        // its name in messages, if it is held
};

class Gate {
public:
    // True if submissions are held now.
    [[nodiscard]] bool holds() const noexcept { return count_.load(std::memory_order_acquire) != 0; }

    // Submits `submission` and returns its value on the queue, or holds it and returns 0; `hold` then sets
    // the ends of its streams and its label. If it throws, nothing was submitted. After a submission, call
    // note_uses() and release().
    uint64_t pass(Submission& submission, const std::function<void(Submission&)>& hold);
    // Keeps the semaphores of a submission alive while the device uses them.
    static void note_uses(const Submission& submission, uint64_t value);
    // Submits held submissions if all their waits are promised now.
    void release() noexcept;

    // Raises a user's semaphore from the host. Throws if the value is not above the promised ones.
    void signal(Timeline& timeline, uint64_t value);
    // Fails all values of `timeline` that are not promised, and cancels the submissions held for one of
    // them.
    void fail(Timeline& timeline, const Error& error);
    // The host has dropped its last reference to a semaphore, so that only submitted work raises it. Fails
    // the values that no held work can reach any more, also those of semaphores that were dropped before, and
    // cancels the submissions held for one of them. Returns a sentence about each. Wake the waiters
    // afterwards.
    [[nodiscard]] std::vector<std::string> abandon(Timeline& timeline);
    // Cancels all held submissions, for the reason `why` ("when its Manager was destroyed"). Returns a
    // sentence about each: the work that did not run, and its missing waits. Wake the waiters afterwards.
    [[nodiscard]] std::vector<std::string> cancel(const char* why) noexcept;
    // The same for the submission that has one of the points among its ends, and for the submissions that
    // wait for it; empty if it is not held.
    [[nodiscard]] std::vector<std::string> cancel(const Point& end, const char* why);

    // The semaphores that must be signalled before these points can come: "The sequence 'a' (OpFill) waits
    // for the semaphore 's' to reach 3 (it is at 1)". Empty if all points are promised.
    [[nodiscard]] std::string why_held(std::vector<Point> points);

    // The ends of held submissions, or only of those that do not declare their uses.
    [[nodiscard]] std::vector<Point> ends(bool undeclared_only = false);
    // Atoms of host copies that held submissions will write, except submissions that `later` would release.
    [[nodiscard]] std::vector<VkMappedMemoryRange> edges(const std::vector<Point>& later);
    // The ends of held submissions that would be submitted if `signals` were promised.
    [[nodiscard]] std::vector<Point> released_by(const std::vector<Point>& signals);

private:
    // All of these are called under the lock.
    static uint64_t submit(const Submission& submission);
    // Cancelled submissions go to `dropped`. The caller frees them after the lock: a submission may hold
    // the last reference to a semaphore, and the semaphore's end asks the gate for held work.
    [[nodiscard]] std::vector<std::pair<Submission, uint64_t>>
    release_ready(std::vector<Submission>& dropped);
    // The ends of held submissions that go once `promised` is; adds what they raise to it.
    [[nodiscard]] std::vector<Point> released(std::vector<Point>& promised) const;
    // `why`: what has made semaphores fail, for the sentences about work that waited for them.
    void cancel_failed(std::vector<Submission>& dropped, std::vector<std::string>* told = nullptr,
                       const char* why = nullptr);
    // The waits that are not promised: "the semaphore 'frames' to reach 3 (it is at 1)".
    [[nodiscard]] std::string missing(const Submission& submission) const;
    [[nodiscard]] std::string what_did_not_run(const Submission& submission, const char* why) const;
    static void cancel_one(const Submission& submission, const Error& error) noexcept;

    RankedMutex mutex_{LockRank::gate};
    std::vector<Submission> held_;
    std::atomic<size_t> count_{0};
};

}  // namespace kp
