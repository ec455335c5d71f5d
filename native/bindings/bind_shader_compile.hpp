#pragma once

#include "compiler/compile.hpp"

#include <pybind11/pybind11.h>

namespace kp {

// Text for messages: bytes that are not valid UTF-8, as in paths, become escapes.
[[nodiscard]] pybind11::str to_text(const std::string& text);
// A list of tuples (file, line, column, severity, message, source_line).
[[nodiscard]] pybind11::object diagnostics_to_python(const std::vector<Diagnostic>& diagnostics);
// A list of (path, content or None).
[[nodiscard]] pybind11::list probes_to_python(const std::vector<IncludeProbe>& probes);

}  // namespace kp
