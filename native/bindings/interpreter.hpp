// The interpreter lock, in a process that may be ending.
//
// When the interpreter ends, its other threads may be anywhere. CPython 3.10 to 3.13 ends such a thread with
// pthread_exit as soon as it asks for the interpreter lock. glibc then unwinds the thread's stack; the
// unwinding runs destructors that need the lock, or reaches a noexcept function and ends the process with
// SIGABRT. So all our code takes the lock and runs Python code through this header. It stops the unwinding at
// its start and lets the thread sleep until the process is gone. The thread then holds no native lock,
// because our code never asks for the interpreter lock under one. (Python 3.14 itself lets such threads
// sleep.)
//
// Native code may still run in a driver or a compiler when the process ends, and the C library's exit
// handlers destroy the memory that it uses. The counter of such calls lets the process skip those handlers:
// see leave_at_exit.
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

// The number of native calls that run without the interpreter lock, or never get it back.
inline std::atomic<uint32_t> calls_under_way{0};

// Smaller copies take less time than releasing and taking the interpreter lock.
inline constexpr uint64_t release_lock_above = 64 * 1024;

// Counts a call by a thread that Python did not create.
class UnderWay {
public:
    UnderWay() noexcept { calls_under_way.fetch_add(1, std::memory_order_relaxed); }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;
    ~UnderWay() { calls_under_way.fetch_sub(1, std::memory_order_release); }
};

// Releases the interpreter lock and takes it again at the end of the scope. The only way to do so.
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
            park_thread();  // still counted: its submitted work may run on the driver's threads
        }
        calls_under_way.fetch_sub(1, std::memory_order_release);
    }

private:
    PyThreadState* state_ = nullptr;
};

[[nodiscard]] inline bool has_interpreter_lock() noexcept { return PyGILState_Check() != 0; }

// Runs `body` without the interpreter lock, if this thread has it.
template <typename Body>
void run_unlocked(const Body& body) {
    if (!has_interpreter_lock()) return body();
    const Unlocked unlocked;
    body();
}

// Runs Python code that may be interrupted by the interpreter's end. Needs the interpreter lock; exceptions
// propagate.
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

// Takes the interpreter lock on any thread, until the end of the scope. Requires an initialized interpreter.
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

// Runs Python's signal handlers if this is the main thread; throws their exceptions.
void check_signals();

// Called when the interpreter ends. If a native call is still running when the process ends, or the process
// is a fork's child with its parent's devices, the process skips the exit handlers of libraries: they would
// destroy memory in use, or wait for threads that the child does not have. The exit status stays; the C
// library's streams are flushed.
void leave_at_exit() noexcept;

// For calls that the caller may leave before their end: if it does, the end of the process takes care of
// them, also in a process that makes no Manager.
class Leaving {
public:
    Leaving() = default;
    Leaving(const Leaving&) = delete;
    Leaving& operator=(const Leaving&) = delete;
    ~Leaving() {
        if (!ended) leave_at_exit();
    }

    bool ended = false;
};

}  // namespace kp
