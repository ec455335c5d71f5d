// Computes the memory layout of types, as their source declares them. Explicit decorations (Offset,
// ArrayStride, MatrixStride) decide; types without decorations, as in workgroup memory, follow the std430
// rules.
//
// Compilers from HLSL and Slang write a matrix of R rows and C columns as a SPIR-V matrix of R columns with C
// components each, because M[i] is a row in these languages; "column-major" then becomes RowMajor. The bytes
// stay the same, so exchanging rows, columns and order gives the source's matrix. Slang also wraps arrays in
// structs (_Array_...), and the struct of a ConstantBuffer<T> in a block without a name.
#pragma once

#include "spirv/constants.hpp"
#include "spirv/module.hpp"
#include "spirv/shader_info.hpp"

#include <cstdint>
#include <string>

namespace kp::spirv {

// The name of a block or member without the text that compilers from HLSL add: "type.Params" -> "Params",
// "@data" -> "data".
[[nodiscard]] std::string source_name(const std::string& name);

class LayoutBuilder {
public:
    LayoutBuilder(const Module& module, const Constants& constants)
        : module_(module),
          constants_(constants),
          rows_first_(module.source_language == spv::SourceLanguageHLSL ||
                      module.source_language == newer::source_language_slang) {}

    struct Placed {
        TypeLayout layout;
        uint64_t alignment = 1;  // by the std430 rules
    };

    // Throws for types that contain themselves and for types that expand to more members than any real shader
    // has.
    [[nodiscard]] Placed place(uint32_t type) { return place(type, {}, 0); }

    // Length of an OpTypeArray with specialization applied, cut to 32 bits. Throws if it is not a known
    // integer.
    [[nodiscard]] uint32_t array_length(Instruction array) const;

private:
    // A matrix is described by decorations on the member that holds it.
    struct MatrixDecorations {
        uint32_t stride = 0;  // 0 = none
        bool row_major = false;
    };

    void charge(uint64_t nodes);  // throws if the whole module has used up its share
    [[nodiscard]] Placed place(uint32_t type, MatrixDecorations matrix, uint32_t depth);
    void place_element(Instruction type, MatrixDecorations matrix, uint32_t depth, Placed& placed);
    void place_struct(Instruction type, uint32_t depth, Placed& placed);
    void place_matrix(Instruction type, MatrixDecorations matrix, Placed& placed);
    void place_numeric(uint32_t type, Placed& placed) const;

    [[nodiscard]] bool is_wrapped_array(Instruction type) const;
    [[nodiscard]] MatrixDecorations matrix_of(uint32_t type, uint32_t member) const;

    const Module& module_;
    const Constants& constants_;
    bool rows_first_;     // the source is HLSL or Slang
    uint64_t nodes_ = 0;  // types expanded so far
};

}  // namespace kp::spirv
