#include "instruments/instrumenter.hpp"

namespace kp {

uint32_t Instrumenter::within(Code& into, const Check& check, uint32_t index, uint32_t root,
                              uint32_t& length) {
    if (check.length == UINT32_MAX)
        length = builder_.uint_constant(static_cast<uint32_t>(*check.number));
    else if (check.length != 0)
        length = as_word(into, check.length, module_.find(module_.type_of(check.length)));
    else
        length = builder_.value(into, spv::OpArrayLength, builder_.uint_type(), {root, check.member});
    return builder_.value(into, spv::OpULessThan, builder_.bool_type(), {index, length});
}

uint32_t Instrumenter::accessor(Instruction instruction, const PointerAccess& access, const Path& path,
                                uint32_t site, std::vector<uint32_t>& arguments) {
    const uint32_t uint = builder_.uint_type();
    const uint32_t boolean = builder_.bool_type();
    const uint32_t result = instruction.result();
    const uint32_t type = result != 0 ? instruction.type() : builder_.void_type();
    std::vector<uint32_t> signature{type};
    std::map<uint32_t, uint32_t> here;  // ids of the caller -> of this function
    Code parameters;
    const auto take = [&](uint32_t id) {
        if (globals_.contains(id)) return id;
        const auto [entry, added] = here.try_emplace(id, 0);
        if (added) {
            entry->second = builder_.id();
            signature.push_back(module_.type_of(id));
            arguments.push_back(id);
            parameters.emit(spv::OpFunctionParameter, {signature.back(), entry->second});
        }
        return entry->second;
    };
    const uint32_t root = take(path.root);
    std::vector<uint32_t> indices{root};
    for (const uint32_t index : path.indices) indices.push_back(take(index));
    std::vector<uint32_t> operands;
    for (uint32_t i = 1; i < instruction.size(); ++i) operands.push_back(instruction[i]);
    for (const uint32_t position : access.values) operands[position - 1] = take(operands[position - 1]);

    Code code;
    const uint32_t function = builder_.id();
    code.emit(spv::OpFunction,
              {type, function, spv::FunctionControlMaskNone, builder_.type(spv::OpTypeFunction, signature)});
    code.append(parameters);
    code.emit(spv::OpLabel, {builder_.id()});
    uint32_t good = 0, bad_index = 0, bad_length = 0;
    for (size_t i = path.checks.size(); i-- > 0;) {
        const Check& check = path.checks[i];
        const Instruction own = module_.find(module_.type_of(check.index));
        const uint32_t given = globals_.contains(check.index) ? check.index : here.at(check.index);
        const uint32_t index = as_word(code, given, own);
        uint32_t length = 0;
        const uint32_t fits = within(code, check, index, root, length);
        if (good == 0) {
            good = fits;
            bad_index = index;
            bad_length = length;
            continue;
        }
        bad_index = builder_.value(code, spv::OpSelect, uint, {fits, bad_index, index});
        bad_length = builder_.value(code, spv::OpSelect, uint, {fits, bad_length, length});
        good = builder_.value(code, spv::OpLogicalAnd, boolean, {fits, good});
    }
    const uint32_t inside = builder_.id(), outside = builder_.id(), end = builder_.id();
    code.emit(spv::OpSelectionMerge, {end, spv::SelectionControlMaskNone});
    code.emit(spv::OpBranchConditional, {good, inside, outside});
    code.emit(spv::OpLabel, {inside});
    const uint32_t pointer_type = module_.type_of(instruction[access.pointer]);
    operands[access.pointer - 1] = builder_.value(code, spv::OpAccessChain, pointer_type, indices);
    const uint32_t made = result != 0 ? builder_.id() : 0;
    if (made != 0) operands[1] = made;
    code.emit(instruction.op(), operands);
    code.emit(spv::OpBranch, {end});
    code.emit(spv::OpLabel, {outside});
    report(code, site, {bad_index, bad_length});
    code.emit(spv::OpBranch, {end});
    code.emit(spv::OpLabel, {end});
    if (made != 0)
        code.emit(spv::OpReturnValue,
                  {builder_.value(code, spv::OpPhi, type, {made, inside, builder_.null(type), outside})});
    else
        code.emit(spv::OpReturn, {});
    code.emit(spv::OpFunctionEnd, {});
    builder_.functions.append(code);
    return function;
}

bool Instrumenter::check(Instruction instruction, Code& into) {
    if (!wanted_.bounds) return false;
    const auto access = access_of(instruction);
    if (!access) return false;
    const auto path = path_of(instruction[access->pointer]);
    if (!path || path->checks.empty() || sites_.size() >= most_sites) return false;
    make_buffer();
    const uint32_t site = new_site(DebugSite::Kind::bounds, path->text);
    sites_[site].arguments = std::string{access->kind, is_signed(path->checks.front().index) ? 'i' : 'u'};
    std::vector<uint32_t> arguments;
    const uint32_t function = accessor(instruction, *access, *path, site, arguments);
    const uint32_t result = instruction.result();
    std::vector<uint32_t> call{result != 0 ? instruction.type() : builder_.void_type(),
                               result != 0 ? result : builder_.id(), function};
    call.insert(call.end(), arguments.begin(), arguments.end());
    into.emit(spv::OpFunctionCall, call);
    return true;
}

}  // namespace kp
