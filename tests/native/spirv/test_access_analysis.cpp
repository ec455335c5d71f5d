// What the reflection says about reads and writes.
#include "spirv/spirv_text.hpp"

using namespace kp;
using namespace spirv_text;

namespace {

// Storage buffers %a to %d of uints at bindings 0 to 3, as pointers %pa to %pd to their first elements inside
// main.
std::string buffers(const std::string& extra_decorations, const std::string& extra_globals) {
    std::string text;
    for (const char name : std::string("abcd"))
        text += std::string("OpName %") + name + " \"" + name + "\"\n";
    text += extra_decorations;
    text += R"(
        OpDecorate %uints ArrayStride 4
        OpMemberDecorate %Block 0 Offset 0
        OpDecorate %Block Block
    )";
    for (int i = 0; i < 4; ++i) {
        const std::string name(1, static_cast<char>('a' + i));
        text += "OpDecorate %" + name + " DescriptorSet 0\nOpDecorate %" + name + " Binding " +
                std::to_string(i) + "\n";
    }
    text += R"(
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %bool = OpTypeBool
        %uint = OpTypeInt 32 0
        %float = OpTypeFloat 32
        %u0 = OpConstant %uint 0
        %u1 = OpConstant %uint 1
        %u4 = OpConstant %uint 4
        %true = OpConstantTrue %bool
        %uints = OpTypeRuntimeArray %uint
        %Block = OpTypeStruct %uints
        %ptr_Block = OpTypePointer StorageBuffer %Block
        %ptr = OpTypePointer StorageBuffer %uint
    )";
    for (const char name : std::string("abcd"))
        text += std::string("%") + name + " = OpVariable %ptr_Block StorageBuffer\n";
    return text + extra_globals;
}

struct Source {
    std::string capabilities, decorations, globals, functions, body;
};

std::string module_text(const Source& source) {
    std::string text = head(source.capabilities) + buffers(source.decorations, source.globals) +
                       source.functions + "%main = OpFunction %void None %fn\n%entry = OpLabel\n";
    for (const char name : std::string("abcd")) {
        text += std::string("%p") + name + " = OpAccessChain %ptr %" + name + " %u0 %u0\n";
    }
    return text + source.body + "\nOpReturn\nOpFunctionEnd\n";
}

ShaderInfo reflect_source(const Source& source) { return reflect(assemble_valid(module_text(source))); }

// "read write none none" for %a to %d.
std::string all(const ShaderInfo& info) {
    return access(info, "a") + " " + access(info, "b") + " " + access(info, "c") + " " + access(info, "d");
}

std::string all_of(const std::string& body) { return all(reflect_source({.body = body})); }

const std::string variable_pointers = "OpCapability VariablePointers\n";

}  // namespace

TEST_CASE("spirv access: loads, stores and neither") {
    CHECK(all_of("") == "none none none none");
    CHECK(all_of("%x = OpLoad %uint %pa\nOpStore %pb %x") == "read write none none");
    CHECK(all_of("%x = OpLoad %uint %pa\nOpStore %pa %x") == "read_write none none none");
    CHECK(all_of("%n = OpArrayLength %uint %a 0\nOpStore %pb %n") == "none write none none");
    CHECK(all_of("OpCopyMemory %pc %pd") == "none none write read");
    CHECK(all_of("%p = OpCopyObject %ptr %pa\n%q = OpCopyObject %ptr %p\nOpStore %q %u1") ==
          "write none none none");
    CHECK(all_of("%p = OpInBoundsAccessChain %ptr %c %u0 %u4\n%x = OpLoad %uint %p") ==
          "none none read none");
}

TEST_CASE("spirv access: atomics") {
    CHECK(all_of("%x = OpAtomicLoad %uint %pa %u1 %u0\nOpAtomicStore %pb %u1 %u0 %x\n"
                 "%y = OpAtomicIAdd %uint %pc %u1 %u0 %x\n"
                 "%z = OpAtomicCompareExchange %uint %pd %u1 %u0 %u0 %x %y") ==
          "read write read_write read_write");
    const ShaderInfo info =
        reflect_source({.body = "%x = OpAtomicIIncrement %uint %pa %u1 %u0\nOpStore %pb %x"});
    CHECK(binding(info, "a").atomic);
    CHECK_FALSE(binding(info, "b").atomic);
}

