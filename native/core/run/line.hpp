// The recording in which prepared calls run: dispatches, of which algorithms, groups and push constants
// change between two submissions. A call that repeats the last one submits what is built; any other call
// builds the recording again, which takes a fraction of the time of making a stream.
#pragma once

#include "record/operation.hpp"
#include "run/stream.hpp"

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kp {

using Groups = std::array<uint32_t, 3>;

// A dispatch over certain memory.
struct Bound {
    std::shared_ptr<Algorithm> algorithm;
    DispatchMemory memory;
};

class Line {
public:
    // The stream, ready to be submitted with this work: one or more dispatches. If it throws, the line is
    // empty.
    [[nodiscard]] const std::shared_ptr<Stream>&
    prepare(std::span<const Bound> work, std::span<const Groups> groups, std::span<const std::string> push);
    // True while a call of some thread has it, or a submission is running, as far as the driver knows now.
    // Work that failed has ended: its fences report the failure.
    [[nodiscard]] bool is_busy() noexcept;
    // Lets go of the stream and the algorithms, and so of their memory, if the line holds this one. Work in
    // flight finishes first.
    void forget(const Algorithm& algorithm) noexcept;

    bool taken = false;  // by a call, during which other threads may run

private:
    void reset() noexcept;

    std::shared_ptr<Stream> stream_;
    struct Part {
        std::shared_ptr<BoundDispatch> dispatch;
        std::shared_ptr<Algorithm> algorithm;
        Groups groups{};
        std::string push;
    };
    std::vector<Part> parts_;
};

}  // namespace kp
