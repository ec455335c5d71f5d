// Locks that check their order.
//
// If two threads take the same two locks in different orders, they wait for each other for ever, perhaps once
// in a thousand runs. So each mutex of the core has a rank (lock_ranks.hpp), and a thread takes locks only in
// the order of their ranks. If locks are checked (KP_CHECK_LOCKS: debug builds, `./dev tsan`, `./dev asan`),
// each thread keeps a list of the locks that it holds. A lock out of order is then reported the first time
// that one thread takes it so, even if no other thread waits. Otherwise a Ranked<Mutex> is just the mutex.
//
// Two cases are safe and allowed: try_lock(), which does not wait, and a shared lock together with another
// shared lock of the same rank (the callers order these among themselves).
#pragma once

#include "base/lock_ranks.hpp"

#include <mutex>
#include <shared_mutex>

namespace kp {

#ifdef KP_CHECK_LOCKS
inline constexpr bool locks_are_checked = true;
#else
inline constexpr bool locks_are_checked = false;
#endif

namespace lock_order {

// Checks the order and locks nothing. `shared`: the lock will be taken shared.
void before_lock(const void* mutex, LockRank rank, bool shared);
void taken(const void* mutex, LockRank rank, bool shared) noexcept;
void released(const void* mutex) noexcept;

// The reaction to a wrong order: prints the sentence and ends the program, unless a test has set another one.
using Report = void (*)(const char* sentence);
Report set_report(Report report) noexcept;

}  // namespace lock_order

template <class Mutex, bool checked = locks_are_checked>
class Ranked {
public:
    explicit Ranked(LockRank rank) noexcept : rank_(rank) {}
    Ranked(const Ranked&) = delete;
    Ranked& operator=(const Ranked&) = delete;

    void lock() {
        lock_order::before_lock(this, rank_, false);
        mutex_.lock();
        lock_order::taken(this, rank_, false);
    }
    bool try_lock() { return noted(mutex_.try_lock()); }
    template <class Duration>
    bool try_lock_for(const Duration& duration) {
        lock_order::before_lock(this, rank_, false);
        return noted(mutex_.try_lock_for(duration));
    }
    void unlock() {
        lock_order::released(this);
        mutex_.unlock();
    }
    void lock_shared() {
        lock_order::before_lock(this, rank_, true);
        mutex_.lock_shared();
        lock_order::taken(this, rank_, true);
    }
    void unlock_shared() {
        lock_order::released(this);
        mutex_.unlock_shared();
    }
    // The mutex itself, unchecked: for fork(), which takes the locks of all devices, and for condition
    // variables.
    Mutex& unranked() noexcept { return mutex_; }

private:
    bool noted(bool locked) {
        if (locked) lock_order::taken(this, rank_, false);
        return locked;
    }

    const LockRank rank_;
    Mutex mutex_;
};

// Not checked: the mutex itself.
template <class Mutex>
class Ranked<Mutex, false> : public Mutex {
public:
    explicit Ranked(LockRank) noexcept {}
    Mutex& unranked() noexcept { return *this; }
};

using RankedMutex = Ranked<std::mutex>;
using RankedSharedMutex = Ranked<std::shared_mutex>;

// Calls `wait` with the lock in the form that std::condition_variable needs. The lock counts as held
// meanwhile.
template <class Lock, class Wait>
auto wait_ranked(Lock& lock, const Wait& wait) {
    struct Native {
        std::unique_lock<std::mutex> lock;
        ~Native() { (void)lock.release(); }
    } native{std::unique_lock<std::mutex>(lock.mutex()->unranked(), std::adopt_lock)};
    return wait(native.lock);
}

}  // namespace kp
