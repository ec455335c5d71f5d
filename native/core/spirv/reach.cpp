#include "spirv/reach.hpp"

#include "spirv/constants.hpp"
#include "spirv/declared_format.hpp"
#include "spirv/flow.hpp"
#include "spirv/module.hpp"
#include "spirv/operands.hpp"
#include "spirv/reflect.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include <spirv/unified1/GLSL.std.450.h>

namespace kp {
namespace {

using spirv::Constants;
using spirv::Flow;
using spirv::Function;
using spirv::in;
using spirv::Instruction;
using spirv::is_chain;
using spirv::Module;
using spirv::NumericType;

constexpr uint32_t deepest = 64;
constexpr uint32_t most_blocks = 4096;  // of code with conditions that are looked at
constexpr uint32_t scalar = 4;          // the component of what is no vector

using Guards = std::vector<std::pair<uint32_t, uint32_t>>;

// What is known where a condition has a certain value. `exact`: nothing else has to hold.
struct Facts {
    Guards guards;
    bool exact = false;
};

class Reader {
public:
    Reader(std::span<const uint32_t> words, const std::string& entry,
           std::span<const SpecValue> specialization)
        : module_(words), constants_(module_, specialization) {
        const ShaderInfo info = reflect(words, entry, specialization);
        local_size_ = info.local_size;
        for (const auto& point : module_.entry_points)
            if (point.model == spv::ExecutionModelGLCompute && point.name == info.entry)
                entry_ = point.function;
    }

    ShaderReach run();

private:
    void note(Instruction instruction, uint32_t label);
    [[nodiscard]] uint32_t target(Instruction instruction, bool& written) const;
    [[nodiscard]] uint32_t root(uint32_t pointer, std::vector<uint32_t>* indices = nullptr) const;
    bool locate(uint32_t pointer, ReachAccess& made);

    // -- conditions
    const Facts& at(uint32_t label);
    const Facts& facts(uint32_t condition, bool holds, uint32_t depth = 0);
    Facts found_facts(uint32_t condition, bool holds, uint32_t depth);
    Facts facts_of_phi(Instruction phi, bool holds, uint32_t depth);
    Facts less(uint32_t left, uint32_t right, bool or_equal);
    Facts compare(Instruction made, bool holds, uint32_t component);
    [[nodiscard]] std::pair<uint32_t, bool> stripped(uint32_t condition, bool holds) const;

    // -- values
    uint32_t expression(ReachExpression made);
    uint32_t unknown(uint32_t id, uint32_t component) {
        const auto type = type_of(id);
        const bool is_signed = type && type->kind == NumericType::Kind::signed_int;
        return expression({ReachTerm::unknown, id, component, is_signed ? 1u : 0u});
    }
    uint32_t number(int64_t value) { return expression({ReachTerm::constant, value, 0, 0}); }
    uint32_t pair(ReachTerm term, uint32_t left, uint32_t right);
    uint32_t value(uint32_t id, uint32_t component = scalar, uint32_t depth = 0);
    uint32_t made_of(Instruction made, uint32_t component, uint32_t depth);
    uint32_t combined(uint32_t op, uint32_t left, uint32_t right, uint32_t none);
    uint32_t counted(Instruction phi, uint32_t depth);
    uint32_t loaded(uint32_t pointer, uint32_t component, uint32_t none, bool floating = false);
    uint32_t clamped(Instruction made, uint32_t component, uint32_t depth, uint32_t none);
    [[nodiscard]] std::optional<int64_t> whole_number(uint32_t left, uint32_t right) const;
    [[nodiscard]] std::optional<uint64_t> byte_of(uint32_t type, const std::vector<uint32_t>& indices,
                                                  uint32_t component, bool floating) const;
    [[nodiscard]] bool depends(uint32_t id, uint32_t depth = 0);
    uint32_t of_binding(ReachTerm term, int64_t value, uint32_t variable) {
        return expression({term, value,
                           module_.decoration(variable, spv::DecorationDescriptorSet).value_or(0),
                           module_.decoration(variable, spv::DecorationBinding).value_or(0)});
    }
    [[nodiscard]] std::optional<NumericType> type_of(uint32_t id) const {
        return spirv::numeric_type(module_, module_.type_of(id));
    }

