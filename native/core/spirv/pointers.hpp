// Pointers of the Logical addressing model: they name variables and their parts, and have no bits.
//
// Some versions of SPIRV-Tools accept a module that converts such a pointer to a number or to another pointer
// with OpBitcast, that has a null pointer, or that uses an undefined pointer through a copy. Drivers then
// fail without a reason, or end the process when the shader runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace kp {

// The fault of the module's logical pointers, as a sentence; "" if there is none. A pointer into
// PhysicalStorageBuffer is an address and may be converted. Throws Error(invalid_argument) for a malformed
// module.
[[nodiscard]] std::string pointer_problem(std::span<const uint32_t> words);

}  // namespace kp
