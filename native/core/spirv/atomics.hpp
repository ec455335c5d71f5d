// Which device features a module's atomics need: of 64-bit integers and of floats, by where the memory is. A SPIR-V
// capability stands for several such features, of which a device may have only some.
#pragma once

#include "spirv/module.hpp"

#include <string>
#include <vector>

namespace kp::spirv {

// Vulkan's names of the features, each once, in the order of the code. Of all functions: a driver sees them all.
[[nodiscard]] std::vector<std::string> atomic_features(const Module& module);

}  // namespace kp::spirv
