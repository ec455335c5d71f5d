// Runs a function on a thread of its own that has a large stack.
#pragma once

#include <functional>

namespace kp {

// What the compiler can use of stack. Reserved addresses, not memory: pages are taken as they are touched.
inline constexpr unsigned long deep_stack_bytes = 512ul << 20;

// Calls `work` and returns when it is done; what it throws, this throws. Where the system refuses a thread of that
// size (a limit on address space), a smaller one is tried, then the calling thread itself does the work.
void run_with_deep_stack(const std::function<void()>& work);

}  // namespace kp
