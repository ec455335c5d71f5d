#include "spirv/guard_atomics.hpp"

#include "spirv/constants.hpp"
#include "spirv/module.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>

namespace kp {
namespace {

using spirv::bound_word;
using spirv::Constants;
using spirv::header_words;
using spirv::Instruction;
using spirv::Module;

constexpr size_t deepest = 16;  // the most access chains upon access chains

constexpr uint32_t atomic_min_ext = 5614;  // OpAtomicFMinEXT, OpAtomicFMaxEXT, OpAtomicFAddEXT
constexpr uint32_t atomic_max_ext = 5615;
constexpr uint32_t atomic_add_ext = 6035;

bool is_atomic(uint32_t op) {
    return (op >= spv::OpAtomicLoad && op <= spv::OpAtomicXor) || op == atomic_min_ext ||
           op == atomic_max_ext || op == atomic_add_ext;
}

// An index and its upper bound: a number, or the length of a member of the block that a chain of indices
// leads to.
struct Bound {
    uint32_t index = 0;
    uint64_t number = 0;
    std::vector<uint32_t> block;  // the indices that lead from the variable to the block
    uint32_t block_type = 0;
    uint32_t member = 0;
};

class Guard {
public:
    explicit Guard(std::span<const uint32_t> words)
        : words_(words), module_(words), constants_(module_), next_id_(words[bound_word]) {}

    std::vector<uint32_t> run();

private:
    [[nodiscard]] std::vector<Bound> bounds_of(uint32_t pointer, uint32_t& variable, uint32_t& storage) const;
    void guard(Instruction atomic, const std::vector<Bound>& bounds, uint32_t variable, uint32_t storage);
    [[nodiscard]] uint32_t within(const Bound& bound, uint32_t variable, uint32_t storage);
    void copy_block(std::span<const Instruction> block);
    void name_predecessors(std::vector<uint32_t>& body) const;

    [[nodiscard]] std::optional<uint64_t> fixed(uint32_t id) const {
        const uint32_t op = module_.find(id).op();
        if (op != spv::OpConstant && op != spv::OpConstantNull) return std::nullopt;
        return constants_.integer(id);
    }
    // A 32-bit unsigned integer, a bool or a pointer: the module's, or one that is added to it.
    [[nodiscard]] uint32_t type(std::initializer_list<uint32_t> declaration);
    [[nodiscard]] uint32_t null_of(uint32_t type);
    void emit(uint32_t op, std::initializer_list<uint32_t> operands) { put(made_, op, operands); }
    static void put(std::vector<uint32_t>& into, uint32_t op, std::initializer_list<uint32_t> operands) {
        into.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | op);
        into.insert(into.end(), operands);
    }
    void copy(Instruction instruction) {
        for (uint32_t i = 0; i < instruction.size(); ++i) made_.push_back(instruction[i]);
    }

