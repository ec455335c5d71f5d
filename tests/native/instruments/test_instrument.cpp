// Instruments: the module stays valid, and its sites say where and what.
#include "instruments/instrument.hpp"
#include "spirv/module.hpp"
#include "spirv/spirv_text.hpp"

#include <algorithm>
#include <random>

using namespace kp;
using namespace spirv_text;

namespace {

std::string text_of(const std::vector<uint32_t>& words, spv_target_env env = SPV_ENV_VULKAN_1_2) {
    const spvtools::SpirvTools tools(env);
    std::string messages;
    const_cast<spvtools::SpirvTools&>(tools).SetMessageConsumer(
        [&](spv_message_level_t, const char*, const spv_position_t&, const char* message) {
            messages += std::string(message) + "\n";
        });
    const bool valid = tools.Validate(words);
    std::string text;
    CHECK(tools.Disassemble(words, &text, SPV_BINARY_TO_TEXT_OPTION_NO_HEADER));
    CHECK_MESSAGE(valid, messages << text);
    return text;
}

// A buffer of floats, a shared and a private array, a local one; `body` in the main function, with %i as
// index.
std::vector<uint32_t> shader(const std::string& body, const std::string& version_head = "") {
    return assemble_valid("OpCapability Shader\nOpCapability Int64\n" + version_head + R"(
        OpExtension "SPV_KHR_non_semantic_info"
        %print = OpExtInstImport "NonSemantic.DebugPrintf"
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main "main" %index
        OpExecutionMode %main LocalSize 4 1 1
        %file = OpString "blur.comp"
        %format = OpString "%d of %s: %v2f"
        %word = OpString "two"
        OpName %buffer "x"
        OpName %pool "pool"
        OpDecorate %index BuiltIn LocalInvocationIndex
        OpDecorate %array ArrayStride 4
        OpDecorate %block Block
        OpMemberDecorate %block 0 Offset 0
        OpDecorate %buffer DescriptorSet 0
        OpDecorate %buffer Binding 0
        )" + basics + R"(
        %int = OpTypeInt 32 1
        %long = OpTypeInt 64 1
        %float2 = OpTypeVector %float 2
        %u0 = OpConstant %uint 0
        %u3 = OpConstant %uint 3
        %u8 = OpConstant %uint 8
        %u2 = OpConstant %uint 2
        %u264 = OpConstant %uint 264
        %true = OpConstantTrue %bool
        %f1 = OpConstant %float 1
        %pair = OpConstantComposite %float2 %f1 %f1
        %array = OpTypeRuntimeArray %float
        %block = OpTypeStruct %array
        %to_block = OpTypePointer StorageBuffer %block
        %to_float = OpTypePointer StorageBuffer %float
        %buffer = OpVariable %to_block StorageBuffer
        %eight = OpTypeArray %float %u8
        %to_eight = OpTypePointer Workgroup %eight
        %pool = OpVariable %to_eight Workgroup
        %to_pooled = OpTypePointer Workgroup %float
        %to_local = OpTypePointer Function %eight
        %to_place = OpTypePointer Function %float
        %to_input = OpTypePointer Input %uint
        %index = OpVariable %to_input Input
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %local = OpVariable %to_local Function
        %i = OpLoad %uint %index
        )" + body + R"(
        OpReturn
        OpFunctionEnd
    )");
}

constexpr Instruments printf_only{.printf = true};
constexpr Instruments bounds_only{.bounds = true};

}  // namespace

TEST_CASE("printf becomes a record with its arguments") {
    const auto words = shader("OpLine %file 7 0\n%p = OpExtInst %void %print 1 %format %i %word %pair\n");
    const Instrumented made = instrumented(words, printf_only, 1, 5);
    REQUIRE(made.sites.size() == 1);
    CHECK(made.problem.empty());
    const DebugSite& site = made.sites.front();
    CHECK(site.kind == DebugSite::Kind::printf);
    CHECK(site.file == "blur.comp");
    CHECK(site.line == 7);
    CHECK(site.text == "%d of %s: %v2f");
    CHECK(site.arguments == "u1s1f2");
    CHECK(site.strings == std::vector<std::string>{"two"});
    const std::string text = text_of(made.words);
    CHECK(!contains(text, "DebugPrintf %"));
    CHECK(contains(text, "DescriptorSet 1"));
    CHECK(contains(text, "BuiltIn GlobalInvocationId"));
    CHECK(instrumented(words, bounds_only, 1, 5).words.empty());
}

