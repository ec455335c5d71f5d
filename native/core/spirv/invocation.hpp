// The numbers of its invocation that an entry point's code uses, which a grid has to count. Pure.
#pragma once

#include "spirv/shader_info.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace kp {

// Bit 0 is x, 1 y, 2 z. Code that is optimized uses only what has an effect.
struct InvocationUse {
    uint8_t global = 0;  // gl_GlobalInvocationID
    uint8_t group = 0;   // gl_WorkGroupID
    uint8_t group_alone =
        0;  // of `group`: in some place not multiplied by at least the group's size on that axis
    uint8_t group_below_block =
        0;              // of `group`: in some place not multiplied by at least all invocations of a group
    uint8_t local = 0;  // gl_LocalInvocationID
    uint8_t group_count = 0;   // gl_NumWorkGroups
    bool local_index = false;  // gl_LocalInvocationIndex, or the numbers of subgroups
};

// Of the entry point that reflect() finds by name, with the specialization applied. Throws the errors of
// reflect().
[[nodiscard]] InvocationUse invocation_use(std::span<const uint32_t> words, const std::string& entry = "main",
                                           std::span<const SpecValue> specialization = {});

}  // namespace kp
