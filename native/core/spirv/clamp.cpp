#include "spirv/clamp.hpp"

#include "spirv/builder.hpp"
#include "spirv/constants.hpp"
#include "spirv/module.hpp"
#include "spirv/operands.hpp"

#include <spirv/unified1/GLSL.std.450.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace kp {
namespace {

using spirv::bound_word;
using spirv::Builder;
using spirv::Code;
using spirv::Constants;
using spirv::header_words;
using spirv::Instruction;
using spirv::Module;

constexpr uint32_t deepest = 16;  // the most operations followed back to find an index's bound

struct IntType {
    uint32_t id = 0;
    uint32_t width = 0;
    bool is_signed = false;
};

// The length of an array: a number, or a constant that a specialization can change.
struct Length {
    uint64_t number = 0;
    uint32_t constant = 0;  // its id; 0: `number` is known
};

uint64_t largest_of(uint32_t width) { return width >= 64 ? UINT64_MAX : (uint64_t{1} << width) - 1; }

class Clamper {
public:
    explicit Clamper(std::span<const uint32_t> words)
        : words_(words), module_(words), constants_(module_), builder_(module_, words[bound_word]) {
        for (const auto& [id, name] : module_.instruction_sets)
            if (name == "GLSL.std.450") glsl_ = id;
        find_local_size();
    }

    Clamped run();

private:
    void find_local_size();
    void rewrite(Instruction chain);
    [[nodiscard]] uint32_t held(uint32_t index, const Length& length);
    [[nodiscard]] uint32_t last_index(const Length& length, const IntType& type);

    [[nodiscard]] std::optional<IntType> int_type(uint32_t type) const;
    [[nodiscard]] IntType unsigned_type(uint32_t width) {
        return {builder_.type(spv::OpTypeInt, {width, 0}), width, false};
    }
    [[nodiscard]] uint32_t constant(const IntType& type, uint64_t value) {
        return builder_.number(type.id, type.width, value);
    }

    [[nodiscard]] uint64_t most(uint32_t id, uint32_t depth = 0) const;
    [[nodiscard]] uint64_t most_of(Instruction made, uint64_t top, uint32_t depth) const;
    [[nodiscard]] uint64_t most_of_function(Instruction call, uint64_t top, uint32_t depth) const;
    [[nodiscard]] std::optional<uint64_t> most_built_in(uint32_t pointer) const;
    [[nodiscard]] std::optional<uint64_t> most_of_component(uint32_t variable, uint32_t component) const;

