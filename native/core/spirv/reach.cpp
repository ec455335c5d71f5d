// About 1300 lines because the path and the values form one class: each needs the other.
//
// Model. The walker follows one path from the entry point's first block: the path of an invocation that
// passes every bounds check. A branch is a bounds check if its condition compares an expression of the
// invocation's number with an expression that is the same for all invocations. The path takes the side on
// which the number is smaller, and from there on the check is a guard. A branch on a constant has a known
// side. At any other branch, and at loops, the path skips to the block behind it; it ends if the code between
// may return. So every invocation that passes the guards uses every element that is used on the path; other
// invocations are not covered. Guards are never removed, so they are too strict at worst. `alone` is false if
// they may be.
//
// Code beside the path is searched afterwards, for accesses that some invocations may make. Each access has
// the guards that hold at its place. Code that cannot be reached from the path is not covered.
//
// Values are followed through local variables that are stored once, conversions, vectors, and functions: a
// parameter stands for the argument of the only call, or of the call that is being searched. All other values
// are `unknown`. Equal expressions have one number.
#include "spirv/reach.hpp"

#include "base/error.hpp"
#include "spirv/constants.hpp"
#include "spirv/declared_format.hpp"
#include "spirv/dependence.hpp"
#include "spirv/module.hpp"
#include "spirv/operands.hpp"
#include "spirv/reflect.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include <spirv/unified1/GLSL.std.450.h>

namespace kp {
namespace {

using spirv::atomic_access;
using spirv::Constants;
using spirv::Function;
using spirv::Instruction;
using spirv::Module;

constexpr uint32_t deepest = 64;
constexpr uint32_t most_steps = 4096;
constexpr uint32_t most_calls = 512;
constexpr uint32_t whole = 4;

using Guards = std::vector<std::pair<uint32_t, uint32_t>>;

struct Block {
    const Function* function = nullptr;
    std::vector<Instruction> body;
};

class Walker : private spirv::Numbering {
public:
    Walker(std::span<const uint32_t> words, const std::string& entry,
           std::span<const SpecValue> specialization, bool judged)
        : module_(words), constants_(module_, specialization), judged_(judged) {
        const ShaderInfo info = reflect(words, entry, specialization);
        for (const auto& point : module_.entry_points)
            if (point.model == spv::ExecutionModelGLCompute && point.name == info.entry)
                entry_ = point.function;
        local_size_ = info.local_size;
    }

    ShaderReach run() {
        index_functions();
        if (const Function* main = module_.function(entry_)) walk(*main, 0);
        look_beside();
        mark_shared_bindings();
        find_other_writes();
        if (judged_) judge_writes();
        return std::move(result_);
    }

private:
    // -- the module's functions
    void index_functions();
    void index_variables(Instruction instruction);
    [[nodiscard]] std::vector<uint32_t> successors(uint32_t label) const;
    [[nodiscard]] bool may_return(uint32_t from, uint32_t merge) const;

    // -- the path
    [[nodiscard]] std::set<uint32_t> reachable(uint32_t from, std::set<uint32_t> seen = {}) const;
    void walk(const Function& function, uint32_t depth);
    void leave(uint32_t label, const Guards& guards, const std::set<uint32_t>& ends);
    void look_beside();
    void look_beside(uint32_t label, Guards guards, const std::set<uint32_t>& ends, uint32_t depth);
    void look_into(Instruction call, const Function& callee, const Guards& guards, uint32_t depth);
    template <typename Look>
    void in_call(Instruction call, const Function& callee, const Look& look);
    [[nodiscard]] bool only_read(const Function& callee, uint32_t parameter) const;
    [[nodiscard]] const Function* called(Instruction call) const;
    [[nodiscard]] bool others_fail(Instruction phi, uint32_t way, bool holds) const;
    [[nodiscard]] std::optional<Guards> guards_if(uint32_t condition, bool holds, uint32_t depth);
    void visit(Instruction instruction, uint32_t label);
    void note(Instruction instruction, uint32_t label, const Guards& guards, bool certain);
    void list(Instruction instruction, const Guards& guards, bool certain);
    void judge_writes();
    [[nodiscard]] bool has_several_axes(uint32_t number) const;

    // -- for spirv::Dependence
    uint32_t number_of(uint32_t id) override { return value(id); }
    uint32_t number_of_part(uint32_t id, uint32_t index) override { return component(id, index, 0); }
    uint32_t number_of(const ReachExpression& made) override {
        return made.term >= ReachTerm::add ? pair(made.term, made.a, made.b) : expression(made);
    }
    [[nodiscard]] const ReachExpression& expression(uint32_t number) const override {
        return result_.expressions[number];
    }
    [[nodiscard]] uint32_t original(uint32_t id) const override { return origin(id); }
    [[nodiscard]] uint32_t only_value(uint32_t variable) const override { return stored_in(variable); }

    // -- values
    uint32_t expression(ReachExpression made);
    uint32_t unknown(uint32_t id);
    uint32_t value(uint32_t id, uint32_t depth = 0);
    uint32_t compute(Instruction instruction, uint32_t id, uint32_t depth);
    uint32_t part_of(uint32_t id, uint32_t index, uint32_t depth);
    uint32_t component(uint32_t id, uint32_t index, uint32_t depth);
    uint32_t loaded(uint32_t pointer, std::optional<uint32_t> index, uint32_t none, uint32_t depth);
    uint32_t combine(uint32_t op, uint32_t left, uint32_t right, uint32_t none);
    uint32_t pair(ReachTerm term, uint32_t left, uint32_t right);
    uint32_t number(int64_t value);
    uint32_t of_glsl(uint32_t instruction, std::initializer_list<uint32_t> operands, uint32_t none);
    [[nodiscard]] std::optional<uint32_t> put_together(uint32_t left, uint32_t right) const;
    [[nodiscard]] bool from_invocation(uint32_t id, uint32_t depth);
    [[nodiscard]] bool constant_memory(Instruction variable) const;
    uint32_t image_size(Instruction query, uint32_t axis, uint32_t none);
    [[nodiscard]] uint32_t argument_of(uint32_t parameter) const;
    [[nodiscard]] uint32_t origin(uint32_t id) const;
    [[nodiscard]] uint32_t stored_in(uint32_t variable) const;
    [[nodiscard]] std::optional<int64_t> whole_number(uint32_t left, uint32_t right) const;
    [[nodiscard]] uint32_t converted(uint32_t number, uint32_t none);
    [[nodiscard]] std::optional<uint64_t> byte_of(Instruction chain, std::optional<uint32_t> index,
                                                  bool floating = false) const;
    [[nodiscard]] bool varies(uint32_t expression) const override;
    [[nodiscard]] std::optional<Reach> reach_of(uint32_t pointer, uint64_t* length = nullptr);
    void mark_shared_bindings();
    void find_other_writes();

    // What tells writes apart: the opcode and two operands.
    using Write = std::array<uint32_t, 3>;

