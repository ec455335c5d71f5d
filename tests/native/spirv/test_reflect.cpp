// Layouts, constants, sizes, entry points. Reads and writes are in spirv/test_access_analysis.cpp.
#include "spirv/spirv_text.hpp"

using namespace kp;
using namespace spirv_text;

namespace {

const TypeLayout& member(const TypeLayout& layout, const std::string& name) {
    for (const TypeLayout& m : layout.members)
        if (m.name == name) return m;
    FAIL("no member " << name);
    return layout;
}

}  // namespace

TEST_CASE("spirv layout: explicit offsets and strides, nested structs, matrices, narrow types") {
    const std::string text =
        head("OpCapability Int64\nOpCapability Float64\nOpCapability Int8\nOpCapability Float16\n"
             "OpCapability StorageBuffer8BitAccess\nOpCapability StorageBuffer16BitAccess\n"
             "OpExtension \"SPV_KHR_8bit_storage\"\nOpExtension \"SPV_KHR_16bit_storage\"\n") +
        R"(
        OpName %buf "buf"
        OpName %Outer "Outer"
        OpName %Inner "Inner"
        OpMemberName %Outer 0 "byte"
        OpMemberName %Outer 1 "half3"
        OpMemberName %Outer 2 "wide"
        OpMemberName %Outer 3 "real"
        OpMemberName %Outer 4 "columns"
        OpMemberName %Outer 5 "rows"
        OpMemberName %Outer 6 "grid"
        OpMemberName %Outer 7 "inners"
        OpMemberName %Inner 0 "v"
        OpMemberName %Inner 1 "s"
        OpDecorate %buf DescriptorSet 2
        OpDecorate %buf Binding 7
        OpDecorate %Outer Block
        OpMemberDecorate %Outer 0 Offset 0
        OpMemberDecorate %Outer 1 Offset 8
        OpMemberDecorate %Outer 2 Offset 16
        OpMemberDecorate %Outer 3 Offset 24
        OpMemberDecorate %Outer 4 Offset 32
        OpMemberDecorate %Outer 4 ColMajor
        OpMemberDecorate %Outer 4 MatrixStride 16
        OpMemberDecorate %Outer 5 Offset 80
        OpMemberDecorate %Outer 5 RowMajor
        OpMemberDecorate %Outer 5 MatrixStride 8
        OpMemberDecorate %Outer 6 Offset 112
        OpMemberDecorate %Outer 7 Offset 160
        OpMemberDecorate %Inner 0 Offset 0
        OpMemberDecorate %Inner 1 Offset 12
        OpDecorate %three ArrayStride 4
        OpDecorate %grid ArrayStride 12
        OpDecorate %inners ArrayStride 16
    )" + basics +
        R"(
        %byte = OpTypeInt 8 0
        %half = OpTypeFloat 16
        %long = OpTypeInt 64 1
        %double = OpTypeFloat 64
        %half3 = OpTypeVector %half 3
        %v2 = OpTypeVector %float 2
        %v3 = OpTypeVector %float 3
        %v4 = OpTypeVector %float 4
        %mat3 = OpTypeMatrix %v3 3
        %mat2x4 = OpTypeMatrix %v4 2
        %u3 = OpConstant %uint 3
        %u4 = OpConstant %uint 4
        %three = OpTypeArray %float %u3
        %grid = OpTypeArray %three %u4
        %Inner = OpTypeStruct %v3 %float
        %inners = OpTypeRuntimeArray %Inner
        %Outer = OpTypeStruct %byte %half3 %long %double %mat3 %mat2x4 %grid %inners
        %ptr = OpTypePointer StorageBuffer %Outer
        %buf = OpVariable %ptr StorageBuffer
    )" + empty_main;
    const ShaderInfo info = reflect(assemble_valid(text));
    REQUIRE(info.bindings.size() == 1);
    const BindingInfo& buf = info.bindings[0];
    CHECK(buf.set == 2);
    CHECK(buf.binding == 7);
    CHECK(buf.kind == DescriptorKind::storage_buffer);
    CHECK(buf.instance_name == "buf");
    CHECK(buf.block_name == "Outer");
    CHECK(buf.access == Access::none);

    CHECK(member(buf.layout, "byte").width == 8);
    CHECK(member(buf.layout, "byte").size == 1);
    CHECK(member(buf.layout, "half3").rows == 3);
    CHECK(member(buf.layout, "half3").size == 6);
    CHECK(member(buf.layout, "half3").scalar == ScalarKind::floating);
    CHECK(member(buf.layout, "wide").scalar == ScalarKind::signed_int);
    CHECK(member(buf.layout, "wide").width == 64);
    CHECK(member(buf.layout, "real").size == 8);

    const TypeLayout& columns = member(buf.layout, "columns");
    CHECK(columns.columns == 3);
    CHECK(columns.rows == 3);
    CHECK(columns.matrix_stride == 16);
    CHECK_FALSE(columns.row_major);
    CHECK(columns.size == 44);
    const TypeLayout& rows = member(buf.layout, "rows");
    CHECK(rows.row_major);
    CHECK(rows.columns == 2);
    CHECK(rows.rows == 4);
    CHECK(rows.size == 32);

    const TypeLayout& grid = member(buf.layout, "grid");
    CHECK(grid.array == std::vector<uint32_t>{4, 3});
    CHECK(grid.array_strides == std::vector<uint32_t>{12, 4});
    CHECK(grid.offset == 112);
    CHECK(grid.size == 48);

    const TypeLayout& inners = member(buf.layout, "inners");
    CHECK(inners.array == std::vector<uint32_t>{0});
    CHECK(inners.array_strides == std::vector<uint32_t>{16});
    CHECK(inners.type_name == "Inner");
    CHECK(inners.size == 0);
    CHECK(member(inners, "s").offset == 12);
    CHECK(buf.layout.size == 160);
}

