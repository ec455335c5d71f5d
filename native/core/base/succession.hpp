// What stands for an object that its owner made anew, any number of times.
//
// A superseded object knows the latest one only, through a line that all of them share: those between are let go of. The latest
// holds the line weakly, so that it does not hold itself. Guarded by a lock of the caller's.
#pragma once

#include <memory>
#include <utility>

namespace kp {

template <class T>
class Succession {
public:
    // `next`, whose own succession is `nexts`, stands for this one's object and all before it. Gives back what is not to be
    // destroyed under the caller's lock.
    [[nodiscard]] std::shared_ptr<T> pass_on(std::shared_ptr<T> next, Succession& nexts) {
        std::shared_ptr<Line> line = line_.lock();
        if (!line) line = std::make_shared<Line>();
        after_ = line;
        nexts.line_ = line;
        return std::exchange(line->latest, std::move(next));
    }
    // Null for one that is the latest.
    [[nodiscard]] std::shared_ptr<T> latest() const { return after_ ? after_->latest : nullptr; }

private:
    struct Line {
        std::shared_ptr<T> latest;
    };
    std::shared_ptr<Line> after_;  // of one that was superseded
    std::weak_ptr<Line> line_;     // of the latest
};

}  // namespace kp
