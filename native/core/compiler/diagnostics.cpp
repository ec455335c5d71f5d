#include "compiler/diagnostics.hpp"

#include "compiler/text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace kp {
namespace {

constexpr size_t excerpt_length = 160;  // characters of a source line that are shown
constexpr size_t most_shown = 100;      // messages in the text; the list has all of them

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

uint32_t number_of(std::string_view digits) {
    uint64_t value = 0;
    for (const char c : digits)
        value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(c - '0'), UINT32_MAX);
    return static_cast<uint32_t>(value);
}

bool strip_prefix(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

// The spelling of glslang's token names, as in "syntax error, unexpected SEMICOLON".
std::string_view spelled(std::string_view name) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 52> spellings{{
        {"SEMICOLON", "';'"},
        {"COMMA", "','"},
        {"COLON", "':'"},
        {"DOT", "'.'"},
        {"EQUAL", "'='"},
        {"LEFT_PAREN", "'('"},
        {"RIGHT_PAREN", "')'"},
        {"LEFT_BRACKET", "'['"},
        {"RIGHT_BRACKET", "']'"},
        {"LEFT_BRACE", "'{'"},
        {"RIGHT_BRACE", "'}'"},
        {"LEFT_ANGLE", "'<'"},
        {"RIGHT_ANGLE", "'>'"},
        {"LEFT_OP", "'<<'"},
        {"RIGHT_OP", "'>>'"},
        {"INC_OP", "'++'"},
        {"DEC_OP", "'--'"},
        {"LE_OP", "'<='"},
        {"GE_OP", "'>='"},
        {"EQ_OP", "'=='"},
        {"NE_OP", "'!='"},
        {"AND_OP", "'&&'"},
        {"OR_OP", "'||'"},
        {"XOR_OP", "'^^'"},
        {"MUL_ASSIGN", "'*='"},
        {"DIV_ASSIGN", "'/='"},
        {"ADD_ASSIGN", "'+='"},
        {"SUB_ASSIGN", "'-='"},
        {"MOD_ASSIGN", "'%='"},
        {"LEFT_ASSIGN", "'<<='"},
        {"RIGHT_ASSIGN", "'>>='"},
        {"AND_ASSIGN", "'&='"},
        {"XOR_ASSIGN", "'^='"},
        {"OR_ASSIGN", "'|='"},
        {"BANG", "'!'"},
        {"DASH", "'-'"},
        {"TILDE", "'~'"},
        {"PLUS", "'+'"},
        {"STAR", "'*'"},
        {"SLASH", "'/'"},
        {"PERCENT", "'%'"},
        {"VERTICAL_BAR", "'|'"},
        {"CARET", "'^'"},
        {"AMPERSAND", "'&'"},
        {"QUESTION", "'?'"},
        {"IDENTIFIER", "a name"},
        {"TYPE_NAME", "the name of a type"},
        {"FLOATCONSTANT", "a float"},
        {"INTCONSTANT", "an integer"},
        {"UINTCONSTANT", "an unsigned integer"},
        {"BOOLCONSTANT", "a bool"},
        {"STRING_LITERAL", "a string"},
    }};
    const auto found = std::find_if(spellings.begin(), spellings.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    return found == spellings.end() ? name : found->second;
}

std::string with_spelled_tokens(std::string_view message) {
    std::string out;
    for (size_t i = 0; i < message.size();) {
        size_t length = 0;
        while (i + length < message.size() &&
               ((message[i + length] >= 'A' && message[i + length] <= 'Z') || message[i + length] == '_'))
            ++length;
        out += length ? spelled(message.substr(i, length)) : message.substr(i, 1);
        i += std::max<size_t>(length, 1);
    }
    return out;
}

std::string single_spaced(std::string_view text) {
    std::string out;
    for (const char c : text)
        if (c != ' ' || out.empty() || out.back() != ' ') out += c;
    return out;
}

// glslang's message, without details that only its authors need.
std::string tidied(std::string_view raw) {
    std::string_view message = trimmed(raw);
    strip_prefix(message, "Linking compute stage: ");
    if (message.starts_with("Missing entry point"))
        return "the source has no entry point; a compute shader needs 'void main()'";
    if (strip_prefix(message, "'' :")) message = trimmed(message);
    if (message.starts_with("syntax error")) return with_spelled_tokens(single_spaced(message));
    if (message.starts_with("memory exhausted")) return "the code nests too deeply for the parser";
    static constexpr std::string_view header = " for header name: ";
    if (message.starts_with("'#include'"))
        if (const size_t at = message.rfind(header); at != std::string_view::npos)
            message = message.substr(0, at);
    return to_valid_utf8(single_spaced(message));
}

// "blur.comp:12" -> file and line; "blur.comp" -> file.
void read_place(std::string_view place, Diagnostic& diagnostic) {
    const size_t colon = place.rfind(':');
    if (colon != std::string_view::npos && colon + 1 < place.size() &&
        std::all_of(place.begin() + static_cast<ptrdiff_t>(colon) + 1, place.end(), is_digit)) {
        diagnostic.line = number_of(place.substr(colon + 1));
        place = place.substr(0, colon);
    }
    diagnostic.file = to_valid_utf8(place);
}

bool read_line(std::string_view line, Diagnostic& diagnostic) {
    struct Marker {
        std::string_view text;
        const char* severity;
    };
    static constexpr std::array<Marker, 2> markers{{{": error: ", "error"}, {": warning: ", "warning"}}};
    static constexpr std::array<Marker, 4> openings{{{"shaderc: internal error: ", "error"},
                                                     {"shaderc: error: ", "error"},
                                                     {"error: ", "error"},
                                                     {"warning: ", "warning"}}};
    for (const Marker& opening : openings) {
        std::string_view rest = line;
        if (!strip_prefix(rest, opening.text)) continue;
        diagnostic.severity = opening.severity;
        diagnostic.message = tidied(rest);
        return true;
    }
    size_t first = std::string_view::npos;
    const Marker* marker = nullptr;
    for (const Marker& candidate : markers) {
        const size_t at = line.find(candidate.text);
        if (at < first) {
            first = at;
            marker = &candidate;
        }
    }
    if (!marker) return false;
    diagnostic.severity = marker->severity;
    read_place(line.substr(0, first), diagnostic);
    diagnostic.message = tidied(line.substr(first + marker->text.size()));
    return true;
}

// "recursion.comp:     g(f1; calling g(f1;": another line of the previous message.
void append_continuation(std::string_view line, std::vector<Diagnostic>& diagnostics) {
    if (diagnostics.empty()) {
        diagnostics.push_back({"", 0, 0, "error", to_valid_utf8(trimmed(line)), ""});
        return;
    }
    Diagnostic& last = diagnostics.back();
    if (!last.file.empty() && line.starts_with(last.file + ":")) line.remove_prefix(last.file.size() + 1);
    last.message += "\n" + to_valid_utf8(trimmed(line));
}

// The part of a long line around `column`, and the column's place in it.
struct Excerpt {
    std::vector<std::string> characters;
    size_t caret = 0;
};

Excerpt excerpt_of(const Diagnostic& diagnostic) {
    Excerpt out;
    for (const char c : to_valid_utf8(diagnostic.source_line)) {
        if ((static_cast<unsigned char>(c) & 0xC0) == 0x80 && !out.characters.empty())
            out.characters.back() += c;
        else
            out.characters.emplace_back(1, c);
    }
    out.caret = diagnostic.column;
    if (out.characters.size() <= excerpt_length) return out;
    const size_t middle = std::min<size_t>(out.caret, out.characters.size());
    const size_t begin =
        std::min(middle - std::min(middle, excerpt_length / 2), out.characters.size() - excerpt_length);
    const size_t end = begin + excerpt_length;
    const bool cut_after = end < out.characters.size();
    out.characters.erase(out.characters.begin() + static_cast<ptrdiff_t>(end), out.characters.end());
    out.characters.erase(out.characters.begin(), out.characters.begin() + static_cast<ptrdiff_t>(begin));
    out.caret -= std::min(out.caret, begin);
    if (cut_after) out.characters.emplace_back("...");
    if (begin > 0) {
        out.characters.insert(out.characters.begin(), {".", ".", "."});
        out.caret += diagnostic.column ? 3 : 0;
    }
    return out;
}

void render(const Diagnostic& diagnostic, std::string& out) {
    if (!diagnostic.file.empty()) {
        out += diagnostic.file;
        if (diagnostic.line) out += ":" + std::to_string(diagnostic.line);
        if (diagnostic.line && diagnostic.column) out += ":" + std::to_string(diagnostic.column);
        out += ": ";
    }
    out += diagnostic.severity + ": " + diagnostic.message + "\n";
    if (diagnostic.source_line.empty() || diagnostic.line == 0) return;
    const Excerpt excerpt = excerpt_of(diagnostic);
    const std::string number = std::to_string(diagnostic.line);
    const size_t width = std::max<size_t>(number.size(), 5);
    out += std::string(width - number.size(), ' ') + number + " | ";
    for (const std::string& character : excerpt.characters) out += character;
    out += "\n";
    if (diagnostic.column == 0) return;
    out += std::string(width, ' ') + " | ";
    // Tabs stay tabs, so that the caret is below its token for any tab width.
    for (size_t i = 0; i + 1 < excerpt.caret; ++i)
        out += i < excerpt.characters.size() && excerpt.characters[i] == "\t" ? '\t' : ' ';
    out += "^\n";
}

}  // namespace

