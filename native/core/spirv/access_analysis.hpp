// Finds the variables that an entry point reads and writes.
#pragma once

#include "spirv/module.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace kp::spirv {

// The uses of the memory or the image behind an id.
struct Uses {
    static constexpr uint8_t read = 1;
    static constexpr uint8_t write = 2;
    static constexpr uint8_t atomic = 4;
    static constexpr uint8_t unknown = 8;  // reached an unknown instruction: any use is possible
    static constexpr uint8_t named = 16;   // the call tree mentions it
};

class AccessAnalysis {
public:
    // Throws Error(invalid_argument) if the call tree of `entry_function` is broken.
    AccessAnalysis(const Module& module, uint32_t entry_function);

    // Bits of Uses for a module-scope variable.
    [[nodiscard]] uint8_t uses(uint32_t variable) const;

    // Memory behind buffer references (storage class PhysicalStorageBuffer).
    [[nodiscard]] bool reads_physical() const noexcept {
        return (physical_ & (Uses::read | Uses::unknown)) != 0;
    }
    [[nodiscard]] bool writes_physical() const noexcept {
        return (physical_ & (Uses::write | Uses::unknown)) != 0;
    }

private:
    void classify_types();
    void walk(const Function& function);
    void visit(const Function& function, Instruction instruction);
    void visit_atomic(Instruction instruction);
    void visit_call(Instruction instruction);
    void visit_extended(Instruction instruction);
    bool visit_image(Instruction instruction);
    void load(uint32_t pointer, uint32_t result_type, uint32_t result);
    void store(uint32_t pointer, uint32_t object);
    void escape(uint32_t id);
    void escape_operands(Instruction instruction, uint32_t first);
    void use(uint32_t id, uint8_t bits);
    void derive(uint32_t result, uint32_t source);
    void propagate();

    [[nodiscard]] uint8_t type_traits(uint32_t type) const;
    [[nodiscard]] bool is_reference(uint32_t id) const;

    const Module& module_;
    bool physical_capable_ = false;
    uint8_t physical_ = 0;
    std::vector<uint8_t> uses_;                           // by id
    std::vector<uint8_t> type_traits_;                    // by id of a type
    std::vector<std::pair<uint32_t, uint32_t>> derived_;  // (result, source)
};

}  // namespace kp::spirv
