// The elements that a shader's invocations use, with their guards, as `reach` finds them in optimized code.
#include "spirv/spirv_text.hpp"

#include "compiler/compile.hpp"
#include "spirv/reach.hpp"

using namespace kp;
using namespace spirv_text;

namespace {

std::string text_of(const ShaderReach& found, uint32_t number) {
    constexpr const char* operators[] = {" + ", " - ", " * ", " min ", " max ", " / ", " % "};
    const ReachExpression& made = found.expressions[number];
    const std::string axis = made.value >= 0 && made.value < 3 ? std::string(1, "xyz"[made.value]) : "";
    switch (made.term) {
    case ReachTerm::unknown: return made.b ? "signed?" : "?";
    case ReachTerm::constant: return std::to_string(made.value);
    case ReachTerm::invocation: return axis;
    case ReachTerm::group: return "group " + axis;
    case ReachTerm::local: return "local " + axis;
    case ReachTerm::groups: return "groups " + axis;
    case ReachTerm::push_constant: return "push " + std::to_string(made.value);
    case ReachTerm::length: return "length " + std::to_string(made.b);
    case ReachTerm::image_size: return "size " + axis;
    case ReachTerm::memory: return "memory " + std::to_string(made.value);
    case ReachTerm::derived: return "derived";
    default: break;
    }
    std::string left = text_of(found, made.a), right = text_of(found, made.b);
    const auto place = static_cast<size_t>(made.term) - static_cast<size_t>(ReachTerm::add);
    if (place != 1 && place < 5 && right < left) std::swap(left, right);
    return "(" + left + operators[place] + right + ")";
}

// The writes of a body: "index [guards]", with "!" if every invocation behind the guards makes it.
std::string writes(const std::string& body, const std::string& functions = "") {
    CompileRequest request;
    request.source = R"(#version 450
layout(local_size_x = 8, local_size_y = 4) in;
layout(binding = 0) buffer B { float b[]; };
layout(binding = 1) readonly buffer A { uint a[]; };
layout(binding = 2) readonly buffer N { uint n; int at; };
layout(binding = 3, r32f) uniform image2D img;
layout(binding = 4) buffer R { float rows[][5]; };
layout(push_constant) uniform P { uint w, h; float f; };
)" + functions + "\nvoid main() { uint x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y; " +
                     body + " }";
    request.optimize = OptimizeFor::performance;
    const ShaderReach found = reach(compile(request).spirv);
    std::string text;
    for (const ReachAccess& access : found.accesses) {
        if (!access.written) continue;
        if (!text.empty()) text += "; ";
        for (const uint32_t index : access.indices)
            text += (index == access.indices[0] ? "" : ", ") + text_of(found, index);
        std::vector<std::string> guards;
        for (const auto& [left, right] : access.guards)
            guards.push_back(text_of(found, left) + " < " + text_of(found, right));
        std::sort(guards.begin(), guards.end());
        for (const std::string& each : guards) text += " [" + each + "]";
        if (access.certain) text += " !";
    }
    return text;
}

}  // namespace

TEST_CASE("reach: indices") {
    CHECK(writes("b[x] = 1;") == "x !");
    CHECK(writes("b[y * w + x] = 1;") == "((push 0 * y) + x) !");
    CHECK(writes("b[int(x) + 3] = 1;") == "(3 + x) !");
    CHECK(writes("b[gl_WorkGroupID.x * 8 + gl_LocalInvocationID.x] = 1;") == "x !");
    CHECK(writes("b[(gl_WorkGroupID.x << 3) | gl_LocalInvocationID.x] = 1;") == "x !");
    CHECK(
        writes("uvec2 p = gl_WorkGroupID.xy * gl_WorkGroupSize.xy + gl_LocalInvocationID.xy; b[p.y] = 1;") ==
        "y !");
    CHECK(writes("b[x >> 2] = 1;") == "(x / 4) !");
    CHECK(writes("b[x & 7] = 1;") == "(x % 8) !");
    CHECK(writes("b[x % w] = 1;") == "(x % push 0) !");
    CHECK(writes("b[min(x, w)] = 1;") == "(push 0 min x) !");
    CHECK(writes("b[x ^ 1u] = 1;") == "derived !");
    CHECK(writes("b[uint(float(x) * 0.5)] = 1;") == "derived !");
    CHECK(writes("b[a[x]] = 1;") == "? !");
    CHECK(writes("b[x + n] = 1;") == "(memory 0 + x) !");
    CHECK(writes("b[uint(f) * y + x] = 1;") == "((push 8 * y) + x) !");
    CHECK(writes("b[0] = 1;") == "0 !");
    CHECK(writes("rows[y][x] = 1;") == "((5 * y) + x) !");
    CHECK(writes("imageStore(img, ivec2(x, h - 1 - y), vec4(1));") == "x, ((push 4 - 1) - y) !");
    CHECK(writes("b[twice(x)] = 1;", "uint twice(uint i) { return 2 * i; }") == "(2 * x) !");
}

