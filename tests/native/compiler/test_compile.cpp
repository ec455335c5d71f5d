// The compiler's core: messages placed on their tokens, includes, what optimizing keeps, texts that must not
// hurt it.
#include "base/deep_stack.hpp"
#include "compiler/compile.hpp"
#include "compiler/diagnostics.hpp"
#include "compiler/text.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using kp::CompileRequest;

// Four lines come before `body`.
CompileRequest request(const std::string& body) {
    CompileRequest made;
    made.name = "blur.comp";
    made.source = "#version 450\nlayout(local_size_x = 1) in;\nlayout(set = 0, binding = 0) buffer Data { "
                  "float data[]; };\n"
                  "layout(set = 0, binding = 1) buffer Other { float unused[]; };\n" +
                  body;
    return made;
}

struct Failure {
    std::string text;
    std::vector<kp::Diagnostic> diagnostics;
};

Failure failure_of(const CompileRequest& what) {
    try {
        (void)kp::compile(what);
    } catch (const kp::ShaderCompileFailure& failure) {
        return {failure.what(), failure.diagnostics()};
    }
    FAIL("it compiles");
    return {};
}

kp::ErrorKind kind_of(const CompileRequest& what, const std::string& part) {
    try {
        (void)kp::compile(what);
    } catch (const kp::Error& error) {
        CAPTURE(error.what());
        CHECK(std::string(error.what()).find(part) != std::string::npos);
        return error.kind();
    }
    FAIL("it compiles");
    return kp::ErrorKind::internal;
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::string valid(const kp::CompileOutput& output, uint32_t vulkan_minor = 2) {
    kp::ValidationOptions options;
    options.vulkan_minor = vulkan_minor;
    return kp::validate_spirv(output.spirv, options);
}

// A directory of its own, gone at the end.
class Folder {
public:
    Folder()
        : path_(std::filesystem::temp_directory_path() /
                ("kp_compile_" + std::to_string(std::random_device{}()))) {
        std::filesystem::create_directories(path_);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    std::string write(const std::string& name, const std::string& text) const {
        const auto file = path_ / name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file, std::ios::binary) << text;
        return file.string();
    }
    [[nodiscard]] std::string path() const { return path_.string(); }

private:
    std::filesystem::path path_;
};

}  // namespace

TEST_CASE("each error is shown with its line and a caret below its token") {
    const Failure failure =
        failure_of(request("void main() {\n    float x = 1.0;\n    x = foo;\n\tdata[0] = x + bar(2);\n}\n"));
    CHECK(failure.text == "blur.comp:7:9: error: 'foo' : undeclared identifier\n"
                          "    7 |     x = foo;\n"
                          "      |         ^\n"
                          "blur.comp:8:16: error: 'bar' : no matching overloaded function found\n"
                          "    8 | \tdata[0] = x + bar(2);\n"
                          "      | \t              ^\n"
                          "2 errors");
    REQUIRE(failure.diagnostics.size() == 2);
    CHECK(failure.diagnostics[0].file == "blur.comp");
    CHECK(failure.diagnostics[0].line == 7);
    CHECK(failure.diagnostics[0].column == 9);
    CHECK(failure.diagnostics[0].severity == "error");
    CHECK(failure.diagnostics[0].message == "'foo' : undeclared identifier");
    CHECK(failure.diagnostics[0].source_line == "    x = foo;");
}

TEST_CASE("the second of two equal tokens on a line is told from the first") {
    const Failure failure =
        failure_of(request("void main() { float foo = 1; { float foo = foo; float foo = 2; } }\n"));
    REQUIRE(failure.diagnostics.size() == 1);
    CHECK(failure.diagnostics[0].message == "'foo' : redefinition");
    CHECK(failure.diagnostics[0].column == 55);
}

TEST_CASE("columns count characters") {
    const Failure failure = failure_of(request("void main() { /* größer */ data[0] = foo; }\n"));
    REQUIRE(failure.diagnostics.size() == 1);
    CHECK(failure.diagnostics[0].column == 38);
    CHECK(contains(failure.text, "\n      | " + std::string(37, ' ') + "^\n1 error"));
}

