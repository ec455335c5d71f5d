// Maps kinds of use of a resource to Vulkan pipeline stages and access masks. Uses no device.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstdint>

namespace kp {

// How a recorded operation uses a resource.
enum class UseKind : uint8_t {
    shader_read,        // storage buffer or image, or a texel buffer, that the shader only reads
    shader_write,       // ... only writes
    shader_read_write,  // ... reads and writes, or its access is unknown
    uniform_read,       // uniform buffer
    sampled_read,       // sampled image
    transfer_read,      // source of a copy
    transfer_write,     // destination of a copy or a fill
    host_read,          // the host reads it once the stream is done
    indirect_read,      // dispatch arguments
    any_read,           // a custom operation with declared reads: any stage
    everything,         // a custom operation without declarations: any stage, any access
};

// The stages and the kinds of an access.
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

// Bytes of device memory.
struct Moved {
    uint64_t read = 0;
    uint64_t written = 0;
};

// The direction in which a sync operation moves data.
enum class SyncDirection : uint8_t { none, to_device, to_host };

}  // namespace kp
