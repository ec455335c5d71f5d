// A recorded list of operations and its prebuilt submission: the native side of a Sequence.
//
// The first submission after a change turns the list into a command buffer. From then on, eval() checks
// that the recording is still ready, patches the timeline value, calls vkQueueSubmit and waits. It
// allocates nothing and does not loop over resources.
//
// Only one thread at a time drives a stream: record, clear, rerecord and submissions are refused in a
// second thread. A thread that only reads what drivers change (`Looking`) waits for the end of such a call.
// That wait is short unless operations with code of their own are being recorded; then the read is refused
// too, unless that code itself makes it. Any thread may wait for a submission.
//
// Other threads may destroy objects that the stream uses at any moment. They take the graph mutex, mark the
// stream stale, and wait until a submission in progress is made, so that they know its last value. A thread
// that destroys the stream itself waits for its turn. If the driving thread may be in foreign code, that
// thread releases the stream instead.
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

struct Profiled;

class Stream final : public Object, public Recording, private Secondaries {
public:
    // Held by the thread that changes or submits a stream. Throws if another thread does so.
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

    // `timestamps`: the maximum number of operations that can be timed; 0: none; -1: as many as are
    // recorded. `disjoint`: objects that this stream shares with work of other queues but uses different
    // parts of. No ordering is needed for them.
    Stream(std::shared_ptr<Device> device, uint32_t queue_index, int64_t timestamps,
           std::vector<std::shared_ptr<Object>> disjoint = {});
    ~Stream() override;

    // Appends. The first record() after a submission starts a new list.
    void record(OperationPtr operation);
    void clear();
    // Rebuilds the recording at the next submission.
    void rerecord();

    // Returns false if the recording is empty.
    bool submit();
    // Submits the recordings of several streams of one queue as one, in order, after `order.waits`; the end
    // raises `order.signals`. Without streams, it only waits and signals. Streams with an empty recording
    // are left out. The submission is held (see sync/gate.hpp) if a wait is not promised. If it throws,
    // nothing was submitted.
    static void submit_together(Device& device, Queue& queue, const std::vector<Stream*>& streams,
                                const SubmitOrder& order);
    // Call it before submitting streams of several queues, one queue after another. Throws the error with
    // which any of these submissions would be refused, so that none is submitted then. Builds the streams.
    static void require_together(Device& device, const std::vector<Stream*>& streams,
                                 const SubmitOrder& order);
    // True if the submission has finished; then collects it. Makes at most one driver call.
    [[nodiscard]] bool poll();
    // Waits up to `nanoseconds`. True if the submission has finished (and was collected) or there was none.
    [[nodiscard]] bool wait(uint64_t nanoseconds);

    // If the last submission is held, cancels it and the work that waits for it. Returns sentences about
    // the cancelled work.
    [[nodiscard]] std::vector<std::string> cancel_held();

