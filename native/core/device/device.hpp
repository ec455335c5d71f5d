// A device with the parts that are built on it: queues, allocator, caches, retire list, and the list of the
// objects made from it.
#pragma once

#include "adapter/context.hpp"
#include "base/ranked.hpp"
#include "device/fork.hpp"
#include "device/member.hpp"
#include "device/memory_report.hpp"
#include "device/recording.hpp"
#include "instruments/instruments.hpp"
#include "memory/allocator.hpp"
#include "sync/crossing.hpp"
#include "sync/delivery.hpp"
#include "sync/gate.hpp"
#include "sync/queue.hpp"
#include "sync/retire.hpp"
#include "sync/timeline.hpp"
#include "sync/wait_choice.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kp {

class Debugger;
class InitialWork;
class PipelineStore;
class Profiler;
enum class ProfilerLooks : uint8_t;
struct ProfiledRun;
struct ProfiledRuns;
class SamplerStore;
class Staging;

struct DeviceOptions : ContextOptions {
    std::string pipeline_cache_dir;  // "": no cache on disk
    MemoryOptions memory;
    size_t recent_pipelines = 128;  // see PipelineStore
    double pipeline_seconds = 300;  // that a thread waits for the driver to make a pipeline
    WaitMode wait = WaitMode::automatic;
    Instruments instruments;  // with any, all queues are one
};

struct LogicalQueue {
    Queue* queue = nullptr;
    bool shared = false;  // multiplexed: the family has fewer queues than were requested
};

// A thread that waits for a device's work and may need to be woken for other events.
class Wakeable {
public:
    virtual void wake() noexcept = 0;

protected:
    Wakeable() = default;
    ~Wakeable() = default;
};

class Device final : public DeviceContext, private ForkAware {
public:
    [[nodiscard]] static std::shared_ptr<Device> create(const DeviceOptions& options);
    ~Device();
    [[nodiscard]] std::shared_ptr<Device> shared() {
        return std::static_pointer_cast<Device>(shared_from_this());
    }
    // The device of a context. Every DeviceContext is a Device.
    [[nodiscard]] static Device& of(DeviceContext& context) noexcept { return static_cast<Device&>(context); }

    [[nodiscard]] const std::vector<LogicalQueue>& queues() const noexcept { return logical_queues_; }
    // The queue, of these indices, with the fewest submissions that are not done; among equal ones they take
    // turns. The indices must exist.
    [[nodiscard]] size_t least_busy(const std::vector<size_t>& among);
    [[nodiscard]] MemoryAllocator& memory() noexcept { return *memory_; }
    [[nodiscard]] PipelineStore& pipelines() noexcept { return *pipelines_; }
    // Null if the device was opened without instruments.
    [[nodiscard]] Debugger* debugger() noexcept { return debugger_.get(); }
    [[nodiscard]] SamplerStore& samplers() noexcept { return *samplers_; }
    [[nodiscard]] Staging& staging() noexcept { return *staging_; }
    [[nodiscard]] InitialWork& initial_work() noexcept { return *initial_work_; }
    [[nodiscard]] Retire& retired() noexcept { return retire_; }
    [[nodiscard]] WaitChoice& waits() noexcept { return waits_; }
    [[nodiscard]] double pipeline_seconds() const noexcept { return pipeline_seconds_; }
    // For callers that make timelines of their own.
    [[nodiscard]] const TimelineParts& timeline_parts() const noexcept { return timeline_parts_; }
    [[nodiscard]] Gate& gate() noexcept { return gate_; }
    [[nodiscard]] Deliveries& deliveries() noexcept { return deliveries_; }
    // Threads that wait for fences of this device. They are woken after a failure that the driver does not
    // report.
    void add_waiter(Wakeable& waiter);
    void remove_waiter(Wakeable& waiter) noexcept;
    void wake_waiters() noexcept;
    // An unused timeline for a stream, with the last value that was used on it.
    [[nodiscard]] Point take_timeline();
    void give_timeline(Point last) noexcept;
    // Guards every object's list of users, and planning, which numbers objects. Held briefly; never while
    // waiting.
    [[nodiscard]] RankedMutex& graph_mutex() noexcept { return graph_mutex_; }
    // Held from the reading of other queues' ends to the submission that waits for them, so that of two
    // streams that share memory one sees the other. Taken before the graph mutex and the gate's lock.
    [[nodiscard]] RankedMutex& order_mutex() noexcept { return order_mutex_; }
    [[nodiscard]] uint64_t next_epoch() noexcept { return ++epoch_; }  // under the graph mutex
    // The built recordings, if there are several queues; and their crossing in memory that operations do not
    // declare: recordings with such operations write it, all others read it. Under the graph mutex.
    [[nodiscard]] std::vector<Recording*>& built_recordings() noexcept { return built_recordings_; }
    [[nodiscard]] Crossing& undeclared_crossing() noexcept { return undeclared_crossing_; }
    // What tensors over memory of the process share: see resource/host_pages.hpp. Under the imports mutex,
    // which is held while memory is imported.
    [[nodiscard]] std::vector<std::weak_ptr<void>>& shared_pages() noexcept { return shared_pages_; }
    [[nodiscard]] RankedMutex& imports_mutex() noexcept { return imports_mutex_; }

