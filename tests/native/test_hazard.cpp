// Barrier plans: hand-written cases, then random programs judged by the independent model of visibility_model.hpp.
#include "../../native/core/hazard.hpp"
#include "visibility_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <initializer_list>
#include <map>
#include <random>
#include <set>

namespace {

using kp::Barrier;
using kp::BarrierPlan;
using kp::Use;
using kp::UseKind;
using kp::model::Program;
using kp::model::Rules;

constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkPipelineStageFlags kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkPipelineStageFlags kIndirect = VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
constexpr VkPipelineStageFlags kAll = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
constexpr VkAccessFlags kShaderRead = VK_ACCESS_SHADER_READ_BIT;
constexpr VkAccessFlags kShaderWrite = VK_ACCESS_SHADER_WRITE_BIT;
constexpr VkAccessFlags kTransferRead = VK_ACCESS_TRANSFER_READ_BIT;
constexpr VkAccessFlags kTransferWrite = VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kMemoryWrite = VK_ACCESS_MEMORY_WRITE_BIT;
constexpr VkAccessFlags kMemory = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;

constexpr UseKind kR = UseKind::shader_read;
constexpr UseKind kW = UseKind::shader_write;
constexpr UseKind kRW = UseKind::shader_read_write;
constexpr UseKind kFrom = UseKind::transfer_read;
constexpr UseKind kTo = UseKind::transfer_write;

void add(Program& program, std::initializer_list<Use> uses) {
    program.commands.push_back(
        {static_cast<uint32_t>(program.uses.size()), static_cast<uint32_t>(uses.size()), false});
    program.uses.insert(program.uses.end(), uses);
}

void add_full(Program& program) {
    program.commands.push_back({static_cast<uint32_t>(program.uses.size()), 0, true});
}

Program make(std::initializer_list<std::initializer_list<Use>> commands,
             std::vector<uint8_t> host_visible = {}) {
    Program program;
    for (const auto& uses : commands) add(program, uses);
    host_visible.resize(std::max<size_t>(host_visible.size(), 8));
    program.host_visible = std::move(host_visible);
    return program;
}

BarrierPlan plan_of(const Program& program) {
    // One planner for all tests: what an earlier call left in it must not matter.
    static kp::HazardPlanner planner;
    BarrierPlan plan;
    planner.plan(program.commands, program.uses, program.host_visible, plan);
    return plan;
}

std::string first_violation(const Program& program, const BarrierPlan& plan, const Rules& rules) {
    const auto found = kp::model::violations(program, plan, rules);
    return found.empty() ? "" : found.front();
}

Rules strict(int submissions) { return {.submissions = submissions}; }
Rules lenient(int submissions) { return {.chain_needs_command = false, .submissions = submissions}; }

// ---------------------------------------------------------------------------------------------- cases by hand

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
    // The write is led to by the reads, so the head need not name it.
    CHECK(war.head == Barrier{0, kAll, kCompute | kTransfer, kMemoryWrite, kShaderRead | kTransferRead});

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
    // Its own read of what it writes is not a read of the result: the next write still makes the first one available.
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
    add(program, {{1, kR}});
    add(program, {{1, kW}});
    const BarrierPlan plan = plan_of(program);
    REQUIRE(plan.barriers.size() == 4);
    for (uint32_t i = 0; i < 3; ++i)
        CHECK(plan.barriers[i] == Barrier{i + 1, kAll, kAll, kMemoryWrite, kMemory});
    CHECK(plan.barriers[3] == Barrier{5, kCompute, kCompute, 0, 0});
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

// -------------------------------------------------------------------------------------------- random programs

struct Shape {
    uint32_t commands = 8;
    uint32_t resources = 3;
    uint32_t uses = 3;  // at most, per command
    uint64_t size = 6;  // ranges begin and end at 0...size
    uint32_t whole_percent = 30;
    uint32_t full_percent = 8;
    uint32_t read_percent = 50;
};

class Generator {
public:
    explicit Generator(uint32_t seed) : random_(seed) {}

