// The table of scopes, checked against the rules of Vulkan that make a mask valid.
#include "record/access.hpp"

#include <doctest/doctest.h>

#include <initializer_list>

namespace {

constexpr std::initializer_list<kp::UseKind> kKinds{
    kp::UseKind::shader_read,    kp::UseKind::shader_write, kp::UseKind::shader_read_write,
    kp::UseKind::uniform_read,   kp::UseKind::sampled_read, kp::UseKind::transfer_read,
    kp::UseKind::transfer_write, kp::UseKind::host_read,    kp::UseKind::indirect_read,
    kp::UseKind::any_read,       kp::UseKind::everything,
};

TEST_CASE("access: which kinds read and which write") {
    using kp::UseKind;
    for (const UseKind kind : kKinds) {
        CAPTURE(static_cast<int>(kind));
        const bool only_writes = kind == UseKind::shader_write || kind == UseKind::transfer_write;
        const bool also_reads = kind == UseKind::shader_read_write || kind == UseKind::everything;
        CHECK(kp::reads(kind) == !only_writes);
        CHECK(kp::writes(kind) == (only_writes || also_reads));
    }
}

TEST_CASE("access: each kind has the stages and accesses that the specification's table allows together") {
    using kp::Scope;
    using kp::UseKind;
    const auto is = [](UseKind kind, VkPipelineStageFlags stages, VkAccessFlags access) {
        return kp::scope_of(kind) == Scope{stages, access};
    };
    constexpr VkPipelineStageFlags shader = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    constexpr VkPipelineStageFlags transfer = VK_PIPELINE_STAGE_TRANSFER_BIT;
    CHECK(is(UseKind::shader_read, shader, VK_ACCESS_SHADER_READ_BIT));
    CHECK(is(UseKind::shader_write, shader, VK_ACCESS_SHADER_WRITE_BIT));
    CHECK(is(UseKind::shader_read_write, shader, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT));
    CHECK(is(UseKind::uniform_read, shader, VK_ACCESS_UNIFORM_READ_BIT));
    CHECK(is(UseKind::sampled_read, shader, VK_ACCESS_SHADER_READ_BIT));
    CHECK(is(UseKind::transfer_read, transfer, VK_ACCESS_TRANSFER_READ_BIT));
    CHECK(is(UseKind::transfer_write, transfer, VK_ACCESS_TRANSFER_WRITE_BIT));
    CHECK(is(UseKind::host_read, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT));
    CHECK(
        is(UseKind::indirect_read, VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, VK_ACCESS_INDIRECT_COMMAND_READ_BIT));
    CHECK(is(UseKind::any_read, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_ACCESS_MEMORY_READ_BIT));
    CHECK(is(UseKind::everything, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
             VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT));
}

TEST_CASE("access: a mask is the sum of its reading and its writing part") {
    for (const kp::UseKind kind : kKinds) {
        const VkAccessFlags access = kp::scope_of(kind).access;
        CHECK((kp::read_access(access) | kp::write_access(access)) == access);
        CHECK((kp::read_access(access) & kp::write_access(access)) == 0);
    }
    constexpr VkAccessFlags host = VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT;
    CHECK(kp::write_access(host) == VK_ACCESS_HOST_WRITE_BIT);
    CHECK(kp::read_access(host) == VK_ACCESS_HOST_READ_BIT);
    CHECK(kp::write_access(VK_ACCESS_INDEX_READ_BIT | VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT) ==
          VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT);
}

}  // namespace