TEST_CASE("errors without a place have none") {
    const Failure nothing_to_run = failure_of(request("void other() {}\n"));
    CHECK(nothing_to_run.text ==
          "blur.comp: error: the source has no entry point; a compute shader needs 'void main()'\n1 error");
    const Failure no_body = failure_of(request("void helper();\nvoid main() { helper(); }\n"));
    REQUIRE(no_body.diagnostics.size() == 1);
    CHECK(no_body.diagnostics[0].line == 0);
    CHECK(contains(no_body.diagnostics[0].message, "helper("));
}

TEST_CASE("#line decides the numbers and the names, and the shown line is still the right one") {
    const Failure failure = failure_of(request("#line 100\nvoid main() { data[0] = foo; }\n"));
    CHECK(failure.text == "blur.comp:100:25: error: 'foo' : undeclared identifier\n"
                          "  100 | void main() { data[0] = foo; }\n"
                          "      |                         ^\n"
                          "1 error");
    const Failure named = failure_of(request("#extension GL_GOOGLE_cpp_style_line_directive : require\n"
                                             "#line 9 \"made.glsl\"\nvoid main() { data[0] = foo; }\n"));
    CHECK(named.diagnostics.at(0).file == "made.glsl");
    CHECK(named.diagnostics.at(0).line == 9);
    CHECK(named.diagnostics.at(0).source_line == "void main() { data[0] = foo; }");
}

TEST_CASE("a file name cannot confuse the reading of messages") {
    for (const char* name : {"a:5: error: b.comp", "with space.comp", "C:\\shaders\\blur.comp", "größe.comp",
                             "warning: .comp"}) {
        CompileRequest what = request("void main() { data[0] = foo; }\n");
        what.name = name;
        const Failure failure = failure_of(what);
        REQUIRE(failure.diagnostics.size() == 1);
        CHECK(failure.diagnostics[0].file == name);
        CHECK(failure.diagnostics[0].line == 5);
        CHECK(failure.diagnostics[0].column == 25);
    }
}

TEST_CASE("warnings come with the module") {
    const kp::CompileOutput output = kp::compile(request("#extension GL_FOO_bar : enable\nvoid main() {}\n"));
    REQUIRE(output.warnings.size() == 1);
    CHECK(output.warnings[0].severity == "warning");
    CHECK(output.warnings[0].line == 5);
    CHECK(contains(output.warnings[0].message, "GL_FOO_bar"));
    CHECK(kp::compile(request("void main() {}\n")).warnings.empty());
}

TEST_CASE("includes are found beside the file, in the dictionary and in the directories") {
    const Folder folder;
    const std::string near = folder.write("shaders/near.glsl", "#include \"deep/er.glsl\"\n");
    folder.write("shaders/deep/er.glsl", "#include \"est.glsl\"\n");
    const std::string deepest = folder.write("shaders/deep/est.glsl", "float near_value() { return 1.0; }\n");
    const std::string far = folder.write("library/far.glsl", "float far_value() { return 2.0; }\n");
    CompileRequest what = request("#include \"near.glsl\"\n#include <far.glsl>\n#include \"given.glsl\"\n"
                                  "void main() { data[0] = near_value() + far_value() + given_value(); }\n");
    what.name = folder.path() + "/shaders/main.comp";
    what.include_dirs = {folder.path() + "/library"};
    what.virtual_includes = {{"given.glsl", "#include \"lib/more.glsl\"\n"},
                             {"lib/more.glsl", "#include \"most.glsl\"\n"},
                             {"lib/most.glsl", "float given_value() { return 3.0; }\n"}};
    const kp::CompileOutput output = kp::compile(what);
    CHECK(valid(output) == "");
    CHECK(output.included.size() == 4);
    CHECK(std::find(output.included.begin(), output.included.end(), near) != output.included.end());
    CHECK(std::find(output.included.begin(), output.included.end(), deepest) != output.included.end());
    CHECK(std::find(output.included.begin(), output.included.end(), far) != output.included.end());
}

