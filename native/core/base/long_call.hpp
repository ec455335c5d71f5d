// What the core asks of its caller: to wrap work that may take long (the bindings, which hold the interpreter
// lock during short calls, release it meanwhile), and to warn the user. Do not call these while a native lock
// is held.
#pragma once

#include <functional>
#include <string>

namespace kp {

using LongCall = void (*)(const std::function<void()>& body);

// `how` must run its argument once, on the same thread. Call this before any other function of the core.
void set_long_call(LongCall how) noexcept;
void long_call(const std::function<void()>& body);

// A warning may throw: Python can make errors of them.
using Warning = void (*)(const std::string& text);
void set_warning(Warning how) noexcept;
void warn_user(const std::string& text);

}  // namespace kp
