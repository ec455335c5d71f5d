// A number of bytes for messages.
#pragma once

#include <cstdint>
#include <string>

namespace kp {

[[nodiscard]] inline std::string mebibytes(uint64_t bytes) {
    const uint64_t mebibyte = uint64_t{1} << 20;
    if (bytes < mebibyte / 10) return std::to_string(bytes) + " bytes";
    const uint64_t tenths = bytes / mebibyte * 10 + bytes % mebibyte * 10 / mebibyte;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " MiB";
}

}  // namespace kp