    Module module_;
    Constants constants_;
    uint32_t entry_ = 0;
    std::array<uint32_t, 3> local_size_{1, 1, 1};
    std::optional<Flow> flow_;
    std::unordered_map<uint32_t, uint32_t> label_of_;           // phi -> its block
    std::set<uint32_t> loops_;                                  // labels of loops' headers
    uint32_t blocks_ = 0;                                       // of the entry point
    std::map<std::pair<uint32_t, bool>, Facts> of_conditions_;  // where a condition has a value
    std::unordered_map<uint32_t, Facts> facts_;                 // by label
    std::map<ReachExpression, uint32_t> numbers_;               // expression -> its number
    std::vector<bool> varying_;                                 // by number
    std::vector<bool> loose_;                                   // by number: made of an unknown
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> values_;  // by id and component
    std::unordered_map<uint32_t, bool> depends_;                // by id
    std::set<uint32_t> written_;                                // variables of buffers
    ShaderReach result_;
};

ShaderReach Reader::run() {
    const auto functions = call_tree(module_, entry_);
    for (const Function* function : functions) {
        uint32_t label = 0;
        for (const Instruction instruction : function->body) {
            if (instruction.op() == spv::OpLabel) label = instruction[1];
            if (instruction.op() == spv::OpPhi) label_of_[instruction[2]] = label;
            if (instruction.op() == spv::OpLoopMerge) loops_.insert(label);
            bool written = false;
            if (const uint32_t pointer = target(instruction, written); written)
                written_.insert(root(pointer));
        }
    }
    for (const Function* function : functions) {
        uint32_t label = 0;
        if (function->id == entry_) {
            flow_.emplace(module_, *function);
            for (const Instruction each : function->body) blocks_ += each.op() == spv::OpLabel;
        }
        for (const Instruction instruction : function->body) {
            if (instruction.op() == spv::OpLabel) label = instruction[1];
            note(instruction, function->id == entry_ ? label : 0);
        }
    }
    return std::move(result_);
}

// -- accesses ----------------------------------------------------------------------------------------------

// The pointer that an instruction reads or writes through, or the image; 0 for other instructions.
uint32_t Reader::target(Instruction instruction, bool& written) const {
    const uint32_t op = instruction.op();
    written = op != spv::OpLoad && op != spv::OpAtomicLoad && op != spv::OpImageRead;
    if (op == spv::OpLoad || op == spv::OpImageRead) return instruction[3];
    if (op == spv::OpStore || op == spv::OpAtomicStore || op == spv::OpImageWrite ||
        op == spv::OpCopyMemory || op == spv::OpCopyMemorySized ||
        op == spirv::newer::cooperative_matrix_store)
        return instruction[1];
    if (spirv::atomic_access(op)) return instruction[3];
    written = false;
    return 0;
}

// The variable that a pointer or an image is from, and the indices into it; the pointer's own id if it is not
// followed.
uint32_t Reader::root(uint32_t pointer, std::vector<uint32_t>* indices) const {
    for (uint32_t depth = 0; depth < deepest; ++depth) {
        const Instruction made = module_.find(pointer);
        if (is_chain(made.op())) {
            std::vector<uint32_t> mine;
            for (uint32_t i = 4; i < made.size(); ++i) mine.push_back(made[i]);
            if (indices) indices->insert(indices->begin(), mine.begin(), mine.end());
        } else if (made.op() != spv::OpCopyObject && made.op() != spv::OpImageTexelPointer &&
                   !(made.op() == spv::OpLoad && module_.find(made.type()).op() == spv::OpTypeImage)) {
            break;
        }
        pointer = made[3];
    }
    return pointer;
}

void Reader::note(Instruction instruction, uint32_t label) {
    ReachAccess made;
    const uint32_t pointer = target(instruction, made.written);
    if (pointer == 0 || (label != 0 && !flow_->runs(label))) return;
    const Instruction variable = module_.find(root(pointer));
    if (variable.op() == spv::OpVariable) {
        const auto binding = module_.decoration(variable[2], spv::DecorationBinding);
        if (!binding || in(module_.find(instruction.type()).op(), spv::OpTypeImage, spv::OpTypeSampledImage))
            return;
        made.set = module_.decoration(variable[2], spv::DecorationDescriptorSet).value_or(0);
        made.binding = *binding;
    } else {
        const auto storage = module_.storage_class(module_.type_of(pointer));
        if (!made.written || (storage && *storage != spv::StorageClassStorageBuffer &&
                              *storage != spv::StorageClassUniform && *storage != spv::StorageClassImage))
            return;
        made.set = made.binding = ReachAccess::any_binding;
    }
    const uint32_t op = instruction.op();
    if (label == 0) {
        // In a function that is called: not followed.
    } else if (op == spv::OpImageRead || op == spv::OpImageWrite) {
        const uint32_t place = instruction[op == spv::OpImageWrite ? 2 : 4];
        const auto type = type_of(place);
        if (type && type->kind != NumericType::Kind::floating)
            for (uint32_t i = 0; i < type->count && i < 3; ++i)
                made.indices.push_back(value(place, type->count == 1 ? scalar : i));
        const Instruction image = module_.find(module_.type_of(instruction[op == spv::OpImageWrite ? 1 : 3]));
        if (image.op() == spv::OpTypeImage && image[3] == spv::DimBuffer)
            made.stride = declared_format(image[8]).texel_bytes();  // 0: its argument decides
    } else if (op == spv::OpLoad || op == spv::OpStore || spirv::atomic_access(op)) {
        if (variable.op() == spv::OpVariable && !locate(pointer, made)) made.stride = 0;
    }
    if (made.indices.empty()) {
        made.indices = {unknown(instruction.result() != 0 ? instruction.result() : pointer, scalar)};
    } else {
        const Facts& known = at(label);
        made.guards = known.guards;
        made.certain = known.exact;
    }
    result_.accesses.push_back(std::move(made));
}

// Finds the element of a buffer's array that a pointer is in. Rows of an array of arrays count as one array.
bool Reader::locate(uint32_t pointer, ReachAccess& made) {
    std::vector<uint32_t> indices;
    const Instruction variable = module_.find(root(pointer, &indices));
    const Instruction pointer_type = module_.find(variable[1]);
    if (pointer_type.op() != spv::OpTypePointer) return false;
    uint32_t type = pointer_type[3];
    size_t next = 0;
    if (in(module_.find(type).op(), spv::OpTypeArray, spv::OpTypeRuntimeArray)) {  // of bindings
        type = module_.find(type)[2];
        ++next;
    }
    const Instruction block = module_.find(type);
    const auto member = next < indices.size() ? constants_.integer(indices[next]) : std::nullopt;
    if (block.op() != spv::OpTypeStruct || !member || *member + 2 >= block.size()) return false;
    made.offset =
        module_.member_decoration(type, static_cast<uint32_t>(*member), spv::DecorationOffset).value_or(0);
    Instruction array = module_.find(block[2 + static_cast<uint32_t>(*member)]);
    for (++next; next < indices.size() && in(array.op(), spv::OpTypeArray, spv::OpTypeRuntimeArray); ++next) {
        uint32_t at = value(indices[next]);
        if (array.op() == spv::OpTypeArray) {
            const auto length = constants_.integer(array[3]);
            if (!length || *length > INT32_MAX) return false;
            if (made.indices.empty()) {
                made.length = *length;
            } else {
                at = pair(ReachTerm::add,
                          pair(ReachTerm::multiply, made.indices[0], number(int64_t(*length))), at);
                made.length *= *length;
            }
        }
        made.indices = {at};
        made.stride = module_.decoration(array[1], spv::DecorationArrayStride).value_or(0);
        array = module_.find(array[2]);
    }
    if (made.stride == 0) made.indices.clear();
    return made.stride != 0;
}

// -- conditions --------------------------------------------------------------------------------------------

// What holds for all invocations that run a block.
const Facts& Reader::at(uint32_t label) {
    if (const auto known = facts_.find(label); known != facts_.end()) return known->second;
    facts_[label] = {};  // a loop's way back
    Facts made;
    if (blocks_ > most_blocks) return facts_[label];
    made.exact = true;
    if (const uint32_t above = flow_->dominator(label); above != 0) made.guards = at(above).guards;
    const auto of_way = [&](const spirv::Way& way) -> Facts {
        const Instruction end = flow_->end(way.first);
        if (end.op() == spv::OpSwitch && end.size() == 3) return {{}, true};
        if (end.op() != spv::OpBranchConditional || end[2] == end[3]) return {};
        return facts(end[1], way.second == end[2]);
    };
    const spirv::Way entry = flow_->entry(label);
    if (entry.first != 0 && flow_->end(entry.first).op() != spv::OpBranch) {
        const Facts found = of_way(entry);
        made.guards.insert(made.guards.end(), found.guards.begin(), found.guards.end());
    }
    for (const spirv::Way& way : flow_->deciding(label))
        made.exact = made.exact && way.first != label && flow_->entry(way.second) == way &&
                     flow_->dominates(way.second, label) && of_way(way).exact && at(way.first).exact;
    std::sort(made.guards.begin(), made.guards.end());
    made.guards.erase(std::unique(made.guards.begin(), made.guards.end()), made.guards.end());
    return facts_[label] = made;
}

// A condition without its negations, and the value that it then has.
std::pair<uint32_t, bool> Reader::stripped(uint32_t condition, bool holds) const {
    for (uint32_t depth = 0; depth < deepest && module_.find(condition).op() == spv::OpLogicalNot; ++depth) {
        condition = module_.find(condition)[3];
        holds = !holds;
    }
    return {condition, holds};
}

const Facts& Reader::facts(uint32_t condition, bool holds, uint32_t depth) {
    const auto key = stripped(condition, holds);
    if (const auto known = of_conditions_.find(key); known != of_conditions_.end()) return known->second;
    of_conditions_[key] = {};  // while it is looked for
    return of_conditions_[key] = found_facts(key.first, key.second, depth);
}

Facts Reader::found_facts(uint32_t condition, bool holds, uint32_t depth) {
    if (depth > deepest) return {};
    if (const auto* known = constants_.find(condition)) return {{}, (known->bits[0] != 0) == holds};
    const Instruction made = module_.find(condition);
    const auto both = [&](Facts one, const Facts& two) {
        one.guards.insert(one.guards.end(), two.guards.begin(), two.guards.end());
        one.exact = one.exact && two.exact;
        return one;
    };
    switch (made.op()) {
    case spv::OpLogicalAnd:
    case spv::OpLogicalOr:
        if (holds != (made.op() == spv::OpLogicalAnd)) return {};
        return both(facts(made[3], holds, depth + 1), facts(made[4], holds, depth + 1));
    case spv::OpAll:
    case spv::OpAny: {
        const Instruction each = module_.find(made[3]);
        const auto type = each.op() != 0 ? type_of(made[3]) : std::nullopt;
        if (!type || holds != (made.op() == spv::OpAll) || each.size() < 5) return {};
        Facts found{{}, true};
        for (uint32_t i = 0; i < type->count; ++i) found = both(std::move(found), compare(each, holds, i));
        return found;
    }
    case spv::OpPhi: return facts_of_phi(made, holds, depth);
    default: return made.size() < 5 ? Facts{} : compare(made, holds, scalar);
    }
}

// left < right, or left <= right, if only the left one depends on the invocation, and the right one is the
// same for all.
Facts Reader::less(uint32_t left, uint32_t right, bool or_equal) {
    if (!varying_[left] || varying_[right] || loose_[right]) return {};
    if (or_equal) right = pair(ReachTerm::add, right, number(1));
    return {{{left, right}}, true};
}

Facts Reader::compare(Instruction made, bool holds, uint32_t component) {
    const auto operand = [&](uint32_t i) -> uint32_t {
        const auto type = type_of(made[i]);
        if (!type) return unknown(made[i], component);
        if (type->kind != NumericType::Kind::floating) return value(made[i], component);
        // float(x) < float(w), as in shaders with float sizes.
        const Instruction source = module_.find(made[i]);
        if (in(source.op(), spv::OpConvertSToF, spv::OpConvertUToF)) return value(source[3], component);
        return source.op() == spv::OpLoad ? loaded(source[3], component, unknown(made[i], component), true)
                                          : unknown(made[i], component);
    };
    const auto a = [&] { return operand(3); };
    const auto b = [&] { return operand(4); };
    switch (made.op()) {
    case spv::OpULessThan:
    case spv::OpSLessThan:
    case spv::OpFOrdLessThan:
    case spv::OpFUnordLessThan: return holds ? less(a(), b(), false) : less(b(), a(), true);
    case spv::OpULessThanEqual:
    case spv::OpSLessThanEqual:
    case spv::OpFOrdLessThanEqual:
    case spv::OpFUnordLessThanEqual: return holds ? less(a(), b(), true) : less(b(), a(), false);
    case spv::OpUGreaterThan:
    case spv::OpSGreaterThan:
    case spv::OpFOrdGreaterThan:
    case spv::OpFUnordGreaterThan: return holds ? less(b(), a(), false) : less(a(), b(), true);
    case spv::OpUGreaterThanEqual:
    case spv::OpSGreaterThanEqual:
    case spv::OpFOrdGreaterThanEqual:
    case spv::OpFUnordGreaterThanEqual: return holds ? less(b(), a(), true) : less(a(), b(), false);
    case spv::OpIEqual: {
        if (!holds) return {};
        Facts found = less(a(), b(), true);
        found.exact = false;
        return found;
    }
    default: return {};
    }
}

// `a && b` is a phi: `b` on the way on which `a` held, and false on the other ways.
Facts Reader::facts_of_phi(Instruction phi, bool holds, uint32_t depth) {
    const auto label = label_of_.find(phi[2]);
    if (label == label_of_.end() || loops_.contains(label->second) || !flow_->runs(label->second)) return {};
    uint32_t way = 0, found = 0;
    for (uint32_t i = 3; i + 1 < phi.size(); i += 2) {
        const uint32_t from = phi[i + 1];
        const auto [condition, wanted] = stripped(phi[i], holds);
        const auto* constant = constants_.find(condition);
        const Instruction end = flow_->end(from);
        bool excluded = constant && (constant->bits[0] != 0) != wanted;
        if (end.op() == spv::OpBranchConditional && end[2] != end[3]) {
            const auto [branch, value] = stripped(end[1], end[2] == label->second);
            excluded = excluded || (branch == condition && value != wanted);
        }
        if (excluded) continue;
        if (way != 0) return {};
        way = from;
        found = phi[i];
    }
    if (way == 0) return {};
    Facts made = facts(found, holds, depth + 1);
    const Facts& before = at(way);
    made.guards.insert(made.guards.end(), before.guards.begin(), before.guards.end());
    made.exact = made.exact && before.exact && flow_->end(way).op() == spv::OpBranch;
    return made;
}

// -- values ------------------------------------------------------------------------------------------------

uint32_t Reader::expression(ReachExpression made) {
    const auto [known, added] = numbers_.emplace(made, static_cast<uint32_t>(result_.expressions.size()));
    if (!added) return known->second;
    bool varying = made.term == ReachTerm::derived ||
                   in(static_cast<uint32_t>(made.term), static_cast<uint32_t>(ReachTerm::invocation),
                      static_cast<uint32_t>(ReachTerm::local));
    bool loose = made.term == ReachTerm::unknown;
    if (made.term >= ReachTerm::add) {
        varying = varying_[made.a] || varying_[made.b];
        loose = loose_[made.a] || loose_[made.b];
    }
    result_.expressions.push_back(made);
    varying_.push_back(varying);
    loose_.push_back(loose);
    return known->second;
}

uint32_t Reader::pair(ReachTerm term, uint32_t left, uint32_t right) {
    const bool commutes = term == ReachTerm::add || term == ReachTerm::multiply ||
                          term == ReachTerm::minimum || term == ReachTerm::maximum;
    if (commutes && left > right) std::swap(left, right);  // x + y and y + x are one
    return expression({term, 0, left, right});
}

uint32_t Reader::value(uint32_t id, uint32_t component, uint32_t depth) {
    const auto type = type_of(id);
    if (!type || depth > deepest || (component == scalar) != (type->count == 1) ||
        (component != scalar && component >= type->count) || type->kind == NumericType::Kind::floating ||
        type->kind == NumericType::Kind::boolean || (type->width != 32 && type->width != 64))
        return unknown(id, component);
    const auto key = std::pair(id, component);
    if (const auto known = values_.find(key); known != values_.end()) return known->second;
    const uint32_t first = component == scalar ? 0 : component;
    uint32_t made = 0;
    if (const auto* constant = constants_.find(id)) {
        const uint64_t bits = constant->bits[first];
        made = number(type->width == 64 ? static_cast<int64_t>(bits)
                                        : static_cast<int32_t>(static_cast<uint32_t>(bits)));
    } else {
        made = made_of(module_.find(id), component, depth);
        const ReachTerm term = result_.expressions[made].term;
        if (term == ReachTerm::unknown && depends(id))
            made = expression({ReachTerm::derived, id, component, 0});
    }
    values_[key] = made;
    return made;
}

uint32_t Reader::made_of(Instruction made, uint32_t component, uint32_t depth) {
    const uint32_t id = made.result();
    const uint32_t none = unknown(id, component);
    const auto same = [&](uint32_t operand) {  // a conversion that keeps the value
        const auto type = type_of(operand);
        const bool keeps = type && type->width >= 32 && type->kind != NumericType::Kind::floating;
        return keeps ? value(operand, component, depth + 1) : none;
    };
    switch (made.op()) {
    case spv::OpCopyObject:
    case spv::OpUConvert:
    case spv::OpSConvert: return same(made[3]);
    case spv::OpBitcast: {
        const auto to = type_of(id), from = type_of(made[3]);
        return to && from && to->width == from->width ? same(made[3]) : none;
    }
    case spv::OpLoad: return loaded(made[3], component, none);
    case spv::OpCompositeExtract: return made.size() == 5 ? value(made[3], made[4], depth + 1) : none;
    case spv::OpCompositeConstruct: {
        uint32_t at = 0;
        for (uint32_t i = 3; i < made.size() && component != scalar; ++i) {
            const auto part = type_of(made[i]);
            if (!part) return none;
            if (component < at + part->count)
                return value(made[i], part->count == 1 ? scalar : component - at, depth + 1);
            at += part->count;
        }
        return none;
    }
    case spv::OpVectorShuffle: {
        const auto first = type_of(made[3]);
        if (component == scalar || 5 + component >= made.size() || !first) return none;
        const uint32_t chosen = made[5 + component];
        return chosen < first->count ? value(made[3], chosen, depth + 1)
                                     : value(made[4], chosen - first->count, depth + 1);
    }
    case spv::OpPhi: return component == scalar ? counted(made, depth) : none;
    case spv::OpNot:
    case spv::OpSNegate:
        return pair(ReachTerm::subtract, number(made.op() == spv::OpNot ? -1 : 0),
                    value(made[3], component, depth + 1));
    case spv::OpConvertFToU:
    case spv::OpConvertFToS: {  // Kompute's scripts pass sizes as floats
        const Instruction load = module_.find(made[3]);
        return load.op() == spv::OpLoad ? loaded(load[3], component, none, true) : none;
    }
    case spv::OpArrayLength: return of_binding(ReachTerm::length, 0, root(made[3]));
    case spv::OpImageQuerySize:
    case spv::OpImageQuerySizeLod: {
        const Instruction image = module_.find(made[3]);
        const uint32_t variable = root(image.op() == spv::OpImage ? image[3] : made[3]);
        const uint32_t loaded_from =
            module_.find(variable).op() == spv::OpLoad ? module_.find(variable)[3] : variable;
        if (module_.find(loaded_from).op() != spv::OpVariable) return none;
        return of_binding(ReachTerm::image_size, component == scalar ? 0 : component, loaded_from);
    }
    case spv::OpExtInst: return clamped(made, component, depth, none);
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
        return combined(made.op(), value(made[3], component, depth + 1), value(made[4], component, depth + 1),
                        none);
    default: return none;
    }
}

uint32_t Reader::combined(uint32_t op, uint32_t left, uint32_t right, uint32_t none) {
    if (result_.expressions[left].term == ReachTerm::constant && op != spv::OpISub) {
        if (op == spv::OpBitwiseAnd || op == spv::OpBitwiseOr) std::swap(left, right);
    }
    const ReachExpression by = result_.expressions[right];
    const bool known = by.term == ReachTerm::constant;
    const bool shift = known && by.value >= 0 && by.value < 31;
    switch (op) {
    case spv::OpBitwiseOr:  // (group << 6) | local
        if (const auto axis = whole_number(left, right))
            return expression({ReachTerm::invocation, *axis, 0, 0});
        return none;
    case spv::OpIAdd:
        if (const auto axis = whole_number(left, right))
            return expression({ReachTerm::invocation, *axis, 0, 0});
        return pair(ReachTerm::add, left, right);
    case spv::OpISub: return pair(ReachTerm::subtract, left, right);
    case spv::OpIMul: return pair(ReachTerm::multiply, left, right);
    case spv::OpUDiv:
    case spv::OpSDiv: return known && by.value == 1 ? left : pair(ReachTerm::divide, left, right);
    case spv::OpUMod:
    case spv::OpSRem:
    case spv::OpSMod: return pair(ReachTerm::modulo, left, right);
    case spv::OpShiftLeftLogical:
        return shift ? pair(ReachTerm::multiply, left, number(int64_t{1} << by.value)) : none;
    case spv::OpShiftRightLogical:
    case spv::OpShiftRightArithmetic:
        return shift ? pair(ReachTerm::divide, left, number(int64_t{1} << by.value)) : none;
    case spv::OpBitwiseAnd: {
        const bool low = known && by.value >= 0 && ((by.value + 1) & by.value) == 0;
        return low ? pair(ReachTerm::modulo, left, number(by.value + 1)) : none;
    }
    default: return none;
    }
}

// The axis if left + right is gl_WorkGroupID * (the group's size) + gl_LocalInvocationID, which is
// gl_GlobalInvocationID.
std::optional<int64_t> Reader::whole_number(uint32_t left, uint32_t right) const {
    const auto& all = result_.expressions;
    if (all[right].term != ReachTerm::local) std::swap(left, right);
    const ReachExpression& begin = all[left];
    if (all[right].term != ReachTerm::local) return std::nullopt;
    const int64_t axis = all[right].value;
    const auto is = [&](uint32_t term, ReachTerm kind, int64_t value) {
        return all[term].term == kind && all[term].value == value;
    };
    const int64_t size = local_size_[static_cast<size_t>(axis)];
    const auto product = [&](uint32_t a, uint32_t b) {
        return is(a, ReachTerm::group, axis) && is(b, ReachTerm::constant, size);
    };
    const bool times =
        begin.term == ReachTerm::multiply && (product(begin.a, begin.b) || product(begin.b, begin.a));
    return times || (size == 1 && is(left, ReachTerm::group, axis)) ? std::optional(axis) : std::nullopt;
}

// A loop's counter that only grows is its beginning and an unknown number of 0 or more.
uint32_t Reader::counted(Instruction phi, uint32_t depth) {
    const uint32_t none = unknown(phi[2], scalar);
    const uint32_t more = expression({ReachTerm::unknown, phi[2], scalar, 0});
    const auto label = label_of_.find(phi[2]);
    if (label == label_of_.end() || phi.size() != 7) return none;
    for (const uint32_t i : {3u, 5u}) {
        const Instruction step = module_.find(phi[i]);
        if (!loops_.contains(label->second) || step.op() != spv::OpIAdd) continue;
        const uint32_t by = step[3] == phi[2] ? step[4] : step[4] == phi[2] ? step[3] : 0;
        if (by == 0) continue;
        const auto known = constants_.integer(by);
        if (known && static_cast<int32_t>(static_cast<uint32_t>(*known)) < 0) continue;
        return pair(ReachTerm::add, value(phi[8 - i], scalar, depth + 1), more);
    }
    return none;
}

uint32_t Reader::clamped(Instruction made, uint32_t component, uint32_t depth, uint32_t none) {
    const auto set = module_.instruction_sets.find(made[3]);
    if (set == module_.instruction_sets.end() || set->second != "GLSL.std.450" || made.size() < 7)
        return none;
    const auto part = [&](uint32_t i) { return value(made[i], component, depth + 1); };
    switch (made[4]) {
    case GLSLstd450UMin:
    case GLSLstd450SMin: return pair(ReachTerm::minimum, part(5), part(6));
    case GLSLstd450UMax:
    case GLSLstd450SMax: return pair(ReachTerm::maximum, part(5), part(6));
    case GLSLstd450UClamp:
    case GLSLstd450SClamp:
        return made.size() < 8
                   ? none
                   : pair(ReachTerm::minimum, pair(ReachTerm::maximum, part(5), part(6)), part(7));
    default: return none;
    }
}

// The value of a load: of a built-in, a push constant, or memory that nobody writes.
uint32_t Reader::loaded(uint32_t pointer, uint32_t component, uint32_t none, bool floating) {
    std::vector<uint32_t> indices;
    const Instruction variable = module_.find(root(pointer, &indices));
    if (variable.op() != spv::OpVariable) return none;
    const Instruction type = module_.find(variable[1]);
    if (type.op() != spv::OpTypePointer) return none;
    const uint32_t storage = variable[3];
    const bool buffer = storage == spv::StorageClassUniform || storage == spv::StorageClassStorageBuffer;
    if (storage == spv::StorageClassPushConstant || (buffer && !written_.contains(variable[2]))) {
        const auto at = byte_of(type[3], indices, component, floating);
        if (!at) return none;
        if (buffer) return of_binding(ReachTerm::memory, static_cast<int64_t>(*at), variable[2]);
        return expression({ReachTerm::push_constant, static_cast<int64_t>(*at), 0, floating ? 1u : 0u});
    }
    if (storage != spv::StorageClassInput) return none;
    const auto built_in = module_.decoration(variable[2], spv::DecorationBuiltIn);
    if (built_in == uint32_t{spv::BuiltInLocalInvocationIndex}) {
        uint32_t place = expression({ReachTerm::local, 0, 0, 0});
        int64_t step = local_size_[0];
        for (int64_t axis = 1; axis < 3; ++axis) {
            const int64_t size = local_size_[static_cast<size_t>(axis)];
            if (size == 1) continue;
            const uint32_t rows =
                pair(ReachTerm::multiply, expression({ReachTerm::local, axis, 0, 0}), number(step));
            place = pair(ReachTerm::add, place, rows);
            step *= size;
        }
        return place;
    }
    if (indices.size() == 1) {
        const auto chosen = constants_.integer(indices[0]);
        if (!chosen || *chosen > 2) return none;
        component = static_cast<uint32_t>(*chosen);
    }
    if (!built_in || indices.size() > 1 || component > 2) return none;
    switch (*built_in) {
    case spv::BuiltInGlobalInvocationId: return expression({ReachTerm::invocation, component, 0, 0});
    case spv::BuiltInWorkgroupId: return expression({ReachTerm::group, component, 0, 0});
    case spv::BuiltInLocalInvocationId: return expression({ReachTerm::local, component, 0, 0});
    case spv::BuiltInNumWorkgroups: return expression({ReachTerm::groups, component, 0, 0});
    default: return none;
    }
}

// The byte offset in a block that indices name, if it holds a 32-bit number.
std::optional<uint64_t> Reader::byte_of(uint32_t type, const std::vector<uint32_t>& indices,
                                        uint32_t component, bool floating) const {
    uint64_t offset = 0;
    const auto step = [&](uint32_t number) {
        const Instruction outer = module_.find(type);
        if (outer.op() == spv::OpTypeStruct && uint64_t{number} + 2 < outer.size()) {
            const auto at = module_.member_decoration(type, number, spv::DecorationOffset);
            offset += at.value_or(0);
            type = outer[2 + number];
            return at.has_value();
        }
        const bool array = in(outer.op(), spv::OpTypeArray, spv::OpTypeRuntimeArray);
        if (!array && outer.op() != spv::OpTypeVector) return false;
        const auto stride = array ? module_.decoration(type, spv::DecorationArrayStride) : std::optional(4u);
        offset += uint64_t{number} * stride.value_or(0);
        type = outer[2];
        return stride.has_value();
    };
    for (const uint32_t index : indices) {
        const auto chosen = constants_.integer(index);
        if (!chosen || *chosen > UINT32_MAX || !step(static_cast<uint32_t>(*chosen))) return std::nullopt;
    }
    if (component != scalar && !step(component)) return std::nullopt;
    const auto number = spirv::numeric_type(module_, type);
    const bool fits = number && number->count == 1 && number->width == 32 &&
                      (number->kind == NumericType::Kind::floating) == floating;
    return fits ? std::optional(offset) : std::nullopt;
}

// True if arithmetic computes the value from the invocation's number, and not from memory.
bool Reader::depends(uint32_t id, uint32_t depth) {
    const auto [known, added] = depends_.try_emplace(id, true);  // what a loop makes of itself counts, too
    if (!added || depth > 512) return known->second;
    const Instruction made = module_.find(id);
    const uint32_t op = made.op();
    bool found = false;
    if (op == spv::OpLoad) {
        const Instruction variable = module_.find(root(made[3]));
        const auto built_in = variable.op() == spv::OpVariable
                                  ? module_.decoration(variable[2], spv::DecorationBuiltIn)
                                  : std::nullopt;
        found = built_in && *built_in != spv::BuiltInNumWorkgroups && *built_in != spv::BuiltInWorkgroupSize;
    } else if (spirv::only_values(op) && !is_chain(op) &&
               !in(op, spv::OpImageSampleImplicitLod, spv::OpImageRead)) {
        for (uint32_t i = 3; i < made.size() && !found; ++i)
            found = module_.type_of(made[i]) != 0 && depends(made[i], depth + 1);
    } else if (op == spv::OpExtInst) {
        for (uint32_t i = 5; i < made.size() && !found; ++i)
            found = module_.type_of(made[i]) != 0 && depends(made[i], depth + 1);
    }
    return depends_[id] = found;
}

}  // namespace

ShaderReach reach(std::span<const uint32_t> words, const std::string& entry,
                  std::span<const SpecValue> specialization) {
    return Reader(words, entry, specialization).run();
}

}  // namespace kp
