// The order in which a thread takes locks, from the outermost to the innermost, and why. See base/ranked.hpp.
//
// Two rules shape it. What takes long, or calls much else, is outside: the lock of a whole transfer comes
// before that of the graph. And nothing is destroyed under a lock that its destructor may take: whoever drops
// what may be the last reference to an object, a fence or a submission moves it out first and lets it go once
// the lock is free. One exception: a resource whose last owner lets go takes its own locks whatever is held,
// since nobody else has them (Resource::release).
#pragma once

#include <cstdint>

namespace kp {

// clang-format off
#define KP_LOCK_RANKS(X) \
    /* The process: instances, then what opens them, then the list of devices that fork() walks. */ \
    X(instances) \
    X(loader) \
    X(loader_state) \
    X(fork_registry) \
    \
    /* Held for as long as somebody uses the pipelines of a device, whatever that takes. */ \
    X(pipeline_users) \
    \
    /* A whole host transfer of one resource; then the one thread that brings its contents; then the making of its */ \
    /* host copy. */ \
    X(transfers) \
    X(bringing) \
    X(host_copy) \
    /* The ring that a transfer goes through. */ \
    X(staging) \
    /* First contents of objects: the submission of what is collected, then the list of it. */ \
    X(initial_submission) \
    X(initial_items) \
    \
    /* From the look at other queues' ends to the submission after them: sees the graph and passes the gate. */ \
    X(order) \
    /* Who uses which object. Held briefly, never while waiting. */ \
    X(graph) \
    /* What a bound dispatch is made of changes under this and the graph's. */ \
    X(bound_dispatch) \
    /* Which submissions are held. Others spin on a stream that is inside the gate while they hold the graph's lock, */ \
    /* so nothing takes that one inside. */ \
    X(gate) \
    X(queue) \
    \
    /* Threads that wait are woken one by one, each under its own lock. */ \
    X(waiters) \
    X(waiter) \
    /* Who asks whether work has ended, holding one of these, looks at timelines. */ \
    X(free_timelines) \
    X(retired) \
    /* Inside the driver with a timeline that may be released; then the one who raises its counter. */ \
    X(timeline_life) \
    X(timeline_raising) \
    /* What ended work brings to the host: received by whoever looks at a timeline. */ \
    X(deliveries) \
    X(timeline_state) \
    X(wait_choice) \
    \
    /* What is kept for later. None of these needs more than the lists of handles and of memory. */ \
    X(shaders) \
    X(pipeline_contents) \
    X(pipeline_cache) \
    X(descriptor_pools) \
    X(samplers) \
    X(peer_streams) \
    X(initial_idle) \
    X(handles) \
    X(memory) \
    \
    /* Lists of the device, which every thread reads in passing. */ \
    X(members) \
    X(names) \
    X(notes) \
    X(lost_work) \
    X(deep_work) \
    /* Messages may come up inside any call into the driver. */ \
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
