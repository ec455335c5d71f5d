#include "spirv/lower.hpp"

#include "spirv/constants.hpp"
#include "spirv/module.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <unordered_map>

namespace kp {
namespace {

using spirv::bound_word;
using spirv::Constants;
using spirv::header_words;
using spirv::Instruction;
using spirv::Module;

constexpr uint32_t deepest = 255;
constexpr uint64_t most_elements = 1 << 15;  // an instruction has up to 65,535 words

class Lowering {
public:
    explicit Lowering(std::span<const uint32_t> words)
        : words_(words), module_(words), constants_(module_), next_id_(words[bound_word]) {}

    std::vector<uint32_t> run(bool without_unrolling) {
        made_.assign(words_.begin(), words_.begin() + header_words);
        for (size_t offset = header_words; offset < words_.size(); offset += words_[offset] >> 16) {
            const Instruction each(words_.subspan(offset, words_[offset] >> 16));
            if (each.op() == spv::OpFunction && end_of_globals_ == 0) end_of_globals_ = made_.size();
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
            made_.insert(made_.end(), words_.begin() + static_cast<ptrdiff_t>(offset),
                         words_.begin() + static_cast<ptrdiff_t>(offset + each.size()));
            if (without_unrolling && each.op() == spv::OpLoopMerge &&
                (each[3] & spv::LoopControlUnrollMask)) {
                made_[made_.size() - each.size() + 3] &= ~uint32_t{spv::LoopControlUnrollMask};
                changed_ = true;
            }
        }
        if (!changed_) return {};
        made_[bound_word] = next_id_;
        made_.insert(made_.begin() + static_cast<ptrdiff_t>(end_of_globals_), globals_.begin(),
                     globals_.end());
        return std::move(made_);
    }

    static bool is_remainder(const Instruction& each) {
        return each.op() == spv::OpSRem || each.op() == spv::OpSMod;
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
        std::vector<uint32_t> made;
        for (uint32_t i = 0; i < count; ++i) {
            const uint32_t extracted = next_id_++;
            for (const uint32_t word : std::array<uint32_t, 5>{5u << 16 | spv::OpCompositeExtract,
                                                               part(other, i), extracted, value, i})
                made_.push_back(word);
            made.push_back(copied(part(type, i), part(other, i), extracted));
        }
        if (result == 0) result = next_id_++;
        for (const uint32_t word : {(count + 3) << 16 | spv::OpCompositeConstruct, to, result})
            made_.push_back(word);
        made_.insert(made_.end(), made.begin(), made.end());
        return result;
    }

    // Appends an instruction with a result; returns its id, `result` if that is given.
    static uint32_t append(std::vector<uint32_t>& to, spv::Op op, uint32_t type, uint32_t result,
                           std::initializer_list<uint32_t> operands) {
        to.push_back(static_cast<uint32_t>(operands.size() + 3) << 16 | op);
        to.push_back(type);
        to.push_back(result);
        to.insert(to.end(), operands);
        return result;
    }

    // a - a / b * b, which has the sign of a; for OpSMod plus b where that is not the sign of b.
    void divided(const Instruction& each) {
        const uint32_t type = each[1], a = each[3], b = each[4];
        const auto value = [&](spv::Op op, std::initializer_list<uint32_t> operands, uint32_t result = 0) {
            return append(made_, op, type, result ? result : next_id_++, operands);
        };
        const uint32_t whole = value(spv::OpIMul, {value(spv::OpSDiv, {a, b}), b});
        if (each.op() == spv::OpSRem) {
            value(spv::OpISub, {a, whole}, each[2]);
            return;
        }
        const uint32_t rest = value(spv::OpISub, {a, whole});
        const uint32_t not_zero = value(spv::OpBitwiseOr, {rest, value(spv::OpSNegate, {rest})});  // its sign
        const uint32_t other_sign = value(spv::OpBitwiseAnd, {not_zero, value(spv::OpBitwiseXor, {rest, b})});
        const uint32_t mask = value(spv::OpShiftRightArithmetic, {other_sign, last_bit(type)});
        value(spv::OpIAdd, {rest, value(spv::OpBitwiseAnd, {mask, b})}, each[2]);
    }

    // The constant of this type of ints, or of vectors of them, that has the number of the highest bit.
    uint32_t last_bit(uint32_t type) {
        uint32_t& found = last_bits_[type];
        if (found != 0) return found;
        const Instruction each = module_.at(type, "the type of a remainder");
        if (each.op() == spv::OpTypeVector) {
            const uint32_t part = last_bit(each[2]);
            found = next_id_++;
            globals_.insert(globals_.end(), {(each[3] + 3) << 16 | spv::OpConstantComposite, type, found});
            globals_.insert(globals_.end(), each[3], part);
            return found;
        }
        found = next_id_++;
        const uint32_t bits = each[2];
        if (bits == 64)
            append(globals_, spv::OpConstant, type, found, {bits - 1, 0});
        else
            append(globals_, spv::OpConstant, type, found, {bits - 1});
        return found;
    }

    std::span<const uint32_t> words_;
    Module module_;
    Constants constants_;
    uint32_t next_id_;
    std::vector<uint32_t> made_;
    std::vector<uint32_t> globals_;  // constants, which stand before the first function
    std::unordered_map<uint32_t, uint32_t> last_bits_;
    size_t end_of_globals_ = 0;
    bool changed_ = false;
};

}  // namespace

std::vector<uint32_t> lowered(std::span<const uint32_t> words, bool without_unrolling) {
    const Module module(words);
    for (const spirv::Function& function : module.functions())
        for (const Instruction each : function.body)
            if (each.op() == spv::OpCopyLogical || Lowering::is_remainder(each) ||
                (without_unrolling && each.op() == spv::OpLoopMerge))
                return Lowering(words).run(without_unrolling);
    return {};
}

}  // namespace kp
