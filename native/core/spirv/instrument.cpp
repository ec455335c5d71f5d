#include "spirv/instrument.hpp"

#include "spirv/builder.hpp"
#include "spirv/constants.hpp"
#include "spirv/module.hpp"
#include "spirv/operands.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

namespace kp {
namespace {

using spirv::bound_word;
using spirv::Builder;
using spirv::Code;
using spirv::Constants;
using spirv::ends_block;
using spirv::header_words;
using spirv::Instruction;
using spirv::Module;

// Instructions of NonSemantic.Shader.DebugInfo.100.
constexpr uint32_t debug_source = 35;
constexpr uint32_t debug_line = 103;
constexpr uint32_t debug_no_line = 104;
constexpr uint32_t debug_printf = 1;  // of NonSemantic.DebugPrintf

constexpr uint32_t most_sites = 1 << 16;

// The opcodes before a module's types, constants and variables.
bool is_preamble(uint32_t op) {
    switch (op) {
    case spv::OpCapability:
    case spv::OpExtension:
    case spv::OpExtInstImport:
    case spv::OpMemoryModel:
    case spv::OpEntryPoint:
    case spv::OpExecutionMode:
    case spv::OpExecutionModeId:
    case spv::OpString:
    case spv::OpSourceExtension:
    case spv::OpSource:
    case spv::OpSourceContinued:
    case spv::OpName:
    case spv::OpMemberName:
    case spv::OpModuleProcessed:
    case spv::OpDecorate:
    case spv::OpMemberDecorate:
    case spv::OpGroupDecorate:
    case spv::OpGroupMemberDecorate:
    case spv::OpDecorationGroup:
    case spv::OpDecorateId:
    case spv::OpDecorateString:
    case spv::OpMemberDecorateString: return true;
    default: return false;
    }
}

// An access to memory through a pointer.
struct Access {
    uint32_t pointer = 0;          // position of this operand
    std::vector<uint32_t> values;  // positions of other operands that may be local ids
    char kind = 'r';
};

std::optional<Access> access_of(Instruction instruction) {
    const uint32_t op = instruction.op();
    if (op == spv::OpLoad) return Access{3, {}, 'r'};
    if (op == spv::OpStore) return Access{1, {2}, 'w'};
    if (op == spv::OpAtomicStore) return Access{1, {2, 3, 4}, 'a'};
    if (!spirv::atomic_access(op)) return std::nullopt;
    Access access{3, {}, 'a'};
    for (uint32_t i = 4; i < instruction.size(); ++i) access.values.push_back(i);
    return access;
}

// An index and the length that it must stay below.
struct Check {
    uint32_t index = 0;
    uint32_t length = 0;             // id of a constant; 0: of a run-time array, below
    std::optional<uint64_t> number;  // the constant's value, if no specialization changes it
    uint32_t member = 0;             // of the block, that is the run-time array
};

// A pointer, as the variable that it leads into and the indices on the way.
struct Path {
    uint32_t root = 0;
    spv::StorageClass storage{};
    std::vector<uint32_t> indices;
    std::vector<Check> checks;
    std::string text;  // as a programmer writes it: "x[i].y[j]"
};

class Instrumenter {
public:
    Instrumenter(std::span<const uint32_t> words, const Instruments& wanted, uint32_t set, uint32_t number)
        : words_(words),
          module_(words),
          constants_(module_),
          builder_(module_, words[bound_word]),
          wanted_(wanted),
          set_(set),
          number_(number) {}

    Instrumented run();

private:
    [[nodiscard]] std::string why_not() const;
    void find_names();
    void copy_functions();
    // Writes the instruction, or code in its place.
    void rewrite(Instruction instruction, Code& into);
    [[nodiscard]] bool print(Instruction instruction, Code& into);
    [[nodiscard]] bool check(Instruction instruction, Code& into);
    void follow_lines(Instruction instruction);
    [[nodiscard]] uint32_t new_site(DebugSite::Kind kind, std::string text);

    // -- paths
    [[nodiscard]] std::optional<Path> path_of(uint32_t pointer) const;
    [[nodiscard]] bool read_types(Path& path) const;
    [[nodiscard]] bool is_signed(uint32_t id) const;

