// The recording in which the calls of a kernel run: one dispatch; its algorithm, groups and push constants
// change between two submissions. A call that repeats the last one submits what is built; any other call
// builds the recording again, which takes a fraction of the time of making a stream.
#pragma once

#include "record/operation.hpp"
#include "run/stream.hpp"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kp {

class CallLine {
public:
    // The stream, ready to be submitted with this work. If it throws, the line keeps its work.
    // `memory`: of one algorithm always the same.
    [[nodiscard]] const std::shared_ptr<Stream>& prepare(const std::shared_ptr<Algorithm>& algorithm,
                                                         const std::array<uint32_t, 3>& groups,
                                                         std::string_view push_constants,
                                                         const DispatchMemory& memory);
    // True if a submission is still running, as far as the driver knows now. Work that failed has ended: its
    // fences report the failure.
    [[nodiscard]] bool is_busy() noexcept;
    // Lets go of the stream and the algorithm, and so of its memory, if the line holds that one. Work in
    // flight finishes first.
    void forget(const Algorithm& algorithm) noexcept;

private:
    std::shared_ptr<Stream> stream_;
    std::shared_ptr<BoundDispatch> dispatch_;
    std::shared_ptr<Algorithm> algorithm_;
    std::array<uint32_t, 3> groups_{};
    std::string push_constants_;
};

}  // namespace kp
