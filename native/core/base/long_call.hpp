// What a caller of the core wants done around work that may take long: the bindings, which hold the interpreter lock in calls that
// are short as a rule, give it away meanwhile. Not while a native lock is held.
#pragma once

#include <functional>

namespace kp {

using LongCall = void (*)(const std::function<void()>& body);

// `how` runs its argument once, on the same thread. Before anything else of the core is called.
void set_long_call(LongCall how) noexcept;
void long_call(const std::function<void()>& body);

}  // namespace kp
