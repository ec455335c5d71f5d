#include "base/host_span.hpp"

#include "base/ranked.hpp"

#include <chrono>
#include <mutex>
#include <utility>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <pthread.h>
#endif

namespace kp {
namespace {

struct Notes {
    RankedMutex mutex{LockRank::host_spans};
    std::vector<HostSpanNote> list;
};

Notes& notes() {
    static auto* const kept = new Notes;  // threads may note spans while the process ends
    return *kept;
}

}  // namespace

uint64_t host_clock() noexcept {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
}

uint64_t this_thread() noexcept {
#ifdef _WIN32
    return GetCurrentThreadId();
#else
    return (uint64_t)pthread_self();  // an integer on Linux, a pointer on macOS
#endif
}

size_t HostSpans::start() {
    const std::lock_guard lock(notes().mutex);
    readers.fetch_add(1, std::memory_order_relaxed);
    return notes().list.size();
}

std::vector<HostSpanNote> HostSpans::stop(size_t first) {
    const std::lock_guard lock(notes().mutex);
    auto& list = notes().list;
    std::vector<HostSpanNote> result(list.begin() + static_cast<ptrdiff_t>(first), list.end());
    if (readers.fetch_sub(1, std::memory_order_relaxed) == 1) list.clear();
    return result;
}

void HostSpans::note(HostSpanNote note) noexcept {
    try {
        const std::lock_guard lock(notes().mutex);
        if (wanted()) notes().list.push_back(std::move(note));
    } catch (const std::exception&) {  // no memory: the profile lacks this span
    }
}

void HostSpans::before_fork() noexcept { notes().mutex.unranked().lock(); }
void HostSpans::after_fork() noexcept { notes().mutex.unranked().unlock(); }

void HostSpan::end() const noexcept {
    try {
        HostSpans::note({std::string(kind_), {}, begin_, host_clock(), this_thread(), bytes_});
    } catch (const std::exception&) {  // as in note()
    }
}

}  // namespace kp
