// What is known about an invocation's elements: expressions of its number, and the writes that it makes.
#pragma once

#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

namespace kp {

enum class ReachTerm : uint8_t {
    unknown,        // a value of its own
    constant,       // value
    invocation,     // gl_GlobalInvocationID, axis `value`
    group,          // gl_WorkGroupID
    local,          // gl_LocalInvocationID
    groups,         // gl_NumWorkGroups
    push_constant,  // 32-bit integer at push-constant byte `value`; `b` is 1 if converted from a float
    length,         // of the run-time array of binding `b` in set `a`
    image_size,     // of the image of binding `b` in set `a`, axis `value`
    memory,         // at byte `value` of binding `b` in set `a`, which no invocation writes
    derived,        // made of the invocation's number in an unknown way, such as by float arithmetic
    add,            // terms a and b
    subtract,
    multiply,
    minimum,
    maximum,
    divide,  // towards zero
    modulo,  // with the sign of `a`
    shift_left,
    shift_right,
    bit_and,
    bit_or,
    bit_xor,
    either,  // one of the two
};

struct ReachExpression {
    ReachTerm term = ReachTerm::unknown;
    int64_t value = 0;
    uint32_t a = 0;
    uint32_t b = 0;

    friend auto operator<=>(const ReachExpression&, const ReachExpression&) = default;
};

// What two invocations do that write the same element of an array.
struct ReachWrite {
    // They write the same value: `Same::yes`, if `required` holds for all invocations that are meant. Unknown
    // if the index is not followed.
    enum class Same : uint8_t { unknown, no, yes } same = Same::unknown;
    using Comparisons = std::vector<std::pair<uint32_t, uint32_t>>;  // the first is less than the second
    // They hold for each invocation that writes, and differ between invocations with the same element. The
    // second is `unknown` if it is not followed.
    Comparisons holding;
    Comparisons required;                              // some of `holding`
    std::vector<std::pair<uint32_t, uint32_t>> reads;  // (set, binding) of the memory that the value is from
};

}  // namespace kp
