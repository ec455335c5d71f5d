// A SPIR-V module split into instructions and indexed by id. Checks the structure of the words, not their
// meaning.
//
// The input is not trusted: modules come from users and may not have been validated. Instruction lengths,
// ids, operand counts and strings are checked against the available words. Every fault throws
// Error(invalid_argument).
#pragma once

#include <spirv/unified1/spirv.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace kp::spirv {

// Throws Error(invalid_argument) with a message that the module is malformed, and why.
[[noreturn]] void malformed(const std::string& why);

// The header of every module: five words; the fourth is the bound of its ids.
constexpr size_t header_words = 5;
constexpr size_t bound_word = 3;

// Opcodes newer than the oldest spirv.hpp that we build against.
namespace newer {
constexpr uint32_t type_untyped_pointer = 4417;
constexpr uint32_t untyped_variable = 4418;
constexpr uint32_t untyped_access_chain = 4419;
constexpr uint32_t untyped_in_bounds_access_chain = 4420;
constexpr uint32_t untyped_ptr_access_chain = 4423;
constexpr uint32_t untyped_in_bounds_ptr_access_chain = 4424;
constexpr uint32_t untyped_array_length = 4425;
constexpr uint32_t untyped_prefetch = 4426;
constexpr uint32_t capability_cooperative_matrix = 6022;
constexpr uint32_t type_cooperative_matrix = 4456;
constexpr uint32_t cooperative_matrix_load = 4457;
constexpr uint32_t cooperative_matrix_store = 4458;
constexpr uint32_t cooperative_matrix_mul_add = 4459;
constexpr uint32_t cooperative_matrix_length = 4460;
constexpr uint32_t source_language_slang = 11;
}  // namespace newer

// A view of one instruction. Word 0 is the opcode, as in the specification's tables. The empty view stands
// for "none".
class Instruction {
public:
    Instruction() = default;
    explicit Instruction(std::span<const uint32_t> words) : words_(words) {}

    explicit operator bool() const noexcept { return !words_.empty(); }
    [[nodiscard]] std::span<const uint32_t> words() const noexcept { return words_; }
    [[nodiscard]] uint32_t op() const noexcept { return words_.empty() ? 0 : words_[0] & 0xFFFFu; }
    [[nodiscard]] uint32_t size() const noexcept { return static_cast<uint32_t>(words_.size()); }

    // Throws if the instruction is too short to have that operand.
    [[nodiscard]] uint32_t operator[](uint32_t index) const {
        if (index >= words_.size()) [[unlikely]]
            too_short(index);
        return words_[index];
    }

    [[nodiscard]] uint32_t type() const;    // id of the result type, 0 if the opcode has none
    [[nodiscard]] uint32_t result() const;  // result id, 0 if the opcode has none

    // The literal string that starts at word `index`, with invalid UTF-8 replaced; `next` gets the index of
    // the word after it.
    [[nodiscard]] std::string string(uint32_t index, uint32_t* next = nullptr) const;
    [[nodiscard]] std::string bytes(uint32_t index, uint32_t* next = nullptr) const;  // unchanged

private:
    [[noreturn]] void too_short(uint32_t index) const;

    std::span<const uint32_t> words_;
};

struct Function {
    uint32_t id = 0;
    std::vector<uint32_t> parameters;
    std::vector<Instruction> body;  // between the parameters and OpFunctionEnd
};

struct EntryPoint {
    uint32_t model = 0;
    uint32_t function = 0;
    std::string name;
    std::vector<uint32_t> interface;  // its inputs and outputs; from SPIR-V 1.4 on all variables that it uses
};

struct ExecutionMode {
    uint32_t function = 0;
    uint32_t mode = 0;
    std::array<uint32_t, 3> operands{};  // literals, or ids for OpExecutionModeId; missing ones are 0
    bool by_id = false;
};

class Module {
public:
    // Keeps a view of `words`, which must outlive the module.
    explicit Module(std::span<const uint32_t> words);

    uint32_t version = 0;
    std::vector<uint32_t> capabilities;
    std::vector<std::string> extensions;
    std::vector<EntryPoint> entry_points;
    std::vector<ExecutionMode> execution_modes;
    std::vector<Instruction> globals;  // types, constants and module-scope variables, in order
    uint32_t source_language = 0;      // SpvSourceLanguage; 0 if not declared
    std::unordered_map<uint32_t, std::string> instruction_sets;  // id -> name of an extended instruction set

    [[nodiscard]] const Function* function(uint32_t id) const;
    [[nodiscard]] const std::vector<Function>& functions() const noexcept { return functions_; }

    // The module declares that every id is below its bound. Throws if `id` is not.
    void check_bound(uint32_t id) const {
        if (id >= bound_) [[unlikely]]
            out_of_bound(id);
    }

    // One past the largest id that has a definition.
    [[nodiscard]] uint32_t id_limit() const noexcept { return static_cast<uint32_t>(definitions_.size()); }

    [[nodiscard]] Instruction find(uint32_t id) const;                  // empty if the id has no definition
    [[nodiscard]] Instruction at(uint32_t id, const char* role) const;  // throws instead, naming the role
    [[nodiscard]] uint32_t type_of(uint32_t id) const;                  // 0 if the id has no type

    // Storage class of a pointer type; nothing for other types.
    [[nodiscard]] std::optional<uint32_t> storage_class(uint32_t pointer_type) const;

    [[nodiscard]] const std::string& name(uint32_t id) const;  // "" if it has none
    [[nodiscard]] const std::string& member_name(uint32_t id, uint32_t member) const;

    // First operand of the decoration (0 if it takes none); nothing if the id lacks the decoration.
    [[nodiscard]] std::optional<uint32_t> decoration(uint32_t id, spv::Decoration decoration) const;
    [[nodiscard]] std::optional<uint32_t> member_decoration(uint32_t id, uint32_t member,
                                                            spv::Decoration decoration) const;

private:
    [[noreturn]] void out_of_bound(uint32_t id) const;
    void read_instruction(Instruction instruction, uint32_t offset);
    void read_annotation(Instruction instruction);
    void define(Instruction instruction, uint32_t offset);
    void decorate(uint32_t target, uint64_t member_key, uint32_t decoration, uint32_t value);
    void copy_group(uint32_t group, uint32_t target, uint64_t member_key);

    std::span<const uint32_t> words_;
    uint32_t bound_ = 0;
    std::vector<uint32_t> definitions_;  // offset of the defining instruction by id, 0 = none
    std::unordered_map<uint32_t, std::string> names_;
    std::unordered_map<uint64_t, std::string> member_names_;
    std::unordered_map<uint64_t, uint32_t> decorations_;
    std::vector<Function> functions_;
    std::unordered_map<uint32_t, uint32_t> function_index_;
    bool in_function_ = false;
};

// The functions that may run when `entry_function` runs, starting with it. Throws if a call's target is not a
// function.
[[nodiscard]] std::vector<const Function*> call_tree(const Module& module, uint32_t entry_function);

}  // namespace kp::spirv
