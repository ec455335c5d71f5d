// Which numbers of its invocation a shader's code uses, and
// the shaders that are rewritten to run in layers.
#include "spirv/spirv_text.hpp"

#include "compiler/compile.hpp"
#include "spirv/fold.hpp"
#include "spirv/invocation.hpp"

using namespace kp;
using namespace spirv_text;

namespace {

std::string axes(uint8_t bits) {
    std::string text;
    for (uint32_t axis = 0; axis < 3; ++axis)
        if (bits >> axis & 1) text += "xyz"[axis];
    return text.empty() ? "-" : text;
}

std::string text_of(const InvocationUse& use) {
    std::string text = "global " + axes(use.global);
    if (use.group) text += " group " + axes(use.group);
    if (use.group_alone) text += " alone " + axes(use.group_alone);
    if (use.group && !use.group_below_block) text += " blocks";
    if (use.local) text += " local " + axes(use.local);
    if (use.group_count) text += " count " + axes(use.group_count);
    if (use.local_index) text += " index";
    return text;
}

const std::string glsl_head = R"(#version 450
#extension GL_KHR_shader_subgroup_basic : enable
layout(local_size_x = 8, local_size_y = LY) in;
layout(constant_id = 3) const uint TILE = 8;
layout(binding = 0) buffer A { float a[]; };
layout(binding = 1) buffer B { float b[]; };
layout(binding = 2, r32f) uniform image2D img;
layout(push_constant) uniform P { uint width; };
shared float tile[64];
shared uint numbers[8];
)";

std::vector<std::vector<uint32_t>> compiled(const std::string& source, const std::string& rows) {
    std::vector<std::vector<uint32_t>> modules;
    for (const OptimizeFor optimize : {OptimizeFor::size, OptimizeFor::performance}) {
        CompileRequest request;
        request.source = source;
        request.optimize = optimize;
        request.defines = {{"LY", rows}};
        modules.push_back(compile(request).spirv);
    }
    return modules;
}

// The same for both levels of optimization, or what each says.
std::string agreed(const std::vector<std::vector<uint32_t>>& modules,
                   const std::vector<SpecValue>& values = {}) {
    std::vector<std::string> texts;
    for (const auto& words : modules) texts.push_back(text_of(invocation_use(words, "main", values)));
    return texts[0] == texts[1] ? texts[0] : texts[0] + " | " + texts[1];
}

std::string glsl(const std::string& body, const std::string& functions = "", const std::string& rows = "1",
                 const std::vector<SpecValue>& values = {}) {
    return agreed(compiled(glsl_head + functions + "\nvoid main() {\n" + body + "\n}\n", rows), values);
}

}  // namespace

TEST_CASE("invocation use: components of gl_GlobalInvocationID") {
    CHECK(glsl("a[gl_GlobalInvocationID.x] = 1.0;") == "global x");
    CHECK(glsl("a[gl_GlobalInvocationID.y] = 1.0;") == "global y");
    CHECK(glsl("uvec3 id = gl_GlobalInvocationID; a[id.x] = 1.0;") == "global x");
    CHECK(glsl("uvec3 id = gl_GlobalInvocationID; a[id.y * width + id.x] = 1.0;") == "global xy");
    CHECK(glsl("uvec2 p = gl_GlobalInvocationID.xy; a[p.y * width + p.x] = 1.0;") == "global xy");
    CHECK(glsl("uvec2 p = gl_GlobalInvocationID.zx; a[p.x] = float(p.y);") == "global xz");
    CHECK(glsl("uvec3 id = gl_GlobalInvocationID * 2u + uvec3(1); a[id.x] = 1.0;") == "global x");
    CHECK(glsl("imageStore(img, ivec2(gl_GlobalInvocationID.xy), vec4(1));") == "global xy");
    CHECK(glsl("imageStore(img, ivec2(gl_GlobalInvocationID.x, 3), vec4(1));") == "global x");
    CHECK(glsl("uvec3 id = gl_GlobalInvocationID; a[id.x + id.y + id.z] = 1.0;") == "global xyz");
    CHECK(glsl("a[0] = length(vec3(gl_GlobalInvocationID));") == "global xyz");
    CHECK(glsl("a[gl_GlobalInvocationID[width]] = 1.0;") == "global xyz");
    CHECK(glsl("if (gl_GlobalInvocationID.y == 0) a[gl_GlobalInvocationID.x] = 1.0;") == "global xy");
    CHECK(glsl("switch (gl_GlobalInvocationID.z) { case 0: a[0] = 1.0; break; default: break; }") ==
          "global z");
    CHECK(glsl("for (uint i = gl_GlobalInvocationID.x; i < a.length(); i += 64) a[i] = 1.0;") == "global x");
    CHECK(glsl("a[gl_GlobalInvocationID.x] = b[gl_GlobalInvocationID.y];") == "global xy");
    CHECK(glsl("atomicAdd(numbers[gl_GlobalInvocationID.x % 8], 1);") == "global x");
    CHECK(glsl("uvec3 id = gl_GlobalInvocationID; id.y = 0; id.z = width; a[id.x + id.y + id.z] = 1.0;")
              .starts_with("global x"));
}

