#include "spirv/fold.hpp"

#include "base/error.hpp"
#include "spirv/builder.hpp"
#include "spirv/invocation.hpp"
#include "spirv/module.hpp"
#include "spirv/operands.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace kp {
namespace {

using spirv::bound_word;
using spirv::Builder;
using spirv::Code;
using spirv::header_words;
using spirv::Instruction;
using spirv::is_chain;
using spirv::Module;

// The facts about a number that a rewritten load needs.
struct Number {
    bool of_invocation = false;  // else of the group
    uint32_t type = 0;           // of a component
    bool is_signed = false;
};

// Copies a module word by word, and replaces the loads of the numbers.
class Folder {
public:
    Folder(std::span<const uint32_t> words, const Fold& fold, const std::array<uint32_t, 3>& local_size)
        : words_(words),
          module_(words),
          fold_(fold),
          local_size_(local_size),
          builder_(module_, words[bound_word]) {}

    std::vector<uint32_t> run();

private:
    void find_numbers();
    void check_uses() const;
    void rewrite(Instruction load);
    // The number that a pointer leads to; null if it leads elsewhere.
    [[nodiscard]] const Number* number_behind(uint32_t pointer) const;

    std::span<const uint32_t> words_;
    Module module_;
    Fold fold_;
    std::array<uint32_t, 3> local_size_;
    Builder builder_;
    std::unordered_map<uint32_t, Number> numbers_;  // by variable
    Code made_;
};

[[noreturn]] void cannot() {
    throw Error(ErrorKind::unimplemented,
                "its code passes gl_GlobalInvocationID or gl_WorkGroupID on by pointer");
}

void Folder::find_numbers() {
    for (const Instruction global : module_.globals) {
        if (global.op() != spv::OpVariable || global[3] != spv::StorageClassInput) continue;
        const auto built_in = module_.decoration(global[2], spv::DecorationBuiltIn);
        if (built_in != uint32_t{spv::BuiltInGlobalInvocationId} &&
            built_in != uint32_t{spv::BuiltInWorkgroupId})
            continue;
        const Instruction pointer = module_.at(global[1], "the type of a variable");
        const Instruction vector = module_.at(pointer[3], "the type of a built-in variable");
        const Instruction component = module_.at(vector[2], "the type of a component");
        if (vector.op() != spv::OpTypeVector || vector[3] != 3 || component.op() != spv::OpTypeInt) cannot();
        numbers_[global[2]] = {built_in == uint32_t{spv::BuiltInGlobalInvocationId}, vector[2],
                               component[3] != 0};
    }
}

const Number* Folder::number_behind(uint32_t pointer) const {
    const Instruction made = module_.find(pointer);
    const auto found = numbers_.find(is_chain(made.op()) ? made[3] : pointer);
    return found == numbers_.end() ? nullptr : &found->second;
}

// Only loads of the whole number or of one component can be rewritten.
void Folder::check_uses() const {
    const auto refuse = [this](uint32_t pointer) {
        if (number_behind(pointer)) cannot();
    };
    for (const auto& function : module_.functions())
        for (const Instruction instruction : function.body) {
            const uint32_t op = instruction.op();
            uint32_t first = 0;
            switch (op) {
            case spv::OpAccessChain:
            case spv::OpInBoundsAccessChain:
                if (instruction.size() != 5) refuse(instruction[3]);
                break;
            case spv::OpStore:
            case spv::OpCopyMemory:
            case spv::OpCopyMemorySized: refuse(instruction[2]); break;
            case spv::OpReturnValue: refuse(instruction[1]); break;
            case spv::OpFunctionCall: first = 4; break;
            case spv::OpCopyObject:
            case spv::OpPtrAccessChain:
            case spv::OpInBoundsPtrAccessChain:
            case spv::OpPhi:
            case spv::OpSelect: first = 3; break;
            case spirv::newer::untyped_access_chain:
            case spirv::newer::untyped_in_bounds_access_chain:
            case spirv::newer::untyped_ptr_access_chain:
            case spirv::newer::untyped_in_bounds_ptr_access_chain: refuse(instruction[4]); break;
            default: break;
            }
            for (uint32_t i = first; i != 0 && i < instruction.size(); ++i) refuse(instruction[i]);
        }
}

void Folder::rewrite(Instruction load) {
    const Number* number = number_behind(load[3]);
    if (!number) return made_.copy(load);
    const Instruction made = module_.find(load[3]);
    const bool chained = is_chain(made.op());
    const uint32_t variable = chained ? made[3] : load[3];
    const uint32_t vector = module_.find(module_.type_of(variable))[3];
    const uint32_t type = number->type;
    const uint32_t from = fold_.from;
    const uint32_t into = fold_.into;
    const uint32_t size = number->of_invocation ? local_size_[into] : 1;  // size of a layer along `into`
    const auto value = [&](uint32_t op, std::initializer_list<uint32_t> operands) {
        return builder_.value(made_, op, type, operands);
    };
    const auto constant = [&](uint32_t of) { return builder_.number(type, 32, of); };
    const uint32_t whole = builder_.value(made_, spv::OpLoad, vector, {variable});
    uint32_t layer = value(spv::OpCompositeExtract, {whole, into});
    uint32_t rest = constant(0);
    if (size > 1) {
        const uint32_t divisor = constant(size);
        rest = value(number->is_signed ? spv::OpSRem : spv::OpUMod, {layer, divisor});
        layer = value(number->is_signed ? spv::OpSDiv : spv::OpUDiv, {layer, divisor});
    }
    const uint32_t step = fold_.stride * (number->of_invocation ? local_size_[from] : 1);
    const uint32_t before = value(spv::OpIMul, {layer, constant(step)});
    const uint32_t within = value(spv::OpCompositeExtract, {whole, from});
    const uint32_t counted = value(spv::OpIAdd, {within, before});
    const uint32_t moved = builder_.value(made_, spv::OpCompositeInsert, vector, {counted, whole, from});
    const uint32_t last = chained ? builder_.id() : load[2];
    made_.emit(spv::OpCompositeInsert, {vector, last, rest, moved, into});
    if (chained) made_.emit(spv::OpVectorExtractDynamic, {load[1], load[2], last, made[4]});
}

std::vector<uint32_t> Folder::run() {
    find_numbers();
    check_uses();
    Code head;
    made_ = Code(words_.first(header_words));
    for (size_t offset = header_words; offset < words_.size(); offset += words_[offset] >> 16) {
        const Instruction instruction(words_.subspan(offset, words_[offset] >> 16));
        if (instruction.op() == spv::OpFunction && head.empty()) std::swap(head, made_);
        if (instruction.op() == spv::OpLoad)
            rewrite(instruction);
        else
            made_.copy(instruction);
    }
    return builder_.joined(head, made_);
}

}  // namespace