TEST_CASE("spirv bindings: SPIR-V 1.0 buffer blocks, uniform blocks, arrays of descriptors") {
    const std::string text =
        head("OpCapability RuntimeDescriptorArray\nOpExtension \"SPV_EXT_descriptor_indexing\"\n") + R"(
        OpName %old "old"
        OpName %Params "type.Params"
        OpMemberName %Old 0 "@data"
        OpName %many "many"
        OpName %sized "sized"
        OpDecorate %old DescriptorSet 0
        OpDecorate %old Binding 0
        OpDecorate %params DescriptorSet 0
        OpDecorate %params Binding 1
        OpDecorate %many DescriptorSet 0
        OpDecorate %many Binding 2
        OpDecorate %sized DescriptorSet 0
        OpDecorate %sized Binding 3
        OpDecorate %Old BufferBlock
        OpMemberDecorate %Old 0 Offset 0
        OpMemberDecorate %Old 0 NonWritable
        OpDecorate %Params Block
        OpMemberDecorate %Params 0 Offset 0
        OpDecorate %floats ArrayStride 4
        OpDecorate %count SpecId 3
    )" + basics +
        R"(
        %count = OpSpecConstant %uint 5
        %u2 = OpConstant %uint 2
        %double_count = OpSpecConstantOp %uint IMul %count %u2
        %floats = OpTypeRuntimeArray %float
        %Old = OpTypeStruct %floats
        %Params = OpTypeStruct %uint
        %many_old = OpTypeRuntimeArray %Old
        %sized_old = OpTypeArray %Old %double_count
        %ptr_old = OpTypePointer Uniform %Old
        %ptr_many = OpTypePointer Uniform %many_old
        %ptr_sized = OpTypePointer Uniform %sized_old
        %ptr_params = OpTypePointer Uniform %Params
        %old = OpVariable %ptr_old Uniform
        %params = OpVariable %ptr_params Uniform
        %many = OpVariable %ptr_many Uniform
        %sized = OpVariable %ptr_sized Uniform
    )" + empty_main;
    const ShaderInfo info = reflect(assemble_valid(text));
    REQUIRE(info.bindings.size() == 4);
    CHECK(info.bindings[0].kind == DescriptorKind::storage_buffer);
    CHECK(info.bindings[0].readonly);
    CHECK(info.bindings[0].layout.members[0].name == "data");
    CHECK(info.bindings[0].count == 1);
    CHECK(info.bindings[1].kind == DescriptorKind::uniform_buffer);
    CHECK(info.bindings[1].block_name == "Params");
    CHECK(info.bindings[1].instance_name.empty());
    CHECK(info.bindings[2].count == 0);
    CHECK(info.bindings[3].count == 10);
    REQUIRE(info.spec_constants.size() == 1);
    CHECK(info.spec_constants[0].id == 3);
}

