// Finds the current replacement of an object that its owner may replace any number of times.
//
// All replaced objects share one line, which only keeps the latest one; those between are released. The
// latest holds the line weakly, so that it does not keep itself alive. Guarded by the caller's lock.
#pragma once

#include <memory>
#include <utility>

namespace kp {

template <class T>
class Succession {
public:
    // `next`, with the succession `nexts`, replaces this object and all before it. Returns an object that
    // must not be destroyed under the caller's lock.
    [[nodiscard]] std::shared_ptr<T> pass_on(std::shared_ptr<T> next, Succession& nexts) {
        std::shared_ptr<Line> line = line_.lock();
        if (!line) line = std::make_shared<Line>();
        after_ = line;
        nexts.line_ = line;
        return std::exchange(line->latest, std::move(next));
    }
    // Null if this is the latest.
    [[nodiscard]] std::shared_ptr<T> latest() const { return after_ ? after_->latest : nullptr; }

private:
    struct Line {
        std::shared_ptr<T> latest;
    };
    std::shared_ptr<Line> after_;  // if it was replaced
    std::weak_ptr<Line> line_;     // if it is the latest
};

}  // namespace kp
