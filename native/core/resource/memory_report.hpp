// Who holds a device's memory: its tensors and images by name.
#pragma once

#include "resource/object.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kp {

class Device;

struct MemoryHolder {
    std::string name;  // "" where it has none
    ObjectKind kind = ObjectKind::buffer;
    uint64_t bytes = 0;  // of its contents, on the device and in a host copy
};

// Every tensor and image that is alive, in no order. Takes no lock of the allocator, and must not be called under one.
[[nodiscard]] std::vector<MemoryHolder> memory_holders(Device& device);

// "tensor 'weights' 512.0 MiB, tensor 8.0 MiB": the `count` that hold most; "" where there are none.
[[nodiscard]] std::string describe_largest(Device& device, size_t count);

// A number of bytes for messages.
[[nodiscard]] std::string mebibytes(uint64_t bytes);

}  // namespace kp
