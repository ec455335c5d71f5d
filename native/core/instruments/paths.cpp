#include "instruments/instrumenter.hpp"
#include "spirv/operands.hpp"

#include <utility>

namespace kp {

std::optional<PointerAccess> Instrumenter::access_of(Instruction instruction) {
    const uint32_t op = instruction.op();
    if (op == spv::OpLoad) return PointerAccess{3, {}, 'r'};
    if (op == spv::OpStore) return PointerAccess{1, {2}, 'w'};
    if (op == spv::OpAtomicStore) return PointerAccess{1, {2, 3, 4}, 'a'};
    if (!spirv::atomic_access(op)) return std::nullopt;
    PointerAccess access{3, {}, 'a'};
    for (uint32_t i = 4; i < instruction.size(); ++i) access.values.push_back(i);
    return access;
}

bool Instrumenter::is_signed(uint32_t id) const {
    const Instruction type = module_.find(module_.type_of(id));
    return type.op() == spv::OpTypeInt && type[3] != 0;
}

std::optional<Path> Instrumenter::path_of(uint32_t pointer) const {
    Path path;
    Instruction made = module_.find(pointer);
    // An invalid module, which nobody checked, may have a chain that leads to itself.
    constexpr uint32_t deepest = 256;
    for (uint32_t depth = 0; spirv::is_chain(made.op()); ++depth) {
        if (depth == deepest) return std::nullopt;
        std::vector<uint32_t> indices;
        for (uint32_t i = 4; i < made.size(); ++i) indices.push_back(made[i]);
        path.indices.insert(path.indices.begin(), indices.begin(), indices.end());
        made = module_.find(made[3]);
    }
    if (made.op() != spv::OpVariable && made.op() != spv::OpFunctionParameter) return std::nullopt;
    path.root = made[2];
    const auto storage = module_.storage_class(made[1]);
    if (!storage || *storage >= spv::StorageClassMax) return std::nullopt;
    path.storage = static_cast<spv::StorageClass>(*storage);
    return read_types(path) ? std::optional(std::move(path)) : std::nullopt;
}

bool Instrumenter::read_types(Path& path) const {
    switch (path.storage) {
    case spv::StorageClassUniform:
    case spv::StorageClassStorageBuffer:
    case spv::StorageClassWorkgroup:
    case spv::StorageClassPrivate:
    case spv::StorageClassFunction:
    case spv::StorageClassPushConstant: break;
    default: return false;
    }
    const bool in_buffer =
        path.storage == spv::StorageClassUniform || path.storage == spv::StorageClassStorageBuffer;
    Instruction type = module_.find(module_.find(module_.type_of(path.root))[3]);
    if (in_buffer && type.op() != spv::OpTypeStruct) return false;  // an array of descriptors
    path.text = module_.name(path.root);
    for (size_t i = 0; i < path.indices.size(); ++i) {
        const uint32_t index = path.indices[i];
        switch (type.op()) {
        case spv::OpTypeStruct: {
            const auto member = constants_.fixed(index);
            if (!member || *member + 2 >= type.size()) return false;
            const std::string& name = module_.member_name(type[1], static_cast<uint32_t>(*member));
            if (!name.empty()) path.text += (path.text.empty() ? "" : ".") + name;
            const Instruction next = module_.find(type[static_cast<uint32_t>(*member) + 2]);
            if (next.op() == spv::OpTypeRuntimeArray && i + 1 < path.indices.size()) {
                if (i != 0) return false;
                path.checks.push_back({path.indices[i + 1], 0, std::nullopt, static_cast<uint32_t>(*member)});
            }
            type = next;
            break;
        }
        case spv::OpTypeArray:
            path.checks.push_back({index, type[3], constants_.fixed(type[3]), 0});
            path.text += "[]";
            path.shown.push_back(index);
            type = module_.find(type[2]);
            break;
        case spv::OpTypeVector:
        case spv::OpTypeMatrix: {
            Check check{index, 0, uint64_t{type[3]}, 0};
            check.length = UINT32_MAX;  // a literal
            path.checks.push_back(check);
            path.text += "[]";
            path.shown.push_back(index);
            type = module_.find(type[2]);
            break;
        }
        case spv::OpTypeRuntimeArray:
            path.text += "[]";
            path.shown.push_back(index);
            type = module_.find(type[2]);
            break;
        default: return false;
        }
    }
    std::erase_if(path.checks, [&](const Check& check) {
        const auto index = constants_.fixed(check.index);
        return check.number && index && *index < *check.number;
    });
    for (const Check& check : path.checks) {
        const Instruction index = module_.find(module_.type_of(check.index));
        if (index.op() != spv::OpTypeInt || index[2] > 64) return false;
    }
    return true;
}

uint32_t Instrumenter::as_word(Code& into, uint32_t integer, Instruction type) {
    const uint32_t uint = builder_.uint_type();
    if (type[2] == 32) return type[3] ? builder_.value(into, spv::OpBitcast, uint, {integer}) : integer;
    if (type[2] < 32) {
        const uint32_t wide = type[3] ? builder_.type(spv::OpTypeInt, {32, 1}) : uint;
        const uint32_t made =
            builder_.value(into, type[3] ? spv::OpSConvert : spv::OpUConvert, wide, {integer});
        return type[3] ? builder_.value(into, spv::OpBitcast, uint, {made}) : made;
    }
    const uint32_t pair =
        builder_.value(into, spv::OpBitcast, builder_.type(spv::OpTypeVector, {uint, 2}), {integer});
    const uint32_t low = builder_.value(into, spv::OpCompositeExtract, uint, {pair, 0});
    const uint32_t high = builder_.value(into, spv::OpCompositeExtract, uint, {pair, 1});
    const uint32_t is_small =
        builder_.value(into, spv::OpIEqual, builder_.bool_type(), {high, builder_.uint_constant(0)});
    return builder_.value(into, spv::OpSelect, uint, {is_small, low, builder_.uint_constant(UINT32_MAX)});
}

}  // namespace kp
