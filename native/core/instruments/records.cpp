#include "instruments/instrumenter.hpp"

namespace kp {

uint32_t Instrumenter::make_block(uint32_t binding) {
    const uint32_t array = builder_.id();
    builder_.globals.emit(spv::OpTypeRuntimeArray, {array, builder_.uint_type()});
    builder_.annotations.emit(spv::OpDecorate, {array, spv::DecorationArrayStride, 4});
    const uint32_t block = builder_.id();
    builder_.globals.emit(spv::OpTypeStruct, {block, array});
    builder_.annotations.emit(spv::OpDecorate, {block, spv::DecorationBlock});
    builder_.annotations.emit(spv::OpMemberDecorate, {block, 0, spv::DecorationOffset, 0});
    const uint32_t made = variable(spv::StorageClassStorageBuffer, block);
    builder_.annotations.emit(spv::OpDecorate, {made, spv::DecorationDescriptorSet, set_});
    builder_.annotations.emit(spv::OpDecorate, {made, spv::DecorationBinding, binding});
    return made;
}

void Instrumenter::make_buffer() {
    if (buffer_ != 0) return;
    buffer_ = make_block(0);
    // Vulkan's memory model has device scope only with a feature of its own; all queues are enough.
    scope_ = word(has(spv::CapabilityVulkanMemoryModel) ? spv::ScopeQueueFamily : spv::ScopeDevice);
}

uint32_t Instrumenter::variable(spv::StorageClass storage, uint32_t type) {
    const uint32_t pointer = builder_.pointer(storage, type);
    const uint32_t made = builder_.id();
    if (storage == spv::StorageClassPrivate)  // begins as 0
        builder_.globals.emit(spv::OpVariable,
                              {pointer, made, static_cast<uint32_t>(storage), builder_.null(type)});
    else
        builder_.globals.emit(spv::OpVariable, {pointer, made, static_cast<uint32_t>(storage)});
    variables_.push_back(made);
    return made;
}

uint32_t Instrumenter::begin_function(Code& into, uint32_t type, const std::vector<uint32_t>& types,
                                      std::vector<uint32_t>& parameters) {
    std::vector<uint32_t> signature{type};
    signature.insert(signature.end(), types.begin(), types.end());
    const uint32_t function = builder_.id();
    into.emit(spv::OpFunction,
              {type, function, spv::FunctionControlMaskNone, builder_.type(spv::OpTypeFunction, signature)});
    for (const uint32_t each : types) {
        parameters.push_back(builder_.id());
        into.emit(spv::OpFunctionParameter, {each, parameters.back()});
    }
    return function;
}

uint32_t Instrumenter::element(Code& into, uint32_t index) {
    const uint32_t pointer = builder_.pointer(spv::StorageClassStorageBuffer, builder_.uint_type());
    return builder_.value(into, spv::OpAccessChain, pointer, {buffer_, builder_.uint_constant(0), index});
}

void Instrumenter::add_to(Code& into, uint32_t place, uint32_t value, uint32_t* old) {
    const uint32_t pointer = element(into, builder_.uint_constant(place));
    const uint32_t made = builder_.value(into, spv::OpAtomicIAdd, builder_.uint_type(),
                                         {pointer, scope_, builder_.uint_constant(0), value});
    if (old) *old = made;
}

uint32_t Instrumenter::built_in(Code& into, spv::BuiltIn which, std::optional<uint32_t> axis) {
    const uint32_t uint = builder_.uint_type();
    const auto [entry, added] = inputs_.try_emplace(which, 0, 0);
    auto& [variable, type] = entry->second;
    if (added) {
        for (const Instruction each : module_.globals)
            if (each.op() == spv::OpVariable && each[3] == spv::StorageClassInput &&
                module_.decoration(each[2], spv::DecorationBuiltIn) == uint32_t{which}) {
                variable = each[2];
                type = module_.at(each[1], "the type of a variable")[3];
            }
        if (variable == 0) {
            type = axis ? builder_.type(spv::OpTypeVector, {uint, 3}) : uint;
            const uint32_t pointer = builder_.pointer(spv::StorageClassInput, type);
            variable = builder_.id();
            builder_.globals.emit(spv::OpVariable, {pointer, variable, spv::StorageClassInput});
            builder_.annotations.emit(spv::OpDecorate, {variable, spv::DecorationBuiltIn, which});
        }
    }
    uint32_t made = builder_.value(into, spv::OpLoad, type, {variable});
    uint32_t component = type;
    if (axis) {
        const Instruction vector = module_.find(type);
        component = vector ? vector[2] : uint;
        made = builder_.value(into, spv::OpCompositeExtract, component, {made, *axis});
    }
    return component == uint ? made : builder_.value(into, spv::OpBitcast, uint, {made});
}

uint32_t Instrumenter::reporter(uint32_t count) {
    const auto [entry, added] = reporters_.try_emplace(count, 0);
    if (!added) return entry->second;
    make_buffer();
    const uint32_t uint = builder_.uint_type();
    const uint32_t boolean = builder_.bool_type();
    const uint32_t nothing = builder_.void_type();
    Code code;
    std::vector<uint32_t> payload;
    const uint32_t function = begin_function(code, nothing, std::vector<uint32_t>(count + 1, uint), payload);
    entry->second = function;
    const uint32_t size = DebugBuffer::head + count;
    const uint32_t site = payload.front();
    payload.erase(payload.begin());
    std::vector<uint32_t> record{builder_.uint_constant(size), builder_.uint_constant(number_), site};
    const uint32_t full = builder_.id(), room = builder_.id(), write = builder_.id(), late = builder_.id(),
                   done = builder_.id(), end = builder_.id();
    code.emit(spv::OpLabel, {builder_.id()});
    // Looks before it adds, so that the counter cannot wrap.
    const uint32_t used = builder_.value(
        code, spv::OpAtomicLoad, uint,
        {element(code, builder_.uint_constant(DebugBuffer::used)), scope_, builder_.uint_constant(0)});
    const uint32_t is_free = builder_.value(code, spv::OpULessThan, boolean,
                                            {used, builder_.uint_constant(DebugBuffer::capacity)});
    code.emit(spv::OpSelectionMerge, {end, spv::SelectionControlMaskNone});
    code.emit(spv::OpBranchConditional, {is_free, room, full});
    code.emit(spv::OpLabel, {room});
    uint32_t start = 0;
    add_to(code, DebugBuffer::used, builder_.uint_constant(size), &start);
    const uint32_t fits = builder_.value(code, spv::OpULessThanEqual, boolean,
                                         {start, builder_.uint_constant(DebugBuffer::capacity - size)});
    code.emit(spv::OpSelectionMerge, {done, spv::SelectionControlMaskNone});
    code.emit(spv::OpBranchConditional, {fits, write, late});
    code.emit(spv::OpLabel, {write});
    record.push_back(builder_.value(code, spv::OpLoad, uint,
                                    {element(code, builder_.uint_constant(DebugBuffer::operation))}));
    for (uint32_t axis = 0; axis < 3; ++axis)
        record.push_back(built_in(code, spv::BuiltInGlobalInvocationId, axis));
    record.insert(record.end(), payload.begin(), payload.end());
    for (uint32_t i = 0; i < record.size(); ++i) {
        const uint32_t place = builder_.value(code, spv::OpIAdd, uint,
                                              {start, builder_.uint_constant(DebugBuffer::records + i)});
        code.emit(spv::OpStore, {element(code, place), record[i]});
    }
    code.emit(spv::OpBranch, {done});
    for (const auto& [label, next] : {std::pair(late, done), std::pair(full, end)}) {
        if (label == full) {
            code.emit(spv::OpLabel, {done});
            code.emit(spv::OpBranch, {end});
        }
        code.emit(spv::OpLabel, {label});
        add_to(code, DebugBuffer::dropped, builder_.uint_constant(1));
        code.emit(spv::OpBranch, {next});
    }
    code.emit(spv::OpLabel, {end});
    code.emit(spv::OpReturn, {});
    code.emit(spv::OpFunctionEnd, {});
    builder_.functions.append(code);
    return function;
}

void Instrumenter::report(Code& into, uint32_t site, const std::vector<uint32_t>& values) {
    std::vector<uint32_t> arguments{reporter(static_cast<uint32_t>(values.size())),
                                    builder_.uint_constant(site)};
    arguments.insert(arguments.end(), values.begin(), values.end());
    (void)builder_.value(into, spv::OpFunctionCall, builder_.void_type(), arguments);
}

void Instrumenter::end_entry(Code& into) {
    if (!wanted_.bounds && race_.empty()) return;
    if (end_ == 0) end_ = builder_.id();
    (void)builder_.value(into, spv::OpFunctionCall, builder_.void_type(), {end_});
}

void Instrumenter::write_end() {
    const uint32_t nothing = builder_.void_type();
    Code code;
    code.emit(spv::OpFunction,
              {nothing, end_, spv::FunctionControlMaskNone, builder_.type(spv::OpTypeFunction, {nothing})});
    code.emit(spv::OpLabel, {builder_.id()});
    report_faults(code);
    report_race(code);
    code.emit(spv::OpReturn, {});
    code.emit(spv::OpFunctionEnd, {});
    builder_.functions.append(code);
}

}  // namespace kp