    // Whether recordings note the user's lines: while somebody profiles, and from note_lines() on.
    [[nodiscard]] bool notes_lines() const noexcept {
        return line_readers_.load(std::memory_order_relaxed) != 0;
    }
    void note_lines() noexcept { line_readers_.fetch_add(1, std::memory_order_relaxed); }
    // Null if nobody profiles. Under the graph mutex.
    [[nodiscard]] Profiler* profiler() const noexcept { return profiler_.get(); }
    // Begins to profile (see device/profiler.hpp), or joins in, and returns the number of the next run.
    // Recordings that were built before are built again. Throws if others look at something else.
    [[nodiscard]] size_t begin_profile(std::function<std::string()> line, ProfilerLooks looks);
    // The number of runs so far; first contents of objects are submitted before.
    [[nodiscard]] size_t profiled_runs();
    // Reads the times of the profiled work that is done. Does nothing if nobody profiles.
    void settle_profile() noexcept;
    // The runs from `first` to `last`, as settled.
    [[nodiscard]] ProfiledRuns profiled(size_t first, size_t last);
    // Of a profiler of values.
    [[nodiscard]] std::vector<ProfiledRun> take_values();
    // Never waits. The last reader ends the profile; the others leave it as it is.
    void end_profile() noexcept;

    // Waits for the device's work and destroys every object made from it. The VkDevice and host copies live
    // until the last owner of an object is gone, so that NumPy views stay readable.
    void close();
    // Cancels held submissions; `why` goes into the error of the threads that wait for them. Returns
    // sentences about the cancelled work.
    [[nodiscard]] std::vector<std::string> cancel_held(const char* why) noexcept;
    // True if submitted work may still run, or if a thread is compiling a pipeline.
    [[nodiscard]] bool busy();
    // True if some work waits to be submitted until a semaphore is signalled.
    [[nodiscard]] bool holds_work() const noexcept { return gate_.holds(); }
    void wait_idle();
    // The ends of all work submitted until now.
    [[nodiscard]] std::vector<Point> submitted() const;
    // The same, and the ends of all held work.
    [[nodiscard]] std::vector<Point> unfinished();
    // Adds the ends of submissions that may use any object, because they do not declare their uses. With
    // `held`, also of those held at the gate; the caller must not wait for these.
    void add_undeclared(std::vector<Point>& points, bool held);
    // True if all submitted work is known to have ended. Does not ask the driver, because a lost device
    // would refuse the query.
    [[nodiscard]] bool known_idle() const noexcept;
    // The tensors and images that are alive and hold the device's memory, in no order. Takes no lock of the
    // allocator. Do not call it while holding a lock that their destruction takes: the caller may become
    // the last owner of one of them.
    [[nodiscard]] std::vector<MemoryHolder> memory_holders();
    // Releases unused memory, pipelines and shaders; returns the number of bytes. Never waits for the
    // device.
    uint64_t trim() noexcept;
    // Guards the names of objects, which reports read on any thread.
    [[nodiscard]] RankedMutex& names_mutex() noexcept { return names_mutex_; }

    // Lists a new object. Throws if the device was closed meanwhile.
    void adopt(Member& member);
    void forget(Member& member) noexcept;

private:
    explicit Device(const DeviceOptions& options);
    [[nodiscard]] std::vector<std::shared_ptr<Member>> streams() const;  // to be dropped without locks
    void outdate_recordings();
    // Waits for all submitted work, even if the driver's wait fails.
    void see_through() noexcept;
    void was_lost() noexcept override { deliveries_.abandon(); }
    [[nodiscard]] std::string progress() const override;
    [[nodiscard]] std::string running_work() const override;
    // Runs before any other thread can use the objects of the work that InitialWork handed over and that
    // ends at `end`.
    void order_after_initial_work(Point end);
    void before_fork() noexcept override;
    void after_fork() noexcept override;
    void become_foreign(std::vector<std::shared_ptr<void>>& kept) override;

    std::unique_ptr<MemoryAllocator> memory_;
    Deliveries deliveries_;
    WaitChoice waits_;
    const double pipeline_seconds_;
    const TimelineParts timeline_parts_;
    std::vector<std::unique_ptr<Queue>> queues_;
    std::vector<LogicalQueue> logical_queues_;
    std::atomic<size_t> turns_{0};  // of least_busy()
    Gate gate_;
    RankedMutex timelines_mutex_{LockRank::free_timelines};
    // Kept until the end, because points on them may be anywhere.
    std::vector<std::unique_ptr<Timeline>> timelines_;
    std::vector<Point> free_timelines_;
    RankedMutex waiters_mutex_{LockRank::waiters};
    std::vector<Wakeable*> waiters_;
    Retire retire_;
    std::unique_ptr<Debugger> debugger_;
    std::unique_ptr<PipelineStore> pipelines_;
    std::unique_ptr<SamplerStore> samplers_;
    std::unique_ptr<Staging> staging_;
    std::unique_ptr<InitialWork> initial_work_;
    RankedMutex order_mutex_{LockRank::order};
    RankedMutex graph_mutex_{LockRank::graph};
    uint64_t epoch_ = 0;
    [[nodiscard]] std::shared_ptr<Profiler> held_profiler();
    std::shared_ptr<Profiler> profiler_;  // under the graph mutex
    uint32_t profile_readers_ = 0;
    std::atomic<uint32_t> line_readers_{0};
    std::vector<Recording*> built_recordings_;
    Crossing undeclared_crossing_;
    RankedMutex imports_mutex_{LockRank::imports};
    std::vector<std::weak_ptr<void>> shared_pages_;
    mutable RankedMutex members_mutex_{LockRank::members};
    RankedMutex names_mutex_{LockRank::names};
    Member* members_ = nullptr;
};

}  // namespace kp
