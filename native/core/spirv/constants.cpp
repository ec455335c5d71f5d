#include "spirv/constants.hpp"

namespace kp::spirv {
namespace {

uint64_t truncate(uint64_t bits, uint32_t width) {
    return width >= 64 ? bits : bits & ((uint64_t{1} << width) - 1);
}

int64_t sign_extend(uint64_t bits, uint32_t width) {
    if (width == 0 || width >= 64) return static_cast<int64_t>(bits);
    return static_cast<int64_t>(bits << (64 - width)) >> (64 - width);
}

// Quotients and remainders that the specification leaves undefined have no value here either.
std::optional<uint64_t> divide_signed(uint32_t op, int64_t a, int64_t b) {
    if (b == 0) return std::nullopt;
    if (b == -1) return op == spv::OpSDiv ? uint64_t{0} - static_cast<uint64_t>(a) : 0;  // no overflow trap
    if (op == spv::OpSDiv) return static_cast<uint64_t>(a / b);
    const int64_t remainder = a % b;
    const bool fix_sign = op == spv::OpSMod && remainder != 0 && (remainder < 0) != (b < 0);
    return static_cast<uint64_t>(fix_sign ? remainder + b : remainder);
}

// Evaluates one component. `width` is the operands' width; the caller truncates the result to its own width.
std::optional<uint64_t> apply_unary(uint32_t op, uint64_t a, uint32_t width) {
    switch (op) {
    case spv::OpSNegate: return uint64_t{0} - a;
    case spv::OpNot: return ~a;
    case spv::OpLogicalNot: return a ^ 1;
    case spv::OpUConvert:
    case spv::OpBitcast: return a;
    case spv::OpSConvert: return static_cast<uint64_t>(sign_extend(a, width));
    default: return std::nullopt;
    }
}

std::optional<uint64_t> apply_binary(uint32_t op, uint64_t a, uint64_t b, uint32_t width) {
    const int64_t sa = sign_extend(a, width);
    const int64_t sb = sign_extend(b, width);
    switch (op) {
    case spv::OpIAdd: return a + b;
    case spv::OpISub: return a - b;
    case spv::OpIMul: return a * b;
    case spv::OpUDiv: return b == 0 ? std::nullopt : std::optional(a / b);
    case spv::OpUMod: return b == 0 ? std::nullopt : std::optional(a % b);
    case spv::OpSDiv:
    case spv::OpSRem:
    case spv::OpSMod: return divide_signed(op, sa, sb);
    case spv::OpShiftLeftLogical: return b >= width ? std::nullopt : std::optional(a << b);
    case spv::OpShiftRightLogical: return b >= width ? std::nullopt : std::optional(a >> b);
    case spv::OpShiftRightArithmetic:
        return b >= width ? std::nullopt : std::optional(static_cast<uint64_t>(sa >> b));
    case spv::OpBitwiseAnd:
    case spv::OpLogicalAnd: return a & b;
    case spv::OpBitwiseOr:
    case spv::OpLogicalOr: return a | b;
    case spv::OpBitwiseXor: return a ^ b;
    case spv::OpIEqual:
    case spv::OpLogicalEqual: return a == b;
    case spv::OpINotEqual:
    case spv::OpLogicalNotEqual: return a != b;
    case spv::OpULessThan: return a < b;
    case spv::OpULessThanEqual: return a <= b;
    case spv::OpUGreaterThan: return a > b;
    case spv::OpUGreaterThanEqual: return a >= b;
    case spv::OpSLessThan: return sa < sb;
    case spv::OpSLessThanEqual: return sa <= sb;
    case spv::OpSGreaterThan: return sa > sb;
    case spv::OpSGreaterThanEqual: return sa >= sb;
    default: return std::nullopt;
    }
}

bool is_unary(uint32_t op) {
    return op == spv::OpSNegate || op == spv::OpNot || op == spv::OpLogicalNot || op == spv::OpUConvert ||
           op == spv::OpSConvert || op == spv::OpBitcast;
}

constexpr uint32_t bfloat16_encoding = 0;  // FPEncodingBFloat16KHR

}  // namespace

std::optional<NumericType> numeric_type(const Module& module, uint32_t type) {
    NumericType numeric;
    Instruction instruction = module.find(type);
    if (instruction.op() == spv::OpTypeVector) {
        numeric.count = instruction[3];
        if (numeric.count == 0 || numeric.count > 4) return std::nullopt;
        instruction = module.find(instruction[2]);
    }
    switch (instruction.op()) {
    case spv::OpTypeBool:
        numeric.kind = NumericType::Kind::boolean;
        numeric.width = 1;
        return numeric;
    case spv::OpTypeInt:
        numeric.kind = instruction[3] != 0 ? NumericType::Kind::signed_int : NumericType::Kind::unsigned_int;
        break;
    case spv::OpTypeFloat:
        numeric.kind = NumericType::Kind::floating;
        numeric.brain = instruction.size() > 3;  // it has an encoding
        if (numeric.brain && (instruction[2] != 16 || instruction[3] != bfloat16_encoding))
            return std::nullopt;
        break;
    default: return std::nullopt;
    }
    numeric.width = instruction[2];
    if (numeric.width == 0 || numeric.width > 64) return std::nullopt;
    return numeric;
}

ScalarKind scalar_kind(const NumericType& type) {
    switch (type.kind) {
    case NumericType::Kind::boolean: return ScalarKind::boolean;
    case NumericType::Kind::signed_int: return ScalarKind::signed_int;
    case NumericType::Kind::unsigned_int: return ScalarKind::unsigned_int;
    case NumericType::Kind::floating: return type.brain ? ScalarKind::bfloat16 : ScalarKind::floating;
    }
    return ScalarKind::none;
}

// Constants may only use constants before them, so one pass in order needs no recursion. If a module breaks
// this rule, its constants have no value, instead of an endless loop.
Constants::Constants(const Module& module, std::span<const SpecValue> specialization)
    : module_(module), specialization_(specialization) {
    for (const Instruction instruction : module.globals)
        if (const auto value = evaluate(instruction)) values_.emplace(instruction.result(), *value);
}

const ConstantValue* Constants::find(uint32_t id) const {
    const auto found = values_.find(id);
    return found == values_.end() ? nullptr : &found->second;
}

std::optional<uint64_t> Constants::integer(uint32_t id) const {
    const ConstantValue* value = find(id);
    if (!value || value->type.count != 1 || value->type.kind == NumericType::Kind::floating)
        return std::nullopt;
    return value->bits[0];
}

std::optional<uint64_t> Constants::fixed(uint32_t id) const {
    const uint32_t op = module_.find(id).op();
    return op == spv::OpConstant || op == spv::OpConstantNull ? integer(id) : std::nullopt;
}

std::optional<ConstantValue> Constants::evaluate(Instruction instruction) const {
    switch (instruction.op()) {
    case spv::OpConstantTrue:
    case spv::OpConstantFalse:
    case spv::OpConstant:
    case spv::OpConstantNull:
    case spv::OpConstantComposite:
    case spv::OpSpecConstantTrue:
    case spv::OpSpecConstantFalse:
    case spv::OpSpecConstant:
    case spv::OpSpecConstantComposite:
    case spv::OpSpecConstantOp: break;
    default: return std::nullopt;
    }
    const auto type = numeric_type(module_, instruction.type());
    if (!type) return std::nullopt;
    ConstantValue value{*type, {}};
    const uint32_t op = instruction.op();
    if (op == spv::OpSpecConstantTrue || op == spv::OpSpecConstantFalse || op == spv::OpSpecConstant)
        if (const auto bits = specialized(instruction.result())) {
            value.bits[0] = type->width == 1 ? *bits != 0 : truncate(*bits, type->width);
            return value;
        }
    switch (op) {
    case spv::OpConstantTrue:
    case spv::OpSpecConstantTrue: value.bits[0] = 1; return value;
    case spv::OpConstant:
    case spv::OpSpecConstant:
        value.bits[0] = instruction[3];
        if (type->width > 32) value.bits[0] |= static_cast<uint64_t>(instruction[4]) << 32;
        value.bits[0] = truncate(value.bits[0], type->width);  // narrow integers are stored sign-extended
        return value;
    case spv::OpConstantComposite:
    case spv::OpSpecConstantComposite:
        for (uint32_t i = 0; i < type->count; ++i) {
            const ConstantValue* part = find(instruction[3 + i]);
            if (!part || part->type.count != 1) return std::nullopt;
            value.bits[i] = part->bits[0];
        }
        return value;
    case spv::OpSpecConstantOp: return evaluate_operation(instruction, *type);
    default: return value;  // false and null: all zero
    }
}

std::optional<uint64_t> Constants::specialized(uint32_t id) const {
    if (specialization_.empty()) return std::nullopt;
    const auto spec_id = module_.decoration(id, spv::DecorationSpecId);
    if (!spec_id) return std::nullopt;
    for (const SpecValue& value : specialization_)
        if (value.id == *spec_id) return value.bits;
    return std::nullopt;
}

// Follows the indices of an OpCompositeExtract into composite constants of any type.
std::optional<uint64_t> Constants::composite_element(Instruction instruction) const {
    uint32_t id = instruction[4];
    for (uint32_t i = 5; i < instruction.size(); ++i) {
        if (const ConstantValue* value = find(id)) {
            if (i + 1 != instruction.size() || instruction[i] >= value->type.count) return std::nullopt;
            return value->bits[instruction[i]];
        }
        const Instruction composite = module_.find(id);
        if (composite.op() != spv::OpConstantComposite && composite.op() != spv::OpSpecConstantComposite)
            return std::nullopt;
        if (instruction[i] >= composite.size() - 3) return std::nullopt;
        id = composite[3 + instruction[i]];
    }
    const ConstantValue* value = find(id);
    if (!value || value->type.count != 1) return std::nullopt;
    return value->bits[0];
}

std::optional<ConstantValue> Constants::evaluate_operation(Instruction instruction, NumericType type) const {
    const uint32_t op = instruction[3];
    ConstantValue value{type, {}};
    if (op == spv::OpCompositeExtract && type.count == 1) {
        const auto element = composite_element(instruction);
        if (!element) return std::nullopt;
        value.bits[0] = *element;
        return value;
    }
    const ConstantValue* a = find(instruction[4]);
    if (!a) return std::nullopt;
    if (op == spv::OpCompositeInsert) {  // object, composite, index
        if (instruction.size() != 7) return std::nullopt;
        const ConstantValue* composite = find(instruction[5]);
        if (!composite || instruction[6] >= type.count) return std::nullopt;
        value.bits = composite->bits;
        value.bits[instruction[6]] = a->bits[0];
        return value;
    }
    if (is_unary(op)) {
        for (uint32_t i = 0; i < type.count; ++i) {
            const auto bits = apply_unary(op, a->bits[i], a->type.width);
            if (!bits) return std::nullopt;
            value.bits[i] = truncate(*bits, type.width);
        }
        return value;
    }
    // Unary operations on floats, such as OpFConvert, have no value here.
    if (instruction.size() < 6) return std::nullopt;
    const ConstantValue* b = find(instruction[5]);
    if (!b) return std::nullopt;
    if (op == spv::OpVectorShuffle) {
        for (uint32_t i = 0; i < type.count; ++i) {
            const uint32_t index = instruction[6 + i];
            if (index >= a->type.count + b->type.count) return std::nullopt;  // also the "undefined" index
            value.bits[i] = index < a->type.count ? a->bits[index] : b->bits[index - a->type.count];
        }
        return value;
    }
    if (op == spv::OpSelect) {
        const ConstantValue* otherwise = find(instruction[6]);
        if (!otherwise) return std::nullopt;
        for (uint32_t i = 0; i < type.count; ++i) {
            const bool chosen = a->bits[a->type.count == 1 ? 0 : i] != 0;
            value.bits[i] = chosen ? b->bits[i] : otherwise->bits[i];
        }
        return value;
    }
    for (uint32_t i = 0; i < type.count; ++i) {
        const auto bits = apply_binary(op, a->bits[i], b->bits[i], a->type.width);
        if (!bits) return std::nullopt;
        value.bits[i] = truncate(*bits, type.width);
    }
    return value;
}

}  // namespace kp::spirv
