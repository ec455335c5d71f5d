// Kinds of use of a resource -> Vulkan pipeline stages and access masks. Pure: masks in, masks out.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>

namespace kp {

// What a recorded operation does with a resource.
enum class UseKind : uint8_t {
    shader_read,        // storage buffer or image, or a texel buffer, that the shader only reads
    shader_write,       // ... only writes
    shader_read_write,  // ... reads and writes, or nobody knows
    uniform_read,       // uniform buffer
    sampled_read,       // sampled image
    transfer_read,      // source of a copy
    transfer_write,     // destination of a copy or a fill
    host_read,          // the host reads it once the stream is done
    indirect_read,      // dispatch arguments
    any_read,           // a custom operation that declared to read: any stage
    everything,         // a custom operation that did not say: any stage, any access
};

// The stages in which an access happens and the kinds of access.
struct Scope {
    VkPipelineStageFlags stages = 0;
    VkAccessFlags access = 0;

    friend bool operator==(const Scope&, const Scope&) = default;
};

[[nodiscard]] Scope scope_of(UseKind kind) noexcept;
[[nodiscard]] bool reads(UseKind kind) noexcept;
[[nodiscard]] bool writes(UseKind kind) noexcept;

// The part of an access mask that writes; only writes need to be made available.
[[nodiscard]] VkAccessFlags write_access(VkAccessFlags access) noexcept;
[[nodiscard]] VkAccessFlags read_access(VkAccessFlags access) noexcept;

// Which way a sync operation moves data.
enum class SyncDirection : uint8_t { none, to_device, to_host };

}  // namespace kp
