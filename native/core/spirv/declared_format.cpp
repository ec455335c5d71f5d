#include "spirv/declared_format.hpp"

#include <iterator>

namespace kp {
namespace {

// In the order of SpvImageFormat.
constexpr DeclaredFormat table[] = {
    {"", ScalarKind::none, 0, 0},
    {"rgba32f", ScalarKind::floating, 32, 4},
    {"rgba16f", ScalarKind::floating, 16, 4},
    {"r32f", ScalarKind::floating, 32, 1},
    {"rgba8", ScalarKind::unsigned_int, 8, 4},
    {"rgba8_snorm", ScalarKind::signed_int, 8, 4},
    {"rg32f", ScalarKind::floating, 32, 2},
    {"rg16f", ScalarKind::floating, 16, 2},
    {"r11f_g11f_b10f", ScalarKind::unsigned_int, 32, 1},
    {"r16f", ScalarKind::floating, 16, 1},
    {"rgba16", ScalarKind::unsigned_int, 16, 4},
    {"rgb10_a2", ScalarKind::unsigned_int, 32, 1},
    {"rg16", ScalarKind::unsigned_int, 16, 2},
    {"rg8", ScalarKind::unsigned_int, 8, 2},
    {"r16", ScalarKind::unsigned_int, 16, 1},
    {"r8", ScalarKind::unsigned_int, 8, 1},
    {"rgba16_snorm", ScalarKind::signed_int, 16, 4},
    {"rg16_snorm", ScalarKind::signed_int, 16, 2},
    {"rg8_snorm", ScalarKind::signed_int, 8, 2},
    {"r16_snorm", ScalarKind::signed_int, 16, 1},
    {"r8_snorm", ScalarKind::signed_int, 8, 1},
    {"rgba32i", ScalarKind::signed_int, 32, 4},
    {"rgba16i", ScalarKind::signed_int, 16, 4},
    {"rgba8i", ScalarKind::signed_int, 8, 4},
    {"r32i", ScalarKind::signed_int, 32, 1},
    {"rg32i", ScalarKind::signed_int, 32, 2},
    {"rg16i", ScalarKind::signed_int, 16, 2},
    {"rg8i", ScalarKind::signed_int, 8, 2},
    {"r16i", ScalarKind::signed_int, 16, 1},
    {"r8i", ScalarKind::signed_int, 8, 1},
    {"rgba32ui", ScalarKind::unsigned_int, 32, 4},
    {"rgba16ui", ScalarKind::unsigned_int, 16, 4},
    {"rgba8ui", ScalarKind::unsigned_int, 8, 4},
    {"r32ui", ScalarKind::unsigned_int, 32, 1},
    {"rgb10_a2ui", ScalarKind::unsigned_int, 32, 1},
    {"rg32ui", ScalarKind::unsigned_int, 32, 2},
    {"rg16ui", ScalarKind::unsigned_int, 16, 2},
    {"rg8ui", ScalarKind::unsigned_int, 8, 2},
    {"r16ui", ScalarKind::unsigned_int, 16, 1},
    {"r8ui", ScalarKind::unsigned_int, 8, 1},
    {"r64ui", ScalarKind::unsigned_int, 64, 1},
    {"r64i", ScalarKind::signed_int, 64, 1},
};
constexpr DeclaredFormat unknown{"unknown", ScalarKind::none, 0, 0};

}  // namespace

const DeclaredFormat& declared_format(uint32_t spirv_format) noexcept {
    return spirv_format < std::size(table) ? table[spirv_format] : unknown;
}

}  // namespace kp