    std::span<const uint32_t> words_;
    Module module_;
    Constants constants_;
    Builder builder_;
    uint32_t glsl_ = 0;
    bool imports_glsl_ = false;
    std::array<uint64_t, 3> local_size_{};  // the largest of all entry points; 0 if unknown
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> added_lengths_;  // by type and constant
    Code made_;
    Clamped result_;
};

std::optional<IntType> Clamper::int_type(uint32_t type) const {
    const Instruction found = module_.find(type);
    if (found.op() != spv::OpTypeInt) return std::nullopt;
    return IntType{type, found[2], found[3] != 0};
}

void Clamper::find_local_size() {
    bool known = true;
    std::array<uint64_t, 3> size{1, 1, 1};
    const auto take = [&](uint32_t axis, std::optional<uint64_t> value) {
        if (value)
            size[axis] = std::max(size[axis], *value);
        else
            known = false;
    };
    for (const auto& mode : module_.execution_modes)
        for (uint32_t axis = 0; axis < 3; ++axis) {
            if (mode.mode == spv::ExecutionModeLocalSize && !mode.by_id) take(axis, mode.operands[axis]);
            if (mode.mode == spv::ExecutionModeLocalSizeId) take(axis, constants_.fixed(mode.operands[axis]));
        }
    for (const Instruction global : module_.globals) {
        const uint32_t op = global.op();
        if (op != spv::OpConstantComposite && op != spv::OpSpecConstantComposite) continue;
        if (module_.decoration(global[2], spv::DecorationBuiltIn) != uint32_t{spv::BuiltInWorkgroupSize})
            continue;
        for (uint32_t axis = 0; axis < 3; ++axis) take(axis, constants_.fixed(global[3 + axis]));
    }
    if (known) local_size_ = size;
}

std::optional<uint64_t> Clamper::most_of_component(uint32_t variable, uint32_t component) const {
    if (component > 2 || local_size_[component] == 0) return std::nullopt;
    if (module_.decoration(variable, spv::DecorationBuiltIn) != uint32_t{spv::BuiltInLocalInvocationId})
        return std::nullopt;
    return local_size_[component] - 1;
}

// The largest value that a load from the pointer can return.
std::optional<uint64_t> Clamper::most_built_in(uint32_t pointer) const {
    const Instruction made = module_.find(pointer);
    if (made.op() == spv::OpVariable) {
        if (local_size_[0] == 0 || made[3] != spv::StorageClassInput) return std::nullopt;
        if (module_.decoration(pointer, spv::DecorationBuiltIn) != uint32_t{spv::BuiltInLocalInvocationIndex})
            return std::nullopt;
        return local_size_[0] * local_size_[1] * local_size_[2] - 1;
    }
    if (spirv::is_chain(made.op()) && made.size() == 5)
        if (const auto component = constants_.fixed(made[4]))
            return most_of_component(made[3], static_cast<uint32_t>(std::min<uint64_t>(*component, 3)));
    return std::nullopt;
}

uint64_t Clamper::most_of_function(Instruction call, uint64_t top, uint32_t depth) const {
    if (call[3] != glsl_ || glsl_ == 0) return top;
    switch (call[4]) {
    case GLSLstd450UMin: return std::min(most(call[5], depth), most(call[6], depth));
    case GLSLstd450UMax: return std::max(most(call[5], depth), most(call[6], depth));
    case GLSLstd450UClamp: return most(call[7], depth);
    default: return top;
    }
}

// The largest value of an operation, read as unsigned. `top` is the largest value of its type.
uint64_t Clamper::most_of(Instruction made, uint64_t top, uint32_t depth) const {
    const auto within = [top](uint64_t value) { return std::min(value, top); };
    switch (made.op()) {
    case spv::OpLoad: return most_built_in(made[3]).value_or(top);
    case spv::OpCompositeExtract: {
        const Instruction load = module_.find(made[3]);
        if (made.size() != 5 || load.op() != spv::OpLoad) return top;
        return most_of_component(load[3], made[4]).value_or(top);
    }
    case spv::OpBitwiseAnd: return std::min(most(made[3], depth), most(made[4], depth));
    case spv::OpBitwiseOr:
    case spv::OpBitwiseXor: {
        const auto bits = std::bit_width(std::max(most(made[3], depth), most(made[4], depth)));
        return within(largest_of(static_cast<uint32_t>(bits)));
    }
    case spv::OpUMod: {
        const uint64_t divisor = most(made[4], depth);
        return divisor == 0 ? top : std::min(most(made[3], depth), divisor - 1);
    }
    case spv::OpUDiv: {
        const auto divisor = constants_.fixed(made[4]);
        return divisor && *divisor != 0 ? most(made[3], depth) / *divisor : top;
    }
    case spv::OpShiftRightLogical: {
        const auto by = constants_.fixed(made[4]);
        return by && *by < 64 ? within(most(made[3], depth) >> *by) : top;
    }
    case spv::OpShiftLeftLogical: {
        const auto by = constants_.fixed(made[4]);
        const uint64_t value = most(made[3], depth);
        return by && *by < 64 && value <= top >> *by ? value << *by : top;
    }
    case spv::OpIAdd: {
        const uint64_t a = most(made[3], depth);
        const uint64_t b = most(made[4], depth);
        return b <= top && a <= top - b ? a + b : top;
    }
    case spv::OpIMul: {
        const uint64_t a = most(made[3], depth);
        const uint64_t b = most(made[4], depth);
        return a == 0 || b == 0 ? 0 : b <= top / a ? a * b : top;
    }
    case spv::OpSelect: return std::max(most(made[4], depth), most(made[5], depth));
    case spv::OpUConvert:
    case spv::OpCopyObject: return within(most(made[3], depth));
    case spv::OpBitcast: return int_type(module_.type_of(made[3])) ? within(most(made[3], depth)) : top;
    case spv::OpExtInst: return within(most_of_function(made, top, depth));
    default: return top;
    }
}

// The largest value of the integer, read as unsigned.
uint64_t Clamper::most(uint32_t id, uint32_t depth) const {
    if (const auto value = constants_.fixed(id)) return *value;
    const Instruction made = module_.find(id);
    const auto type = int_type(made.type());
    const uint64_t top = type ? largest_of(type->width) : UINT64_MAX;
    return depth >= deepest || !type ? top : most_of(made, top, depth + 1);
}

// The length minus one, as an id of this type.
uint32_t Clamper::last_index(const Length& length, const IntType& type) {
    if (length.constant == 0) return constant(type, length.number - 1);
    const IntType own = int_type(module_.type_of(length.constant)).value_or(type);
    const auto [entry, added] = added_lengths_.try_emplace({own.id, length.constant}, 0);
    if (added)
        entry->second = builder_.value(builder_.globals, spv::OpSpecConstantOp, own.id,
                                       {spv::OpISub, length.constant, constant(own, 1)});
    if (own.width == type.width) return entry->second;
    return builder_.value(made_, spv::OpUConvert, unsigned_type(type.width).id, {entry->second});
}

// The index, or the id of the clamped index.
uint32_t Clamper::held(uint32_t index, const Length& length) {
    const auto own = int_type(module_.type_of(index));
    if (!own) return index;
    if (length.constant == 0) {
        const auto value = constants_.fixed(index);
        if (value && *value < length.number) return index;
        if (!value && most(index) < length.number) {
            ++result_.safe;
            return index;
        }
    }
    ++result_.indices;
    IntType type = *own;
    const auto of_length = length.constant ? int_type(module_.type_of(length.constant)) : std::nullopt;
    const uint32_t width = std::max({type.width, 32u, of_length ? of_length->width : 0u});
    if (type.width < width) {
        // A sign-extended negative index is greater than every length.
        type = unsigned_type(width);
        index = builder_.value(made_, own->is_signed ? spv::OpSConvert : spv::OpUConvert, type.id, {index});
    }
    const uint32_t last = last_index(length, type);
    if (glsl_ == 0) {
        glsl_ = builder_.id();
        imports_glsl_ = true;
    }
    return builder_.value(made_, spv::OpExtInst, type.id, {glsl_, GLSLstd450UMin, index, last});
}

void Clamper::rewrite(Instruction chain) {
    std::vector<uint32_t> operands;
    for (uint32_t i = 1; i < chain.size(); ++i) operands.push_back(chain[i]);
    const auto storage = module_.storage_class(chain[1]);
    const Instruction base = module_.find(module_.type_of(chain[3]));
    const bool by_element =
        chain.op() == spv::OpPtrAccessChain || chain.op() == spv::OpInBoundsPtrAccessChain;
    // For buffers and resources, only arrays of descriptors: the device bounds accesses inside a buffer.
    bool only_outer = false;
    bool covered = base.op() == spv::OpTypePointer && storage;
    if (covered) switch (*storage) {
        case spv::StorageClassWorkgroup:
        case spv::StorageClassPrivate:
        case spv::StorageClassFunction:
        case spv::StorageClassPushConstant:
        case spv::StorageClassInput: break;
        case spv::StorageClassUniformConstant:
        case spv::StorageClassUniform:
        case spv::StorageClassStorageBuffer:
            only_outer = !by_element;
            covered = !by_element;
            break;
        default: covered = false;
        }
    // A pointer into a block is not an array of descriptors.
    if (covered && only_outer && module_.find(chain[3]).op() != spv::OpVariable) covered = false;
    uint32_t type = covered ? base[3] : 0;
    for (uint32_t i = by_element ? 5 : 4; covered && i < chain.size(); ++i) {
        const Instruction outer = module_.find(type);
        uint32_t& index = operands[i - 1];
        switch (outer.op()) {
        case spv::OpTypeArray: {
            const auto number = constants_.fixed(outer[3]);
            if (number && *number != 0)
                index = held(index, {*number, 0});
            else if (!number && int_type(module_.type_of(outer[3])))
                index = held(index, {0, outer[3]});
            type = outer[2];
            break;
        }
        case spv::OpTypeVector:
        case spv::OpTypeMatrix:
            index = held(index, {outer[3], 0});
            type = outer[2];
            break;
        case spv::OpTypeStruct: {
            const auto member = constants_.fixed(index);
            covered = !only_outer && member && *member + 2 < outer.size();
            if (covered) type = outer[static_cast<uint32_t>(*member) + 2];
            break;
        }
        default: covered = false;
        }
    }
    made_.emit(chain.op(), operands);
}

Clamped Clamper::run() {
    Code head;
    size_t memory_model = 0;  // instruction sets are imported before it
    made_ = Code(words_.first(header_words));
    for (size_t offset = header_words; offset < words_.size(); offset += words_[offset] >> 16) {
        const Instruction instruction(words_.subspan(offset, words_[offset] >> 16));
        switch (instruction.op()) {
        case spv::OpMemoryModel: memory_model = made_.words().size(); break;
        case spv::OpFunction:
            if (head.empty()) std::swap(head, made_);
            break;
        case spv::OpAccessChain:
        case spv::OpInBoundsAccessChain:
        case spv::OpPtrAccessChain:
        case spv::OpInBoundsPtrAccessChain: rewrite(instruction); continue;
        default: break;
        }
        made_.copy(instruction);
    }
    if (result_.indices == 0) return std::move(result_);
    if (imports_glsl_) {
        Code import;
        import.emit(spv::OpExtInstImport, {glsl_, 0x4C534C47, 0x6474732E, 0x3035342E, 0});  // "GLSL.std.450"
        head.words().insert(head.words().begin() + static_cast<ptrdiff_t>(memory_model),
                            import.words().begin(), import.words().end());
    }
    result_.words = builder_.joined(head, made_);
    return std::move(result_);
}

}  // namespace

Clamped clamped(std::span<const uint32_t> words) {
    // Most modules only index arrays in buffers.
    return Clamper(words).run();
}

}  // namespace kp
