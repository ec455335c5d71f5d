#include "device/fork.hpp"

#include "adapter/instance.hpp"
#include "base/host_span.hpp"
#include "base/object_kind.hpp"
#include "base/ranked.hpp"
#include "device/profiler.hpp"

#include <atomic>
#include <mutex>

#ifndef _WIN32
#include <pthread.h>
#endif

namespace kp {
namespace {

// Never destroyed, because objects may outlive static destructors.
struct Registry {
    RankedMutex mutex{LockRank::fork_registry};
    std::vector<ForkAware*> all;
};

Registry& registry() {
    static auto* one = new Registry();
    return *one;
}

std::atomic<bool> with_drivers{false};

#ifndef _WIN32
// The handlers for pthread_atfork.
void prepare() {
    Instance::before_fork();
    registry().mutex.lock();
    for (ForkAware* each : registry().all) each->before_fork();
    Profiler::before_fork();
    HostSpans::before_fork();
}

void release_process_locks() {
    HostSpans::after_fork();
    Profiler::after_fork();
}

void in_parent() {
    release_process_locks();
    for (ForkAware* each : registry().all) each->after_fork();
    registry().mutex.unlock();
    Instance::after_fork();
}

void in_child() {
    release_process_locks();
    // Never freed, so that no destructor of these objects runs.
    static auto* kept = new std::vector<std::shared_ptr<void>>();
    for (ForkAware* each : registry().all) each->become_foreign(*kept);
    for (size_t kind = 0; kind < object_kinds; ++kind) alive_count(static_cast<ObjectKind>(kind)).store(0);
    registry().all.clear();
    registry().mutex.unlock();
    if (Instance::forget_all()) with_drivers.store(true, std::memory_order_relaxed);
    Instance::after_fork();
}
#endif

}  // namespace

bool forked_with_drivers() noexcept { return with_drivers.load(std::memory_order_relaxed); }

void enlist_for_fork(ForkAware& one) {
#ifndef _WIN32
    static const int registered = pthread_atfork(&prepare, &in_parent, &in_child);
    (void)registered;
#endif
    const std::lock_guard lock(registry().mutex);
    registry().all.push_back(&one);
}

void delist_for_fork(ForkAware& one) noexcept {
    const std::lock_guard lock(registry().mutex);
    std::erase(registry().all, &one);
}

}  // namespace kp
