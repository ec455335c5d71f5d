#include "spirv/layout.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

namespace kp::spirv {
namespace {

constexpr uint32_t deepest_nesting = 255;  // the specification's limit for structs

// A struct that holds two structs that hold two structs... doubles with every level. No real block comes near
// this limit.
constexpr uint64_t most_nodes = 1u << 16;

// Every node repeats its type's name, which may be a quarter of a megabyte long.
constexpr uint64_t name_bytes_a_node = 128;

constexpr uint64_t pointer_bytes = 8;

// Malformed modules give huge sizes: sums stop at the largest value instead of wrapping round.
uint64_t add(uint64_t a, uint64_t b) {
    const uint64_t sum = a + b;
    return sum < a ? std::numeric_limits<uint64_t>::max() : sum;
}

uint64_t multiply(uint64_t a, uint64_t b) {
    return b != 0 && a > std::numeric_limits<uint64_t>::max() / b ? std::numeric_limits<uint64_t>::max()
                                                                  : a * b;
}

uint64_t round_up(uint64_t value, uint64_t alignment) {
    return alignment <= 1 ? value : add(value, alignment - 1) / alignment * alignment;
}

uint32_t to_u32(uint64_t value) {
    return static_cast<uint32_t>(std::min<uint64_t>(value, std::numeric_limits<uint32_t>::max()));
}

// Two components align to two, three and four to four.
uint64_t vector_alignment(uint64_t components, uint64_t scalar_bytes) {
    return scalar_bytes * (components <= 1 ? 1 : components == 2 ? 2 : 4);
}

}  // namespace

std::string source_name(const std::string& name) {
    if (name.starts_with("type.") && name.size() > 5) return name.substr(5);
    if (name.starts_with('@') && name.size() > 1) return name.substr(1);
    return name;
}

uint32_t LayoutBuilder::array_length(Instruction array) const {
    const auto length = constants_.integer(array[3]);
    if (!length)
        malformed("the length of array type " + std::to_string(array[1]) + " (id " +
                  std::to_string(array[3]) + ") is not an integer constant whose value can be computed");
    return to_u32(*length);
}

bool LayoutBuilder::is_wrapped_array(Instruction type) const {
    static constexpr std::string_view prefix = "_Array_";
    if (type.op() != spv::OpTypeStruct || type.size() != 3) return false;
    if (!module_.name(type[1]).starts_with(prefix) || module_.member_name(type[1], 0) != "data") return false;
    const uint32_t op = module_.at(type[2], "a member's type").op();
    return (op == spv::OpTypeArray || op == spv::OpTypeRuntimeArray) &&
           module_.member_decoration(type[1], 0, spv::DecorationOffset).value_or(0) == 0;
}

LayoutBuilder::MatrixDecorations LayoutBuilder::matrix_of(uint32_t type, uint32_t member) const {
    MatrixDecorations matrix;
    const auto stride = module_.member_decoration(type, member, spv::DecorationMatrixStride);
    if (stride == 0u)
        malformed("member " + std::to_string(member) + " of type " + std::to_string(type) + " '" +
                  module_.name(type) + "' has MatrixStride 0: its columns would be one");
    matrix.stride = stride.value_or(0);
    matrix.row_major = module_.member_decoration(type, member, spv::DecorationRowMajor).has_value();
    return matrix;
}

void LayoutBuilder::charge(uint64_t nodes) {
    nodes_ += nodes;
    if (nodes_ > most_nodes)
        malformed("the types of its variables expand to more than " + std::to_string(most_nodes) +
                  " members, more than any real shader has");
}

LayoutBuilder::Placed LayoutBuilder::place(uint32_t type, MatrixDecorations matrix, uint32_t depth) {
    charge(1);
    if (depth > deepest_nesting)
        malformed("type " + std::to_string(type) +
                  " contains itself or nests more deeply than any shader's may");
    Placed placed;
    TypeLayout& layout = placed.layout;
    // An array of arrays and its element share one node.
    std::vector<uint32_t> array_types;
    Instruction element = module_.at(type, "a type");
    for (;;) {
        if (is_wrapped_array(element)) {
            matrix = matrix_of(element[1], 0);
            element = module_.at(element[2], "the array that a struct wraps");
        }
        if (element.op() != spv::OpTypeArray && element.op() != spv::OpTypeRuntimeArray) break;
        if (array_types.size() >= deepest_nesting)
            malformed("array type " + std::to_string(type) + " nests too deeply or contains itself");
        array_types.push_back(element[1]);
        layout.array.push_back(element.op() == spv::OpTypeArray ? array_length(element) : 0);
        element = module_.at(element[2], "the element type of an array");
    }
    charge(array_types.size());
    place_element(element, matrix, depth, placed);
    for (size_t i = array_types.size(); i-- > 0;) {
        const auto stride = module_.decoration(array_types[i], spv::DecorationArrayStride);
        const uint64_t step = stride ? *stride : round_up(layout.size, placed.alignment);
        layout.array_strides.insert(layout.array_strides.begin(), to_u32(step));
        layout.size = layout.array[i] == 0 ? 0 : add(multiply(layout.array[i] - 1, step), layout.size);
    }
    return placed;
}

void LayoutBuilder::place_element(Instruction type, MatrixDecorations matrix, uint32_t depth,
                                  Placed& placed) {
    switch (type.op()) {
    case spv::OpTypeStruct: place_struct(type, depth, placed); return;
    case spv::OpTypeMatrix: place_matrix(type, matrix, placed); return;
    case spv::OpTypePointer:
        // The target is not followed: the node of a linked list points to its own type.
        if (type[2] == spv::StorageClassPhysicalStorageBuffer) {
            placed.layout.physical_pointer = true;
            placed.layout.scalar = ScalarKind::unsigned_int;
            placed.layout.width = pointer_bytes * 8;
            charge(module_.name(type[3]).size() / name_bytes_a_node);
            placed.layout.type_name = source_name(module_.name(type[3]));
            placed.layout.size = placed.alignment = pointer_bytes;
        }
        return;
    default: place_numeric(type.result(), placed); return;
    }
}

void LayoutBuilder::place_numeric(uint32_t type, Placed& placed) const {
    const auto numeric = numeric_type(module_, type);
    if (!numeric) return;  // images, cooperative matrices: no layout of their own
    TypeLayout& layout = placed.layout;
    layout.scalar = scalar_kind(*numeric);
    layout.width = layout.scalar == ScalarKind::boolean ? 32 : numeric->width;
    layout.rows = numeric->count;
    const uint64_t bytes = (layout.width + 7) / 8;
    layout.size = bytes * layout.rows;
    placed.alignment = vector_alignment(layout.rows, bytes);
}

void LayoutBuilder::place_matrix(Instruction type, MatrixDecorations matrix, Placed& placed) {
    place_numeric(type[2], placed);  // a column
    TypeLayout& layout = placed.layout;
    layout.columns = type[3];
    if (layout.columns == 0 || layout.columns > 4 || layout.scalar == ScalarKind::none)
        malformed("matrix type " + std::to_string(type[1]) + " has " + std::to_string(layout.columns) +
                  " columns of type " + std::to_string(type[2]));
    layout.row_major = matrix.row_major;
    const uint64_t scalar_bytes = (layout.width + 7) / 8;
    const uint64_t line = matrix.row_major ? layout.columns : layout.rows;  // contiguous components
    const uint64_t lines = matrix.row_major ? layout.rows : layout.columns;
    placed.alignment = vector_alignment(line, scalar_bytes);
    layout.matrix_stride =
        matrix.stride != 0 ? matrix.stride : to_u32(round_up(line * scalar_bytes, placed.alignment));
    layout.size = (lines - 1) * layout.matrix_stride + line * scalar_bytes;
    if (!rows_first_) return;
    layout.hlsl_matrix = true;
    std::swap(layout.rows, layout.columns);
    layout.row_major = !layout.row_major;
}

void LayoutBuilder::place_struct(Instruction type, uint32_t depth, Placed& placed) {
    const uint32_t id = type[1];
    TypeLayout& layout = placed.layout;
    charge(module_.name(id).size() / name_bytes_a_node);
    layout.type_name = source_name(module_.name(id));
    uint64_t cursor = 0;  // end of the last member, for members without an offset
    for (uint32_t member = 0; member + 2 < type.size(); ++member) {
        Placed inner = place(type[member + 2], matrix_of(id, member), depth + 1);
        charge(module_.member_name(id, member).size() / name_bytes_a_node);
        inner.layout.name = source_name(module_.member_name(id, member));
        const auto offset = module_.member_decoration(id, member, spv::DecorationOffset);
        inner.layout.offset = offset ? *offset : round_up(cursor, inner.alignment);
        const uint64_t end = add(inner.layout.offset, inner.layout.size);
        const bool padded =
            !inner.layout.members.empty() || !inner.layout.array.empty() || inner.layout.columns > 1;
        cursor = padded ? round_up(end, inner.alignment) : end;
        layout.size = std::max(layout.size, end);
        placed.alignment = std::max(placed.alignment, inner.alignment);
        layout.members.push_back(std::move(inner.layout));
    }
    // Slang's block around the struct of a ConstantBuffer<T>.
    if (layout.members.size() == 1 && layout.type_name.empty()) {
        TypeLayout& only = layout.members.front();
        if (only.name == "__member0" && !only.members.empty() && only.array.empty() && only.offset == 0)
            layout = TypeLayout(std::exchange(only, {}));
        if (layout.name == "__member0") layout.name.clear();
    }
}

}  // namespace kp::spirv
