// Model. A demand names the components of a value that matter: to memory that outlives the invocation, to an
// image, or to a branch. Demands start at the instructions that have such effects and go backwards, from
// results to operands, until nothing changes. The demands that reach the variables of the built-in numbers
// are the answer. Dead code demands nothing.
//
// Variables of the invocation and of the group, and values of struct types, are places: a demand on a load is
// a demand on every store to the same place. Places that are copied into each other, or passed to functions,
// become one place (union-find). The members of a struct are separate; the elements of an array are not. The
// order of instructions does not matter.
//
// A demand also records how the value was scaled. If a group's number is always multiplied by at least the
// group's size, it counts tiles of invocations, as gl_GlobalInvocationID does. Scales are kept for each
// component, as the set of sizes that the factor reaches.
#include "spirv/invocation.hpp"

#include "spirv/constants.hpp"
#include "spirv/module.hpp"
#include "spirv/operands.hpp"
#include "spirv/reflect.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <spirv/unified1/GLSL.std.450.h>

namespace kp {
namespace spirv {
namespace {

constexpr uint8_t every_part = 0xF;
constexpr uint32_t deepest_chain = 64;  // chains upon chains
constexpr uint32_t last_member = 31;    // members from here on share one place

// The parts of a value that matter. A scalar has part 0, a vector up to four; of other values all parts
// matter.
struct Demand {
    uint8_t parts = 0;
    uint8_t firm =
        0;  // of `parts`: known exactly, not only because another part of the same aggregate matters
    // For each part: the sizes of a group that its factor reaches (bits 0 to 2: by axis, bit 3: the whole
    // group).
    std::array<uint8_t, 4> scales{every_part, every_part, every_part, every_part};

    // Returns true if anything was added.
    bool merge(const Demand& other) {
        bool changed = (other.parts & ~parts) != 0 || (other.firm & ~firm) != 0;
        for (uint32_t part = 0; part < 4; ++part) {
            if ((other.parts >> part & 1) == 0) continue;
            const uint8_t met = (parts >> part & 1) ? scales[part] & other.scales[part] : other.scales[part];
            changed = changed || met != scales[part];
            scales[part] = met;
        }
        parts |= other.parts;
        firm |= other.firm;
        return changed;
    }

    [[nodiscard]] uint8_t least_scale() const {
        uint8_t least = every_part;
        for (uint32_t part = 0; part < 4; ++part)
            if (parts >> part & 1) least &= scales[part];
        return least;
    }
};

// A part of a variable, or of a value of struct type.
struct Place {
    uint32_t root = 0;  // 0: memory that outlives the invocation, or unknown
    uint32_t member = 0;
    enum class Part : uint8_t { whole, one, any, inexact } part = Part::whole;
    uint32_t index = 0;  // of the component, with Part::one
};

class Analysis {
public:
    Analysis(const Module& module, const Constants& constants, uint32_t entry,
             const std::array<uint32_t, 3>& local_size)
        : module_(module), constants_(constants), local_size_(local_size) {
        invocations_ = uint64_t{local_size[0]} * local_size[1] * local_size[2];
        parents_.resize(module.id_limit());
        for (uint32_t id = 0; id < parents_.size(); ++id) parents_[id] = id;
        demands_.resize(module.id_limit());
        const std::vector<const Function*> functions = call_tree(module, entry);
        for (const Function* function : functions)
            for (uint32_t i = 0; i < function->parameters.size(); ++i)
                parameters_[function->parameters[i]] = {function, i};
        for (const Function* function : functions)
            for (const Instruction instruction : function->body) join_places(*function, instruction);
        for (const Function* function : functions)
            for (const Instruction instruction : function->body) collect_store(instruction);
        for (const Function* function : functions)
            for (const Instruction instruction : function->body) start(instruction);
        while (!changed_.empty()) {
            const uint32_t id = changed_.back();
            changed_.pop_back();
            spread(id);
        }
    }

