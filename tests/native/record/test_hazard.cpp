// Barrier plans written out by hand, the model's own test, and the time that planning takes. What must hold
// for every program is in record/test_hazard_random.cpp.
#include "record/hazard_programs.hpp"

#include <doctest/doctest.h>

#include <chrono>

namespace {

using namespace kp::test;

// ---------------------------------------------------------------- cases by hand

TEST_CASE("hazard: an empty stream, and one that only reads, need nothing between commands") {
    const BarrierPlan empty = plan_of(make({}));
    CHECK(empty.head == Barrier{});
    CHECK(empty.barriers.empty());
    CHECK(empty.tail.src_stages == 0);

    const BarrierPlan reading = plan_of(make({{{0, kR}}, {{0, kFrom}}, {{0, UseKind::uniform_read}}}, {1}));
    CHECK(reading.barriers.empty());
    CHECK(reading.head == Barrier{0, kAll, kCompute | kTransfer, kMemoryWrite,
                                  kShaderRead | kTransferRead | VK_ACCESS_UNIFORM_READ_BIT});
    CHECK(reading.tail.src_stages == 0);
}

TEST_CASE("hazard: a chain of dispatches has one barrier between each two") {
    const BarrierPlan plan =
        plan_of(make({{{0, kR}, {1, kW}}, {{1, kR}, {2, kW}}, {{2, kR}, {3, kW}}}, {0, 0, 0, 1}));
    REQUIRE(plan.barriers.size() == 2);
    CHECK(plan.barriers[0] == Barrier{1, kCompute, kCompute, kShaderWrite, kShaderRead});
    CHECK(plan.barriers[1] == Barrier{2, kCompute, kCompute, kShaderWrite, kShaderRead});
    CHECK(plan.head == Barrier{0, kAll, kCompute, kMemoryWrite, kShaderRead | kShaderWrite});
    CHECK(plan.tail ==
          Barrier{3, kCompute, VK_PIPELINE_STAGE_HOST_BIT, kShaderWrite, VK_ACCESS_HOST_READ_BIT});
}

TEST_CASE("hazard: upload, dispatch, download") {
    const BarrierPlan plan =
        plan_of(make({{{0, kFrom}, {1, kTo}}, {{1, kRW}}, {{1, kFrom}, {2, kTo}}}, {1, 0, 1}));
    REQUIRE(plan.barriers.size() == 2);
    CHECK(plan.barriers[0] == Barrier{1, kTransfer, kCompute, kTransferWrite, kShaderRead | kShaderWrite});
    CHECK(plan.barriers[1] == Barrier{2, kCompute, kTransfer, kShaderWrite, kTransferRead});
    CHECK(plan.tail ==
          Barrier{3, kTransfer, VK_PIPELINE_STAGE_HOST_BIT, kTransferWrite, VK_ACCESS_HOST_READ_BIT});
}

TEST_CASE("hazard: a later reader in another stage widens the barrier that is there") {
    const BarrierPlan plan = plan_of(make({{{0, kW}}, {{0, kFrom}}, {{0, kR}}}));
    REQUIRE(plan.barriers.size() == 1);
    CHECK(plan.barriers[0] ==
          Barrier{1, kCompute, kTransfer | kCompute, kShaderWrite, kTransferRead | kShaderRead});
}

TEST_CASE("hazard: one barrier serves writers of several resources and stages") {
    const BarrierPlan plan =
        plan_of(make({{{0, kW}}, {{1, kTo}}, {{2, kW}}, {{0, kR}, {1, kR}, {2, kR}, {3, kW}}}));
    REQUIRE(plan.barriers.size() == 1);
    CHECK(plan.barriers[0] ==
          Barrier{3, kCompute | kTransfer, kCompute, kShaderWrite | kTransferWrite, kShaderRead});
}

TEST_CASE("hazard: a write after reads is an execution dependency only, after a write also one of memory") {
    const BarrierPlan war = plan_of(make({{{0, kFrom}}, {{0, kR}}, {{0, kTo}}}));
    REQUIRE(war.barriers.size() == 1);
    CHECK(war.barriers[0] == Barrier{2, kCompute | kTransfer, kTransfer, 0, 0});
    // The write is led to by the reads; the head names it all the same, for validators that look for it
    // there.
    CHECK(war.head ==
          Barrier{0, kAll, kCompute | kTransfer, kMemoryWrite, kShaderRead | kTransferRead | kTransferWrite});

    const BarrierPlan waw = plan_of(make({{{0, kTo}}, {{0, kW}}}));
    REQUIRE(waw.barriers.size() == 1);
    CHECK(waw.barriers[0] == Barrier{1, kTransfer, kCompute, kTransferWrite, kShaderWrite});
}

TEST_CASE("hazard: disjoint ranges do not conflict, overlapping ones do") {
    CHECK(plan_of(make({{{0, kW, 0, 16}}, {{0, kW, 16, 32}}, {{0, kTo, 32, 48}}})).barriers.empty());
    const BarrierPlan plan =
        plan_of(make({{{0, kW, 0, 16}}, {{0, kTo, 16, 32}}, {{0, kR, 8, 17}}, {{0, kR}}}));
    REQUIRE(plan.barriers.size() == 1);
    CHECK(plan.barriers[0] ==
          Barrier{2, kCompute | kTransfer, kCompute, kShaderWrite | kTransferWrite, kShaderRead});
    // Empty ranges are no uses.
    const BarrierPlan none = plan_of(make({{{0, kW, 4, 4}}, {{0, kW, 4, 4}}}));
    CHECK(none.barriers.empty());
    CHECK(none.head.src_stages == 0);
}

TEST_CASE("hazard: a command does not wait for itself") {
    const BarrierPlan once = plan_of(make({{{0, kR, 0, 8}, {0, kW, 4, 12}, {0, kRW}}}));
    CHECK(once.barriers.empty());
    // Its own read of what it writes is not a read of the result: the next write still makes the first one
    // available.
    const BarrierPlan twice = plan_of(make({{{0, UseKind::uniform_read}, {0, kW}}, {{0, kTo}}}));
    REQUIRE(twice.barriers.size() == 1);
    CHECK(twice.barriers[0] == Barrier{1, kCompute, kTransfer, kShaderWrite, kTransferWrite});
}

TEST_CASE("hazard: dispatch arguments written by a shader") {
    const BarrierPlan plan = plan_of(make({{{0, kW}}, {{0, UseKind::indirect_read}, {1, kW}}}));
    REQUIRE(plan.barriers.size() == 1);
    CHECK(plan.barriers[0] ==
          Barrier{1, kCompute, kIndirect, kShaderWrite, VK_ACCESS_INDIRECT_COMMAND_READ_BIT});
}

TEST_CASE("hazard: a custom operation that declared nothing stands between full barriers") {
    Program program = make({{{0, kR}}});
    add_full(program);
    add_full(program);
    add(program, {{0, kR}});
    add(program, {{1, kFrom}});
    add(program, {{1, kW}});
    const BarrierPlan plan = plan_of(program);
    REQUIRE(plan.barriers.size() == 4);
    for (uint32_t i = 0; i < 3; ++i)
        CHECK(plan.barriers[i] == Barrier{i + 1, kAll, kAll, kMemoryWrite, kMemory});
    CHECK(plan.barriers[3] == Barrier{5, kTransfer, kCompute, 0, 0});
    CHECK(plan.head == Barrier{0, kAll, kCompute, kMemoryWrite, kShaderRead});
    CHECK(plan.tail == Barrier{6, kAll, VK_PIPELINE_STAGE_HOST_BIT, kMemoryWrite, VK_ACCESS_HOST_READ_BIT});

    Program alone = make({});
    add_full(alone);
    const BarrierPlan single = plan_of(alone);
    CHECK(single.barriers.empty());
    CHECK(single.head == Barrier{0, kAll, kAll, kMemoryWrite, kMemory});
}

TEST_CASE("hazard: a custom operation that declared a resource waits only for that one") {
    const BarrierPlan plan =
        plan_of(make({{{0, kW}}, {{1, kW}}, {{0, UseKind::everything}}, {{1, kR}}}, {1, 0}));
    REQUIRE(plan.barriers.size() == 1);
    CHECK(plan.barriers[0] == Barrier{2, kCompute, kAll, kShaderWrite, kMemory});
    CHECK(plan.tail == Barrier{4, kAll, VK_PIPELINE_STAGE_HOST_BIT, kMemoryWrite, VK_ACCESS_HOST_READ_BIT});
}

TEST_CASE("hazard: a barrier that already serves a pair spares the later ones") {
    const Program program = make({{{0, kW}, {1, kW}}, {{0, kR}}, {{2, kTo}}, {{2, kFrom}}, {{1, kR}}});
    const BarrierPlan plan = plan_of(program);
    REQUIRE(plan.barriers.size() == 2);
    CHECK(plan.barriers[0] == Barrier{1, kCompute, kCompute, kShaderWrite, kShaderRead});
    CHECK(plan.barriers[1] == Barrier{3, kTransfer, kTransfer, kTransferWrite, kTransferRead});
}

TEST_CASE("hazard: a custom operation that declared to read a resource") {
    const BarrierPlan plan = plan_of(make({{{0, kW}}, {{0, UseKind::any_read}}, {{0, kR}}, {{0, kTo}}}));
    REQUIRE(plan.barriers.size() == 2);
    CHECK(plan.barriers[0] == Barrier{1, kCompute, kAll, kShaderWrite, VK_ACCESS_MEMORY_READ_BIT});
    CHECK(plan.barriers[1] == Barrier{3, kAll, kTransfer, 0, 0});
}

TEST_CASE("hazard: what is behind a full barrier widens no other one") {
    Program program = make({{{0, kW}}, {{1, kTo}}, {{1, kFrom}}});
    add_full(program);
    add(program, {{1, kTo}});
    add(program, {{1, kFrom}});
    add(program, {{0, kR}});
    const BarrierPlan plan = plan_of(program);
    REQUIRE(plan.barriers.size() == 4);
    CHECK(plan.barriers[0] == Barrier{2, kTransfer, kTransfer, kTransferWrite, kTransferRead});
    CHECK(plan.barriers[1].before == 3);
    CHECK(plan.barriers[2].before == 4);
    CHECK(plan.barriers[3] == Barrier{5, kTransfer, kTransfer, kTransferWrite, kTransferRead});
}

TEST_CASE(
    "hazard: of several barriers a pair takes the one that fits best, and later readers need no other") {
    Program program = make({{{0, kW}}});
    for (uint32_t i = 0; i < 3; ++i) {  // barriers before 2, 4 and 7, between transfers
        add(program, {{1, kTo}});
        add(program, {{1, kFrom}});
        if (i > 0) add(program, {{0, kR}});
    }
    const Barrier copies{0, kTransfer, kTransfer, kTransferWrite, kTransferRead};
    const auto at = [](Barrier barrier, uint32_t before) { return barrier.before = before, barrier; };
    const BarrierPlan plan = plan_of(program);
    REQUIRE(plan.barriers.size() == 5);
    CHECK(plan.barriers[0] == at(copies, 2));
    CHECK(plan.barriers[1] == Barrier{3, kTransfer, kTransfer, 0, 0});
    // The first read is served by the latest barrier: the transfers before it need not wait for the shader.
    CHECK(plan.barriers[2] == Barrier{4, kTransfer | kCompute, kTransfer | kCompute,
                                      kTransferWrite | kShaderWrite, kTransferRead | kShaderRead});
    CHECK(plan.barriers[3] == Barrier{6, kTransfer, kTransfer, 0, 0});
    CHECK(plan.barriers[4] == at(copies, 7));
}

TEST_CASE("hazard: the tail names the last writes to host-visible memory only") {
    const BarrierPlan plan = plan_of(make({{{0, kW}}, {{0, kTo}}, {{1, kW}}}, {1, 0}));
    CHECK(plan.tail ==
          Barrier{3, kTransfer, VK_PIPELINE_STAGE_HOST_BIT, kTransferWrite, VK_ACCESS_HOST_READ_BIT});
    CHECK(plan_of(make({{{0, kW}}})).tail.src_stages == 0);
    CHECK(plan_of(make({{{0, kR}}}, {1})).tail.src_stages == 0);
}

TEST_CASE("hazard: a read by the host waits for the end of the stream") {
    const BarrierPlan plan = plan_of(make({{{0, kW}}, {{0, UseKind::host_read}}, {{0, kTo}}}));
    REQUIRE(plan.barriers.size() == 1);
    CHECK(plan.barriers[0] == Barrier{2, kCompute, kTransfer, kShaderWrite, kTransferWrite});
    CHECK(plan.tail ==
          Barrier{3, kTransfer, VK_PIPELINE_STAGE_HOST_BIT, kTransferWrite, VK_ACCESS_HOST_READ_BIT});
    // Of what an earlier submission left: no write here, so the head does it.
    const BarrierPlan earlier = plan_of(make({{{0, UseKind::host_read}}}, {1}));
    CHECK(earlier.head ==
          Barrier{0, kAll, VK_PIPELINE_STAGE_HOST_BIT, kMemoryWrite, VK_ACCESS_HOST_READ_BIT});
}

// ---------------------------------------------------------------- the model

// A judge that never objects would pass everything above.
TEST_CASE("visibility model: tells right from wrong by hand") {
    const Program raw = make({{{0, kW}}, {{0, kFrom}}});
    BarrierPlan plan;
    plan.head = {0, kAll, kAll, kMemoryWrite, kMemory};
    CHECK(first_violation(raw, plan, strict(1)).starts_with("RAW: command 0 -> 1"));
    plan.barriers = {{1, kCompute, kTransfer, 0, 0}};  // no memory dependency
    CHECK(first_violation(raw, plan, strict(1)).starts_with("RAW"));
    plan.barriers = {{1, kTransfer, kTransfer, kTransferWrite, kTransferRead}};  // of another stage
    CHECK(first_violation(raw, plan, strict(1)).starts_with("RAW"));
    plan.barriers = {{1, kCompute, kTransfer, kShaderWrite, kTransferWrite}};  // not to that access
    CHECK(first_violation(raw, plan, strict(1)).starts_with("RAW"));
    plan.barriers = {{0, kCompute, kTransfer, kShaderWrite, kTransferRead}};  // too early
    CHECK(first_violation(raw, plan, strict(1)).starts_with("RAW"));
    plan.barriers = {{1, kCompute, kTransfer, kShaderWrite, kTransferRead}};
    CHECK(first_violation(raw, plan, strict(1)) == "");
    plan.head = {};
    CHECK(first_violation(raw, plan, strict(1)).find(": command -1 -> 0") != std::string::npos);

    // An execution dependency is enough to write after a read, and it leads on only through a command.
    const Program war = make({{{0, kR}}, {}, {{0, kTo}}});
    plan.head = {0, kAll, kAll, kMemoryWrite, kMemory};
    plan.barriers = {{1, kCompute, kTransfer, 0, 0}};
    CHECK(first_violation(war, plan, strict(1)) == "");
    plan.barriers = {{1, kCompute, kIndirect, 0, 0}, {2, kIndirect, kTransfer, 0, 0}};
    CHECK(first_violation(war, plan, strict(1)).starts_with("WAR"));
    CHECK(first_violation(war, plan, lenient(1)) == "");

    const Program host = make({{{0, kW}}}, {1});
    plan.barriers.clear();
    CHECK(first_violation(host, plan, strict(1)).find("host") != std::string::npos);
}

// ---------------------------------------------------------------- how long

TEST_CASE("hazard: time to plan (printed, not judged)") {
    kp::HazardPlanner planner;
    BarrierPlan plan;
    const auto nanoseconds = [&](const Program& program, int rounds) {
        planner.plan(program.commands, program.uses, program.host_visible, plan);
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < rounds; ++i)
            planner.plan(program.commands, program.uses, program.host_visible, plan);
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
        return took.count() / rounds;
    };
    const Program three =
        make({{{0, kFrom}, {1, kTo}}, {{1, kR}, {2, kW}}, {{2, kFrom}, {3, kTo}}}, {1, 0, 0, 1});
    MESSAGE("3 commands: ", nanoseconds(three, 20000), " ns");

