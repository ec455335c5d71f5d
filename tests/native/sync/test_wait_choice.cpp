#include "sync/wait_choice.hpp"

#include <doctest/doctest.h>

using kp::WaitChoice;
using kp::WaitMode;

namespace {

// Waits as a device would that takes so long for either way.
void run(WaitChoice& choice, int waits, uint64_t blocked, uint64_t spun) {
    for (int i = 0; i < waits; ++i) {
        const bool spins = choice.next();
        choice.note(spins, spins ? spun : blocked);
    }
}

}  // namespace

TEST_CASE("forced modes never change") {
    WaitChoice spin(WaitMode::spin), block(WaitMode::block);
    run(spin, 1000, 1, 1'000'000);
    run(block, 1000, 1'000'000, 1);
    CHECK(spin.next());
    CHECK(!block.next());
    CHECK(!spin.measuring());
}

TEST_CASE("the faster way is chosen") {
    WaitChoice looks(WaitMode::automatic), sleeps(WaitMode::automatic);
    CHECK(looks.measuring());
    run(looks, 2 * WaitChoice::samples, 40'000, 12'000);
    run(sleeps, 2 * WaitChoice::samples, 40'000, 41'000);
    CHECK(!looks.measuring());
    CHECK(looks.next());
    CHECK(!sleeps.measuring());
    CHECK(!sleeps.next());
}

TEST_CASE("a core is not spent for a gain of a few per cent") {
    WaitChoice choice(WaitMode::automatic);
    run(choice, 2 * WaitChoice::samples, 40'000, 38'000);
    CHECK(!choice.measuring());
    CHECK(!choice.next());
}

TEST_CASE("it is measured anew, and the choice follows") {
    WaitChoice choice(WaitMode::automatic);
    run(choice, 2 * WaitChoice::samples, 40'000, 12'000);
    REQUIRE(choice.next());
    run(choice, WaitChoice::keep + 2 * WaitChoice::samples + 2, 12'000, 40'000);
    CHECK(!choice.measuring());
    CHECK(!choice.next());
}

TEST_CASE("long waits do not count, and stop the looking for a while") {
    WaitChoice choice(WaitMode::automatic);
    run(choice, 2 * WaitChoice::samples, 40'000, 12'000);
    REQUIRE(choice.spins());
    run(choice, WaitChoice::patience, 5'000'000, 5'000'000);
    int looked = 0;
    for (uint32_t i = 0; i < WaitChoice::pause; ++i) looked += choice.next();
    CHECK(looked == 0);
    CHECK(choice.next());
}