TEST_CASE("spirv access: phi, select and variable pointers follow every candidate") {
    const std::string phi = R"(
        OpSelectionMerge %merge None
        OpBranchConditional %true %left %right
        %left = OpLabel
        OpBranch %merge
        %right = OpLabel
        OpBranch %merge
        %merge = OpLabel
        %p = OpPhi %ptr %pa %left %pb %right
        OpStore %p %u1
        %q = OpSelect %ptr %true %pc %pd
        %x = OpLoad %uint %q
    )";
    CHECK(all(reflect_source({.capabilities = variable_pointers, .body = phi})) == "write write read read");
}

TEST_CASE("spirv access: a phi in a loop that takes its own successor") {
    const std::string loop = R"(
        OpBranch %head
        %head = OpLabel
        %p = OpPhi %ptr %pa %entry %next %continue
        %x = OpLoad %uint %p
        OpLoopMerge %done %continue None
        OpBranchConditional %true %continue %done
        %continue = OpLabel
        %next = OpPtrAccessChain %ptr %p %u1
        OpBranch %head
        %done = OpLabel
        OpStore %pb %x
    )";
    const Source source{
        .capabilities = variable_pointers, .decorations = "OpDecorate %ptr ArrayStride 4\n", .body = loop};
    CHECK(all(reflect_source(source)) == "read write none none");
}

TEST_CASE("spirv access: a pointer stored to memory counts as read and written") {
    const Source source{
        .capabilities = variable_pointers,
        .globals = "%ptr_ptr = OpTypePointer Private %ptr\n%slot = OpVariable %ptr_ptr Private\n",
        .body = "OpStore %slot %pa\n%p = OpLoad %ptr %slot\n%x = OpLoad %uint %p\nOpStore %pb %x"};
    CHECK(all(reflect_source(source)) == "read_write write none none");
}

TEST_CASE("spirv access: pointer parameters, per call site") {
    const std::string functions = R"(
        %take = OpFunction %void None %take_type
        %dst = OpFunctionParameter %ptr
        %src = OpFunctionParameter %ptr
        %take_label = OpLabel
        %value = OpLoad %uint %src
        OpStore %dst %value
        OpReturn
        OpFunctionEnd
        %pass = OpFunction %ptr None %pass_type
        %in = OpFunctionParameter %ptr
        %pass_label = OpLabel
        OpReturnValue %in
        OpFunctionEnd
        %unused = OpFunction %void None %fn
        %unused_label = OpLabel
        %unused_p = OpAccessChain %ptr %d %u0 %u0
        OpStore %unused_p %u1
        OpReturn
        OpFunctionEnd
    )";
    Source source{.capabilities = variable_pointers,
                  .globals =
                      "%take_type = OpTypeFunction %void %ptr %ptr\n%pass_type = OpTypeFunction %ptr %ptr\n",
                  .functions = functions};
    source.body = "%r = OpFunctionCall %void %take %pa %pb";
    CHECK(all(reflect_source(source)) == "write read none none");
    source.body = "%r = OpFunctionCall %void %take %pa %pb\n%s = OpFunctionCall %void %take %pb %pc";
    CHECK(all(reflect_source(source)) == "write read_write read none");
    source.body = "%r = OpFunctionCall %ptr %pass %pc\nOpStore %r %u1";
    CHECK(all(reflect_source(source)) == "none none write none");
    source.body = "%r = OpFunctionCall %void %unused";
    CHECK(all(reflect_source(source)) == "none none none write");
}

TEST_CASE("spirv access: recursion ends") {
    const Source source{.globals = "%f_type = OpTypeFunction %void %ptr %ptr\n",
                        .functions = R"(
        %f = OpFunction %void None %f_type
        %x = OpFunctionParameter %ptr
        %y = OpFunctionParameter %ptr
        %f_label = OpLabel
        OpStore %x %u1
        %again = OpFunctionCall %void %f %y %x
        OpReturn
        OpFunctionEnd
    )",
                        .body = "%r = OpFunctionCall %void %f %pa %pb"};
    // Not valid SPIR-V: shaders may not recurse. The second call swaps the parameters, so both are written.
    CHECK(all(reflect(assemble(module_text(source)))) == "write write none none");
}