    [[nodiscard]] InvocationUse result() const;

private:
    [[nodiscard]] bool known(uint32_t id) const { return id != 0 && id < demands_.size(); }
    [[nodiscard]] uint32_t find(uint32_t id) const {
        while (parents_[id] != id) id = parents_[id] = parents_[parents_[id]];
        return id;
    }
    void join(uint32_t a, uint32_t b) {
        if (!known(a) || !known(b)) return;
        a = find(a);
        b = find(b);
        if (a != b) parents_[std::max(a, b)] = std::min(a, b);
    }

    [[nodiscard]] Instruction type_of(uint32_t id) const { return module_.find(module_.type_of(id)); }
    [[nodiscard]] bool is_pointer(uint32_t id) const {
        const uint32_t op = type_of(id).op();
        return op == spv::OpTypePointer || op == newer::type_untyped_pointer;
    }
    [[nodiscard]] bool is_aggregate(uint32_t id) const {
        const uint32_t op = type_of(id).op();
        return op == spv::OpTypeStruct || op == spv::OpTypeArray || op == spv::OpTypeMatrix;
    }
    // Components of a type: 1 for scalars, 0 for types that are neither scalar nor vector.
    [[nodiscard]] static uint32_t components(Instruction type) {
        if (type.op() == spv::OpTypeVector) return std::min(type[3], 4u);
        return in(type.op(), spv::OpTypeBool, spv::OpTypeFloat) ? 1 : 0;
    }
    [[nodiscard]] Demand all_of(uint32_t id, uint8_t scale, bool firm = true) const {
        const uint32_t count = components(type_of(id));
        Demand demand;
        demand.parts = count == 0 ? every_part : static_cast<uint8_t>((1u << count) - 1);
        demand.firm = firm ? demand.parts : 0;
        demand.scales.fill(scale);
        return demand;
    }
    // The sizes that a factor reaches.
    [[nodiscard]] uint8_t scale_of(uint64_t factor) const {
        if (factor > 0x7FFFFFFFu) return scale_of(1);  // negative
        uint8_t scale = factor >= invocations_ ? 8 : 0;
        for (uint32_t axis = 0; axis < 3; ++axis)
            if (factor >= local_size_[axis]) scale |= static_cast<uint8_t>(1u << axis);
        return scale;
    }
    [[nodiscard]] std::optional<uint64_t> constant(uint32_t id, uint32_t part, uint32_t depth = 0) const;

    [[nodiscard]] bool private_place(uint32_t id) const;
    [[nodiscard]] Place place_of(uint32_t pointer) const;
    [[nodiscard]] Place value_place(uint32_t value, uint32_t member) const {
        return {find(value), std::min(member, last_member), Place::Part::whole, 0};
    }
    void index_member(Place& place, Instruction& type, uint32_t index) const;

    void join_places(const Function& function, Instruction instruction);
    void join_pointers(uint32_t a, uint32_t b);
    void escape(std::initializer_list<uint32_t> roots) { escaped_.insert(escaped_.end(), roots); }
    void collect_store(Instruction instruction);
    void start(Instruction instruction);
    void spread(uint32_t id);
    void spread_scaled(Instruction instruction, const Demand& demand);
    void want(uint32_t id, const Demand& demand);
    void want_all(uint32_t id);
    void want_operands(Instruction instruction, uint32_t first);
    void want_chain(uint32_t pointer);
    void want_place(const Place& place, const Demand& demand);
    void want_everything_of(uint32_t root);
    void want_stored(const Place& place, uint32_t value);

    struct Store {
        Place place;
        uint32_t pointer = 0;  // 0: a part of a value
        uint32_t value = 0;
    };

