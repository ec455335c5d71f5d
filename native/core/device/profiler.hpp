// Notes each submission of a device while somebody profiles.
//
// Submissions. Every submission goes through Queue::submit, so a profiler takes the place of vkQueueSubmit
// there (Queue::send_through). It notes when the host submitted, on which thread and from which line of the
// user's code, and passes the submission on. Without a profiler nothing stands in the way: an evaluation
// executes the same instructions as if there were none.
//
// Times on the device. A stream that is built while a profiler is attached writes timestamps between its
// operations into queries of its own. Its barriers stay what they were. Streams that were built
// before are made stale when the profiler comes, and again when it goes. Other submissions (transfers, first
// contents of objects) run between two small command buffers of the profiler's that write one timestamp each.
//
// Values. A profiler of values measures nothing: streams that are built while it is attached copy what their
// operations use (device/value_copies.hpp), and each submission of one waits until the device is done, so
// that its values can be taken.
//
// A stream runs one submission at a time, so its timestamps are read before its next one, and at the end.
// The clocks. Timestamps become times of the host's clock by one offset for each device, measured at the end:
// VK_EXT_calibrated_timestamps where the device has it, else by submissions of one timestamp each.
#pragma once

#include "adapter/context.hpp"
#include "base/host_span.hpp"
#include "base/ranked.hpp"
#include "device/value_copies.hpp"
#include "sync/queue.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kp {

struct ProfiledOperation {
    std::string name;
    std::array<uint32_t, 3> groups{};  // of a dispatch; 0: something else, or the device read them
    uint64_t read = 0;                 // bytes of device memory that it declares to use, at most once each
    uint64_t written = 0;
    std::string line;  // of the user's code, that recorded it: "file.py:12"; empty if unknown
};

// Queries for `count` timestamps of `owner`; none on a queue that has no timestamps or cannot reset them.
class TimestampQueries {
public:
    TimestampQueries(const DeviceContext& device, const Queue& queue, uint32_t count,
                     const std::string& owner);
    TimestampQueries(const TimestampQueries&) = delete;
    TimestampQueries& operator=(const TimestampQueries&) = delete;
    ~TimestampQueries();

    // Whether commands of the queue cannot reset queries: it only moves memory.
    [[nodiscard]] static bool resets_on_host(const DeviceContext& device, const Queue& queue);

    [[nodiscard]] uint32_t count() const noexcept { return count_; }
    // Call the first at the beginning of the command buffer, and the second before each submission of it: one
    // of them resets the queries.
    void record_reset(VkCommandBuffer commands) const;
    void reset_on_host() const noexcept;
    void stamp(VkCommandBuffer commands, uint32_t index) const;
    // What the last run wrote, in ticks of the queue; empty if it has not run to its end.
    [[nodiscard]] std::vector<uint64_t> ticks() const;
    // The ticks, and for each whether it is written (not 0). Returns what vkGetQueryPoolResults returns.
    VkResult read(std::vector<std::array<uint64_t, 2>>& ticks) const;

private:
    const DeviceContext& device_;
    const uint32_t count_;
    const bool resets_on_host_;
    VkQueryPool pool_ = VK_NULL_HANDLE;
};

// The operations of one command buffer, with a timestamp before the first operation and one after each.
struct Profiled {
    std::string label;
    uint32_t queue_index = 0;  // of the stream's queue in the device's list
    std::vector<ProfiledOperation> operations;
    std::shared_ptr<const TimestampQueries> queries;    // null: it is not timed
    std::shared_ptr<const ValueCopies> values;          // null: nobody looks at them
    std::vector<std::shared_ptr<const void>> contents;  // with values: each operation's OperationContent

    // The timestamp after the first `index` of a recording's `count` operations; one for each of ours.
    void stamp(VkCommandBuffer commands, size_t index, size_t count) const {
        if (!queries) return;
        if (operations.size() == count) {
            queries->stamp(commands, static_cast<uint32_t>(index));
            return;
        }
        if (index == 0) queries->stamp(commands, 0);
        if (index == count) queries->stamp(commands, 1);  // count may be 0
    }
};

// One run of a command buffer.
struct ProfiledRun {
    std::shared_ptr<const Profiled> what;
    uint32_t family = 0;
    uint32_t queue = 0;
    uint32_t submission = 0;    // runs of one submission share it
    uint64_t submit_begin = 0;  // host_clock()
    uint64_t submit_end = 0;
    uint64_t thread = 0;
    std::string line;               // of the user's code, that submitted it; empty if unknown
    std::vector<uint64_t> times;    // of each timestamp: in ticks, and from take() on the host's clock
    uint64_t memory = 0;            // bytes of device memory in use at the submission
    std::vector<std::byte> values;  // see ValueCopies
};

struct ProfiledRuns {
    std::vector<ProfiledRun> runs;
    uint64_t uncertainty = 0;  // of the device's times on the host's clock, in nanoseconds
    bool calibrated = false;
};

enum class ProfilerLooks : uint8_t {
    operations,  // streams write timestamps between their operations
    sequences,   // ... only before the first and after the last
    values,
};

