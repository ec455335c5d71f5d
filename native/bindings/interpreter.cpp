#include "interpreter.hpp"

#include "device/fork.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#ifdef __GLIBC__
#include <unistd.h>
#endif

namespace kp {

void park_thread() noexcept {
    calls_under_way.fetch_add(1, std::memory_order_relaxed);  // for good: see leave_at_exit
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

void check_signals() {
    run_python([] {
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    });
}

void leave_at_exit() noexcept {
#ifdef __GLIBC__
    // Handlers run in reverse order of registration. This one is registered last, so it runs before those of
    // drivers.
    on_exit(
        [](int status, void*) {
            if (calls_under_way.load(std::memory_order_acquire) == 0 && !forked_with_drivers()) return;
            std::fflush(nullptr);
            _exit(status);
        },
        nullptr);
#endif
}

}  // namespace kp
