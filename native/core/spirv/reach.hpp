// The elements that the invocations of an entry point use: each access to an array or an image, with its
// index as an expression of the invocation's number, and the bounds checks that it stands behind. Pure.
//
// It reads code that is optimized: functions are inlined, variables are values, dead code is gone. What it
// does not follow, such as accesses in functions that are still called, it lists with an unknown index.
#pragma once

#include "spirv/shader_info.hpp"

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kp {

enum class ReachTerm : uint8_t {
    unknown,        // from memory, or not followed; `b` is 1 if it may be negative
    constant,       // value
    invocation,     // gl_GlobalInvocationID, axis `value`
    group,          // gl_WorkGroupID
    local,          // gl_LocalInvocationID
    groups,         // gl_NumWorkGroups
    push_constant,  // 32-bit integer at push-constant byte `value`; `b` is 1 if converted from a float
    length,         // of the run-time array of binding `b` in set `a`
    image_size,     // of the image of binding `b` in set `a`, axis `value`
    memory,         // at byte `value` of binding `b` in set `a`, which no invocation writes
    derived,        // made of the invocation's number in another way, such as by float arithmetic
    add,            // terms a and b
    subtract,
    multiply,
    minimum,
    maximum,
    divide,  // towards zero
    modulo,  // with the sign of `a`
};

struct ReachExpression {
    ReachTerm term = ReachTerm::unknown;
    int64_t value = 0;
    uint32_t a = 0;
    uint32_t b = 0;

    friend auto operator<=>(const ReachExpression&, const ReachExpression&) = default;
};

struct ReachAccess {
    uint32_t set = 0;
    uint32_t binding = 0;
    uint64_t offset = 0;  // of the array in its block
    uint32_t stride = 0;  // bytes from one element to the next; 0 for an image, and for what is not followed
    uint64_t length = 0;  // elements, if the shader declares them; else 0
    std::vector<uint32_t> indices;  // one for an array, one for each axis of an image
    std::vector<std::pair<uint32_t, uint32_t>>
        guards;  // the first is less than the second, at every such access
    bool written = false;
    bool certain = false;  // every invocation that passes the guards makes it

    static constexpr uint32_t any_binding = ~0u;  // as `set` and `binding`: it may be any
};

struct ShaderReach {
    std::vector<ReachExpression> expressions;  // operands come before what uses them; equal ones are one
    std::vector<ReachAccess> accesses;
};

// Throws the errors of reflect().
[[nodiscard]] ShaderReach reach(std::span<const uint32_t> words, const std::string& entry = "main",
                                std::span<const SpecValue> specialization = {});

}  // namespace kp
