#include "base/ranked.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace kp;

namespace {

// The locks that are checked in every build.
using Lock = Ranked<std::mutex, true>;
using SharedLock = Ranked<std::shared_mutex, true>;

std::vector<std::string>& told() {
    static std::vector<std::string> all;
    return all;
}

// Collects what is reported instead of ending the program.
struct Listening {
    Listening() {
        told().clear();
        before = lock_order::set_report([](const char* sentence) { told().emplace_back(sentence); });
    }
    ~Listening() { lock_order::set_report(before); }
    lock_order::Report before;
};

}  // namespace

TEST_CASE("locks in the order of their ranks are fine") {
    const Listening listening;
    Lock order(LockRank::order), graph(LockRank::graph), gate(LockRank::gate);
    for (int turn = 0; turn < 2; ++turn) {
        const std::lock_guard a(order);
        const std::lock_guard b(graph);
        const std::lock_guard c(gate);
    }
    {
        // Given back in another order than they were taken in.
        std::unique_lock a(order), b(graph);
        a.unlock();
        const std::lock_guard c(gate);
    }
    CHECK(told().empty());
}

TEST_CASE("a lock out of order is reported, by the names of both") {
    const Listening listening;
    Lock graph(LockRank::graph), gate(LockRank::gate);
    {
        const std::lock_guard a(gate);
        const std::lock_guard b(graph);
    }
    REQUIRE(told().size() == 1);
    CHECK(told().front().find("takes the lock 'graph' while it holds 'gate'") != std::string::npos);
}

TEST_CASE("what was held under another lock counts, too") {
    const Listening listening;
    Lock order(LockRank::order), graph(LockRank::graph), gate(LockRank::gate);
    std::unique_lock a(order), c(gate);
    a.unlock();
    const std::lock_guard b(graph);
    CHECK(told().size() == 1);
}

TEST_CASE("two locks of one rank are out of order, unless both are shared") {
    const Listening listening;
    SharedLock one(LockRank::transfers), other(LockRank::transfers);
    {
        const std::shared_lock a(one);
        const std::shared_lock b(other);
        CHECK(told().empty());
    }
    {
        const std::shared_lock a(one);
        const std::unique_lock b(other);
        CHECK(told().size() == 1);
    }
    {
        const std::unique_lock a(one);
        const std::shared_lock b(other);
        CHECK(told().size() == 2);
    }
}

TEST_CASE("to try waits for nothing and is fine in any order; what it took counts") {
    const Listening listening;
    Lock graph(LockRank::graph), gate(LockRank::gate), order(LockRank::order);
    const std::lock_guard a(gate);
    const std::unique_lock b(graph, std::try_to_lock);
    CHECK(b.owns_lock());
    CHECK(told().empty());
    const std::lock_guard c(order);
    CHECK(told().size() == 1);
}

TEST_CASE("every rank has a name of its own") {
    std::vector<std::string> names;
#define X(name) names.emplace_back(to_string(LockRank::name));
    KP_LOCK_RANKS(X)
#undef X
    CHECK(names.front() == "instances");
    CHECK(std::string(to_string(LockRank::message_ring)) == names.back());
}

TEST_CASE("where locks are not checked, a ranked mutex is the mutex alone") {
    CHECK(sizeof(Ranked<std::mutex, false>) == sizeof(std::mutex));
    CHECK(sizeof(Ranked<std::shared_mutex, false>) == sizeof(std::shared_mutex));
}
