// The only place that includes Vulkan's functions: volk's pointers, never the loader's link-time prototypes.
#pragma once

#include <volk.h>

#include <cstdint>

namespace kp {

// A handle as an integer, the form that Python and the PyPI package `vulkan` exchange. Non-dispatchable
// handles are pointers on 64-bit machines and integers on 32-bit ones; both casts keep the bits.
template <typename Handle>
[[nodiscard]] uint64_t handle_value(Handle handle) noexcept {
    return (uint64_t)handle;  // NOLINT: the only cast that serves pointers and integers alike
}
template <typename Handle>
[[nodiscard]] Handle handle_from(uint64_t value) noexcept {
    return (Handle)value;  // NOLINT: as above
}

}  // namespace kp
