// The device features that a module's atomics need: for 64-bit integers and for floats, by the kind of
// memory. One SPIR-V capability stands for several such features, and a device may have only some of them.
#pragma once

#include "spirv/module.hpp"

#include <string>
#include <vector>

namespace kp::spirv {

// Vulkan's names of the features, each once, in the order of the code. Covers all functions, because a driver
// sees them all.
[[nodiscard]] std::vector<std::string> atomic_features(const Module& module);

}  // namespace kp::spirv
