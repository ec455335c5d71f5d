// Random programs, judged by the independent model of record/visibility_model.hpp.
#include "record/hazard_programs.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <map>
#include <set>

namespace {

using namespace kp::test;

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

// For programs too long to try all sets: the greedy answer over all conflicts, found the slow way.
size_t greedy_barriers(const Program& program) {
    size_t count = 0;
    uint32_t last = 0;
    for (uint32_t j = 1; j < program.commands.size(); ++j) {
        bool open = false;
        for (uint32_t i = last; i < j && !open; ++i) open = conflict(program, i, j);
        if (!open) continue;
        ++count;
        last = j;
    }
    return count;
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
        // A custom operation may write host-visible memory that the program does not name; the model knows of
        // none.
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

// Reads that cross many runs fuse them; see record/hazard.hpp. That must cost neither soundness nor barriers.
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
        REQUIRE(plan.barriers.size() == greedy_barriers(program));
    }
}

// The same, aimed at what a fused run has to remember: parts with different pasts, one read across all of
// them, then a few uses of single parts. Writes of a second resource make barriers in between.
TEST_CASE("hazard: one part of a fused run") {
    constexpr UseKind reading[]{kR, kFrom, UseKind::uniform_read, UseKind::indirect_read, UseKind::any_read};
    constexpr UseKind writing[]{kW, kTo};
    constexpr uint64_t parts = 24;
    for (uint32_t seed = 35000; seed < 37000; ++seed) {
        Generator generator(seed);
        Program program = make({});
        const UseKind other = writing[generator.below(2)];
        const auto use_part = [&](uint32_t read_percent) {
            const uint64_t at = generator.below(parts);
            const bool read = generator.below(100) < read_percent;
            add(program,
                {{0, read ? reading[std::min(generator.below(17) / 4, 4U)] : writing[generator.below(2)], at,
                  at + 1}});
        };
        for (uint32_t i = 0; i < 40; ++i) {
            if (generator.below(8) == 0) add(program, {{1, other}});
            use_part(40);
        }
        add(program, {{0, reading[std::min(generator.below(17) / 4, 4U)], 0, parts}});
        for (uint32_t i = 0; i < 3; ++i) {
            if (generator.below(2) == 0) add(program, {{1, other}});
            use_part(50);
        }
        CAPTURE(seed);
        const BarrierPlan plan = plan_of(program);
        REQUIRE(first_violation(program, plan, strict(1)) == "");
        REQUIRE(plan.barriers.size() == greedy_barriers(program));
    }
}

// ---------------------------------------------------------------- the bits of the masks

// A pair of commands, or of a command and what is before (-1) or after (count) the stream, that use a byte
// with no write to it in between, and their scopes.
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

// Each bit of each mask is taken away in turn, and the model has to object. That can be asked only of a bit
// that no chain of other barriers replaces: if a pair that the bit serves has two or more barriers (counting
// head and tail) between its commands, another one may lead the same way, and the direct cover that the plan
// promises is more than the model needs. Such bits are excused, if a pair of that sort really has the bit;
// all others are not. Also left out are
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

}  // namespace
