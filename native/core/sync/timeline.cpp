#include "sync/timeline.hpp"

#include "adapter/context.hpp"
#include "sync/delivery.hpp"
#include "sync/wait_choice.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <type_traits>
#include <utility>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace kp {

namespace {

void raise_to(std::atomic<uint64_t>& counter, uint64_t value) noexcept {
    uint64_t known = counter.load(std::memory_order_relaxed);
    while (known < value && !counter.compare_exchange_weak(known, value, std::memory_order_acq_rel)) {}
}

void relax() noexcept {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Spins on the counter that `query` gives for up to `nanoseconds`, until `value` is reached.
template <typename Query>
bool look(const Query& query, uint64_t value, uint64_t nanoseconds) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::nanoseconds(nanoseconds);
    do {
        if (query() >= value) return true;
        for (int i = 0; i < 32; ++i) relax();
    } while (Clock::now() < end);
    return false;
}

// Queries the counter, and sleeps in between for an eighth of the time that it has waited so far.
template <typename Query>
bool poll(const Query& query, uint64_t value, uint64_t nanoseconds) {
    using Clock = std::chrono::steady_clock;
    constexpr Clock::duration awake = std::chrono::microseconds(100), longest = std::chrono::milliseconds(1);
    const auto begin = Clock::now();
    const Clock::duration limit(std::min<uint64_t>(nanoseconds, INT64_MAX / 2));
    while (query() < value) {
        const auto waited = Clock::now() - begin;
        if (waited >= limit) return false;
        if (waited < awake)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::min({waited / 8, longest, limit - waited}));
    }
    return true;
}

}  // namespace

