// Physical devices as Python dictionaries; _native.pyi lists their keys.
#pragma once

#include "bindings.hpp"

namespace kp {

[[nodiscard]] py::dict device_info(const PhysicalDevice& device);
[[nodiscard]] py::tuple enumerate_devices(const std::optional<std::string>& visible,
                                          const std::string& driver);
[[nodiscard]] py::dict select_device_for_python(const std::optional<uint32_t>& index,
                                                const std::string& preferences,
                                                const std::optional<std::string>& visible,
                                                const std::string& driver);
[[nodiscard]] py::dict loader_info_to_python();

}  // namespace kp