TEST_CASE("invocation use: what nothing depends on does not count") {
    CHECK(glsl("uint y = gl_GlobalInvocationID.y; uint x = gl_GlobalInvocationID.x; a[x] = 1.0;") ==
          "global x");
    CHECK(glsl("uint y = gl_GlobalInvocationID.y; y += 1;") == "global -");
    CHECK(glsl("a[0] = 1.0;") == "global -");
    CHECK(glsl("a[3] = float(gl_NumWorkGroups.x);") == "global - count x");
    // A function that nothing calls.
    CHECK(glsl("a[gl_GlobalInvocationID.x] = 1.0;", "void other() { a[gl_GlobalInvocationID.y] = 1.0; }") ==
          "global x");
}

TEST_CASE("invocation use: through functions, variables and structs") {
    CHECK(glsl("put(gl_GlobalInvocationID.x);", "void put(uint i) { a[i] = 1.0; }") == "global x");
    CHECK(glsl("put(gl_GlobalInvocationID);", "void put(uvec3 p) { a[p.x] = 1.0; }") == "global x");
    CHECK(glsl("uvec3 p = gl_GlobalInvocationID; put(p);",
               "void put(inout uvec3 p) { p.x += 1; a[p.x] = 1.0; }") == "global x");
    CHECK(glsl("uint i; at(i); a[i] = 1.0;", "void at(out uint i) { i = gl_GlobalInvocationID.x; }") ==
          "global x");
    CHECK(glsl("a[at()] = 1.0;",
               "uint at() { return gl_GlobalInvocationID.y * width + gl_GlobalInvocationID.x; }") ==
          "global xy");
    CHECK(glsl("a[at().x] = 1.0;", "uvec2 at() { return gl_GlobalInvocationID.xy; }") == "global x");
    CHECK(glsl("fill(); a[saved] = 1.0;", "uint saved; void fill() { saved = gl_GlobalInvocationID.x; }") ==
          "global x");
    CHECK(glsl("S s; s.p = gl_GlobalInvocationID; s.n = width; a[s.p.x + s.n] = 1.0;",
               "struct S { uvec3 p; uint n; };") == "global x");
    CHECK(glsl("S s = S(gl_GlobalInvocationID, gl_NumWorkGroups.x); put(s);",
               "struct S { uvec3 p; uint n; }; void put(S s) { a[s.p.x] = 1.0; }") == "global x");
    CHECK(glsl("S s = make(); a[s.p.x] = 1.0;",
               "struct S { uvec3 p; uint n; }; S make() { return S(gl_GlobalInvocationID, 3); }") ==
          "global x");
    CHECK(glsl("tile[gl_LocalInvocationID.x] = float(gl_GlobalInvocationID.x); barrier(); a[0] = tile[3];") ==
          "global x local x");
}

