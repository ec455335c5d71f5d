// Loads the Vulkan loader library from a place other than the system's, and has it find one driver.
#pragma once

#include "base/vulkan.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kp {

// Files and folders, separated by ';', to load the loader from. Read once, when the loader is first opened.
inline constexpr const char* loader_variable = "KOMPUTE_PY_VULKAN_LIBRARY";

struct NamedLoader {
    bool named = false;                            // the variable names a place
    PFN_vkGetInstanceProcAddr get_proc = nullptr;  // of the first library that opens
    std::string error;                             // each library that was tried, and why it failed
};

[[nodiscard]] NamedLoader open_named_loader();

// While it lives, the loader finds the driver of this manifest alone: the variables that name drivers are set
// in the process's environment, as by os.environ. Does nothing for "".
class OnlyDriver {
public:
    explicit OnlyDriver(const std::string& manifest);
    OnlyDriver(const OnlyDriver&) = delete;
    OnlyDriver& operator=(const OnlyDriver&) = delete;
    ~OnlyDriver();

private:
    std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

// The file that holds a function; empty if the system does not tell.
[[nodiscard]] std::string library_of(const void* function);

}  // namespace kp
