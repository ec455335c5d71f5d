// What reflection does with modules that are broken, or no modules at all.
#include "spirv/clamp.hpp"
#include "spirv/fold.hpp"
#include "spirv/guard_atomics.hpp"
#include "spirv/invocation.hpp"
#include "spirv/lower.hpp"
#include "spirv/reach.hpp"
#include "spirv/spirv_text.hpp"

#include <cstring>
#include <random>

using namespace kp;
using namespace spirv_text;

namespace {

std::vector<uint32_t> words_of(std::string bytes) {
    std::vector<uint32_t> words((bytes.size() + 3) / 4);
    bytes.resize(words.size() * 4);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
}

// The id of the first struct type.
uint32_t first_struct(const std::vector<uint32_t>& words) {
    size_t offset = 5;
    while ((words[offset] & 0xFFFF) != 30) offset += words[offset] >> 16;
    return words[offset + 1];
}

}  // namespace

TEST_CASE("spirv errors say what the bytes are") {
    CHECK(contains(error_of({}), "empty"));
    CHECK(contains(error_of(words_of("#version 450\nvoid main() {}\n")), "GLSL source"));
    CHECK(
        contains(error_of(words_of("RWStructuredBuffer<float> b;\n[numthreads(1,1,1)]")), "look like text"));
    CHECK(contains(error_of(words_of("; SPIR-V\n; Version: 1.0\n")), "spirv-as"));
    CHECK(contains(error_of(words_of(std::string("\x7F"
                                                 "ELF\x02\x01\x01\0\0\0\0\0\0\0\0\0",
                                                 16))),
                   "ELF"));
    CHECK(contains(error_of({0x03022307, 0x00000100, 0, 0, 0}), "byte order"));
    CHECK(contains(error_of({1, 2, 3, 4, 5}), "0x07230203"));
    CHECK(contains(error_of({0x07230203, 0x00010000}), "too few"));
    CHECK(contains(error_of({0x07230203, 0x00010000, 0, 1, 0}), "no entry point"));
    CHECK(contains(error_of({0x07230203, 0x00010000, 0, 0xFFFFFFFF, 0}), "bound"));
    CHECK(contains(error_of({0x07230203, 0x00010000, 0, 1, 0, 0x00090011, 1}), "truncated"));
    CHECK(contains(error_of({0x07230203, 0x00010000, 0, 1, 0, 0x00000011}), "truncated"));

    const std::vector<uint32_t> words = assemble_valid(head() + basics + empty_main);
    CHECK(error_of(words).empty());
    CHECK(contains(error_of({words.begin(), words.end() - 1}), "no end"));
    std::vector<uint32_t> low_bound = words;
    low_bound[3] = 2;
    CHECK(contains(error_of(low_bound), "out of bound"));

    std::string fragment = head() + basics + empty_main;
    fragment.replace(fragment.find("GLCompute"), 9, "Fragment");
    CHECK(contains(error_of(assemble(fragment)), "'main' (Fragment)"));
}

TEST_CASE("spirv errors: types that contain themselves or explode end") {
    const auto with_block = [](const std::string& types) {
        return assemble(
            head() + "OpDecorate %buf DescriptorSet 0\nOpDecorate %buf Binding 0\n" + basics + types +
            "%ptr = OpTypePointer StorageBuffer %Block\n%buf = OpVariable %ptr StorageBuffer\n" + empty_main);
    };
    CHECK(contains(error_of(with_block("%Block = OpTypeStruct %Block\n")), "contains itself"));
    CHECK(contains(error_of(with_block("%array = OpTypeRuntimeArray %array\n%Block = OpTypeStruct %array\n")),
                   "contains itself"));
    std::string doubling = "%s0 = OpTypeStruct %uint %uint\n";
    for (int i = 1; i < 60; ++i) {
        const std::string inner = " %s" + std::to_string(i - 1);
        doubling += "%s" + std::to_string(i) + " = OpTypeStruct" + inner + inner + "\n";
    }
    CHECK(contains(error_of(with_block(doubling + "%Block = OpTypeStruct %s59\n")),
                   "more than any real shader"));
    // A long name that every member would repeat.
    std::string many = "%Inner = OpTypeStruct %uint\n%Block = OpTypeStruct";
    for (int i = 0; i < 10000; ++i) many += " %Inner";
    CHECK(error_of(with_block(many + "\n")).empty());
    std::vector<uint32_t> named = with_block(many + "\n");
    const size_t decorations =
        5 + 2 + 3 + 5 + 6;  // header, capability, memory model, entry point, execution mode
    const uint32_t inner = first_struct(named);
    std::vector<uint32_t> name(20000, 0x41414141);
    name.front() = static_cast<uint32_t>(name.size()) << 16 | 5;  // OpName
    name[1] = inner;
    name.back() = 0;
    named.insert(named.begin() + decorations, name.begin(), name.end());
    CHECK(contains(error_of(named), "more than any real shader"));
}

