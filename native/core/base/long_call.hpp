// Lets the core's caller wrap work that may take long: the bindings, which hold the interpreter lock during
// short calls, release it meanwhile. Do not call it while a native lock is held.
#pragma once

#include <functional>

namespace kp {

using LongCall = void (*)(const std::function<void()>& body);

// `how` must run its argument once, on the same thread. Call this before any other function of the core.
void set_long_call(LongCall how) noexcept;
void long_call(const std::function<void()>& body);

}  // namespace kp
