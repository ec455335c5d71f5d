// The variables of a compute shader that are not its bindings: which there may be.
//
// A compute shader has no inputs but built-ins, and no outputs. SPIRV-Tools takes others, since the storage classes exist; drivers
// look for what a pipeline of stages would have given them, and end the process. So they do for a built-in of another type than its
// own; SPIRV-Tools compares the types of most built-ins, and not that of LocalInvocationIndex.
#pragma once

#include "spirv/reflect.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace kp {

// What is wrong with the variables of the entry point, as a sentence that names the first such one and says what to do; ""
// if nothing is. Throws Error(invalid_argument) for a malformed module.
[[nodiscard]] std::string interface_problem(std::span<const uint32_t> words, const std::string& entry);

// The first array whose length these constants make less than 1, which SPIR-V does not have and drivers do not look for, as a
// sentence that says what to do; "" if there is none.
[[nodiscard]] std::string empty_array(std::span<const uint32_t> words,
                                      std::span<const SpecValue> specialization);

// Bytes of all variables that each invocation has by itself (Private, Function), of any function, without alignment.
// Vulkan has no limit for them: compilers of drivers run for hours, or end the process, on arrays of megabytes.
[[nodiscard]] uint64_t private_bytes(std::span<const uint32_t> words,
                                     std::span<const SpecValue> specialization = {});

}  // namespace kp