TEST_CASE("reach: loops that count upwards begin at their first number") {
    CHECK(writes("for (uint j = x; j < b.length(); j += 64) b[j] = 1;") == "(? + x) [(? + x) < length 0]");
    CHECK(writes("uint v = 0; for (uint k = 0; k <= x; ++k) v += a[k]; b[x] = v;") == "x !");
    CHECK(writes("for (int k = -1; k <= 1; ++k) b[int(x) + k] = 1;") == "((-1 + ?) + x)");
    CHECK(writes("for (uint k = 0; k < w; ++k) b[x * w + k] = 1;") == "((0 + ?) + (push 0 * x))");
}

TEST_CASE("reach: guards") {
    const std::string both = "((push 0 * y) + x) [x < push 0] [y < push 4] !";
    const std::string body = "b[y * w + x] = 1;";
    CHECK(writes("if (x < w && y < h) " + body) == both);
    CHECK(writes("if (x >= w || y >= h) return; " + body) == both);
    CHECK(writes("if (!(x < w)) return; if (h > y) " + body) == both);
    CHECK(writes("bool inside = x < w && y < h; if (!inside) return; " + body) == both);
    CHECK(writes("if (any(greaterThanEqual(gl_GlobalInvocationID.xy, uvec2(w, h)))) return; " + body) ==
          both);
    CHECK(writes("if (all(lessThan(uvec2(x, y), uvec2(w, h)))) { " + body + " }") == both);
    CHECK(writes("if (float(x) < f) b[x] = 1;") == "x [x < push 8] !");
    CHECK(writes("if (x < n) b[x] = 1;") == "x [x < memory 0] !");
    CHECK(writes("if (x < a[y]) b[x] = 1;") == "x");
    CHECK(writes("if (x <= w) b[x] = 1;") == "x [x < (1 + push 0)] !");
    CHECK(writes("if (x < b.length()) b[x] = 1;") == "x [x < length 0] !");
    CHECK(writes("if (x == 0) b[3] = 1;") == "3 [x < (0 + 1)]");
    CHECK(writes("if (x < w && a[x] > 3) b[x] = 1;") == "x [x < push 0]");
    CHECK(writes("if (a[x] > 3) { if (x >= w) return; } b[x] = 1;") == "x");
    CHECK(writes("if (x > 3) b[x] = 1; else b[x + 1] = 1;") == "x; (1 + x) [x < (1 + 3)] !");
    CHECK(writes("if (x < w || y < h) b[x] = 1;") == "x");
    CHECK(writes("for (uint k = 0; k < 1; ++k) { if (x >= w) break; b[x] = 1; }").find("[x < push 0]") !=
          std::string::npos);
}

TEST_CASE("reach: code that is not optimized, and writes that are not followed") {
    CompileRequest request;
    request.source = "#version 450\nlayout(binding = 0) buffer B { float b[]; };\n"
                     "void put(uint i) { b[i / 2] = 1; }\n"
                     "void main() { put(gl_GlobalInvocationID.x); }";
    request.optimize = OptimizeFor::nothing;
    const ShaderReach found = reach(compile(request).spirv);
    REQUIRE(found.accesses.size() == 1);
    CHECK(found.accesses[0].written);
    CHECK(found.accesses[0].stride == 0);
    CHECK(found.expressions[found.accesses[0].indices[0]].term == ReachTerm::unknown);
}