TEST_CASE("spirv bindings: one binding, two kinds") {
    const auto text = [](bool used) {
        return head() + R"(
        OpName %a "a"
        OpName %u "u"
        OpDecorate %a DescriptorSet 0
        OpDecorate %a Binding 4
        OpDecorate %u DescriptorSet 0
        OpDecorate %u Binding 4
        OpDecorate %Block Block
        OpMemberDecorate %Block 0 Offset 0
    )" + basics +
               R"(
        %u0 = OpConstant %uint 0
        %Block = OpTypeStruct %uint
        %ptr_s = OpTypePointer StorageBuffer %Block
        %ptr_u = OpTypePointer Uniform %Block
        %ptr = OpTypePointer Uniform %uint
        %a = OpVariable %ptr_s StorageBuffer
        %u = OpVariable %ptr_u Uniform
        %main = OpFunction %void None %fn
        %entry = OpLabel
    )" + (used ? "%p = OpAccessChain %ptr %u %u0\n%x = OpLoad %uint %p\n" : "") +
               "OpReturn\nOpFunctionEnd\n";
    };
    // What this entry point uses decides; the other variable may be another entry point's.
    const ShaderInfo info = reflect(assemble_valid(text(true)));
    REQUIRE(info.bindings.size() == 1);
    CHECK(info.bindings[0].instance_name == "u");
    CHECK(info.bindings[0].kind == DescriptorKind::uniform_buffer);
    const std::string message = error_of(assemble_valid(text(false)));
    CHECK(contains(message, "set 0, binding 4"));
    CHECK(contains(message, "storage buffer ('a')"));
    CHECK(contains(message, "uniform buffer ('u')"));
}

TEST_CASE("spirv bindings: a texture and a sampler on one binding are one combined descriptor") {
    const std::string text = head() + R"(
        OpName %s "s"
        OpName %t "t"
        OpDecorate %s DescriptorSet 0
        OpDecorate %s Binding 0
        OpDecorate %t DescriptorSet 0
        OpDecorate %t Binding 0
    )" + basics + R"(
        %image = OpTypeImage %float 2D 0 1 0 1 Unknown
        %sampler = OpTypeSampler
        %ptr_s = OpTypePointer UniformConstant %sampler
        %ptr_t = OpTypePointer UniformConstant %image
        %s = OpVariable %ptr_s UniformConstant
        %t = OpVariable %ptr_t UniformConstant
    )" + empty_main;
    const ShaderInfo info = reflect(assemble_valid(text));
    REQUIRE(info.bindings.size() == 1);
    CHECK(info.bindings[0].kind == DescriptorKind::combined_image_sampler);
    CHECK(info.bindings[0].instance_name == "t");
    CHECK(info.bindings[0].image_arrayed);
}

