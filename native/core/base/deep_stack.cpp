#include "base/deep_stack.hpp"

#include "base/ranked.hpp"
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#ifdef _WIN32
#include <process.h>
#include <windows.h>
#else
#include <pthread.h>
#endif

namespace kp {

struct DeepWork::Job {
    std::function<void()> work;
    std::exception_ptr failure;
    RankedMutex mutex{LockRank::deep_work};
    std::condition_variable ended;
    bool done = false;

    void run() noexcept {
        std::exception_ptr thrown;
        try {
            work();
        } catch (...) {
            thrown = std::current_exception();
        }
        work = nullptr;  // its captures are destroyed on the thread that used them
        const std::lock_guard lock(mutex);
        failure = std::move(thrown);
        done = true;
        ended.notify_all();
    }
};

namespace {

// Handed to the thread, which frees it.
using Handed = std::function<void()>;

// True if this thread already has a deep stack.
thread_local bool is_deep = false;

void run_handed(void* handed) {
    const std::unique_ptr<Handed> run(static_cast<Handed*>(handed));
    is_deep = true;
    (*run)();
}

#ifdef _WIN32

unsigned __stdcall thread_main(void* handed) {
    run_handed(handed);
    return 0;
}

bool start_thread(std::unique_ptr<Handed>& run, unsigned long bytes) {
    const auto handle =
        reinterpret_cast<HANDLE>(_beginthreadex(nullptr, static_cast<unsigned>(bytes), thread_main, run.get(),
                                                STACK_SIZE_PARAM_IS_A_RESERVATION, nullptr));
    if (!handle) return false;
    (void)run.release();
    CloseHandle(handle);
    return true;
}

#else

void* thread_main(void* handed) {
    run_handed(handed);
    return nullptr;
}

bool start_thread(std::unique_ptr<Handed>& run, unsigned long bytes) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_t thread;
    const bool started = pthread_attr_setstacksize(&attributes, bytes) == 0 &&
                         pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
                         pthread_create(&thread, &attributes, thread_main, run.get()) == 0;
    pthread_attr_destroy(&attributes);
    if (started) (void)run.release();
    return started;
}

#endif

}  // namespace

DeepWork::DeepWork(std::function<void()> work) : job_(std::make_shared<Job>()) {
    job_->work = std::move(work);
    auto run = std::make_unique<Handed>([job = job_] { job->run(); });
    if (!start_thread(run, deep_stack_bytes) && !start_thread(run, deep_stack_bytes / 8)) (*run)();
}

bool DeepWork::wait(uint64_t nanoseconds) {
    std::unique_lock lock(job_->mutex);
    return wait_ranked(lock, [&](auto& native) {
        return job_->ended.wait_for(native, std::chrono::nanoseconds(nanoseconds),
                                    [this] { return job_->done; });
    });
}

void DeepWork::rethrow() const {
    if (job_->failure) std::rethrow_exception(job_->failure);
}

void run_with_deep_stack(const std::function<void()>& work) {
    if (is_deep) {
        work();
        return;
    }
    DeepWork deep([&work] { work(); });
    while (!deep.wait(UINT64_C(1'000'000'000))) {}
    deep.rethrow();
}

}  // namespace kp
