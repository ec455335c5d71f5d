#include "compiler/text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace kp {
namespace {

// The compiler recurses once per nested bracket and per operator of an expression, with up to 2.6 KiB of
// stack each. These limits keep it far within `deep_stack_bytes`; no shader by a person or a sane generator
// reaches them.
constexpr uint32_t max_nesting = 10'000;
constexpr uint32_t max_statement_tokens = 100'000;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

enum class TokenKind : uint8_t { word, symbol, directive, open_comment, end };

struct Token {
    TokenKind kind = TokenKind::end;
    std::string_view text;
    TextPosition at;
};

class Lexer {
public:
    explicit Lexer(std::string_view text) : text_(text) {}

    Token next() {
        if (!skip_space()) {
            const Token token{TokenKind::open_comment, text_.substr(offset_), position()};
            advance(text_.size() - offset_);
            return token;
        }
        if (offset_ == text_.size()) return {TokenKind::end, {}, position()};
        if (at_line_start_ && text_[offset_] == '#') return directive();
        at_line_start_ = false;
        const TextPosition at = position();
        const size_t begin = offset_;
        const bool word = is_word(text_[offset_]) || (text_[offset_] == '.' && is_digit(peek(1)));
        advance(word ? word_length() : symbol_length());
        return {word ? TokenKind::word : TokenKind::symbol, text_.substr(begin, offset_ - begin), at};
    }

private:
    [[nodiscard]] TextPosition position() const { return {line_, column_}; }
    [[nodiscard]] char peek(size_t ahead) const {
        return offset_ + ahead < text_.size() ? text_[offset_ + ahead] : '\0';
    }

    void advance(size_t count) {
        for (const size_t end = std::min(offset_ + count, text_.size()); offset_ < end; ++offset_) {
            const char c = text_[offset_];
            if (c == '\n' || (c == '\r' && peek(1) != '\n')) {
                ++line_;
                column_ = 1;
            } else if (!continues_character(peek(1)) && c != '\r') {
                ++column_;
            }
        }
    }

    // Length of a backslash and the line end after it; 0 if there is none here.
    [[nodiscard]] size_t splice_length() const {
        if (peek(0) != '\\') return 0;
        if (peek(1) == '\n') return 2;
        if (peek(1) == '\r') return peek(2) == '\n' ? 3 : 2;
        return 0;
    }

    // Skips blanks, line ends and comments; false at a comment that never ends.
    bool skip_space() {
        while (offset_ < text_.size()) {
            const char c = text_[offset_];
            if (c == '\n' || c == '\r') {
                at_line_start_ = true;
                advance(1);
            } else if (is_blank(c)) {
                advance(1);
            } else if (const size_t splice = splice_length()) {
                advance(splice);
            } else if (c == '/' && peek(1) == '/') {
                skip_line();
            } else if (c == '/' && peek(1) == '*') {
                const size_t end = text_.find("*/", offset_ + 2);
                if (end == std::string_view::npos) return false;
                advance(end + 2 - offset_);
            } else {
                break;
            }
        }
        return true;
    }

    void skip_line() {
        while (offset_ < text_.size() && text_[offset_] != '\n' && text_[offset_] != '\r')
            advance(std::max<size_t>(splice_length(), 1));
    }

    // Reads to the end of the line, including comments and continued lines.
    Token directive() {
        const TextPosition at = position();
        const size_t begin = offset_;
        while (offset_ < text_.size() && text_[offset_] != '\n' && text_[offset_] != '\r') {
            if (peek(0) == '/' && peek(1) == '/') {
                skip_line();
            } else if (peek(0) == '/' && peek(1) == '*') {
                const size_t end = text_.find("*/", offset_ + 2);
                // The next token reports the unfinished comment.
                if (end == std::string_view::npos) break;
                advance(end + 2 - offset_);
            } else {
                advance(std::max<size_t>(splice_length(), 1));
            }
        }
        return {TokenKind::directive, text_.substr(begin, offset_ - begin), at};
    }

    // A name or a number; a number includes the sign of its exponent.
    [[nodiscard]] size_t word_length() const {
        const bool number = !is_letter(text_[offset_]);
        const bool hexadecimal = number && text_[offset_] == '0' && (peek(1) == 'x' || peek(1) == 'X');
        size_t length = 1;
        for (;; ++length) {
            const char c = peek(length);
            const char before = text_[offset_ + length - 1];
            const bool exponent_sign =
                (c == '+' || c == '-') && number && !hexadecimal && (before == 'e' || before == 'E');
            if (!is_word(c) && !(number && c == '.') && !exponent_sign) return length;
        }
    }