TEST_CASE("spirv access: extended instructions write through pointers") {
    const std::string text = head() + R"(
        OpName %a "a"
        OpName %b "b"
        OpName %c "c"
        OpMemberDecorate %Block 0 Offset 0
        OpMemberDecorate %Ints 0 Offset 0
        OpDecorate %Block Block
        OpDecorate %Ints Block
        OpDecorate %a DescriptorSet 0
        OpDecorate %a Binding 0
        OpDecorate %b DescriptorSet 0
        OpDecorate %b Binding 1
        OpDecorate %c DescriptorSet 0
        OpDecorate %c Binding 2
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %float = OpTypeFloat 32
        %int = OpTypeInt 32 1
        %i0 = OpConstant %int 0
        %Block = OpTypeStruct %float
        %Ints = OpTypeStruct %int
        %ptr_Block = OpTypePointer StorageBuffer %Block
        %ptr_Ints = OpTypePointer StorageBuffer %Ints
        %ptr = OpTypePointer StorageBuffer %float
        %ptr_int = OpTypePointer StorageBuffer %int
        %a = OpVariable %ptr_Block StorageBuffer
        %b = OpVariable %ptr_Block StorageBuffer
        %c = OpVariable %ptr_Ints StorageBuffer
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %pa = OpAccessChain %ptr %a %i0
        %pb = OpAccessChain %ptr %b %i0
        %pc = OpAccessChain %ptr_int %c %i0
        %x = OpLoad %float %pa
        %fract = OpExtInst %float %glsl Modf %x %pb
        %mantissa = OpExtInst %float %glsl Frexp %x %pc
        OpReturn
        OpFunctionEnd
    )";
    std::string imported = text;
    imported.insert(imported.find("OpMemoryModel"), "%glsl = OpExtInstImport \"GLSL.std.450\"\n");
    const ShaderInfo info = reflect(assemble_valid(imported));
    CHECK(access(info, "a") == "read");
    CHECK(access(info, "b") == "write");
    CHECK(access(info, "c") == "write");
}

TEST_CASE("spirv access: variables of one binding are merged") {
    const Source source{.decorations = R"(
        OpName %alias "alias"
        OpDecorate %alias DescriptorSet 0
        OpDecorate %alias Binding 0
        OpDecorate %alias NonWritable
        OpDecorate %a NonWritable
        OpDecorate %c NonWritable
        OpDecorate %d NonReadable
    )",
                        .globals = "%alias = OpVariable %ptr_Block StorageBuffer\n",
                        .body = R"(
        %p = OpAccessChain %ptr %alias %u0 %u0
        %x = OpLoad %uint %p
        OpStore %pb %x
        OpStore %pd %x
    )"};
    const ShaderInfo info = reflect_source(source);
    REQUIRE(info.bindings.size() == 4);
    CHECK(info.bindings[0].instance_name == "a");  // the first of those that are used
    CHECK(info.bindings[0].access == Access::read);
    CHECK(info.bindings[0].readonly);
    CHECK_FALSE(info.bindings[1].readonly);
    CHECK(info.bindings[2].readonly);
    CHECK(info.bindings[2].access == Access::none);
    CHECK(info.bindings[3].writeonly);

    Source written = source;
    written.decorations.erase(written.decorations.find("OpDecorate %a NonWritable"),
                              std::string("OpDecorate %a NonWritable").size());
    written.body += "OpStore %pa %u1\n";
    const ShaderInfo both = reflect_source(written);
    CHECK(both.bindings[0].access == Access::read_write);
    CHECK_FALSE(both.bindings[0].readonly);
}

TEST_CASE("spirv access: an opcode that nobody knows counts as read and written") {
    std::vector<uint32_t> words =
        assemble_valid(module_text({.body = "%x = OpLoad %uint %pa\nOpStore %pb %x"}));
    // OpStore (62) becomes an opcode that no version of SPIR-V has.
    size_t offset = 5;
    while ((words[offset] & 0xFFFF) != 62) offset += words[offset] >> 16;
    words[offset] = (words[offset] & 0xFFFF0000u) | 0xFFF0u;
    CHECK(all(reflect(words)) == "read read_write none none");
}

TEST_CASE("spirv access: what is unknown keeps the shader's promises") {
    std::vector<uint32_t> words = assemble_valid(module_text(
        {.decorations = "OpDecorate %a NonWritable\n", .body = "%x = OpLoad %uint %pa\nOpStore %pb %x"}));
    size_t offset = 5;
    while ((words[offset] & 0xFFFF) != 61) offset += words[offset] >> 16;  // OpLoad
    words[offset] = (words[offset] & 0xFFFF0000u) | 0xFFF0u;
    CHECK(access(reflect(words), "a") == "read");
}

