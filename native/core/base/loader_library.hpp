// Loads the Vulkan loader library from a place other than the system's.
#pragma once

#include "base/vulkan.hpp"

#include <string>

namespace kp {

// Files and folders, separated by ';', to load the loader from. Read once, when the loader is first opened.
inline constexpr const char* loader_variable = "KOMPUTE_PY_VULKAN_LIBRARY";

struct NamedLoader {
    bool named = false;                            // the variable names a place
    PFN_vkGetInstanceProcAddr get_proc = nullptr;  // of the first library that opens
    std::string error;                             // each library that was tried, and why it failed
};

[[nodiscard]] NamedLoader open_named_loader();

}  // namespace kp