    // -- code
    void make_buffer();
    [[nodiscard]] uint32_t element(Code& into, uint32_t index);
    void add_to(Code& into, uint32_t place, uint32_t value, uint32_t* old = nullptr);
    // The function that appends a record with so many words.
    [[nodiscard]] uint32_t reporter(uint32_t count);
    void report(Code& into, uint32_t site, const std::vector<uint32_t>& values);
    [[nodiscard]] uint32_t invocation(Code& into, uint32_t axis);
    // Appends the 32-bit words of a value; false for types without any.
    bool add_words(Code& into, uint32_t value, std::vector<uint32_t>& to, std::string& letters);
    void add_scalar(Code& into, uint32_t value, Instruction type, std::vector<uint32_t>& to);
    [[nodiscard]] uint32_t as_word(Code& into, uint32_t integer, Instruction type);
    [[nodiscard]] uint32_t accessor(Instruction instruction, const Access& access, const Path& path,
                                    uint32_t site, std::vector<uint32_t>& arguments);
    [[nodiscard]] uint32_t within(Code& into, const Check& check, uint32_t index, uint32_t root,
                                  uint32_t& length);
    [[nodiscard]] std::vector<uint32_t> assembled() const;

    std::span<const uint32_t> words_;
    Module module_;
    Constants constants_;
    Builder builder_;
    Instruments wanted_;
    uint32_t set_;
    uint32_t number_;
    uint32_t printf_set_ = 0;  // ids of the instruction sets; 0: not imported
    uint32_t debug_info_set_ = 0;
    std::set<uint32_t> globals_;  // ids that every function sees
    std::string file_;
    uint32_t line_ = 0;
    Code body_;  // the module's functions, rewritten
    std::vector<DebugSite> sites_;
    uint32_t buffer_ = 0;      // 0: not made
    uint32_t invocation_ = 0;  // the variable gl_GlobalInvocationID
    uint32_t invocation_type_ = 0;
    std::map<uint32_t, uint32_t> reporters_;
    uint32_t scope_ = 0;
};

std::string Instrumenter::why_not() const {
    for (const auto& entry : module_.entry_points)
        if (entry.model != spv::ExecutionModelGLCompute)
            return "the module has entry points of other stages than compute";
    if (words_[bound_word] > 0x200000) return "the module has too many ids";
    return "";
}

void Instrumenter::find_names() {
    for (const auto& [id, name] : module_.instruction_sets) {
        if (name == "NonSemantic.DebugPrintf") printf_set_ = id;
        if (name.starts_with("NonSemantic.Shader.DebugInfo.")) debug_info_set_ = id;
    }
    for (const Instruction each : module_.globals)
        if (const uint32_t id = each.result()) globals_.insert(id);
    for (const auto& function : module_.functions()) globals_.insert(function.id);
}

void Instrumenter::follow_lines(Instruction instruction) {
    const uint32_t op = instruction.op();
    const auto name_of = [&](uint32_t id) {
        const Instruction text = module_.find(id);
        return text.op() == spv::OpString ? text.string(2) : std::string();
    };
    if (op == spv::OpLine) {
        file_ = name_of(instruction[1]);
        line_ = instruction[2];
    } else if (op == spv::OpNoLine || ends_block(op) || op == spv::OpFunctionEnd) {
        line_ = 0;
    } else if (op == spv::OpExtInst && debug_info_set_ != 0 && instruction[3] == debug_info_set_) {
        if (instruction[4] == debug_line) {
            const Instruction source = module_.find(instruction[5]);
            if (source.op() == spv::OpExtInst && source[4] == debug_source) file_ = name_of(source[5]);
            line_ = static_cast<uint32_t>(constants_.integer(instruction[6]).value_or(0));
        } else if (instruction[4] == debug_no_line) {
            line_ = 0;
        }
    }
}

uint32_t Instrumenter::new_site(DebugSite::Kind kind, std::string text) {
    DebugSite site;
    site.kind = kind;
    site.file = line_ != 0 ? file_ : "";
    site.line = line_;
    site.text = std::move(text);
    sites_.push_back(std::move(site));
    return static_cast<uint32_t>(sites_.size() - 1);
}

// -- the buffer and its records
// ------------------------------------------------------------------------------

void Instrumenter::make_buffer() {
    if (buffer_ != 0) return;
    const uint32_t uint = builder_.uint_type();
    const uint32_t array = builder_.id();
    builder_.globals.emit(spv::OpTypeRuntimeArray, {array, uint});
    builder_.annotations.emit(spv::OpDecorate, {array, spv::DecorationArrayStride, 4});
    const uint32_t block = builder_.id();
    builder_.globals.emit(spv::OpTypeStruct, {block, array});
    builder_.annotations.emit(spv::OpDecorate, {block, spv::DecorationBlock});
    builder_.annotations.emit(spv::OpMemberDecorate, {block, 0, spv::DecorationOffset, 0});
    const uint32_t pointer = builder_.pointer(spv::StorageClassStorageBuffer, block);
    buffer_ = builder_.id();
    builder_.globals.emit(spv::OpVariable, {pointer, buffer_, spv::StorageClassStorageBuffer});
    builder_.annotations.emit(spv::OpDecorate, {buffer_, spv::DecorationDescriptorSet, set_});
    builder_.annotations.emit(spv::OpDecorate, {buffer_, spv::DecorationBinding, 0});
    // Vulkan's memory model has device scope only with a feature of its own; all queues are enough.
    const bool vulkan_model =
        std::find(module_.capabilities.begin(), module_.capabilities.end(),
                  uint32_t{spv::CapabilityVulkanMemoryModel}) != module_.capabilities.end();
    scope_ = builder_.uint_constant(vulkan_model ? spv::ScopeQueueFamily : spv::ScopeDevice);

    for (const Instruction each : module_.globals)
        if (each.op() == spv::OpVariable && each[3] == spv::StorageClassInput &&
            module_.decoration(each[2], spv::DecorationBuiltIn) == uint32_t{spv::BuiltInGlobalInvocationId}) {
            invocation_ = each[2];
            invocation_type_ = module_.at(each[1], "the type of a variable")[3];
        }
    if (invocation_ != 0) return;
    invocation_type_ = builder_.type(spv::OpTypeVector, {uint, 3});
    const uint32_t to_input = builder_.pointer(spv::StorageClassInput, invocation_type_);
    invocation_ = builder_.id();
    builder_.globals.emit(spv::OpVariable, {to_input, invocation_, spv::StorageClassInput});
    builder_.annotations.emit(spv::OpDecorate,
                              {invocation_, spv::DecorationBuiltIn, spv::BuiltInGlobalInvocationId});
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

uint32_t Instrumenter::invocation(Code& into, uint32_t axis) {
    const uint32_t all = builder_.value(into, spv::OpLoad, invocation_type_, {invocation_});
    const Instruction vector = module_.find(invocation_type_);
    const uint32_t component = vector ? vector[2] : builder_.uint_type();
    const uint32_t one = builder_.value(into, spv::OpCompositeExtract, component, {all, axis});
    if (component == builder_.uint_type()) return one;
    return builder_.value(into, spv::OpBitcast, builder_.uint_type(), {one});
}

uint32_t Instrumenter::reporter(uint32_t count) {
    const auto [entry, added] = reporters_.try_emplace(count, 0);
    if (!added) return entry->second;
    make_buffer();
    const uint32_t uint = builder_.uint_type();
    const uint32_t boolean = builder_.bool_type();
    const uint32_t nothing = builder_.void_type();
    std::vector<uint32_t> signature{nothing, uint};
    signature.insert(signature.end(), count, uint);
    const uint32_t type = builder_.type(spv::OpTypeFunction, signature);
    const uint32_t function = builder_.id();
    entry->second = function;
    const uint32_t size = DebugBuffer::head + count;
    Code code;
    code.emit(spv::OpFunction, {nothing, function, spv::FunctionControlMaskNone, type});
    const uint32_t site = builder_.id();
    code.emit(spv::OpFunctionParameter, {uint, site});
    std::vector<uint32_t> record{builder_.uint_constant(size), builder_.uint_constant(number_), site};
    std::vector<uint32_t> payload;
    for (uint32_t i = 0; i < count; ++i) {
        payload.push_back(builder_.id());
        code.emit(spv::OpFunctionParameter, {uint, payload.back()});
    }
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
    for (uint32_t axis = 0; axis < 3; ++axis) record.push_back(invocation(code, axis));
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

// -- printf
// --------------------------------------------------------------------------------------------------

void Instrumenter::add_scalar(Code& into, uint32_t value, Instruction type, std::vector<uint32_t>& to) {
    const uint32_t uint = builder_.uint_type();
    if (type.op() == spv::OpTypeBool) {
        to.push_back(builder_.value(into, spv::OpSelect, uint,
                                    {value, builder_.uint_constant(1), builder_.uint_constant(0)}));
        return;
    }
    uint32_t width = type[2];
    if (width < 32) {  // wider, so that it is a word
        if (type.op() == spv::OpTypeFloat)
            value = builder_.value(into, spv::OpFConvert, builder_.type(spv::OpTypeFloat, {32}), {value});
        else if (type[3] != 0)
            value = builder_.value(into, spv::OpSConvert, builder_.type(spv::OpTypeInt, {32, 1}), {value});
        else
            value = builder_.value(into, spv::OpUConvert, uint, {value});
        width = 32;
    }
    if (width == 64) {
        const uint32_t pair =
            builder_.value(into, spv::OpBitcast, builder_.type(spv::OpTypeVector, {uint, 2}), {value});
        for (uint32_t i = 0; i < 2; ++i)
            to.push_back(builder_.value(into, spv::OpCompositeExtract, uint, {pair, i}));
        return;
    }
    const bool is_word = type.op() == spv::OpTypeInt && type[3] == 0;
    to.push_back(is_word ? value : builder_.value(into, spv::OpBitcast, uint, {value}));
}

bool Instrumenter::add_words(Code& into, uint32_t value, std::vector<uint32_t>& to, std::string& letters) {
    Instruction type = module_.find(module_.type_of(value));
    uint32_t count = 1;
    const bool is_vector = type.op() == spv::OpTypeVector;
    if (is_vector) {
        count = type[3];
        type = module_.find(type[2]);
    }
    char letter = 'b';
    if (type.op() == spv::OpTypeFloat)
        letter = type[2] == 64 ? 'd' : 'f';
    else if (type.op() == spv::OpTypeInt)
        letter = type[2] == 64 ? (type[3] ? 'l' : 'm') : (type[3] ? 'i' : 'u');
    else if (type.op() != spv::OpTypeBool)
        return false;
    letters += letter;
    letters += static_cast<char>('0' + std::min(count, 9u));
    for (uint32_t i = 0; i < count; ++i)
        add_scalar(into,
                   is_vector ? builder_.value(into, spv::OpCompositeExtract, type[1], {value, i}) : value,
                   type, to);
    return true;
}

bool Instrumenter::print(Instruction instruction, Code& into) {
    if (!wanted_.printf || printf_set_ == 0 || instruction.op() != spv::OpExtInst ||
        instruction[3] != printf_set_ || instruction[4] != debug_printf)
        return false;
    const Instruction format = module_.find(instruction[5]);
    const uint32_t site =
        new_site(DebugSite::Kind::printf, format.op() == spv::OpString ? format.string(2) : "");
    std::vector<uint32_t> values;
    for (uint32_t i = 6; i < instruction.size(); ++i) {
        const Instruction argument = module_.find(instruction[i]);
        if (argument.op() == spv::OpString) {
            sites_[site].arguments += "s1";
            sites_[site].strings.push_back(argument.string(2));
        } else if (!add_words(into, instruction[i], values, sites_[site].arguments)) {
            sites_[site].arguments += "?1";
        }
    }
    report(into, site, values);
    return true;
}

// -- indices
// -------------------------------------------------------------------------------------------------

bool Instrumenter::is_signed(uint32_t id) const {
    const Instruction type = module_.find(module_.type_of(id));
    return type.op() == spv::OpTypeInt && type[3] != 0;
}

std::optional<Path> Instrumenter::path_of(uint32_t pointer) const {
    Path path;
    Instruction made = module_.find(pointer);
    while (spirv::is_chain(made.op())) {
        std::vector<uint32_t> indices;
        for (uint32_t i = 4; i < made.size(); ++i) indices.push_back(made[i]);
        path.indices.insert(path.indices.begin(), indices.begin(), indices.end());
        made = module_.find(made[3]);
    }
    if (made.op() != spv::OpVariable && made.op() != spv::OpFunctionParameter) return std::nullopt;
    path.root = made[2];
    const auto storage = module_.storage_class(made[1]);
    if (!storage) return std::nullopt;
    path.storage = static_cast<spv::StorageClass>(*storage);
    return read_types(path) ? std::optional(std::move(path)) : std::nullopt;
}

// Follows the indices through the types; false if this access cannot be checked.
bool Instrumenter::read_types(Path& path) const {
    switch (path.storage) {
    case spv::StorageClassUniform:
    case spv::StorageClassStorageBuffer:
    case spv::StorageClassWorkgroup:
    case spv::StorageClassPrivate:
    case spv::StorageClassFunction:
    case spv::StorageClassPushConstant: break;
    default: return false;
    }
    const bool in_buffer =
        path.storage == spv::StorageClassUniform || path.storage == spv::StorageClassStorageBuffer;
    Instruction type = module_.find(module_.find(module_.type_of(path.root))[3]);
    if (in_buffer && type.op() != spv::OpTypeStruct) return false;  // an array of descriptors
    path.text = module_.name(path.root);
    for (size_t i = 0; i < path.indices.size(); ++i) {
        const uint32_t index = path.indices[i];
        switch (type.op()) {
        case spv::OpTypeStruct: {
            const auto member = constants_.fixed(index);
            if (!member || *member + 2 >= type.size()) return false;
            const std::string& name = module_.member_name(type[1], static_cast<uint32_t>(*member));
            if (!name.empty()) path.text += (path.text.empty() ? "" : ".") + name;
            const Instruction next = module_.find(type[static_cast<uint32_t>(*member) + 2]);
            if (next.op() == spv::OpTypeRuntimeArray && i + 1 < path.indices.size()) {
                if (i != 0) return false;
                path.checks.push_back({path.indices[i + 1], 0, std::nullopt, static_cast<uint32_t>(*member)});
            }
            type = next;
            break;
        }
        case spv::OpTypeArray:
            path.checks.push_back({index, type[3], constants_.fixed(type[3]), 0});
            path.text += "[]";
            type = module_.find(type[2]);
            break;
        case spv::OpTypeVector:
        case spv::OpTypeMatrix: {
            Check check{index, 0, uint64_t{type[3]}, 0};
            check.length = UINT32_MAX;  // a literal
            path.checks.push_back(check);
            path.text += "[]";
            type = module_.find(type[2]);
            break;
        }
        case spv::OpTypeRuntimeArray:
            path.text += "[]";
            type = module_.find(type[2]);
            break;
        default: return false;
        }
    }
    std::erase_if(path.checks, [&](const Check& check) {
        const auto index = constants_.fixed(check.index);
        return check.number && index && *index < *check.number;
    });
    for (const Check& check : path.checks) {
        const Instruction index = module_.find(module_.type_of(check.index));
        if (index.op() != spv::OpTypeInt || index[2] > 64) return false;
    }
    return true;
}

// The integer as 32 bits; larger ones as the largest.
uint32_t Instrumenter::as_word(Code& into, uint32_t integer, Instruction type) {
    const uint32_t uint = builder_.uint_type();
    if (type[2] == 32) return type[3] ? builder_.value(into, spv::OpBitcast, uint, {integer}) : integer;
    if (type[2] < 32) {
        const uint32_t wide = type[3] ? builder_.type(spv::OpTypeInt, {32, 1}) : uint;
        const uint32_t made =
            builder_.value(into, type[3] ? spv::OpSConvert : spv::OpUConvert, wide, {integer});
        return type[3] ? builder_.value(into, spv::OpBitcast, uint, {made}) : made;
    }
    const uint32_t pair =
        builder_.value(into, spv::OpBitcast, builder_.type(spv::OpTypeVector, {uint, 2}), {integer});
    const uint32_t low = builder_.value(into, spv::OpCompositeExtract, uint, {pair, 0});
    const uint32_t high = builder_.value(into, spv::OpCompositeExtract, uint, {pair, 1});
    const uint32_t is_small =
        builder_.value(into, spv::OpIEqual, builder_.bool_type(), {high, builder_.uint_constant(0)});
    return builder_.value(into, spv::OpSelect, uint, {is_small, low, builder_.uint_constant(UINT32_MAX)});
}

// Tests if the index, as a word, is below its length; `length` gets the id of the length.
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

uint32_t Instrumenter::accessor(Instruction instruction, const Access& access, const Path& path,
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

// -- the module
// ----------------------------------------------------------------------------------------------

void Instrumenter::rewrite(Instruction instruction, Code& into) {
    follow_lines(instruction);
    if (!print(instruction, into) && !check(instruction, into)) into.copy(instruction);
}

void Instrumenter::copy_functions() {
    bool inside = false;
    for (size_t offset = header_words; offset < words_.size(); offset += words_[offset] >> 16) {
        const Instruction instruction(words_.subspan(offset, words_[offset] >> 16));
        inside = inside || instruction.op() == spv::OpFunction;
        if (inside) rewrite(instruction, body_);
    }
}

std::vector<uint32_t> Instrumenter::assembled() const {
    std::vector<uint32_t> made(words_.begin(), words_.begin() + header_words);
    const auto put = [&](const Code& code) {
        made.insert(made.end(), code.words().begin(), code.words().end());
    };
    const bool all_variables = module_.version >= 0x00010400;  // in an entry point's list
    const bool storage_buffers = module_.version >= 0x00010300;
    bool preamble = true;
    bool extended = storage_buffers;
    for (size_t offset = header_words; offset < words_.size(); offset += words_[offset] >> 16) {
        const Instruction instruction(words_.subspan(offset, words_[offset] >> 16));
        const uint32_t op = instruction.op();
        if (op == spv::OpFunction) break;
        if (!extended && op != spv::OpCapability) {
            static constexpr char name[] = "SPV_KHR_storage_buffer_storage_class";
            std::vector<uint32_t> text((sizeof name + 3) / 4, 0);
            std::copy(std::begin(name), std::end(name), reinterpret_cast<char*>(text.data()));
            Code extension;
            extension.emit(spv::OpExtension, text);
            put(extension);
            extended = true;
        }
        if (preamble && !is_preamble(op)) {
            put(builder_.annotations);
            preamble = false;
        }
        made.insert(made.end(), words_.begin() + static_cast<ptrdiff_t>(offset),
                    words_.begin() + static_cast<ptrdiff_t>(offset + instruction.size()));
        if (op != spv::OpEntryPoint) continue;
        uint32_t first = 0;
        (void)instruction.string(3, &first);
        const size_t start = made.size() - instruction.size();
        const auto add = [&](uint32_t variable) {
            if (std::find(made.begin() + static_cast<ptrdiff_t>(start + first), made.end(), variable) !=
                made.end())
                return;
            made.push_back(variable);
            made[start] += 1u << 16;
        };
        add(invocation_);
        if (all_variables) add(buffer_);
    }
    if (preamble) put(builder_.annotations);
    put(builder_.globals);
    put(body_);
    put(builder_.functions);
    made[bound_word] = builder_.bound();
    return made;
}

Instrumented Instrumenter::run() {
    Instrumented result;
    find_names();
    copy_functions();
    if (sites_.empty()) return result;
    result.problem = why_not();
    if (!result.problem.empty()) return result;
    result.words = assembled();
    result.sites = std::move(sites_);
    return result;
}

}  // namespace

Instrumented instrumented(std::span<const uint32_t> words, const Instruments& wanted, uint32_t set,
                          uint32_t module_number) {
    if (!wanted.any()) return {};
    return Instrumenter(words, wanted, set, module_number).run();
}

}  // namespace kp
