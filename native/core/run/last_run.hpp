// A stream's last submission: its end, and whether a thread has learned of that.
//
// The end is a point on the queue's timeline. Work that the gate holds has no place in a queue yet, so its
// end is a point on a timeline of the stream's own, which the submission raises beside the queue's. One
// atomic number says which, so that any thread may ask at any moment.
#pragma once

#include "sync/freshness.hpp"
#include "sync/queue.hpp"

#include <atomic>
#include <cstdint>
#include <thread>

namespace kp {

class Device;

class LastRun {
public:
    explicit LastRun(Queue& queue) noexcept : queue_(queue) {}
    LastRun(const LastRun&) = delete;
    LastRun& operator=(const LastRun&) = delete;

    // Lasts from the check of what other threads change to the new end, which is one driver call.
    class Submitting {
    public:
        explicit Submitting(LastRun& run) noexcept : flag_(run.submitting_) {
            flag_.store(true, std::memory_order_seq_cst);
        }
        Submitting(const Submitting&) = delete;
        Submitting& operator=(const Submitting&) = delete;
        ~Submitting() { flag_.store(false, std::memory_order_release); }

    private:
        std::atomic<bool>& flag_;
    };
    // A submission has reached `value` of the queue, or was held: its end is the last next_own().
    void note(uint64_t value) noexcept {
        number_.store(value ? value : own_.value | own_bit, std::memory_order_release);
        running_.store(true, std::memory_order_release);
    }
    // Its index among the streams of its submission.
    void note_rank(uint32_t rank) noexcept { rank_ = rank; }
    void prepare_own(Device& device);
    [[nodiscard]] Point next_own() noexcept { return {own_.timeline, ++own_.value}; }
    [[nodiscard]] Point own() const noexcept { return own_; }

    // No timeline before the first submission, and after one that was cancelled.
    [[nodiscard]] Point end() const noexcept { return end_of(number()); }
    // The same after any submission that is being made now, which this waits for.
    [[nodiscard]] Point settled_end() const noexcept {
        while (submitting_.load(std::memory_order_seq_cst)) std::this_thread::yield();
        return end();
    }
    // Distinguishes submissions.
    [[nodiscard]] uint64_t number() const noexcept { return number_.load(std::memory_order_acquire); }
    [[nodiscard]] bool any_since(uint64_t number) const noexcept {
        const uint64_t last = this->number();
        return last != 0 && last != number;
    }
    // The run, if it is one since the one of that number; otherwise no timeline.
    [[nodiscard]] FreshnessRecord::Run since(uint64_t number) const noexcept;

    // Until a thread collects the end.
    [[nodiscard]] bool is_running() const noexcept { return running_.load(std::memory_order_acquire); }
    // See Stream::is_working.
    [[nodiscard]] bool is_working() const noexcept;
    // True if nothing runs; collects the end. Makes at most one driver call. Throws the error of failed work,
    // which is then forgotten.
    [[nodiscard]] bool poll() {
        if (!is_running()) return true;
        const uint64_t last = number();
        const Point point = end_of(last);
        if (!point.timeline) return true;  // cancelled, and another thread was told
        try {
            if (!point.timeline->reached(point.value)) return false;
        } catch (const Error&) {
            // Now that a thread is told of the failure, the stream is not running any more. eval_await() is
            // told too.
            if (point.timeline->failed(point.value)) finish(last);
            throw;
        }
        finish(last);
        return true;
    }
    [[nodiscard]] bool wait(uint64_t nanoseconds);
    // The stream ends.
    void stop() noexcept { running_.store(false, std::memory_order_release); }

private:
    static constexpr uint64_t own_bit = uint64_t{1} << 63;
    [[nodiscard]] Point end_of(uint64_t number) const noexcept {
        if (number == 0) return {};
        if (number & own_bit) return {own_.timeline, number & ~own_bit};
        return {&queue_, number};
    }
    void finish(uint64_t number) noexcept {
        // Fences and waits of other threads may get here for the same submission, or for one that was
        // followed by another. Its writes are visible already: the thread that learned of the end has
        // received them (see sync/delivery.hpp).
        while (collecting_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
        if (is_running() && this->number() == number) running_.store(false, std::memory_order_release);
        collecting_.store(false, std::memory_order_release);
    }
    void forget_cancelled() noexcept;

    Queue& queue_;
    Point own_;                        // the own timeline and its last value; made when work is first held
    std::atomic<uint64_t> number_{0};  // the value, with own_bit if it is on the own timeline
    std::atomic<bool> submitting_{false};
    std::atomic<bool> running_{false};
    std::atomic<bool> was_long_{false};    // the last wait was long
    std::atomic<bool> collecting_{false};  // a thread is in finish() or forget_cancelled()
    uint32_t rank_ = 0;
};

}  // namespace kp
