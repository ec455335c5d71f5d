#include "deep_stack.hpp"

#include <exception>

#ifdef _WIN32
#include <process.h>
#include <windows.h>
#else
#include <pthread.h>
#endif

namespace kp {
namespace {

struct Job {
    const std::function<void()>& work;
    std::exception_ptr failure;

    void run() noexcept {
        try {
            work();
        } catch (...) {
            failure = std::current_exception();
        }
    }
};

#ifdef _WIN32

unsigned __stdcall thread_main(void* job) {
    static_cast<Job*>(job)->run();
    return 0;
}

bool run_on_thread(Job& job, unsigned long bytes) {
    const auto handle =
        reinterpret_cast<HANDLE>(_beginthreadex(nullptr, static_cast<unsigned>(bytes), thread_main, &job,
                                                STACK_SIZE_PARAM_IS_A_RESERVATION, nullptr));
    if (!handle) return false;
    WaitForSingleObject(handle, INFINITE);
    CloseHandle(handle);
    return true;
}

#else

void* thread_main(void* job) {
    static_cast<Job*>(job)->run();
    return nullptr;
}

bool run_on_thread(Job& job, unsigned long bytes) {
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_t thread;
    const bool started = pthread_attr_setstacksize(&attributes, bytes) == 0 &&
                         pthread_create(&thread, &attributes, thread_main, &job) == 0;
    pthread_attr_destroy(&attributes);
    if (started) pthread_join(thread, nullptr);
    return started;
}

#endif

}  // namespace

void run_with_deep_stack(const std::function<void()>& work) {
    Job job{work, nullptr};
    if (!run_on_thread(job, deep_stack_bytes) && !run_on_thread(job, deep_stack_bytes / 8)) job.run();
    if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace kp
