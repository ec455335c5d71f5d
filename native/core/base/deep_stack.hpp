// Work on a thread of its own that has a large stack.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace kp {

// What the compiler can use of stack. Reserved addresses, not memory: pages are taken as they are touched.
inline constexpr unsigned long deep_stack_bytes = 512ul << 20;

// Calls `work` and returns when it is done; what it throws, this throws. If the system refuses a thread of that
// size (a limit on address space), a smaller one is tried, then the calling thread itself does the work, as it does if it has
// such a stack already.
void run_with_deep_stack(const std::function<void()>& work);

// Work that nobody needs to wait for: when the object goes first, the work goes on by itself, and what it throws is lost. So `work`
// owns all that it uses.
class DeepWork {
public:
    // Starts it. If the system refuses a thread, the calling thread does the work first.
    explicit DeepWork(std::function<void()> work);
    // Waits up to `nanoseconds`; whether it is done.
    [[nodiscard]] bool wait(uint64_t nanoseconds);
    // Of work that is done: throws what it threw.
    void rethrow() const;

private:
    struct Job;
    std::shared_ptr<Job> job_;
};

}  // namespace kp