TEST_CASE("invocation use: groups that are multiplied by their size count invocations") {
    CHECK(glsl("a[gl_WorkGroupID.x * 8 + gl_LocalInvocationID.x] = 1.0;") ==
          "global - group x blocks local x");
    CHECK(glsl("a[gl_WorkGroupID.x * gl_WorkGroupSize.x + gl_LocalInvocationID.x] = 1.0;") ==
          "global - group x blocks local x");
    CHECK(glsl("uvec2 p = gl_WorkGroupID.xy * gl_WorkGroupSize.xy + gl_LocalInvocationID.xy; a[p.y * width + "
               "p.x] = 1.0;",
               "", "4") == "global - group xy local xy");
    CHECK(glsl("a[(gl_WorkGroupID.x << 3) + gl_LocalInvocationID.x] = 1.0;") ==
          "global - group x blocks local x");
    CHECK(glsl("a[(gl_WorkGroupID.x * gl_WorkGroupSize.x + gl_LocalInvocationID.x) * 4] = 1.0;") ==
          "global - group x blocks local x");
    CHECK(glsl("int i = int(gl_WorkGroupID.x) * 8 + int(gl_LocalInvocationID.x); a[i] = 1.0;") ==
          "global - group x blocks local x");
    // Groups of 8 x 4: blocks of 32, tiles of 8, or fewer.
    CHECK(glsl("a[gl_WorkGroupID.x * 32 + gl_LocalInvocationIndex] = 1.0;", "", "4") ==
          "global - group x blocks index");
    CHECK(glsl("a[gl_WorkGroupID.x * 8 + gl_LocalInvocationIndex] = 1.0;", "", "4") ==
          "global - group x index");
    CHECK(glsl("a[gl_WorkGroupID.x * 6 + gl_LocalInvocationID.x] = 1.0;") ==
          "global - group x alone x local x");
    CHECK(glsl("a[gl_WorkGroupID.x * width + gl_LocalInvocationID.x] = 1.0;") ==
          "global - group x alone x local x");
    CHECK(glsl("a[gl_WorkGroupID.x] = float(gl_LocalInvocationID.x);") == "global - group x alone x local x");
    CHECK(glsl("a[gl_WorkGroupID.x] = b[gl_GlobalInvocationID.x];") == "global x group x alone x");
    // A row for each group, whose size is 1 there.
    CHECK(glsl("a[gl_WorkGroupID.y] = b[gl_LocalInvocationID.x];") == "global - group y local x");
    const SpecValue four{3, 4};
    CHECK(glsl("a[gl_WorkGroupID.x * TILE] = 1.0;") == "global - group x blocks");
    CHECK(glsl("a[gl_WorkGroupID.x * TILE] = 1.0;", "", "1", {four}) == "global - group x alone x");
    CHECK(glsl("a[gl_SubgroupID] = 1.0;") == "global - index");
    CHECK(glsl("a[gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x + "
               "gl_GlobalInvocationID.x] = 1.0;") == "global xy count x");
}

TEST_CASE("fold: which axis counts the layers, and which groups cannot run") {
    const std::array<uint32_t, 3> most{100, 100, 50};
    const auto fold = [&](std::array<uint32_t, 3> groups) -> std::string {
        try {
            const auto found = fold_of({8, 1, 1}, groups, most);
            return found ? std::string(1, "xyz"[found->from]) + " into " + "xyz"[found->into] + " by " +
                               std::to_string(found->stride)
                         : "fits";
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::invalid_argument);
            return error.what();
        }
    };
    CHECK(fold({100, 100, 50}) == "fits");
    CHECK(fold({101, 1, 1}) == "x into z by 100");
    CHECK(fold({101, 1, 2}) == "x into y by 100");
    CHECK(fold({7, 101, 1}) == "y into z by 100");
    CHECK(fold({1, 1, 51}) == "z into y by 50");
    CHECK(fold({1, 7, 51}) == "z into x by 50");
    CHECK(fold({5000, 1, 1}) == "x into z by 100");
    CHECK(contains(fold({5001, 1, 1}), "not even layers"));
    CHECK(contains(fold({101, 2, 2}), "no other axis"));
    CHECK(contains(fold({101, 101, 1}), "more than one axis"));
}

