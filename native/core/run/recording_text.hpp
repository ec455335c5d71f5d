// A recording as text for people: its operations with the memory that they use, and the
// barriers between them.
#pragma once

#include "record/operation.hpp"
#include "record/stream_plan.hpp"

#include <functional>
#include <span>
#include <string>

namespace kp {

struct BuiltText {
    const std::string& label;
    uint32_t queue = 0;
    std::span<const OperationPtr> operations;
    const StreamPlan& plan;
    const BarrierPlan& barriers;
    std::function<const std::string*(size_t)> line;  // of the user's code; null: unknown
};

// Call it under the graph mutex.
[[nodiscard]] std::string text_of(const BuiltText& built);
// Keeps the text in the folder, in a file with a name that follows from the label and the text. Returns why
// that is not possible, or "".
[[nodiscard]] std::string keep_text(const std::string& folder, const std::string& label,
                                    const std::string& text);

}  // namespace kp
