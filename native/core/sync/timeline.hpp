// A timeline semaphore: a counter that the device and the host raise, and that both can wait for.
//
// Beside the driver's counter, this class keeps facts that the driver does not know: which values are
// *promised* (raised already, or by work that was handed to a queue, so that a wait for them ends), and
// which values will never come because the work that should have raised them failed.
//
// The synchronization validation of layers before 1.3.296 keeps a record of each counter behind one lock.
// Suppose that a thread sees a value in vkWaitSemaphores or vkGetSemaphoreCounterValue before the thread
// that raises it has left vkSignalSemaphore. It then waits under that lock for the other thread, which
// waits for the lock: both stand for 10 s (`./dev stall`). So a counter that the host raises is never
// queried while it is being raised (`raising_`), and waits for it pass two entries and "any of them", after
// which the layer consults no record.
#pragma once

#include "base/error.hpp"
#include "base/ranked.hpp"
#include "base/vulkan.hpp"
#include "sync/point.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

namespace kp {

class Deliveries;
class DeviceContext;
class Timeline;
class WaitChoice;

// The parts that the timelines of one device share.
struct TimelineParts {
    DeviceContext& context;
    Deliveries& deliveries;
    WaitChoice& waits;
};

// The owner of a timeline's counter: a user's semaphore.
class TimelineOwner {
public:
    [[nodiscard]] virtual Timeline& timeline() noexcept = 0;
    // Its name in messages: "semaphore 'frames'".
    [[nodiscard]] virtual std::string timeline_label() const = 0;
    // Work that waits for it or signals it was submitted: keeps it alive until `end`.
    virtual void note_use(Point end) = 0;

protected:
    TimelineOwner() = default;
    ~TimelineOwner() = default;
};

class Timeline {
public:
    // `shared`: the host raises it while threads wait for it, and it may be released meanwhile. `next`: more
    // structs of its creation.
    Timeline(const TimelineParts& parts, uint64_t initial, const char* what, bool shared = false,
             const void* next = nullptr);
    Timeline(const Timeline&) = delete;
    Timeline& operator=(const Timeline&) = delete;
    ~Timeline();

    [[nodiscard]] DeviceContext& context() const noexcept { return context_; }
    // The user's semaphore that owns this counter; null for the timeline of a queue or a sequence.
    [[nodiscard]] const TimelineOwner* owner() const noexcept { return owner_; }
    void set_owner(const TimelineOwner& owner) noexcept { owner_ = &owner; }
    // Whether only submitted work can raise it, because the host has let go of it. Under the gate's lock.
    [[nodiscard]] bool abandoned() const noexcept { return abandoned_; }
    void abandon() noexcept { abandoned_ = true; }
    [[nodiscard]] VkSemaphore semaphore() const noexcept { return semaphore_; }

    // True if `value` is reached. Makes at most one driver call. Throws if the device is lost, and rethrows
    // the error that made the value fail.
    [[nodiscard]] bool reached(uint64_t value);
    // Waits up to `nanoseconds`; returns false on time-out. Throws as reached() does. `was_long`: in: true
    // if the last wait for such work was long, so that spinning before sleeping is of no use; out: the same
    // for this wait.
    [[nodiscard]] bool wait(uint64_t value, uint64_t nanoseconds, std::atomic<bool>* was_long = nullptr);
    // Waits without a time limit. Throws as reached() does.
    void wait_until(uint64_t value);
    // True if `value` is known to be reached, without asking the driver.
    [[nodiscard]] bool known_reached(uint64_t value) const noexcept {
        return completed_.load(std::memory_order_acquire) >= value;
    }
    // The highest value that is known to be reached.
    [[nodiscard]] uint64_t known() const noexcept { return completed_.load(std::memory_order_acquire); }
    // True if waiting is over: the value is reached or failed, or the device is lost.
    [[nodiscard]] bool passed(uint64_t value) noexcept;
    // The counter now. Throws if the device is lost.
    [[nodiscard]] uint64_t query();

    // The highest value that is raised already, or that work in a queue will raise.
    [[nodiscard]] uint64_t promised() const noexcept { return promised_.load(std::memory_order_acquire); }
    void promise(uint64_t value) noexcept;
    // Raises the counter from the host. The caller ensures that `value` is above every promised one.
    void raise(uint64_t value);
    // The values from `first` to `last` will not come. Later queries for one of them throw `error`.
    void fail(uint64_t first, uint64_t last, const Error& error);
    [[nodiscard]] bool failed(uint64_t value) const noexcept;
    [[nodiscard]] bool has_failures() const noexcept { return has_failures_.load(std::memory_order_acquire); }
    // Throws the error that made `value` fail, if it failed.
    void require_sound(uint64_t value) const;

    // For a timeline that marks the ends of held work: notes the queue's point that a submission raises
    // beside `value`. place() returns that point for the last noted value, and the point of this timeline
    // for other values.
    void note_place(uint64_t value, Point place);
    [[nodiscard]] Point place(uint64_t value);
    [[nodiscard]] bool has_places() const noexcept { return has_places_.load(std::memory_order_acquire); }

    // All promised values have come, and no other ones will. Queries for higher values throw `error`.
    void end(const Error& error);
    // Gives the semaphore of an ended timeline away, to be destroyed when the device no longer uses it; the
    // known values and failures stay. Waits until no thread is inside the driver with it.
    [[nodiscard]] VkSemaphore release() noexcept;
    // Hold the returned lock while inside the driver with the semaphore.
    [[nodiscard]] std::shared_lock<RankedSharedMutex> use() {
        return shared_ ? std::shared_lock(life_) : std::shared_lock<RankedSharedMutex>();
    }

private:
    struct Failure {
        uint64_t first = 0;
        uint64_t last = 0;
        Error error;
    };

    // The driver has reported `value`: brings due results to the host before any thread learns of it.
    void note_completed(uint64_t value);
    // The counter of a shared timeline. The caller holds use().
    [[nodiscard]] uint64_t query_used();
    [[nodiscard]] VkResult wait_in_driver(uint64_t value, uint64_t nanoseconds) const;
    [[noreturn]] void fail_call(VkResult result, const char* call) const;

    DeviceContext& context_;
    Deliveries& deliveries_;
    WaitChoice& waits_;
    const bool shared_;
    const TimelineOwner* owner_ = nullptr;
    bool abandoned_ = false;
    RankedSharedMutex life_{LockRank::timeline_life};
    RankedMutex raising_{LockRank::timeline_raising};  // of a shared timeline: held inside vkSignalSemaphore
                                                       // and counter queries
    VkSemaphore semaphore_ = VK_NULL_HANDLE;
    std::atomic<uint64_t> promised_{0};
    std::atomic<uint64_t> completed_{0};  // the known value; the semaphore may be further
    std::atomic<bool> has_failures_{false};
    std::atomic<bool> has_places_{false};
    mutable RankedMutex mutex_{LockRank::timeline_state};
    std::vector<Failure> failures_;
    uint64_t placed_ = 0;  // under the mutex, with:
    Point place_;
};

}  // namespace kp
