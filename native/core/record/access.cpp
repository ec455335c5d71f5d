#include "record/access.hpp"

#include <array>
#include <cstddef>

namespace kp {
namespace {

constexpr VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT |
                                  VK_ACCESS_DEPTH_STENCIL_ATTACHMENT_WRITE_BIT |
                                  VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_WRITE_BIT |
                                  VK_ACCESS_MEMORY_WRITE_BIT;

// Indexed by UseKind, in the order of its declaration.
constexpr std::array<Scope, 11> kScopes{{
    {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT},
    {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT},
    {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT},
    {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_UNIFORM_READ_BIT},
    {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT},
    {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT},
    {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT},
    {VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT},
    {VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, VK_ACCESS_INDIRECT_COMMAND_READ_BIT},
    {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_ACCESS_MEMORY_READ_BIT},
    {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT},
}};
static_assert(kScopes.size() == static_cast<std::size_t>(UseKind::everything) + 1);

}  // namespace

Scope scope_of(UseKind kind) noexcept { return kScopes[static_cast<std::size_t>(kind)]; }

bool reads(UseKind kind) noexcept { return read_access(scope_of(kind).access) != 0; }

bool writes(UseKind kind) noexcept { return write_access(scope_of(kind).access) != 0; }

VkAccessFlags write_access(VkAccessFlags access) noexcept { return access & kWrites; }

VkAccessFlags read_access(VkAccessFlags access) noexcept { return access & ~kWrites; }

}  // namespace kp
