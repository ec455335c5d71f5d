#include "adapter/image_format.hpp"

namespace kp {
namespace {

// Packed texels are one integer each: red in the lowest bits.
constexpr ImageFormat table[] = {
    {"r8", "R8_UNORM", VK_FORMAT_R8_UNORM, "uint8", 1, 1, ScalarKind::floating, false},
    {"r8_snorm", "R8_SNORM", VK_FORMAT_R8_SNORM, "int8", 1, 1, ScalarKind::floating, false},
    {"r8ui", "R8_UINT", VK_FORMAT_R8_UINT, "uint8", 1, 1, ScalarKind::unsigned_int, true},
    {"r8i", "R8_SINT", VK_FORMAT_R8_SINT, "int8", 1, 1, ScalarKind::signed_int, true},
    {"r16", "R16_UNORM", VK_FORMAT_R16_UNORM, "uint16", 1, 2, ScalarKind::floating, false},
    {"r16_snorm", "R16_SNORM", VK_FORMAT_R16_SNORM, "int16", 1, 2, ScalarKind::floating, false},
    {"r16ui", "R16_UINT", VK_FORMAT_R16_UINT, "uint16", 1, 2, ScalarKind::unsigned_int, true},
    {"r16i", "R16_SINT", VK_FORMAT_R16_SINT, "int16", 1, 2, ScalarKind::signed_int, true},
    {"r16f", "R16_SFLOAT", VK_FORMAT_R16_SFLOAT, "float16", 1, 2, ScalarKind::floating, true},
    {"r32ui", "R32_UINT", VK_FORMAT_R32_UINT, "uint32", 1, 4, ScalarKind::unsigned_int, true},
    {"r32i", "R32_SINT", VK_FORMAT_R32_SINT, "int32", 1, 4, ScalarKind::signed_int, true},
    {"r32f", "R32_SFLOAT", VK_FORMAT_R32_SFLOAT, "float32", 1, 4, ScalarKind::floating, true},
    {"rg8", "R8G8_UNORM", VK_FORMAT_R8G8_UNORM, "uint8", 2, 2, ScalarKind::floating, false},
    {"rg8_snorm", "R8G8_SNORM", VK_FORMAT_R8G8_SNORM, "int8", 2, 2, ScalarKind::floating, false},
    {"rg8ui", "R8G8_UINT", VK_FORMAT_R8G8_UINT, "uint8", 2, 2, ScalarKind::unsigned_int, true},
    {"rg8i", "R8G8_SINT", VK_FORMAT_R8G8_SINT, "int8", 2, 2, ScalarKind::signed_int, true},
    {"rg16", "R16G16_UNORM", VK_FORMAT_R16G16_UNORM, "uint16", 2, 4, ScalarKind::floating, false},
    {"rg16_snorm", "R16G16_SNORM", VK_FORMAT_R16G16_SNORM, "int16", 2, 4, ScalarKind::floating, false},
    {"rg16ui", "R16G16_UINT", VK_FORMAT_R16G16_UINT, "uint16", 2, 4, ScalarKind::unsigned_int, true},
    {"rg16i", "R16G16_SINT", VK_FORMAT_R16G16_SINT, "int16", 2, 4, ScalarKind::signed_int, true},
    {"rg16f", "R16G16_SFLOAT", VK_FORMAT_R16G16_SFLOAT, "float16", 2, 4, ScalarKind::floating, true},
    {"rg32ui", "R32G32_UINT", VK_FORMAT_R32G32_UINT, "uint32", 2, 8, ScalarKind::unsigned_int, true},
    {"rg32i", "R32G32_SINT", VK_FORMAT_R32G32_SINT, "int32", 2, 8, ScalarKind::signed_int, true},
    {"rg32f", "R32G32_SFLOAT", VK_FORMAT_R32G32_SFLOAT, "float32", 2, 8, ScalarKind::floating, true},
    {"rgba8", "R8G8B8A8_UNORM", VK_FORMAT_R8G8B8A8_UNORM, "uint8", 4, 4, ScalarKind::floating, false},
    {"rgba8_snorm", "R8G8B8A8_SNORM", VK_FORMAT_R8G8B8A8_SNORM, "int8", 4, 4, ScalarKind::floating, false},
    {"rgba8ui", "R8G8B8A8_UINT", VK_FORMAT_R8G8B8A8_UINT, "uint8", 4, 4, ScalarKind::unsigned_int, true},
    {"rgba8i", "R8G8B8A8_SINT", VK_FORMAT_R8G8B8A8_SINT, "int8", 4, 4, ScalarKind::signed_int, true},
    {"rgba16", "R16G16B16A16_UNORM", VK_FORMAT_R16G16B16A16_UNORM, "uint16", 4, 8, ScalarKind::floating,
     false},
    {"rgba16_snorm", "R16G16B16A16_SNORM", VK_FORMAT_R16G16B16A16_SNORM, "int16", 4, 8, ScalarKind::floating,
     false},
    {"rgba16ui", "R16G16B16A16_UINT", VK_FORMAT_R16G16B16A16_UINT, "uint16", 4, 8, ScalarKind::unsigned_int,
     true},
    {"rgba16i", "R16G16B16A16_SINT", VK_FORMAT_R16G16B16A16_SINT, "int16", 4, 8, ScalarKind::signed_int,
     true},
    {"rgba16f", "R16G16B16A16_SFLOAT", VK_FORMAT_R16G16B16A16_SFLOAT, "float16", 4, 8, ScalarKind::floating,
     true},
    {"rgba32ui", "R32G32B32A32_UINT", VK_FORMAT_R32G32B32A32_UINT, "uint32", 4, 16, ScalarKind::unsigned_int,
     true},
    {"rgba32i", "R32G32B32A32_SINT", VK_FORMAT_R32G32B32A32_SINT, "int32", 4, 16, ScalarKind::signed_int,
     true},
    {"rgba32f", "R32G32B32A32_SFLOAT", VK_FORMAT_R32G32B32A32_SFLOAT, "float32", 4, 16, ScalarKind::floating,
     true},
    {"r64ui", "R64_UINT", VK_FORMAT_R64_UINT, "uint64", 1, 8, ScalarKind::unsigned_int, true},
    {"r64i", "R64_SINT", VK_FORMAT_R64_SINT, "int64", 1, 8, ScalarKind::signed_int, true},
    {"sr8", "R8_SRGB", VK_FORMAT_R8_SRGB, "uint8", 1, 1, ScalarKind::floating, false},
    {"srg8", "R8G8_SRGB", VK_FORMAT_R8G8_SRGB, "uint8", 2, 2, ScalarKind::floating, false},
    {"srgba8", "R8G8B8A8_SRGB", VK_FORMAT_R8G8B8A8_SRGB, "uint8", 4, 4, ScalarKind::floating, false},
    {"bgra8", "B8G8R8A8_UNORM", VK_FORMAT_B8G8R8A8_UNORM, "uint8", 4, 4, ScalarKind::floating, false},
    {"sbgra8", "B8G8R8A8_SRGB", VK_FORMAT_B8G8R8A8_SRGB, "uint8", 4, 4, ScalarKind::floating, false},
    {"rgb10_a2", "A2B10G10R10_UNORM_PACK32", VK_FORMAT_A2B10G10R10_UNORM_PACK32, "uint32", 1, 4,
     ScalarKind::floating, false},
    {"rgb10_a2ui", "A2B10G10R10_UINT_PACK32", VK_FORMAT_A2B10G10R10_UINT_PACK32, "uint32", 1, 4,
     ScalarKind::unsigned_int, false},
    {"r11f_g11f_b10f", "B10G11R11_UFLOAT_PACK32", VK_FORMAT_B10G11R11_UFLOAT_PACK32, "uint32", 1, 4,
     ScalarKind::floating, false},
    {"rgb9_e5", "E5B9G9R9_UFLOAT_PACK32", VK_FORMAT_E5B9G9R9_UFLOAT_PACK32, "uint32", 1, 4,
     ScalarKind::floating, false},
};

}  // namespace

std::span<const ImageFormat> image_formats() noexcept { return table; }

const ImageFormat* find_image_format(std::string_view name) noexcept {
    constexpr std::string_view prefix = "VK_FORMAT_";
    const std::string_view vulkan = name.starts_with(prefix) ? name.substr(prefix.size()) : name;
    for (const ImageFormat& each : table)
        if (name == each.name || vulkan == each.vulkan) return &each;
    return nullptr;
}

const ImageFormat* plain_image_format(std::string_view component, uint32_t channels) noexcept {
    for (const ImageFormat& each : table)
        if (each.plain && component == each.component && channels == each.channels) return &each;
    return nullptr;
}

}  // namespace kp