    [[nodiscard]] size_t symbol_length() const {
        const char c = text_[offset_];
        if (c == '"') {
            size_t length = 1;
            while (offset_ + length < text_.size() && peek(length) != '\n' && peek(length) != '\r') {
                const char at = peek(length);
                length += at == '\\' && peek(length + 1) != '\n' ? 2 : 1;
                if (at == '"') break;
            }
            return std::min(length, text_.size() - offset_);
        }
        static constexpr std::array<std::string_view, 22> long_symbols{
            "<<=", ">>=", "<<", ">>", "++", "--", "+=", "-=", "*=", "/=", "%=",
            "&=",  "|=",  "^=", "&&", "||", "^^", "==", "!=", "<=", ">=", "::"};
        for (const std::string_view symbol : long_symbols)
            if (text_.substr(offset_, symbol.size()) == symbol) return symbol.size();
        if (c == '#') return peek(1) == '#' ? 2 : 1;
        size_t length = 1;
        while (continues_character(peek(length))) ++length;
        return length;
    }

    std::string_view text_;
    size_t offset_ = 0;
    uint32_t line_ = 1;
    uint32_t column_ = 1;
    bool at_line_start_ = true;
};

// A directive on one line, without comments.
std::string flattened(std::string_view directive) {
    std::string out;
    for (size_t i = 0; i < directive.size(); ++i) {
        const char c = directive[i];
        const char next = i + 1 < directive.size() ? directive[i + 1] : '\0';
        if (c == '/' && next == '/') break;
        if (c == '/' && next == '*') {
            i = directive.find("*/", i + 2) + 1;
            out += ' ';
        } else if (c == '\\' && (next == '\n' || next == '\r')) {
            i += next == '\r' && i + 2 < directive.size() && directive[i + 2] == '\n' ? 2 : 1;
        } else {
            out += c == '\n' || c == '\r' ? ' ' : c;
        }
    }
    return out;
}

// "version" of "# version 450".
std::string_view take_word(std::string_view& rest) {
    while (!rest.empty() && !is_word(rest.front()) && rest.front() != '-') rest.remove_prefix(1);
    size_t length = 0;
    while (length < rest.size() && (is_word(rest[length]) || rest[length] == '-')) ++length;
    const std::string_view word = rest.substr(0, length);
    rest.remove_prefix(length);
    return word;
}

void read_version(ShaderTextFacts& facts, const Token& token) {
    const std::string line = flattened(token.text);
    std::string_view rest = line;
    if (take_word(rest) != "version") return;
    facts.has_version = true;
    facts.version_at = token.at;
    // Only white space separates its parts. After anything else glslang does not read the number, fails to
    // parse its own declarations, and prints them to standard output.
    const auto skip_blanks = [&] {
        const size_t begin = std::min(rest.find_first_not_of(" \t\v\f"), rest.size());
        rest.remove_prefix(begin);
        return begin != 0;
    };
    const auto take = [&](auto accepts) {
        size_t length = 0;
        while (length < rest.size() && accepts(rest[length])) ++length;
        const std::string_view part = rest.substr(0, length);
        rest.remove_prefix(length);
        return part;
    };
    const bool apart = skip_blanks();
    const std::string_view number = take(is_digit);
    if (apart && !number.empty() && number.size() < 10) facts.version = std::stoll(std::string(number));
    const bool named = skip_blanks();
    facts.profile = take(is_word);
    if (!facts.profile.empty() && !named) facts.version = -1;  // "450core"
    skip_blanks();
    facts.version_is_clean = rest.empty();
}

bool is_line_directive(const Token& token) {
    std::string_view rest = token.text;
    return token.kind == TokenKind::directive && take_word(rest) == "line";
}

// Counts the nesting and tokens over which the compiler would recurse.
class DepthGauge {
public:
    // "" if the limits are kept.
    std::string count(const Token& token) {
        if (token.kind == TokenKind::directive) {
            // The expression of an #if is parsed by recursion as well; each character could be a bracket.
            std::string_view rest = token.text;
            const std::string_view name = take_word(rest);
            return (name == "if" || name == "elif") && rest.size() > max_statement_tokens
                       ? "this condition has more than " + std::to_string(max_statement_tokens) +
                             " characters"
                       : "";
        }
        const char c = token.text.size() == 1 ? token.text.front() : '\0';
        if (c == '(' || c == '[' || c == '{') ++depth_;
        if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
        statement_ = c == ';' || c == '{' || c == '}' ? 0 : statement_ + 1;
        if (depth_ > max_nesting)
            return "brackets nest more than " + std::to_string(max_nesting) + " deep here";
        if (statement_ > max_statement_tokens)
            return "this statement has more than " + std::to_string(max_statement_tokens) +
                   " tokens; split it into several";
        return "";
    }

private:
    uint32_t depth_ = 0;
    uint32_t statement_ = 0;
};

// The length in bytes of the UTF-8 character at `i`; 0 if it is invalid.
size_t utf8_length(std::string_view text, size_t i) {
    const auto byte = [&](size_t at) {
        return static_cast<unsigned char>(at < text.size() ? text[at] : '\0');
    };
    const unsigned char first = byte(i);
    if (first < 0x80) return 1;
    const size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                          : first >= 0xE0 && first <= 0xEF ? 3
                          : first >= 0xF0 && first <= 0xF4 ? 4
                                                           : 0;
    for (size_t k = 1; k < length; ++k)
        if ((byte(i + k) & 0xC0) != 0x80) return 0;
    const unsigned char second = byte(i + 1);
    // Longer than needed, a surrogate, or beyond the last character.
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
        (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
        return 0;
    return length;
}

}  // namespace

ShaderTextFacts inspect_shader_text(std::string_view text) {
    ShaderTextFacts facts;
    Lexer lexer(text);
    DepthGauge gauge;
    for (;;) {
        const Token token = lexer.next();
        if (token.kind == TokenKind::end || token.kind == TokenKind::open_comment) {
            facts.blank = facts.blank && token.kind == TokenKind::end;
            break;
        }
        if (facts.blank && token.kind == TokenKind::directive) read_version(facts, token);
        facts.blank = false;
        facts.has_line_directive = facts.has_line_directive || is_line_directive(token);
        facts.problem = gauge.count(token);
        if (!facts.problem.empty()) {
            facts.problem_at = token.at;
            break;
        }
    }
    // The compilers read a NUL as the end of the text, or as nonsense.
    if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
        facts.problem = "the text contains a NUL character";
        const std::string_view before = text.substr(0, nul);
        const size_t line_begin = before.rfind('\n') + 1;
        facts.problem_at.line = static_cast<uint32_t>(std::count(before.begin(), before.end(), '\n') + 1);
        facts.problem_at.column = static_cast<uint32_t>(
            1 + std::count_if(before.begin() + static_cast<ptrdiff_t>(line_begin), before.end(),
                              [](char c) { return !continues_character(c); }));
    }
    return facts;
}

