// The turn of a stream: only one thread at a time drives it, which means that it changes or submits it.
//
// record, clear, rerecord and submissions are refused in a second thread. A thread that only reads what
// drivers change ("looks") waits for the end of such a call. That wait is short unless operations with code
// of their own are being recorded; then the read is refused too, unless that code itself makes it.
//
// destroy() may come at any moment, and waits for its turn as a reader does. If the driving thread may be in
// foreign code, that thread releases the stream instead, once the code has returned.
#pragma once

#include "base/ranked.hpp"
#include "resource/object.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace kp {

class Turn {
    enum class Kind : uint8_t { none, driving, looking };
    struct End {
        void operator()(const Turn* turn) const noexcept {
            turn->kind_.store(Kind::none, std::memory_order_release);
        }
    };

public:
    explicit Turn(const Object& stream) noexcept : stream_(stream) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Ends the turn when it goes; null: there is nothing to end.
    using Taken = std::unique_ptr<const Turn, End>;
    // Waits until readers have finished; throws if another thread drives.
    [[nodiscard]] Taken drive() const {
        if (!take(Kind::driving)) [[unlikely]]
            wait_to_drive();
        return Taken(this);
    }
    // Null in foreign code that the stream calls: that code may read at any moment, because nothing changes
    // meanwhile.
    [[nodiscard]] Taken look() const;
    // Null if another thread has the turn.
    [[nodiscard]] Taken try_look() const noexcept { return Taken(take(Kind::looking) ? this : nullptr); }
    // For the stream's end; from here on, threads that want to drive wait. Null if the driving thread may be
    // in foreign code: that thread releases the stream then (left_to_release).
    [[nodiscard]] Taken take_for_release();

    // Streams that are built for one submission, all driven by this thread, form a ring: foreign code that
    // one of them runs must not change any.
    void join(Turn& other) noexcept { std::swap(next_, other.next_); }
    void leave() noexcept { next_ = this; }
    [[nodiscard]] bool is_alone() const noexcept { return next_ == this; }
    // True once, if the stream was destroyed while foreign code ran.
    [[nodiscard]] bool left_to_release() noexcept { return std::exchange(release_later_, false); }

    // Exists while foreign code runs. Releases the graph mutex meanwhile, because that code may take locks of
    // its own.
    class CallingOut {
    public:
        CallingOut(Turn& turn, std::unique_lock<RankedMutex>& graph);
        CallingOut(const CallingOut&) = delete;
        CallingOut& operator=(const CallingOut&) = delete;
        ~CallingOut();

    private:
        void mark(std::thread::id id) const noexcept;

        Turn& turn_;
        std::unique_lock<RankedMutex>& graph_;
    };
    [[nodiscard]] bool is_calling_out() const noexcept {
        return caller_.load(std::memory_order_relaxed) != std::thread::id();
    }
    // True if this thread is in foreign code that the stream, or one that is built with it, has called.
    [[nodiscard]] bool is_calling_out_here() const noexcept {
        return caller_.load(std::memory_order_acquire) == std::this_thread::get_id();
    }
    // The same for any stream.
    [[nodiscard]] static bool is_in_foreign_code() noexcept;

    [[noreturn]] void refuse_second_thread() const;

private:
    [[nodiscard]] bool take(Kind kind) const noexcept {
        Kind none = Kind::none;
        return kind_.compare_exchange_strong(none, kind, std::memory_order_acquire,
                                             std::memory_order_relaxed);
    }
    void wait_to_drive() const;

    const Object& stream_;
    mutable std::atomic<Kind> kind_{Kind::none};
    Turn* next_ = this;
    // The thread that drives the stream and is in foreign code. Both are set under the graph mutex.
    std::atomic<std::thread::id> caller_{};
    bool release_later_ = false;
};

}  // namespace kp
