#include "spirv/lower.hpp"

#include "spirv/builder.hpp"
#include "spirv/constants.hpp"
#include "spirv/module.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <unordered_map>
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

constexpr uint32_t deepest = 255;
constexpr uint64_t most_elements = 1 << 15;  // an instruction has up to 65,535 words

class Lowering {
public:
    explicit Lowering(std::span<const uint32_t> words)
        : words_(words), module_(words), constants_(module_), builder_(module_, words[bound_word]) {}

    std::vector<uint32_t> run(bool without_unrolling) {
        Code head;
        made_ = Code(words_.first(header_words));
        for (size_t offset = header_words; offset < words_.size(); offset += words_[offset] >> 16) {
            const Instruction each(words_.subspan(offset, words_[offset] >> 16));
            if (each.op() == spv::OpFunction && head.empty()) std::swap(head, made_);
            if (is_remainder(each)) {
                divided(each);
                changed_ = true;
                continue;
            }
            if (each.op() == spv::OpCopyLogical &&
                leaves(each[1], module_.type_of(each[3])) <= most_elements) {
                (void)copied(each[1], module_.type_of(each[3]), each[3], each[2]);
                changed_ = true;
                continue;
            }
            made_.copy(each);
            if (without_unrolling && each.op() == spv::OpLoopMerge &&
                (each[3] & spv::LoopControlUnrollMask)) {
                auto& words = made_.words();
                words[words.size() - each.size() + 3] &= ~uint32_t{spv::LoopControlUnrollMask};
                changed_ = true;
            }
        }
        if (!changed_) return {};
        return builder_.joined(head, made_);
    }

    // What is computed, in a function or of specialization constants.
    static uint32_t operation(const Instruction& each) {
        return each.op() == spv::OpSpecConstantOp ? each[3] : each.op();
    }

    static bool is_remainder(const Instruction& each) {
        return operation(each) == spv::OpSRem || operation(each) == spv::OpSMod;
    }

private:
    // The parts of a struct or an array; 0 for an array whose length is not in the module.
    [[nodiscard]] uint64_t parts(const Instruction& type) const {
        if (type.op() == spv::OpTypeStruct) return type.size() - 2;
        const Instruction length = module_.find(type[3]);
        return length.op() == spv::OpConstant ? constants_.integer(type[3]).value_or(0) : 0;
    }

    [[nodiscard]] static uint32_t part(const Instruction& type, uint32_t index) {
        return type.op() == spv::OpTypeStruct ? type[2 + index] : type[2];
    }

    // The elements that are copied one by one; more than `most_elements` if they cannot be.
    [[nodiscard]] uint64_t leaves(uint32_t to, uint32_t from, uint32_t depth = 0) const {
        if (to == from) return 1;
        const Instruction type = module_.at(to, "the type of a copy");
        const Instruction other = module_.at(from, "the type of a copied value");
        const bool has_parts = type.op() == spv::OpTypeStruct || type.op() == spv::OpTypeArray;
        const uint64_t count = has_parts ? parts(type) : 0;
        if (count == 0 || other.op() != type.op() || parts(other) != count || count > most_elements ||
            depth == deepest)
            return most_elements + 1;
        if (type.op() == spv::OpTypeArray)
            return std::min(most_elements + 1, count * leaves(type[2], other[2], depth + 1));
        uint64_t sum = 0;
        for (uint32_t i = 0; i < count && sum <= most_elements; ++i)
            sum += leaves(part(type, i), part(other, i), depth + 1);
        return sum;
    }

    // Writes `value`, of the type `from`, as one of the type `to`; returns its id, `result` if that is given.
    uint32_t copied(uint32_t to, uint32_t from, uint32_t value, uint32_t result = 0) {
        if (to == from) return value;
        const Instruction type = module_.find(to);
        const Instruction other = module_.find(from);
        const auto count = static_cast<uint32_t>(parts(type));
        std::vector<uint32_t> made{to, 0};
        for (uint32_t i = 0; i < count; ++i) {
            const uint32_t extracted =
                builder_.value(made_, spv::OpCompositeExtract, part(other, i), {value, i});
            made.push_back(copied(part(type, i), part(other, i), extracted));
        }
        made[1] = result == 0 ? builder_.id() : result;
        made_.emit(spv::OpCompositeConstruct, made);
        return made[1];
    }

    // a - a / b * b, which has the sign of a; for OpSMod plus b where that is not the sign of b. That of
    // specialization constants is one, too.
    void divided(const Instruction& each) {
        const bool is_constant = each.op() == spv::OpSpecConstantOp;
        const uint32_t type = each[1], a = each[is_constant ? 4 : 3], b = each[is_constant ? 5 : 4];
        const auto emit = [&](spv::Op op, uint32_t result, std::initializer_list<uint32_t> operands) {
            std::vector<uint32_t> all{type, result};
            if (is_constant) all.push_back(op);
            all.insert(all.end(), operands.begin(), operands.end());
            made_.emit(is_constant ? spv::OpSpecConstantOp : op, all);
            return result;
        };
        const auto value = [&](spv::Op op, std::initializer_list<uint32_t> operands) {
            return emit(op, builder_.id(), operands);
        };
        const uint32_t whole = value(spv::OpIMul, {value(spv::OpSDiv, {a, b}), b});
        if (operation(each) == spv::OpSRem) {
            emit(spv::OpISub, each[2], {a, whole});
            return;
        }
        const uint32_t bits = last_bit(type);
        if (is_constant) made_.append(std::exchange(builder_.globals, {}));  // it comes before its use
        const uint32_t rest = value(spv::OpISub, {a, whole});
        const uint32_t not_zero = value(spv::OpBitwiseOr, {rest, value(spv::OpSNegate, {rest})});  // its sign
        const uint32_t other_sign = value(spv::OpBitwiseAnd, {not_zero, value(spv::OpBitwiseXor, {rest, b})});
        const uint32_t mask = value(spv::OpShiftRightArithmetic, {other_sign, bits});
        emit(spv::OpIAdd, each[2], {rest, value(spv::OpBitwiseAnd, {mask, b})});
    }

    // The constant of this type of ints, or of vectors of them, that has the number of the highest bit.
    uint32_t last_bit(uint32_t type) {
        const Instruction each = module_.at(type, "the type of a remainder");
        if (each.op() != spv::OpTypeVector) return builder_.number(type, each[2], each[2] - 1);
        uint32_t& found = last_bits_[type];
        if (found == 0) {
            const std::vector<uint32_t> parts(each[3], last_bit(each[2]));
            found = builder_.value(builder_.globals, spv::OpConstantComposite, type, parts);
        }
        return found;
    }

    std::span<const uint32_t> words_;
    Module module_;
    Constants constants_;
    Builder builder_;
    Code made_;
    std::unordered_map<uint32_t, uint32_t> last_bits_;  // of vectors, by type
    bool changed_ = false;
};

}  // namespace

std::vector<uint32_t> lowered(std::span<const uint32_t> words, bool without_unrolling) {
    const Module module(words);
    const auto is_lowered = [&](const Instruction& each) {
        return each.op() == spv::OpCopyLogical || Lowering::is_remainder(each) ||
               (without_unrolling && each.op() == spv::OpLoopMerge);
    };
    if (std::ranges::any_of(module.globals, is_lowered)) return Lowering(words).run(without_unrolling);
    for (const spirv::Function& function : module.functions())
        if (std::ranges::any_of(function.body, is_lowered)) return Lowering(words).run(without_unrolling);
    return {};
}

}  // namespace kp
