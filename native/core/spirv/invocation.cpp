// Follows each component of a built-in number from its loads to the instructions that use it. Vectors are
// followed as far as they are only taken apart, put into another order or changed by component; beyond that
// all of their components count as used.
#include "spirv/invocation.hpp"

#include "spirv/constants.hpp"
#include "spirv/module.hpp"
#include "spirv/operands.hpp"
#include "spirv/reflect.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

namespace kp {
namespace {

using spirv::Constants;
using spirv::Instruction;
using spirv::Module;

constexpr uint32_t deepest = 64;
constexpr uint8_t of_block = 8;  // beside the bits of the axes: the group's whole size

// For each component of a value, the axis of the number that it is made of, or none, and the sizes that its
// factor reaches: a bit for each axis, and `of_block`.
constexpr int8_t none = -1;
struct Component {
    int8_t axis = none;
    uint8_t reached = 0;

    friend auto operator<=>(const Component&, const Component&) = default;
};
using Parts = std::array<Component, 4>;

class Follower {
public:
    Follower(const Module& module, const Constants& constants, uint32_t entry,
             const std::array<uint32_t, 3>& local_size)
        : module_(module), constants_(constants), local_size_(local_size) {
        for (const spirv::Function* function : call_tree(module, entry))
            for (const Instruction instruction : function->body)
                for (uint32_t i = 1; i < instruction.size(); ++i)
                    if (instruction[i] != instruction.result() && !is_literal(instruction, i))
                        users_[instruction[i]].push_back(instruction);
    }

    // Adds the use of a built-in variable.
    void follow(uint32_t variable, uint8_t& used, uint8_t* alone = nullptr, uint8_t* below_block = nullptr) {
        used_ = alone_ = below_block_ = 0;
        seen_.clear();
        const uint8_t once = reached(1);
        Parts parts{};
        const Instruction pointer = module_.find(module_.type_of(variable));
        const bool vector =
            pointer.op() == spv::OpTypePointer && module_.find(pointer[3]).op() == spv::OpTypeVector;
        for (int8_t axis = 0; axis < (vector ? 3 : 1); ++axis)
            parts[static_cast<size_t>(axis)] = {axis, once};
        follow_pointer(variable, parts);
        used |= used_;
        if (alone) *alone |= alone_;
        if (below_block) *below_block |= below_block_;
    }

private:
    static bool is_literal(Instruction instruction, uint32_t i) {
        switch (const uint32_t op = instruction.op(); op) {
        case spv::OpCompositeExtract:
        case spv::OpLoad: return i > 3;
        case spv::OpVectorShuffle:
        case spv::OpCompositeInsert: return i > 4;
        case spv::OpExtInst: return i == 4;
        case spv::OpStore:
        case spv::OpCopyMemory: return i > 2;
        case spv::OpSwitch: return i > 1;
        case spv::OpLine:
        case spv::OpSelectionMerge:
        case spv::OpLoopMerge: return true;
        default: return i == spirv::mask_index(op);
        }
    }
    [[nodiscard]] uint32_t components(uint32_t id) const {
        const Instruction type = module_.find(module_.type_of(id));
        return type.op() == spv::OpTypeVector ? std::min(type[3], 4u) : 1;
    }
    [[nodiscard]] uint8_t reached(uint64_t factor) const {
        if (factor > INT32_MAX) return 0;  // negative
        uint8_t sizes = factor >= uint64_t{local_size_[0]} * local_size_[1] * local_size_[2] ? of_block : 0;
        for (uint32_t axis = 0; axis < 3; ++axis)
            if (factor >= local_size_[axis]) sizes |= static_cast<uint8_t>(1u << axis);
        return sizes;
    }
    void use(const Parts& parts) {
        for (const Component& part : parts) {
            if (part.axis == none) continue;
            const auto bit = static_cast<uint8_t>(1u << part.axis);
            used_ |= bit;
            if ((part.reached & bit) == 0) alone_ |= bit;
            if ((part.reached & of_block) == 0) below_block_ |= bit;
        }
    }

    void follow_pointer(uint32_t pointer, const Parts& parts) {
        for (const Instruction user : users_[pointer]) {
            if (is_remark(user) || (user.op() == spv::OpStore && user[1] == pointer)) continue;
            const bool chain = spirv::is_chain(user.op());
            const auto index = chain && user.size() == 5 ? constants_.integer(user[4]) : std::nullopt;
            if (user.op() == spv::OpLoad)
                follow_value(user[2], parts, 0);
            else if (index && *index < 4)
                follow_pointer(user[2], {parts[*index]});
            else
                use(parts);
        }
    }