TEST_CASE("an error in an included file names that file and shows its line") {
    CompileRequest what = request("#include \"lib.glsl\"\nvoid main() { data[0] = f(); }\n");
    what.virtual_includes = {
        {"lib.glsl", "float g() { return 1.0; }\nfloat f() { return undefined_name; }\n"}};
    CHECK(failure_of(what).text == "lib.glsl:2:20: error: 'undefined_name' : undeclared identifier\n"
                                   "    2 | float f() { return undefined_name; }\n"
                                   "      |                    ^\n"
                                   "1 error");
    // And after the include, the including file's own lines are counted on.
    what = request("#include \"lib.glsl\"\nvoid main() { data[0] = foo; }\n");
    what.virtual_includes = {{"lib.glsl", "\n\n\n\n"}};
    CHECK(failure_of(what).diagnostics.at(0).line == 6);
    CHECK(failure_of(what).diagnostics.at(0).column == 25);
}

TEST_CASE("includes that cannot be end in an error at the directive") {
    CompileRequest what = request("#include \"missing.glsl\"\nvoid main() {}\n");
    what.include_dirs = {"no/such/folder"};
    const Failure missing = failure_of(what);
    CHECK(missing.diagnostics.at(0).line == 5);
    CHECK(contains(missing.text, "missing.glsl"));
    CHECK(contains(missing.text, "no/such/folder"));

    what = request("#include \"a.glsl\"\nvoid main() {}\n");
    what.virtual_includes = {{"a.glsl", "#include \"b.glsl\"\n"}, {"b.glsl", "#include \"a.glsl\"\n"}};
    const Failure cycle = failure_of(what);
    CHECK(contains(cycle.text, "a.glsl"));
    CHECK(contains(cycle.text, "b.glsl"));
    CHECK(contains(cycle.text, "include guard"));

    what.virtual_includes = {{"a.glsl", "#ifndef A\n#define A\n#include \"b.glsl\"\n#endif\n"},
                             {"b.glsl", "#include \"a.glsl\"\n"}};
    CHECK(valid(kp::compile(what)) == "");

    // 2^40 inclusions.
    what.virtual_includes.clear();
    what.source = request("#include \"0\"\nvoid main() {}\n").source;
    for (int i = 0; i < 40; ++i) {
        const std::string next = "#include \"" + std::to_string(i + 1) + "\"\n";
        what.virtual_includes[std::to_string(i)] = next + next;
    }
    what.virtual_includes["40"] = "";
    CHECK(contains(failure_of(what).text, "inclusions"));
}

TEST_CASE("macros reach the shader") {
    CompileRequest what = request("void main() { data[0] = SCALE; }\n");
    CHECK(contains(failure_of(what).text, "'SCALE' : undeclared identifier"));
    what.defines = {{"SCALE", "0.375"}};
    CHECK(contains(kp::disassemble_spirv(kp::compile(what).spirv), "OpConstant %float 0.375"));
    what.defines = {{"1SCALE", "1"}};
    CHECK(kind_of(what, "1SCALE") == kp::ErrorKind::invalid_argument);
    what.defines = {{"SCALE", "1\n#error"}};
    CHECK(kind_of(what, "one line") == kp::ErrorKind::invalid_argument);
}

TEST_CASE("the target decides the version of SPIR-V") {
    const std::vector<std::pair<std::string, uint32_t>> versions{
        {"vulkan1.0", 0x10000}, {"vulkan1.1", 0x10300}, {"vulkan1.2", 0x10500}, {"vulkan1.3", 0x10600}};
    for (uint32_t minor = 0; minor < versions.size(); ++minor)
        for (const auto optimize :
             {kp::OptimizeFor::nothing, kp::OptimizeFor::size, kp::OptimizeFor::performance}) {
            CompileRequest what = request("void main() { data[0] = 1.0; }\n");
            what.target = versions[minor].first;
            what.optimize = optimize;
            const kp::CompileOutput output = kp::compile(what);
            CHECK(output.spirv.at(1) == versions[minor].second);
            CHECK(valid(output, minor) == "");
        }
    CompileRequest what = request("void main() {}\n");
    what.target = "vulkan2.0";
    CHECK(kind_of(what, "vulkan1.3") == kp::ErrorKind::invalid_argument);
}