    Program program(const Shape& shape) {
        Program made;
        for (uint32_t r = 0; r < shape.resources; ++r) made.host_visible.push_back(below(4) == 0);
        for (uint32_t i = 0; i < shape.commands; ++i) {
            if (below(100) < shape.full_percent) {
                add_full(made);
                continue;
            }
            const uint32_t count = below(shape.uses + 1);
            made.commands.push_back({static_cast<uint32_t>(made.uses.size()), count, false});
            for (uint32_t u = 0; u < count; ++u) made.uses.push_back(use(shape));
        }
        return made;
    }

    // Not std::uniform_int_distribution: its values differ between standard libraries.
    uint32_t below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

private:
    Use use(const Shape& shape) {
        constexpr UseKind reading[]{kR,
                                    kR,
                                    kFrom,
                                    kFrom,
                                    UseKind::uniform_read,
                                    UseKind::sampled_read,
                                    UseKind::indirect_read,
                                    UseKind::host_read};
        constexpr UseKind writing[]{kW, kW, kRW, kRW, kTo, kTo, kTo, UseKind::everything};
        Use made;
        made.resource = below(shape.resources);
        made.kind = below(100) < shape.read_percent ? reading[below(8)] : writing[below(8)];
        if (below(100) >= shape.whole_percent) {
            made.begin = below(static_cast<uint32_t>(shape.size));
            made.end = made.begin + below(static_cast<uint32_t>(shape.size - made.begin) + 1);
        }
        return made;
    }