    void follow_value(uint32_t id, const Parts& parts, uint32_t depth) {
        if (parts == Parts{} || !seen_.insert({id, parts}).second) return;
        if (depth > deepest) return use(parts);
        for (const Instruction user : users_[id]) follow_use(user, id, parts, depth + 1);
    }

    // Messages and debug information compute nothing.
    [[nodiscard]] bool is_remark(Instruction user) const {
        if (user.op() != spv::OpExtInst) return false;
        const auto set = module_.instruction_sets.find(user[3]);
        return set != module_.instruction_sets.end() && set->second.starts_with("NonSemantic.");
    }

    void follow_use(Instruction user, uint32_t id, Parts parts, uint32_t depth) {
        const uint32_t op = user.op();
        if (is_remark(user)) return;
        if (op == spv::OpStore && module_.find(user[1]).op() == spv::OpVariable &&
            module_.storage_class(module_.type_of(user[1])) == uint32_t{spv::StorageClassFunction})
            return follow_pointer(user[1], parts);
        const bool vector = components(id) > 1;
        if (op == spv::OpCompositeExtract && vector)
            return follow_value(user[2], {parts[std::min(user[4], 3u)]}, depth);
        if (op == spv::OpVectorShuffle) {
            const uint32_t first = components(user[3]);
            Parts made{};
            for (uint32_t i = 5; i < user.size() && i < 9; ++i) {
                const uint32_t from = user[i] < first ? user[i] : user[i] - first;
                if (user[user[i] < first ? 3 : 4] == id && from < 4) made[i - 5] = parts[from];
            }
            return follow_value(user[2], made, depth);
        }
        const bool keeps = op == spv::OpExtInst ? vector && spirv::by_component_of_glsl(user[4])
                                                : spirv::by_component(op) || op == spv::OpIMul;
        if (!keeps || components(user[2]) != components(id)) return use(parts);
        if (op == spv::OpIMul || op == spv::OpShiftLeftLogical) {
            const bool shift = op == spv::OpShiftLeftLogical;
            const spirv::ConstantValue* by =
                shift && user[4] == id ? nullptr : constants_.find(user[3] == id ? user[4] : user[3]);
            for (uint32_t i = 0; i < 4 && by; ++i) {
                const uint64_t bits = by->bits[by->type.count > 1 ? i : 0];
                parts[i].reached |= reached(!shift ? bits : bits < 31 ? uint64_t{1} << bits : 0);
            }
            if (!by && !vector) return use(parts);
        } else if (!vector && op != spv::OpBitcast && op != spv::OpUConvert && op != spv::OpSConvert &&
                   op != spv::OpCopyObject) {
            return use(parts);
        }
        for (Component& part : parts)
            if (part.axis == none) part = {};
        follow_value(user[2], parts, depth);
    }

    const Module& module_;
    const Constants& constants_;
    std::array<uint32_t, 3> local_size_;
    std::unordered_map<uint32_t, std::vector<Instruction>> users_;
    std::set<std::pair<uint32_t, Parts>> seen_;
    uint8_t used_ = 0, alone_ = 0, below_block_ = 0;
};

}  // namespace

InvocationUse invocation_use(std::span<const uint32_t> words, const std::string& entry,
                             std::span<const SpecValue> specialization) {
    const ShaderInfo info = reflect(words, entry, specialization);
    const Module module(words);
    const Constants constants(module, specialization);
    InvocationUse use;
    for (const auto& point : module.entry_points) {
        if (point.model != spv::ExecutionModelGLCompute || point.name != info.entry) continue;
        Follower follower(module, constants, point.function, info.local_size);
        for (const Instruction variable : module.globals) {
            if (variable.op() != spv::OpVariable || variable[3] != spv::StorageClassInput) continue;
            uint8_t index = 0;
            switch (module.decoration(variable[2], spv::DecorationBuiltIn).value_or(~0u)) {
            case spv::BuiltInGlobalInvocationId: follower.follow(variable[2], use.global); break;
            case spv::BuiltInWorkgroupId:
                follower.follow(variable[2], use.group, &use.group_alone, &use.group_below_block);
                break;
            case spv::BuiltInLocalInvocationId: follower.follow(variable[2], use.local); break;
            case spv::BuiltInNumWorkgroups: follower.follow(variable[2], use.group_count); break;
            case spv::BuiltInLocalInvocationIndex:
            case spv::BuiltInSubgroupId:
            case spv::BuiltInNumSubgroups:
            case spv::BuiltInSubgroupLocalInvocationId: follower.follow(variable[2], index); break;
            default: break;
            }
            use.local_index = use.local_index || index != 0;
        }
        break;
    }
    return use;
}

}  // namespace kp
