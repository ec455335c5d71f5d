#pragma once
#include "core/shader_compile.hpp"
#include <pybind11/pybind11.h>
namespace kp { pybind11::object diagnostics_to_python(const std::vector<Diagnostic>&); }
