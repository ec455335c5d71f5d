// A recording's timestamps: one before its first operation and one after each, in queries that the device
// resets at the beginning of each run, or the host before each submission if the queue only moves memory.
#pragma once

#include "device/profiler.hpp"
#include "resource/object.hpp"
#include "sync/queue.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kp {

class Timestamps {
public:
    // `limit`: the maximum number of operations that can be timed; -1: as many as are recorded. Throws
    // Error(unimplemented) if the queue has no timestamps.
    Timestamps(const Object& stream, const Queue& queue, int64_t limit);

    // Throws Error(out_of_range) if `count` operations are as many as can be timed.
    void require_room(size_t count) const;
    // For a new recording, which does not run yet.
    void prepare(std::vector<std::string> names);
    // Of the prepared recording: the first stamp comes before its operations, and stamp `i` after operation
    // `i` - 1.
    [[nodiscard]] const TimestampQueries& queries() const noexcept { return *queries_; }
    void note_run() noexcept { timed_ = true; }

    // Raw ticks of the last run, which has ended.
    [[nodiscard]] std::vector<uint64_t> ticks() const;
    // The operations that the ticks belong to. A new recording may have begun since.
    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
    [[nodiscard]] bool timed() const noexcept { return timed_; }
    // Of a run that was cut off: the number of operations that have ended; all of them if that is unknown.
    [[nodiscard]] size_t ended() const;

private:
    const Object& stream_;
    Device& device_;
    const Queue& queue_;
    const int64_t limit_;
    std::optional<TimestampQueries> queries_;
    std::vector<std::string> names_;
    bool timed_ = false;  // the queries belong to a submission
};

}  // namespace kp
