// Indices: an access outside of an array does nothing, and is noted. Drivers inline the code of each check,
// and the code of a report is long, so there is one, at the end of the entry point.
#include "instruments/instrumenter.hpp"

#include <utility>

namespace kp {

// What an invocation keeps of its faults at some places of the shader.
enum Fault : uint32_t { times, where, index_used, length_found, fault_words };
constexpr size_t most_kept = 16;

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

uint32_t Instrumenter::passed_as(uint32_t id) {
    const Instruction type = module_.find(id);
    switch (type.op()) {
    case spv::OpTypeInt:
        if (type[2] >= 32 || has(type[2] == 8 ? spv::CapabilityInt8 : spv::CapabilityInt16)) return id;
        return builder_.type(spv::OpTypeInt, {32, type[3]});
    case spv::OpTypeFloat:
        if (type[2] != 16 || type.size() != 3 || has(spv::CapabilityFloat16)) return id;
        return builder_.type(spv::OpTypeFloat, {32});
    case spv::OpTypeVector: {
        const uint32_t part = passed_as(type[2]);
        return part == type[2] ? id : builder_.type(spv::OpTypeVector, {part, type[3]});
    }
    case spv::OpTypeMatrix: return passed_as(type[2]) == type[2] ? id : 0;
    default: return id;
    }
}

uint32_t Instrumenter::conversion(uint32_t small) const {
    Instruction type = module_.find(small);
    if (type.op() == spv::OpTypeVector) type = module_.find(type[2]);
    if (type.op() == spv::OpTypeFloat) return spv::OpFConvert;
    return type[3] != 0 ? spv::OpSConvert : spv::OpUConvert;
}

uint32_t Instrumenter::accessor(Code& into, Instruction instruction, const PointerAccess& access,
                                const Path& path, uint32_t site, std::vector<uint32_t>& arguments) {
    const uint32_t uint = builder_.uint_type();
    const uint32_t boolean = builder_.bool_type();
    const uint32_t result = instruction.result();
    const uint32_t own_type = result != 0 ? instruction.type() : builder_.void_type();
    const uint32_t type = passed_as(own_type);
    std::vector<uint32_t> signature{type};
    std::map<uint32_t, uint32_t> here;  // ids of the caller -> of this function
    Code parameters, code;
    const auto take = [&](uint32_t id) {
        if (globals_.contains(id)) return id;
        const auto [entry, added] = here.try_emplace(id, 0);
        if (added) {
            entry->second = builder_.id();
            const uint32_t given = module_.type_of(id);
            signature.push_back(passed_as(given));
            const bool is_passed = signature.back() == given;
            arguments.push_back(is_passed ? id
                                          : builder_.value(into, conversion(given), signature.back(), {id}));
            parameters.emit(spv::OpFunctionParameter, {signature.back(), entry->second});
            if (!is_passed) entry->second = builder_.value(code, conversion(given), given, {entry->second});
        }
        return entry->second;
    };
    const uint32_t root = take(path.root);
    std::vector<uint32_t> indices{root};
    for (const uint32_t index : path.indices) indices.push_back(take(index));
    std::vector<uint32_t> operands;
    for (uint32_t i = 1; i < instruction.size(); ++i) operands.push_back(instruction[i]);
    for (const uint32_t position : access.values) operands[position - 1] = take(operands[position - 1]);

    const uint32_t function = builder_.id();
    Code all;
    all.emit(spv::OpFunction,
             {type, function, spv::FunctionControlMaskNone, builder_.type(spv::OpTypeFunction, signature)});
    all.append(parameters);
    all.emit(spv::OpLabel, {builder_.id()});
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
    uint32_t made = result != 0 ? builder_.id() : 0;
    if (made != 0) operands[1] = made;
    code.emit(instruction.op(), operands);
    if (type != own_type) made = builder_.value(code, conversion(own_type), type, {made});
    code.emit(spv::OpBranch, {end});
    code.emit(spv::OpLabel, {outside});
    note_fault(code, site, bad_index, bad_length);
    code.emit(spv::OpBranch, {end});
    code.emit(spv::OpLabel, {end});
    if (made != 0)
        code.emit(spv::OpReturnValue,
                  {builder_.value(code, spv::OpPhi, type, {made, inside, builder_.null(type), outside})});
    else
        code.emit(spv::OpReturn, {});
    code.emit(spv::OpFunctionEnd, {});
    all.append(code);
    builder_.functions.append(all);
    return function;
}

void Instrumenter::note_fault(Code& into, uint32_t site, uint32_t index, uint32_t length) {
    // Variables, not an array, so that drivers can keep them in registers.
    if (faults_.size() < most_kept) {
        auto& added = faults_.emplace_back();
        for (uint32_t& each : added) each = variable(spv::StorageClassPrivate, builder_.uint_type());
    }
    const auto& fault = faults_[places_++ % most_kept];
    const uint32_t before = load(into, fault[times]);
    const uint32_t is_first = test(into, spv::OpIEqual, before, word(0));
    for (const auto& [kept, value] :
         {std::pair(fault[where], word(site)), std::pair(fault[index_used], index),
          std::pair(fault[length_found], length)}) {
        const uint32_t first =
            builder_.value(into, spv::OpSelect, builder_.uint_type(), {is_first, value, load(into, kept)});
        into.emit(spv::OpStore, {kept, first});
    }
    into.emit(spv::OpStore, {fault[times], combine(into, spv::OpIAdd, before, word(1))});
}

// Reports from the first kept fault on: llvmpipe grants a loop one turn if others have used up all.
void Instrumenter::report_faults(Code& into) {
    if (faults_.empty()) return;
    const uint32_t uint = builder_.uint_type();
    const auto count = static_cast<uint32_t>(faults_.size());
    const uint32_t array = variable(spv::StorageClassPrivate,
                                    builder_.type(spv::OpTypeArray, {uint, word(count * fault_words)}));
    const auto element_of = [&](uint32_t place) {
        return builder_.value(into, spv::OpAccessChain, builder_.pointer(spv::StorageClassPrivate, uint),
                              {array, place});
    };
    uint32_t first = word(count);
    const uint32_t any = builder_.id(), turn = builder_.id(), look = builder_.id(), tell = builder_.id(),
                   joined = builder_.id(), next_turn = builder_.id(), done = builder_.id(),
                   end = builder_.id(), place = builder_.id(), next = builder_.id();
    for (uint32_t i = count; i-- > 0;)
        first = builder_.value(
            into, spv::OpSelect, uint,
            {test(into, spv::OpINotEqual, load(into, faults_[i][times]), word(0)), word(i), first});
    const uint32_t is_any = test(into, spv::OpULessThan, first, word(count));
    into.emit(spv::OpSelectionMerge, {end, spv::SelectionControlMaskNone});
    into.emit(spv::OpBranchConditional, {is_any, any, end});
    into.emit(spv::OpLabel, {any});
    for (uint32_t i = 0; i < count; ++i)
        for (uint32_t j = 0; j < fault_words; ++j)
            into.emit(spv::OpStore, {element_of(word(i * fault_words + j)), load(into, faults_[i][j])});
    into.emit(spv::OpBranch, {turn});
    into.emit(spv::OpLabel, {turn});
    into.emit(spv::OpPhi, {uint, place, first, any, next, next_turn});
    into.emit(spv::OpLoopMerge, {done, next_turn, spv::LoopControlDontUnrollMask});
    into.emit(spv::OpBranch, {look});
    into.emit(spv::OpLabel, {look});
    const uint32_t start = combine(into, spv::OpIMul, place, word(fault_words));
    const auto of_place = [&](Fault which) {
        return load(into, element_of(combine(into, spv::OpIAdd, start, word(which))));
    };
    const uint32_t number = of_place(times);
    const uint32_t is_faulty = test(into, spv::OpINotEqual, number, word(0));
    into.emit(spv::OpSelectionMerge, {joined, spv::SelectionControlMaskNone});
    into.emit(spv::OpBranchConditional, {is_faulty, tell, joined});
    into.emit(spv::OpLabel, {tell});
    const uint32_t site = of_place(where), index = of_place(index_used), length = of_place(length_found);
    (void)builder_.value(into, spv::OpFunctionCall, builder_.void_type(),
                         {reporter(3), site, index, length, number});
    into.emit(spv::OpBranch, {joined});
    into.emit(spv::OpLabel, {joined});
    into.emit(spv::OpBranch, {next_turn});
    into.emit(spv::OpLabel, {next_turn});
    into.emit(spv::OpIAdd, {uint, next, place, word(1)});
    const uint32_t is_last = test(into, spv::OpIEqual, next, word(count));
    into.emit(spv::OpBranchConditional, {is_last, done, turn});
    into.emit(spv::OpLabel, {done});
    into.emit(spv::OpBranch, {end});
    into.emit(spv::OpLabel, {end});
}

bool Instrumenter::check(Instruction instruction, Code& into) {
    if (!wanted_.bounds) return false;
    const auto access = access_of(instruction);
    if (!access) return false;
    const auto path = path_of(instruction[access->pointer]);
    if (!path || path->checks.empty() || is_full()) return false;
    const uint32_t result = instruction.result();
    const uint32_t type = accessed(instruction);
    if (type != 0 && passed_as(type) == 0) {
        problem_ = "it copies a whole matrix of 16-bit numbers" + place() +
                   ", which only shaders with their arithmetic can hand to a check "
                   "(GL_EXT_shader_explicit_arithmetic_types): copy it column by column";
        return false;
    }
    make_buffer();
    const uint32_t site = new_site(DebugSite::Kind::bounds, path->text);
    sites_[site].arguments = std::string{access->kind, is_signed(path->checks.front().index) ? 'i' : 'u'};
    std::vector<uint32_t> arguments;
    const uint32_t function = accessor(into, instruction, *access, *path, site, arguments);
    const uint32_t returned = result != 0 ? passed_as(type) : builder_.void_type();
    const bool is_passed = result != 0 && returned == type;
    std::vector<uint32_t> call{returned, is_passed ? result : builder_.id(), function};
    call.insert(call.end(), arguments.begin(), arguments.end());
    into.emit(spv::OpFunctionCall, call);
    if (result != 0 && !is_passed) into.emit(conversion(type), {type, result, call[1]});
    return true;
}

}  // namespace kp