TEST_CASE("fold: the rewritten module is valid, and code that cannot be rewritten is refused") {
    const std::array<uint32_t, 3> size{8, 4, 1};
    const auto fold = [&](const std::string& body, const std::string& functions = "") {
        for (const auto& words : compiled(glsl_head + functions + "\nvoid main() {\n" + body + "\n}\n", "4"))
            for (const Fold& way : {Fold{0, 2, 65535}, Fold{0, 1, 65535}, Fold{2, 1, 7}}) {
                const std::vector<uint32_t> made = folded(words, "main", way, size);
                CHECK(made.size() > words.size());
                CHECK(validate_spirv(made, {}) == "");
                CHECK(text_of(invocation_use(made)) != "global -");
            }
    };
    fold("a[gl_GlobalInvocationID.x] = 1.0;");
    fold("uvec3 id = gl_GlobalInvocationID; put(id); a[id.y] = float(gl_WorkGroupID.z);",
         "void put(uvec3 p) { a[p.x + gl_WorkGroupID.x] = 1.0; }");
    fold("a[gl_GlobalInvocationID[width]] = float(gl_WorkGroupID[width]);");

    const auto counts = compiled(glsl_head + "void main() { a[gl_NumWorkGroups.x] = 1.0; }", "4");
    CHECK_THROWS_WITH_AS((void)folded(counts[1], "main", {0, 2, 100}, size),
                         doctest::Contains("gl_NumWorkGroups"), Error);
    // No valid module does, so far.
    const auto by_pointer = assemble(head() + R"(
        OpDecorate %id BuiltIn GlobalInvocationId
    )" + basics + R"(
        %v3 = OpTypeVector %uint 3
        %ptr = OpTypePointer Input %v3
        %id = OpVariable %ptr Input
        %f_type = OpTypeFunction %void %ptr
        %f = OpFunction %void None %f_type
        %p = OpFunctionParameter %ptr
        %f_label = OpLabel
        %x = OpLoad %v3 %p
        OpReturn
        OpFunctionEnd
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %r = OpFunctionCall %void %f %id
        OpReturn
        OpFunctionEnd
    )");
    CHECK_THROWS_WITH_AS((void)folded(by_pointer, "main", {0, 2, 100}, {1, 1, 1}),
                         doctest::Contains("by pointer"), Error);
}

TEST_CASE("debug information and messages use no numbers; local variables pass them on") {
    // Line 3 does not use the id 3, whichever value that is.
    const std::string text = R"(
        OpExtension "SPV_KHR_non_semantic_info"
        %print = OpExtInstImport "NonSemantic.DebugPrintf"
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main "main" %id
        OpExecutionMode %main LocalSize 8 1 1
        %file = OpString "a.hlsl"
        OpDecorate %id BuiltIn GlobalInvocationId
        OpDecorate %array ArrayStride 4
        OpDecorate %block Block
        OpMemberDecorate %block 0 Offset 0
        OpDecorate %buffer DescriptorSet 0
        OpDecorate %buffer Binding 0
        )" + basics + R"(
        %uint3 = OpTypeVector %uint 3
        %u0 = OpConstant %uint 0
        %array = OpTypeRuntimeArray %uint
        %block = OpTypeStruct %array
        %to_block = OpTypePointer StorageBuffer %block
        %buffer = OpVariable %to_block StorageBuffer
        %to_uint = OpTypePointer StorageBuffer %uint
        %to_input = OpTypePointer Input %uint3
        %id = OpVariable %to_input Input
        %to_local = OpTypePointer Function %uint3
        %to_part = OpTypePointer Function %uint
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %local = OpVariable %to_local Function
        %number = OpLoad %uint3 %id
        OpStore %local %number
        OpLine %file LINE 1
        %part = OpAccessChain %to_part %local %u0
        %x = OpLoad %uint %part
        %said = OpExtInst %void %print 1 %file %number
        %place = OpAccessChain %to_uint %buffer %u0 %x
        OpStore %place %u0
        OpReturn
        OpFunctionEnd
    )";
    for (uint32_t line = 1; line < 40; ++line) {
        std::string here = text;
        here.replace(here.find("LINE"), 4, std::to_string(line));
        CHECK(text_of(invocation_use(assemble_valid("OpCapability Shader\n" + here))) == "global x");
    }
}
