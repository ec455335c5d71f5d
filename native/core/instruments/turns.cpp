// Barriers that not all invocations of a workgroup reach, and loops with so many turns that llvmpipe ends
// them.
//
// Each barrier has a shared counter of arrivals. An invocation that was let through looks at it: if all had
// to arrive, it is at least the size of the group for each time that this invocation passed.
#include "instruments/instrumenter.hpp"

#include <utility>

namespace kp {

bool Instrumenter::is_group_barrier(Instruction instruction) const {
    return instruction.op() == spv::OpControlBarrier &&
           constants_.integer(instruction[1]).value_or(0) == spv::ScopeWorkgroup;
}

uint32_t Instrumenter::group_size(Code& into) {
    uint32_t size = word(1);
    for (const Instruction each : module_.globals) {
        if (module_.decoration(each.result(), spv::DecorationBuiltIn) !=
                uint32_t{spv::BuiltInWorkgroupSize} ||
            each.op() == spv::OpVariable)
            continue;
        const uint32_t component = module_.find(each[1])[2];
        for (uint32_t axis = 0; axis < 3; ++axis) {
            const uint32_t one =
                builder_.value(into, spv::OpCompositeExtract, component, {each.result(), axis});
            size = combine(into, spv::OpIMul, size, as_word(into, one, module_.find(component)));
        }
        return size;
    }
    for (const auto& mode : module_.execution_modes) {
        if (mode.function != module_.entry_points.front().function) continue;
        if (mode.mode != spv::ExecutionModeLocalSize && mode.mode != spv::ExecutionModeLocalSizeId) continue;
        for (const uint32_t operand : mode.operands) {
            const uint32_t one =
                mode.by_id ? as_word(into, operand, module_.find(module_.type_of(operand))) : word(operand);
            size = combine(into, spv::OpIMul, size, one);
        }
    }
    return size;
}

void Instrumenter::before_barrier(Instruction instruction, Code& into) {
    if (!wanted_.barriers || !is_group_barrier(instruction) || is_full()) return;
    make_buffer();
    const uint32_t uint = builder_.uint_type();
    const uint32_t site = new_site(DebugSite::Kind::barriers, "");
    const Counted made{site, variable(spv::StorageClassWorkgroup, uint),
                       variable(spv::StorageClassWorkgroup, uint), variable(spv::StorageClassPrivate, uint)};
    counted_.push_back(made);
    waiting_ = site + 1;
    const uint32_t passed = builder_.value(into, spv::OpLoad, uint, {made.passed});
    into.emit(spv::OpStore, {made.passed, combine(into, spv::OpIAdd, passed, word(1))});
    (void)builder_.value(into, spv::OpAtomicIAdd, uint,
                         {made.arrived, word(spv::ScopeWorkgroup), word(0), word(1)});
}

void Instrumenter::after_barrier(Instruction instruction, Code& into) {
    if (!is_group_barrier(instruction)) return;
    if (wanted_.races) pass_barrier(into);
    if (waiting_ == 0) return;
    waiting_ = 0;
    const uint32_t uint = builder_.uint_type();
    const uint32_t nothing = builder_.void_type();
    const Counted& made = counted_.back();
    Code code;
    std::vector<uint32_t> none;
    const uint32_t function = begin_function(code, nothing, {}, none);
    const uint32_t missing = builder_.id(), first = builder_.id(), told = builder_.id(), end = builder_.id();
    code.emit(spv::OpLabel, {builder_.id()});
    const uint32_t arrived =
        builder_.value(code, spv::OpAtomicLoad, uint, {made.arrived, word(spv::ScopeWorkgroup), word(0)});
    const uint32_t size = group_size(code);
    const uint32_t passed = builder_.value(code, spv::OpLoad, uint, {made.passed});
    const uint32_t expected = combine(code, spv::OpIMul, size, passed);
    const uint32_t fewer = test(code, spv::OpULessThan, arrived, expected);
    code.emit(spv::OpSelectionMerge, {end, spv::SelectionControlMaskNone});
    code.emit(spv::OpBranchConditional, {fewer, missing, end});
    code.emit(spv::OpLabel, {missing});
    const uint32_t before = builder_.value(code, spv::OpAtomicExchange, uint,
                                           {made.told, word(spv::ScopeWorkgroup), word(0), word(1)});
    const uint32_t is_first = test(code, spv::OpIEqual, before, word(0));
    code.emit(spv::OpSelectionMerge, {told, spv::SelectionControlMaskNone});
    code.emit(spv::OpBranchConditional, {is_first, first, told});
    code.emit(spv::OpLabel, {first});
    const uint32_t earlier = combine(code, spv::OpISub, expected, size);
    report(code, made.site, {combine(code, spv::OpISub, arrived, earlier), size});
    code.emit(spv::OpBranch, {told});
    code.emit(spv::OpLabel, {told});
    code.emit(spv::OpBranch, {end});
    code.emit(spv::OpLabel, {end});
    code.emit(spv::OpReturn, {});
    code.emit(spv::OpFunctionEnd, {});
    builder_.functions.append(code);
    (void)builder_.value(into, spv::OpFunctionCall, nothing, {function});
}

// The call of a function that prepares counts and tracking, before the entry point does anything else.
void Instrumenter::start_counts(Code& into) {
    if (start_ == 0) start_ = builder_.id();
    (void)builder_.value(into, spv::OpFunctionCall, builder_.void_type(), {start_});
}

void Instrumenter::write_start() {
    const uint32_t nothing = builder_.void_type();
    Code code;
    code.emit(spv::OpFunction,
              {nothing, start_, spv::FunctionControlMaskNone, builder_.type(spv::OpTypeFunction, {nothing})});
    code.emit(spv::OpLabel, {builder_.id()});
    start_tracking(code);
    if (!counted_.empty()) {
        const uint32_t first = builder_.id(), end = builder_.id();
        const uint32_t local = built_in(code, spv::BuiltInLocalInvocationIndex);
        const uint32_t is_first = test(code, spv::OpIEqual, local, word(0));
        code.emit(spv::OpSelectionMerge, {end, spv::SelectionControlMaskNone});
        code.emit(spv::OpBranchConditional, {is_first, first, end});
        code.emit(spv::OpLabel, {first});
        for (const Counted& each : counted_) {
            code.emit(spv::OpStore, {each.arrived, word(0)});
            code.emit(spv::OpStore, {each.told, word(0)});
        }
        code.emit(spv::OpBranch, {end});
        code.emit(spv::OpLabel, {end});
        code.emit(spv::OpControlBarrier,
                  {word(spv::ScopeWorkgroup), word(spv::ScopeWorkgroup),
                   word(spv::MemorySemanticsAcquireReleaseMask | spv::MemorySemanticsWorkgroupMemoryMask)});
    }
    code.emit(spv::OpReturn, {});
    code.emit(spv::OpFunctionEnd, {});
    builder_.functions.append(code);
}

void Instrumenter::count_turn(Instruction instruction, Code& into) {
    if (!wanted_.loops || instruction.op() != spv::OpLoopMerge || is_full()) return;
    make_buffer();
    const uint32_t uint = builder_.uint_type();
    const uint32_t nothing = builder_.void_type();
    if (turns_ == 0) turns_ = variable(spv::StorageClassPrivate, uint);
    const uint32_t line = std::exchange(line_, line_ != 0 ? line_ : last_line_);
    const uint32_t site = new_site(DebugSite::Kind::loops, "");
    line_ = line;
    if (counter_ == 0) {  // void count(uint site)
        Code code;
        std::vector<uint32_t> given;
        counter_ = begin_function(code, nothing, {uint}, given);
        const uint32_t last = builder_.id(), end = builder_.id();
        code.emit(spv::OpLabel, {builder_.id()});
        const uint32_t before = builder_.value(code, spv::OpLoad, uint, {turns_});
        const uint32_t now = combine(code, spv::OpIAdd, before, word(1));
        code.emit(spv::OpStore, {turns_, now});
        const uint32_t is_last = test(code, spv::OpIEqual, now, word(DebugBuffer::most_turns));
        code.emit(spv::OpSelectionMerge, {end, spv::SelectionControlMaskNone});
        code.emit(spv::OpBranchConditional, {is_last, last, end});
        code.emit(spv::OpLabel, {last});
        (void)builder_.value(code, spv::OpFunctionCall, nothing, {reporter(1), given.front(), now});
        code.emit(spv::OpBranch, {end});
        code.emit(spv::OpLabel, {end});
        code.emit(spv::OpReturn, {});
        code.emit(spv::OpFunctionEnd, {});
        builder_.functions.append(code);
    }
    (void)builder_.value(into, spv::OpFunctionCall, nothing, {counter_, word(site)});
}

}  // namespace kp
