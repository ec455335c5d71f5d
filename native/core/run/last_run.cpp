#include "run/last_run.hpp"

#include "device/device.hpp"

namespace kp {

void LastRun::prepare_own(Device& device) {
    if (!own_.timeline) own_ = device.take_timeline();
}

FreshnessRecord::Run LastRun::since(uint64_t number) const noexcept {
    const uint64_t last = this->number();
    if (last == 0 || last == number) return {};
    const Point point = end_of(last);
    return {point.timeline->place(point.value), rank_};
}

bool LastRun::is_working() const noexcept {
    if (!is_running()) return false;
    const uint64_t last = number();
    const Point point = end_of(last);
    if (!point.timeline || point.timeline->failed(point.value)) return true;
    // No other object queries the own timeline.
    return !((last & own_bit) ? point.timeline->passed(point.value)
                              : point.timeline->known_reached(point.value));
}

bool LastRun::wait(uint64_t nanoseconds) {
    const uint64_t last = number();
    const Point point = end_of(last);
    if (!point.timeline)
        return true;  // nothing was submitted, or it was cancelled and another thread was told
    if (!is_running() && !point.timeline->failed(point.value)) return true;
    try {
        if (!point.timeline->wait(point.value, nanoseconds, &was_long_)) return false;
    } catch (const Error&) {
        if (point.timeline->failed(point.value)) forget_cancelled();
        throw;
    }
    finish(last);
    return true;
}

// Nothing of the submission ran, and a thread was told: from here on, the stream behaves as if it had not
// been submitted.
void LastRun::forget_cancelled() noexcept {
    while (collecting_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    // Another thread may have been told meanwhile and submitted again.
    uint64_t last = number();
    const bool ran = is_running();
    if (const Point point = end_of(last); point.timeline && point.timeline->failed(point.value))
        if (number_.compare_exchange_strong(last, 0, std::memory_order_acq_rel) && ran)
            running_.store(false, std::memory_order_release);
    collecting_.store(false, std::memory_order_release);
}

}  // namespace kp
