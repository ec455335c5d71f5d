// A timeline semaphore: a counter that the device and the host raise, and that both can wait for.
//
// Beside the driver's counter stands what the driver does not know: which values are *promised* (raised
// already, or by work that was handed to a queue, so that waiting for them ends), and which will never come
// because what should have raised them failed.
//
// The synchronization validation of layers before 1.3.296 keeps a record of each counter behind one lock. A
// thread that sees a value in vkWaitSemaphores or vkGetSemaphoreCounterValue before the thread that raises it
// has left vkSignalSemaphore then waits under that lock for the other one, which waits for the lock: both
// stand for 10 s (`./dev stall`). So a counter that the host raises is never looked at while it is being
// raised (`raising_`), and it is waited for with two entries and "any of them", after which the layer
// consults no record.
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

// What the timelines of one device share.
struct TimelineParts {
    DeviceContext& context;
    Deliveries& deliveries;
    WaitChoice& waits;
};

// Whose counter a timeline is: a user's semaphore.
class TimelineOwner {
public:
    [[nodiscard]] virtual Timeline& timeline() noexcept = 0;
    // "semaphore 'frames'": how messages call it.
    [[nodiscard]] virtual std::string timeline_label() const = 0;
    // Work that waits for it, or signals it, was submitted: it must not go before that ends.
    virtual void note_use(Point end) = 0;

protected:
    TimelineOwner() = default;
    ~TimelineOwner() = default;
};

class Timeline {
public:
    // `shared`: the host raises it while threads wait for it, and it may be released meanwhile.
    Timeline(const TimelineParts& parts, uint64_t initial, const char* what, bool shared = false);
    Timeline(const Timeline&) = delete;
    Timeline& operator=(const Timeline&) = delete;
    ~Timeline();

    [[nodiscard]] DeviceContext& context() const noexcept { return context_; }
    // The user's semaphore that it is the counter of; null for a queue's and a sequence's.
    [[nodiscard]] const TimelineOwner* owner() const noexcept { return owner_; }
    void set_owner(const TimelineOwner& owner) noexcept { owner_ = &owner; }
    [[nodiscard]] VkSemaphore semaphore() const noexcept { return semaphore_; }

    // Whether `value` is reached. One call into the driver at most. Throws on a lost device, and what made
    // the value fail.
    [[nodiscard]] bool reached(uint64_t value);
    // Waits up to `nanoseconds`; false on time-out. Throws as reached() does. `was_long`: whether the last
    // wait for such work was long, so that looking before sleeping is of no use; says so of this one.
    [[nodiscard]] bool wait(uint64_t value, uint64_t nanoseconds, std::atomic<bool>* was_long = nullptr);
    // Waits however long it takes. Throws as reached() does.
    void wait_until(uint64_t value);
    // Whether it is known to be reached, without asking the driver.
    [[nodiscard]] bool known_reached(uint64_t value) const noexcept {
        return completed_.load(std::memory_order_acquire) >= value;
    }
    // Whether nothing is to be waited for any more: reached, failed, or the device is lost.
    [[nodiscard]] bool passed(uint64_t value) noexcept;
    // The counter now. Throws on a lost device.
    [[nodiscard]] uint64_t query();

    // The highest value that is raised already or by work that a queue has.
    [[nodiscard]] uint64_t promised() const noexcept { return promised_.load(std::memory_order_acquire); }
    void promise(uint64_t value) noexcept;
    // Raises the counter from the host. `value` is above every promised one; the caller sees to that.
    void raise(uint64_t value);
    // The values from `first` to `last` will not come; whoever asks for one gets `error`.
    void fail(uint64_t first, uint64_t last, const Error& error);
    [[nodiscard]] bool failed(uint64_t value) const noexcept;
    [[nodiscard]] bool has_failures() const noexcept { return has_failures_.load(std::memory_order_acquire); }
    // Throws what made `value` fail, if something did.
    void require_sound(uint64_t value) const;

    // Of a timeline that tells the ends of held work: the queue's point that a submission raises beside
    // `value`. place() gives it, for the last value that it was noted for, and the point of this timeline for
    // others.
    void note_place(uint64_t value, Point place);
    [[nodiscard]] Point place(uint64_t value);
    [[nodiscard]] bool has_places() const noexcept { return has_places_.load(std::memory_order_acquire); }

    // What is promised has come, and nothing else will: whoever asks for more gets `error`.
    void end(const Error& error);
    // Gives the semaphore of one that was ended away, to be destroyed when the device no longer uses it; what
    // is known of it stays. Waits until no thread is inside the driver with it.
    [[nodiscard]] VkSemaphore release() noexcept;
    // What to hold while inside the driver with it.
    [[nodiscard]] std::shared_lock<RankedSharedMutex> use() {
        return shared_ ? std::shared_lock(life_) : std::shared_lock<RankedSharedMutex>();
    }

private:
    struct Failure {
        uint64_t first = 0;
        uint64_t last = 0;
        Error error;
    };

    // The driver said so: brings what is due to the host before anybody is told.
    void note_completed(uint64_t value);
    // Looks at the counter until it is there, for so long.
    [[nodiscard]] bool look(uint64_t value, uint64_t nanoseconds);
    [[nodiscard]] uint64_t query_shared();
    [[nodiscard]] VkResult wait_in_driver(uint64_t value, uint64_t nanoseconds) const;
    [[noreturn]] void fail_call(VkResult result, const char* call) const;

    DeviceContext& context_;
    Deliveries& deliveries_;
    WaitChoice& waits_;
    const bool shared_;
    const TimelineOwner* owner_ = nullptr;
    RankedSharedMutex life_{LockRank::timeline_life};
    RankedMutex raising_{
        LockRank::
            timeline_raising};  // of a shared one: held inside vkSignalSemaphore, and to look at the counter
    VkSemaphore semaphore_ = VK_NULL_HANDLE;
    std::atomic<uint64_t> promised_{0};
    std::atomic<uint64_t> completed_{0};  // what is known; the semaphore may be further
    std::atomic<bool> has_failures_{false};
    std::atomic<bool> has_places_{false};
    mutable RankedMutex mutex_{LockRank::timeline_state};
    std::vector<Failure> failures_;
    uint64_t placed_ = 0;  // under the mutex, with:
    Point place_;
};

}  // namespace kp
