// Types -> their layout in memory. Explicit decorations (Offset, ArrayStride, MatrixStride) decide; where a
// type has none, as in workgroup memory, the std430 rules do.
#pragma once

#include "spirv_constants.hpp"
#include "spirv_module.hpp"
#include "spirv_reflect.hpp"

#include <cstdint>
#include <string>

namespace kp::spirv {

// A block's or a member's name without what compilers from HLSL put around it: "type.Params" -> "Params",
// "@data" -> "data".
[[nodiscard]] std::string source_name(const std::string& name);

class LayoutBuilder {
public:
    LayoutBuilder(const Module& module, const Constants& constants)
        : module_(module), constants_(constants) {}

    struct Placed {
        TypeLayout layout;
        uint64_t alignment = 1;  // by the std430 rules
    };

    // Throws for types that contain themselves and for expansions beyond any real shader's.
    [[nodiscard]] Placed place(uint32_t type) { return place(type, {}, 0); }

    // Length of an OpTypeArray with specialization defaults, cut to 32 bits. Throws where it is no known
    // integer.
    [[nodiscard]] uint32_t array_length(Instruction array) const;

private:
    // A matrix is described by decorations on the member that holds it.
    struct MatrixDecorations {
        uint32_t stride = 0;  // 0 = none
        bool row_major = false;
    };

    void charge(uint64_t nodes);  // throws when the module as a whole has used up its share
    [[nodiscard]] Placed place(uint32_t type, MatrixDecorations matrix, uint32_t depth);
    void place_element(Instruction type, MatrixDecorations matrix, uint32_t depth, Placed& placed);
    void place_struct(Instruction type, uint32_t depth, Placed& placed);
    void place_matrix(Instruction type, MatrixDecorations matrix, Placed& placed);
    void place_numeric(uint32_t type, Placed& placed) const;

    const Module& module_;
    const Constants& constants_;
    uint64_t nodes_ = 0;  // types expanded so far
};

}  // namespace kp::spirv
