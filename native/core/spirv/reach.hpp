// How far the invocations of an entry point reach into the arrays of its buffers: the element that each
// invocation certainly uses, as an expression of its number, push constants and array lengths. Pure.
#pragma once

#include "spirv/reach_terms.hpp"
#include "spirv/shader_info.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kp {

// Every invocation for which left < right holds for each of `guards` uses element `index` of the array that
// begins at byte `offset` of the block.
struct Reach {
    uint32_t set = 0;
    uint32_t binding = 0;
    uint64_t offset = 0;
    uint32_t stride = 0;
    uint32_t index = 0;
    std::vector<std::pair<uint32_t, uint32_t>> guards;
    bool alone = true;  // no other invocation uses the element, and all code uses the binding in this way
};

// An access to an array or an image, on or beside the path, with indices that depend on the invocation's
// number.
struct ReachAccess {
    uint32_t set = 0;
    uint32_t binding = 0;
    uint64_t offset = 0;
    uint32_t stride = 0;                                // 0 for an image
    uint64_t length = 0;                                // elements, if the shader declares them; else 0
    std::vector<uint32_t> indices;                      // one for an array, one for each axis of an image
    std::vector<std::pair<uint32_t, uint32_t>> guards;  // hold at every such access, unlike `Reach::guards`
    bool written = false;
    bool certain = false;  // every invocation that passes the guards makes it
    ReachWrite write;      // of writes to arrays, if they were judged
};

struct ShaderReach {
    std::vector<ReachExpression>
        expressions;  // operands come before the expressions that use them; equal ones are one
    std::vector<Reach> reaches;
    std::vector<ReachAccess> accesses;
    // (set, binding) of buffers and images with writes that `accesses` does not list, such as those in loops
    // or at constant indices. `any_binding`: of a write whose binding is unknown.
    std::vector<std::pair<uint32_t, uint32_t>> written_elsewhere;
    static constexpr std::pair<uint32_t, uint32_t> any_binding{~0u, ~0u};
};

// Throws the errors of reflect(). `judged`: finds `ReachAccess::write` of writes with an index of several
// axes.
[[nodiscard]] ShaderReach reach(std::span<const uint32_t> words, const std::string& entry = "main",
                                std::span<const SpecValue> specialization = {}, bool judged = false);

}  // namespace kp
