// The subgroups that a shader asks for: their size, and whether all of them are full.
#pragma once

#include "adapter/shader_host.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace kp {

struct SubgroupRequest {
    uint32_t size = 0;  // 0: the device's choice
    bool full = false;

    [[nodiscard]] bool any() const noexcept { return size != 0 || full; }
    bool operator==(const SubgroupRequest&) const = default;
};

// Throws Error(unimplemented) if the device cannot do it, Error(invalid_argument) for a size that it does not
// have. Pure.
void check_subgroups(const SubgroupRequest& request, const ShaderHost& host);
// Throws Error(invalid_argument) if workgroups of this size cannot have such subgroups.
void check_subgroups(const SubgroupRequest& request, const std::array<uint32_t, 3>& local_size,
                     const ShaderHost& host);

}  // namespace kp
