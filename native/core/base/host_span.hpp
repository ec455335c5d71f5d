// What threads of the host spend time on, noted while somebody profiles: building recordings, waiting,
// moving bytes, compiling.
//
// A HostSpan stands where such a thing happens, always on a slow path. Without a reader it costs one load.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kp {

// Nanoseconds of the clock that Python calls time.monotonic_ns().
[[nodiscard]] uint64_t host_clock() noexcept;
// The number of this thread in Python: threading.get_ident().
[[nodiscard]] uint64_t this_thread() noexcept;

struct HostSpanNote {
    std::string kind;
    std::string text;
    uint64_t begin = 0;  // host_clock()
    uint64_t end = 0;
    uint64_t thread = 0;
    uint64_t bytes = 0;  // that it moved
};

// The spans of the process. Several readers may overlap; the notes are dropped with the last of them.
class HostSpans {
public:
    // Returns the number of notes before those of this reader.
    [[nodiscard]] static size_t start();
    // Returns the notes since `first`, and ends this reader.
    [[nodiscard]] static std::vector<HostSpanNote> stop(size_t first);
    [[nodiscard]] static bool wanted() noexcept { return readers.load(std::memory_order_relaxed) != 0; }
    static void note(HostSpanNote note) noexcept;
    // Around fork(): the list stays whole.
    static void before_fork() noexcept;
    static void after_fork() noexcept;

private:
    inline static std::atomic<uint32_t> readers{0};
};

// From here to the end of the scope.
class HostSpan {
public:
    explicit HostSpan(std::string_view kind, uint64_t bytes = 0) noexcept : kind_(kind), bytes_(bytes) {
        if (HostSpans::wanted()) [[unlikely]]
            begin_ = host_clock();
    }
    HostSpan(const HostSpan&) = delete;
    HostSpan& operator=(const HostSpan&) = delete;
    ~HostSpan() {
        if (begin_ != 0) [[unlikely]]
            end();
    }

private:
    void end() const noexcept;

    std::string_view kind_;
    uint64_t bytes_;
    uint64_t begin_ = 0;
};

}  // namespace kp
