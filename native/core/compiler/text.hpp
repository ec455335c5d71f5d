// The text of a shader, cut into tokens: what can be known about it before a compiler sees it, and a form of it from
// which the compiler's messages can be placed exactly.
//
// glslang names the line of an error, not the column (versions before 13 cannot, and shaderc never asks for it). So
// when a compilation fails, the same text is compiled again with every token on a line of its own: the line that the
// second run names is then the very token, and `positions` says where that token stands in the text as written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kp {

struct TextPosition {
    uint32_t line = 0;    // 1-based; 0 when unknown
    uint32_t column = 0;  // 1-based, in characters of UTF-8, not bytes
};

struct ShaderTextFacts {
    bool blank = true;  // nothing but white space and comments
    // Of a #version directive that comes before all else, as it must.
    bool has_version = false;
    int64_t version = -1;  // -1: not a number
    std::string profile;
    bool version_is_clean = true;  // nothing else stands on its line
    TextPosition version_at;
    bool has_line_directive = false;
    // What no compiler may be given: it would read past it, or exhaust its stack. "" when there is none.
    std::string problem;
    TextPosition problem_at;
};

[[nodiscard]] ShaderTextFacts inspect_shader_text(std::string_view text);

struct TokenLines {
    std::string text;
    std::vector<TextPosition> positions;  // of what stands on line i + 1 of `text`
};

// Line directives are left out: they would hide where a line really stands.
[[nodiscard]] TokenLines one_token_per_line(std::string_view text);

// Line `number` (from 1 on) without its end; "" when there is none.
[[nodiscard]] std::string_view line_of_text(std::string_view text, uint32_t number);

// Where `word` stands in `line` as a word of its own, as a column from 1 on; 0 when it does not. The first such place, or
// with `until` the last one up to that column.
[[nodiscard]] uint32_t column_of_word(std::string_view line, std::string_view word, uint32_t until = 0);

// The same text with each byte that is not UTF-8 replaced by U+FFFD, so that any message can become a Python str.
[[nodiscard]] std::string to_valid_utf8(std::string_view text);

}  // namespace kp