TEST_CASE("spirv constants: specialization constants of every type") {
    const std::string text =
        head("OpCapability Int64\nOpCapability Int8\nOpCapability Float64\nOpCapability Int16\n") + R"(
        OpName %flag "flag"
        OpName %scale "scale"
        OpName %named "size"
        OpDecorate %scale SpecId 9
        OpDecorate %flag SpecId 2
        OpDecorate %off SpecId 3
        OpDecorate %tiny SpecId 4
        OpDecorate %big SpecId 5
        OpDecorate %precise SpecId 6
        OpDecorate %unnamed SpecId 7
    )" + basics +
        R"(
        %byte = OpTypeInt 8 1
        %short = OpTypeInt 16 0
        %long = OpTypeInt 64 0
        %double = OpTypeFloat 64
        %scale = OpSpecConstant %float 1.5
        %flag = OpSpecConstantTrue %bool
        %off = OpSpecConstantFalse %bool
        %tiny = OpSpecConstant %byte -2
        %big = OpSpecConstant %long 0x123456789abcdef0
        %precise = OpSpecConstant %double 1
        %unnamed = OpSpecConstant %uint 12
        %named = OpSpecConstantOp %short UConvert %unnamed
        %narrowed = OpSpecConstantOp %float FConvert %precise
    )" + empty_main;
    const ShaderInfo info = reflect(assemble_valid(text, SPV_ENV_UNIVERSAL_1_5));
    REQUIRE(info.spec_constants.size() == 7);
    const auto describe = [&](size_t i) {
        const SpecConstantInfo& c = info.spec_constants[i];
        return std::to_string(c.id) + " " + c.name + " " + std::to_string(c.width) + " " +
               std::to_string(c.default_bits);
    };
    CHECK(describe(0) == "2 flag 32 1");
    CHECK(info.spec_constants[0].scalar == ScalarKind::boolean);
    CHECK(describe(1) == "3  32 0");
    CHECK(describe(2) == "4  8 254");
    CHECK(info.spec_constants[2].scalar == ScalarKind::signed_int);
    CHECK(info.spec_constants[3].default_bits == 0x123456789abcdef0u);
    CHECK(info.spec_constants[3].width == 64);
    CHECK(info.spec_constants[4].default_bits == 0x3ff0000000000000u);
    CHECK(info.spec_constants[4].scalar == ScalarKind::floating);
    CHECK(describe(5) == "7 size 32 12");  // named by what converts it
    CHECK(describe(6) == "9 scale 32 " + std::to_string(0x3fc00000));
}

