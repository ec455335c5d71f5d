// The holders of a device's memory: its tensors and images by name.
#pragma once

#include "base/object_kind.hpp"
#include "device/member.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kp {

struct MemoryHolder {
    std::string name;  // "" if it has none
    ObjectKind kind = ObjectKind::buffer;
    uint64_t bytes = 0;  // of its contents, on the device and in a host copy
};

// The memory that each of `members` holds, in their order.
[[nodiscard]] std::vector<MemoryHolder> holdings(const std::vector<std::shared_ptr<Member>>& members);

// "tensor 'weights' 512.0 MiB, tensor 8.0 MiB": the `count` largest holders; "" if there are none.
[[nodiscard]] std::string describe_largest(std::vector<MemoryHolder> holders, size_t count);

}  // namespace kp
