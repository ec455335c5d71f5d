// A recorded list of operations and its prebuilt submission: the native side of a Sequence.
//
// The first submission after a change turns the list into a command buffer. From then on, eval() checks
// that the recording is still ready, patches the timeline value, calls vkQueueSubmit and waits. It
// allocates nothing and does not loop over resources.
//
// A stream is put together of parts, each with its own state, and its file says the rules about it:
//
//     Turn               which thread drives it
//     BuiltRecording     the plan of its uses, and the notes about it at the objects that it uses
//       QueueOrder       what its submissions wait for on other queues
//     StreamCommands     the command buffer
//       Timestamps       its queries, if there are any
//     HostSide           what it exchanges with the host through memory that is not coherent
//     LastRun            the end of its last submission, and whether a thread knows of it
//
// stream.cpp records, builds and ends, stream_submit.cpp submits and waits.
#pragma once

#include "base/error.hpp"
#include "record/operation.hpp"
#include "resource/object.hpp"
#include "run/built_recording.hpp"
#include "run/host_side.hpp"
#include "run/last_run.hpp"
#include "run/stream_commands.hpp"
#include "run/timestamps.hpp"
#include "run/turn.hpp"
#include "sync/gate.hpp"
#include "sync/queue.hpp"

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kp {

struct Profiled;

class Stream final : public Object {
public:
    // `timestamps`: the maximum number of operations that can be timed; 0: none; -1: as many as are
    // recorded. `disjoint`: see QueueOrder.
    Stream(std::shared_ptr<Device> device, uint32_t queue_index, int64_t timestamps,
           std::vector<std::shared_ptr<Object>> disjoint = {});
    ~Stream() override;

    // The line of the user's code that recorded an operation: "file.py:12"; null if unknown.
    using UserLine = std::shared_ptr<const std::string>;
    // Appends. The first record() after a submission starts a new list.
    void record(OperationPtr operation, UserLine line = nullptr);
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
    [[nodiscard]] bool is_running() const noexcept { return run_.is_running(); }
    // Like is_running(), but false once any thread has learned, in any way, that the submission is done.
    // Asks the driver only about work that was held. Failed work counts as working until a wait reports the
    // failure.
    [[nodiscard]] bool is_working() const noexcept { return run_.is_working(); }
    [[nodiscard]] bool is_complete();
    // If the device was lost, tells it which work of this stream was running.
    void explain_loss() const;
    [[nodiscard]] std::string running_work() const override;
    [[nodiscard]] uint32_t queue_index() const noexcept { return queue_index_; }
    [[nodiscard]] Queue& queue() const noexcept { return queue_; }
    // The end of the last submission; no timeline before the first one.
    [[nodiscard]] Point last_point() const noexcept { return run_.end(); }
    [[nodiscard]] VkCommandBuffer command_buffer() const;
    [[nodiscard]] std::vector<std::string> operation_names() const;
    // For a thread that uses the operations without submitting them.
    [[nodiscard]] Turn::Taken drive() const { return turn_.drive(); }
    // Throws if the operations cannot be used now. `action` is the verb for the message.
    [[nodiscard]] const std::vector<OperationPtr>& operations(const char* action) {
        require_idle(action);
        return operations_;
    }
    void set_name(const std::string& name) override;
    void outdate() noexcept override { (void)built_recording_.make_stale(); }
    // Raw ticks: one before the first operation, one after each.
    [[nodiscard]] std::vector<uint64_t> timestamps();
    // The operations that the timestamps belong to. A new recording may have begun since.
    [[nodiscard]] std::vector<std::string> timed_names() const;
    // The barriers that order the operations, as built; empty before the first submission.
    [[nodiscard]] BarrierPlan barriers() const;

private:
    [[nodiscard]] std::vector<std::string> names_of_operations() const;
    void require_idle(const char* action);
    void drop_operations();
    [[nodiscard]] const std::string* line_of(size_t operation) const noexcept {
        return operation < lines_.size() ? lines_[operation].get() : nullptr;
    }
    void tell_name();

    class Building;
    void build();
    void make_command_buffer();
    [[nodiscard]] bool takes_long() const noexcept;
    void make_commands(StreamPlan::Kept& outdated);
    void remake_operations();
    void record_commands();
    // For the option dump.
    void keep_recording();
    // Under the graph mutex: if somebody profiles, what is about to be recorded, with queries for it.
    void begin_profiling(std::unique_lock<RankedMutex>& graph);
    // After a run: how long groups of its dispatches took, for a watchdog. True if the recording needs them
    // in other parts.
    [[nodiscard]] bool learn_rates();
    // Warns, once, if it runs an algorithm that was rebuilt since.
    void warn_of_old_algorithms();

    void release(std::vector<Point> points) override;
    // Call it on the thread that drives the stream, or when no thread can drive it any more.
    void release_driven(std::vector<Point> points);

    bool submit_driven();
    // The same after other queues' work. Returns false if the recording changed meanwhile.
    bool submit_in_order();
    void send();
    void prepare_run() const;
    void note_submitted(uint64_t value) noexcept {
        run_.note(value);
        if (timestamps_) timestamps_->note_run();
    }
    // Makes the recording ready for submission; false if it is empty.
    [[nodiscard]] bool make_ready();
    // Call it if another thread destroyed or changed an object between make_ready() and the submission.
    // Throws if rebuilding cannot mend that.
    void check_interference();
    static void submit_driven(Device& device, Queue& queue, const std::vector<Stream*>& streams,
                              const SubmitOrder& order);
    // Builds `streams` and returns those that have commands to submit.
    [[nodiscard]] static std::vector<Stream*> make_ready(const std::vector<Stream*>& streams);
    // The turns of all; throws if a stream is there twice.
    [[nodiscard]] static std::vector<Turn::Taken> drive_all(const std::vector<Stream*>& streams);
    // Call it before the streams are held. Marks those that cover a resource to be rebuilt without
    // covering; true if there are any.
    [[nodiscard]] static bool uncover(Device& device, const std::vector<Stream*>& streams);
    [[nodiscard]] static std::string label_of(const std::vector<Stream*>& streams);
    [[nodiscard]] std::string what_ran() const;
    [[nodiscard]] std::string what_runs(const std::vector<std::string>& names) const;
    // Rethrows the driver's refusal of `streams`. Names them if the device was lost with no other work in
    // flight.
    [[noreturn]] static void rethrow_unsubmitted(const std::vector<Stream*>& streams, const Error& error);
    [[noreturn]] void rethrow(const Error& error) const;

    const uint32_t queue_index_;
    Queue& queue_;
    Turn turn_{*this};
    LastRun run_;
    BuiltRecording built_recording_;
    HostSide host_{*this, built_recording_.plan()};
    std::shared_ptr<StreamCommands> commands_;  // from the first build on; changes under the graph mutex
    std::shared_ptr<Timestamps> timestamps_;    // null if there are none
    std::shared_ptr<const Profiled> profiled_;  // null if nobody profiled during the build
    std::vector<Recorder::Timed> timed_;        // with a watchdog
    PreparedSubmit submission_;
    bool has_waits_ = false;  // the prepared submission

    std::vector<OperationPtr> operations_;
    std::vector<UserLine> lines_;         // of the operations; those at its end may lack
    std::atomic<bool> recording_{false};  // record() appends; otherwise it starts over
    bool built_ = false;
    bool warned_of_old_algorithms_ = false;
};

}  // namespace kp
