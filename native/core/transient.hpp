// A submission that nobody waits for: its command pool goes to the retire list.
#pragma once

#include "queue.hpp"

#include <functional>

namespace kp {

// Records `commands` and submits them on the Manager's first queue, after all that was submitted there. Returns its end.
[[nodiscard]] Point submit_transient(Device& device, const std::function<void(VkCommandBuffer)>& commands);

}  // namespace kp
