// Which submissions may go to their queue now, and which the host holds.
//
// A queue runs its submissions in order. One that waits for a signal which only a later submission to the
// same queue makes would never end, and with multiplexed queues nobody can tell which queue is the same. So a
// submission goes to its queue only when each of its waits is promised (see sync/timeline.hpp). The others
// are held here, and each goes in the call that promises the last of its waits: no thread is needed for that.
//
// What a held submission will end with is not known to its queue yet. Each of its streams therefore gets a
// point on a timeline of the stream's own, which the submission raises beside the queue's; whoever has to
// wait for it waits for that point. When a wait fails, the submission is cancelled: its points and signals
// fail with the same error. It is cancelled as well when nobody can be expected to signal any more: when its
// stream or its Manager is destroyed, and when the program ends. Then whoever destroys is told what did not
// run.
//
// Locks: the gate's comes before those of queues. Callers may be between a look at their stream and its
// submission, for which others spin while they hold the graph mutex; so nothing here takes that one while it
// holds the gate's.
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

// What a submission waits for and signals beyond what the memory it uses asks for.
struct SubmitOrder {
    std::vector<Point> waits;
    std::vector<Point> signals;
    std::vector<std::shared_ptr<TimelineOwner>> semaphores;  // whose timelines those are
};

// One vkQueueSubmit, to be made once.
struct Submission {
    Queue* queue = nullptr;
    std::vector<VkCommandBuffer> commands;
    SubmitOrder order;
    bool undeclared = false;  // an operation does not say what it uses: everything later comes after it
    std::vector<std::shared_ptr<const Delivery>> deliveries;
    std::vector<Point> ends;  // of its streams, when it is held
    std::string label;        // what messages call it, when it is held
};

class Gate {
public:
    // Whether submissions are held at the moment.
    [[nodiscard]] bool holds() const noexcept { return count_.load(std::memory_order_acquire) != 0; }

    // Submits it and returns its value on the queue, or holds it and returns 0; then `hold` sets the ends of
    // its streams and its label. Throws; then nothing was submitted. Afterwards, where it was submitted,
    // note_uses() and release() are due.
    uint64_t pass(Submission& submission, const std::function<void(Submission&)>& hold);
    // The semaphores of what was submitted must not go while the device uses them.
    static void note_uses(const Submission& submission, uint64_t value);
    // Submits what waits for nothing that is not promised any more.
    void release() noexcept;

    // Raises a user's semaphore from the host. Throws for a value that is not above the promised ones.
    void signal(Timeline& timeline, uint64_t value);
    // All values of `timeline` that are not promised fail, and what is held for one is cancelled.
    void fail(Timeline& timeline, const Error& error);
    // Cancels what is held, for `why` ("when its Manager was destroyed"). Returns a sentence about each: what
    // did not run, and what it waited for. Waiters are to be woken then.
    [[nodiscard]] std::vector<std::string> cancel(const char* why) noexcept;
    // So, of the submission that one of the points is an end of, and of what waits for it; nothing if it is
    // not held.
    [[nodiscard]] std::vector<std::string> cancel(const Point& end, const char* why);

    // Which semaphores must be signalled before these points can come: "The sequence 'a' (OpFill) waits for
    // the semaphore 's' to reach 3 (it is at 1)". Empty if all points are promised.
    [[nodiscard]] std::string why_held(std::vector<Point> points);

    // The ends of what is held, or only of what does not say what it uses.
    [[nodiscard]] std::vector<Point> ends(bool undeclared_only = false);
    // Atoms of host copies in which what is held will land, but for what `later` would release.
    [[nodiscard]] std::vector<VkMappedMemoryRange> edges(const std::vector<Point>& later);
    // The ends of what is held and would go if `signals` were promised.
    [[nodiscard]] std::vector<Point> released_by(const std::vector<Point>& signals);

private:
    // Under the lock, all of them.
    static uint64_t submit(const Submission& submission);
    // What is cancelled goes to `dropped`, for the caller to let go of after the lock: a submission may hold
    // the last reference to a semaphore, whose end asks the gate what is held.
    [[nodiscard]] std::vector<std::pair<Submission, uint64_t>>
    release_ready(std::vector<Submission>& dropped);
    void cancel_failed(std::vector<Submission>& dropped, std::vector<std::string>* told = nullptr);
    // What it waits for that is not promised: "the semaphore 'frames' to reach 3 (it is at 1)".
    [[nodiscard]] std::string missing(const Submission& submission) const;
    [[nodiscard]] std::string what_did_not_run(const Submission& submission, const char* why) const;
    static void cancel_one(const Submission& submission, const Error& error) noexcept;

    RankedMutex mutex_{LockRank::gate};
    std::vector<Submission> held_;
    std::atomic<size_t> count_{0};
};

}  // namespace kp
