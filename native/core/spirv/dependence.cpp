// About 830 lines because the searches for values and for conditions need each other.
//
// Model. The value of a write is the same for all invocations with one element if it comes only from the
// element's index and from values that are the same for all. So the search goes backwards from the value,
// over operands, memory and the conditions that choose a value. It stops at integers that follow from the
// index, and fails at the numbers of the invocation, at shared memory and at memory that the shader writes.
// An integer follows from the index if the two are equal polynomials up to a factor and to terms that are the
// same for all invocations: y * w + x - 1 follows from 3 * (y * w + x) + 2. What a search has passed is a
// set, so loops need no special care.
//
// A phi also depends on the branches between its dominator and itself, a variable of the invocation on those
// that decide whether it is assigned. Branches on the way to the write do not count among these: all
// invocations that write have passed them. Whether they pass is asked separately. A comparison with a bound
// may differ between invocations, since a bounds check only keeps others out; the caller compares it with
// the grid.
#include "spirv/dependence.hpp"

#include "spirv/operands.hpp"

#include <algorithm>
#include <iterator>

#include <spirv/unified1/GLSL.std.450.h>

namespace kp::spirv {
namespace {

constexpr uint32_t deepest = 64;
constexpr uint32_t deepest_call = 8;
constexpr size_t most_products = 64;
constexpr size_t most_factors = 16;

bool is_chain(uint32_t op) { return in(op, spv::OpAccessChain, spv::OpInBoundsPtrAccessChain); }

bool is_constant(uint32_t op) {
    return op == spv::OpUndef || in(op, spv::OpConstantTrue, spv::OpSpecConstantOp);
}

// Several of these leave the same value as one.
bool writes_once(uint32_t op) {
    return op == spv::OpStore || op == spv::OpAtomicStore || op == spv::OpAtomicExchange ||
           in(op, spv::OpAtomicSMin, spv::OpAtomicOr);
}

uint32_t written_value(Instruction write) {
    if (write.op() == spv::OpStore) return write[2];
    return write.op() == spv::OpAtomicStore ? write[4] : write[6];
}

uint32_t written_pointer(Instruction write) {
    const bool first = write.op() == spv::OpStore || write.op() == spv::OpAtomicStore;
    return write[first ? 1 : 3];
}

bool same_for_all(uint32_t built_in) {
    return built_in == spv::BuiltInNumWorkgroups || built_in == spv::BuiltInWorkgroupSize ||
           built_in == spv::BuiltInSubgroupSize || built_in == spv::BuiltInNumSubgroups;
}

// The factors of `left` that `right` lacks.
std::vector<uint32_t> without(const std::vector<uint32_t>& left, const std::vector<uint32_t>& right) {
    std::vector<uint32_t> rest;
    std::set_difference(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(rest));
    return rest;
}

std::vector<uint32_t> product(const std::vector<uint32_t>& left, const std::vector<uint32_t>& right) {
    std::vector<uint32_t> made;
    std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(made));
    return made;
}

}  // namespace

struct Dependence::Slice {
    bool cut = false;      // stops at what follows from the element's index
    uint32_t ignored = 0;  // axes that do not count, as bits
    std::set<Way>* reads = nullptr;
    std::vector<uint32_t> open;
    std::set<uint32_t> seen;  // values and variables
    std::set<std::pair<uint32_t, Way>> ways;
};

Dependence::Dependence(const Module& module, const Constants& constants, uint32_t entry, Numbering& numbering)
    : module_(module), constants_(constants), numbers_(numbering) {
    const std::vector<const Function*> functions = call_tree(module, entry);
    for (const Function* function : functions)
        for (uint32_t i = 0; i < function->parameters.size(); ++i)
            parameters_[function->parameters[i]] = {function->id, i};
    for (const Function* function : functions) {
        uint32_t label = 0;
        for (const Instruction instruction : function->body) {
            if (instruction.op() == spv::OpLabel) label = instruction[1];
            function_of_[label] = function->id;
            if (instruction.op() == spv::OpFunctionCall)
                calls_[instruction[3]].emplace_back(instruction, label);
            if (instruction.op() == spv::OpReturnValue)
                returned_[function->id].emplace_back(instruction[1], label);
        }
        flows_[function->id] = std::make_unique<Flow>(module, *function);
    }
    for (const Function* function : functions) {
        uint32_t label = 0;
        for (const Instruction instruction : function->body) {
            if (instruction.op() == spv::OpLabel) label = instruction[1];
            index_block(*function, instruction, label);
        }
    }
}