    std::span<const uint32_t> words_;
    Module module_;
    Constants constants_;
    uint32_t next_id_;
    std::map<std::vector<uint32_t>, uint32_t> added_types_;
    std::map<uint32_t, uint32_t> nulls_;
    std::map<std::pair<uint32_t, uint64_t>, uint32_t> numbers_;
    std::map<uint32_t, uint32_t>
        last_part_;  // of a block that was split: its label -> the label of its last part
    std::vector<uint32_t> globals_;
    std::vector<uint32_t> made_;
    uint32_t label_ = 0;  // of the block that is being copied
    uint32_t part_ = 0;   // of its part that is being written
    bool changed_ = false;
};

uint32_t Guard::type(std::initializer_list<uint32_t> declaration) {
    const std::vector<uint32_t> wanted(declaration);
    for (const Instruction global : module_.globals) {
        if (global.op() != wanted[0] || global.size() != wanted.size() + 1) continue;
        bool same = true;
        for (uint32_t i = 1; i < wanted.size(); ++i) same = same && global[i + 1] == wanted[i];
        if (same) return global[1];
    }
    const auto [entry, added] = added_types_.try_emplace(wanted, next_id_);
    if (added) {
        globals_.push_back(static_cast<uint32_t>(wanted.size() + 1) << 16 | wanted[0]);
        globals_.push_back(next_id_++);
        globals_.insert(globals_.end(), wanted.begin() + 1, wanted.end());
    }
    return entry->second;
}

uint32_t Guard::null_of(uint32_t type) {
    const auto [entry, added] = nulls_.try_emplace(type, next_id_);
    if (added) put(globals_, spv::OpConstantNull, {type, next_id_++});
    return entry->second;
}

// The bounds of the indices in the access chains that make the pointer; empty if it does not point into a
// buffer variable.
std::vector<Bound> Guard::bounds_of(uint32_t pointer, uint32_t& variable, uint32_t& storage) const {
    std::vector<uint32_t> indices;
    Instruction made = module_.find(pointer);
    for (size_t depth = 0; made.op() != spv::OpVariable; ++depth) {
        if (depth == deepest) return {};
        if (made.op() == spv::OpAccessChain || made.op() == spv::OpInBoundsAccessChain) {
            std::vector<uint32_t> outer;
            for (uint32_t i = 4; i < made.size(); ++i) outer.push_back(made[i]);
            indices.insert(indices.begin(), outer.begin(), outer.end());
        } else if (made.op() != spv::OpCopyObject) {
            return {};
        }
        made = module_.find(made[3]);
    }
    variable = made[2];
    storage = made[3];
    if (storage != spv::StorageClassStorageBuffer && storage != spv::StorageClassUniform) return {};
    std::vector<Bound> bounds;
    uint32_t type = module_.find(made[1])[3];
    for (size_t i = 0; i < indices.size(); ++i) {
        const Instruction outer = module_.find(type);
        switch (outer.op()) {
        case spv::OpTypeStruct: {
            const auto member = fixed(indices[i]);
            if (!member || *member + 2 >= outer.size()) return {};
            type = outer[static_cast<uint32_t>(*member) + 2];
            if (i + 1 < indices.size() && module_.find(type).op() == spv::OpTypeRuntimeArray) {
                const auto end = indices.begin() + static_cast<ptrdiff_t>(i);
                bounds.push_back(
                    {indices[i + 1], 0, {indices.begin(), end}, outer[1], static_cast<uint32_t>(*member)});
            }
            break;
        }
        case spv::OpTypeArray: {
            const auto number = fixed(outer[3]);
            const auto index = fixed(indices[i]);
            if (number && !(index && *index < *number)) bounds.push_back({indices[i], *number, {}, 0, 0});
            type = outer[2];
            break;
        }
        case spv::OpTypeRuntimeArray:
        case spv::OpTypeVector: type = outer[2]; break;
        default: return {};
        }
    }
    std::erase_if(bounds, [&](const Bound& bound) {
        return module_.find(module_.type_of(bound.index)).op() != spv::OpTypeInt;
    });
    return bounds;
}

// Tests if the index is below its bound; returns the id of a bool. A negative index is beyond every bound.
uint32_t Guard::within(const Bound& bound, uint32_t variable, uint32_t storage) {
    const Instruction own = module_.find(module_.type_of(bound.index));
    const uint32_t width = std::max(own[2], 32u);
    const uint32_t number_type = type({spv::OpTypeInt, width, 0});
    uint32_t index = bound.index;
    if (own[2] < width) {
        const uint32_t wide = own[3] ? type({spv::OpTypeInt, width, 1}) : number_type;
        emit(own[3] ? spv::OpSConvert : spv::OpUConvert, {wide, next_id_, index});
        index = next_id_++;
    }
    uint32_t length = 0;
    if (bound.block_type == 0) {
        const auto [entry, added] = numbers_.try_emplace({number_type, bound.number}, next_id_);
        if (added) {
            const auto low = static_cast<uint32_t>(bound.number);
            if (width > 32)
                put(globals_, spv::OpConstant,
                    {number_type, next_id_++, low, static_cast<uint32_t>(bound.number >> 32)});
            else
                put(globals_, spv::OpConstant, {number_type, next_id_++, low});
        }
        length = entry->second;
    } else {
        uint32_t block = variable;
        if (!bound.block.empty()) {
            const uint32_t pointer = type({spv::OpTypePointer, storage, bound.block_type});
            made_.push_back(static_cast<uint32_t>(bound.block.size() + 4) << 16 | spv::OpAccessChain);
            made_.insert(made_.end(), {pointer, next_id_, variable});
            made_.insert(made_.end(), bound.block.begin(), bound.block.end());
            block = next_id_++;
        }
        const uint32_t word = type({spv::OpTypeInt, 32, 0});
        emit(spv::OpArrayLength, {word, next_id_, block, bound.member});
        length = next_id_++;
        if (width > 32) {
            emit(spv::OpUConvert, {number_type, next_id_, length});
            length = next_id_++;
        }
    }
    emit(spv::OpULessThan, {type({spv::OpTypeBool}), next_id_, index, length});
    return next_id_++;
}

void Guard::guard(Instruction atomic, const std::vector<Bound>& bounds, uint32_t variable, uint32_t storage) {
    changed_ = true;
    const uint32_t boolean = type({spv::OpTypeBool});
    uint32_t good = 0;
    for (const Bound& bound : bounds) {
        const uint32_t each = within(bound, variable, storage);
        if (good != 0) emit(spv::OpLogicalAnd, {boolean, next_id_, good, each});
        good = good != 0 ? next_id_++ : each;
    }
    const uint32_t taken = next_id_++;
    const uint32_t after = next_id_++;
    emit(spv::OpSelectionMerge, {after, 0});
    emit(spv::OpBranchConditional, {good, taken, after});
    emit(spv::OpLabel, {taken});
    const uint32_t result = atomic.result();
    if (result == 0) {
        copy(atomic);
    } else {
        const uint32_t inner = next_id_++;
        for (uint32_t i = 0; i < atomic.size(); ++i) made_.push_back(i == 2 ? inner : atomic[i]);
        emit(spv::OpBranch, {after});
        emit(spv::OpLabel, {after});
        emit(spv::OpPhi, {atomic.type(), result, inner, taken, null_of(atomic.type()), part_});
        part_ = after;
        return;
    }
    emit(spv::OpBranch, {after});
    emit(spv::OpLabel, {after});
    part_ = after;
}

// Copies a block, from its label to its terminator.
void Guard::copy_block(std::span<const Instruction> block) {
    label_ = part_ = block.front()[1];
    const Instruction end = block.back();
    const Instruction merge = block.size() > 2 ? block[block.size() - 2] : Instruction();
    const bool loop = merge.op() == spv::OpLoopMerge;
    bool cuttable = true;
    if (loop) {
        // The loop's merge instruction stays in its first block; the rest of the block moves into the loop.
        const bool leaves = end.op() == spv::OpBranch || (end.op() == spv::OpBranchConditional &&
                                                          (end[2] == merge[1] || end[3] == merge[1]));
        cuttable = leaves && merge[2] != label_;
    }
    bool moved = false;
    const auto move_into_loop = [&] {
        moved = true;
        const uint32_t rest = next_id_++;
        copy(merge);
        emit(spv::OpBranch, {rest});
        emit(spv::OpLabel, {rest});
        part_ = rest;
    };
    for (const Instruction instruction : block) {
        if (moved && instruction.op() == spv::OpLoopMerge) continue;
        std::vector<Bound> bounds;
        uint32_t variable = 0;
        uint32_t storage = 0;
        if (cuttable && is_atomic(instruction.op()))
            bounds =
                bounds_of(instruction[instruction.op() == spv::OpAtomicStore ? 1 : 3], variable, storage);
        if (bounds.empty()) {
            copy(instruction);
            continue;
        }
        if (loop && !moved) move_into_loop();
        guard(instruction, bounds, variable, storage);
    }
    if (part_ != label_) last_part_[label_] = part_;
}

// A block that was split ends in another block than it starts in. OpPhi must name the block that it is
// reached from.
void Guard::name_predecessors(std::vector<uint32_t>& body) const {
    for (size_t at = 0; at < body.size(); at += body[at] >> 16) {
        if ((body[at] & 0xFFFFu) != spv::OpPhi) continue;
        // An OpPhi that guard() made already names the right blocks: its own parts, or the block's start
        // before the first split.
        const bool own = body[at + 2] < words_[bound_word] && is_atomic(module_.find(body[at + 2]).op());
        for (size_t i = at + 4; !own && i < at + (body[at] >> 16); i += 2)
            if (const auto found = last_part_.find(body[i]); found != last_part_.end())
                body[i] = found->second;
    }
}

std::vector<uint32_t> Guard::run() {
    std::vector<uint32_t> head;
    std::vector<Instruction> block;
    made_.assign(words_.begin(), words_.begin() + header_words);
    for (size_t offset = header_words; offset < words_.size(); offset += words_[offset] >> 16) {
        const Instruction instruction(words_.subspan(offset, words_[offset] >> 16));
        const uint32_t op = instruction.op();
        if (op == spv::OpFunction && head.empty()) head.swap(made_);
        if (op == spv::OpLabel) block.clear();
        const bool inside = op == spv::OpLabel || !block.empty();
        if (!inside) {
            copy(instruction);
            continue;
        }
        block.push_back(instruction);
        if (op == spv::OpBranch || op == spv::OpBranchConditional || op == spv::OpSwitch ||
            op == spv::OpReturn || op == spv::OpReturnValue || op == spv::OpKill ||
            op == spv::OpUnreachable || op == spv::OpTerminateInvocation) {
            copy_block(block);
            block.clear();
        }
    }
    if (!changed_ || !block.empty()) return {};
    name_predecessors(made_);
    std::vector<uint32_t> words = std::move(head);
    words.insert(words.end(), globals_.begin(), globals_.end());
    words.insert(words.end(), made_.begin(), made_.end());
    words[bound_word] = next_id_;
    return words;
}

}  // namespace

std::vector<uint32_t> guarded_atomics(std::span<const uint32_t> words) {
    const Module module(words);
    for (const spirv::Function& function : module.functions())
        for (const Instruction instruction : function.body)
            if (is_atomic(instruction.op())) return Guard(words).run();
    return {};
}

}  // namespace kp
