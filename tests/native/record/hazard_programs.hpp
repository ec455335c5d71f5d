// Programs for the tests of barrier plans: written by hand in a line, or random; and what to ask the model
// about them.
#pragma once

#include "record/hazard.hpp"
#include "record/visibility_model.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kp::test {

using kp::Barrier;
using kp::BarrierPlan;
using kp::Use;
using kp::UseKind;
using kp::model::Program;
using kp::model::Rules;

inline constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
inline constexpr VkPipelineStageFlags kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
inline constexpr VkPipelineStageFlags kIndirect = VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
inline constexpr VkPipelineStageFlags kAll = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
inline constexpr VkAccessFlags kShaderRead = VK_ACCESS_SHADER_READ_BIT;
inline constexpr VkAccessFlags kShaderWrite = VK_ACCESS_SHADER_WRITE_BIT;
inline constexpr VkAccessFlags kTransferRead = VK_ACCESS_TRANSFER_READ_BIT;
inline constexpr VkAccessFlags kTransferWrite = VK_ACCESS_TRANSFER_WRITE_BIT;
inline constexpr VkAccessFlags kMemoryWrite = VK_ACCESS_MEMORY_WRITE_BIT;
inline constexpr VkAccessFlags kMemory = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;

inline constexpr UseKind kR = UseKind::shader_read;
inline constexpr UseKind kW = UseKind::shader_write;
inline constexpr UseKind kRW = UseKind::shader_read_write;
inline constexpr UseKind kFrom = UseKind::transfer_read;
inline constexpr UseKind kTo = UseKind::transfer_write;

inline void add(Program& program, std::initializer_list<Use> uses) {
    program.commands.push_back(
        {static_cast<uint32_t>(program.uses.size()), static_cast<uint32_t>(uses.size()), false});
    program.uses.insert(program.uses.end(), uses);
}

inline void add_full(Program& program) {
    program.commands.push_back({static_cast<uint32_t>(program.uses.size()), 0, true});
}

inline Program make(std::initializer_list<std::initializer_list<Use>> commands,
                    std::vector<uint8_t> host_visible = {}) {
    Program program;
    for (const auto& uses : commands) add(program, uses);
    host_visible.resize(std::max<size_t>(host_visible.size(), 8));
    program.host_visible = std::move(host_visible);
    return program;
}

inline BarrierPlan plan_of(const Program& program) {
    // One planner for all tests: what an earlier call left in it must not matter.
    static kp::HazardPlanner planner;
    BarrierPlan plan;
    planner.plan(program.commands, program.uses, program.host_visible, plan);
    return plan;
}

inline std::string first_violation(const Program& program, const BarrierPlan& plan, const Rules& rules) {
    const auto found = kp::model::violations(program, plan, rules);
    return found.empty() ? "" : found.front();
}

inline Rules strict(int submissions) { return {.submissions = submissions}; }
inline Rules lenient(int submissions) { return {.chain_needs_command = false, .submissions = submissions}; }

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
        constexpr UseKind reading[]{
            kR,
            kR,
            kFrom,
            kFrom,
            kFrom,
            UseKind::uniform_read,
            UseKind::sampled_read,
            UseKind::indirect_read,
            UseKind::host_read,
            UseKind::any_read,
        };
        constexpr UseKind writing[]{kW, kW, kRW, kRW, kTo, kTo, kTo, UseKind::everything};
        Use made;
        made.resource = below(shape.resources);
        made.kind = below(100) < shape.read_percent ? reading[below(10)] : writing[below(8)];
        if (below(100) >= shape.whole_percent) {
            made.begin = below(static_cast<uint32_t>(shape.size));
            made.end = made.begin + below(static_cast<uint32_t>(shape.size - made.begin) + 1);
        }
        return made;
    }

    std::mt19937 random_;
};

inline Shape small_shape(uint32_t seed) {
    Shape shape;
    shape.commands = 2 + seed % 8;
    shape.resources = 1 + seed % 4;
    shape.uses = 1 + seed / 3 % 3;
    shape.whole_percent = seed / 5 % 3 * 50;
    shape.full_percent = seed % 3 == 0 ? 12 : 0;
    shape.read_percent = 30 + seed / 7 % 3 * 20;
    return shape;
}

}  // namespace kp::test
