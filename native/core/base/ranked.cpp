#include "base/ranked.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace kp {

const char* to_string(LockRank rank) noexcept {
    switch (rank) {
#define X(name)                                                                                              \
    case LockRank::name: return #name;
        KP_LOCK_RANKS(X)
#undef X
    }
    return "?";
}

namespace lock_order {
namespace {

struct Held {
    const void* mutex = nullptr;
    LockRank rank = LockRank::instances;
    bool shared = false;
};

// A thread never holds more locks at a time; further ones would not be checked.
thread_local std::array<Held, 64> held;
thread_local size_t count = 0;

void end_program(const char* sentence) {
    std::fprintf(stderr, "kompute_py: %s\n", sentence);
    std::abort();
}

std::atomic<Report> reporter{&end_program};

}  // namespace

Report set_report(Report report) noexcept { return reporter.exchange(report ? report : &end_program); }

void before_lock(const void* mutex, LockRank rank, bool shared) {
    for (size_t i = 0; i < count; ++i) {
        const Held& other = held[i];
        if (other.rank < rank && other.mutex != mutex) continue;
        if (other.rank == rank && other.mutex != mutex && shared && other.shared) continue;
        const std::string sentence =
            other.mutex == mutex
                ? std::string("locks out of order: this thread takes the lock '") + to_string(rank) +
                      "' again, which it holds"
                : std::string("locks out of order: this thread takes the lock '") + to_string(rank) +
                      "' while it holds '" + to_string(other.rank) +
                      "', and the order is the other way round (native/core/base/lock_ranks.hpp)";
        reporter.load()(sentence.c_str());
        return;
    }
}

void taken(const void* mutex, LockRank rank, bool shared) noexcept {
    if (count < held.size()) held[count++] = {mutex, rank, shared};
}

void released(const void* mutex) noexcept {
    for (size_t i = count; i-- > 0;) {
        if (held[i].mutex != mutex) continue;
        for (; i + 1 < count; ++i) held[i] = held[i + 1];
        --count;
        return;
    }
}

}  // namespace lock_order
}  // namespace kp