std::optional<Fold> fold_of(const std::array<uint32_t, 3>& local_size, const std::array<uint32_t, 3>& groups,
                            const std::array<uint32_t, 3>& limits) {
    Fold fold;
    uint32_t over = 0;
    for (uint32_t axis = 0; axis < 3; ++axis)
        if (groups[axis] > limits[axis]) {
            fold.from = axis;
            ++over;
        }
    if (over == 0) return std::nullopt;
    const auto refuse = [](const std::string& why) { throw Error(ErrorKind::invalid_argument, why); };
    if (over > 1) refuse("more than one axis has too many");
    uint32_t free = 3;
    for (uint32_t axis = 0; axis < 3; ++axis)
        if (groups[axis] == 1) free = axis;  // prefers z to y: neighbours in memory stay neighbours
    if (free == 3) refuse("no other axis has one group, to count layers of them on");
    fold.into = free;
    fold.stride = limits[fold.from];
    if (groups[fold.from] > uint64_t{fold.stride} * limits[free])
        refuse("not even layers on another axis hold so many");
    if (uint64_t{groups[fold.from]} * local_size[fold.from] > uint64_t{1} << 32)
        refuse("gl_GlobalInvocationID counts to 4294967295, and there are more invocations on this axis");
    return fold;
}

std::vector<uint32_t> folded(std::span<const uint32_t> words, const std::string& entry, const Fold& fold,
                             const std::array<uint32_t, 3>& local_size) {
    // The answer is the same for all constants: they decide which code runs, not which values it reads.
    if (invocation_use(words, entry).group_count != 0)
        throw Error(ErrorKind::unimplemented,
                    "its code reads gl_NumWorkGroups, whose count would be that of one layer");
    return Folder(words, fold, local_size).run();
}

}  // namespace kp