TEST_CASE("optimizing keeps names, unused bindings and specialization constants") {
    CompileRequest what =
        request("layout(constant_id = 7) const int SIZE = 3;\nlayout(constant_id = 8) const int IDLE = 4;\n"
                "float twice(float x) { float y = x + x; return y; }\n"
                "void main() { for (int i = 0; i < SIZE; ++i) data[i] = twice(data[i]); }\n");
    const std::vector<uint32_t> optimized = kp::compile(what).spirv;
    what.optimize = kp::OptimizeFor::nothing;
    const std::vector<uint32_t> plain = kp::compile(what).spirv;
    CHECK(contains(kp::disassemble_spirv(plain), "OpFunctionCall"));
    const std::string text = kp::disassemble_spirv(optimized);
    CHECK_FALSE(contains(text, "OpFunctionCall"));
    for (const char* kept : {"OpMemberName %Data 0 \"data\"", "OpMemberName %Other 0 \"unused\"", "Binding 0",
                             "Binding 1", "SpecId 7", "SpecId 8"})
        CHECK_MESSAGE(contains(text, kept), kept);
}

TEST_CASE("debug information is there on request") {
    CompileRequest what = request("void main() { data[0] = 1.0; }\n");
    CHECK_FALSE(contains(kp::disassemble_spirv(kp::compile(what).spirv), "OpLine"));
    what.debug_info = true;
    for (const auto optimize :
         {kp::OptimizeFor::nothing, kp::OptimizeFor::size, kp::OptimizeFor::performance}) {
        what.optimize = optimize;
        const std::string text = kp::disassemble_spirv(kp::compile(what).spirv);
        CHECK(contains(text, "OpString \"blur.comp\""));
        CHECK(contains(text, "OpLine"));
    }
}

TEST_CASE("the entry point has the name that was asked for") {
    for (const char* name : {"blur", "abc", "four", "a_name_that_is_longer_than_main", "main"})
        for (const auto optimize :
             {kp::OptimizeFor::nothing, kp::OptimizeFor::size, kp::OptimizeFor::performance}) {
            CompileRequest what = request("void main() { data[0] = 1.0; }\n");
            what.entry = name;
            what.optimize = optimize;
            const kp::CompileOutput output = kp::compile(what);
            CHECK(valid(output) == "");
            CHECK(contains(kp::decompile_spirv(output.spirv, kp::SourceLanguage::glsl, name), "void main()"));
            CHECK(contains(kp::disassemble_spirv(output.spirv), "\"" + std::string(name) + "\""));
        }
    CompileRequest what = request("void main() {}\n");
    what.entry = "no name";
    CHECK(kind_of(what, "no name") == kp::ErrorKind::invalid_argument);
}

TEST_CASE("texts that no compiler should be given are refused") {
    CompileRequest what = request("");
    for (const char* empty : {"", " \n\t\n", "// only a comment\n", "/* and\nanother */"}) {
        what.source = empty;
        CHECK(contains(failure_of(what).text, "empty"));
    }
    what.source = std::string("#version 450\nvoid main() {}\n") + '\0' + "\n";
    const Failure nul = failure_of(what);
    CHECK(contains(nul.text, "NUL"));
    CHECK(nul.diagnostics.at(0).line == 3);
    for (const char* version : {"110", "330", "-5", "abc", ""}) {
        what.source = std::string("#version ") + version + "\nlayout(local_size_x = 1) in;\nvoid main() {}\n";
        CHECK(contains(failure_of(what).text, "blur.comp:1:"));
    }
    // Without a version, and with a byte order mark.
    what.source = "\xEF\xBB\xBFlayout(local_size_x = 1) in;\nvoid main() {}\n";
    CHECK(valid(kp::compile(what)) == "");
    // Bytes that are no UTF-8 come back as text that is.
    what = request("void main() { data[0] = 1.0; \xFF\xFE }\n");
    const Failure bytes = failure_of(what);
    CHECK(bytes.diagnostics.at(0).line == 5);
    CHECK(kp::to_valid_utf8(bytes.text) == bytes.text);
}