Timeline::Timeline(const TimelineParts& parts, uint64_t initial, const char* what, bool shared,
                   const void* next)
    : context_(parts.context),
      deliveries_(parts.deliveries),
      waits_(parts.waits),
      shared_(shared),
      promised_(initial),
      completed_(initial) {
    VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    type.pNext = next;
    type.initialValue = initial;
    VkSemaphoreCreateInfo create{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    create.pNext = &type;
    check_vk(context_.vk().vkCreateSemaphore(context_.handle(), &create, nullptr, &semaphore_),
             "vkCreateSemaphore", what);
}

Timeline::~Timeline() {
    if (semaphore_ != VK_NULL_HANDLE)
        context_.vk().vkDestroySemaphore(context_.handle(), semaphore_, nullptr);
}

VkSemaphore Timeline::release() noexcept {
    const std::unique_lock lock(life_);
    return std::exchange(semaphore_, VK_NULL_HANDLE);
}

void Timeline::note_completed(uint64_t value) {
    if (deliveries_.any() && value > completed_.load(std::memory_order_relaxed)) [[unlikely]]
        deliveries_.receive(semaphore_, value);
    raise_to(completed_, value);
}

void Timeline::promise(uint64_t value) noexcept { raise_to(promised_, value); }

void Timeline::fail_call(VkResult result, const char* call) const {
    if (result != VK_ERROR_DEVICE_LOST) throw_vk(result, call, "a timeline");
    context_.throw_lost(call, "a timeline");
}

void Timeline::require_sound(uint64_t value) const {
    if (!has_failures_.load(std::memory_order_acquire)) [[likely]]
        return;
    const std::lock_guard lock(mutex_);
    for (const Failure& failure : failures_)
        if (failure.first <= value && value <= failure.last) throw failure.error;
}

bool Timeline::failed(uint64_t value) const noexcept {
    if (!has_failures_.load(std::memory_order_acquire)) [[likely]]
        return false;
    const std::lock_guard lock(mutex_);
    return std::any_of(failures_.begin(), failures_.end(), [value](const Failure& failure) {
        return failure.first <= value && value <= failure.last;
    });
}

uint64_t Timeline::query() {
    context_.require_own();
    if (shared_) [[unlikely]] {
        const auto used = use();
        return query_used();
    }
    uint64_t now = 0;
    const VkResult result = context_.vk().vkGetSemaphoreCounterValue(context_.handle(), semaphore_, &now);
    if (result != VK_SUCCESS) [[unlikely]]
        fail_call(result, "vkGetSemaphoreCounterValue");
    note_completed(now);
    return now;
}

uint64_t Timeline::query_used() {
    if (semaphore_ == VK_NULL_HANDLE) return completed_.load(std::memory_order_acquire);
    uint64_t now = 0;
    VkResult result = VK_SUCCESS;
    {
        const std::lock_guard apart(raising_);
        result = context_.vk().vkGetSemaphoreCounterValue(context_.handle(), semaphore_, &now);
    }
    if (result != VK_SUCCESS) [[unlikely]]
        fail_call(result, "vkGetSemaphoreCounterValue");
    note_completed(now);
    return now;
}

bool Timeline::reached(uint64_t value) {
    require_sound(value);
    if (completed_.load(std::memory_order_acquire) >= value) return true;
    return query() >= value;
}

// On a shared timeline, it waits for "any of them" with the counter given twice, see timeline.hpp.
VkResult Timeline::wait_in_driver(uint64_t value, uint64_t nanoseconds) const {
    const VkSemaphore semaphores[] = {semaphore_, semaphore_};
    const uint64_t values[] = {value, value};
    VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.flags = VK_SEMAPHORE_WAIT_ANY_BIT;
    info.semaphoreCount = 2;
    info.pSemaphores = semaphores;
    info.pValues = values;
    return context_.vk().vkWaitSemaphores(context_.handle(), &info, nanoseconds);
}

bool Timeline::wait(uint64_t value, uint64_t nanoseconds, std::atomic<bool>* was_long) {
    require_sound(value);
    if (completed_.load(std::memory_order_acquire) >= value) return true;
    context_.require_own();
    const auto wait_on = [&](auto shared) {
        using Clock = std::chrono::steady_clock;
        // On a shared timeline, use() is held already: a thread must not take the lock twice.
        const auto counter = [this] {
            if constexpr (decltype(shared)::value)
                return query_used();
            else
                return query();
        };
        const auto begin = Clock::now();
        WaitChoice& choice = waits_;
        const bool known_long =
            was_long && was_long->load(std::memory_order_relaxed) && choice.mode() != WaitMode::spin;
        const bool spins = !known_long && choice.next();
        bool done = spins && look(counter, value, std::min(nanoseconds, WaitChoice::spin_nanoseconds));
        if (!done) {
            VkResult result = VK_SUCCESS;
            if constexpr (shared) {
                // lavapipe would spin in that call, as in Waiter, and take a core from the shaders.
                if (context_.physical().v12.driverID == VK_DRIVER_ID_MESA_LLVMPIPE)
                    result = poll(counter, value, nanoseconds) ? VK_SUCCESS : VK_TIMEOUT;
                else
                    result = wait_in_driver(value, nanoseconds);
            } else {
                VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
                info.semaphoreCount = 1;
                info.pSemaphores = &semaphore_;
                info.pValues = &value;
                result = context_.vk().vkWaitSemaphores(context_.handle(), &info, nanoseconds);
            }
            if (result != VK_SUCCESS && result != VK_TIMEOUT) [[unlikely]]
                fail_call(result, "vkWaitSemaphores");
            done = result == VK_SUCCESS;
        }
        const auto took = static_cast<uint64_t>(
            std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count());
        if (!known_long) choice.note(spins, took);
        if (was_long) was_long->store(took > WaitChoice::short_nanoseconds, std::memory_order_relaxed);
        if constexpr (shared) {
            // Query the counter, so that a validation layer learns of the end of the work that raised it.
            if (done) done = counter() >= value;
        } else {
            if (done) note_completed(value);
        }
        // A failed value is raised as well, so that no thread waits for it.
        require_sound(value);
        return done;
    };
    if (!shared_) [[likely]]
        return wait_on(std::false_type{});
    const auto used = use();
    if (semaphore_ == VK_NULL_HANDLE) {
        require_sound(value);
        return false;
    }
    return wait_on(std::true_type{});
}

void Timeline::wait_until(uint64_t value) {
    // Wait in slices: drivers differ in their reading of an infinite time-out, and a failure must end the
    // wait too.
    while (!wait(value, UINT64_C(50'000'000))) {}
}

bool Timeline::passed(uint64_t value) noexcept {
    if (completed_.load(std::memory_order_acquire) >= value || failed(value)) return true;
    try {
        return query() >= value;
    } catch (const Error& error) {
        // A lost device finishes no work and uses no memory any more. Any other error is an error of the
        // query: query again later.
        return error.kind() == ErrorKind::device_lost;
    } catch (...) {
        return false;  // out of host memory during the delivery of results: query again later
    }
}

void Timeline::raise(uint64_t value) {
    context_.require_own();
    const auto used = use();
    if (semaphore_ == VK_NULL_HANDLE) require_sound(value);
    VkSemaphoreSignalInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO};
    info.semaphore = semaphore_;
    info.value = value;
    VkResult result = VK_SUCCESS;
    {
        const std::lock_guard apart(raising_);
        result = context_.vk().vkSignalSemaphore(context_.handle(), &info);
    }
    if (result != VK_SUCCESS) fail_call(result, "vkSignalSemaphore");
    promise(value);
    raise_to(completed_, value);  // raised by the host: this gives no news of the device's work
}

void Timeline::fail(uint64_t first, uint64_t last, const Error& error) {
    const std::lock_guard lock(mutex_);
    failures_.push_back({first, last, error});
    has_failures_.store(true, std::memory_order_release);
}

void Timeline::note_place(uint64_t value, Point place) {
    const std::lock_guard lock(mutex_);
    placed_ = value;
    place_ = place;
    has_places_.store(true, std::memory_order_release);
}

Point Timeline::place(uint64_t value) {
    if (has_places()) [[unlikely]] {
        const std::lock_guard lock(mutex_);
        if (placed_ == value) return place_;
    }
    return {this, value};
}

void Timeline::end(const Error& error) {
    raise_to(completed_, promised());
    fail(promised() + 1, UINT64_MAX, error);
}

}  // namespace kp