TEST_CASE("spirv constants: expressions of constants give array lengths") {
    const auto length = [](const std::string& expression) {
        const std::string text = head("OpCapability Int16\n") + R"(
        OpName %buf "buf"
        OpDecorate %buf DescriptorSet 0
        OpDecorate %buf Binding 0
        OpDecorate %Block Block
        OpMemberDecorate %Block 0 Offset 0
        OpDecorate %floats ArrayStride 4
        OpDecorate %n SpecId 0
        OpDecorate %m SpecId 1
        OpDecorate %yes SpecId 2
    )" + basics + R"(
        %int = OpTypeInt 32 1
        %short = OpTypeInt 16 1
        %v3 = OpTypeVector %uint 3
        %n = OpSpecConstant %uint 12
        %m = OpSpecConstant %int -5
        %yes = OpSpecConstantTrue %bool
        %u0 = OpConstant %uint 0
        %u2 = OpConstant %uint 2
        %u5 = OpConstant %uint 5
        %i2 = OpConstant %int 2
        %i3 = OpConstant %int 3
        %v = OpSpecConstantComposite %v3 %n %u2 %u5
    )" + expression + R"(
        %floats = OpTypeArray %float %len
        %Block = OpTypeStruct %floats
        %ptr = OpTypePointer StorageBuffer %Block
        %buf = OpVariable %ptr StorageBuffer
    )" + empty_main;
        return reflect(assemble(text)).bindings.at(0).layout.members.at(0).array.at(0);
    };
    const auto binary = [&](const std::string& operation, const std::string& type = "%uint") {
        return length("%len = OpSpecConstantOp " + type + " " + operation);
    };
    CHECK(binary("IAdd %n %u5") == 17);
    CHECK(binary("ISub %n %u5") == 7);
    CHECK(binary("IMul %n %u5") == 60);
    CHECK(binary("UDiv %n %u5") == 2);
    CHECK(binary("UMod %n %u5") == 2);
    CHECK(binary("ShiftLeftLogical %n %u2") == 48);
    CHECK(binary("ShiftRightLogical %n %u2") == 3);
    CHECK(binary("BitwiseAnd %n %u5") == 4);
    CHECK(binary("BitwiseOr %n %u5") == 13);
    CHECK(binary("BitwiseXor %n %u5") == 9);
    CHECK(binary("SNegate %m", "%int") == 5);
    CHECK(binary("SMod %m %i3", "%int") == 1);  // takes the sign of the divisor
    CHECK(length("%s = OpSpecConstantOp %int SRem %m %i3\n%len = OpSpecConstantOp %int SNegate %s") == 2);
    CHECK(length("%s = OpSpecConstantOp %int SDiv %m %i2\n%len = OpSpecConstantOp %int SNegate %s") == 2);
    CHECK(length("%s = OpSpecConstantOp %int ShiftRightArithmetic %m %u2\n%len = OpSpecConstantOp %int "
                 "SNegate %s") == 2);
    CHECK(length("%s = OpSpecConstantOp %short SConvert %m\n%t = OpSpecConstantOp %int SConvert %s\n"
                 "%len = OpSpecConstantOp %int SNegate %t") == 5);
    CHECK(binary("Select %yes %n %u5") == 12);
    CHECK(
        length(
            "%c = OpSpecConstantOp %bool ULessThan %n %u5\n%len = OpSpecConstantOp %uint Select %c %n %u5") ==
        5);
    CHECK(
        length(
            "%c = OpSpecConstantOp %bool SLessThan %m %i2\n%len = OpSpecConstantOp %uint Select %c %n %u5") ==
        12);
    CHECK(
        length(
            "%c = OpSpecConstantOp %bool LogicalNot %yes\n%len = OpSpecConstantOp %uint Select %c %n %u5") ==
        5);
    CHECK(binary("CompositeExtract %v 2") == 5);
    CHECK(
        length("%w = OpSpecConstantOp %v3 IAdd %v %v\n%len = OpSpecConstantOp %uint CompositeExtract %w 0") ==
        24);
    CHECK(length("%w = OpSpecConstantOp %v3 CompositeInsert %u5 %v 0\n"
                 "%len = OpSpecConstantOp %uint CompositeExtract %w 0") == 5);
    CHECK(length("%w = OpSpecConstantOp %v3 VectorShuffle %v %v 5 1 0\n"
                 "%len = OpSpecConstantOp %uint CompositeExtract %w 0") == 5);
    CHECK_THROWS_AS(binary("UDiv %n %u0"), Error);
    CHECK_THROWS_AS(binary("SDiv %n %u0"), Error);
}