    Generator generator(1);
    Shape shape;
    shape.commands = 10000;
    shape.resources = 10;
    shape.size = 1 << 20;
    shape.full_percent = 0;
    for (const uint32_t whole : {100U, 10U, 0U}) {
        shape.whole_percent = whole;
        Program program = generator.program(shape);
        for (Use& use : program.uses)
            if (use.end != UINT64_MAX && generator.below(10) != 0)
                use.end = std::min(use.end, use.begin + 64);
        MESSAGE("10,000 commands, ", whole, "% whole ranges: ", nanoseconds(program, 3) / 1e6, " ms, ",
                plan.barriers.size(), " barriers");
    }
    // The worst for a planner that visits every fragment again: disjoint writes, then reads of everything.
    Program worst;
    worst.host_visible.assign(2, 1);
    for (uint32_t i = 0; i < 5000; ++i) {
        const uint64_t at = uint64_t{i} * 7919 % 5000 * 16;
        add(worst, {{0, i % 2 == 0 ? kW : kTo, at, at + 8}, {1, kRW}});
    }
    for (uint32_t i = 0; i < 5000; ++i) add(worst, {{0, i % 2 == 0 ? kR : kFrom}, {1, kRW, i, i + 4}});
    MESSAGE("10,000 commands, fragments: ", nanoseconds(worst, 3) / 1e6, " ms");
}

}  // namespace