TEST_CASE("nesting of any depth is an error at worst") {
    const auto repeated = [](const std::string& part, size_t times) {
        std::string text;
        for (size_t i = 0; i < times; ++i) text += part;
        return text;
    };
    for (const size_t times : {size_t{2000}, size_t{20'000}, size_t{200'000}}) {
        for (const std::string& body : {repeated("(", times) + "1.0" + repeated(")", times),
                                        "1.0" + repeated("+1.0", times), repeated("-", times) + "1.0",
                                        repeated("- ", times) + "data[0]", repeated("data[int(", times)}) {
            try {
                const kp::CompileOutput output =
                    kp::compile(request("void main() { data[0] = " + body + "; }\n"));
                CHECK(valid(output) == "");
            } catch (const kp::ShaderCompileFailure& failure) {
                CHECK_FALSE(failure.diagnostics().empty());
            }
        }
    }
}

TEST_CASE("garbage never does harm") {
    std::mt19937 random(20240229);  // NOLINT: the same texts every time
    const std::vector<std::string> words{
        "void",   "main",   "(",    ")",      "{",        "}",          "[",           "]",
        ";",      "float",  "vec4", "data",   "=",        "+",          "*",           "1.0",
        "0x",     "1e",     "\n",   "#if ",   "#endif\n", "#define X ", "\n#line 5\n", "#include \"x\"\n",
        "/*",     "*/",     "//",   "\\\n",   "'",        "\"",         "struct",      "const",
        "layout", "buffer", "for",  "return", "\xFF",     "\xC3\xA4",   "@",           "$",
        "#",      "##",     "?",    ":",      ".x"};
    const auto pick = [&](size_t count) {
        return std::uniform_int_distribution<size_t>(0, count - 1)(random);
    };
    for (int i = 0; i < 300; ++i) {
        std::string text;
        const size_t length = 1 + pick(200);
        for (size_t k = 0; k < length; ++k)
            text += i % 3 == 0 ? std::string(1, static_cast<char>(pick(256)))
                               : words[pick(words.size())] + (pick(3) == 0 ? " " : "");
        CompileRequest what = request(text);
        if (i % 5 == 0) what.source = text;
        what.virtual_includes = {{"x", "float x;\n"}};
        try {
            (void)kp::compile(what);
        } catch (const kp::ShaderCompileFailure& failure) {
            CAPTURE(text);
            REQUIRE_FALSE(failure.diagnostics().empty());
            for (const kp::Diagnostic& diagnostic : failure.diagnostics()) {
                CHECK_FALSE(diagnostic.message.empty());
                CHECK_FALSE(contains(diagnostic.file, "kp-source"));
            }
            CHECK(kp::to_valid_utf8(failure.what()) == failure.what());
        }
    }
}