TEST_CASE("spirv local size: literal, by id, and the built-in that overrides") {
    const std::string constants = basics + R"(
        %v3 = OpTypeVector %uint 3
        %x = OpSpecConstant %uint 64
        %y = OpConstant %uint 2
        %z = OpSpecConstantOp %uint IAdd %x %y
    )";
    const ShaderInfo literal = reflect(assemble_valid(head("", "LocalSize 8 4 2") + basics + empty_main));
    CHECK(literal.local_size == std::array<uint32_t, 3>{8, 4, 2});
    CHECK_FALSE(literal.local_size_spec_id[0]);
    CHECK(literal.version == 0x00010300);

    std::string by_id_head = head("", "LocalSize 1 1 1");
    by_id_head.replace(by_id_head.find("OpExecutionMode %main LocalSize 1 1 1"), 37,
                       "OpExecutionModeId %main LocalSizeId %x %y %z");
    const std::vector<uint32_t> words = assemble_valid(
        by_id_head + "OpDecorate %x SpecId 11\n" + constants + empty_main, SPV_ENV_UNIVERSAL_1_5);
    const ShaderInfo by_id = reflect(words);
    CHECK(by_id.local_size == std::array<uint32_t, 3>{64, 2, 66});
    CHECK(by_id.local_size_spec_id[0] == 11u);
    CHECK_FALSE(by_id.local_size_spec_id[1]);
    CHECK_FALSE(by_id.local_size_spec_id[2]);

    const std::array values{SpecValue{3, 1}, SpecValue{11, 16}};
    const ShaderInfo specialized = reflect(words, "main", values);
    CHECK(specialized.local_size == std::array<uint32_t, 3>{16, 2, 18});
    CHECK(specialized.local_size_spec_id[0] == 11u);
    CHECK(specialized.spec_constants.at(0).default_bits == 64);

    const ShaderInfo built_in = reflect(assemble_valid(head("", "LocalSize 8 4 2") + R"(
        OpDecorate %x SpecId 11
        OpDecorate %size BuiltIn WorkgroupSize
    )" + constants + "%size = OpSpecConstantComposite %v3 %y %x %z\n" +
                                                       empty_main));
    CHECK(built_in.local_size == std::array<uint32_t, 3>{2, 64, 66});
    CHECK_FALSE(built_in.local_size_spec_id[0]);
    CHECK(built_in.local_size_spec_id[1] == 11u);
}

TEST_CASE("spirv push constants start at the first member") {
    const std::string text = head() + R"(
        OpName %pc "pc"
        OpName %Push "Push"
        OpMemberName %Push 0 "late"
        OpMemberName %Push 1 "early"
        OpDecorate %Push Block
        OpMemberDecorate %Push 0 Offset 24
        OpMemberDecorate %Push 1 Offset 16
    )" + basics + R"(
        %v3 = OpTypeVector %float 3
        %Push = OpTypeStruct %v3 %float
        %ptr = OpTypePointer PushConstant %Push
        %pc = OpVariable %ptr PushConstant
    )" + empty_main;
    const ShaderInfo info = reflect(assemble_valid(text));
    REQUIRE(info.push_constants);
    CHECK(info.push_constants->offset == 16);
    CHECK(info.push_constants->size == 20);
    CHECK(info.push_constants->instance_name == "pc");
    CHECK(info.push_constants->block_name == "Push");
    CHECK(info.push_constants->layout.members[0].name == "early");
    CHECK_FALSE(reflect(assemble_valid(head() + basics + empty_main)).push_constants);
}

TEST_CASE("spirv workgroup memory counts what the entry point uses, by the std430 rules") {
    const std::string text = head() + basics + R"(
        %v3 = OpTypeVector %float 3
        %u0 = OpConstant %uint 0
        %u5 = OpConstant %uint 5
        %f1 = OpConstant %float 1
        %true = OpConstantTrue %bool
        %five = OpTypeArray %float %u5
        %vectors = OpTypeArray %v3 %u5
        %ptr_five = OpTypePointer Workgroup %five
        %ptr_vectors = OpTypePointer Workgroup %vectors
        %ptr_bool = OpTypePointer Workgroup %bool
        %ptr = OpTypePointer Workgroup %float
        %five_s = OpVariable %ptr_five Workgroup
        %unused_s = OpVariable %ptr_five Workgroup
        %vectors_s = OpVariable %ptr_vectors Workgroup
        %bool_s = OpVariable %ptr_bool Workgroup
        %main = OpFunction %void None %fn
        %entry = OpLabel
        %p = OpAccessChain %ptr %five_s %u0
        OpStore %p %f1
        %q = OpAccessChain %ptr %vectors_s %u0 %u0
        OpStore %q %f1
        OpStore %bool_s %true
        OpReturn
        OpFunctionEnd
    )";
    // 20 bytes, padding to 32, 4 vectors of 16 and the last one's 12, a bool of 4.
    CHECK(reflect(assemble_valid(text)).shared_bytes == 32 + 4 * 16 + 12 + 4);
}