class Profiler {
public:
    // `line`: the user's line that this thread is in; called under locks, so it must not wait. `memory`: the
    // bytes of device memory in use.
    Profiler(const DeviceContext& device, std::vector<Queue*> queues, std::function<uint64_t()> memory,
             std::function<std::string()> line, ProfilerLooks looks);
    Profiler(const Profiler&) = delete;
    Profiler& operator=(const Profiler&) = delete;
    // Only after detach(), and when all work is done that was submitted before it.
    ~Profiler();
    // Submissions go to the driver again. Call it before another profiler is made for these queues.
    void detach() noexcept;

    [[nodiscard]] ProfilerLooks looks() const noexcept { return looks_; }
    // Lists what a stream is about to record into `commands`. Under the graph mutex.
    void list(VkCommandBuffer commands, std::shared_ptr<const Profiled> what);
    // The stream is about to free its command buffer.
    void forget(VkCommandBuffer commands) noexcept;

    // The number of runs so far, for take().
    [[nodiscard]] size_t count();
    // Reads the times of the runs that are done, and the clocks: with a few tiny submissions if the device
    // has no calibrated timestamps. Times that cannot be read are left out.
    void settle() noexcept;
    // Of values: the runs since the last call.
    [[nodiscard]] std::vector<ProfiledRun> take_values();
    // The runs from `first` to `last`, as settled.
    [[nodiscard]] ProfiledRuns take(size_t first, size_t last);
    // Around fork(): the list of the profiled queues stays whole.
    static void before_fork() noexcept;
    static void after_fork() noexcept;

    // How this thread's next submissions of no stream are called, and the bytes that they move.
    class Naming {
    public:
        explicit Naming(std::string_view name, uint64_t read = 0, uint64_t written = 0) noexcept
            : before_(current), name_(name), read_(read), written_(written) {
            current = this;
        }
        Naming(const Naming&) = delete;
        Naming& operator=(const Naming&) = delete;
        ~Naming() { current = before_; }

    private:
        friend class Profiler;
        inline static thread_local const Naming* current = nullptr;
        const Naming* before_;
        std::string_view name_;
        uint64_t read_;
        uint64_t written_;
    };

private:
    // Two command buffers of one timestamp each.
    struct Frame {
        std::shared_ptr<const TimestampQueries> queries;
        std::array<VkCommandBuffer, 2> commands{};
    };
    struct Listed {
        std::shared_ptr<const Profiled> what;
        size_t pending = 0;  // the number of its run whose times were not read yet; 0: none
    };
    // One moment on a queue's clock and on the host's.
    struct Moment {
        uint64_t ticks = 0;
        uint64_t host = 0;
        uint64_t uncertainty = 0;  // of `host`, in nanoseconds
        bool calibrated = false;   // by VK_EXT_calibrated_timestamps
        uint32_t bits = 64;        // of a timestamp
        double period = 1;         // nanoseconds a tick

        // The time on the host's clock at which a timestamp was `ticks`, of work that was submitted at
        // `submitted`.
        [[nodiscard]] uint64_t host_time(uint64_t ticks, uint64_t submitted) const noexcept;
    };
    [[nodiscard]] Moment now_of(Queue& queue) const;
    static VkResult submit(VkQueue queue, uint32_t count, const VkSubmitInfo* infos, VkFence fence);
    VkResult note(const Queue& queue, const VkSubmitInfo& info, VkFence fence);
    VkResult note_values(const Queue& queue, const VkSubmitInfo& info, VkFence fence);
    // All under mutex_.
    // Adds the runs of a submission. Returns the command buffers to submit in place of its own; empty: its
    // own.
    [[nodiscard]] std::vector<VkCommandBuffer> add(const Queue& queue, const VkSubmitInfo& info,
                                                   ProfiledRun run);
    // Drops the runs since `first`, which were not submitted.
    void drop(const Queue& queue, const VkSubmitInfo& info, size_t first) noexcept;
    void read(size_t run) noexcept;
    void read(Listed& listed) noexcept;
    // A frame that has run and was read, or a new one.
    [[nodiscard]] Frame take_frame(const Queue& queue);
    [[nodiscard]] Frame make_frame(const Queue& queue);

    const DeviceContext& device_;
    const std::vector<Queue*> queues_;
    const std::function<uint64_t()> memory_;
    const std::function<std::string()> line_;
    const ProfilerLooks looks_;
    RankedMutex mutex_{LockRank::profiler};
    std::unordered_map<VkCommandBuffer, Listed> listed_;
    std::vector<ProfiledRun> runs_;
    std::vector<size_t> left_;  // runs of streams that are gone, whose times were not read yet
    uint32_t submissions_ = 0;
    std::map<std::pair<uint32_t, uint32_t>, Moment> moments_;  // by queue family and index
    // Frames that may still run, with the numbers of their runs, the oldest first.
    std::unordered_map<const Queue*, std::deque<std::pair<size_t, Frame>>> framed_;
    std::unordered_map<uint32_t, VkCommandPool> pools_;  // by queue family
};

}  // namespace kp
