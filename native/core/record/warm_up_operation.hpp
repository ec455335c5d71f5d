// A dispatch of no groups: nothing runs, and drivers that compile a pipeline's code when it is first
// dispatched (Mesa's lavapipe) do so.
#pragma once

#include "record/operation.hpp"

namespace kp {

// The algorithm's memory is bound but not used: nothing is uploaded, and no barrier is needed. Not for
// images, which need a layout.
[[nodiscard]] OperationPtr make_warm_up(std::shared_ptr<Algorithm> algorithm);

}  // namespace kp
