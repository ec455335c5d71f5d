// Valid code that some drivers do not take, or give another meaning, in the way that all of them take.
#include "spirv/lower.hpp"
#include "spirv/spirv_text.hpp"

using namespace kp;
using namespace spirv_text;

namespace {

std::string text_of(const std::vector<uint32_t>& words) {
    std::string text;
    const spvtools::SpirvTools tools(SPV_ENV_UNIVERSAL_1_3);
    CHECK(tools.Validate(words));
    CHECK(tools.Disassemble(words, &text, SPV_BINARY_TO_TEXT_OPTION_NO_HEADER));
    return text;
}

std::vector<uint32_t> remainder_of(const std::string& operation, const std::string& types) {
    return assemble_valid(head("OpCapability Int64") + basics + types + R"(
        %a = OpConstantNull %t
        %b = OpUndef %t
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %r = )" + operation +
                          R"( %t %a %b
        OpReturn
        OpFunctionEnd
    )");
}

}  // namespace

TEST_CASE("remainders of signed ints are divisions") {
    const std::string scalar = "%t = OpTypeInt 32 1\n", wide = "%t = OpTypeInt 64 1\n";
    const std::string pair = "%i = OpTypeInt 32 1\n%t = OpTypeVector %i 2\n";
    for (const std::string& types : {scalar, wide, pair})
        for (const std::string operation : {"OpSRem", "OpSMod"}) {
            const std::string text = text_of(lowered(remainder_of(operation, types), false));
            CAPTURE(text);
            CHECK(!contains(text, operation));
            CHECK(contains(text, "OpSDiv"));
            CHECK(contains(text, "OpShiftRightArithmetic") == (operation == "OpSMod"));
        }
}

TEST_CASE("remainders of specialization constants are divisions of them") {
    const auto module = [](const std::string& operation) {
        return assemble_valid(head() + basics + R"(
            %i = OpTypeInt 32 1
            %t = OpTypeVector %i 2
            %a = OpSpecConstant %i -7
            %three = OpConstant %i 3
            %r = OpSpecConstantOp %i )" +
                              operation + R"( %a %three
            %pair = OpSpecConstantComposite %t %a %r
            %s = OpSpecConstantOp %t )" +
                              operation + R"( %pair %pair
            %main = OpFunction %void None %fn
            %entry = OpLabel
            %u = OpIAdd %t %s %s
            OpReturn
            OpFunctionEnd
        )");
    };
    for (const std::string operation : {"SRem", "SMod"}) {
        const std::string text = text_of(lowered(module(operation), false));
        CAPTURE(text);
        CHECK(!contains(text, operation));
        CHECK(contains(text, " SDiv "));
        CHECK(contains(text, "ShiftRightArithmetic") == (operation == "SMod"));
    }
    CHECK(lowered(module("IMul"), false).empty());
}

TEST_CASE("a module without such code stays as it is") {
    CHECK(lowered(remainder_of("OpUMod", "%t = OpTypeVector %uint 2\n"), false).empty());
}
