// The kinds of native objects, and the number of live objects of each kind in the process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace kp {

enum class ObjectKind : uint8_t { context, buffer, image, shader, algorithm, stream, semaphore, host_pages };
constexpr size_t object_kinds = 8;

// Live objects of each kind in the process.
[[nodiscard]] std::atomic<int64_t>& alive_count(ObjectKind kind) noexcept;
// The name of a kind in `kp.alive`.
[[nodiscard]] const char* count_name(ObjectKind kind) noexcept;
[[nodiscard]] const char* to_string(ObjectKind kind) noexcept;

}  // namespace kp
