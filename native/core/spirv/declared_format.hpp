// The formats of texels that a shader can declare (SpvImageFormat): their names, and their components on the
// host. Pure.
#pragma once

#include "spirv/shader_info.hpp"

#include <cstdint>

namespace kp {

struct DeclaredFormat {
    const char* name;   // GLSL's; "" if the shader declares none, "unknown" for a number beyond the table
    ScalarKind scalar;  // of a component; a packed texel is one unsigned integer
    uint32_t width;     // its bits
    uint32_t channels;

    [[nodiscard]] constexpr uint32_t texel_bytes() const noexcept { return channels * width / 8; }
};

[[nodiscard]] const DeclaredFormat& declared_format(uint32_t spirv_format) noexcept;

}  // namespace kp
