// The image formats that have a place in NumPy: their names, what a texel is on the host and what a shader sees. Pure.
#pragma once

#include "spirv/shader_info.hpp"

#include <vulkan/vulkan_core.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace kp {

struct ImageFormat {
    const char* name;    // GLSL's qualifier where it has one ("rgba8"), else in its manner ("bgra8")
    const char* vulkan;  // "R8G8B8A8_UNORM"
    VkFormat format;
    const char* component;  // NumPy's dtype of what a texel holds on the host
    uint32_t channels;      // how many of them; a packed texel is one
    uint32_t texel_bytes;
    ScalarKind scalar;  // what a shader reads and writes: floating, signed_int or unsigned_int
    bool plain;         // the components are what the shader sees: no normalization, no packing
};

[[nodiscard]] std::span<const ImageFormat> image_formats() noexcept;
// By name, GLSL's or Vulkan's with or without VK_FORMAT_; null for any other text.
[[nodiscard]] const ImageFormat* find_image_format(std::string_view name) noexcept;
// The format whose texels are `channels` plain components of a dtype: rgba32f, r8ui; null where there is none.
[[nodiscard]] const ImageFormat* plain_image_format(std::string_view component, uint32_t channels) noexcept;

}  // namespace kp