TEST_CASE("spirv access: images, through copies, parameters and texel pointers") {
    const std::string text =
        head("OpCapability SampledBuffer\nOpCapability ImageBuffer\nOpCapability ImageQuery\n") + R"(
        OpName %src "src"
        OpName %dst "dst"
        OpName %counters "counters"
        OpName %texture "texture"
        OpName %smp "smp"
        OpName %both "both"
        OpName %sized "sized"
        OpName %texels "texels"
        OpName %out_texels "out_texels"
        OpDecorate %src DescriptorSet 0
        OpDecorate %src Binding 0
        OpDecorate %dst DescriptorSet 0
        OpDecorate %dst Binding 1
        OpDecorate %dst NonReadable
        OpDecorate %counters DescriptorSet 0
        OpDecorate %counters Binding 2
        OpDecorate %texture DescriptorSet 1
        OpDecorate %texture Binding 0
        OpDecorate %smp DescriptorSet 1
        OpDecorate %smp Binding 1
        OpDecorate %both DescriptorSet 1
        OpDecorate %both Binding 2
        OpDecorate %sized DescriptorSet 2
        OpDecorate %sized Binding 0
        OpDecorate %texels DescriptorSet 2
        OpDecorate %texels Binding 1
        OpDecorate %out_texels DescriptorSet 2
        OpDecorate %out_texels Binding 2
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %uint = OpTypeInt 32 0
        %int = OpTypeInt 32 1
        %float = OpTypeFloat 32
        %v2 = OpTypeVector %float 2
        %v4 = OpTypeVector %float 4
        %i2 = OpTypeVector %int 2
        %i3 = OpTypeVector %int 3
        %u0 = OpConstant %uint 0
        %u1 = OpConstant %uint 1
        %f0 = OpConstant %float 0
        %i0 = OpConstant %int 0
        %p = OpConstantComposite %i2 %i0 %i0
        %uv = OpConstantComposite %v2 %f0 %f0
        %rgba = OpTypeImage %float 2D 0 0 0 2 Rgba32f
        %r32ui = OpTypeImage %uint 2D 0 0 0 2 R32ui
        %volume = OpTypeImage %int 3D 0 0 0 2 R32i
        %tex = OpTypeImage %float 2D 0 0 0 1 Unknown
        %tex_buffer = OpTypeImage %float Buffer 0 0 0 1 Unknown
        %img_buffer = OpTypeImage %float Buffer 0 0 0 2 R32f
        %sampler = OpTypeSampler
        %sampled = OpTypeSampledImage %tex
        %sampled_buffer = OpTypeSampledImage %tex_buffer
        %u3 = OpConstant %uint 3
        %samplers = OpTypeArray %sampled %u3
        %ptr_rgba = OpTypePointer UniformConstant %rgba
        %ptr_r32ui = OpTypePointer UniformConstant %r32ui
        %ptr_volume = OpTypePointer UniformConstant %volume
        %ptr_tex = OpTypePointer UniformConstant %tex
        %ptr_sampler = OpTypePointer UniformConstant %sampler
        %ptr_sampled = OpTypePointer UniformConstant %sampled
        %ptr_samplers = OpTypePointer UniformConstant %samplers
        %ptr_sampled_buffer = OpTypePointer UniformConstant %sampled_buffer
        %ptr_img_buffer = OpTypePointer UniformConstant %img_buffer
        %ptr_texel = OpTypePointer Image %uint
        %src = OpVariable %ptr_rgba UniformConstant
        %dst = OpVariable %ptr_rgba UniformConstant
        %counters = OpVariable %ptr_r32ui UniformConstant
        %texture = OpVariable %ptr_tex UniformConstant
        %smp = OpVariable %ptr_sampler UniformConstant
        %both = OpVariable %ptr_samplers UniformConstant
        %sized = OpVariable %ptr_volume UniformConstant
        %texels = OpVariable %ptr_sampled_buffer UniformConstant
        %out_texels = OpVariable %ptr_img_buffer UniformConstant
        %get_type = OpTypeFunction %v4 %ptr_rgba
        %get = OpFunction %v4 None %get_type
        %from = OpFunctionParameter %ptr_rgba
        %get_label = OpLabel
        %from_image = OpLoad %rgba %from
        %texel = OpImageRead %v4 %from_image %p
        OpReturnValue %texel
        OpFunctionEnd
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %x = OpFunctionCall %v4 %get %src
        %dst_image = OpLoad %rgba %dst
        %dst_copy = OpCopyObject %rgba %dst_image
        OpImageWrite %dst_copy %p %x
        %counter = OpImageTexelPointer %ptr_texel %counters %p %u0
        %old = OpAtomicIAdd %uint %counter %u1 %u0 %u1
        %t = OpLoad %tex %texture
        %s = OpLoad %sampler %smp
        %ts = OpSampledImage %sampled %t %s
        %y = OpImageSampleExplicitLod %v4 %ts %uv Lod %f0
        %one = OpAccessChain %ptr_sampled %both %u1
        %one_image = OpLoad %sampled %one
        %z = OpImageSampleExplicitLod %v4 %one_image %uv Lod %f0
        %sized_image = OpLoad %volume %sized
        %size = OpImageQuerySize %i3 %sized_image
        %texels_image = OpLoad %sampled_buffer %texels
        %texels_only = OpImage %tex_buffer %texels_image
        %w = OpImageFetch %v4 %texels_only %i0
        %out_image = OpLoad %img_buffer %out_texels
        OpImageWrite %out_image %i0 %w
        OpReturn
        OpFunctionEnd
    )";
    const ShaderInfo info = reflect(assemble_valid(text));
    const auto describe = [&](const char* name) {
        const BindingInfo& b = binding(info, name);
        return std::string(to_string(b.kind)) + ": " + to_string(b.access);
    };
    CHECK(describe("src") == "storage image: read");
    CHECK(describe("dst") == "storage image: write");
    CHECK(describe("counters") == "storage image: read_write");
    CHECK(describe("texture") == "sampled image: read");
    CHECK(describe("smp") == "sampler: read");
    CHECK(describe("both") == "combined image sampler: read");
    CHECK(describe("sized") == "storage image: none");
    CHECK(describe("texels") == "uniform texel buffer: read");
    CHECK(describe("out_texels") == "storage texel buffer: write");
    CHECK(binding(info, "counters").atomic);
    CHECK(binding(info, "counters").image_scalar == ScalarKind::unsigned_int);
    CHECK(binding(info, "counters").image_format == 33);  // R32ui
    CHECK(binding(info, "dst").writeonly);
    CHECK(binding(info, "both").count == 3);
    CHECK(binding(info, "sized").image_dim == 2);  // 3D
    CHECK(binding(info, "texels").image_dim == 5);
}

