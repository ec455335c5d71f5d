// The values of a module's constants: integers and booleans, scalars and vectors. Specialization constants
// have their default, unless a value is given for them. OpSpecConstantOp is evaluated for the integer
// operations that shaders may use.
#pragma once

#include "spirv/module.hpp"
#include "spirv/shader_info.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

namespace kp::spirv {

// A boolean, number, or vector of up to four of them.
struct NumericType {
    enum class Kind : uint8_t { boolean, signed_int, unsigned_int, floating };
    Kind kind = Kind::unsigned_int;
    uint32_t width = 0;  // bits of a component; 1 for booleans
    uint32_t count = 1;  // components
    bool brain = false;  // a float of 16 bits that is a bfloat16
};

// Nothing if the id is not such a type, or if its components have more than 64 bits.
[[nodiscard]] std::optional<NumericType> numeric_type(const Module& module, uint32_t type);
[[nodiscard]] ScalarKind scalar_kind(const NumericType& type);

struct ConstantValue {
    NumericType type;
    std::array<uint64_t, 4> bits{};  // zero-extended bit patterns
};

class Constants {
public:
    explicit Constants(const Module& module, std::span<const SpecValue> specialization = {});

    // Null if the id is not a constant with a known value.
    [[nodiscard]] const ConstantValue* find(uint32_t id) const;
    // Value of a scalar integer, zero-extended.
    [[nodiscard]] std::optional<uint64_t> integer(uint32_t id) const;
    // The same, if no specialization can change it.
    [[nodiscard]] std::optional<uint64_t> fixed(uint32_t id) const;

private:
    [[nodiscard]] std::optional<ConstantValue> evaluate(Instruction instruction) const;
    [[nodiscard]] std::optional<ConstantValue> evaluate_operation(Instruction instruction,
                                                                  NumericType type) const;
    [[nodiscard]] std::optional<uint64_t> specialized(uint32_t id) const;
    [[nodiscard]] std::optional<uint64_t> composite_element(Instruction instruction) const;

    const Module& module_;
    std::span<const SpecValue> specialization_;
    std::unordered_map<uint32_t, ConstantValue> values_;
};

}  // namespace kp::spirv