TEST_CASE("threads compile at the same time") {
    std::atomic<int> good{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([t, &good] {
            for (int i = 0; i < 10; ++i) {
                CompileRequest what = request("#include \"own.glsl\"\nvoid main() { data[0] = own(); }\n");
                what.name = "thread" + std::to_string(t) + ".comp";
                what.virtual_includes = {
                    {"own.glsl", "float own() { return " + std::to_string(t) + ".5; }\n"}};
                const std::string text = kp::disassemble_spirv(kp::compile(what).spirv);
                bool fine = contains(text, "OpConstant %float " + std::to_string(t) + ".5");
                what.virtual_includes.begin()->second =
                    "float own() { return missing" + std::to_string(t) + "; }\n";
                try {
                    (void)kp::compile(what);
                    fine = false;
                } catch (const kp::ShaderCompileFailure& failure) {
                    fine = fine && contains(failure.what(),
                                            "own.glsl:1:22: error: 'missing" + std::to_string(t) + "'");
                }
                good += fine;
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(good == 80);
}

TEST_CASE("modules are validated, written out and read back") {
    const std::vector<uint32_t> words = kp::compile(request("void main() { data[0] = 1.0; }\n")).spirv;
    const std::string text = kp::disassemble_spirv(words);
    const std::vector<uint32_t> again = kp::assemble_spirv(text);
    CHECK(again.size() == words.size());
    CHECK(again.at(1) == words.at(1));
    CHECK(kp::validate_spirv(again, {}) == "");
    // The version is what the leading comments say, else the target's.
    CHECK(kp::assemble_spirv(text, 1).at(1) == words.at(1));
    CHECK(kp::assemble_spirv(text.substr(text.find("OpCapability")), 1).at(1) == 0x10300);

    std::string broken = text;
    broken.replace(broken.find("OpReturn\n"), 8, "OpBackflip");
    try {
        (void)kp::assemble_spirv(broken, 2, "blur.spvasm");
        FAIL("it assembles");
    } catch (const kp::ShaderCompileFailure& failure) {
        const kp::Diagnostic& diagnostic = failure.diagnostics().at(0);
        CHECK(diagnostic.file == "blur.spvasm");
        CHECK(diagnostic.line > 5);
        CHECK(contains(diagnostic.source_line, "OpBackflip"));
        CHECK(contains(diagnostic.message, "OpBackflip"));
        CHECK(contains(failure.what(), "\n1 error"));
    }

    const std::string wrong_type = kp::validate_spirv(
        kp::assemble_spirv(
            "OpCapability Shader\nOpMemoryModel Logical GLSL450\n%void = OpTypeVoid\n%int = OpTypeInt 32 1\n"
            "%bad = OpConstantComposite %int %int\n"),
        {});
    CHECK(contains(wrong_type, "OpConstantComposite %int"));
    CHECK_FALSE(kp::validate_spirv(words, {.vulkan_minor = 1}) == "");  // SPIR-V 1.5
    CHECK_THROWS_AS((void)kp::validate_spirv(words, {.vulkan_minor = 9}), kp::Error);
    CHECK_FALSE(kp::validate_spirv({}, {}) == "");
    CHECK_THROWS_AS((void)kp::disassemble_spirv({}), kp::Error);
    for (size_t cut = 1; cut < words.size(); cut += 3)
        CHECK_FALSE(kp::validate_spirv(std::span(words).first(cut), {}) == "");
}

TEST_CASE("modules come back as source") {
    const std::vector<uint32_t> words =
        kp::compile(request("void main() { data[gl_GlobalInvocationID.x] *= 2.0; }\n")).spirv;
    const std::string glsl = kp::decompile_spirv(words, kp::SourceLanguage::glsl);
    CompileRequest again;
    again.source = glsl;
    CHECK(valid(kp::compile(again)) == "");
    CHECK(contains(glsl, "data["));
    CHECK(contains(kp::decompile_spirv(words, kp::SourceLanguage::hlsl), "[numthreads(1, 1, 1)]"));
    try {
        (void)kp::decompile_spirv(words, kp::SourceLanguage::glsl, "blur");
        FAIL("there is no such entry point");
    } catch (const kp::Error& error) {
        CHECK(error.kind() == kp::ErrorKind::not_found);
        CHECK(contains(error.what(), "'main'"));
    }
    std::vector<uint32_t> broken = words;
    broken.resize(broken.size() - 1);
    CHECK_THROWS_AS((void)kp::decompile_spirv(broken, kp::SourceLanguage::glsl), kp::Error);
}

TEST_CASE("a flood of errors is listed whole and shown in part") {
    std::string body = "void main() {\n";
    for (int i = 0; i < 150; ++i) body += "data[0] = foo" + std::to_string(i) + ";\n";
    const Failure failure = failure_of(request(body + "}\n"));
    CHECK(failure.diagnostics.size() == 150);
    CHECK(contains(failure.text, "'foo99'"));
    CHECK_FALSE(contains(failure.text, "'foo100'"));
    CHECK(contains(failure.text, "\n... 50 more\n150 errors"));
}

TEST_CASE("long lines are shown around the token") {
    std::string body = "void main() {";
    for (int i = 0; i < 40; ++i) body += " { float padding = 0.0; data[1] = padding; }";
    body += " data[0] = foo; }\n";
    const Failure failure = failure_of(request(body));
    const std::string shown = failure.text.substr(failure.text.find('\n') + 1);
    CHECK(shown.find('\n') < 200);
    const std::string caret_line = shown.substr(shown.find('\n') + 1);
    CHECK(shown.substr(caret_line.find('^'), 3) == "foo");
}

TEST_CASE("what a thread of its own throws arrives here") {
    CHECK_THROWS_AS(
        kp::run_with_deep_stack([] { throw kp::Error(kp::ErrorKind::not_found, "thrown there"); }),
        kp::Error);
    bool done = false;
    kp::run_with_deep_stack([&] { done = true; });
    CHECK(done);
}
