// Races: each element of a buffer or of shared memory that the shader writes has a slot of the shadow buffer,
// which tells the last accesses to it (DebugShadow). An access that is in no order with an earlier one is
// reported.
//
// Drivers inline each check, so it is short: what it needs of the invocation is read once, when the entry
// point begins, and an invocation keeps its first race until it ends.
//
// Every word of a slot is a true statement about some access, and so is each mixture of words that two
// accesses left there at the same time: if it leads to a report, one of the two deserves it. So the words
// need no order between them.
#include "instruments/instrumenter.hpp"

#include <algorithm>

namespace kp {

// The scalars of one value that are looked at: of larger ones, the first.
constexpr size_t most_scalars = 4;
constexpr size_t most_members = 64;
constexpr size_t most_touched = 128;  // scalars, over all accesses of a module: compilers need time for each
constexpr uint32_t most_indices = 3;  // in a report
constexpr uint32_t changed_value = 0x9E3779B9;  // stands for what an atomic operation wrote

void Instrumenter::note_fence(Instruction instruction) {
    const bool control = instruction.op() == spv::OpControlBarrier;
    if (!control && instruction.op() != spv::OpMemoryBarrier) return;
    const auto number = [&](uint32_t i) { return constants_.integer(instruction[i]).value_or(0); };
    const uint64_t scope = number(control ? 2 : 1), semantics = number(control ? 3 : 2);
    // Orders single subgroups; their members are not known here.
    if (scope == spv::ScopeSubgroup || (control && number(1) == spv::ScopeSubgroup)) inside_ = false;
    // With flags that other groups look at, it orders groups.
    if ((scope == spv::ScopeDevice || scope == spv::ScopeQueueFamily) &&
        (semantics & spv::MemorySemanticsUniformMemoryMask) != 0)
        fenced_ = true;
}

uint32_t Instrumenter::accessed(Instruction access) const {
    return access.result() != 0 ? access.type() : module_.type_of(access[2]);
}

// Buffers may be bound over the same memory, so they count as one.
uint32_t Instrumenter::touched_key(const Path& path) {
    return path.storage == spv::StorageClassWorkgroup ? path.root : 0;
}

void Instrumenter::find_shadowed() {
    if (!wanted_.races) return;
    const uint32_t ordering = spv::MemorySemanticsAcquireMask | spv::MemorySemanticsReleaseMask |
                              spv::MemorySemanticsAcquireReleaseMask |
                              spv::MemorySemanticsSequentiallyConsistentMask;
    bool flags = false;
    for (const auto& function : module_.functions())
        for (const Instruction each : function.body) {
            note_fence(each);
            const auto access = access_of(each);
            if (!access || access->kind == 'r') continue;
            const auto path = path_of(each[access->pointer]);
            if (!path) continue;
            if (each.op() != spv::OpAtomicLoad) written_.insert(path->root);
            if (each.op() == spv::OpAtomicCompareExchange) compared_.insert(path->root);
            if (access->kind != 'a') {
                // Such a write may be the flag that other groups look at.
                flags = flags || is_shared_between_groups(*path, each);
                continue;
            }
            flags = flags || path->storage != spv::StorageClassWorkgroup;
            const uint32_t semantics = each.op() == spv::OpAtomicStore ? each[3] : each[5];
            if ((constants_.integer(semantics).value_or(0) & ordering) != 0) inside_ = across_ = false;
        }
    for (const auto& function : module_.functions())
        for (const Instruction each : function.body)
            if (const auto access = access_of(each))
                if (const auto path = path_of(each[access->pointer]); path && written_.contains(path->root)) {
                    const auto [found, added] = touched_as_.try_emplace(touched_key(*path), accessed(each));
                    if (found->second != accessed(each)) found->second = 0;
                }
    if (fenced_ && flags) across_ = false;
    const uint32_t uint = builder_.uint_type();
    for (uint32_t* each : {&epoch_, &group_, &whole_group_, &local_})
        *each = variable(spv::StorageClassPrivate, uint);
    for (uint32_t i = 0; i < 3 + most_indices; ++i) race_.push_back(variable(spv::StorageClassPrivate, uint));
    if (has(spv::CapabilityStorageBuffer8BitAccess) || has(spv::CapabilityUniformAndStorageBuffer8BitAccess))
        granule_ = 1;
    else if (has(spv::CapabilityStorageBuffer16BitAccess) || has(spv::CapabilityStorageUniform16))
        granule_ = 2;
    if (has(spv::CapabilityInt8))
        smallest_ = 1;
    else if (has(spv::CapabilityInt16) || has(spv::CapabilityFloat16))
        smallest_ = 2;
}

// Declared so that other groups see the accesses: the shader orders them itself.
bool Instrumenter::is_shared_between_groups(const Path& path, Instruction access) const {
    if (path.storage == spv::StorageClassWorkgroup) return false;
    for (const auto decoration : {spv::DecorationCoherent, spv::DecorationVolatile}) {
        if (module_.decoration(path.root, decoration)) return true;
        if (path.indices.empty()) continue;
        const Instruction block = module_.find(module_.find(module_.type_of(path.root))[3]);
        const auto member = constants_.fixed(path.indices.front());
        if (block.op() == spv::OpTypeStruct && member &&
            module_.member_decoration(block[1], static_cast<uint32_t>(*member), decoration))
            return true;
    }
    const uint32_t operands = access.op() == spv::OpLoad ? 4 : 3;
    const bool plain = access.op() == spv::OpLoad || access.op() == spv::OpStore;
    return plain && access.size() > operands &&
           (access[operands] & (spv::MemoryAccessVolatileMask | spv::MemoryAccessNonPrivatePointerMask)) != 0;
}

// -- slots
// -------------------------------------------------------------------------------------------------------

uint64_t Instrumenter::bytes_of(Instruction scalar) const {
    if (scalar.op() == spv::OpTypeInt || scalar.op() == spv::OpTypeFloat) return scalar[2] / 8;
    return scalar.op() == spv::OpTypeBool ? 4 : 0;
}

Instrumenter::Matrix Instrumenter::matrix_of(uint32_t type, uint32_t member) const {
    return {module_.member_decoration(type, member, spv::DecorationMatrixStride).value_or(0),
            module_.member_decoration(type, member, spv::DecorationRowMajor).has_value()};
}

std::optional<uint64_t> Instrumenter::fixed_count(uint32_t id) const {
    const Instruction type = module_.find(id);
    switch (type.op()) {
    case spv::OpTypeVector:
    case spv::OpTypeMatrix: {
        const auto one = fixed_count(type[2]);
        return one ? std::optional(*one * type[3]) : std::nullopt;
    }
    case spv::OpTypeArray: {
        const auto one = fixed_count(type[2]);
        const auto length = constants_.fixed(type[3]);
        if (!one || !length || *length > UINT32_MAX / std::max<uint64_t>(*one, 1)) return std::nullopt;
        return *one * *length;
    }
    case spv::OpTypeStruct: {
        uint64_t all = 0;
        for (uint32_t i = 2; i < type.size(); ++i) {
            const auto one = fixed_count(type[i]);
            if (!one) return std::nullopt;
            all += *one;
        }
        return all;
    }
    default: return 1;
    }
}

uint32_t Instrumenter::count_of(Code& into, uint32_t id) {
    if (const auto count = fixed_count(id)) return word(static_cast<uint32_t>(*count));
    const Instruction type = module_.find(id);
    if (type.op() == spv::OpTypeArray)
        return combine(into, spv::OpIMul, count_of(into, type[2]),
                       as_word(into, type[3], module_.find(module_.type_of(type[3]))));
    uint32_t all = word(0);
    if (type.op() == spv::OpTypeStruct)
        for (uint32_t i = 2; i < type.size(); ++i)
            all = combine(into, spv::OpIAdd, all, count_of(into, type[i]));
    return all;
}

// The slots of the shared variables before this one; 0: of all.
uint32_t Instrumenter::shared_slots(Code& into, uint32_t before) {
    uint32_t all = word(0);
    for (const Instruction each : module_.globals) {
        if (each.op() != spv::OpVariable || each[3] != spv::StorageClassWorkgroup) continue;
        if (each[2] == before) break;
        all = combine(into, spv::OpIAdd, all, count_of(into, module_.find(each[1])[3]));
    }
    return all;
}

bool Instrumenter::add_scalars(Place& place, uint32_t id, Matrix matrix, bool in_buffer,
                               std::vector<uint32_t>& path, uint64_t slot) const {
    const Instruction type = module_.find(id);
    const auto add_all = [&](uint32_t part, uint64_t count, uint64_t stride, Matrix inner) {
        for (uint32_t i = 0; i < count && place.scalars.size() < most_scalars; ++i) {
            path.push_back(i);
            if (!add_scalars(place, part, inner, in_buffer, path, slot + i * stride)) return false;
            path.pop_back();
        }
        return true;
    };
    switch (type.op()) {
    case spv::OpTypeInt:
    case spv::OpTypeFloat:
    case spv::OpTypeBool: place.scalars.push_back({path, slot}); return true;
    case spv::OpTypeVector: {
        const uint64_t own = in_buffer ? bytes_of(module_.find(type[2])) / granule_ : 1;
        const uint64_t stride = in_buffer && matrix.row_major ? matrix.stride / granule_ : own;
        return add_all(type[2], type[3], stride, {});
    }
    case spv::OpTypeMatrix: {
        const Instruction column = module_.find(type[2]);
        uint64_t stride = column[3];
        if (in_buffer)
            stride = (matrix.row_major ? bytes_of(module_.find(column[2])) : matrix.stride) / granule_;
        return add_all(type[2], type[3], stride, matrix);
    }
    case spv::OpTypeArray: {
        const auto length = constants_.fixed(type[3]);
        const auto count = fixed_count(type[2]);
        if (!length || (!in_buffer && !count)) return false;
        const uint64_t bytes = module_.decoration(type[1], spv::DecorationArrayStride).value_or(0);
        return add_all(type[2], *length, in_buffer ? bytes / granule_ : *count, matrix);
    }
    case spv::OpTypeStruct: {
        uint64_t next = slot;
        for (uint32_t i = 2; i < type.size() && place.scalars.size() < most_scalars; ++i) {
            path.push_back(i - 2);
            const uint64_t bytes =
                module_.member_decoration(type[1], i - 2, spv::DecorationOffset).value_or(0);
            const uint64_t at = in_buffer ? slot + bytes / granule_ : next;
            if (!add_scalars(place, type[i], matrix_of(type[1], i - 2), in_buffer, path, at)) return false;
            path.pop_back();
            const auto count = fixed_count(type[i]);
            if (!in_buffer && !count) return false;
            next += count.value_or(0);
        }
        return true;
    }
    default: return false;
    }
}

std::optional<Instrumenter::Place> Instrumenter::place_of(const Path& path) const {
    const bool in_buffer = path.storage != spv::StorageClassWorkgroup;
    Place place;
    Matrix matrix;
    uint64_t row = 0;  // slots between the components of a column
    uint32_t id = module_.find(module_.type_of(path.root))[3];
    for (const uint32_t index : path.indices) {
        const Instruction type = module_.find(id);
        const auto step = [&](uint64_t stride, uint32_t element = 0) {
            if (const auto number = constants_.fixed(index); number && stride != 0)
                place.first += *number * stride;
            else
                place.terms.push_back({index, stride, element});
            id = type[2];
        };
        switch (type.op()) {
        case spv::OpTypeStruct: {
            const auto member = static_cast<uint32_t>(constants_.fixed(index).value_or(UINT32_MAX));
            if (member + 2 >= type.size() || member > most_members) return std::nullopt;
            if (in_buffer) {
                place.first +=
                    module_.member_decoration(type[1], member, spv::DecorationOffset).value_or(0) / granule_;
            } else {
                for (uint32_t i = 0; i < member; ++i) {
                    const auto count = fixed_count(type[i + 2]);
                    if (!count) return std::nullopt;
                    place.first += *count;
                }
            }
            matrix = matrix_of(type[1], member);
            id = type[member + 2];
            break;
        }
        case spv::OpTypeArray:
        case spv::OpTypeRuntimeArray:
            if (in_buffer)
                step(module_.decoration(type[1], spv::DecorationArrayStride).value_or(0) / granule_);
            else
                step(fixed_count(type[2]).value_or(0), type[2]);
            if (in_buffer && !place.terms.empty() && place.terms.back().stride == 0) return std::nullopt;
            break;
        case spv::OpTypeMatrix: {
            const Instruction column = module_.find(type[2]);
            if (!in_buffer) {
                step(column[3]);
                break;
            }
            const uint64_t own = bytes_of(module_.find(column[2])) / granule_;
            step(matrix.row_major ? own : matrix.stride / granule_);
            row = matrix.row_major ? matrix.stride / granule_ : own;
            break;
        }
        case spv::OpTypeVector:
            step(!in_buffer ? 1 : row != 0 ? row : bytes_of(module_.find(type[2])) / granule_);
            break;
        default: return std::nullopt;
        }
    }
    std::vector<uint32_t> inner;
    if (!add_scalars(place, id, matrix, in_buffer, inner, 0)) return std::nullopt;
    for (const auto& term : place.terms) {
        const Instruction index = module_.find(module_.type_of(term.index));
        if (index.op() != spv::OpTypeInt || index[2] > 64) return std::nullopt;
    }
    if (place.first > UINT32_MAX) return std::nullopt;
    return place;
}

// -- what runs
// ---------------------------------------------------------------------------------------------------

uint32_t Instrumenter::shadow_word(Code& into, uint32_t place) {
    const uint32_t pointer = builder_.pointer(spv::StorageClassStorageBuffer, builder_.uint_type());
    return builder_.value(into, spv::OpAccessChain, pointer, {shadow_, word(0), place});
}

uint32_t Instrumenter::shadow(Code& into, uint32_t index) {
    return builder_.value(into, spv::OpLoad, builder_.uint_type(), {shadow_word(into, word(index))});
}

// Tests if the words are of two groups. The earlier access may not have stored its group yet: then it is 0.
uint32_t Instrumenter::other_group(Code& into, uint32_t group, uint32_t my_group) {
    const uint32_t both =
        combine(into, spv::OpShiftRightLogical, combine(into, spv::OpBitwiseXor, group, my_group),
                word(DebugShadow::site_bits));
    return test(into, spv::OpLogicalAnd, is_known(into, group), test(into, spv::OpINotEqual, both, word(0)));
}

uint32_t Instrumenter::is_known(Code& into, uint32_t group) {
    return test(into, spv::OpUGreaterThan, group, word(DebugShadow::site_mask));
}

// Tests if two accesses of one group are in one phase of it, by different invocations.
uint32_t Instrumenter::same_phase(Code& into, uint32_t group, uint32_t state, uint32_t me) {
    const uint32_t both = combine(into, spv::OpBitwiseXor, state, me);
    const auto part = [&](uint32_t op, uint32_t mask) {
        return test(into, op, combine(into, spv::OpBitwiseAnd, both, word(mask)), word(0));
    };
    const uint32_t same = test(into, spv::OpLogicalAnd, part(spv::OpIEqual, DebugShadow::epoch_mask),
                               part(spv::OpINotEqual, DebugShadow::local_mask));
    return across_ ? same : test(into, spv::OpLogicalAnd, same, is_known(into, group));
}

// Tests if an earlier access is in no order with mine.
uint32_t Instrumenter::differs(Code& into, uint32_t group, uint32_t state, uint32_t my_group, uint32_t me) {
    const uint32_t boolean = builder_.bool_type();
    const uint32_t other = other_group(into, group, my_group);
    const uint32_t inside = inside_ ? same_phase(into, group, state, me) : builder_.null(boolean);
    const uint32_t across = across_ ? other : builder_.null(boolean);
    const uint32_t found = builder_.value(into, spv::OpSelect, boolean, {other, across, inside});
    return test(into, spv::OpLogicalAnd, has(into, state, DebugShadow::valid), found);
}

uint32_t Instrumenter::has(Code& into, uint32_t state, uint32_t bit) {
    return test(into, spv::OpINotEqual, combine(into, spv::OpBitwiseAnd, state, word(bit)), word(0));
}

// Tests if two accesses are of one group, and their words alike in the bits of `mask`.
uint32_t Instrumenter::same_group_and(Code& into, uint32_t group, uint32_t my_group, uint32_t both,
                                      uint32_t mask) {
    const uint32_t groups =
        combine(into, spv::OpShiftRightLogical, combine(into, spv::OpBitwiseXor, group, my_group),
                word(DebugShadow::site_bits));
    return test(into, spv::OpIEqual,
                combine(into, spv::OpBitwiseOr, groups, combine(into, spv::OpBitwiseAnd, both, word(mask))),
                word(0));
}

Instrumenter::Others Instrumenter::others_of(Code& into, uint32_t group, uint32_t state, uint32_t my_group,
                                             uint32_t me) {
    using S = DebugShadow;
    const uint32_t last = differs(into, group, state, my_group, me);
    Others others{last, last, builder_.null(builder_.bool_type())};
    if (inside_) {
        const uint32_t phase =
            same_group_and(into, group, my_group, combine(into, spv::OpBitwiseXor, state, me), S::epoch_mask);
        others.any = test(into, spv::OpLogicalOr, last,
                          test(into, spv::OpLogicalAnd, phase, has(into, state, S::several)));
    }
    if (across_) {
        const uint32_t any = test(into, spv::OpLogicalOr, others.any, has(into, state, S::groups));
        others.only_far = test(into, spv::OpLogicalNotEqual, any, others.any);
        others.any = any;
    }
    return others;
}

// Of the accesses before mine, this stays known: that others of this phase of the group made some, and others
// of other groups.
uint32_t Instrumenter::bits_of_others(Code& into, uint32_t group, uint32_t before, uint32_t my_group,
                                      uint32_t me) {
    using S = DebugShadow;
    const auto select = [&](uint32_t condition, uint32_t bit) {
        return builder_.value(into, spv::OpSelect, builder_.uint_type(), {condition, word(bit), word(0)});
    };
    // One of another group may have noted its group, and not yet the rest.
    const uint32_t far = other_group(into, group, my_group);
    const uint32_t both = combine(into, spv::OpBitwiseXor, before, me);
    const uint32_t same_epoch =
        test(into, spv::OpIEqual, combine(into, spv::OpBitwiseAnd, both, word(S::epoch_mask)), word(0));
    const uint32_t near =
        test(into, spv::OpLogicalOr, test(into, spv::OpLogicalAnd, same_epoch, has(into, before, S::several)),
             same_phase(into, group, before, me));
    const uint32_t several = test(into, spv::OpLogicalAnd, near, has(into, before, S::valid));
    const uint32_t spread = test(into, spv::OpLogicalOr, far, has(into, before, S::groups));
    return combine(into, spv::OpBitwiseOr,
                   builder_.value(into, spv::OpSelect, builder_.uint_type(),
                                  {far, word(0), select(several, S::several)}),
                   select(spread, S::groups));
}

// uvec2 touch(uint base, uint count, uint slot, uint my_group, uint me, uint value): the words of the earlier
// access, or zeros.
uint32_t Instrumenter::toucher(char kind) {
    const auto [entry, added] = touchers_.try_emplace(kind, 0);
    if (!added) return entry->second;
    const uint32_t uint = builder_.uint_type();
    const uint32_t boolean = builder_.bool_type();
    const uint32_t pair = builder_.type(spv::OpTypeVector, {uint, 2});
    Code code;
    std::vector<uint32_t> given;
    entry->second = begin_function(code, pair, std::vector<uint32_t>(6, uint), given);
    const uint32_t function = entry->second;
    const uint32_t base = given[0], count = given[1], slot = given[2], my_group = given[3], me = given[4],
                   value = given[5];
    const uint32_t start = builder_.id(), inside = builder_.id(), end = builder_.id();
    code.emit(spv::OpLabel, {start});
    const uint32_t good = test(code, spv::OpLogicalAnd, test(code, spv::OpULessThan, slot, count),
                               test(code, spv::OpINotEqual, me, word(0)));
    code.emit(spv::OpSelectionMerge, {end, spv::SelectionControlMaskNone});
    code.emit(spv::OpBranchConditional, {good, inside, end});
    code.emit(spv::OpLabel, {inside});
    const uint32_t place = combine(
        code, spv::OpIAdd, word(DebugShadow::slots),
        combine(code, spv::OpIMul, combine(code, spv::OpIAdd, base, slot), word(DebugShadow::slot_words)));
    const auto at = [&](uint32_t number) {
        return shadow_word(code, combine(code, spv::OpIAdd, place, word(number)));
    };
    const auto exchange = [&](uint32_t number, uint32_t with) {
        return builder_.value(code, spv::OpAtomicExchange, uint, {at(number), scope_, word(0), with});
    };
    const auto load = [&](uint32_t number) {
        return builder_.value(code, spv::OpAtomicLoad, uint, {at(number), scope_, word(0)});
    };
    const auto select = [&](uint32_t condition, uint32_t yes, uint32_t no) {
        return builder_.value(code, spv::OpSelect, uint, {condition, yes, no});
    };
    const auto negated = [&](uint32_t condition) {
        return builder_.value(code, spv::OpLogicalNot, boolean, {condition});
    };
    using S = DebugShadow;
    const auto told = [&](uint32_t state, const Others& others, uint32_t bits) {
        return combine(code, spv::OpBitwiseOr, select(others.only_far, word(S::groups | bits), word(bits)),
                       combine(code, spv::OpBitwiseAnd, state, word(~(S::several | S::groups))));
    };
    // Another access may have come since the exchange: it stays, and so do its bits.
    const auto add_bits = [&](uint32_t number, uint32_t bits) {
        builder_.value(code, spv::OpAtomicOr, uint, {at(number), scope_, word(0), bits});
    };
    uint32_t group_found = 0, found_who = 0;
    if (kind == 'r' || kind == 'o') {
        // It notes itself and then looks for a writer, who does so, too: one of them finds the other.
        if (kind == 'r') {
            const uint32_t group = exchange(S::reader_group, my_group), before = exchange(S::reader, me);
            add_bits(S::reader, bits_of_others(code, group, before, my_group, me));
        }
        const uint32_t writer = load(S::writer), group = load(S::writer_group);
        const Others others = others_of(code, group, writer, my_group, me);
        // Plain writes before one's own wrote the same, and harm nobody.
        const uint32_t race =
            kind == 'o'
                ? test(code, spv::OpLogicalAnd, others.last, has(code, writer, S::plain))
                : test(code, spv::OpLogicalOr, others.last,
                       test(code, spv::OpLogicalAnd, others.any, negated(has(code, writer, S::plain))));
        group_found = select(race, group, word(0));
        found_who = select(race, told(writer, others, 0), word(0));
    } else {
        const bool plain = kind != 'a';
        uint32_t mine = combine(code, spv::OpBitwiseOr, me, word(S::plain)), place_of_mine = my_group;
        if (!plain) {  // an own plain write of this phase stays known, and its place
            const uint32_t seen = load(S::writer), seen_group = load(S::writer_group);
            const uint32_t stays =
                same_group_and(code, seen_group, my_group, combine(code, spv::OpBitwiseXor, seen, mine),
                               S::epoch_mask | S::local_mask | S::valid | S::plain);
            mine = select(stays, mine, me);
            place_of_mine = select(stays, seen_group, my_group);
        }
        const uint32_t writer = exchange(S::writer, mine), group = exchange(S::writer_group, place_of_mine);
        const uint32_t before = exchange(S::value, plain ? value : word(changed_value));
        add_bits(S::writer, bits_of_others(code, group, writer, my_group, me));
        const uint32_t reader = load(S::reader), reader_group = load(S::reader_group);
        const Others writers = others_of(code, group, writer, my_group, me);
        // The same value again harms nobody.
        const uint32_t race =
            test(code, spv::OpLogicalAnd, writers.any,
                 plain ? test(code, spv::OpINotEqual, before, value) : has(code, writer, S::plain));
        const Others readers = others_of(code, reader_group, reader, my_group, me);
        group_found = select(race, group, select(readers.any, reader_group, word(0)));
        found_who = select(race, told(writer, writers, 0),
                           select(readers.any, told(reader, readers, S::was_read), word(0)));
    }
    const uint32_t found = builder_.value(code, spv::OpCompositeConstruct, pair, {group_found, found_who});
    code.emit(spv::OpBranch, {end});
    code.emit(spv::OpLabel, {end});
    code.emit(spv::OpReturnValue,
              {builder_.value(code, spv::OpPhi, pair, {found, inside, builder_.null(pair), start})});
    code.emit(spv::OpFunctionEnd, {});
    builder_.functions.append(code);
    return function;
}

uint32_t Instrumenter::tracker(Code& into, Instruction instruction, const PointerAccess& access,
                               const Path& path, const Place& place, uint32_t site,
                               std::vector<uint32_t>& arguments) {
    using S = DebugShadow;
    const uint32_t uint = builder_.uint_type();
    const uint32_t pair = builder_.type(spv::OpTypeVector, {uint, 2});
    const uint32_t nothing = builder_.void_type();
    std::map<uint32_t, uint32_t> here;  // ids of the caller -> of this function
    std::vector<uint32_t> types, ids;
    const auto take = [&](uint32_t id) {
        if (globals_.contains(id) || !here.try_emplace(id, 0).second) return;
        types.push_back(module_.type_of(id));
        arguments.push_back(id);
    };
    for (const auto& term : place.terms) take(term.index);
    for (const uint32_t index : path.shown) take(index);
    const uint32_t stored = instruction.op() == spv::OpStore ? instruction[2] : 0;
    // Small numbers may be stored and converted, but not passed on, and vectors of them not be taken apart.
    const bool is_small = stored != 0 && passed_as(module_.type_of(stored)) != module_.type_of(stored);
    const bool is_scalar = place.scalars.front().path.empty();
    std::vector<uint32_t> converted;
    if (is_small && is_scalar) add_scalar(into, stored, module_.find(module_.type_of(stored)), converted);
    if (!converted.empty()) {
        types.push_back(uint);
        arguments.push_back(converted.front());
    } else if (stored != 0 && !is_small) {
        take(stored);
    }
    Code code;
    const uint32_t function = begin_function(code, nothing, types, ids);
    for (size_t i = 0; i < ids.size(); ++i) here[arguments[i]] = ids[i];  // also of `converted`
    const auto mine = [&](uint32_t id) { return globals_.contains(id) ? id : here.at(id); };
    const auto number = [&](uint32_t id) {
        return as_word(code, mine(id), module_.find(module_.type_of(id)));
    };
    code.emit(spv::OpLabel, {builder_.id()});
    uint32_t base = 0, count = 0, slot = word(static_cast<uint32_t>(place.first));
    if (path.storage == spv::StorageClassWorkgroup) {
        if (shared_base_ == 0) {
            shared_base_ = variable(spv::StorageClassPrivate, uint);
            shared_count_ = variable(spv::StorageClassPrivate, uint);
        }
        base = load(code, shared_base_);
        count = load(code, shared_count_);
        slot = combine(code, spv::OpIAdd, slot, shared_slots(code, path.root));
    } else {
        const auto& found = shadowed_.at(buffer_key(path.root));
        base = load(code, found.base);
        count = load(code, found.count);
    }
    for (const auto& term : place.terms) {
        const uint32_t stride =
            term.stride != 0 ? word(static_cast<uint32_t>(term.stride)) : count_of(code, term.element);
        slot = combine(code, spv::OpIAdd, slot, combine(code, spv::OpIMul, number(term.index), stride));
    }
    const uint32_t my_group =
        combine(code, spv::OpBitwiseOr, load(code, group_), word(site + 1 <= S::site_mask ? site + 1 : 0));
    const uint32_t epoch = load(code, epoch_);
    const uint32_t state = combine(code, spv::OpBitwiseOr, load(code, local_),
                                   combine(code, spv::OpShiftLeftLogical, epoch, word(S::local_bits)));
    const uint32_t known = test(code, spv::OpULessThan, epoch, word(S::most_epochs));
    const uint32_t me = builder_.value(code, spv::OpSelect, uint, {known, state, word(0)});
    // The first value for a compare-and-swap may be an old one: it is read in no order with the swaps.
    const char kind = access.kind == 'r' && compared_.contains(path.root) ? 'o' : access.kind;
    const auto value_of = [&](const Scalar& scalar) {
        if (is_small) return converted.empty() ? me : here.at(converted.front());
        if (stored == 0) return word(0);
        uint32_t type = module_.type_of(stored);
        for (const uint32_t i : scalar.path) {
            const Instruction whole = module_.find(type);
            type = whole.op() == spv::OpTypeStruct ? whole[i + 2] : whole[2];
        }
        uint32_t part = mine(stored);
        if (!scalar.path.empty()) {
            std::vector<uint32_t> operands{part};
            operands.insert(operands.end(), scalar.path.begin(), scalar.path.end());
            part = builder_.value(code, spv::OpCompositeExtract, type, operands);
        }
        std::vector<uint32_t> words;
        add_scalar(code, part, module_.find(type), words);
        return words.size() == 2 ? combine(code, spv::OpBitwiseXor, words[0], words[1]) : words.front();
    };
    uint32_t other_group = 0, other = 0;
    for (const Scalar& scalar : place.scalars) {
        uint32_t value = value_of(scalar);
        if (place.as_one && stored != 0 && !is_small)
            for (size_t i = 1; i < place.scalars.size(); ++i)
                value = combine(code, spv::OpBitwiseXor, combine(code, spv::OpIMul, value, word(0x9E3779B1)),
                                value_of(place.scalars[i]));
        const uint32_t own = scalar.slot == 0
                                 ? slot
                                 : combine(code, spv::OpIAdd, slot, word(static_cast<uint32_t>(scalar.slot)));
        const uint32_t found = builder_.value(code, spv::OpFunctionCall, pair,
                                              {toucher(kind), base, count, own, my_group, me, value});
        const uint32_t group_found = builder_.value(code, spv::OpCompositeExtract, uint, {found, 0});
        const uint32_t who_found = builder_.value(code, spv::OpCompositeExtract, uint, {found, 1});
        if (other == 0) {
            other_group = group_found;
            other = who_found;
            if (place.as_one) break;
            continue;
        }
        const uint32_t had = test(code, spv::OpINotEqual, other, word(0));
        other_group = builder_.value(code, spv::OpSelect, uint, {had, other_group, group_found});
        other = builder_.value(code, spv::OpSelect, uint, {had, other, who_found});
    }
    // The invocation's first race is kept, and reported when it ends.
    const uint32_t is_first = test(code, spv::OpLogicalAnd, test(code, spv::OpINotEqual, other, word(0)),
                                   test(code, spv::OpIEqual, load(code, race_.front()), word(0)));
    std::vector<uint32_t> facts{word(site + 1), other_group, other};
    for (const uint32_t index : path.shown)
        if (facts.size() < race_.size()) facts.push_back(number(index));
    for (size_t i = 0; i < facts.size(); ++i)
        code.emit(spv::OpStore, {race_[i], builder_.value(code, spv::OpSelect, uint,
                                                          {is_first, facts[i], load(code, race_[i])})});
    code.emit(spv::OpReturn, {});
    code.emit(spv::OpFunctionEnd, {});
    builder_.functions.append(code);
    return function;
}

// Reads what the checks of an invocation need, before the entry point does anything else.
void Instrumenter::start_tracking(Code& code) {
    using S = DebugShadow;
    if (shadow_ == 0) return;
    const uint32_t uint = builder_.uint_type();
    const uint32_t layer = combine(
        code, spv::OpIAdd, built_in(code, spv::BuiltInWorkgroupId, 1),
        combine(code, spv::OpIMul, built_in(code, spv::BuiltInWorkgroupId, 2), shadow(code, S::groups_y)));
    const uint32_t group = combine(code, spv::OpIAdd, built_in(code, spv::BuiltInWorkgroupId, 0),
                                   combine(code, spv::OpIMul, layer, shadow(code, S::groups_x)));
    code.emit(spv::OpStore, {whole_group_, group});
    code.emit(spv::OpStore,
              {group_, combine(code, spv::OpShiftLeftLogical, combine(code, spv::OpIAdd, group, word(1)),
                               word(S::site_bits))});
    const uint32_t local = built_in(code, spv::BuiltInLocalInvocationIndex);
    code.emit(spv::OpStore, {local_, combine(code, spv::OpBitwiseOr, local, word(S::valid))});
    const uint32_t has_number = test(code, spv::OpULessThanEqual, local, word(S::local_mask));
    const auto if_known = [&](uint32_t count) {
        return builder_.value(code, spv::OpSelect, uint, {has_number, count, word(0)});
    };
    for (const auto& [key, found] : shadowed_) {
        code.emit(spv::OpStore, {found.base, shadow(code, S::buffers + 2 * found.number)});
        code.emit(spv::OpStore, {found.count, if_known(shadow(code, S::buffers + 2 * found.number + 1))});
    }
    if (shared_base_ == 0) return;
    const uint32_t slots = shared_slots(code, 0);
    const uint32_t has_slots = test(code, spv::OpULessThan, group, shadow(code, S::shared + 1));
    code.emit(spv::OpStore, {shared_base_, combine(code, spv::OpIAdd, shadow(code, S::shared),
                                                   combine(code, spv::OpIMul, group, slots))});
    code.emit(spv::OpStore, {shared_count_, if_known(builder_.value(code, spv::OpSelect, uint,
                                                                    {has_slots, slots, word(0)}))});
}

void Instrumenter::report_race(Code& code) {
    using S = DebugShadow;
    if (shadow_ == 0) return;
    const uint32_t site = load(code, race_.front());
    const uint32_t race = builder_.id(), end = builder_.id();
    const uint32_t any = test(code, spv::OpINotEqual, site, word(0));
    code.emit(spv::OpSelectionMerge, {end, spv::SelectionControlMaskNone});
    code.emit(spv::OpBranchConditional, {any, race, end});
    code.emit(spv::OpLabel, {race});
    std::vector<uint32_t> payload{load(code, race_[1]),     load(code, race_[2]),
                                  load(code, whole_group_), built_in(code, spv::BuiltInLocalInvocationIndex),
                                  shadow(code, S::local_x), shadow(code, S::local_y),
                                  shadow(code, S::local_z), shadow(code, S::groups_x),
                                  shadow(code, S::groups_y)};
    for (size_t i = 3; i < race_.size(); ++i) payload.push_back(load(code, race_[i]));
    std::vector<uint32_t> call{reporter(static_cast<uint32_t>(payload.size())),
                               combine(code, spv::OpISub, site, word(1))};
    call.insert(call.end(), payload.begin(), payload.end());
    (void)builder_.value(code, spv::OpFunctionCall, builder_.void_type(), call);
    code.emit(spv::OpBranch, {end});
    code.emit(spv::OpLabel, {end});
}

std::pair<uint32_t, uint32_t> Instrumenter::buffer_key(uint32_t root) const {
    return {module_.decoration(root, spv::DecorationDescriptorSet).value_or(0),
            module_.decoration(root, spv::DecorationBinding).value_or(0)};
}

void Instrumenter::track(Instruction instruction, Code& into) {
    if (!wanted_.races || (!inside_ && !across_)) return;
    const auto access = access_of(instruction);
    if (!access || instruction.op() == spv::OpAtomicLoad) return;
    const auto path = path_of(instruction[access->pointer]);
    if (!path || !written_.contains(path->root) || !globals_.contains(path->root)) return;
    const bool shared = path->storage == spv::StorageClassWorkgroup;
    if (!shared && path->storage != spv::StorageClassStorageBuffer &&
        path->storage != spv::StorageClassUniform)
        return;
    if ((shared && !inside_) || is_shared_between_groups(*path, instruction)) return;
    auto place = place_of(*path);
    if (!place || is_full()) return;
    place->as_one = touched_as_.at(touched_key(*path)) == accessed(instruction);
    touched_ += place->as_one ? 1 : place->scalars.size();
    if (touched_ > most_touched) return;
    if (!shared) {
        const uint32_t uint = builder_.uint_type();
        const auto number = static_cast<uint32_t>(shadowed_.size());
        if (!shadowed_.contains(buffer_key(path->root))) {
            if (number == DebugShadow::most_buffers) return;
            shadowed_[buffer_key(path->root)] = {number, variable(spv::StorageClassPrivate, uint),
                                                 variable(spv::StorageClassPrivate, uint)};
        }
    }
    make_buffer();
    if (shadow_ == 0) shadow_ = make_block(1);
    const uint32_t site = new_site(DebugSite::Kind::races, path->text);
    sites_[site].arguments = std::string{access->kind, shared ? 's' : 'b'};
    std::vector<uint32_t> arguments;
    const uint32_t function = tracker(into, instruction, *access, *path, *place, site, arguments);
    std::vector<uint32_t> call{function};
    call.insert(call.end(), arguments.begin(), arguments.end());
    (void)builder_.value(into, spv::OpFunctionCall, builder_.void_type(), call);
}

// An invocation counts the barriers that it passed: accesses with other counts are ordered.
void Instrumenter::pass_barrier(Code& into) {
    if (epoch_ == 0) return;
    const uint32_t now = builder_.value(into, spv::OpLoad, builder_.uint_type(), {epoch_});
    const uint32_t more = test(into, spv::OpULessThan, now, word(DebugShadow::most_epochs));
    const uint32_t next = builder_.value(into, spv::OpSelect, builder_.uint_type(),
                                         {more, combine(into, spv::OpIAdd, now, word(1)), now});
    into.emit(spv::OpStore, {epoch_, next});
}

}  // namespace kp