void Dependence::index_block(const Function& function, Instruction instruction, uint32_t label) {
    if (!flows_.at(function.id)->runs(label)) return;
    const uint32_t op = instruction.op();
    if (const uint32_t result = instruction.result()) label_of_[result] = label;
    if (op == spv::OpStore) {
        add_store({instruction[1], instruction[2], 0, label});
        if (module_.storage_class(module_.type_of(instruction[2])))
            for (const uint32_t root : roots(instruction[2])) opaque_.insert(root);
    } else if (op == spv::OpAtomicLoad) {
        return;
    } else if (atomic_access(op)) {
        add_store({written_pointer(instruction), 0, 0, label});
    } else if (op == spv::OpCopyMemory || op == spv::OpCopyMemorySized) {
        add_store({instruction[1], 0, instruction[2], label});
    } else if (op == spv::OpImageWrite || op == spv::OpImageTexelPointer) {
        uint32_t image = numbers_.original(instruction[op == spv::OpImageWrite ? 1 : 3]);
        if (const Instruction load = module_.find(image); load.op() == spv::OpLoad) image = load[3];
        for (const uint32_t root : roots(image)) {
            images_.insert(root);
            any_image_ = any_image_ || root == 0;
        }
    } else if (op == spv::OpExtInst && instruction.size() > 6 &&
               (instruction[4] == GLSLstd450Modf || instruction[4] == GLSLstd450Frexp)) {
        add_store({instruction[6], instruction[2], 0, label});
    } else if (op != spv::OpFunctionCall && op != spv::OpLoad && !is_chain(op) && op != spv::OpCopyObject &&
               op != spv::OpArrayLength && !means_nothing(op) && op != spv::OpBranchConditional &&
               op != spv::OpSwitch) {
        index_pointers(instruction);
    }
}

// Pointers that other instructions use.
void Dependence::index_pointers(Instruction instruction) {
    const uint32_t op = instruction.op();
    uint32_t end = instruction.size();
    if (op == spv::OpCompositeExtract) end = std::min(end, 4u);
    if (op == spv::OpVectorShuffle || op == spv::OpCompositeInsert) end = std::min(end, 5u);
    for (uint32_t i = instruction.result() != 0 ? 3 : 1; i < end; ++i) {
        const auto storage = storage_of(instruction[i]);
        if (!storage || *storage == spv::StorageClassUniformConstant) continue;
        for (const uint32_t root : roots(instruction[i])) {
            opaque_.insert(root);
            if (root == 0) wild_.insert(*storage);
        }
    }
}

void Dependence::add_store(Store store) {
    for (const uint32_t root : roots(store.pointer)) {
        if (root != 0) {
            stores_[root].push_back(store);
        } else if (const auto storage = storage_of(store.pointer)) {
            wild_.insert(*storage);
        }
    }
}

const std::vector<Dependence::Call>& Dependence::calls_of(uint32_t function) const {
    static const std::vector<Call> none;
    const auto found = calls_.find(function);
    return found == calls_.end() ? none : found->second;
}

const Flow* Dependence::flow_of(uint32_t label) const {
    const auto found = function_of_.find(label);
    return found == function_of_.end() ? nullptr : flows_.at(found->second).get();
}

std::optional<uint32_t> Dependence::storage_of(uint32_t pointer) const {
    return module_.storage_class(module_.type_of(pointer));
}

// The variable, parameter or address that a pointer starts at; `indices` receives those of all chains.
uint32_t Dependence::base_of(uint32_t pointer, std::vector<uint32_t>* indices) const {
    pointer = numbers_.original(pointer);
    for (uint32_t depth = 0; depth < deepest; ++depth) {
        const Instruction chain = module_.find(pointer);
        if (!is_chain(chain.op())) return pointer;
        for (uint32_t i = 4; indices && i < chain.size(); ++i) indices->push_back(chain[i]);
        pointer = numbers_.original(chain[3]);
    }
    return 0;
}

