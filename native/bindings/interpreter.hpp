// The interpreter lock, in a process that may be ending.
//
// When the interpreter ends, threads that are not its main one may be anywhere. CPython (3.10 to 3.13) ends such a thread with
// pthread_exit as soon as it asks for the interpreter lock. glibc does that by unwinding the thread's stack, and the unwinding
// runs destructors that need the lock, or meets a function that is noexcept and ends the process with SIGABRT. So every place
// where our code asks for the lock, or runs Python code, goes through this header: it stops the unwinding where it begins, and
// the thread sleeps until the process is gone. It holds no native lock there, since ours are never held while asking for that one.
// (Python 3.14 lets such threads sleep by itself.)
//
// Native code that needs no interpreter may still be running when the process ends, in a driver or in a compiler, whose memory the C
// library's exit handlers destroy. The counter of such calls lets the process skip those handlers: see leave_at_exit.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <utility>

#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

namespace kp {

namespace py = pybind11;

// Sleeps until the process is gone.
[[noreturn]] void park_thread() noexcept;

// How many native calls run without the interpreter lock, or never get it back.
inline std::atomic<uint32_t> calls_under_way{0};

// Counts a call by a thread that is not Python's.
class UnderWay {
public:
    UnderWay() noexcept { calls_under_way.fetch_add(1, std::memory_order_relaxed); }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;
    ~UnderWay() { calls_under_way.fetch_sub(1, std::memory_order_release); }
};

// Lets go of the interpreter lock, and takes it again at the end of the scope. The one way to do so.
class Unlocked {
public:
    Unlocked() noexcept {
        calls_under_way.fetch_add(1, std::memory_order_relaxed);
        state_ = PyEval_SaveThread();
    }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;
    ~Unlocked() {
        try {
            PyEval_RestoreThread(state_);
        } catch (...) {
            park_thread();  // still counted: what it submitted may run on the driver's threads
        }
        calls_under_way.fetch_sub(1, std::memory_order_release);
    }

private:
    PyThreadState* state_ = nullptr;
};

// Runs `body`, without the interpreter lock where this thread has it.
template <typename Body>
void run_unlocked(const Body& body) {
    if (!PyGILState_Check()) return body();
    const Unlocked unlocked;
    body();
}

// Runs Python code that any thread may be in when the interpreter ends. With the interpreter lock; what it throws goes on.
template <typename Code>
decltype(auto) run_python(Code&& code) {
#ifdef __GLIBCXX__
    try {
        return std::forward<Code>(code)();
    } catch (abi::__forced_unwind&) {
        park_thread();
    }
#else
    return std::forward<Code>(code)();
#endif
}

// Takes the interpreter lock, wherever the thread comes from, until the end of the scope. Only where the interpreter is
// initialized.
class Locked {
public:
    Locked() noexcept {
        try {
            state_ = PyGILState_Ensure();
        } catch (...) {
            park_thread();
        }
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    ~Locked() {
        run_python([this] { PyGILState_Release(state_); });
    }

private:
    PyGILState_STATE state_{};
};

// Lets Python's signal handlers run, where this is the thread for them; throws what they raise.
void check_signals();

// Called when the interpreter ends. When the process ends after that, and a native call is still under way, or the process is a
// fork's child that has its parent's devices, it ends without the exit handlers of libraries: they would destroy what that call
// uses, or wait for threads that the child does not have. The exit status stays; the C library's streams are flushed.
void leave_at_exit() noexcept;

}  // namespace kp
