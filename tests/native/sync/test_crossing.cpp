// When recordings of several queues need an order: the counting in Crossing against a list of users.
#include "sync/crossing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace {

// Only the addresses of queues are used.
const kp::Queue& queue(uintptr_t number) {
    return *reinterpret_cast<const kp::Queue*>(0x1000 * (number + 1));
}

struct User {
    uintptr_t queue = 0;
    bool writes = false;
};

}  // namespace

TEST_CASE("crossing: contested while two queues use it and one of them writes") {
    std::mt19937 random(11);
    int contested = 0;
    for (int turn = 0; turn < 200; ++turn) {
        kp::Crossing crossing;
        std::vector<User> users;
        for (int step = 0; step < 60; ++step) {
            if (users.empty() || random() % 2 == 0) {
                users.push_back({random() % 3, random() % 4 == 0});
                crossing.add(queue(users.back().queue), users.back().writes);
            } else {
                const auto gone = users.begin() + static_cast<ptrdiff_t>(random() % users.size());
                crossing.remove(queue(gone->queue), gone->writes);
                users.erase(gone);
            }
            const bool writes = std::ranges::any_of(users, &User::writes);
            const bool conflict = std::ranges::any_of(users, [&](const User& a) {
                return std::ranges::any_of(
                    users, [&](const User& b) { return a.queue != b.queue && (a.writes || b.writes); });
            });
            contested += conflict ? 1 : 0;
            CHECK(crossing.contested() == conflict);
            CHECK(crossing.written() == writes);
        }
    }
    CHECK(contested > 1000);
}