    std::mt19937 random_;
};

Shape small_shape(uint32_t seed) {
    Shape shape;
    shape.commands = 2 + seed % 8;
    shape.resources = 1 + seed % 4;
    shape.uses = 1 + seed / 3 % 3;
    shape.whole_percent = seed / 5 % 3 * 50;
    shape.full_percent = seed % 3 == 0 ? 12 : 0;
    shape.read_percent = 30 + seed / 7 % 3 * 20;
    return shape;
}

bool used(const Use& use) { return use.begin < use.end && use.kind != UseKind::host_read; }

bool conflict(const Program& program, uint32_t i, uint32_t j) {
    const auto& a = program.commands[i];
    const auto& b = program.commands[j];
    const auto active = [&](const kp::CommandUses& command) {
        if (command.full_barrier) return true;
        const auto first = program.uses.begin() + command.first;
        return std::any_of(first, first + command.count, used);
    };
    if (a.full_barrier || b.full_barrier) return active(a) && active(b);
    for (uint32_t u = a.first; u < a.first + a.count; ++u) {
        for (uint32_t v = b.first; v < b.first + b.count; ++v) {
            const Use& x = program.uses[u];
            const Use& y = program.uses[v];
            if (used(x) && used(y) && x.resource == y.resource && x.begin < y.end && y.begin < x.end &&
                (kp::writes(x.kind) || kp::writes(y.kind)))
                return true;
        }
    }
    return false;
}

// The fewest positions that part all conflicting commands, by trying all sets of positions.
int fewest_barriers(const Program& program) {
    const auto count = static_cast<uint32_t>(program.commands.size());
    std::set<uint32_t> needed;  // as bit sets: one of the positions i + 1 ... j
    for (uint32_t j = 1; j < count; ++j)
        for (uint32_t i = 0; i < j; ++i)
            if (conflict(program, i, j)) needed.insert(((2U << j) - 1) & ~((2U << i) - 1));
    int best = static_cast<int>(count);
    for (uint32_t set = 0; set < 1U << count; ++set)
        if (std::popcount(set) < best &&
            std::ranges::all_of(needed, [&](uint32_t n) { return (n & set) != 0; }))
            best = std::popcount(set);
    return best;
}

TEST_CASE("hazard: no random program has a hazard, submitted once or twice") {
    for (uint32_t seed = 0; seed < 6000; ++seed) {
        const Program program = Generator(seed).program(small_shape(seed));
        const BarrierPlan plan = plan_of(program);
        CAPTURE(seed);
        REQUIRE(first_violation(program, plan, strict(1)) == "");
        REQUIRE(first_violation(program, plan, strict(2)) == "");
        REQUIRE(std::ranges::is_sorted(plan.barriers, {}, &Barrier::before));
    }
}

TEST_CASE("hazard: without any one of its barriers a plan has a hazard") {
    int removed = 0;
    for (uint32_t seed = 10000; seed < 14000; ++seed) {
        const Program program = Generator(seed).program(small_shape(seed));
        const BarrierPlan plan = plan_of(program);
        CAPTURE(seed);
        for (size_t i = 0; i < plan.barriers.size(); ++i, ++removed) {
            CAPTURE(i);
            BarrierPlan less = plan;
            less.barriers.erase(less.barriers.begin() + static_cast<std::ptrdiff_t>(i));
            REQUIRE(first_violation(program, less, lenient(1)) != "");
        }
        if (plan.head.src_stages != 0) {
            BarrierPlan less = plan;
            less.head = {};
            REQUIRE(first_violation(program, less, lenient(2)) != "");
        }
        // A custom operation may write host-visible memory that the program does not name; the model knows of none.
        const bool named = std::ranges::count(program.host_visible, 0) < std::ssize(program.host_visible);
        if (plan.tail.src_stages != 0 &&
            (named || std::ranges::none_of(program.commands, &kp::CommandUses::full_barrier))) {
            BarrierPlan less = plan;
            less.tail = {};
            REQUIRE(first_violation(program, less, lenient(1)) != "");
        }
    }
    CHECK(removed > 5000);
}

TEST_CASE("hazard: the number of barriers is the smallest possible") {
    for (uint32_t seed = 20000; seed < 24000; ++seed) {
        const Program program = Generator(seed).program(small_shape(seed));
        CAPTURE(seed);
        REQUIRE(static_cast<int>(plan_of(program).barriers.size()) == fewest_barriers(program));
    }
}

// Reads that cross many runs fuse them; see hazard.hpp. That must cost neither soundness nor barriers.
TEST_CASE("hazard: much-divided resources") {
    for (uint32_t seed = 30000; seed < 30060; ++seed) {
        Shape shape;
        shape.commands = 90;
        shape.resources = 2;
        shape.uses = 2;
        shape.size = 60;
        shape.whole_percent = seed % 3 * 8;
        shape.full_percent = seed % 2;
        shape.read_percent = 20 + seed % 5 * 10;
        Generator generator(seed);
        Program program = generator.program(shape);
        // Mostly short ranges, so that many runs arise; the rest cross them.
        for (Use& use : program.uses)
            if (generator.below(8) != 0 && use.end != UINT64_MAX) use.end = std::min(use.end, use.begin + 2);
        const BarrierPlan plan = plan_of(program);
        CAPTURE(seed);
        REQUIRE(first_violation(program, plan, strict(2)) == "");

        // Too long to try all sets, so the greedy answer over all conflicts, found the slow way.
        size_t fewest = 0;
        uint32_t last = 0;
        for (uint32_t j = 1; j < program.commands.size(); ++j) {
            bool open = false;
            for (uint32_t i = last; i < j && !open; ++i) open = conflict(program, i, j);
            if (open) {
                ++fewest;
                last = j;
            }
        }
        REQUIRE(plan.barriers.size() == fewest);
    }
}

// ------------------------------------------------------------------------------------------ the bits of the masks

// A pair of commands, or of a command and what is before (-1) or after (count) the stream, that use a byte with no write
// to it in between, and their scopes.
struct NeededPair {
    int earlier = 0;
    int later = 0;
    kp::Scope src;
    kp::Scope dst;
};

std::vector<NeededPair> needed_pairs(const Program& program) {
    std::vector<NeededPair> pairs;
    const int count = static_cast<int>(program.commands.size());
    std::map<uint32_t, std::set<uint64_t>> edges;
    for (const Use& use : program.uses)
        if (use.begin < use.end) edges[use.resource].insert({use.begin, use.end});
    for (const auto& [resource, at] : edges) {
        for (auto it = at.begin(); it != std::prev(at.end()); ++it) {
            std::vector<kp::Scope> scopes(static_cast<size_t>(count) + 2);
            scopes.front() = kp::scope_of(UseKind::everything);
            scopes.back() = kp::scope_of(UseKind::host_read);
            for (int c = 0; c < count; ++c) {
                const auto& command = program.commands[static_cast<size_t>(c)];
                for (uint32_t u = command.first; u < command.first + command.count; ++u) {
                    const Use& use = program.uses[u];
                    if (use.resource != resource || !used(use) || *it < use.begin || *it >= use.end) continue;
                    scopes[static_cast<size_t>(c) + 1].stages |= kp::scope_of(use.kind).stages;
                    scopes[static_cast<size_t>(c) + 1].access |= kp::scope_of(use.kind).access;
                }
            }
            for (int i = -1; i < count; ++i) {
                for (int j = i + 1; j <= count; ++j) {
                    const kp::Scope& dst = scopes[static_cast<size_t>(j) + 1];
                    if (dst.stages == 0) continue;
                    pairs.push_back({i, j, scopes[static_cast<size_t>(i) + 1], dst});
                    if (kp::write_access(dst.access) != 0) break;
                }
            }
        }
    }
    return pairs;
}

// Each bit of each mask is taken away in turn, and the model has to object. That can be asked only of a bit that no chain
// of other barriers replaces: if a pair that the bit serves has two or more barriers (counting head and tail) between
// its commands, another one may lead the same way, and the direct cover that the plan promises is more than the model
// needs. Such bits are excused, if a pair of that sort really has the bit; all others are not. Also left out are
//   programs with custom operations that declared nothing: their barriers are full ones by decision;
//   the shader stage in a destination that has the indirect stage, which includes it as logically later.
TEST_CASE("hazard: no bit of a mask is superfluous") {
    int demanded = 0;
    int excused = 0;
    for (uint32_t seed = 40000; seed < 43000; ++seed) {
        Shape shape = small_shape(seed);
        shape.full_percent = 0;
        const Program program = Generator(seed).program(shape);
        const BarrierPlan plan = plan_of(program);
        const auto pairs = needed_pairs(program);
        const int count = static_cast<int>(program.commands.size());

        // The commands that a barrier stands between: it serves pairs with earlier < place <= later.
        const auto between = [&](const NeededPair& pair) {
            int found = (pair.earlier < 0 && plan.head.src_stages != 0) +
                        (pair.later == count && plan.tail.src_stages != 0);
            for (const Barrier& barrier : plan.barriers)
                found += pair.earlier < static_cast<int>(barrier.before) &&
                         static_cast<int>(barrier.before) <= pair.later;
            return found;
        };
        const auto excusable = [&](int place, uint32_t Barrier::*mask, uint32_t bit) {
            return std::ranges::any_of(pairs, [&](const NeededPair& pair) {
                const uint32_t has = mask == &Barrier::src_stages   ? pair.src.stages
                                     : mask == &Barrier::src_access ? pair.src.access
                                     : mask == &Barrier::dst_stages ? pair.dst.stages
                                                                    : pair.dst.access;
                return (has & bit) != 0 && pair.earlier < place && place <= pair.later && between(pair) > 1;
            });
        };
        const auto try_all = [&](auto&& barrier_in, int place) {
            for (const auto mask :
                 {&Barrier::src_stages, &Barrier::src_access, &Barrier::dst_stages, &Barrier::dst_access}) {
                for (uint32_t bit = 1; bit != 0; bit <<= 1) {
                    const Barrier& whole = barrier_in(plan);
                    if ((whole.*mask & bit) == 0) continue;
                    if (mask == &Barrier::dst_stages && bit == kCompute &&
                        (whole.dst_stages & kIndirect) != 0)
                        continue;
                    BarrierPlan less = plan;
                    const_cast<Barrier&>(barrier_in(less)).*mask &= ~bit;
                    if (first_violation(program, less, lenient(1)) != "") {
                        ++demanded;
                        continue;
                    }
                    ++excused;
                    CAPTURE(seed);
                    CAPTURE(place);
                    CAPTURE(bit);
                    REQUIRE(excusable(place, mask, bit));
                }
            }
        };
        try_all([](const BarrierPlan& p) -> const Barrier& { return p.head; }, 0);
        try_all([&](const BarrierPlan& p) -> const Barrier& { return p.tail; }, count);
        for (size_t i = 0; i < plan.barriers.size(); ++i)
            try_all([i](const BarrierPlan& p) -> const Barrier& { return p.barriers[i]; },
                    static_cast<int>(plan.barriers[i].before));
    }
    MESSAGE("bits that the model demands: ", demanded, ", excused: ", excused);
    CHECK(demanded > 10 * excused);
}

// --------------------------------------------------------------------------------------------------- the model

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

// ---------------------------------------------------------------------------------------------------- how long

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
