// A recorded list of operations and its prebuilt submission: the native side of a Sequence.
//
// The list is turned into a command buffer at the first submission after a change. From then on eval() is: is the recording
// still ready, patch the timeline value, vkQueueSubmit, wait. No allocation, no loop over resources.
//
// One thread at a time drives a stream: a second one in record, clear, rerecord or a submission is refused. Whoever only looks at
// what drivers change (`Looking`) waits for the end of such a call, which is short unless operations with code of their own are
// being recorded; then it is refused, too, but for that code itself. Any thread may wait for a submission. Other threads may
// destroy objects that it uses at any moment: they take the graph mutex, mark the stream stale, and wait out a submission that is
// just being made, so that they know its last value. Whoever destroys the stream itself waits for its turn, or leaves the release to
// the thread that drives it where that one may be in code that is not ours.
#pragma once

#include "base/error.hpp"
#include "record/hazard.hpp"
#include "record/operation.hpp"
#include "record/stream_plan.hpp"
#include "resource/object.hpp"
#include "sync/gate.hpp"
#include "sync/queue.hpp"

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace kp {

class Stream final : public Object, public Recording {
public:
    // Held by the thread that changes or submits a stream. Throws where another one does.
    class Driving {
    public:
        explicit Driving(Stream& stream) : stream_(stream) {
            if (!stream_.take_turn(Turn::driving)) [[unlikely]]
                stream_.wait_for_turn();
        }
        Driving(const Driving&) = delete;
        Driving& operator=(const Driving&) = delete;
        ~Driving() { stream_.end_turn(); }

    private:
        Stream& stream_;
    };

    // `timestamps`: most operations that can be timed; 0: none; -1: as many as are recorded. `disjoint`: objects of which it touches
    // other parts than the work of other queues does, so that the two need not be ordered.
    Stream(std::shared_ptr<Device> device, uint32_t queue_index, int64_t timestamps,
           std::vector<std::shared_ptr<Object>> disjoint = {});
    ~Stream() override;

    // Appends; the first one after a submission starts a fresh list.
    void record(OperationPtr operation);
    void clear();
    // Builds anew at the next submission.
    void rerecord();

    // Returns false when there is nothing to submit.
    bool submit();
    // Submits the recordings of several streams of one queue as one, in order, after `order.waits`; its end raises
    // `order.signals`. Of no stream: only that. Streams with nothing recorded are left out. Held (see sync/gate.hpp) where a wait is
    // not promised. Throws; then nothing was submitted.
    static void submit_together(Device& device, Queue& queue, const std::vector<Stream*>& streams,
                                const SubmitOrder& order);
    // Before streams of several queues are submitted, a queue's after another's: throws what the submission of any of them would be
    // refused with, so that then none is submitted. Builds them.
    static void require_together(Device& device, const std::vector<Stream*>& streams,
                                 const SubmitOrder& order);
    // Whether the submission has finished; collects it if so. One driver call at most.
    [[nodiscard]] bool poll();
    // Waits up to `nanoseconds`; true when the submission has finished (and was collected) or there was none.
    [[nodiscard]] bool wait(uint64_t nanoseconds);

    // If the last submission is held, cancels it and what waits for it. Returns sentences about what did not run.
    [[nodiscard]] std::vector<std::string> cancel_held();

    [[nodiscard]] bool is_recording() const noexcept { return recording_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool is_running() const noexcept override {
        return running_.load(std::memory_order_acquire);
    }
    // So, but not if somebody has learned, in whatever way, that the submission is done. Asks the driver only about work that was
    // held, whose end is on a timeline of its own that nobody else looks at. What failed works until a wait says so.
    [[nodiscard]] bool is_working() noexcept;
    [[nodiscard]] bool is_complete();
    // Tells the device, if it was lost, what of this stream it was lost in.
    void explain_loss() const;
    [[nodiscard]] uint32_t queue_index() const noexcept { return queue_index_; }
    [[nodiscard]] Queue& queue() const noexcept { return *queue_; }
    // The end of the last submission: a point on the queue's timeline, or on the stream's own where it was held. Null before
    // the first one.
    [[nodiscard]] Point last_point() const noexcept override;
    [[nodiscard]] VkCommandBuffer command_buffer() const;
    [[nodiscard]] std::vector<std::string> operation_names() const;
    // Throws where it cannot be worked with: `action` says what for.
    [[nodiscard]] const std::vector<OperationPtr>& operations(const char* action) {
        require_idle(action);
        return operations_;
    }
    void set_name(const std::string& name) override;
    // Raw ticks: one before the first operation, one after each.
    [[nodiscard]] std::vector<uint64_t> timestamps();
    // The operations that the timestamps are of: a new recording may have begun since.
    [[nodiscard]] std::vector<std::string> timed_names() const;
    // What orders the operations, as built; empty before the first submission.
    [[nodiscard]] BarrierPlan barriers() const;
    // Whether this thread is in an operation's code that records for a stream which overwrites all of the resource before that.
    [[nodiscard]] static bool covered_by_caller(Resource& resource);
    // Whether this thread is in an operation's code that records.
    [[nodiscard]] static bool is_recording_here() noexcept;

private:
    // Recording
    Point make_stale() noexcept override;
    Point hold_back() noexcept override;
    void let_go() noexcept override { held_back_.fetch_sub(1, std::memory_order_release); }
    [[nodiscard]] bool writes(uint32_t slot) const noexcept override { return plan_.objects()[slot].written; }
    [[nodiscard]] bool touches(uint32_t slot, const Held& held) const noexcept override {
        return plan_.touches(slot, held.begin, held.end, held.writers_only);
    }
    [[nodiscard]] bool covers(uint32_t slot) const noexcept override { return plan_.objects()[slot].covered; }
    // Tells the objects that it uses what its last run did to them, before it forgets them or the run. Under the graph mutex.
    void note_effects() noexcept;
    void add_last_run(uint32_t slot, uint64_t begin, uint64_t end,
                      FreshnessRecord& record) const noexcept override;
    void settle_covers() noexcept override;
    void come_after(Point point) override;

    // Whether some of these streams, which are about to be held, cover something: those are built anew, and no longer do.
    [[nodiscard]] static bool uncover(Device& device, const std::vector<Stream*>& streams);
    void check_mappings();

    // Streams are all the recordings that there are.
    [[nodiscard]] static Stream& of(Recording& recording) noexcept { return static_cast<Stream&>(recording); }

    // What a thread is doing with it: changing or submitting it, or looking (or destroying it), which takes a moment.
    enum class Turn : uint8_t { none, driving, looking };
    [[nodiscard]] bool take_turn(Turn turn) const noexcept {
        Turn none = Turn::none;
        return turn_.compare_exchange_strong(none, turn, std::memory_order_acquire,
                                             std::memory_order_relaxed);
    }
    void end_turn() const noexcept { turn_.store(Turn::none, std::memory_order_release); }
    // Waits out those who look; refuses where another thread drives.
    void wait_for_turn() const;
    class Looking;
    [[nodiscard]] std::vector<std::string> names_of_operations() const;
    void release(std::vector<Point> points) override;
    // By the thread that drives the stream, or where nobody can any more.
    void release_driven(std::vector<Point> points);
    void require_idle(const char* action);
    void build();
    // Streams that are built for one submission, all driven by this thread. Releases what was destroyed while it called out.
    class Building {
    public:
        explicit Building(std::span<Stream* const> streams);
        Building(const Building&) = delete;
        Building& operator=(const Building&) = delete;
        ~Building();

    private:
        std::span<Stream* const> streams_;
    };
    class CallingOut;
    [[nodiscard]] bool is_calling_out() const noexcept {
        return caller_.load(std::memory_order_relaxed) != std::thread::id();
    }
    // Plans and registers, or returns what must be brought to the device before.
    [[nodiscard]] std::vector<std::shared_ptr<Resource>> plan(StreamPlan::Kept& outdated);
    [[nodiscard]] std::vector<std::shared_ptr<Resource>> absent();
    void register_users();
    // After a change of either list; under the graph mutex.
    void note_rivals() noexcept {
        has_rivals_.store(!rivals_.empty() || !inherited_.empty(), std::memory_order_seq_cst);
    }
    void order_with(Stream& other);
    // Whether one of the two says that their uses of `object` never meet.
    [[nodiscard]] bool apart_from(const Stream& other, const Object& object) const noexcept;
    void drop_operations();
    void unregister_users() noexcept;
    void record_commands();
    void write_barrier(const Barrier& barrier) const;
    void prepare_timestamps();
    [[noreturn]] void refuse_second_thread() const;
    class Submitting;
    bool submit_driven();
    static void submit_driven(Device& device, Queue& queue, const std::vector<Stream*>& streams,
                              const SubmitOrder& order);
    // Makes the recording ready for submission; false where there is none.
    [[nodiscard]] bool make_ready();
    void require_not_running();
    // Another thread destroyed or changed something between that and the submission: throws what cannot be mended by building
    // again.
    void check_interference();
    [[nodiscard]] bool fit_to_submit() const noexcept;
    // What it brings to the host and needs from it, as built.
    void prepare_host_side();
    void flush() const;
    // Waits for downloads in flight that are still to land in atoms which this recording uploads or fills.
    void await_edges() const;
    // Throws where the recording uploads or fills one of these atoms, in which others will land that cannot be waited for.
    void require_clear_of(std::span<const VkMappedMemoryRange> edges);
    // Those of `streams` that have something to submit, built.
    [[nodiscard]] static std::vector<Stream*> make_ready(const std::vector<Stream*>& streams);
    static void require_possible(const SubmitOrder& order);
    static void require_once(const std::vector<Stream*>& streams);
    [[nodiscard]] std::vector<Point> ends_on_other_queues();
    // What is held and must come before this, but for what `later` would release.
    void merge_held(std::vector<Point>& waits, const std::vector<Point>& later);
    void note_submitted(uint64_t last) noexcept;
    [[nodiscard]] Point next_own();
    [[nodiscard]] static std::string label_of(const std::vector<Stream*>& streams);
    // Collects the submission that `last_` was this for.
    void finish(uint64_t last) noexcept;
    [[nodiscard]] Point point_of(uint64_t last) const noexcept;
    void forget_cancelled() noexcept;
    [[nodiscard]] std::string what_ran() const;
    [[nodiscard]] std::string what_runs(const std::vector<std::string>& names) const;
    // Throws why the driver did not take `streams`, naming them where the device was lost with nothing else in flight.
    [[noreturn]] static void rethrow_unsubmitted(const std::vector<Stream*>& streams, const Error& error);
    [[noreturn]] void rethrow(const Error& error) const;
    void make_command_buffer();
    void tell_name();

    Queue* queue_ = nullptr;
    bool computes_ = true;  // false on a queue that only moves memory
    uint32_t queue_index_ = 0;
    int64_t timestamp_limit_ = 0;

    std::vector<OperationPtr> operations_;
    std::atomic<bool> recording_{false};  // record() appends; otherwise it starts over
    bool built_ = false;
    bool registered_ = false;  // the plan's objects list this stream among their users
    bool may_cover_ = true;
    bool covers_ = false;       // some of the plan's objects; under the graph mutex
    uint64_t built_after_ = 0;  // last_ when it was built
    uint32_t rank_ = 0;         // its place in its last submission that was of several
    std::atomic<bool> stale_{
        false};  // an object of the built recording was destroyed, or an operation changed
    std::atomic<uint32_t> held_back_{0};  // mappings of what the built recording uses
    mutable std::atomic<Turn> turn_{Turn::none};
    std::atomic<bool> submitting_{false};  // between the look at stale_ and the new last_value_
    std::atomic<bool> running_{false};
    std::atomic<bool> was_long_{false};    // the last wait
    std::atomic<bool> collecting_{false};  // a thread is in finish()
    // The thread that drives this stream and is in code that is not ours: an operation's of this one, or of one that is submitted
    // together with it. What would pull the recording from under it is refused; destroy(), which may come at any moment, leaves
    // the release to it. Both are set under the graph mutex.
    std::atomic<std::thread::id> caller_{};
    bool release_later_ = false;
    std::span<Stream* const> together_;  // those that are built for one submission, while they are
    std::atomic<uint64_t> last_{0};      // the value, and own_bit where it is on the own timeline
    static constexpr uint64_t own_bit = uint64_t{1} << 63;
    Point own_;  // the own timeline, made when a submission is held for the first time, and its last value

    VkCommandPool pool_ = VK_NULL_HANDLE;
    VkCommandBuffer commands_ = VK_NULL_HANDLE;
    VkQueryPool queries_ = VK_NULL_HANDLE;
    uint32_t query_capacity_ = 0;
    uint32_t query_count_ = 0;
    std::vector<std::string> timed_names_;
    bool timed_ = false;  // the queries belong to a submission
    PreparedSubmit submission_;
    StreamPlan plan_;
    BarrierPlan barriers_;

    // Streams on other queues that share an object which one of us writes, and the ends of what those that are gone by now may
    // still run. Guarded by the graph mutex.
    std::vector<Stream*> rivals_;
    std::vector<Point> inherited_;
    std::vector<std::shared_ptr<Object>> disjoint_;
    bool resets_queries_on_host_ = false;  // before each submission: the queue cannot record it
    bool prepares_ = false;                // whether anything is done before a submission: see flush()
    bool undeclared_ = false;              // an operation does not say what it uses
    std::atomic<bool> has_rivals_{false};  // there are some of either
    bool has_waits_ = false;
    bool needs_flush_ = false;  // of memory that is not coherent
};

}  // namespace kp
