// Parses the messages of the shader compilers into Diagnostics, and formats Diagnostics for people.
#pragma once

#include "compiler/diagnostic.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kp {

// Parses shaderc's log. `file` is the name that the compiler was given; columns and source lines are still
// unknown.
[[nodiscard]] std::vector<Diagnostic> parse_compiler_log(std::string_view log);

// Removes messages that only say that an earlier error ended the work.
void drop_aftermath(std::vector<Diagnostic>& diagnostics);

// The token that a message is about: `foo` of "'foo' : undeclared identifier"; "" if it names none.
[[nodiscard]] std::string_view quoted_token(std::string_view message);

// Each diagnostic as
//   blur.comp:12:9: error: 'foo' : undeclared identifier
//      12 |     x = foo;
//         |         ^
// and the number of errors at the end. Shows at most the first hundred.
[[nodiscard]] std::string render_diagnostics(const std::vector<Diagnostic>& diagnostics);

}  // namespace kp