TEST_CASE("indices into buffers, shared and local arrays are checked") {
    const auto words = shader(R"(
        OpLine %file 9 0
        %p = OpAccessChain %to_float %buffer %u0 %i
        %v = OpLoad %float %p
        OpLine %file 10 0
        %q = OpAccessChain %to_pooled %pool %i
        OpStore %q %v
        OpNoLine
        %r = OpAccessChain %to_place %local %i
        OpStore %r %v
    )");
    const Instrumented made = instrumented(words, bounds_only, 1, 0);
    REQUIRE(made.sites.size() == 3);
    CHECK(made.sites[0].text == "x[]");
    CHECK(made.sites[0].arguments == "ru");
    CHECK(made.sites[0].line == 9);
    CHECK(made.sites[1].text == "pool[]");
    CHECK(made.sites[1].arguments == "wu");
    CHECK(made.sites[1].line == 10);
    CHECK(made.sites[2].line == 0);
    const std::string text = text_of(made.words);
    CHECK(contains(text, "OpArrayLength"));
    CHECK(instrumented(words, printf_only, 1, 0).words.empty());
}

TEST_CASE("races are looked for at a bounded number of accesses") {
    constexpr Instruments races_only{.races = true};
    std::string code;
    for (int i = 0; i < 200; ++i) {
        const std::string name = "%q" + std::to_string(i);
        code += name + " = OpAccessChain %to_float %buffer %u0 %i\nOpStore " + name + " %f1\n";
    }
    const Instrumented made = instrumented(shader(code), races_only, 1, 0);
    CHECK(made.sites.size() == 128);
    (void)text_of(made.words);
}

TEST_CASE("an index below the length of a fixed array needs no check") {
    const auto words = shader(R"(
        %q = OpAccessChain %to_pooled %pool %u3
        OpStore %q %f1
    )");
    CHECK(instrumented(words, bounds_only, 0, 0).words.empty());
    // A buffer may be shorter than any constant.
    const auto buffer = shader("%p = OpAccessChain %to_float %buffer %u0 %u3\nOpStore %p %f1\n");
    CHECK(instrumented(buffer, bounds_only, 1, 0).sites.size() == 1);
}

TEST_CASE("a chain of chains, signed and wide indices, atomics") {
    const auto words = shader(R"(
        %s = OpBitcast %int %i
        %w = OpSConvert %long %s
        %p = OpAccessChain %to_float %buffer %u0 %w
        OpStore %p %f1
        %q = OpAccessChain %to_pooled %pool %s
        %v = OpLoad %float %q Volatile
        %u = OpAtomicLoad %float %q %u3 %u0
    )");
    const Instrumented made = instrumented(words, bounds_only, 1, 0);
    REQUIRE(made.sites.size() == 3);
    CHECK(made.sites[0].arguments == "wi");
    CHECK(made.sites[2].arguments == "ai");
    (void)text_of(made.words);
}

TEST_CASE("a module that has entry points of other stages is left alone, with a reason") {
    auto words = shader("%p = OpAccessChain %to_float %buffer %u0 %i\nOpStore %p %f1\n");
    for (size_t at = 5; at < words.size(); at += words[at] >> 16)
        if ((words[at] & 0xFFFF) == spv::OpEntryPoint) words[at + 1] = spv::ExecutionModelFragment;
    const Instrumented made = instrumented(words, bounds_only, 1, 0);
    CHECK(made.words.empty());
    CHECK(contains(made.problem, "other stages"));
}

TEST_CASE("a matrix of small numbers without arithmetic cannot be checked") {
    const auto words = assemble_valid(R"(
        OpCapability Shader
        OpCapability StorageBuffer16BitAccess
        OpExtension "SPV_KHR_16bit_storage"
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main "main"
        OpExecutionMode %main LocalSize 4 1 1
        %file = OpString "copy.comp"
        OpDecorate %array ArrayStride 8
        OpDecorate %block Block
        OpMemberDecorate %block 0 Offset 0
        OpMemberDecorate %s 0 Offset 0
        OpMemberDecorate %s 0 ColMajor
        OpMemberDecorate %s 0 MatrixStride 4
        OpDecorate %buffer DescriptorSet 0
        OpDecorate %buffer Binding 0
        )" + basics + R"(
        %half = OpTypeFloat 16
        %u0 = OpConstant %uint 0
        %half2 = OpTypeVector %half 2
        %pair = OpTypeMatrix %half2 2
        %s = OpTypeStruct %pair
        %array = OpTypeRuntimeArray %s
        %block = OpTypeStruct %array
        %to_block = OpTypePointer StorageBuffer %block
        %to_pair = OpTypePointer StorageBuffer %pair
        %buffer = OpVariable %to_block StorageBuffer
        %main = OpFunction %void None %fn
        %entry = OpLabel
        OpLine %file 9 0
        %p = OpAccessChain %to_pair %buffer %u0 %u0 %u0
        %v = OpLoad %pair %p
        OpStore %p %v
        OpReturn
        OpFunctionEnd
    )");
    const Instrumented made = instrumented(words, bounds_only, 1, 0);
    CHECK(made.words.empty());
    CHECK(made.problem.starts_with("it copies a whole matrix of 16-bit numbers in copy.comp:9"));
    CHECK(instrumented(words, {.races = true}, 1, 0).problem.empty());
}

