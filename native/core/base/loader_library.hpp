// Where the Vulkan loader library is taken from, when not from where the system has it.
#pragma once

#include "base/vulkan.hpp"

#include <string>

namespace kp {

// Files and folders, separated by ';', to take the loader from. Read once, when the loader is opened first.
inline constexpr const char* loader_variable = "KOMPUTE_PY_VULKAN_LIBRARY";

struct NamedLoader {
    bool named = false;                            // the variable names some place
    PFN_vkGetInstanceProcAddr get_proc = nullptr;  // of the first library that opens
    std::string error;                             // what was tried, and why each failed
};

[[nodiscard]] NamedLoader open_named_loader();

}  // namespace kp