std::vector<Diagnostic> parse_compiler_log(std::string_view log) {
    std::vector<Diagnostic> diagnostics;
    while (!log.empty()) {
        const size_t end = std::min(log.find('\n'), log.size());
        const std::string_view line = log.substr(0, end);
        log.remove_prefix(std::min(end + 1, log.size()));
        if (trimmed(line).empty()) continue;
        Diagnostic diagnostic;
        if (read_line(line, diagnostic))
            diagnostics.push_back(std::move(diagnostic));
        else
            append_continuation(line, diagnostics);
    }
    return diagnostics;
}

void drop_aftermath(std::vector<Diagnostic>& diagnostics) {
    const auto is_aftermath = [](const Diagnostic& d) { return d.message == "compilation terminated"; };
    const bool others = std::any_of(diagnostics.begin(), diagnostics.end(), [&](const Diagnostic& d) {
        return d.severity == "error" && !is_aftermath(d);
    });
    if (others) std::erase_if(diagnostics, is_aftermath);
}

std::string_view quoted_token(std::string_view message) {
    if (!strip_prefix(message, "'")) return {};
    const size_t end = message.find("' :");
    return end == std::string_view::npos ? std::string_view{} : message.substr(0, end);
}

std::string render_diagnostics(const std::vector<Diagnostic>& diagnostics) {
    std::string out;
    const size_t shown = std::min(diagnostics.size(), most_shown);
    for (size_t i = 0; i < shown; ++i) render(diagnostics[i], out);
    if (shown < diagnostics.size()) out += "... " + std::to_string(diagnostics.size() - shown) + " more\n";
    const auto errors = std::count_if(diagnostics.begin(), diagnostics.end(),
                                      [](const Diagnostic& d) { return d.severity == "error"; });
    return out + std::to_string(errors) + (errors == 1 ? " error" : " errors");
}

}  // namespace kp