    Module module_;
    Constants constants_;
    bool judged_;
    uint32_t entry_ = 0;
    std::array<uint32_t, 3> local_size_{1, 1, 1};
    std::unordered_map<uint32_t, Block> blocks_;     // by label
    std::set<uint32_t> escaped_;                     // variables with uses that are not followed
    std::unordered_map<uint32_t, uint32_t> stored_;  // variable -> its only value; 0: several
    std::map<ReachExpression, uint32_t> numbers_;
    std::unordered_map<uint32_t, uint32_t> arguments_;          // parameter -> argument; 0: several calls
    std::unordered_map<uint32_t, uint32_t> arrived_;            // label on the path -> the label before it
    std::unordered_map<uint32_t, uint32_t> label_of_;           // phi -> its block
    std::vector<Instruction> accesses_;                         // loads, stores and atomics of all functions
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> values_;  // (id, component or `whole`)
    uint32_t steps_ = 0;                                        // of guards_if and from_invocation
    uint32_t calls_ = 0;                                        // calls that were searched
    uint32_t inside_ = 0;
    std::vector<bool> varying_;
    std::vector<uint32_t> walked_;
    Guards guards_;
    Guards held_;  // of `guards_`: those that hold for all invocations at the current block
    std::unordered_map<uint32_t, Guards> held_behind_;  // label on the path -> `held_` at the block's end
    struct Beside {
        uint32_t label;
        Guards guards;
        std::set<uint32_t> ends;
    };
    std::vector<Beside> beside_;  // places at which the path was left
    std::set<uint32_t> seen_;     // visited blocks
    std::set<uint32_t> lapsed_;   // blocks at which invocations that failed a check rejoined the path
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> on_path_;  // binding -> accesses
    std::set<Write> listed_;                                     // writes that are in `accesses`
    std::set<Write> lost_;                                       // writes with an index that is not
    struct Place {
        size_t access;  // its place in `accesses`
        Instruction instruction;
        uint32_t label;
    };
    std::vector<Place> written_;  // writes to arrays, except in functions that are called in several places
    ShaderReach result_;
};

bool is_chain(uint32_t op) { return op == spv::OpAccessChain || op == spv::OpInBoundsAccessChain; }

// The pointer that an instruction reads or writes through; 0 for other instructions.
uint32_t pointer_of(Instruction instruction) {
    const uint32_t op = instruction.op();
    if (op == spv::OpLoad) return instruction[3];
    if (op == spv::OpStore || op == spv::OpAtomicStore) return instruction[1];
    return atomic_access(op) ? instruction[3] : 0;
}

uint32_t first_label(const Function& function) {
    for (const Instruction instruction : function.body)
        if (instruction.op() == spv::OpLabel) return instruction[1];
    return 0;
}

uint32_t returned_by(const Function& function) {
    for (const Instruction instruction : function.body)
        if (instruction.op() == spv::OpReturnValue) return instruction[1];
    return 0;
}

// Operations on two integers, or on two vectors of integers, that are followed.
bool is_binary(uint32_t op) {
    switch (op) {
    case spv::OpIAdd:
    case spv::OpISub:
    case spv::OpIMul:
    case spv::OpUDiv:
    case spv::OpSDiv:
    case spv::OpUMod:
    case spv::OpSRem:
    case spv::OpSMod:
    case spv::OpShiftLeftLogical:
    case spv::OpShiftRightLogical:
    case spv::OpShiftRightArithmetic:
    case spv::OpBitwiseAnd:
    case spv::OpBitwiseOr:
    case spv::OpBitwiseXor: return true;
    default: return false;
    }
}

void Walker::index_functions() {
    for (const Function& function : module_.functions()) {
        uint32_t label = 0;
        for (const Instruction instruction : function.body) {
            if (instruction.op() == spv::OpLabel) {
                label = instruction[1];
                blocks_[label].function = &function;
                continue;
            }
            if (label == 0) continue;
            blocks_[label].body.push_back(instruction);
            if (instruction.op() == spv::OpPhi) label_of_[instruction[2]] = label;
            if (pointer_of(instruction) != 0) accesses_.push_back(instruction);
            if (instruction.op() != spv::OpFunctionCall) continue;
            if (const Function* callee = module_.function(instruction[3]))
                for (uint32_t i = 0; i < callee->parameters.size() && 4 + i < instruction.size(); ++i) {
                    const auto [known, first] = arguments_.emplace(callee->parameters[i], instruction[4 + i]);
                    if (!first) known->second = 0;
                }
        }
    }
    for (const Function& function : module_.functions())
        for (const Instruction instruction : function.body) index_variables(instruction);
    for (const Instruction access : accesses_) {
        if (access.op() == spv::OpLoad) continue;
        const Instruction place = module_.find(pointer_of(access));
        const bool part = is_chain(place.op());
        const bool plain = !part && access.op() == spv::OpStore;
        const auto [known, first] =
            stored_.emplace(origin(part ? place[3] : pointer_of(access)), plain ? access[2] : 0);
        if (!first) known->second = 0;
    }
}

// Records the uses of variables.
void Walker::index_variables(Instruction instruction) {
    const uint32_t op = instruction.op();
    if (op == spv::OpStore) {
        escaped_.insert(instruction[2]);  // if it is a pointer, other code may write through it
    } else if (op == spv::OpVariable) {
        if (instruction.size() > 4) escaped_.insert(instruction[2]);
    } else if (op == spv::OpFunctionCall) {
        // A parameter stands for its argument if there is only one call.
        for (uint32_t i = 4; i < instruction.size(); ++i) {
            const Function* callee = module_.function(instruction[3]);
            const bool followed = callee && i - 4 < callee->parameters.size() &&
                                  (argument_of(callee->parameters[i - 4]) != 0 ||
                                   only_read(*callee, callee->parameters[i - 4]));
            if (!followed) escaped_.insert(instruction[i]);
        }
    } else if (!is_chain(op) && op != spv::OpLoad && op != spv::OpArrayLength) {
        for (uint32_t i = 1; i < instruction.size(); ++i)
            if (module_.find(instruction[i]).op() == spv::OpVariable) escaped_.insert(instruction[i]);
    }
}

// The argument of a parameter in the only call of its function; 0 if there are several calls, or none.
uint32_t Walker::argument_of(uint32_t parameter) const {
    const auto known = arguments_.find(parameter);
    return known == arguments_.end() ? 0 : known->second;
}

// The id that a parameter or a copy stands for, or the id itself.
uint32_t Walker::origin(uint32_t id) const {
    for (uint32_t depth = 0; depth < deepest; ++depth) {
        const Instruction instruction = module_.find(id);
        if (instruction.op() == spv::OpFunctionParameter) {
            const uint32_t argument = argument_of(id);
            if (argument == 0) return id;
            id = argument;
        } else if (instruction.op() == spv::OpCopyObject) {
            id = instruction[3];
        } else {
            break;
        }
    }
    return id;
}

// The only value that a local variable ever has; 0 if it is not known.
uint32_t Walker::stored_in(uint32_t variable) const {
    const auto known = stored_.find(variable);
    return known == stored_.end() || escaped_.contains(variable) ? 0 : known->second;
}

std::vector<uint32_t> Walker::successors(uint32_t label) const {
    const auto block = blocks_.find(label);
    if (block == blocks_.end() || block->second.body.empty()) return {};
    const Instruction last = block->second.body.back();
    if (last.op() == spv::OpBranch) return {last[1]};
    if (last.op() == spv::OpBranchConditional) return {last[2], last[3]};
    std::vector<uint32_t> targets;
    if (last.op() == spv::OpSwitch) {
        targets.push_back(last[2]);
        // Literals may have several words. Any word that is a label counts, so at worst too many targets are
        // found.
        for (uint32_t i = 3; i < last.size(); ++i)
            if (blocks_.contains(last[i])) targets.push_back(last[i]);
    }
    return targets;
}

// True if a block between `from` and `merge` ends the function, or cannot be followed.
bool Walker::may_return(uint32_t from, uint32_t merge) const {
    const std::set<uint32_t> between = reachable(from, {merge});
    return std::any_of(between.begin(), between.end(),
                       [&](uint32_t label) { return label != merge && successors(label).empty(); });
}

// The blocks from `from` on, and those of `seen`, which are not followed.
std::set<uint32_t> Walker::reachable(uint32_t from, std::set<uint32_t> seen) const {
    std::vector<uint32_t> open{from};
    while (!open.empty()) {
        const uint32_t label = open.back();
        open.pop_back();
        if (!seen.insert(label).second) continue;
        const auto next = successors(label);
        open.insert(open.end(), next.begin(), next.end());
    }
    return seen;
}

void Walker::walk(const Function& function, uint32_t depth) {
    if (depth > 8 || std::find(walked_.begin(), walked_.end(), function.id) != walked_.end()) return;
    walked_.push_back(function.id);
    uint32_t label = first_label(function);
    uint32_t before = 0;
    std::set<uint32_t> visited;
    struct Failed {
        std::set<uint32_t> reached;  // blocks that invocations that failed a check may run
        Guards held;                 // guards of all invocations that reached the check
    };
    std::vector<Failed> others;
    while (label != 0 && visited.insert(label).second) {
        arrived_[label] = before;
        seen_.insert(label);
        const auto together = std::find_if(others.begin(), others.end(),
                                           [&](const Failed& each) { return each.reached.contains(label); });
        if (together != others.end()) {
            held_ = together->held;
            std::erase_if(others, [&](const Failed& each) { return each.reached.contains(label); });
            lapsed_.insert(label);
        }
        uint32_t merge = 0;
        bool loop = false;
        uint32_t next = 0;
        const auto block = blocks_.find(label);
        if (block == blocks_.end()) return;
        for (const Instruction instruction : block->second.body) {
            switch (instruction.op()) {
            case spv::OpSelectionMerge: merge = instruction[1]; break;
            case spv::OpLoopMerge:
                merge = instruction[1];
                loop = true;
                break;
            case spv::OpBranch: next = instruction[1]; break;
            case spv::OpSwitch:
                // A switch with only a default: optimizers make it from a function that returns in its
                // middle.
                if (instruction.size() == 3) next = instruction[2];
                break;
            case spv::OpReturn:
            case spv::OpReturnValue: return;
            case spv::OpFunctionCall:
                if (const Function* callee = module_.function(instruction[3])) {
                    const bool once =
                        callee->parameters.empty() || argument_of(callee->parameters.front()) != 0;
                    const size_t before_call = guards_.size();
                    const Guards held_before = held_;
                    if (once)
                        walk(*callee, depth + 1);
                    else
                        look_into(instruction, *callee, held_, 0);
                    // Invocations that leave the callee early continue here.
                    if (guards_.size() != before_call) lapsed_.insert(0);
                    held_ = held_before;
                }
                break;
            case spv::OpBranchConditional: {
                if (loop) break;
                const uint32_t condition = instruction[1];
                const auto take = [&](const Guards& found, uint32_t inside, uint32_t outside) {
                    others.push_back({reachable(outside), held_});
                    leave(outside, held_, {});
                    for (const auto& each : found) {
                        if (std::find(guards_.begin(), guards_.end(), each) == guards_.end())
                            guards_.push_back(each);
                        if (std::find(held_.begin(), held_.end(), each) == held_.end()) held_.push_back(each);
                    }
                    next = inside;
                };
                const spirv::ConstantValue* known = constants_.find(condition);
                if (known) {
                    next = instruction[known->bits[0] != 0 ? 2 : 3];
                } else if (auto inside = guards_if(condition, true, 0)) {
                    take(*inside, instruction[2], instruction[3]);
                } else if (auto outside = guards_if(condition, false, 0)) {
                    take(*outside, instruction[3], instruction[2]);
                }
                break;
            }
            default: visit(instruction, label); break;
            }
        }
        if (loop) next = 0;
        if (next == 0) {  // skip unknown code
            const std::set<uint32_t> ends = merge == 0 ? std::set<uint32_t>{} : std::set{merge};
            for (const uint32_t successor : successors(label)) leave(successor, held_, ends);
            if (merge == 0) return;
            if (may_return(label, merge)) {
                leave(merge, held_, {});
                return;
            }
            // The way is unknown, so the values that a phi chooses there are unknown too.
            before = 0;
            label = merge;
            continue;
        }
        held_behind_[label] = held_;
        before = label;
        label = next;
    }
    return;
}

// Remembers to search the code beside the path, from `label` up to one of `ends`.
void Walker::leave(uint32_t label, const Guards& guards, const std::set<uint32_t>& ends) {
    if (label != 0) beside_.push_back({label, guards, ends});
}

// True if the function only loads from the parameter.
bool Walker::only_read(const Function& callee, uint32_t parameter) const {
    for (const Instruction instruction : callee.body)
        for (uint32_t i = 1; i < instruction.size(); ++i)
            if (instruction[i] == parameter && (instruction.op() != spv::OpLoad || i != 3)) return false;
    return true;
}

// Runs `look` while the function's parameters stand for the arguments of this call.
template <typename Look>
void Walker::in_call(Instruction call, const Function& callee, const Look& look) {
    if (inside_ >= 8 || ++calls_ > most_calls) return;
    ++inside_;
    const auto arguments = arguments_;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> values;
    values.swap(values_);
    for (uint32_t i = 0; i < callee.parameters.size() && 4 + i < call.size(); ++i)
        arguments_[callee.parameters[i]] = call[4 + i];
    look();
    values_ = std::move(values);
    arguments_ = arguments;
    --inside_;
}

// Searches the code of a called function, once for each call.
void Walker::look_into(Instruction call, const Function& callee, const Guards& guards, uint32_t depth) {
    in_call(call, callee, [&] {
        const std::set<uint32_t> seen = std::exchange(seen_, {});
        look_beside(first_label(callee), guards, {}, depth);
        seen_ = seen;
    });
}

// The called function, if it returns in exactly one place.
const Function* Walker::called(Instruction call) const {
    const Function* callee = module_.function(call[3]);
    if (!callee) return nullptr;
    const auto returns = [](Instruction each) { return each.op() == spv::OpReturnValue; };
    return std::count_if(callee->body.begin(), callee->body.end(), returns) == 1 ? callee : nullptr;
}

void Walker::look_beside() {
    for (size_t i = 0; i < beside_.size(); ++i) {  // the loop adds elements
        const Beside each = beside_[i];
        look_beside(each.label, each.guards, each.ends, 0);
    }
}

void Walker::look_beside(uint32_t label, Guards guards, const std::set<uint32_t>& ends, uint32_t depth) {
    while (label != 0 && depth <= deepest && !ends.contains(label) && seen_.insert(label).second) {
        const auto block = blocks_.find(label);
        if (block == blocks_.end() || block->second.body.empty()) return;
        uint32_t merge = 0;
        uint32_t condition = 0;
        for (const Instruction instruction : block->second.body) {
            const uint32_t op = instruction.op();
            if (op == spv::OpSelectionMerge || op == spv::OpLoopMerge) merge = instruction[1];
            if (op == spv::OpBranchConditional) condition = instruction[1];
            if (op == spv::OpFunctionCall) {
                if (const Function* callee = module_.function(instruction[3]))
                    look_into(instruction, *callee, guards, depth + 1);
            }
            note(instruction, label, guards, false);
        }
        const auto next = successors(label);
        if (next.size() == 1) {
            label = next.front();
            continue;
        }
        std::set<uint32_t> inner = ends;
        if (merge != 0) inner.insert(merge);
        Guards after = guards;
        for (size_t i = 0; i < next.size(); ++i) {
            Guards mine = guards;
            if (condition != 0 && next.size() == 2) {
                if (const auto found = guards_if(condition, i == 0, 0)) {
                    mine.insert(mine.end(), found->begin(), found->end());
                    if (merge != 0 && !reachable(next[1 - i]).contains(merge)) after = mine;
                }
            }
            look_beside(next[i], std::move(mine), inner, depth + 1);
        }
        guards = std::move(after);
        label = merge;
    }
}

// The comparisons (left < right, left depends on the invocation's number) that hold exactly if `condition` is
// `holds`.
std::optional<Guards> Walker::guards_if(uint32_t condition, bool holds, uint32_t depth) {
    if (depth > deepest || ++steps_ > most_steps) return std::nullopt;
    const Instruction made = module_.find(origin(condition));
    const auto less = [&](uint32_t left, uint32_t right, bool or_equal) -> std::optional<Guards> {
        const uint32_t small = value(left);
        uint32_t large = value(right);
        if (!varies(small) || varies(large)) return std::nullopt;
        if (or_equal)
            large = expression({ReachTerm::add, 0, large, expression({ReachTerm::constant, 1, 0, 0})});
        return Guards{{small, large}};
    };
    const auto both = [&](uint32_t a, uint32_t b) -> std::optional<Guards> {
        auto first = guards_if(a, holds, depth + 1);
        auto second = guards_if(b, holds, depth + 1);
        if (!first || !second) return std::nullopt;
        first->insert(first->end(), second->begin(), second->end());
        return first;
    };
    switch (made.op()) {
    case spv::OpULessThan:
    case spv::OpSLessThan: return holds ? less(made[3], made[4], false) : less(made[4], made[3], true);
    case spv::OpULessThanEqual:
    case spv::OpSLessThanEqual: return holds ? less(made[3], made[4], true) : less(made[4], made[3], false);
    case spv::OpUGreaterThan:
    case spv::OpSGreaterThan: return holds ? less(made[4], made[3], false) : less(made[3], made[4], true);
    case spv::OpUGreaterThanEqual:
    case spv::OpSGreaterThanEqual:
        return holds ? less(made[4], made[3], true) : less(made[3], made[4], false);
    case spv::OpLogicalNot: return guards_if(made[3], !holds, depth + 1);
    case spv::OpLogicalAnd: return holds ? both(made[3], made[4]) : std::nullopt;
    case spv::OpLogicalOr: return holds ? std::nullopt : both(made[3], made[4]);
    case spv::OpLoad: {
        const uint32_t variable = origin(made[3]);
        if (module_.find(variable).op() != spv::OpVariable) return std::nullopt;
        const uint32_t stored = stored_in(variable);
        return stored == 0 ? std::nullopt : guards_if(stored, holds, depth + 1);
    }
    case spv::OpPhi: {
        // `a && b` is `b` on the way on which `a` held.
        const auto label = label_of_.find(made[2]);
        const auto before = label == label_of_.end() ? arrived_.end() : arrived_.find(label->second);
        if (before == arrived_.end() || before->second == 0) return std::nullopt;
        for (uint32_t i = 3; i + 1 < made.size(); i += 2) {
            if (made[i + 1] != before->second) continue;
            auto found = guards_if(made[i], holds, depth + 1);
            // Invocations from the other ways are separated again, if a constant or the condition decides it.
            if (found && others_fail(made, before->second, holds)) {
                lapsed_.erase(label->second);
                const Guards& way = held_behind_[before->second];
                found->insert(found->begin(), way.begin(), way.end());
            }
            return found;
        }
        return std::nullopt;
    }
    default: return std::nullopt;
    }
}

// True if on all other ways the phi has the opposite value, or the condition that failed there.
bool Walker::others_fail(Instruction phi, uint32_t way, bool holds) const {
    for (uint32_t i = 3; i + 1 < phi.size(); i += 2) {
        if (phi[i + 1] == way) continue;
        const auto block = blocks_.find(phi[i + 1]);
        if (block == blocks_.end() || block->second.body.empty()) return false;
        const Instruction last = block->second.body.back();
        const auto* constant = constants_.find(phi[i]);
        const bool fails = constant && (constant->bits[0] != 0) != holds;
        // `a && b` as glslang writes it: if `a` failed, the value is `a`. For `a || b` the branch is on `!a`.
        bool itself = false;
        if (last.op() == spv::OpBranchConditional) {
            const Instruction condition = module_.find(last[1]);
            const bool inverted = condition.op() == spv::OpLogicalNot && condition[3] == phi[i];
            itself =
                (last[1] == phi[i] || inverted) && last[holds != inverted ? 3 : 2] == label_of_.at(phi[2]);
        }
        if (!fails && !itself) return false;
    }
    return true;
}

// Records the elements that an access uses, in code that `guards` protect.
void Walker::note(Instruction instruction, uint32_t label, const Guards& guards, bool certain) {
    const size_t known = result_.accesses.size();
    list(instruction, guards, certain);
    if (result_.accesses.size() > known && inside_ == 0) {
        const ReachAccess& made = result_.accesses.back();
        if (made.written && made.stride != 0 && instruction.op() != spv::OpImageWrite)
            written_.push_back({known, instruction, label});
    }
    const uint32_t op = instruction.op();
    if (op != spv::OpStore && op != spv::OpImageWrite) return;
    auto& place = result_.accesses.size() > known ? listed_ : lost_;
    place.insert({op, instruction[1], instruction[2]});
}

void Walker::list(Instruction instruction, const Guards& guards, bool certain) {
    ReachAccess made;
    made.guards = guards;
    made.certain = certain;
    if (instruction.op() == spv::OpImageWrite || instruction.op() == spv::OpImageRead) {
        made.written = instruction.op() == spv::OpImageWrite;
        const Instruction load = module_.find(origin(instruction[made.written ? 1 : 3]));
        if (load.op() != spv::OpLoad) return;
        const Instruction variable = module_.find(origin(load[3]));
        if (variable.op() != spv::OpVariable) return;
        const uint32_t at = instruction[made.written ? 2 : 4];
        const auto type = spirv::numeric_type(module_, module_.type_of(at));
        if (!type || type->kind == spirv::NumericType::Kind::floating) return;
        for (uint32_t i = 0; i < type->count && i < 3; ++i)
            made.indices.push_back(type->count == 1 ? value(at) : component(at, i, 0));
        made.set = module_.decoration(variable[2], spv::DecorationDescriptorSet).value_or(0);
        made.binding = module_.decoration(variable[2], spv::DecorationBinding).value_or(0);
        const Instruction image = module_.find(load[1]);
        if (image.op() == spv::OpTypeImage && image[3] == spv::DimBuffer) {
            made.stride = declared_format(image[8]).texel_bytes();
            if (made.stride == 0) return;  // its argument decides
        }
    } else {
        const uint32_t pointer = pointer_of(instruction);
        const auto found = pointer == 0 ? std::nullopt : reach_of(pointer, &made.length);
        if (!found) return;
        made.written = instruction.op() != spv::OpLoad && instruction.op() != spv::OpAtomicLoad;
        made.set = found->set;
        made.binding = found->binding;
        made.offset = found->offset;
        made.stride = found->stride;
        made.indices = {found->index};
    }
    if (std::any_of(made.indices.begin(), made.indices.end(), [&](uint32_t index) { return varies(index); }))
        result_.accesses.push_back(std::move(made));
}

// Finds out whether invocations that write the same element write the same value.
void Walker::judge_writes() {
    std::optional<spirv::Dependence> dependence;
    for (const Place& place : written_) {
        ReachAccess& access = result_.accesses[place.access];
        if (!has_several_axes(access.indices.front())) continue;  // one element for each number
        if (!dependence)
            dependence.emplace(module_, constants_, entry_, static_cast<spirv::Numbering&>(*this));
        access.write = dependence->judge(place.instruction, place.label, access.indices.front());
    }
}

// True if an expression contains the invocation's number on several axes.
bool Walker::has_several_axes(uint32_t number) const {
    std::set<int64_t> axes;
    std::set<uint32_t> seen;
    std::vector<uint32_t> open{number};
    while (!open.empty()) {
        const uint32_t at = open.back();
        open.pop_back();
        if (!varies(at) || !seen.insert(at).second) continue;
        const ReachExpression& made = result_.expressions[at];
        if (made.term >= ReachTerm::add)
            open.insert(open.end(), {made.a, made.b});
        else if (made.term != ReachTerm::derived)
            axes.insert(made.value);
    }
    return axes.size() > 1;
}

void Walker::visit(Instruction instruction, uint32_t label) {
    note(instruction, label, held_, true);
    const uint32_t pointer = pointer_of(instruction);
    if (pointer == 0) return;
    auto found = reach_of(pointer);
    if (!found || !varies(found->index)) return;
    ++on_path_[{found->set, found->binding}];
    found->guards = guards_;
    found->alone = lapsed_.empty();
    for (const Reach& known : result_.reaches)
        if (known.set == found->set && known.binding == found->binding && known.offset == found->offset &&
            known.index == found->index)
            return;  // the first one has the fewest guards
    result_.reaches.push_back(std::move(*found));
}

// The array element that `pointer` is in, if it is in a buffer's array. Arrays with a declared length only
// count if `length` is given; it receives the length.
std::optional<Reach> Walker::reach_of(uint32_t pointer, uint64_t* length) {
    Instruction chain = module_.find(origin(pointer));
    // If a chain continues another chain, the first one names the element.
    for (uint32_t depth = 0; is_chain(chain.op()) && depth < deepest; ++depth) {
        const Instruction inner = module_.find(origin(chain[3]));
        if (!is_chain(inner.op())) break;
        chain = inner;
    }
    if (!is_chain(chain.op()) || chain.size() < 6) return std::nullopt;
    const Instruction variable = module_.find(origin(chain[3]));
    if (variable.op() != spv::OpVariable ||
        (variable[3] != spv::StorageClassStorageBuffer && variable[3] != spv::StorageClassUniform))
        return std::nullopt;
    const Instruction pointer_type = module_.find(variable[1]);
    if (pointer_type.op() != spv::OpTypePointer) return std::nullopt;
    const uint32_t block_type = pointer_type[3];
    const Instruction block = module_.find(block_type);
    const auto member = constants_.integer(chain[4]);
    if (block.op() != spv::OpTypeStruct || !member || *member + 2 >= block.size()) return std::nullopt;
    const auto number = static_cast<uint32_t>(*member);
    const Instruction array = module_.find(block[2 + number]);
    if (array.op() == spv::OpTypeArray && length) {
        const auto declared = constants_.integer(array[3]);
        if (!declared) return std::nullopt;
        *length = *declared;
    } else if (array.op() != spv::OpTypeRuntimeArray) {
        return std::nullopt;
    }
    const auto stride = module_.decoration(array[1], spv::DecorationArrayStride);
    if (!stride || *stride == 0) return std::nullopt;
    Reach made;
    made.set = module_.decoration(variable[2], spv::DecorationDescriptorSet).value_or(0);
    made.binding = module_.decoration(variable[2], spv::DecorationBinding).value_or(0);
    made.offset = module_.member_decoration(block_type, number, spv::DecorationOffset).value_or(0);
    made.stride = *stride;
    made.index = value(chain[5]);
    return made;
}

// A binding that is also used beside the path, or with another index, may have a different size on purpose.
void Walker::mark_shared_bindings() {
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> all;
    for (const Instruction access : accesses_) {
        const auto other = reach_of(pointer_of(access));
        if (!other) continue;
        ++all[{other->set, other->binding}];
        for (Reach& mine : result_.reaches)
            if (mine.set == other->set && mine.binding == other->binding &&
                (mine.index != other->index || mine.offset != other->offset))
                mine.alone = false;
    }
    for (Reach& mine : result_.reaches)
        if (all[{mine.set, mine.binding}] != on_path_[{mine.set, mine.binding}]) mine.alone = false;
}

// Only stores and image writes count as listed: memory of atomics is read too, and callers look at that.
void Walker::find_other_writes() {
    std::set<std::pair<uint32_t, uint32_t>> found;
    const auto add = [&](uint32_t pointer) {
        uint32_t id = origin(pointer);
        for (uint32_t depth = 0; is_chain(module_.find(id).op()) && depth < deepest; ++depth)
            id = origin(module_.find(id)[3]);
        const Instruction variable = module_.find(id);
        if (variable.op() == spv::OpVariable) {
            if (const auto binding = module_.decoration(id, spv::DecorationBinding))
                found.insert({module_.decoration(id, spv::DecorationDescriptorSet).value_or(0), *binding});
            return;
        }
        const Instruction type = module_.find(module_.type_of(pointer));
        const bool bound = type.op() != spv::OpTypePointer || type[2] == spv::StorageClassStorageBuffer ||
                           type[2] == spv::StorageClassUniform || type[2] == spv::StorageClassUniformConstant;
        if (bound) found.insert(ShaderReach::any_binding);
    };
    for (const Function& function : module_.functions())
        for (const Instruction instruction : function.body) {
            const uint32_t op = instruction.op();
            if (op == spv::OpCopyMemory || op == spv::OpCopyMemorySized) {
                add(instruction[1]);
            } else if (op == spv::OpStore || op == spv::OpImageWrite) {
                const Write write{op, instruction[1], instruction[2]};
                if (listed_.contains(write) && !lost_.contains(write)) continue;
                const Instruction image = module_.find(origin(instruction[1]));
                if (op == spv::OpStore)
                    add(instruction[1]);
                else if (image.op() == spv::OpLoad)
                    add(image[3]);
                else
                    found.insert(ShaderReach::any_binding);
            } else if (atomic_access(op) && op != spv::OpAtomicLoad) {
                add(pointer_of(instruction));
            }
        }
    result_.written_elsewhere.assign(found.begin(), found.end());
}

// -- values ------------------------------------------------------------------------------------------------

uint32_t Walker::expression(ReachExpression made) {
    const auto [known, added] = numbers_.emplace(made, static_cast<uint32_t>(result_.expressions.size()));
    if (!added) return known->second;
    bool varying = made.term == ReachTerm::invocation || made.term == ReachTerm::group ||
                   made.term == ReachTerm::local || made.term == ReachTerm::derived;
    if (made.term >= ReachTerm::add) varying = varying_[made.a] || varying_[made.b];
    result_.expressions.push_back(made);
    varying_.push_back(varying);
    return known->second;
}

uint32_t Walker::unknown(uint32_t id) { return expression({ReachTerm::unknown, id, 0, 0}); }

bool Walker::varies(uint32_t made) const { return varying_[made]; }

uint32_t Walker::value(uint32_t id, uint32_t depth) {
    id = origin(id);
    const auto key = std::pair(id, whole);
    if (const auto known = values_.find(key); known != values_.end()) return known->second;
    if (depth > deepest) return unknown(id);
    const uint32_t made = compute(module_.find(id), id, depth);
    values_.emplace(key, made);
    return made;
}

uint32_t Walker::compute(Instruction made, uint32_t id, uint32_t depth) {
    const auto type = spirv::numeric_type(module_, made.type());
    using Kind = spirv::NumericType::Kind;
    const bool integral = type && type->count == 1 && (type->width == 32 || type->width == 64) &&
                          (type->kind == Kind::signed_int || type->kind == Kind::unsigned_int);
    if (!integral) return unknown(id);
    if (const auto constant = constants_.integer(id))
        return number(type->width == 64 ? static_cast<int64_t>(*constant)
                                        : static_cast<int32_t>(static_cast<uint32_t>(*constant)));
    if (is_binary(made.op()))
        return combine(made.op(), value(made[3], depth + 1), value(made[4], depth + 1), unknown(id));
    switch (made.op()) {
    case spv::OpFunctionCall: {
        const Function* callee = called(made);
        if (!callee) break;
        uint32_t returned = unknown(id);
        in_call(made, *callee, [&] { returned = value(returned_by(*callee), depth + 1); });
        return returned;
    }
    case spv::OpImageQuerySize:
    case spv::OpImageQuerySizeLod: return image_size(made, 0, unknown(id));
    case spv::OpNot:
    case spv::OpSNegate:
        return pair(ReachTerm::subtract, number(made.op() == spv::OpNot ? -1 : 0), value(made[3], depth + 1));
    case spv::OpPhi: {
        // The phi of a choice; a loop's values are not followed.
        const auto label = label_of_.find(id);
        const auto block = label == label_of_.end() ? blocks_.end() : blocks_.find(label->second);
        if (block == blocks_.end() || made.size() < 5) break;
        const auto& body = block->second.body;
        const auto loops = [](Instruction each) { return each.op() == spv::OpLoopMerge; };
        if (std::any_of(body.begin(), body.end(), loops)) break;
        uint32_t chosen = value(made[3], depth + 1);
        for (uint32_t i = 5; i + 1 < made.size(); i += 2) {
            const uint32_t other = value(made[i], depth + 1);
            if (other != chosen) chosen = pair(ReachTerm::either, chosen, other);
        }
        return chosen;
    }
    case spv::OpSelect: return pair(ReachTerm::either, value(made[4], depth + 1), value(made[5], depth + 1));
    case spv::OpBitFieldUExtract: {
        const auto from = constants_.integer(made[4]), bits = constants_.integer(made[5]);
        if (!from || !bits || *from > 31 || *bits > 31) break;
        const uint32_t shifted =
            pair(ReachTerm::divide, value(made[3], depth + 1), number(int64_t{1} << *from));
        return pair(ReachTerm::bit_and, shifted, number((int64_t{1} << *bits) - 1));
    }
    case spv::OpUConvert:
    case spv::OpSConvert: {
        const auto source = spirv::numeric_type(module_, module_.type_of(made[3]));
        if (source && source->count == 1 && source->width >= 32) return value(made[3], depth + 1);
        break;
    }
    case spv::OpBitcast: {
        const auto source = spirv::numeric_type(module_, module_.type_of(made[3]));
        const bool same = source && source->count == 1 && source->width == 32 &&
                          source->kind != spirv::NumericType::Kind::floating;
        return same ? value(made[3], depth + 1) : unknown(id);
    }
    case spv::OpConvertFToU:
    case spv::OpConvertFToS: {
        if (from_invocation(made[3], depth + 1)) break;
        return converted(made[3], unknown(id));
    }
    case spv::OpLoad: return loaded(made[3], std::nullopt, unknown(id), depth + 1);
    case spv::OpCompositeExtract:
        return made.size() == 5 ? component(made[3], made[4], depth + 1) : unknown(id);
    case spv::OpArrayLength: {
        const Instruction variable = module_.find(origin(made[3]));
        if (variable.op() != spv::OpVariable) return unknown(id);
        return expression({ReachTerm::length, 0,
                           module_.decoration(variable[2], spv::DecorationDescriptorSet).value_or(0),
                           module_.decoration(variable[2], spv::DecorationBinding).value_or(0)});
    }
    case spv::OpExtInst: {
        const auto set = module_.instruction_sets.find(made[3]);
        if (set == module_.instruction_sets.end() || set->second != "GLSL.std.450") break;
        const bool clamped = made[4] == GLSLstd450UClamp || made[4] == GLSLstd450SClamp;
        const uint32_t limits = spirv::in(made[4], GLSLstd450FMin, GLSLstd450SMax) ? 1 : clamped ? 2 : 0;
        if (limits == 0 || made.size() < 6 + limits) break;
        if (limits == 1)
            return of_glsl(made[4], {value(made[5], depth + 1), value(made[6], depth + 1)}, unknown(id));
        return of_glsl(made[4],
                       {value(made[5], depth + 1), value(made[6], depth + 1), value(made[7], depth + 1)},
                       unknown(id));
    }
    default: break;
    }
    return from_invocation(id, depth + 1) ? expression({ReachTerm::derived, id, 0, 0}) : unknown(id);
}

// True if arithmetic that is not followed computes the value from the invocation's number, and not from
// memory.
bool Walker::from_invocation(uint32_t id, uint32_t depth) {
    if (depth > deepest || ++steps_ > most_steps) return false;
    const Instruction made = module_.find(origin(id));
    const uint32_t op = made.op();
    uint32_t first = 3;
    if (op == spv::OpExtInst) {
        first = 5;
    } else if (op == spv::OpLoad) {
        const uint32_t variable = origin(made[3]);
        const uint32_t stored = module_.find(variable).op() == spv::OpVariable ? stored_in(variable) : 0;
        return stored != 0 && from_invocation(stored, depth + 1);
    } else if (!spirv::in(op, spv::OpConvertFToU, spv::OpConvertUToF) && op != spv::OpBitcast &&
               op != spv::OpCompositeExtract && op != spv::OpCompositeConstruct &&
               !spirv::in(op, spv::OpSNegate, spv::OpVectorTimesScalar) &&
               !spirv::in(op, spv::OpBitFieldInsert, spv::OpBitCount)) {
        return false;
    }
    for (uint32_t i = first; i < made.size(); ++i) {
        const Instruction operand = module_.find(origin(made[i]));
        const auto type = spirv::numeric_type(module_, operand.type());
        if (!type) continue;
        const bool integer = type->kind == spirv::NumericType::Kind::signed_int ||
                             type->kind == spirv::NumericType::Kind::unsigned_int;
        bool varying = !integer && from_invocation(made[i], depth + 1);
        for (uint32_t part = 0; integer && part < type->count; ++part)
            varying = varying || varies(type->count == 1 ? value(made[i], depth + 1)
                                                         : component(made[i], part, depth + 1));
        if (varying) return true;
    }
    return false;
}

uint32_t Walker::image_size(Instruction query, uint32_t axis, uint32_t none) {
    Instruction load = module_.find(origin(query[3]));
    if (load.op() == spv::OpImage) load = module_.find(origin(load[3]));  // of an image with a sampler
    if (load.op() != spv::OpLoad) return none;
    const Instruction variable = module_.find(origin(load[3]));
    if (variable.op() != spv::OpVariable) return none;
    return expression({ReachTerm::image_size, axis,
                       module_.decoration(variable[2], spv::DecorationDescriptorSet).value_or(0),
                       module_.decoration(variable[2], spv::DecorationBinding).value_or(0)});
}

uint32_t Walker::number(int64_t value) { return expression({ReachTerm::constant, value, 0, 0}); }

uint32_t Walker::pair(ReachTerm term, uint32_t left, uint32_t right) {
    const bool commutes = term == ReachTerm::add || term == ReachTerm::multiply ||
                          term == ReachTerm::minimum || term == ReachTerm::maximum ||
                          spirv::in(static_cast<uint32_t>(term), static_cast<uint32_t>(ReachTerm::bit_and),
                                    static_cast<uint32_t>(ReachTerm::either));
    if (commutes && left > right) std::swap(left, right);  // x + y and y + x are one
    return expression({term, 0, left, right});
}

// The minimum, the maximum, or a clamp.
uint32_t Walker::of_glsl(uint32_t instruction, std::initializer_list<uint32_t> operands, uint32_t none) {
    const auto* const given = operands.begin();
    switch (instruction) {
    case GLSLstd450UMin:
    case GLSLstd450SMin: return pair(ReachTerm::minimum, given[0], given[1]);
    case GLSLstd450UMax:
    case GLSLstd450SMax: return pair(ReachTerm::maximum, given[0], given[1]);
    case GLSLstd450UClamp:
    case GLSLstd450SClamp:
        return pair(ReachTerm::minimum, pair(ReachTerm::maximum, given[0], given[1]), given[2]);
    default: return none;
    }
}

// Component `index` of a vector.
uint32_t Walker::component(uint32_t id, uint32_t index, uint32_t depth) {
    id = origin(id);
    const auto key = std::pair(id, index);
    if (const auto known = values_.find(key); known != values_.end()) return known->second;
    const uint32_t made = part_of(id, index, depth);
    values_.emplace(key, made);
    return made;
}

uint32_t Walker::part_of(uint32_t id, uint32_t index, uint32_t depth) {
    const uint32_t none = expression({ReachTerm::unknown, id, 1 + index, 0});
    if (depth > deepest || index > 3) return none;
    const Instruction made = module_.find(id);
    const auto type = spirv::numeric_type(module_, made.type());
    if (!type || type->count <= index || type->width != 32 ||
        type->kind == spirv::NumericType::Kind::floating)
        return none;
    if (const auto* constant = constants_.find(id))
        return expression(
            {ReachTerm::constant, static_cast<int32_t>(static_cast<uint32_t>(constant->bits[index])), 0, 0});
    switch (made.op()) {
    case spv::OpLoad: return loaded(made[3], index, none, depth + 1);
    case spv::OpCompositeConstruct: {
        uint32_t at = 0;
        for (uint32_t i = 3; i < made.size(); ++i) {
            const auto part = spirv::numeric_type(module_, module_.type_of(made[i]));
            if (!part) return none;
            if (index < at + part->count)
                return part->count == 1 ? value(made[i], depth + 1)
                                        : component(made[i], index - at, depth + 1);
            at += part->count;
        }
        return none;
    }
    case spv::OpVectorShuffle: {
        if (5 + index >= made.size()) return none;
        const auto first = spirv::numeric_type(module_, module_.type_of(made[3]));
        const uint32_t chosen = made[5 + index];
        if (!first) return none;
        return chosen < first->count ? component(made[3], chosen, depth + 1)
                                     : component(made[4], chosen - first->count, depth + 1);
    }
    case spv::OpBitcast: {
        const auto source = spirv::numeric_type(module_, module_.type_of(made[3]));
        const bool same = source && source->count == type->count && source->width == 32 &&
                          source->kind != spirv::NumericType::Kind::floating;
        return same ? component(made[3], index, depth + 1) : none;
    }
    case spv::OpFunctionCall: {
        const Function* callee = called(made);
        if (!callee) return none;
        uint32_t returned = none;
        in_call(made, *callee, [&] { returned = component(returned_by(*callee), index, depth + 1); });
        return returned;
    }
    case spv::OpImageQuerySize:
    case spv::OpImageQuerySizeLod: return image_size(made, index, none);
    case spv::OpExtInst: {
        const auto set = module_.instruction_sets.find(made[3]);
        if (set == module_.instruction_sets.end() || set->second != "GLSL.std.450" || made.size() < 7)
            return none;
        const bool clamped = made[4] == GLSLstd450UClamp || made[4] == GLSLstd450SClamp;
        if (!clamped && !spirv::in(made[4], GLSLstd450FMin, GLSLstd450SMax)) return none;
        const uint32_t low = component(made[5], index, depth + 1),
                       high = component(made[6], index, depth + 1);
        if (!clamped) return of_glsl(made[4], {low, high}, none);
        return made.size() < 8 ? none
                               : of_glsl(made[4], {low, high, component(made[7], index, depth + 1)}, none);
    }
    default:
        if (!is_binary(made.op()))
            return from_invocation(id, depth + 1) ? expression({ReachTerm::derived, id, 1 + index, 0}) : none;
        return combine(made.op(), component(made[3], index, depth + 1), component(made[4], index, depth + 1),
                       none);
    }
}

uint32_t Walker::combine(uint32_t op, uint32_t left, uint32_t right, uint32_t none) {
    const ReachExpression by = result_.expressions[right];
    const bool known = by.term == ReachTerm::constant;
    switch (op) {
    case spv::OpIAdd:
        if (const auto axis = whole_number(left, right))
            return expression({ReachTerm::invocation, *axis, 0, 0});
        if (const auto all = put_together(left, right)) return *all;
        return pair(ReachTerm::add, left, right);
    case spv::OpISub: return pair(ReachTerm::subtract, left, right);
    case spv::OpIMul: return pair(ReachTerm::multiply, left, right);
    case spv::OpUDiv:
    case spv::OpSDiv: return known && by.value == 1 ? left : pair(ReachTerm::divide, left, right);
    case spv::OpUMod:
    case spv::OpSRem:
    case spv::OpSMod: return pair(ReachTerm::modulo, left, right);
    case spv::OpShiftLeftLogical:
        if (!known) return pair(ReachTerm::shift_left, left, right);
        return by.value < 0 || by.value > 30
                   ? none
                   : pair(ReachTerm::multiply, left, number(int64_t{1} << by.value));
    case spv::OpShiftRightLogical:
    case spv::OpShiftRightArithmetic:
        if (!known) return pair(ReachTerm::shift_right, left, right);
        if (by.value == 0) return left;
        return by.value < 0 || by.value > 31 ? none
                                             : pair(ReachTerm::divide, left, number(int64_t{1} << by.value));
    case spv::OpBitwiseAnd: return pair(ReachTerm::bit_and, left, right);
    case spv::OpBitwiseOr: return pair(ReachTerm::bit_or, left, right);
    case spv::OpBitwiseXor: return pair(ReachTerm::bit_xor, left, right);
    default: return none;
    }
}

// (x / n) * n + x % n is x.
std::optional<uint32_t> Walker::put_together(uint32_t left, uint32_t right) const {
    const auto& all = result_.expressions;
    if (all[left].term == ReachTerm::modulo) std::swap(left, right);
    const ReachExpression &rows = all[left], &rest = all[right];
    if (rest.term != ReachTerm::modulo || rows.term != ReachTerm::multiply) return std::nullopt;
    const auto is_row = [&](uint32_t term, uint32_t width) {
        return width == rest.b && all[term].term == ReachTerm::divide && all[term].a == rest.a &&
               all[term].b == rest.b;
    };
    return is_row(rows.a, rows.b) || is_row(rows.b, rows.a) ? std::optional(rest.a) : std::nullopt;
}

// The axis if left + right is gl_WorkGroupID * (the group's size) + gl_LocalInvocationID, which is
// gl_GlobalInvocationID.
std::optional<int64_t> Walker::whole_number(uint32_t left, uint32_t right) const {
    const auto& all = result_.expressions;
    const ReachExpression &one = all[left], &two = all[right];
    const ReachExpression& local = one.term == ReachTerm::local ? one : two;
    const ReachExpression& begin = one.term == ReachTerm::local ? two : one;
    if (local.term != ReachTerm::local) return std::nullopt;
    const auto size = static_cast<int64_t>(local_size_[static_cast<size_t>(local.value)]);
    const auto is_group = [&](const ReachExpression& term) {
        return term.term == ReachTerm::group && term.value == local.value;
    };
    const auto is_size = [&](const ReachExpression& term) {
        return term.term == ReachTerm::constant && term.value == size;
    };
    const bool times =
        begin.term == ReachTerm::multiply && ((is_group(all[begin.a]) && is_size(all[begin.b])) ||
                                              (is_size(all[begin.a]) && is_group(all[begin.b])));
    return times || (size == 1 && is_group(begin)) ? std::optional(local.value) : std::nullopt;
}

// A float push constant that is converted to an integer: Kompute's scripts pass sizes in this way.
uint32_t Walker::converted(uint32_t number, uint32_t none) {
    const Instruction load = module_.find(origin(number));
    if (load.op() != spv::OpLoad) return none;
    const Instruction place = module_.find(origin(load[3]));
    if (!is_chain(place.op())) return none;
    const Instruction variable = module_.find(origin(place[3]));
    if (variable.op() != spv::OpVariable || variable[3] != spv::StorageClassPushConstant) return none;
    const auto offset = byte_of(place, std::nullopt, true);
    return offset ? expression({ReachTerm::push_constant, static_cast<int64_t>(*offset), 0, 1}) : none;
}

// The value of a load: of a built-in, a push constant, constant memory or a local variable; `index` chooses a
// component. Returns `none` if the value is not known.
uint32_t Walker::loaded(uint32_t pointer, std::optional<uint32_t> index, uint32_t none, uint32_t depth) {
    const Instruction place = module_.find(origin(pointer));
    const bool part = is_chain(place.op());
    const Instruction variable = module_.find(origin(part ? place[3] : origin(pointer)));
    if (variable.op() != spv::OpVariable) return none;
    if (variable[3] == spv::StorageClassPushConstant) {
        const auto offset = part ? byte_of(place, index) : std::nullopt;
        return offset ? expression({ReachTerm::push_constant, static_cast<int64_t>(*offset), 0, 0}) : none;
    }
    if (variable[3] == spv::StorageClassUniform || variable[3] == spv::StorageClassStorageBuffer) {
        const auto at = part && constant_memory(variable) ? byte_of(place, index) : std::nullopt;
        if (!at) return none;
        return expression({ReachTerm::memory, static_cast<int64_t>(*at),
                           module_.decoration(variable[2], spv::DecorationDescriptorSet).value_or(0),
                           module_.decoration(variable[2], spv::DecorationBinding).value_or(0)});
    }
    if (!part && !index && variable[3] == spv::StorageClassInput &&
        module_.decoration(variable[2], spv::DecorationBuiltIn) ==
            uint32_t{spv::BuiltInLocalInvocationIndex}) {
        uint32_t place_in_group = expression({ReachTerm::local, 0, 0, 0});
        int64_t step = local_size_[0];
        for (int64_t axis = 1; axis < 3; ++axis) {
            const int64_t size = local_size_[static_cast<size_t>(axis)];
            if (size == 1) continue;
            const uint32_t rows =
                pair(ReachTerm::multiply, expression({ReachTerm::local, axis, 0, 0}), number(step));
            place_in_group = pair(ReachTerm::add, place_in_group, rows);
            step *= size;
        }
        return place_in_group;
    }
    if (part) {
        if (place.size() != 5 || index) return none;
        const auto chosen = constants_.integer(place[4]);
        if (!chosen || *chosen > 3) return none;
        index = static_cast<uint32_t>(*chosen);
    }
    if (variable[3] == spv::StorageClassInput) {
        const auto built_in = module_.decoration(variable[2], spv::DecorationBuiltIn);
        if (!built_in || !index || *index > 2) return none;
        const auto axis = static_cast<int64_t>(*index);
        switch (*built_in) {
        case spv::BuiltInGlobalInvocationId: return expression({ReachTerm::invocation, axis, 0, 0});
        case spv::BuiltInWorkgroupId: return expression({ReachTerm::group, axis, 0, 0});
        case spv::BuiltInLocalInvocationId: return expression({ReachTerm::local, axis, 0, 0});
        case spv::BuiltInNumWorkgroups: return expression({ReachTerm::groups, axis, 0, 0});
        default: return none;
        }
    }
    if (variable[3] != spv::StorageClassFunction && variable[3] != spv::StorageClassPrivate) return none;
    const uint32_t stored = stored_in(variable[2]);
    if (stored == 0) return none;
    return index ? component(stored, *index, depth + 1) : value(stored, depth + 1);
}

// True if no invocation writes the block.
bool Walker::constant_memory(Instruction variable) const {
    return std::none_of(accesses_.begin(), accesses_.end(), [&](Instruction access) {
        if (access.op() == spv::OpLoad || access.op() == spv::OpAtomicLoad) return false;
        Instruction place = module_.find(origin(pointer_of(access)));
        for (uint32_t depth = 0; is_chain(place.op()) && depth < deepest; ++depth)
            place = module_.find(origin(place[3]));
        return place.op() == spv::OpVariable && place[2] == variable[2];
    });
}

// The byte offset in a block that a chain names, if it holds a 32-bit number.
std::optional<uint64_t> Walker::byte_of(Instruction chain, std::optional<uint32_t> index,
                                        bool floating) const {
    const Instruction pointer = module_.find(module_.type_of(origin(chain[3])));
    if (pointer.op() != spv::OpTypePointer) return std::nullopt;
    uint32_t type = pointer[3];
    uint64_t offset = 0;
    for (uint32_t i = 4; i < chain.size(); ++i) {
        const Instruction outer = module_.find(type);
        const auto chosen = constants_.integer(chain[i]);
        if (!chosen || *chosen > UINT32_MAX) return std::nullopt;
        const auto number = static_cast<uint32_t>(*chosen);
        if (outer.op() == spv::OpTypeStruct) {
            if (uint64_t{number} + 2 >= outer.size()) return std::nullopt;
            const auto at = module_.member_decoration(type, number, spv::DecorationOffset);
            if (!at) return std::nullopt;
            offset += *at;
            type = outer[2 + number];
        } else if (outer.op() == spv::OpTypeArray || outer.op() == spv::OpTypeRuntimeArray) {
            const auto stride = module_.decoration(type, spv::DecorationArrayStride);
            if (!stride) return std::nullopt;
            offset += uint64_t{number} * *stride;
            type = outer[2];
        } else if (outer.op() == spv::OpTypeVector) {
            offset += uint64_t{number} * 4;
            type = outer[2];
        } else {
            return std::nullopt;
        }
    }
    if (index) {
        const Instruction vector = module_.find(type);
        if (vector.op() != spv::OpTypeVector) return std::nullopt;
        offset += uint64_t{*index} * 4;
        type = vector[2];
    }
    const auto number = spirv::numeric_type(module_, type);
    const bool fits = number && number->count == 1 && number->width == 32 &&
                      (floating ? number->kind == spirv::NumericType::Kind::floating
                                : number->kind == spirv::NumericType::Kind::signed_int ||
                                      number->kind == spirv::NumericType::Kind::unsigned_int);
    return fits ? std::optional(offset) : std::nullopt;
}

}  // namespace

ShaderReach reach(std::span<const uint32_t> words, const std::string& entry,
                  std::span<const SpecValue> specialization, bool judged) {
    return Walker(words, entry, specialization, judged).run();
}

}  // namespace kp