TokenLines one_token_per_line(std::string_view text) {
    TokenLines out;
    out.text.reserve(text.size() + text.size() / 4);
    Lexer lexer(text);
    for (Token token = lexer.next(); token.kind != TokenKind::end; token = lexer.next()) {
        if (is_line_directive(token)) continue;
        // Alone on a line, a stray # would become a directive.
        if (token.kind == TokenKind::symbol && token.text.front() == '#' && !out.text.empty()) {
            out.text.back() = ' ';
            out.text.append(token.text).push_back('\n');
            continue;
        }
        if (token.kind == TokenKind::directive)
            out.text += flattened(token.text);
        else
            out.text += token.text;
        out.text += '\n';
        out.positions.push_back(token.at);
    }
    return out;
}

std::string_view line_of_text(std::string_view text, uint32_t number) {
    if (number == 0) return {};
    size_t begin = 0;
    for (uint32_t line = 1; line < number; ++line) {
        const size_t end = text.find_first_of("\r\n", begin);
        if (end == std::string_view::npos) return {};
        begin = end + (text.substr(end, 2) == "\r\n" ? 2 : 1);
    }
    return text.substr(begin, text.find_first_of("\r\n", begin) - begin);
}

uint32_t column_of_word(std::string_view line, std::string_view word, uint32_t until) {
    if (word.empty()) return 0;
    uint32_t found = 0;
    for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
        const size_t end = at + word.size();
        if (is_word(word.front()) && at > 0 && is_word(line[at - 1])) continue;
        if (is_word(word.back()) && end < line.size() && is_word(line[end])) continue;
        const auto column =
            static_cast<uint32_t>(1 + std::count_if(line.begin(), line.begin() + static_cast<ptrdiff_t>(at),
                                                    [](char c) { return !continues_character(c); }));
        if (until == 0) return column;
        if (column > until) break;
        found = column;
    }
    return found;
}

std::string to_valid_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (size_t i = 0; i < text.size();) {
        const size_t length = utf8_length(text, i);
        if (length > 0)
            out.append(text.substr(i, length));
        else
            out.append("\xEF\xBF\xBD");
        i += std::max<size_t>(length, 1);
    }
    return out;
}

}  // namespace kp
