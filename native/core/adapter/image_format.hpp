// The image formats that NumPy can represent: their names, their texels on the host, and their values in a
// shader. Pure.
#pragma once

#include "spirv/shader_info.hpp"

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace kp {

struct ImageFormat {
    const char* name;    // GLSL's qualifier if it has one ("rgba8"), else in the same style ("bgra8")
    const char* vulkan;  // "R8G8B8A8_UNORM"
    VkFormat format;
    const char* component;  // NumPy's dtype of a texel's components on the host
    uint32_t channels;      // number of components; a packed texel is one
    uint32_t texel_bytes;
    ScalarKind scalar;  // type in the shader: floating, signed_int or unsigned_int
    bool plain;         // the shader sees the components themselves: no normalization, no packing
};

[[nodiscard]] std::span<const ImageFormat> image_formats() noexcept;
// By name, GLSL's or Vulkan's with or without VK_FORMAT_; null for any other text.
[[nodiscard]] const ImageFormat* find_image_format(std::string_view name) noexcept;
// The format with texels of `channels` plain components of a dtype: rgba32f, r8ui; null if there is none.
[[nodiscard]] const ImageFormat* plain_image_format(std::string_view component, uint32_t channels) noexcept;

}  // namespace kp
