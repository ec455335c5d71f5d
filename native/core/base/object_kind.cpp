#include "base/object_kind.hpp"

namespace kp {

std::atomic<int64_t>& alive_count(ObjectKind kind) noexcept {
    static std::atomic<int64_t> counts[object_kinds];
    return counts[static_cast<size_t>(kind)];
}

const char* count_name(ObjectKind kind) noexcept {
    constexpr const char* names[] = {"context",   "buffer", "image",     "shader",
                                     "algorithm", "stream", "semaphore", "host_pages"};
    return names[static_cast<size_t>(kind)];
}

const char* to_string(ObjectKind kind) noexcept {
    switch (kind) {
    case ObjectKind::context: return "Manager";
    case ObjectKind::buffer: return "tensor";
    case ObjectKind::image: return "image";
    case ObjectKind::shader: return "shader";
    case ObjectKind::algorithm: return "algorithm";
    case ObjectKind::stream: return "sequence";
    case ObjectKind::semaphore: return "semaphore";
    case ObjectKind::host_pages: return "memory of the process";
    }
    return "object";
}

}  // namespace kp