    [[nodiscard]] bool is_recording() const noexcept { return recording_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool is_running() const noexcept override {
        return running_.load(std::memory_order_acquire);
    }
    // Like is_running(), but false once any thread has learned, in any way, that the submission is done.
    // Asks the driver only about work that was held: its end is on the stream's own timeline, which no
    // other object queries. Failed work counts as working until a wait reports the failure.
    [[nodiscard]] bool is_working() noexcept;
    [[nodiscard]] bool is_complete();
    // If the device was lost, tells it which work of this stream was running.
    void explain_loss() const;
    [[nodiscard]] uint32_t queue_index() const noexcept { return queue_index_; }
    [[nodiscard]] Queue& queue() const noexcept { return *queue_; }
    // The end of the last submission: a point on the queue's timeline, or on the stream's own timeline if
    // it was held. Null before the first one.
    [[nodiscard]] Point last_point() const noexcept override;
    [[nodiscard]] VkCommandBuffer command_buffer() const;
    [[nodiscard]] std::vector<std::string> operation_names() const;
    // Throws if the operations cannot be used now. `action` is the verb for the message.
    [[nodiscard]] const std::vector<OperationPtr>& operations(const char* action) {
        require_idle(action);
        return operations_;
    }
    void set_name(const std::string& name) override;
    // Raw ticks: one before the first operation, one after each.
    [[nodiscard]] std::vector<uint64_t> timestamps();
    // The operations that the timestamps belong to. A new recording may have begun since.
    [[nodiscard]] std::vector<std::string> timed_names() const;
    // The barriers that order the operations, as built; empty before the first submission.
    [[nodiscard]] BarrierPlan barriers() const;
    // True if this thread is in the recording code of an operation, in a stream that overwrites the whole
    // resource before that operation.
    [[nodiscard]] static bool covered_by_caller(Resource& resource);
    // True if this thread is in an operation's recording code.
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
    // Notes on the used objects what the last run did to them. Call it before the stream forgets the
    // objects or the run. Under the graph mutex.
    void note_effects() noexcept;
    void add_last_run(uint32_t slot, uint64_t begin, uint64_t end,
                      FreshnessRecord& record) const noexcept override;
    void settle_covers() noexcept override;
    void come_after(Point point) override;
    void note_host_write(uint32_t slot, uint64_t begin, uint64_t end) noexcept override;
    // Warn, once, if the built recording runs an algorithm that was rebuilt since, or sends host copies that
    // the host's writes to device memory left behind.
    void warn_of_old_algorithms();
    void warn_of_old_copies();

    // Call it before the streams are held. Marks those that cover a resource to be rebuilt without
    // covering; true if there are any.
    [[nodiscard]] static bool uncover(Device& device, const std::vector<Stream*>& streams);
    void check_mappings();

    // Every Recording is a Stream.
    [[nodiscard]] static Stream& of(Recording& recording) noexcept { return static_cast<Stream&>(recording); }

    // A thread's current activity on the stream: changing or submitting it (`driving`), or reading or
    // destroying it (`looking`), which is brief.
    enum class Turn : uint8_t { none, driving, looking };
    [[nodiscard]] bool take_turn(Turn turn) const noexcept {
        Turn none = Turn::none;
        return turn_.compare_exchange_strong(none, turn, std::memory_order_acquire,
                                             std::memory_order_relaxed);
    }
    void end_turn() const noexcept { turn_.store(Turn::none, std::memory_order_release); }
    // Waits until readers have finished; throws if another thread drives.
    void wait_for_turn() const;
    // Call it between two tries to take the turn. The thread that has it may need the interpreter lock.
    static void let_others_go_on(int& tries);
    class Looking;
    [[nodiscard]] std::vector<std::string> names_of_operations() const;
    void release(std::vector<Point> points) override;
    // Call it on the thread that drives the stream, or when no thread can drive it any more.
    void release_driven(std::vector<Point> points);
    void require_idle(const char* action);
    void build();
    [[nodiscard]] bool takes_long() const noexcept;
    void make_commands(StreamPlan::Kept& outdated);
    // The streams that are built for one submission, all driven by this thread. Its destructor releases
    // streams that were destroyed while foreign code ran.
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
    // Plans and registers, or returns the resources to bring to the device first.
    [[nodiscard]] std::vector<std::shared_ptr<Resource>> plan(StreamPlan::Kept& outdated);
    [[nodiscard]] std::vector<std::shared_ptr<Resource>> absent();
    void register_users();
    // Call it after a change of `contested_` or `inherited_`, under the graph mutex.
    void note_order() noexcept {
        is_ordered_.store(contested_ != 0 || !inherited_.empty(), std::memory_order_seq_cst);
    }
    // Under the graph mutex. `others` calls its argument with each other stream that uses the thing of the
    // crossing, and with whether that stream writes it.
    template <typename Others>
    void begin_crossing(Crossing& crossing, bool writes, const Others& others);
    template <typename Others>
    void end_crossing(Crossing& crossing, bool writes, const Others& others) noexcept;
    void add_contested();
    void drop_contested() noexcept;
    void begin_crossing(const PlannedObject& planned);
    void end_crossing(const PlannedObject& planned) noexcept;
    struct Crossed {
        Crossing* crossing = nullptr;
        bool writes = false;
    };
    // The contested things that this stream uses.
    [[nodiscard]] const std::vector<Crossed>& crossed() noexcept;
    void pass_on(Point last);
    void note_disjoint() noexcept;
    [[nodiscard]] bool is_disjoint(uint32_t slot) const noexcept { return plan_.objects()[slot].disjoint; }
    void drop_operations();
    void unregister_users() noexcept;
    void leave_users();
    void record_commands();
    void prepare_timestamps();
    // Under the graph mutex: if somebody profiles, what is about to be recorded, with queries for it.
    void begin_profiling();
    [[noreturn]] void refuse_second_thread() const;
    class Submitting;
    bool submit_driven();
    // The same after other queues' work. Returns false if the recording changed meanwhile.
    bool submit_in_order();
    void send();
    static void submit_driven(Device& device, Queue& queue, const std::vector<Stream*>& streams,
                              const SubmitOrder& order);
    // Makes the recording ready for submission; false if it is empty.
    [[nodiscard]] bool make_ready();
    void require_not_running();
    // Call it if another thread destroyed or changed an object between make_ready() and the submission.
    // Throws if rebuilding cannot mend that.
    void check_interference();
    [[nodiscard]] bool fit_to_submit() const noexcept;
    // Prepares what the submission brings to the host and needs from the host, as built.
    void prepare_host_side();
    void flush() const;
    // Waits for downloads in flight that will still write atoms which this recording uploads or fills.
    void await_edges() const;
    // Throws if the recording uploads or fills one of these atoms: other work will write them, and cannot
    // be waited for.
    void require_clear_of(std::span<const VkMappedMemoryRange> edges);
    // Builds `streams` and returns those that have commands to submit.
    [[nodiscard]] static std::vector<Stream*> make_ready(const std::vector<Stream*>& streams);
    static void require_possible(const SubmitOrder& order);
    static void require_once(const std::vector<Stream*>& streams);
    // Both under the order mutex: before a submission, the ends that it must wait for, and after it, its own
    // end for later ones. `submitted`: the number of streams in the submission.
    [[nodiscard]] std::vector<Point> ends_on_other_queues(size_t submitted);
    void note_crossed() noexcept;
    // Merges held work that must come before this stream, except work that `later` would release.
    void merge_held(std::vector<Point>& waits, const std::vector<Point>& later);
    void note_submitted(uint64_t last) noexcept;
    [[nodiscard]] Point next_own();
    [[nodiscard]] static std::string label_of(const std::vector<Stream*>& streams);
    // Collects the submission for which `last_` was `last`.
    void finish(uint64_t last) noexcept;
    [[nodiscard]] Point point_of(uint64_t last) const noexcept;
    void forget_cancelled() noexcept;
    [[nodiscard]] std::string what_ran() const;
    [[nodiscard]] std::string what_runs(const std::vector<std::string>& names) const;
    // Rethrows the driver's refusal of `streams`. Names them if the device was lost with no other work in
    // flight.
    [[noreturn]] static void rethrow_unsubmitted(const std::vector<Stream*>& streams, const Error& error);
    [[noreturn]] void rethrow(const Error& error) const;
    void make_command_buffer();
    // Of repeated operations; they are freed when the recording is built again.
    [[nodiscard]] VkCommandBuffer make() override;
    void free_secondaries() noexcept;
    void remake_operations();
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
    bool warned_of_old_algorithms_ = false;
    bool warned_of_old_copies_ = false;  // under the graph mutex
    bool covers_ = false;                // some of the plan's objects are covered; under the graph mutex
    uint64_t built_after_ = 0;           // last_ at the time of the build
    uint32_t rank_ = 0;                  // its index in its last submission of several streams
    std::atomic<bool> stale_{
        false};  // an object of the built recording was destroyed, or an operation changed
    std::atomic<uint32_t> held_back_{0};  // number of mappings of resources that the built recording uses
    mutable std::atomic<Turn> turn_{Turn::none};
    std::atomic<bool> submitting_{false};  // from the check of stale_ to the new last_
    std::atomic<bool> running_{false};
    std::atomic<bool> was_long_{false};    // the last wait was long
    std::atomic<bool> collecting_{false};  // a thread is in finish()
    // The thread that drives this stream and runs foreign code: of an operation of this stream, or of a
    // stream that is submitted together with it. Calls that would change the recording under that code are
    // refused; destroy(), which may come at any moment, leaves the release to that thread. Both members are
    // set under the graph mutex.
    std::atomic<std::thread::id> caller_{};
    bool release_later_ = false;
    std::span<Stream* const> together_;  // the streams of one submission, while they are built
    std::atomic<uint64_t> last_{0};      // the value, with own_bit if it is on the own timeline
    static constexpr uint64_t own_bit = uint64_t{1} << 63;
    Point own_;  // the own timeline and its last value; created when a submission is first held

    VkCommandPool pool_ = VK_NULL_HANDLE;
    VkCommandBuffer commands_ = VK_NULL_HANDLE;
    std::vector<VkCommandBuffer> secondaries_;
    VkQueryPool queries_ = VK_NULL_HANDLE;
    uint32_t query_capacity_ = 0;
    uint32_t query_count_ = 0;
    std::vector<std::string> timed_names_;
    bool timed_ = false;                        // the queries belong to a submission
    std::shared_ptr<const Profiled> profiled_;  // null if nobody profiled during the build
    PreparedSubmit submission_;
    StreamPlan plan_;
    BarrierPlan barriers_;

    // The order with other queues, guarded by the graph mutex: the contested things that this stream uses
    // (see sync/crossing.hpp), and the ends of destroyed streams' work that may still run.
    std::vector<Crossed> crossed_;  // has room for `contested_` entries
    uint32_t contested_ = 0;
    bool crossed_changed_ = false;  // crossed_ is out of date
    uint32_t built_link_ = 0;       // this stream's index in the device's built recordings
    std::vector<Point> inherited_;
    std::vector<std::shared_ptr<Object>> disjoint_;
    bool resets_queries_on_host_ = false;  // before each submission, because the queue cannot record it
    bool prepares_ = false;                // a submission needs preparation: see flush()
    bool undeclared_ = false;              // an operation does not declare its uses
    std::atomic<bool> is_ordered_{false};  // it uses contested things, or has inherited ends
    bool has_waits_ = false;
    bool needs_flush_ = false;  // of memory that is not coherent
};

}  // namespace kp
