// The C functions that floor.py calls. Each takes its times itself, around the work alone, and returns
// seconds.
//
// A function that fails returns null or a negative number and leaves the reason in floor_error().
#include "memory.hpp"
#include "workload.hpp"

#include <chrono>
#include <memory>

#define FLOOR_API extern "C" __attribute__((visibility("default")))

namespace {

using namespace benchmark_floor;
using Clock = std::chrono::steady_clock;

struct Floor {
    Device device;
    Workload workload;

    Floor(const uint32_t* spirv, size_t bytes, uint32_t groups) : workload(device, spirv, bytes, groups) {}
};

thread_local std::string last_error;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

template <class Work>
double timed(Work&& work) {
    try {
        const auto start = Clock::now();
        work();
        return seconds_since(start);
    } catch (const std::exception& error) {
        last_error = error.what();
        return -1.0;
    }
}

}  // namespace

FLOOR_API const char* floor_error() { return last_error.c_str(); }

FLOOR_API Floor* floor_open(const uint32_t* spirv, uint64_t bytes, uint32_t groups) {
    try {
        return new Floor(spirv, bytes, groups);
    } catch (const std::exception& error) {
        last_error = error.what();
        return nullptr;
    }
}

FLOOR_API void floor_close(Floor* floor) { delete floor; }

FLOOR_API float* floor_host(Floor* floor, uint32_t index) { return floor->workload.host(index); }

// Submits the recorded dispatch and waits, `times` times.
FLOOR_API double floor_eval(Floor* floor, uint64_t times) {
    return timed([&] {
        for (uint64_t i = 0; i < times; ++i) floor->workload.dispatch();
    });
}

// Submits the recorded upload, dispatch and download and waits, `times` times.
FLOOR_API double floor_roundtrip(Floor* floor, uint64_t times) {
    return timed([&] {
        for (uint64_t i = 0; i < times; ++i) floor->workload.roundtrip();
    });
}

// The same, recorded anew each time.
FLOOR_API double floor_rerecorded_roundtrip(Floor* floor, uint64_t times) {
    return timed([&] {
        for (uint64_t i = 0; i < times; ++i) floor->workload.rerecorded_roundtrip();
    });
}

// Makes an instance and a device with one queue; `destruction` gets the seconds that destroying them took.
FLOOR_API double floor_create(double* destruction) {
    std::unique_ptr<Device> device;
    const double made = timed([&] { device = std::make_unique<Device>(); });
    const auto start = Clock::now();
    device.reset();
    *destruction = seconds_since(start);
    return made;
}

FLOOR_API CopyPair* floor_copy_open(uint64_t bytes) {
    try {
        return new CopyPair(bytes);
    } catch (const std::exception& error) {
        last_error = error.what();
        return nullptr;
    }
}

FLOOR_API void floor_copy_close(CopyPair* pair) { delete pair; }

FLOOR_API double floor_copy(const CopyPair* pair, uint64_t times) {
    return timed([&] {
        for (uint64_t i = 0; i < times; ++i) pair->copy();
    });
}
