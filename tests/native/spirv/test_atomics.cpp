// Which features the atomics of a shader need.
#include "spirv/spirv_text.hpp"

using namespace kp;
using namespace spirv_text;

namespace {

// A shader with a buffer, shared memory and an image of each type, and `body` in its main function.
ShaderInfo with_body(const std::string& body) {
    return reflect(assemble_valid(head(R"(
        OpCapability Int64
        OpCapability Float64
        OpCapability Int64Atomics
        OpCapability AtomicFloat32AddEXT
        OpCapability AtomicFloat64AddEXT
        OpCapability AtomicFloat32MinMaxEXT
        OpExtension "SPV_EXT_shader_atomic_float_add"
        OpExtension "SPV_EXT_shader_atomic_float_min_max")") +
                                  R"(
        OpDecorate %block Block
        OpMemberDecorate %block 0 Offset 0
        OpMemberDecorate %block 1 Offset 8
        OpMemberDecorate %block 2 Offset 16
        OpMemberDecorate %block 3 Offset 24
        OpDecorate %buffer DescriptorSet 0
        OpDecorate %buffer Binding 0
        OpDecorate %image DescriptorSet 0
        OpDecorate %image Binding 1
    )" + basics + R"(
        %ulong = OpTypeInt 64 0
        %double = OpTypeFloat 64
        %u0 = OpConstant %uint 0
        %u1 = OpConstant %uint 1
        %u2 = OpConstant %uint 2
        %u3 = OpConstant %uint 3
        %l1 = OpConstant %ulong 1
        %f1 = OpConstant %float 1
        %d1 = OpConstant %double 1
        %block = OpTypeStruct %uint %ulong %float %double
        %to_block = OpTypePointer StorageBuffer %block
        %buffer = OpVariable %to_block StorageBuffer
        %to_uint = OpTypePointer StorageBuffer %uint
        %to_ulong = OpTypePointer StorageBuffer %ulong
        %to_float = OpTypePointer StorageBuffer %float
        %to_double = OpTypePointer StorageBuffer %double
        %shared_ulong = OpTypePointer Workgroup %ulong
        %shared_float = OpTypePointer Workgroup %float
        %sl = OpVariable %shared_ulong Workgroup
        %sf = OpVariable %shared_float Workgroup
        %image_type = OpTypeImage %float 2D 0 0 0 2 R32f
        %to_image = OpTypePointer UniformConstant %image_type
        %image = OpVariable %to_image UniformConstant
        %texel = OpTypePointer Image %float
        %uint2 = OpTypeVector %uint 2
        %origin = OpConstantComposite %uint2 %u0 %u0
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %bu = OpAccessChain %to_uint %buffer %u0
        %bl = OpAccessChain %to_ulong %buffer %u1
        %bf = OpAccessChain %to_float %buffer %u2
        %bd = OpAccessChain %to_double %buffer %u3
        %it = OpImageTexelPointer %texel %image %origin %u0
    )" + body + "\nOpReturn\nOpFunctionEnd\n"));
}

std::vector<std::string> features(const std::string& body) { return with_body(body).atomic_features; }

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("plain atomics need nothing") {
    CHECK(features("%x = OpAtomicIAdd %uint %bu %u1 %u0 %u1").empty());
    CHECK(features("").empty());
}

TEST_CASE("64-bit integers, by where they are") {
    CHECK(features("%x = OpAtomicIAdd %ulong %bl %u1 %u0 %l1") == Names{"shaderBufferInt64Atomics"});
    CHECK(features("%x = OpAtomicUMax %ulong %sl %u2 %u0 %l1") == Names{"shaderSharedInt64Atomics"});
    CHECK(features("OpAtomicStore %sl %u2 %u0 %l1") == Names{"shaderSharedInt64Atomics"});
}

TEST_CASE("floats, by what is done to them and where") {
    CHECK(features("%x = OpAtomicFAddEXT %float %bf %u1 %u0 %f1") == Names{"shaderBufferFloat32AtomicAdd"});
    CHECK(features("%x = OpAtomicFAddEXT %float %sf %u2 %u0 %f1") == Names{"shaderSharedFloat32AtomicAdd"});
    CHECK(features("%x = OpAtomicFAddEXT %float %it %u1 %u0 %f1") == Names{"shaderImageFloat32AtomicAdd"});
    CHECK(features("%x = OpAtomicFAddEXT %double %bd %u1 %u0 %d1") == Names{"shaderBufferFloat64AtomicAdd"});
    CHECK(features(
              "%x = OpAtomicFMinEXT %float %sf %u2 %u0 %f1\n%y = OpAtomicFMaxEXT %float %sf %u2 %u0 %f1") ==
          Names{"shaderSharedFloat32AtomicMinMax"});
    CHECK(features("%x = OpAtomicExchange %float %bf %u1 %u0 %f1\nOpAtomicStore %sf %u2 %u0 %x") ==
          Names{"shaderBufferFloat32Atomics", "shaderSharedFloat32Atomics"});
}
