// The order in which a thread takes locks, from the outermost to the innermost, and its reasons. See
// base/ranked.hpp.
//
// Two rules determine it. Locks that are held long, or while much other code is called, are outside: the lock
// of a whole transfer comes before the graph's lock. And no object is destroyed under a lock that its
// destructor may take: code that drops what may be the last reference to an object, a fence or a submission
// moves it out first and releases it after the lock is free. One exception: a resource that loses its last
// owner takes its own locks even if other locks are held, because no other thread can hold them
// (Resource::release).
#pragma once

#include <cstdint>

namespace kp {

// clang-format off
#define KP_LOCK_RANKS(X) \
    /* The process: instances, then the loader for them, then the devices' list for fork(). */ \
    X(instances) \
    X(loader) \
    X(loader_state) \
    X(fork_registry) \
    \
    /* Held while the pipelines of a device are in use, however long that takes. */ \
    X(pipeline_users) \
    \
    /* A whole host transfer of one resource; then the one thread that brings its contents; then making */ \
    /* its host copy. */ \
    X(transfers) \
    X(bringing) \
    X(host_copy) \
    /* The ring that a transfer goes through. */ \
    X(staging) \
    /* First contents of objects: the submission of the collected ones, then their list. */ \
    X(initial_submission) \
    X(initial_items) \
    \
    /* From reading other queues' ends to the submission after them: uses the graph and the gate. */ \
    X(order) \
    /* The users of each object. Held briefly, never while waiting. */ \
    X(graph) \
    /* The held submissions. Threads that hold the graph's lock spin on a stream that is inside the gate, */ \
    /* so code inside never takes the graph's lock. */ \
    X(gate) \
    /* The parts of a bound dispatch change under this lock and the graph's. The gate reads its name. */ \
    X(bound_dispatch) \
    X(queue) \
    /* Submissions are noted under their queue's lock: the profilers of all queues, then one's notes. */ \
    X(profiled_queues) \
    X(profiler) \
    \
    /* Waiting threads are woken one by one, each under its own lock. */ \
    X(waiters) \
    X(waiter) \
    /* Code that holds one of these reads timelines to see if work has ended. */ \
    X(free_timelines) \
    X(retired) \
    /* A driver call with a timeline that may be released; then the thread that raises its counter. */ \
    X(timeline_life) \
    X(timeline_raising) \
    /* The results that ended work brings to the host: any thread that reads a timeline receives them. */ \
    X(deliveries) \
    X(timeline_state) \
    X(wait_choice) \
    \
    /* Objects kept for later. These only need the lists of handles and of memory. */ \
    X(debugger) \
    X(shaders) \
    X(pipeline_contents) \
    X(pipeline_caches) \
    X(pipeline_tidying) \
    X(descriptor_pools) \
    X(samplers) \
    X(peer_streams) \
    X(initial_idle) \
    /* Imports of memory of the process, one after the other. */ \
    X(imports) \
    X(handles) \
    X(memory) \
    \
    /* Lists of the device, which every thread reads briefly. */ \
    X(members) \
    X(names) \
    X(notes) \
    X(lost_work) \
    X(deep_work) \
    X(host_spans) \
    /* Messages may arrive inside any driver call. */ \
    X(message_router) \
    X(message_ring)
// clang-format on

enum class LockRank : uint8_t {
#define X(name) name,
    KP_LOCK_RANKS(X)
#undef X
};

[[nodiscard]] const char* to_string(LockRank rank) noexcept;

}  // namespace kp