TEST_CASE("spirv garbage: mutated modules reflect or throw, and never do anything else") {
    const std::vector<uint32_t> seed =
        assemble_valid(head("OpCapability VariablePointersStorageBuffer\n", "LocalSize 8 4 2") + R"(
        OpName %a "a"
        OpDecorate %a DescriptorSet 0
        OpDecorate %a Binding 0
        OpDecorate %Block Block
        OpMemberDecorate %Block 0 Offset 0
        OpMemberDecorate %Block 1 Offset 4
        OpDecorate %uints ArrayStride 4
        OpDecorate %n SpecId 0
        OpDecorate %size BuiltIn WorkgroupSize
    )" + basics + R"(
        %v3 = OpTypeVector %uint 3
        %u0 = OpConstant %uint 0
        %n = OpSpecConstant %uint 4
        %size = OpSpecConstantComposite %v3 %n %n %n
        %uints = OpTypeArray %uint %n
        %Block = OpTypeStruct %uint %uints
        %ptr_Block = OpTypePointer StorageBuffer %Block
        %ptr = OpTypePointer StorageBuffer %uint
        %a = OpVariable %ptr_Block StorageBuffer
        %f_type = OpTypeFunction %void %ptr
        %f = OpFunction %void None %f_type
        %p = OpFunctionParameter %ptr
        %f_label = OpLabel
        %x = OpLoad %uint %p
        OpStore %p %x
        OpReturn
        OpFunctionEnd
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %q = OpAccessChain %ptr %a %u0
        %r = OpFunctionCall %void %f %q
        OpReturn
        OpFunctionEnd
    )");
    std::mt19937 random(20240607);
    int reflected = 0;
    int refused = 0;
    for (int round = 0; round < 20000; ++round) {
        std::vector<uint32_t> words = seed;
        for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
            uint32_t& word = words[random() % words.size()];
            switch (random() % 4) {
            case 0: word ^= 1u << random() % 32; break;
            case 1: word = static_cast<uint32_t>(random()); break;
            case 2: word = static_cast<uint32_t>(random()) % seed[3]; break;
            default: word = words[random() % words.size()]; break;
            }
        }
        if (random() % 8 == 0) words.resize(random() % words.size());
        words.shrink_to_fit();
        try {
            const ShaderInfo info = reflect(words);
            (void)reach(words);
            (void)invocation_use(words);
            const std::vector<uint32_t> lower = lowered(words, true);
            const std::vector<uint32_t>& code = lower.empty() ? words : lower;
            (void)clamped(code);
            (void)guarded_atomics(code);
            try {
                (void)folded(words, "main", {0, 2, 100}, info.local_size);
            } catch (const Error& error) {
                if (error.kind() != ErrorKind::unimplemented) throw;
            }
            ++reflected;
        } catch (const Error& error) {
            ++refused;
            if (error.kind() != ErrorKind::invalid_argument) FAIL(error.what());
        }
    }
    CHECK(reflected > 1000);
    CHECK(refused > 1000);
}
