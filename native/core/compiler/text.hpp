// Splits a shader's text into tokens. This gives facts about the text before a compiler sees it, and a form
// of the text from which the compiler's messages can be placed exactly.
//
// glslang names the line of an error, not the column (versions before 13 cannot, and shaderc never asks for
// it). So after a failed compilation, the same text is compiled again with every token on its own line. The
// line in the second run's message then identifies the token, and `positions` gives its place in the original
// text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kp {

struct TextPosition {
    uint32_t line = 0;    // 1-based; 0 if unknown
    uint32_t column = 0;  // 1-based, in characters of UTF-8, not bytes
};

struct ShaderTextFacts {
    bool blank = true;  // only white space and comments
    // Of a #version directive before all other code, as GLSL requires.
    bool has_version = false;
    int64_t version = -1;  // -1: not a number
    std::string profile;
    bool version_is_clean = true;  // its line holds nothing else
    TextPosition version_at;
    bool has_line_directive = false;
    // A problem that would make a compiler read past the text or exhaust its stack; "" if there is none.
    std::string problem;
    TextPosition problem_at;
};

[[nodiscard]] ShaderTextFacts inspect_shader_text(std::string_view text);

struct TokenLines {
    std::string text;
    std::vector<TextPosition> positions;  // of the token on line i + 1 of `text`
};

// Leaves out line directives: they would hide the real line numbers.
[[nodiscard]] TokenLines one_token_per_line(std::string_view text);

// Line `number` (from 1 on) without its end; "" if there is none.
[[nodiscard]] std::string_view line_of_text(std::string_view text, uint32_t number);

// The column (from 1 on) of `word` in `line`, as a separate word; 0 if it does not occur. The first
// occurrence, or with `until` the last one up to that column.
[[nodiscard]] uint32_t column_of_word(std::string_view line, std::string_view word, uint32_t until = 0);

// The same text with each byte that is not UTF-8 replaced by U+FFFD, so that any message can become a Python
// str.
[[nodiscard]] std::string to_valid_utf8(std::string_view text);

}  // namespace kp