    const Module& module_;
    const Constants& constants_;
    std::array<uint32_t, 3> local_size_;
    uint64_t invocations_ = 1;
    mutable std::vector<uint32_t> parents_;  // by id: of places that were united
    std::vector<Demand> demands_;            // by id of a value
    std::vector<uint32_t> changed_;
    std::map<std::pair<uint32_t, uint32_t>, Demand> places_;   // by root and member
    std::unordered_map<uint32_t, std::vector<Store>> stores_;  // by root
    std::unordered_map<uint32_t, std::pair<const Function*, uint32_t>> parameters_;
    std::unordered_map<uint32_t, std::vector<Instruction>> calls_;  // by function
    std::unordered_map<uint32_t, std::vector<uint32_t>> returned_;  // by function
    std::vector<uint32_t> escaped_;  // roots with memory that other code may read
};

std::optional<uint64_t> Analysis::constant(uint32_t id, uint32_t part, uint32_t depth) const {
    if (const ConstantValue* value = constants_.find(id))
        return value->type.kind == NumericType::Kind::floating
                   ? std::nullopt
                   : std::optional(value->bits[std::min(part, 3u)]);
    const Instruction instruction = module_.find(id);
    if (depth > 8) return std::nullopt;
    switch (instruction.op()) {
    case spv::OpCompositeExtract:
        if (instruction.size() != 5) return std::nullopt;
        return constant(instruction[3], instruction[4], depth + 1);
    case spv::OpVectorShuffle: {
        if (part + 5 >= instruction.size()) return std::nullopt;
        const uint32_t first = components(type_of(instruction[3]));
        const uint32_t from = instruction[5 + part];
        return from < first ? constant(instruction[3], from, depth + 1)
                            : constant(instruction[4], from - first, depth + 1);
    }
    case spv::OpCompositeConstruct:
        // Only if each operand gives one component: a vector among them shifts the positions. A part beyond
        // the end of the vector has no value.
        if (instruction.size() != 3 + components(type_of(id)) || 3 + part >= instruction.size())
            return std::nullopt;
        return constant(instruction[3 + part], 0, depth + 1);
    case spv::OpBitcast:
    case spv::OpUConvert:
    case spv::OpSConvert:
    case spv::OpCopyObject: return constant(instruction[3], part, depth + 1);
    default: return std::nullopt;
    }
}

// True if the variable's memory belongs to the invocation or its group, or holds one of its numbers.
bool Analysis::private_place(uint32_t id) const {
    const auto storage = module_.storage_class(module_.type_of(id));
    return storage && (*storage == spv::StorageClassFunction || *storage == spv::StorageClassPrivate ||
                       *storage == spv::StorageClassWorkgroup || *storage == spv::StorageClassInput);
}

// Steps from `type` to its member or component `index`, which is a literal, or UINT32_MAX if unknown.
void Analysis::index_member(Place& place, Instruction& type, uint32_t index) const {
    if (place.part != Place::Part::whole) {
        place.part = Place::Part::inexact;
    } else if (type.op() == spv::OpTypeVector) {
        place.part = index == UINT32_MAX ? Place::Part::any : Place::Part::one;
        place.index = std::min(index, 3u);
    } else if (type.op() == spv::OpTypeStruct && place.member == 0 && index != UINT32_MAX) {
        place.member = std::min(index, last_member - 1) + 1;
        type = index + 2 < type.size() ? module_.find(type[index + 2]) : Instruction();
    } else {
        place.part = Place::Part::inexact;
    }
}

Place Analysis::place_of(uint32_t pointer) const {
    std::vector<Instruction> chains;
    uint32_t id = pointer;
    Instruction instruction = module_.find(id);
    while (in(instruction.op(), spv::OpAccessChain, spv::OpInBoundsPtrAccessChain) ||
           instruction.op() == spv::OpCopyObject) {
        if (chains.size() == deepest_chain) return {};
        if (instruction.op() != spv::OpCopyObject) chains.push_back(instruction);
        id = instruction[3];
        instruction = module_.find(id);
    }
    if (!known(id) || !private_place(id)) return {};
    const bool root = instruction.op() == spv::OpVariable || instruction.op() == spv::OpFunctionParameter ||
                      instruction.op() == spv::OpPhi || instruction.op() == spv::OpSelect;
    if (!root) return {};
    Place place;
    place.root = find(id);
    Instruction type = type_of(id);
    type = type.op() == spv::OpTypePointer ? module_.find(type[3]) : Instruction();
    for (auto chain = chains.rbegin(); chain != chains.rend(); ++chain) {
        if (chain->op() != spv::OpAccessChain && chain->op() != spv::OpInBoundsAccessChain)
            place.part = Place::Part::inexact;
        for (uint32_t i = 4; i < chain->size(); ++i) {
            const auto index = constants_.integer((*chain)[i]);
            index_member(place, type,
                         index && *index < UINT32_MAX ? static_cast<uint32_t>(*index) : UINT32_MAX);
        }
    }
    return place;
}

void Analysis::join_pointers(uint32_t a, uint32_t b) {
    const Place at = place_of(a);
    const Place other = place_of(b);
    if (at.root == 0 && other.root == 0) return;
    if (at.root == 0 || other.root == 0 || at.part != Place::Part::whole ||
        other.part != Place::Part::whole || at.member != 0 || other.member != 0) {
        // A part passed as a pointer, or one of several memories: the parts are no longer separate.
        escape({at.root, other.root});
        return;
    }
    join(at.root, other.root);
}

void Analysis::join_places(const Function& function, Instruction instruction) {
    switch (instruction.op()) {
    case spv::OpFunctionCall: {
        calls_[instruction[3]].push_back(instruction);
        const Function* callee = module_.function(instruction[3]);
        if (is_aggregate(instruction[2])) join(instruction[2], callee->id);
        for (uint32_t i = 0; i < callee->parameters.size() && 4 + i < instruction.size(); ++i) {
            if (is_pointer(callee->parameters[i]))
                join_pointers(callee->parameters[i], instruction[4 + i]);
            else if (is_aggregate(callee->parameters[i]))
                join(callee->parameters[i], instruction[4 + i]);
        }
        return;
    }
    case spv::OpReturnValue:
        returned_[function.id].push_back(instruction[1]);
        if (is_aggregate(instruction[1])) join(function.id, instruction[1]);
        return;
    case spv::OpPhi:
    case spv::OpSelect: {
        const uint32_t step = instruction.op() == spv::OpPhi ? 2 : 1;
        for (uint32_t i = instruction.op() == spv::OpPhi ? 3 : 4; i < instruction.size(); i += step) {
            if (is_pointer(instruction[2]))
                join_pointers(instruction[2], instruction[i]);
            else if (is_aggregate(instruction[2]))
                join(instruction[2], instruction[i]);
        }
        return;
    }
    case spv::OpCopyObject:
    case spv::OpCopyLogical:
        if (is_aggregate(instruction[2])) join(instruction[2], instruction[3]);
        return;
    // Aggregates in aggregates are not followed.
    case spv::OpCompositeExtract:
        if (is_aggregate(instruction[2])) escape({instruction[2], instruction[3]});
        return;
    case spv::OpCompositeInsert:
        if (is_aggregate(instruction[3])) escape({instruction[2], instruction[3], instruction[4]});
        return;
    case spv::OpCompositeConstruct:
        for (uint32_t i = 3; i < instruction.size(); ++i)
            if (is_aggregate(instruction[i])) escape({instruction[2], instruction[i]});
        return;
    case spv::OpLoad:
    case spv::OpStore: {
        // A copy of a whole struct: the variable and the value become one place.
        const bool loads = instruction.op() == spv::OpLoad;
        const uint32_t value = instruction[2];
        if (!is_aggregate(value)) return;
        const Place place = place_of(instruction[loads ? 3 : 1]);
        if (place.root == 0) return;
        if (place.part == Place::Part::whole && place.member == 0)
            join(place.root, value);
        else
            escape({place.root, value});
        return;
    }
    case spv::OpCopyMemory:
    case spv::OpCopyMemorySized: join_pointers(instruction[1], instruction[2]); return;
    default: return;
    }
}

void Analysis::collect_store(Instruction instruction) {
    switch (instruction.op()) {
    case spv::OpStore: {
        const Place place = place_of(instruction[1]);
        if (place.root != 0) stores_[place.root].push_back({place, instruction[1], instruction[2]});
        return;
    }
    case spv::OpCompositeConstruct: {
        if (!is_aggregate(instruction[2])) return;
        for (uint32_t i = 3; i < instruction.size(); ++i) {
            Place place = value_place(instruction[2], i - 2);
            if (type_of(instruction[2]).op() != spv::OpTypeStruct) place.part = Place::Part::inexact;
            stores_[place.root].push_back({place, 0, instruction[i]});
        }
        return;
    }
    case spv::OpCompositeInsert: {
        if (!is_aggregate(instruction[2])) return;
        Place place = value_place(instruction[2], 0);
        Instruction type = type_of(instruction[2]);
        for (uint32_t i = 5; i < instruction.size(); ++i) index_member(place, type, instruction[i]);
        stores_[place.root].push_back({place, 0, instruction[3]});
        stores_[place.root].push_back({value_place(instruction[2], 0), 0, instruction[4]});
        return;
    }
    default: return;
    }
}

// Starts at instructions that have effects beyond the invocation, or that decide its course.
void Analysis::start(Instruction instruction) {
    const uint32_t op = instruction.op();
    if (op == spv::OpStore) {
        if (place_of(instruction[1]).root != 0) return;
        want_chain(instruction[1]);
        want_all(instruction[2]);
        if (is_aggregate(instruction[2])) want_everything_of(instruction[2]);
    } else if (op == spv::OpBranchConditional || op == spv::OpSwitch) {
        want_all(instruction[1]);
    } else if (op == spv::OpCopyMemory || op == spv::OpCopyMemorySized) {
        for (const uint32_t pointer : {instruction[1], instruction[2]}) {
            want_chain(pointer);
            if (const Place place = place_of(pointer); place.root != 0) want_everything_of(place.root);
        }
    } else if (op == spv::OpExtInst) {
        const auto found = module_.instruction_sets.find(instruction[3]);
        const std::string set = found == module_.instruction_sets.end() ? "" : found->second;
        if (set.starts_with("NonSemantic.") || set.find("DebugInfo") != std::string::npos) return;
        if (set != "GLSL.std.450" || instruction[4] == GLSLstd450Modf || instruction[4] == GLSLstd450Frexp)
            want_operands(instruction, 5);
    } else if (op == spv::OpFunctionCall || op == spv::OpReturnValue || means_nothing(op) ||
               only_values(op)) {
        return;
    } else {
        want_operands(instruction, instruction.result() != 0 ? 3 : 1);
    }
    for (const uint32_t root : std::exchange(escaped_, {})) want_everything_of(root);
}

void Analysis::want(uint32_t id, const Demand& demand) {
    if (!known(id) || demand.parts == 0 || !module_.find(id)) return;
    if (demands_[id].merge(demand)) changed_.push_back(id);
}

void Analysis::want_all(uint32_t id) { want(id, all_of(id, scale_of(1))); }

void Analysis::want_operands(Instruction instruction, uint32_t first) {
    const uint32_t literal = mask_index(instruction.op());
    for (uint32_t i = first; i < instruction.size(); ++i) {
        const uint32_t id = instruction[i];
        if (i == literal || !known(id) || module_.type_of(id) == 0) continue;
        if (is_pointer(id)) {
            want_chain(id);
            if (const Place place = place_of(id); place.root != 0) want_everything_of(place.root);
            continue;
        }
        want_all(id);
        if (is_aggregate(id)) want_everything_of(id);
    }
}

// Demands the values that choose the pointer's target.
void Analysis::want_chain(uint32_t pointer) {
    for (uint32_t depth = 0; depth < deepest_chain; ++depth) {
        const Instruction instruction = module_.find(pointer);
        const uint32_t op = instruction.op();
        if (in(op, spv::OpAccessChain, spv::OpInBoundsPtrAccessChain)) {
            for (uint32_t i = 4; i < instruction.size(); ++i) want_all(instruction[i]);
        } else if (op != spv::OpCopyObject) {
            // A variable, or a computed address.
            if (op != spv::OpVariable && op != spv::OpFunctionParameter) want_all(pointer);
            return;
        }
        pointer = instruction[3];
    }
}

// Adds the demand on a load of `place`.
void Analysis::want_place(const Place& place, const Demand& demand) {
    Demand of_member;
    switch (place.part) {
    case Place::Part::whole: of_member = demand; break;
    case Place::Part::one:
        of_member.parts = static_cast<uint8_t>(1u << place.index);
        of_member.firm = (demand.firm & 1) ? of_member.parts : 0;
        of_member.scales[place.index] = demand.scales[0];
        break;
    case Place::Part::any:
        of_member.parts = every_part;
        of_member.firm = (demand.firm & 1) ? every_part : 0;
        of_member.scales.fill(demand.scales[0]);
        break;
    case Place::Part::inexact:
        of_member.parts = every_part;
        of_member.scales.fill(demand.least_scale());
        break;
    }
    if (!places_[{place.root, place.member}].merge(of_member)) return;
    if (const auto found = stores_.find(place.root); found != stores_.end())
        for (size_t i = 0; i < found->second.size(); ++i)
            want_stored(found->second[i].place, static_cast<uint32_t>(i));
}

void Analysis::want_everything_of(uint32_t root) {
    if (!known(root)) return;
    Demand demand;
    demand.parts = every_part;
    demand.scales.fill(scale_of(1));
    // Only for built-in variables and for values in which every member matters: each member is demanded
    // alone.
    Place place{find(root), 0, Place::Part::whole, 0};
    want_place(place, demand);
    if (const auto found = stores_.find(place.root); found != stores_.end()) {
        std::vector<uint32_t> members;
        for (const Store& store : found->second) members.push_back(store.place.member);
        for (const uint32_t member : members) want_place({place.root, member, Place::Part::whole, 0}, demand);
    }
}

// Passes the demand on a place to a value that is stored there.
void Analysis::want_stored(const Place& place, uint32_t number) {
    const Store store = stores_[place.root][number];
    Demand demand;
    for (auto at = places_.lower_bound({place.root, 0}); at != places_.end() && at->first.first == place.root;
         ++at) {
        const Demand& wanted = at->second;
        if (at->first.second == place.member) {
            demand.merge(wanted);
        } else if (at->first.second == 0 || place.member == 0) {
            // The whole for a member, or a member for the whole.
            Demand vague;
            vague.parts = every_part;
            vague.scales.fill(wanted.least_scale());
            demand.merge(vague);
        }
    }
    if (demand.parts == 0) return;
    Demand of_value;
    switch (place.part) {
    case Place::Part::whole: of_value = demand; break;
    case Place::Part::one:
        if ((demand.parts >> place.index & 1) == 0) return;
        of_value.parts = 1;
        of_value.firm = demand.firm >> place.index & 1;
        of_value.scales[0] = demand.scales[place.index];
        break;
    case Place::Part::any:
        of_value.parts = 1;
        of_value.firm = demand.firm != 0;
        of_value.scales[0] = demand.least_scale();
        break;
    case Place::Part::inexact:
        of_value.parts = every_part;
        of_value.scales.fill(demand.least_scale());
        break;
    }
    const Demand all = all_of(store.value, every_part);
    of_value.parts &= all.parts;
    of_value.firm &= all.parts;
    want(store.value, of_value);
    if (store.pointer != 0) want_chain(store.pointer);
}

// Products with a constant: a group's number may become the number of its first invocation.
void Analysis::spread_scaled(Instruction instruction, const Demand& demand) {
    const bool shift = instruction.op() == spv::OpShiftLeftLogical;
    for (uint32_t operand = 3; operand < 5; ++operand) {
        Demand scaled = demand;
        for (uint32_t part = 0; part < 4; ++part) {
            const auto factor = constant(instruction[operand == 3 ? 4 : 3], part);
            if (shift && operand == 4)
                scaled.scales[part] = scale_of(1);
            else if (!factor)
                scaled.scales[part] = scale_of(1);
            else if (shift)
                scaled.scales[part] |= *factor < 31 ? scale_of(uint64_t{1} << *factor) : 0;
            else
                scaled.scales[part] |= scale_of(*factor);
        }
        want(instruction[operand], scaled);
    }
}

// Passes a value's demand to its operands.
void Analysis::spread(uint32_t id) {
    const Demand demand = demands_[id];
    const Instruction instruction = module_.find(id);
    const uint32_t op = instruction.op();
    const uint32_t count = components(type_of(id));
    switch (op) {
    case spv::OpLoad:
        want_chain(instruction[3]);
        if (const Place place = place_of(instruction[3]); place.root != 0 && !is_aggregate(id))
            want_place(place, demand);
        return;
    case spv::OpCompositeExtract: {
        Instruction type = type_of(instruction[3]);
        if (type.op() == spv::OpTypeVector && instruction.size() == 5) {
            Demand whole;
            const uint32_t index = std::min(instruction[4], 3u);
            whole.parts = static_cast<uint8_t>(1u << index);
            whole.firm = (demand.firm & 1) ? whole.parts : 0;
            whole.scales[index] = demand.scales[0];
            want(instruction[3], whole);
            return;
        }
        Place place = value_place(instruction[3], 0);
        for (uint32_t i = 4; i < instruction.size(); ++i) index_member(place, type, instruction[i]);
        if (known(instruction[3]) && !is_aggregate(id)) want_place(place, demand);
        // Also demands the operands that make the aggregate, if it is not just a copy.
        Demand made = all_of(instruction[3], demand.least_scale(), false);
        want(instruction[3], made);
        return;
    }
    case spv::OpCompositeInsert: {
        if (is_aggregate(id)) return;
        const uint32_t index = instruction.size() > 5 ? std::min(instruction[5], 3u) : 0;
        Demand rest = demand;
        rest.parts &= static_cast<uint8_t>(~(1u << index));
        rest.firm &= rest.parts;
        want(instruction[4], rest);
        if (demand.parts >> index & 1) {
            Demand part;
            part.parts = 1;
            part.firm = demand.firm >> index & 1;
            part.scales[0] = demand.scales[index];
            want(instruction[3], part);
        }
        return;
    }
    case spv::OpCompositeConstruct: {
        if (is_aggregate(id)) return;
        uint32_t part = 0;
        for (uint32_t i = 3; i < instruction.size(); ++i) {
            const uint32_t width = std::max(components(type_of(instruction[i])), 1u);
            Demand piece;
            for (uint32_t j = 0; j < width && part + j < 4; ++j) {
                piece.parts |= static_cast<uint8_t>((demand.parts >> (part + j) & 1) << j);
                piece.firm |= static_cast<uint8_t>((demand.firm >> (part + j) & 1) << j);
                piece.scales[std::min(j, 3u)] = demand.scales[part + j];
            }
            want(instruction[i], piece);
            part += width;
        }
        return;
    }
    case spv::OpVectorShuffle: {
        const uint32_t first = components(type_of(instruction[3]));
        std::array<Demand, 2> pieces;
        for (uint32_t part = 0; part < 4 && 5 + part < instruction.size(); ++part) {
            const uint32_t from = instruction[5 + part];
            if ((demand.parts >> part & 1) == 0 || from == UINT32_MAX) continue;
            const uint32_t index = from < first ? from : from - first;
            if (index > 3) continue;
            Demand one;
            one.parts = static_cast<uint8_t>(1u << index);
            one.firm = (demand.firm >> part & 1) ? one.parts : 0;
            one.scales[index] = demand.scales[part];
            pieces[from < first ? 0 : 1].merge(one);
        }
        want(instruction[3], pieces[0]);
        want(instruction[4], pieces[1]);
        return;
    }
    case spv::OpVectorExtractDynamic: {
        want(instruction[3], all_of(instruction[3], demand.scales[0]));
        want_all(instruction[4]);
        return;
    }
    case spv::OpPhi:
        for (uint32_t i = 3; i < instruction.size(); i += 2) want(instruction[i], demand);
        return;
    case spv::OpSelect:
        want_all(instruction[3]);
        want(instruction[4], demand);
        want(instruction[5], demand);
        return;
    case spv::OpIMul:
    case spv::OpShiftLeftLogical: spread_scaled(instruction, demand); return;
    case spv::OpFunctionCall:
        for (const uint32_t value : returned_[instruction[3]]) want(value, demand);
        return;
    case spv::OpFunctionParameter: {
        const auto found = parameters_.find(id);
        if (found == parameters_.end() || is_pointer(id)) return;
        for (const Instruction call : calls_[found->second.first->id])
            if (4 + found->second.second < call.size()) want(call[4 + found->second.second], demand);
        return;
    }
    case spv::OpArrayLength:
    case newer::untyped_array_length:
    case spv::OpUndef:
    case spv::OpVariable: return;
    default: break;
    }
    if (!only_values(op) && op != spv::OpExtInst) return;  // its operands matter anyway
    const bool componentwise = op == spv::OpExtInst ? by_component_of_glsl(instruction[4]) : by_component(op);
    const uint32_t first = op == spv::OpExtInst ? 5 : 3;
    if (!componentwise || count == 0) return want_operands(instruction, first);
    for (uint32_t i = first; i < instruction.size(); ++i) {
        const uint32_t operand = instruction[i];
        if (components(type_of(operand)) != count) {
            if (known(operand) && module_.type_of(operand) != 0) want_all(operand);
            continue;
        }
        Demand same = demand;
        if (!keeps_scale(op)) same.scales.fill(scale_of(1));
        want(operand, same);
    }
}

InvocationUse Analysis::result() const {
    InvocationUse use;
    for (const Instruction global : module_.globals) {
        if (global.op() != spv::OpVariable || global[3] != spv::StorageClassInput || !known(global[2]))
            continue;
        const auto number = module_.decoration(global[2], spv::DecorationBuiltIn);
        if (!number) continue;
        Demand demand;
        const uint32_t root = find(global[2]);
        for (auto at = places_.lower_bound({root, 0}); at != places_.end() && at->first.first == root; ++at)
            demand.merge(at->second);
        if (demand.parts == 0) continue;
        const uint8_t axes = demand.parts & 7;
        switch (*number) {
        case spv::BuiltInGlobalInvocationId: use.global |= axes; break;
        case spv::BuiltInWorkgroupId:
            use.group |= axes;
            for (uint32_t axis = 0; axis < 3; ++axis) {
                const uint8_t bit = static_cast<uint8_t>(axes & (1u << axis));
                if ((demand.scales[axis] >> axis & 1) == 0) use.group_alone |= bit;
                if ((demand.scales[axis] & 8) == 0) use.group_below_block |= bit;
            }
            break;
        case spv::BuiltInLocalInvocationId: use.local |= axes; break;
        case spv::BuiltInNumWorkgroups: use.group_count |= axes; break;
        case spv::BuiltInLocalInvocationIndex:
        case spv::BuiltInSubgroupId:
        case spv::BuiltInNumSubgroups:
        case spv::BuiltInSubgroupLocalInvocationId: use.local_index = true; break;
        default: break;
        }
        if (*number == spv::BuiltInGlobalInvocationId || *number == spv::BuiltInWorkgroupId)
            use.vague |= static_cast<uint8_t>(axes & ~demand.firm);
    }
    return use;
}

}  // namespace
}  // namespace spirv

InvocationUse invocation_use(std::span<const uint32_t> words, const std::string& entry,
                             std::span<const SpecValue> specialization) {
    const ShaderInfo info = reflect(words, entry, specialization);
    const spirv::Module module(words);
    const spirv::Constants constants(module, specialization);
    for (const auto& point : module.entry_points)
        if (point.model == spv::ExecutionModelGLCompute && point.name == info.entry)
            return spirv::Analysis(module, constants, point.function, info.local_size).result();
    return {};
}

}  // namespace kp
