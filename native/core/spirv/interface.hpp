// Checks the variables of a compute shader that are not its bindings.
//
// A compute shader has no inputs except built-ins, and no outputs. SPIRV-Tools accepts others, because their
// storage classes exist. Drivers then look for values that another pipeline stage would have passed, and end
// the process. They do the same if a built-in has the wrong type. SPIRV-Tools checks the types of most
// built-ins, but not the type of LocalInvocationIndex.
#pragma once

#include "spirv/shader_info.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace kp {

// The first invalid variable of the entry point, as a sentence that names it and the fix; "" if all are
// valid. Throws Error(invalid_argument) for a malformed module.
[[nodiscard]] std::string interface_problem(std::span<const uint32_t> words, const std::string& entry);

// The first array that has a length below 1 with these constants, as a sentence with the fix; "" if there is
// none. SPIR-V does not allow such arrays, and drivers do not check for them.
[[nodiscard]] std::string empty_array(std::span<const uint32_t> words,
                                      std::span<const SpecValue> specialization);

// The total size, in bytes, of the variables that each invocation owns (Private, Function), in all functions,
// without alignment. Vulkan does not limit it: with arrays of megabytes, drivers' compilers run for hours or
// end the process.
[[nodiscard]] uint64_t private_bytes(std::span<const uint32_t> words,
                                     std::span<const SpecValue> specialization = {});

}  // namespace kp
