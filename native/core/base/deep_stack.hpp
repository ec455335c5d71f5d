// Runs work on a separate thread with a large stack.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace kp {

// The stack available to the compiler. It reserves addresses, not memory: pages are allocated when touched.
inline constexpr unsigned long deep_stack_bytes = 512ul << 20;

// Calls `work` and returns when it is done; passes on its exceptions. If the system refuses a thread of that
// size (a limit on address space), a smaller one is tried, then the calling thread does the work. A thread
// that already has such a stack does the work itself.
void run_with_deep_stack(const std::function<void()>& work);

// Work that does not need a waiter: if this object is destroyed first, the work continues by itself and its
// exceptions are lost. So `work` must own everything that it uses.
class DeepWork {
public:
    // Starts it. If the system refuses a thread, the calling thread does the work first.
    explicit DeepWork(std::function<void()> work);
    // Waits up to `nanoseconds`; returns true if it is done.
    [[nodiscard]] bool wait(uint64_t nanoseconds);
    // Call it after the work is done: throws the work's exception, if any.
    void rethrow() const;

private:
    struct Job;
    std::shared_ptr<Job> job_;
};

}  // namespace kp
