// What the shader compilers print, read into Diagnostics, and Diagnostics shown to a person.
#pragma once

#include "compiler/compile.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kp {

// Reads shaderc's log. `file` is what the compiler was told as the name; columns and source lines are unknown yet.
[[nodiscard]] std::vector<Diagnostic> parse_compiler_log(std::string_view log);

// Takes out what only says that an earlier error ended the work.
void drop_aftermath(std::vector<Diagnostic>& diagnostics);

// The token that a message is about: `foo` of "'foo' : undeclared identifier"; "" when it names none.
[[nodiscard]] std::string_view quoted_token(std::string_view message);

// Of HLSL, what glslang takes may be no valid SPIR-V, which shows only in "failed to optimize", with no place and an instruction of the
// SPIR-V. Says what is wrong in terms of the source instead, and puts it where `text` names what the instruction is about.
void explain_invalid_code(Diagnostic& diagnostic, const std::string& file, std::string_view text,
                          const std::string& entry);

// Each diagnostic as
//   blur.comp:12:9: error: 'foo' : undeclared identifier
//      12 |     x = foo;
//         |         ^
// and the number of errors at the end. Of very many, the first hundred.
[[nodiscard]] std::string render_diagnostics(const std::vector<Diagnostic>& diagnostics);

}  // namespace kp
