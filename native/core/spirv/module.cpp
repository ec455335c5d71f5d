#define SPV_ENABLE_UTILITY_CODE  // spv::HasResultAndType
#include "spirv/module.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cstring>

namespace kp::spirv {
namespace {

constexpr uint32_t byte_swapped_magic = 0x03022307;

// The specification's universal limit. It also bounds the index, which has one entry per id.
constexpr uint32_t largest_bound = 0x3FFFFF;

// Structs cannot have more members. The limit also lets a member fit into a key.
constexpr uint32_t largest_member = 0x3FFF;

// The decorations that this code queries. All others are dropped.
constexpr auto kept_decorations = std::to_array<uint32_t>({
    spv::DecorationSpecId,
    spv::DecorationBlock,
    spv::DecorationBufferBlock,
    spv::DecorationRowMajor,
    spv::DecorationArrayStride,
    spv::DecorationBuiltIn,
    spv::DecorationMatrixStride,
    spv::DecorationNonWritable,
    spv::DecorationNonReadable,
    spv::DecorationBinding,
    spv::DecorationDescriptorSet,
    spv::DecorationOffset,
});

const std::string no_name;

// 0 stands for the id itself, n + 1 for its member n.
constexpr uint64_t member_key_of(uint32_t member) { return static_cast<uint64_t>(member) + 1; }
constexpr uint64_t key_of(uint32_t id, uint64_t member_key, uint32_t decoration) {
    return static_cast<uint64_t>(id) << 40 | member_key << 16 | (decoration & 0xFFFFu);
}

struct ResultShape {
    bool result = false;
    bool type = false;
};

ResultShape result_shape(uint32_t op) {
    switch (op) {
    case newer::type_untyped_pointer:
    case newer::type_cooperative_matrix: return {true, false};
    case newer::untyped_variable:
    case newer::untyped_access_chain:
    case newer::untyped_in_bounds_access_chain:
    case newer::untyped_ptr_access_chain:
    case newer::untyped_in_bounds_ptr_access_chain:
    case newer::untyped_array_length:
    case newer::cooperative_matrix_load:
    case newer::cooperative_matrix_mul_add:
    case newer::cooperative_matrix_length: return {true, true};
    default: break;
    }
    ResultShape shape;
    spv::HasResultAndType(static_cast<spv::Op>(op), &shape.result, &shape.type);
    return shape;
}

// The length in bytes of the UTF-8 sequence at the start of `bytes`; 0 if it is invalid.
size_t utf8_length(const unsigned char* bytes, size_t left) {
    const unsigned char lead = bytes[0];
    const size_t length = lead < 0x80   ? 1
                          : lead < 0xC2 ? 0
                          : lead < 0xE0 ? 2
                          : lead < 0xF0 ? 3
                          : lead < 0xF5 ? 4
                                        : 0;
    if (length == 0 || length > left) return 0;
    for (size_t i = 1; i < length; ++i)
        if ((bytes[i] & 0xC0) != 0x80) return 0;
    if ((lead == 0xE0 && bytes[1] < 0xA0) || (lead == 0xED && bytes[1] > 0x9F)) return 0;
    if ((lead == 0xF0 && bytes[1] < 0x90) || (lead == 0xF4 && bytes[1] > 0x8F)) return 0;
    return length;
}

// Names appear in messages and Python strings, which must be UTF-8.
std::string clean_utf8(const std::string& bytes) {
    std::string clean;
    clean.reserve(bytes.size());
    const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
    for (size_t i = 0; i < bytes.size();) {
        const size_t length = utf8_length(data + i, bytes.size() - i);
        if (length == 0)
            clean += '?';
        else
            clean.append(bytes, i, length);
        i += std::max<size_t>(length, 1);
    }
    return clean;
}

std::string hex(uint32_t value) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text = "0x";
    for (int shift = 28; shift >= 0; shift -= 4) text += digits[value >> shift & 0xFu];
    return text;
}

// Says what the bytes are if they are a known format that people mistake for SPIR-V.
[[noreturn]] void not_spirv(std::span<const uint32_t> words) {
    std::string bytes(std::min<size_t>(words.size() * 4, 64), '\0');
    if (!bytes.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
    const std::string problem = "these bytes are not SPIR-V: ";
    const auto fail = [&](const std::string& why) {
        throw Error(ErrorKind::invalid_argument, problem + why);
    };
    if (!words.empty() && words[0] == byte_swapped_magic)
        fail("the magic number reads 0x03022307, so the words are in the other byte order; swap the bytes of "
             "each word");
    if (bytes.starts_with("\x7F"
                          "ELF"))
        fail("they are an ELF file (a program or a library); pass the .spv file");
    if (bytes.starts_with("DXBC")) fail("they are a DXBC/DXIL container; compile the HLSL with dxc -spirv");
    if (bytes.starts_with("BC\xC0\xDE")) fail("they are LLVM bitcode; compile to SPIR-V first");
    if (bytes.starts_with("; SPIR-V") || bytes.find("OpCapability") != std::string::npos)
        fail("they are SPIR-V assembly text; assemble it with spirv-as first");
    // Not the last bytes: the words that hold the text may end in padding.
    const size_t shown = std::min<size_t>(bytes.size() > 4 ? bytes.size() - 3 : bytes.size(), 24);
    const bool text =
        shown > 0 && std::all_of(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(shown), [](char c) {
            const auto byte = static_cast<unsigned char>(c);
            return (byte >= 0x20 && byte < 0x7F) || c == '\n' || c == '\r' || c == '\t';
        });
    if (text)
        fail("they look like text" +
             std::string(bytes.find("#version") != std::string::npos ? " (GLSL source)"
                                                                     : " (shader source?)") +
             "; compile the source to SPIR-V first");
    if (words.size() < header_words)
        fail(std::to_string(words.size()) + " words are too few, the header alone takes " +
             std::to_string(header_words));
    fail("the first word is " + hex(words[0]) + ", the magic number is 0x07230203");
    std::abort();  // `fail` always throws, but a lambda cannot declare it
}

}  // namespace

void malformed(const std::string& why) {
    throw Error(ErrorKind::invalid_argument, "malformed SPIR-V module: " + why + "; check it with spirv-val");
}

void Instruction::too_short(uint32_t index) const {
    malformed("an instruction with opcode " + std::to_string(op()) + " has " + std::to_string(words_.size()) +
              " words and lacks word " + std::to_string(index));
}

uint32_t Instruction::type() const { return result_shape(op()).type ? (*this)[1] : 0; }

uint32_t Instruction::result() const {
    const ResultShape shape = result_shape(op());
    return shape.result ? (*this)[shape.type ? 2 : 1] : 0;
}

std::string Instruction::string(uint32_t index, uint32_t* next) const {
    return clean_utf8(bytes(index, next));
}

std::string Instruction::bytes(uint32_t index, uint32_t* next) const {
    std::string text;
    for (uint32_t i = index;; ++i) {
        const uint32_t word = (*this)[i];  // throws if the terminating zero is missing
        for (uint32_t shift = 0; shift < 32; shift += 8) {
            const char c = static_cast<char>(word >> shift & 0xFFu);
            if (c == '\0') {
                if (next) *next = i + 1;
                return text;
            }
            text += c;
        }
    }
}

Module::Module(std::span<const uint32_t> words) : words_(words) {
    if (words.empty())
        throw Error(ErrorKind::invalid_argument, "the SPIR-V module is empty: it has no words");
    if (words[0] != spv::MagicNumber || words.size() < header_words) not_spirv(words);
    version = words[1];
    bound_ = words[3];
    if (bound_ == 0 || bound_ > largest_bound)
        malformed("its id bound is " + std::to_string(bound_) + ", outside 1 to " +
                  std::to_string(largest_bound) + " (spirv-opt --compact-ids renumbers ids)");
    for (size_t offset = header_words; offset < words.size();) {
        const uint32_t count = words[offset] >> 16;
        if (count == 0 || count > words.size() - offset)
            malformed("the instruction at word " + std::to_string(offset) + " is " + std::to_string(count) +
                      " words long, " + std::to_string(words.size() - offset) +
                      " are left; is the file truncated?");
        read_instruction(Instruction(words.subspan(offset, count)), static_cast<uint32_t>(offset));
        offset += count;
    }
    if (in_function_) malformed("its last function has no end; is the file truncated?");
}

void Module::out_of_bound(uint32_t id) const {
    malformed("it uses id " + std::to_string(id) + ", out of bound: ids go from 1 to " +
              std::to_string(bound_ - 1));
}

void Module::read_instruction(Instruction instruction, uint32_t offset) {
    const uint32_t op = instruction.op();
    define(instruction, offset);
    if (op == spv::OpFunction) {
        if (in_function_) malformed("a function starts inside another one");
        in_function_ = true;
        function_index_.emplace(instruction[2], static_cast<uint32_t>(functions_.size()));
        functions_.push_back({instruction[2], {}, {}});
    } else if (in_function_) {
        if (op == spv::OpFunctionEnd)
            in_function_ = false;
        else if (op == spv::OpFunctionParameter)
            functions_.back().parameters.push_back(instruction[2]);
        else
            functions_.back().body.push_back(instruction);
    } else {
        read_annotation(instruction);
    }
}

// Reads an instruction outside of functions.
void Module::read_annotation(Instruction instruction) {
    switch (instruction.op()) {
    case spv::OpCapability: capabilities.push_back(instruction[1]); return;
    case spv::OpExtension: extensions.push_back(instruction.string(1)); return;
    case spv::OpExtInstImport: instruction_sets[instruction[1]] = instruction.string(2); return;
    case spv::OpEntryPoint: {
        EntryPoint& point = entry_points.emplace_back();
        point.model = instruction[1];
        point.function = instruction[2];
        uint32_t next = 0;
        point.name = instruction.string(3, &next);
        // Drivers find the entry by its exact name, so a cleaned name would not be found.
        if (point.name != instruction.bytes(3))
            malformed("the name of the entry '" + point.name + "' is not UTF-8");
        for (; next < instruction.size(); ++next) point.interface.push_back(instruction[next]);
        return;
    }
    case spv::OpExecutionMode:
    case spv::OpExecutionModeId: {
        ExecutionMode mode{instruction[1], instruction[2], {}, instruction.op() == spv::OpExecutionModeId};
        for (uint32_t i = 0; i < mode.operands.size() && i + 3 < instruction.size(); ++i)
            mode.operands[i] = instruction[i + 3];
        execution_modes.push_back(mode);
        return;
    }
    case spv::OpSource: source_language = instruction[1]; return;
    // The first name is the declaration's: glslang adds a name for each `const` that is made from it.
    case spv::OpName: names_.try_emplace(instruction[1], instruction.string(2)); return;
    case spv::OpMemberName:
        if (instruction[2] <= largest_member)
            member_names_.try_emplace(key_of(instruction[1], member_key_of(instruction[2]), 0),
                                      instruction.string(3));
        return;
    case spv::OpDecorate:
        decorate(instruction[1], 0, instruction[2], instruction.size() > 3 ? instruction[3] : 0);
        return;
    case spv::OpMemberDecorate:
        if (instruction[2] <= largest_member)
            decorate(instruction[1], member_key_of(instruction[2]), instruction[3],
                     instruction.size() > 4 ? instruction[4] : 0);
        return;
    case spv::OpGroupDecorate:
        for (uint32_t i = 2; i < instruction.size(); ++i) copy_group(instruction[1], instruction[i], 0);
        return;
    case spv::OpGroupMemberDecorate:
        for (uint32_t i = 2; i + 1 < instruction.size(); i += 2)
            if (instruction[i + 1] <= largest_member)
                copy_group(instruction[1], instruction[i], member_key_of(instruction[i + 1]));
        return;
    default: globals.push_back(instruction); return;
    }
}

void Module::define(Instruction instruction, uint32_t offset) {
    if (!result_shape(instruction.op()).result) return;
    const uint32_t id = instruction.result();
    if (id == 0 || id >= bound_)
        malformed("the instruction at word " + std::to_string(offset) + " defines id " + std::to_string(id) +
                  ", out of bound: ids go from 1 to " + std::to_string(bound_ - 1));
    if (id >= definitions_.size()) definitions_.resize(id + 1);
    if (definitions_[id] != 0) malformed("id " + std::to_string(id) + " is defined twice");
    definitions_[id] = offset;
}

void Module::decorate(uint32_t target, uint64_t member_key, uint32_t decoration, uint32_t value) {
    check_bound(target);
    if (std::find(kept_decorations.begin(), kept_decorations.end(), decoration) != kept_decorations.end())
        decorations_[key_of(target, member_key, decoration)] = value;
}

// Applies the decorations of a decoration group (OpDecorationGroup).
void Module::copy_group(uint32_t group, uint32_t target, uint64_t member_key) {
    for (const uint32_t kept : kept_decorations)
        if (const auto value = decoration(group, static_cast<spv::Decoration>(kept)))
            decorate(target, member_key, kept, *value);
}

const Function* Module::function(uint32_t id) const {
    const auto found = function_index_.find(id);
    return found == function_index_.end() ? nullptr : &functions_[found->second];
}

Instruction Module::find(uint32_t id) const {
    if (id >= definitions_.size() || definitions_[id] == 0) return {};
    const uint32_t offset = definitions_[id];
    return Instruction(words_.subspan(offset, words_[offset] >> 16));
}

Instruction Module::at(uint32_t id, const char* role) const {
    const Instruction instruction = find(id);
    if (!instruction)
        malformed(std::string("it uses id ") + std::to_string(id) + " as " + role +
                  (id >= bound_ ? ", out of bound: ids go from 1 to " + std::to_string(bound_ - 1)
                                : ", which nothing defines"));
    return instruction;
}

uint32_t Module::type_of(uint32_t id) const {
    const Instruction instruction = find(id);
    return instruction ? instruction.type() : 0;
}

std::optional<uint32_t> Module::storage_class(uint32_t pointer_type) const {
    const Instruction type = find(pointer_type);
    if (type.op() == spv::OpTypePointer || type.op() == newer::type_untyped_pointer) return type[2];
    return std::nullopt;
}

const std::string& Module::name(uint32_t id) const {
    const auto found = names_.find(id);
    return found == names_.end() ? no_name : found->second;
}

const std::string& Module::member_name(uint32_t id, uint32_t member) const {
    const auto found = member > largest_member ? member_names_.end()
                                               : member_names_.find(key_of(id, member_key_of(member), 0));
    return found == member_names_.end() ? no_name : found->second;
}

std::optional<uint32_t> Module::decoration(uint32_t id, spv::Decoration decoration) const {
    const auto found = decorations_.find(key_of(id, 0, static_cast<uint32_t>(decoration)));
    if (found == decorations_.end()) return std::nullopt;
    return found->second;
}

std::optional<uint32_t> Module::member_decoration(uint32_t id, uint32_t member,
                                                  spv::Decoration decoration) const {
    if (member > largest_member) return std::nullopt;
    const auto found =
        decorations_.find(key_of(id, member_key_of(member), static_cast<uint32_t>(decoration)));
    if (found == decorations_.end()) return std::nullopt;
    return found->second;
}

std::vector<const Function*> call_tree(const Module& module, uint32_t entry_function) {
    std::vector<const Function*> functions;
    std::vector<bool> seen(module.id_limit());
    const auto reach = [&](uint32_t id, const char* role) {
        const Function* function = module.function(id);
        if (!function)
            malformed(std::string("it uses id ") + std::to_string(id) + " as " + role + ", no function");
        if (seen[id]) return;
        seen[id] = true;
        functions.push_back(function);
    };
    reach(entry_function, "the function of an entry point");
    for (size_t next = 0; next < functions.size(); ++next)
        for (const Instruction instruction : functions[next]->body)
            if (instruction.op() == spv::OpFunctionCall) reach(instruction[3], "the function of a call");
    return functions;
}

}  // namespace kp::spirv
