// Which ranges a recording copies so that each operation's values can be looked at: see
// device/value_copies.hpp.
#pragma once

#include "device/value_copies.hpp"
#include "record/stream_plan.hpp"

#include <memory>

namespace kp {

// Memory that an operation does not declare is left out. Under the graph mutex.
// Throws Error(out_of_memory) if there is no memory for the copies.
[[nodiscard]] std::shared_ptr<const ValueCopies> plan_values(const StreamPlan& plan, MemoryAllocator& memory);

}  // namespace kp