// The variables that a pointer may point into; 0 among them is an unknown one.
std::vector<uint32_t> Dependence::roots(uint32_t pointer, uint32_t depth) const {
    const uint32_t base = base_of(pointer);
    if (module_.find(base).op() == spv::OpVariable) return {base};
    const auto parameter = parameters_.find(base);
    if (parameter == parameters_.end() || depth > deepest_call) return {0};
    const auto [function, position] = parameter->second;
    std::vector<uint32_t> found;
    for (const auto& [call, label] : calls_of(function)) {
        const auto more = roots(call[4 + position], depth + 1);
        found.insert(found.end(), more.begin(), more.end());
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

// -- polynomials -------------------------------------------------------------------------------------------

const Dependence::Polynomial& Dependence::polynomial(uint32_t number) {
    const auto known = polynomials_.find(number);
    if (known != polynomials_.end()) return known->second;
    const Polynomial whole{{{number}, 1}};
    if (nested_ == deepest) return polynomials_[number] = whole;
    ++nested_;
    Polynomial made = expanded(numbers_.expression(number), whole);
    --nested_;
    return polynomials_[number] = std::move(made);
}

Dependence::Polynomial Dependence::expanded(const ReachExpression& given, const Polynomial& whole) {
    const ReachExpression made = given;  // numbers may be added meanwhile
    const bool sum = made.term == ReachTerm::add || made.term == ReachTerm::subtract;
    if (made.term == ReachTerm::constant) {
        if (made.value == 0) return {};
        return {{{}, static_cast<uint64_t>(made.value)}};
    }
    if (!sum && made.term != ReachTerm::multiply) return whole;
    const Polynomial left = polynomial(made.a);
    const Polynomial right = polynomial(made.b);
    if (left.size() * right.size() > most_products || left.size() + right.size() > most_products)
        return whole;
    Polynomial result;
    if (sum) {
        result = left;
        for (const auto& [factors, times] : right)
            result[factors] += made.term == ReachTerm::add ? times : uint64_t{0} - times;
    } else {
        for (const auto& [factors, times] : left)
            for (const auto& [others, more] : right) result[product(factors, others)] += times * more;
    }
    const bool long_one = std::any_of(result.begin(), result.end(),
                                      [](const auto& each) { return each.first.size() > most_factors; });
    if (long_one) return whole;
    std::erase_if(result, [](const auto& each) { return each.second == 0; });
    return result;
}

// The terms that an expression is made of, each once.
std::vector<uint32_t> Dependence::leaves(uint32_t number) const {
    std::vector<uint32_t> found, open{number};
    std::set<uint32_t> seen;
    while (!open.empty()) {
        const uint32_t at = open.back();
        open.pop_back();
        if (!seen.insert(at).second) continue;
        const ReachExpression& made = numbers_.expression(at);
        if (made.term < ReachTerm::add)
            found.push_back(at);
        else
            open.insert(open.end(), {made.a, made.b});
    }
    return found;
}

bool Dependence::is_varying(uint32_t number) {
    const auto known = varying_.find(number);
    if (known != varying_.end()) return known->second;
    bool found = false;
    for (const uint32_t leaf : leaves(number)) {
        const ReachExpression made = numbers_.expression(leaf);
        found =
            found || (made.term == ReachTerm::unknown ? differs_in_uniform(static_cast<uint32_t>(made.value))
                                                      : numbers_.varies(leaf));
    }
    return varying_[number] = found;
}

Dependence::Polynomial Dependence::varying_part(uint32_t number) {
    Polynomial found = polynomial(number);
    std::erase_if(found, [&](const auto& each) {
        return std::none_of(each.first.begin(), each.first.end(),
                            [&](uint32_t factor) { return is_varying(factor); });
    });
    return found;
}

bool Dependence::is_integer(uint32_t id) const {
    const auto type = numeric_type(module_, module_.type_of(id));
    return type && type->count == 1 && type->width >= 32 &&
           (type->kind == NumericType::Kind::signed_int || type->kind == NumericType::Kind::unsigned_int);
}

// The axes of the invocation's number that an expression contains, as bits.
uint32_t Dependence::axes(uint32_t number) const {
    uint32_t found = 0;
    for (const uint32_t leaf : leaves(number)) {
        const ReachExpression& made = numbers_.expression(leaf);
        if (made.term == ReachTerm::invocation || made.term == ReachTerm::group ||
            made.term == ReachTerm::local)
            found |= 1u << made.value;
    }
    return found;
}

// True if an expression is the same for all invocations that differ only in `own` axes.
bool Dependence::is_bound(uint32_t number, uint32_t own) {
    if ((axes(number) & own) != 0) return false;
    for (const uint32_t leaf : leaves(number)) {
        const ReachExpression made = numbers_.expression(leaf);
        if (made.term == ReachTerm::derived) return false;
        if (made.term == ReachTerm::unknown &&
            differs({static_cast<uint32_t>(made.value)}, false, nullptr, 7u & ~own))
            return false;
    }
    return true;
}

// True if an integer is the same for all invocations with the element, because of its expression.
bool Dependence::follows_element(uint32_t id) {
    if (!is_integer(id)) return false;
    const uint32_t number = numbers_.number_of(id);
    const ReachExpression made = numbers_.expression(number);
    if (made.term == ReachTerm::unknown && made.value == id) return false;
    const Polynomial own = varying_part(number);
    if (own.empty()) return true;
    if (own.size() != element_.size()) return false;
    // own * up == element_ * down for products `up` and `down` that are the same for all invocations.
    const auto& [first, times] = *own.begin();
    return std::any_of(element_.begin(), element_.end(), [&](const auto& partner) {
        const Product up = without(partner.first, first), down = without(first, partner.first);
        for (const Product* each : {&up, &down})
            for (const uint32_t factor : *each)
                if (is_varying(factor)) return false;
        return std::all_of(own.begin(), own.end(), [&](const auto& term) {
            const Product whole = product(term.first, up);
            if (!std::includes(whole.begin(), whole.end(), down.begin(), down.end())) return false;
            const auto match = element_.find(without(whole, down));
            return match != element_.end() && term.second * partner.second == match->second * times;
        });
    });
}

// -- searches backwards ------------------------------------------------------------------------------------

bool Dependence::differs(std::vector<uint32_t> values, bool cut, std::set<Way>* reads, uint32_t ignored) {
    Slice slice;
    slice.cut = cut;
    slice.ignored = ignored;
    slice.reads = reads;
    slice.open = std::move(values);
    while (!slice.open.empty()) {
        const uint32_t id = numbers_.original(slice.open.back());
        slice.open.pop_back();
        if (slice.seen.insert(id).second && look(slice, id)) return true;
    }
    return false;
}

bool Dependence::differs_in_uniform(uint32_t id) {
    const auto known = uniform_.find(id);
    if (known != uniform_.end()) return known->second;
    const bool found = differs({id}, false);
    uniform_[id] = found;
    return found;
}

// Continues the search at a value's operands. True if it differs itself.
bool Dependence::look(Slice& slice, uint32_t id) {
    const Instruction made = module_.find(id);
    const uint32_t op = made.op();
    if (is_constant(op) || op == spv::OpVariable || constants_.find(id)) return false;
    if (slice.cut && follows_element(id)) return false;
    if (slice.ignored != 0 && is_integer(id)) {
        const ReachExpression number = numbers_.expression(numbers_.number_of(id));
        if (spirv::in(static_cast<uint32_t>(number.term), static_cast<uint32_t>(ReachTerm::invocation),
                      static_cast<uint32_t>(ReachTerm::local)))
            return (slice.ignored >> number.value & 1) == 0;
    }
    uint32_t first = 3;
    uint32_t end = made.size();
    switch (op) {
    case spv::OpLoad: {
        const auto storage = storage_of(made[3]);
        if (storage && (*storage == spv::StorageClassStorageBuffer || *storage == spv::StorageClassUniform)) {
            const uint32_t root = base_of(made[3]);
            if (const Store* store = only_store_before(root, id)) {
                slice.open.push_back(store->value);
                return false;
            }
        }
        return look_at_memory(slice, made[3]);
    }
    case spv::OpPhi: return look_at_phi(slice, made);
    case spv::OpArrayLength: return false;
    case spv::OpFunctionParameter: {
        const auto [function, position] = parameters_.at(id);
        for (const auto& [call, label] : calls_of(function)) slice.open.push_back(call[4 + position]);
        return false;
    }
    case spv::OpFunctionCall: {
        const auto& values = returned_[made[3]];
        for (const auto& [value, label] : values) {
            slice.open.push_back(value);
            const Flow* flow = flow_of(label);
            if (values.size() > 1 && flow && !flow->function().body.empty())
                look_at_ways(slice, label, flow->function().body.front()[1]);
        }
        return values.empty();
    }
    case spv::OpExtInst: {
        const auto set = module_.instruction_sets.find(made[3]);
        if (set == module_.instruction_sets.end() || set->second != "GLSL.std.450") return true;
        first = 5;
        if (made[4] == GLSLstd450Modf || made[4] == GLSLstd450Frexp) end = std::min(end, 6u);
        break;
    }
    case spv::OpCompositeExtract: end = std::min(end, 4u); break;
    case spv::OpVectorShuffle:
    case spv::OpCompositeInsert: end = std::min(end, 5u); break;
    case spv::OpConvertUToPtr:
    case spv::OpConvertPtrToU: break;
    default:
        if (is_chain(op)) return look_at_memory(slice, id);
        if (!only_values(op) || in(op, spv::OpDPdx, spv::OpFwidthCoarse) ||
            in(op, spv::OpGroupNonUniformElect, spv::OpGroupNonUniformQuadSwap) ||
            in(op, spv::OpGroupAll, spv::OpGroupSMax) || op == spv::OpImageTexelPointer)
            return true;
        break;
    }
    const uint32_t literal = mask_index(op);
    const bool image = in(op, spv::OpImageSampleImplicitLod, spv::OpImageRead) ||
                       in(op, spv::OpImageSparseSampleImplicitLod, spv::OpImageSparseRead);
    if (image) {
        // The image itself, through its combination with a sampler.
        uint32_t from = numbers_.original(made[3]);
        for (uint32_t depth = 0; depth < 4; ++depth) {
            const Instruction part = module_.find(from);
            if (part.op() != spv::OpSampledImage && part.op() != spv::OpImage) break;
            from = numbers_.original(part[3]);
        }
        const Instruction load = module_.find(from);
        if (load.op() != spv::OpLoad) return true;
        for (const uint32_t root : roots(load[3]))
            if (root == 0 || any_image_ || images_.contains(root)) return true;
    }
    for (uint32_t i = first; i < end; ++i)
        if (i != literal && module_.type_of(made[i]) != 0) slice.open.push_back(made[i]);
    return false;
}

// A load through `pointer`.
bool Dependence::look_at_memory(Slice& slice, uint32_t pointer) {
    std::vector<uint32_t> indices;
    const uint32_t base = base_of(pointer, &indices);
    slice.open.insert(slice.open.end(), indices.begin(), indices.end());
    for (const uint32_t root : roots(pointer)) {
        if (root == 0) {
            const auto storage = storage_of(pointer);
            if (!storage || *storage != spv::StorageClassPhysicalStorageBuffer || wild_.contains(*storage))
                return true;
            slice.open.push_back(base);  // the address
            continue;
        }
        const Instruction variable = module_.find(root);
        const bool written = stores_.contains(root) || opaque_.contains(root) || wild_.contains(variable[3]);
        switch (variable[3]) {
        case spv::StorageClassPushConstant:
        case spv::StorageClassUniformConstant: break;
        case spv::StorageClassInput: {
            const auto built_in = module_.decoration(root, spv::DecorationBuiltIn);
            if (!built_in || !same_for_all(*built_in)) return true;
            break;
        }
        case spv::StorageClassUniform:
        case spv::StorageClassStorageBuffer:
            if (written) return true;
            if (slice.reads)
                slice.reads->emplace(module_.decoration(root, spv::DecorationDescriptorSet).value_or(0),
                                     module_.decoration(root, spv::DecorationBinding).value_or(0));
            break;
        case spv::StorageClassFunction:
        case spv::StorageClassPrivate:
            if (opaque_.contains(root) || wild_.contains(variable[3])) return true;
            if (slice.seen.insert(root).second && look_at_stores(slice, root)) return true;
            break;
        default: return true;
        }
    }
    return false;
}

// All values that a variable of the invocation is given.
bool Dependence::look_at_stores(Slice& slice, uint32_t variable) {
    const auto stores = stores_.find(variable);
    if (stores == stores_.end()) return false;
    for (const Store& store : stores->second) {
        if (store.value == 0 && store.source == 0) return true;
        if (store.value != 0) slice.open.push_back(store.value);
        if (store.source != 0 && look_at_memory(slice, store.source)) return true;
        (void)base_of(store.pointer, &slice.open);  // the parts that are given values
        look_at_ways(slice, store.label, 0);
    }
    return false;
}

bool Dependence::look_at_phi(Slice& slice, Instruction phi) {
    const auto label = label_of_.find(phi[2]);
    const Flow* flow = label == label_of_.end() ? nullptr : flow_of(label->second);
    if (!flow) return true;
    const uint32_t above = flow->dominator(label->second);
    bool several = false;
    for (uint32_t i = 3; i + 1 < phi.size(); i += 2) {
        slice.open.push_back(phi[i]);
        several = several || numbers_.original(phi[i]) != numbers_.original(phi[3]);
    }
    for (uint32_t i = 3; several && i + 1 < phi.size(); i += 2) {
        const Instruction end = flow->end(phi[i + 1]);
        const Way way{phi[i + 1], label->second};
        if ((end.op() == spv::OpBranchConditional || end.op() == spv::OpSwitch) && !assumed_.contains(way))
            slice.open.push_back(end[1]);
        look_at_ways(slice, phi[i + 1], above);
    }
    return false;
}

// Adds the conditions that decide whether a block runs. Only those behind `above` count, if it is given.
void Dependence::look_at_ways(Slice& slice, uint32_t label, uint32_t above) {
    std::vector<uint32_t> open{label};
    std::set<uint32_t> tops;  // functions whose calls count
    while (!open.empty()) {
        const uint32_t at = open.back();
        open.pop_back();
        const Flow* flow = flow_of(at);
        if (!flow) continue;
        for (const Way& way : flow->deciding(at)) {
            if (assumed_.contains(way) || (above != 0 && !flow->dominates(above, way.first))) continue;
            if (!slice.ways.insert({above, way}).second) continue;
            slice.open.push_back(flow->end(way.first)[1]);
            open.push_back(way.first);
        }
        if (above == 0 && tops.insert(flow->function().id).second)
            for (const auto& [call, from] : calls_of(flow->function().id)) open.push_back(from);
    }
}

// The store that gives a load its value: the buffer's only one, at the same element, once, before the load.
const Dependence::Store* Dependence::only_store_before(uint32_t variable, uint32_t load) const {
    const auto stores = stores_.find(variable);
    const auto at = label_of_.find(load);
    if (stores == stores_.end() || stores->second.size() != 1 || at == label_of_.end()) return nullptr;
    const Instruction variable_made = module_.find(variable);
    if (opaque_.contains(variable) || wild_.contains(variable_made[3])) return nullptr;
    const Store& store = stores->second.front();
    const Flow* flow = flow_of(at->second);
    if (store.value == 0 || !flow || flow != flow_of(store.label) || flow->repeats(store.label) ||
        flows_.size() != 1)
        return nullptr;
    std::vector<uint32_t> written, read;
    const uint32_t pointer = module_.find(load)[3];
    (void)base_of(store.pointer, &written);
    (void)base_of(pointer, &read);
    const bool same =
        std::equal(written.begin(), written.end(), read.begin(), read.end(), [&](uint32_t a, uint32_t b) {
            return numbers_.original(a) == numbers_.original(b) ||
                   numbers_.number_of(a) == numbers_.number_of(b);
        });
    if (!same) return nullptr;
    if (store.label != at->second) return flow->dominates(store.label, at->second) ? &store : nullptr;
    for (const Instruction instruction : flow->function().body) {
        if (instruction.op() == spv::OpStore && instruction[1] == store.pointer &&
            instruction[2] == store.value)
            return &store;
        if (instruction.result() == load) return nullptr;
    }
    return nullptr;
}

// -- conditions --------------------------------------------------------------------------------------------

// Notes the ways that every invocation takes that runs the block.
void Dependence::assume(uint32_t label) {
    if (place_ == label) return;
    place_ = label;
    assumed_.clear();
    uniform_.clear();
    varying_.clear();
    for (uint32_t depth = 0; depth < deepest_call; ++depth) {
        const Flow* flow = flow_of(label);
        for (uint32_t at = label; flow && at != 0; at = flow->dominator(at))
            if (const Way way = flow->entry(at); way.first != 0) assumed_.insert(way);
        if (!flow || calls_of(flow->function().id).size() != 1) return;
        label = calls_of(flow->function().id).front().second;
    }
}

// The value that a branch's condition has on a way.
std::optional<Dependence::Fact> Dependence::fact_of(const Way& way) const {
    const Flow* flow = flow_of(way.first);
    const Instruction end = flow ? flow->end(way.first) : Instruction();
    if (end.op() != spv::OpBranchConditional || end[2] == end[3]) return std::nullopt;
    return Fact{end[1], way.second == end[2]};
}

// The facts that make up a fact: both sides of `a && b`.
void Dependence::split(const Fact& fact, std::vector<Fact>& found, uint32_t depth) {
    const uint32_t condition = numbers_.original(fact.condition);
    const Instruction made = module_.find(condition);
    const bool holds = fact.holds;
    const auto is = [&](uint32_t id, bool value) {
        const ConstantValue* constant = constants_.find(id);
        return constant && (constant->bits[0] != 0) == value;
    };
    const auto both = [&](const Fact& one, const Fact& other) {
        split(one, found, depth + 1);
        split(other, found, depth + 1);
    };
    if (depth < deepest && found.size() < most_products) {
        switch (made.op()) {
        case spv::OpLogicalNot: return split({made[3], !holds}, found, depth + 1);
        case spv::OpLogicalAnd:
            if (holds) return both({made[3], true}, {made[4], true});
            break;
        case spv::OpLogicalOr:
            if (!holds) return both({made[3], false}, {made[4], false});
            break;
        case spv::OpSelect:
            // `c && a`, `c || b` and their likes.
            if (is(made[5], !holds)) return both({made[3], true}, {made[4], holds});
            if (is(made[4], !holds)) return both({made[3], false}, {made[5], holds});
            break;
        case spv::OpAll:
        case spv::OpAny: {
            const Instruction parts = module_.find(numbers_.original(made[3]));
            if (parts.op() != spv::OpCompositeConstruct || holds != (made.op() == spv::OpAll)) break;
            for (uint32_t i = 3; i < parts.size(); ++i) split({parts[i], holds}, found, depth + 1);
            return;
        }
        case spv::OpLoad: {
            const uint32_t variable = numbers_.original(made[3]);
            const bool local = module_.find(variable).op() == spv::OpVariable;
            if (const uint32_t value = local ? numbers_.only_value(variable) : 0)
                return split({value, holds}, found, depth + 1);
            break;
        }
        case spv::OpPhi: return split_phi(made, holds, found, depth);
        default: break;
        }
    }
    found.push_back({condition, holds});
}

// `a && b` as branches: the value is `b` on the way on which `a` held.
void Dependence::split_phi(Instruction phi, bool holds, std::vector<Fact>& found, uint32_t depth) {
    const auto label = label_of_.find(phi[2]);
    const Flow* flow = label == label_of_.end() ? nullptr : flow_of(label->second);
    uint32_t value = 0, from = 0, ways = 0;
    for (uint32_t i = 3; flow && i + 1 < phi.size(); i += 2) {
        const ConstantValue* constant = constants_.find(phi[i]);
        bool possible = !constant || (constant->bits[0] != 0) == holds;
        if (const auto fact = fact_of({phi[i + 1], label->second})) {
            // The branch to the phi is on its own value.
            const Instruction condition = module_.find(numbers_.original(fact->condition));
            const uint32_t own = numbers_.original(phi[i]);
            if (numbers_.original(fact->condition) == own) possible = possible && fact->holds == holds;
            if (condition.op() == spv::OpLogicalNot && numbers_.original(condition[3]) == own)
                possible = possible && fact->holds != holds;
        }
        if (!possible) continue;
        ++ways;
        value = phi[i];
        from = phi[i + 1];
    }
    if (ways != 1) return found.push_back({phi[2], holds});
    split({value, holds}, found, depth + 1);
    if (const auto fact = fact_of({from, label->second})) split(*fact, found, depth + 1);
    for (uint32_t at = from; at != 0 && at != flow->dominator(label->second); at = flow->dominator(at)) {
        const Way way = flow->entry(at);
        const auto fact = way.first == 0 ? std::nullopt : fact_of(way);
        const bool plain = way.first != 0 && flow->end(way.first).op() == spv::OpBranch;
        if (fact)
            split(*fact, found, depth + 1);
        else if (!plain)
            found.push_back({phi[2], holds});
    }
}

// The comparisons of numbers that differ between invocations, in a fact.
void Dependence::compare(const Fact& fact, std::vector<Comparison>& found) {
    Instruction made = module_.find(fact.condition);
    uint32_t parts = 1;
    const bool vectors = made.op() == spv::OpAll || made.op() == spv::OpAny;
    if (vectors) {
        if (fact.holds != (made.op() == spv::OpAll)) return;
        made = module_.find(numbers_.original(made[3]));
    }
    if (in(made.op(), spv::OpFOrdEqual, spv::OpFUnordGreaterThanEqual)) {
        if (!vectors) compare_float(made, fact.holds, found);
        return;
    }
    if (!in(made.op(), spv::OpIEqual, spv::OpSLessThanEqual)) return;
    if (vectors) {
        const auto type = numeric_type(module_, made.type());
        parts = type ? std::min(type->count, 4u) : 0;
    }
    const ReachExpression one{ReachTerm::constant, 1, 0, 0};
    const auto less = [&](uint32_t left, uint32_t right, bool or_equal) {
        if (!numbers_.varies(left) || !is_bound(right, axes(left))) return;
        if (or_equal) {
            const ReachExpression bound = numbers_.expression(right);
            right = bound.term == ReachTerm::constant
                        ? numbers_.number_of({ReachTerm::constant, bound.value + 1, 0, 0})
                        : numbers_.number_of({ReachTerm::add, 0, right, numbers_.number_of(one)});
        }
        found.emplace_back(left, right);
    };
    for (uint32_t i = 0; i < parts; ++i) {
        const uint32_t a = vectors ? numbers_.number_of_part(made[3], i) : numbers_.number_of(made[3]);
        const uint32_t b = vectors ? numbers_.number_of_part(made[4], i) : numbers_.number_of(made[4]);
        switch (made.op()) {
        case spv::OpULessThan:
        case spv::OpSLessThan: fact.holds ? less(a, b, false) : less(b, a, true); break;
        case spv::OpULessThanEqual:
        case spv::OpSLessThanEqual: fact.holds ? less(a, b, true) : less(b, a, false); break;
        case spv::OpUGreaterThan:
        case spv::OpSGreaterThan: fact.holds ? less(b, a, false) : less(a, b, true); break;
        case spv::OpUGreaterThanEqual:
        case spv::OpSGreaterThanEqual: fact.holds ? less(b, a, true) : less(a, b, false); break;
        case spv::OpIEqual:
            if (fact.holds) less(numbers_.varies(a) ? a : b, numbers_.varies(a) ? b : a, true);
            break;
        default: break;
        }
    }
}

// float(x) < width: a check with an unknown bound.
void Dependence::compare_float(Instruction made, bool holds, std::vector<Comparison>& found) {
    const uint32_t op = made.op();
    if (op < spv::OpFOrdLessThan) return;
    const bool less = op == spv::OpFOrdLessThan || op == spv::OpFUnordLessThan ||
                      op == spv::OpFOrdLessThanEqual || op == spv::OpFUnordLessThanEqual;
    uint32_t id = made[less == holds ? 3 : 4];
    for (uint32_t depth = 0; depth < deepest; ++depth) {
        const Instruction small = module_.find(numbers_.original(id));
        if (small.op() == spv::OpConvertUToF || small.op() == spv::OpConvertSToF) {
            const uint32_t number = numbers_.number_of(small[3]);
            const uint32_t bound = made[less == holds ? 4 : 3];
            if (numbers_.varies(number) && !differs({bound}, false, nullptr, 7u & ~axes(number)))
                found.emplace_back(number, numbers_.number_of({ReachTerm::unknown, made[2], 0, 0}));
            return;
        }
        if (small.op() != spv::OpFAdd && small.op() != spv::OpFSub && small.op() != spv::OpFMul &&
            small.op() != spv::OpFDiv)
            return;
        if (constants_.find(small[3]))
            id = small[4];
        else if (constants_.find(small[4]))
            id = small[3];
        else
            return;
    }
}

// Whether invocations with one element all write it or all do not, if `made.required` holds.
bool Dependence::conditions_agree(uint32_t label, ReachWrite& made) {
    std::set<Way> seen;
    std::vector<uint32_t> open{label};
    std::set<uint32_t> tops;
    std::set<Way> reads;
    while (!open.empty()) {
        const uint32_t at = open.back();
        open.pop_back();
        const Flow* flow = flow_of(at);
        if (!flow) return false;
        for (const Way& way : flow->deciding(at)) {
            if (!seen.insert(way).second) continue;
            open.push_back(way.first);
            if (!differs({flow->end(way.first)[1]}, true, &reads)) continue;
            const auto fact = fact_of(way);
            if (!fact || !assumed_.contains(way)) return false;
            std::vector<Fact> facts;
            split(*fact, facts, 0);
            for (const Fact& each : facts) {
                if (!differs({each.condition}, true, &reads)) continue;
                const size_t known = made.required.size();
                compare(each, made.required);
                if (made.required.size() == known) return false;
            }
        }
        if (tops.insert(flow->function().id).second)
            for (const auto& [call, from] : calls_of(flow->function().id)) open.push_back(from);
    }
    made.reads.insert(made.reads.end(), reads.begin(), reads.end());
    return true;
}

ReachWrite Dependence::judge(Instruction write, uint32_t label, uint32_t index) {
    ReachWrite made;
    if (!flow_of(label) || !flow_of(label)->runs(label)) return made;
    assume(label);
    element_ = varying_part(index);
    for (const auto& [factors, times] : element_)
        for (const uint32_t factor : factors) {
            const ReachTerm term = numbers_.expression(factor).term;
            const bool followed = term != ReachTerm::unknown && term != ReachTerm::derived &&
                                  term != ReachTerm::minimum && term != ReachTerm::maximum &&
                                  term != ReachTerm::either;
            if (!followed && is_varying(factor)) return made;
        }
    for (const Way& way : assumed_)
        if (const auto fact = fact_of(way)) {
            std::vector<Fact> facts;
            split(*fact, facts, 0);
            // What follows from the element keeps out either all invocations with it or none.
            for (const Fact& each : facts)
                if (differs({each.condition}, true)) compare(each, made.holding);
        }
    made.same = ReachWrite::Same::no;
    if (!writes_once(write.op())) return made;
    std::vector<uint32_t> values{written_value(write)};
    (void)base_of(written_pointer(write), &values);
    std::set<Way> reads;
    if (differs(std::move(values), true, &reads)) return made;
    made.reads.assign(reads.begin(), reads.end());
    if (conditions_agree(label, made)) made.same = ReachWrite::Same::yes;
    return made;
}

}  // namespace kp::spirv