TEST_CASE("spirv entry points: each sees its own variables") {
    const std::string text = R"(
        OpCapability Shader
        OpExtension "SPV_KHR_storage_buffer_storage_class"
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %first "first"
        OpEntryPoint GLCompute %second "second"
        OpExecutionMode %first LocalSize 4 1 1
        OpExecutionMode %second LocalSize 1 8 1
        OpName %a "a"
        OpDecorate %a DescriptorSet 0
        OpDecorate %a Binding 0
        OpDecorate %Block Block
        OpMemberDecorate %Block 0 Offset 0
    )" + basics + R"(
        %u0 = OpConstant %uint 0
        %Block = OpTypeStruct %uint
        %ptr_Block = OpTypePointer StorageBuffer %Block
        %ptr = OpTypePointer StorageBuffer %uint
        %a = OpVariable %ptr_Block StorageBuffer
        %first = OpFunction %void None %fn
        %first_label = OpLabel
        %p = OpAccessChain %ptr %a %u0
        OpStore %p %u0
        OpReturn
        OpFunctionEnd
        %second = OpFunction %void None %fn
        %second_label = OpLabel
        OpReturn
        OpFunctionEnd
    )";
    const std::vector<uint32_t> words = assemble_valid(text);
    const ShaderInfo first = reflect(words, "first");
    const ShaderInfo second = reflect(words, "second");
    CHECK(first.entry == "first");
    CHECK(first.local_size[0] == 4);
    CHECK(second.local_size[1] == 8);
    CHECK(first.bindings.at(0).access == Access::write);
    CHECK(second.bindings.at(0).access == Access::none);
    REQUIRE(second.entry_points.size() == 2);
    CHECK(second.entry_points[1].name == "second");
    CHECK(first.capabilities == std::vector<uint32_t>{1});
    CHECK(first.extensions == std::vector<std::string>{"SPV_KHR_storage_buffer_storage_class"});
    const std::string message = error_of(words, "main");
    CHECK(contains(message, "2 compute entry points"));
    CHECK(contains(message, "'first', 'second'"));
}

TEST_CASE("spirv names") {
    CHECK(capability_name(11) == "Int64");
    CHECK(capability_name(61) == "GroupNonUniform");
    CHECK(capability_name(5347) == "PhysicalStorageBufferAddresses");
    CHECK(capability_name(6033) == "AtomicFloat32AddEXT");
    CHECK(capability_name(1234567) == "capability 1234567");
    CHECK(std::string(to_string(DescriptorKind::combined_image_sampler)) == "combined image sampler");
    CHECK(std::string(to_string(Access::read_write)) == "read_write");

    // Bytes may be anything; what we pass on is UTF-8. An entry is found by its bytes, so they have to be.
    std::vector<uint32_t> words = assemble_valid(head() + "OpName %main \"name\"\n" + basics + empty_main);
    const auto at = std::find(words.begin(), words.end(), 0x6E69616Du);  // "main" of the entry point
    REQUIRE(at != words.end());
    *at = 0x6EFF616D;
    CHECK(contains(error_of(words, "other"), "the name of the entry 'ma?n' is not UTF-8"));
}

TEST_CASE("spirv entry points: the only one needs no name") {
    std::vector<uint32_t> words = assemble_valid(head() + basics + empty_main);
    const auto at = std::find(words.begin(), words.end(), 0x6E69616Du);  // "main" of the entry point
    REQUIRE(at != words.end());
    *at = 0x656E6F61;
    CHECK(reflect(words).entry == "aone");
    CHECK(contains(error_of(words, "other"), "'aone'"));
}
