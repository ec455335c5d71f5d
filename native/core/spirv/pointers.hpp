// Pointers of the Logical addressing model: they are names of variables and their parts, and have no bits.
//
// SPIRV-Tools of some versions takes a module that converts such a pointer to a number or another pointer with OpBitcast, or that has
// a null one, or uses an undefined one through a copy. Drivers fail without a reason, or end the process when the shader runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace kp {

// What is wrong with the logical pointers of the module, as a sentence; "" if nothing is. A pointer into PhysicalStorageBuffer is an
// address, and may be converted. Throws Error(invalid_argument) for a malformed module.
[[nodiscard]] std::string pointer_problem(std::span<const uint32_t> words);

}  // namespace kp
