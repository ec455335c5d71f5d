// Operations that run many times in one submission.
//
// The model
//
// A repetition is recorded once, or a few times, into a secondary command buffer, which the stream's command
// buffer executes as often as necessary. With n repetitions, the secondary holds about the root of n of
// them, and so the time of recording and the memory of the commands grow with the root of n.
//
// Two repetitions conflict as soon as one writes anything, because the next one writes it again. So one
// barrier between two repetitions is necessary, and it is enough: it has all uses of a repetition in its
// source and in its destination. Inside of a repetition, the planner (record/hazard.hpp) places the barriers.
// To the stream, the whole is one operation with the uses of all.
//
// Every second repetition may run with memory exchanged (`swaps`): with copies of the operations for the
// other memory (see record/substitution.hpp). An exchange maps ranges to ranges one to one, so the barriers
// of both are the same. If one of the operations changes, the copies are made again before the recording is
// built (see remade()).
#pragma once

#include "record/operation.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace kp {

using Swaps = std::vector<std::pair<ResourceRange, ResourceRange>>;

// Throws Error(invalid_argument) if there is no operation, and if the ranges of `swaps` do not fit each
// other, overlap or are used in part; Error(unimplemented) for operations that cannot be repeated or
// exchanged.
[[nodiscard]] OperationPtr make_repeat(std::vector<OperationPtr> operations, uint64_t times, Swaps swaps);

// For each pair, which of the two the operations write last, before any exchange: 0 or 1 (also if one
// operation writes both); none if they write neither.
[[nodiscard]] std::vector<std::optional<int>> written_last(const std::vector<OperationPtr>& operations,
                                                           const Swaps& swaps);

}  // namespace kp
