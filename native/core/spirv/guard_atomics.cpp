#include "spirv/guard_atomics.hpp"

#include "spirv/builder.hpp"
#include "spirv/constants.hpp"
#include "spirv/module.hpp"
#include "spirv/operands.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>

namespace kp {
namespace {

using spirv::atomic_access;
using spirv::bound_word;
using spirv::Builder;
using spirv::Code;
using spirv::Constants;
using spirv::header_words;
using spirv::Instruction;
using spirv::is_chain;
using spirv::Module;

constexpr size_t deepest = 16;  // the most access chains upon access chains

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
        : words_(words), module_(words), constants_(module_), builder_(module_, words[bound_word]) {}

    std::vector<uint32_t> run();

private:
    [[nodiscard]] std::vector<Bound> bounds_of(uint32_t pointer, uint32_t& variable, uint32_t& storage) const;
    void guard(Instruction atomic, const std::vector<Bound>& bounds, uint32_t variable, uint32_t storage);
    [[nodiscard]] uint32_t within(const Bound& bound, uint32_t variable, uint32_t storage);
    void copy_block(std::span<const Instruction> block);
    void name_predecessors(std::vector<uint32_t>& body) const;

    std::span<const uint32_t> words_;
    Module module_;
    Constants constants_;
    Builder builder_;
    std::map<uint32_t, uint32_t>
        last_part_;  // of a block that was split: its label -> the label of its last part
    Code made_;
    uint32_t label_ = 0;  // of the block that is being copied
    uint32_t part_ = 0;   // of its part that is being written
    bool changed_ = false;
};

// The bounds of the indices in the access chains that make the pointer; empty if it does not point into a
// buffer variable.
std::vector<Bound> Guard::bounds_of(uint32_t pointer, uint32_t& variable, uint32_t& storage) const {
    std::vector<uint32_t> indices;
    Instruction made = module_.find(pointer);
    for (size_t depth = 0; made.op() != spv::OpVariable; ++depth) {
        if (depth == deepest) return {};
        if (is_chain(made.op())) {
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
            const auto member = constants_.fixed(indices[i]);
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
            const auto number = constants_.fixed(outer[3]);
            const auto index = constants_.fixed(indices[i]);
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
    const uint32_t number_type = builder_.type(spv::OpTypeInt, {width, 0});
    uint32_t index = bound.index;
    if (own[2] < width) {
        const uint32_t wide = own[3] ? builder_.type(spv::OpTypeInt, {width, 1}) : number_type;
        index = builder_.value(made_, own[3] ? spv::OpSConvert : spv::OpUConvert, wide, {index});
    }
    uint32_t length = 0;
    if (bound.block_type == 0) {
        length = builder_.number(number_type, width, bound.number);
    } else {
        uint32_t block = variable;
        if (!bound.block.empty()) {
            std::vector<uint32_t> operands{variable};
            operands.insert(operands.end(), bound.block.begin(), bound.block.end());
            const auto to = static_cast<spv::StorageClass>(storage);
            block =
                builder_.value(made_, spv::OpAccessChain, builder_.pointer(to, bound.block_type), operands);
        }
        length = builder_.value(made_, spv::OpArrayLength, builder_.uint_type(), {block, bound.member});
        if (width > 32) length = builder_.value(made_, spv::OpUConvert, number_type, {length});
    }
    return builder_.value(made_, spv::OpULessThan, builder_.bool_type(), {index, length});
}

void Guard::guard(Instruction atomic, const std::vector<Bound>& bounds, uint32_t variable, uint32_t storage) {
    changed_ = true;
    uint32_t good = 0;
    for (const Bound& bound : bounds) {
        const uint32_t each = within(bound, variable, storage);
        good =
            good == 0 ? each : builder_.value(made_, spv::OpLogicalAnd, builder_.bool_type(), {good, each});
    }
    const uint32_t taken = builder_.id();
    const uint32_t after = builder_.id();
    made_.emit(spv::OpSelectionMerge, {after, 0});
    made_.emit(spv::OpBranchConditional, {good, taken, after});
    made_.emit(spv::OpLabel, {taken});
    const uint32_t result = atomic.result();
    if (result == 0) {
        made_.copy(atomic);
    } else {
        const uint32_t inner = builder_.id();
        made_.copy(atomic);
        made_.words()[made_.words().size() - atomic.size() + 2] = inner;
        made_.emit(spv::OpBranch, {after});
        made_.emit(spv::OpLabel, {after});
        made_.emit(spv::OpPhi, {atomic.type(), result, inner, taken, builder_.null(atomic.type()), part_});
        part_ = after;
        return;
    }
    made_.emit(spv::OpBranch, {after});
    made_.emit(spv::OpLabel, {after});
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
        const uint32_t rest = builder_.id();
        made_.copy(merge);
        made_.emit(spv::OpBranch, {rest});
        made_.emit(spv::OpLabel, {rest});
        part_ = rest;
    };
    for (const Instruction instruction : block) {
        if (moved && instruction.op() == spv::OpLoopMerge) continue;
        std::vector<Bound> bounds;
        uint32_t variable = 0;
        uint32_t storage = 0;
        if (cuttable && atomic_access(instruction.op()))
            bounds =
                bounds_of(instruction[instruction.op() == spv::OpAtomicStore ? 1 : 3], variable, storage);
        if (bounds.empty()) {
            made_.copy(instruction);
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
        const bool own = body[at + 2] < words_[bound_word] && atomic_access(module_.find(body[at + 2]).op());
        for (size_t i = at + 4; !own && i < at + (body[at] >> 16); i += 2)
            if (const auto found = last_part_.find(body[i]); found != last_part_.end())
                body[i] = found->second;
    }
}

std::vector<uint32_t> Guard::run() {
    Code head;
    std::vector<Instruction> block;
    made_ = Code(words_.first(header_words));
    for (size_t offset = header_words; offset < words_.size(); offset += words_[offset] >> 16) {
        const Instruction instruction(words_.subspan(offset, words_[offset] >> 16));
        const uint32_t op = instruction.op();
        if (op == spv::OpFunction && head.empty()) std::swap(head, made_);
        if (op == spv::OpLabel) block.clear();
        const bool inside = op == spv::OpLabel || !block.empty();
        if (!inside) {
            made_.copy(instruction);
            continue;
        }
        block.push_back(instruction);
        if (spirv::ends_block(op)) {
            copy_block(block);
            block.clear();
        }
    }
    if (!changed_ || !block.empty()) return {};
    name_predecessors(made_.words());
    return builder_.joined(head, made_);
}

}  // namespace

std::vector<uint32_t> guarded_atomics(std::span<const uint32_t> words) {
    const Module module(words);
    for (const spirv::Function& function : module.functions())
        for (const Instruction instruction : function.body)
            if (atomic_access(instruction.op())) return Guard(words).run();
    return {};
}

}  // namespace kp