TEST_CASE("spirv access: buffer references") {
    const auto text = [](const std::string& body) {
        return head("OpCapability PhysicalStorageBufferAddresses\nOpExtension "
                    "\"SPV_KHR_physical_storage_buffer\"\n",
                    "LocalSize 1 1 1", "PhysicalStorageBuffer64") +
               R"(
        OpName %Node "Node"
        OpName %pc "pc"
        OpName %Push "Push"
        OpMemberName %Node 0 "next"
        OpMemberDecorate %Push 0 Offset 0
        OpDecorate %Push Block
        OpMemberDecorate %Node 0 Offset 0
        OpMemberDecorate %Node 1 Offset 8
        OpDecorate %Node Block
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %int = OpTypeInt 32 1
        %float = OpTypeFloat 32
        %i0 = OpConstant %int 0
        %i1 = OpConstant %int 1
        %f1 = OpConstant %float 1
        OpTypeForwardPointer %ptr_Node PhysicalStorageBuffer
        %Node = OpTypeStruct %ptr_Node %float
        %ptr_Node = OpTypePointer PhysicalStorageBuffer %Node
        %Push = OpTypeStruct %ptr_Node
        %ptr_Push = OpTypePointer PushConstant %Push
        %ptr_member = OpTypePointer PushConstant %ptr_Node
        %ptr_float = OpTypePointer PhysicalStorageBuffer %float
        %pc = OpVariable %ptr_Push PushConstant
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %member = OpAccessChain %ptr_member %pc %i0
        %node = OpLoad %ptr_Node %member
        %v = OpAccessChain %ptr_float %node %i1
    )" + body + "\nOpReturn\nOpFunctionEnd\n";
    };
    // Holding an address is not going through it.
    const ShaderInfo none = reflect(assemble_valid(text("")));
    CHECK_FALSE(none.physical_storage_buffer);
    CHECK_FALSE(none.physical_storage_writes);
    const ShaderInfo reads = reflect(assemble_valid(text("%x = OpLoad %float %v Aligned 4")));
    CHECK(reads.physical_storage_buffer);
    CHECK_FALSE(reads.physical_storage_writes);
    const ShaderInfo writes = reflect(assemble_valid(text("OpStore %v %f1 Aligned 4")));
    CHECK(writes.physical_storage_buffer);
    CHECK(writes.physical_storage_writes);
    // The list's node refers to its own type.
    REQUIRE(writes.push_constants);
    REQUIRE(writes.push_constants->layout.members.size() == 1);
    const TypeLayout& pointer = writes.push_constants->layout.members[0];
    CHECK(pointer.physical_pointer);
    CHECK(pointer.type_name == "Node");
    CHECK(pointer.size == 8);
    CHECK(writes.push_constants->size == 8);
}