TEST_CASE("accesses to what the shader writes are tracked, and ends report") {
    const auto words = shader(R"(
        OpLine %file 9 0
        %p = OpAccessChain %to_float %buffer %u0 %i
        %v = OpLoad %float %p
        OpLine %file 10 0
        %q = OpAccessChain %to_pooled %pool %i
        OpStore %q %v
        %r = OpAccessChain %to_place %local %i
        OpStore %r %v
    )");
    // The buffer is only read; nobody else sees the local array.
    const Instrumented made = instrumented(words, {.races = true}, 1, 0);
    REQUIRE(made.sites.size() == 1);
    CHECK(made.sites[0].kind == DebugSite::Kind::races);
    CHECK(made.sites[0].text == "pool[]");
    CHECK(made.sites[0].arguments == "ws");
    CHECK(made.sites[0].line == 10);
    CHECK(made.shadowed.any);
    CHECK(made.shadowed.buffers.empty());
    const std::string text = text_of(made.words);
    CHECK(contains(text, "Binding 1"));
    CHECK(contains(text, "OpAtomicExchange"));
}

TEST_CASE("a written buffer is tracked, a coherent one is not") {
    const std::string body =
        "%p = OpAccessChain %to_float %buffer %u0 %i\n%v = OpLoad %float %p\nOpStore %p %v\n";
    const Instrumented made = instrumented(shader(body), {.races = true}, 1, 0);
    CHECK(made.sites.size() == 2);
    REQUIRE(made.shadowed.buffers.size() == 1);
    CHECK(made.shadowed.buffers[0] == std::pair<uint32_t, uint32_t>(0, 0));
    (void)text_of(made.words);
    const std::string volatile_body = "%p = OpAccessChain %to_float %buffer %u0 %i\n%v = OpLoad %float %p "
                                      "Volatile\nOpStore %p %v Volatile\n";
    CHECK(instrumented(shader(volatile_body), {.races = true}, 1, 0).words.empty());
}

TEST_CASE("barriers and turns of loops are counted") {
    const auto words = shader(R"(
        OpControlBarrier %u2 %u2 %u264
        OpBranch %head
        %head = OpLabel
        OpLine %file 12 0
        OpLoopMerge %done %more None
        OpBranch %more
        %more = OpLabel
        OpBranchConditional %true %head %done
        %done = OpLabel
    )",
                              "");
    const Instrumented made = instrumented(words, {.barriers = true, .loops = true}, 1, 0);
    REQUIRE(made.sites.size() == 2);
    CHECK(made.sites[0].kind == DebugSite::Kind::barriers);
    CHECK(made.sites[1].kind == DebugSite::Kind::loops);
    CHECK(made.sites[1].line == 12);
    CHECK(!made.shadowed.any);
    (void)text_of(made.words);
    CHECK(instrumented(words, {.races = true}, 1, 0).words.empty());
}

TEST_CASE("invalid code, which nobody checked, gets instruments or none") {
    const auto valid = shader(R"(
        %at = OpAccessChain %to_pooled %pool %i
        %more = OpInBoundsAccessChain %to_place %local %i
        %value = OpLoad %float %at
        OpStore %more %value
        %p = OpExtInst %void %print 1 %format %i %word %pair
        OpControlBarrier %u2 %u2 %u264
    )");
    const size_t chain = static_cast<size_t>(
        std::find(valid.begin(), valid.end(), 5u << 16 | spv::OpAccessChain) - valid.begin());
    REQUIRE(chain < valid.size());
    std::vector<uint32_t> words = valid;
    words[chain + 3] = words[chain + 2];  // it begins at itself
    CHECK(instrumented(words, bounds_only, 1, 0).sites.size() == 1);

    std::mt19937 random(34);
    for (int round = 0; round < 3000; ++round) {
        words = valid;
        for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
            uint32_t& word = words[5 + random() % (words.size() - 5)];
            word = random() % 2 ? words[random() % words.size()] : word ^ 1u << random() % 32;
        }
        words.shrink_to_fit();
        try {
            (void)reflect(words);
            (void)instrumented(words, {true, true, true, true, true}, 1, 0);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::invalid_argument) FAIL(error.what());
        }
    }
}
