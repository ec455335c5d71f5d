#include "run/stream.hpp"

#include "base/error.hpp"
#include "base/host_span.hpp"
#include "base/long_call.hpp"
#include "device/device.hpp"
#include "device/profiler.hpp"
#include "resource/resource.hpp"
#include "run/plan_values.hpp"
#include "run/recording_text.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace kp {
namespace {

// A recording with more parts takes long to build: about half a millisecond.
constexpr size_t many_parts = 1024;

Queue& queue_of(Device& device, uint32_t index) {
    const auto& queues = device.queues();
    if (index >= queues.size())
        throw Error(ErrorKind::out_of_range,
                    "Queue index " + std::to_string(index) + " does not exist: this Manager opened " +
                        std::to_string(queues.size()) +
                        " queue(s). Open more with Manager(family_queue_indices=[...])");
    return *queues[index].queue;
}

}  // namespace

Stream::Stream(std::shared_ptr<Device> owner, uint32_t queue_index, int64_t timestamps,
               std::vector<std::shared_ptr<Object>> disjoint)
    : Object(std::move(owner), ObjectKind::stream),
      queue_index_(queue_index),
      queue_(queue_of(device(), queue_index)),
      run_(queue_),
      built_recording_(*this, queue_, turn_, run_, std::move(disjoint)) {
    // A watchdog needs the rates of dispatches.
    if (timestamps == 0 && device().watchdog() > 0 && queue_.timestamp_bits() != 0 &&
        !TimestampQueries::resets_on_host(device(), queue_))
        timestamps = -1;
    if (timestamps != 0) timestamps_ = std::make_shared<Timestamps>(*this, queue_, timestamps);
    device().retired().collect();
}

Stream::~Stream() {
    finalize();
    if (const Point own = run_.own(); own.timeline) device().give_timeline(own);
}

void Stream::require_idle(const char* action) {
    require_init(action);
    if (is_running() && (is_working() || !poll()))
        throw Error(ErrorKind::failed_precondition, std::string("Cannot ") + action + " the " + label() +
                                                        " while it is running. Call eval_await() first");
}

// -- what is recorded ---------------------------------------------------------------------------------------

void Stream::record(OperationPtr operation, UserLine line) {
    const Turn::Taken turn = turn_.drive();
    require_idle("record into");
    if (&operation->device() != &device())
        throw Error(ErrorKind::invalid_argument,
                    operation->name() + " uses objects of another Manager than the " + label() +
                        "'s. Copy them over with .to(mgr), or record OpCopy between the two");
    if (operation->needs_compute_queue() &&
        (device().physical().families[queue_.family()].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0)
        throw Error(ErrorKind::failed_precondition,
                    operation->name() + " needs a queue that computes, and queue " +
                        std::to_string(queue_index_) + ", of family " + std::to_string(queue_.family()) +
                        ", only moves memory. Record it in a sequence of another queue");
    if (OperationPtr now = operation->renewed()) [[unlikely]]
        operation = std::move(now);
    operation->check();
    if (!recording_) {
        drop_operations();
        recording_ = true;
    }
    if (timestamps_) timestamps_->require_room(operations_.size());
    operations_.push_back(std::move(operation));
    if (line) [[unlikely]] {
        lines_.resize(operations_.size());
        lines_.back() = std::move(line);
    }
    built_ = false;
}

void Stream::clear() {
    const Turn::Taken turn = turn_.drive();
    require_idle("clear");
    drop_operations();
    recording_ = false;
    built_ = false;
}

void Stream::drop_operations() {
    built_recording_.leave();
    // Clear these last: the operations kept alive the objects that listed this stream as a user.
    operations_.clear();
    lines_.clear();
    (void)built_recording_.plan().take_kept();
    built_recording_.cover_again();
    warned_of_old_algorithms_ = false;
}

void Stream::rerecord() {
    const Turn::Taken turn = turn_.drive();
    require_idle("re-record");
    warned_of_old_algorithms_ = false;
    std::vector<OperationPtr> now;
    for (size_t i = 0; i < operations_.size(); ++i) {
        OperationPtr renewed = operations_[i]->renewed();
        if (!renewed) continue;
        if (now.empty()) now = operations_;
        now[i] = std::move(renewed);
    }
    if (!now.empty()) {
        built_recording_.leave();
        operations_.swap(now);
        // Clear these last, as in drop_operations().
        now.clear();
        (void)built_recording_.plan().take_kept();
    }
    recording_ = true;
    built_ = false;
}

std::vector<std::string> Stream::names_of_operations() const {
    std::vector<std::string> names;
    for (const auto& operation : operations_) names.push_back(operation->name());
    return names;
}

std::vector<std::string> Stream::operation_names() const {
    const Turn::Taken turn = turn_.look();
    return names_of_operations();
}

// -- what is built ------------------------------------------------------------------------------------------

VkCommandBuffer Stream::command_buffer() const {
    const Turn::Taken turn = turn_.look();
    return commands_ ? commands_->handle() : VK_NULL_HANDLE;
}

BarrierPlan Stream::barriers() const {
    const Turn::Taken turn = turn_.look();
    return built_recording_.barriers();
}

void Stream::set_name(const std::string& name) {
    Object::set_name(name);
    tell_name();
}

void Stream::tell_name() {
    name_handles([this](const std::string& given) {
        if (commands_)
            device().name_handle(VK_OBJECT_TYPE_COMMAND_BUFFER, handle_value(commands_->handle()), given);
    });
}

void Stream::make_command_buffer() {
    if (commands_) return;
    auto made = std::make_shared<StreamCommands>(*this, queue_);
    submission_.prepare(queue_, {made->handle()});
    {
        const std::lock_guard lock(device().graph_mutex());  // set_name() may read it
        commands_ = std::move(made);
    }
    tell_name();
}

// While streams are built for one submission, all driven by this thread. In the end, releases those that were
// destroyed while foreign code ran.
class Stream::Building {
public:
    explicit Building(std::span<Stream* const> streams) {
        if (!streams.front()->turn_.is_alone()) return;  // one of several that are marked already
        streams_ = streams;
        for (Stream* stream : streams_.subspan(1)) stream->turn_.join(streams_.front()->turn_);
    }
    Building(const Building&) = delete;
    Building& operator=(const Building&) = delete;
    ~Building() {
        for (Stream* stream : streams_) {
            stream->turn_.leave();
            // Set by other threads only while foreign code ran.
            if (!stream->turn_.left_to_release()) continue;
            try {
                stream->release_driven({});
            } catch (...) {
                continue;  // out of host memory: it is released with the device
            }
        }
    }

private:
    std::span<Stream* const> streams_;
};

void Stream::build() {
    const HostSpan span("build");
    Stream* const self = this;
    const Building building({&self, 1});
    built_ = false;
    make_command_buffer();
    if (timestamps_) timestamps_->prepare(names_of_operations());
    StreamPlan::Kept outdated;  // freed after the lock, because destructors may be slow
    const auto make = [&] { make_commands(outdated); };
    if (takes_long())
        long_call(make);
    else
        make();
    built_ = true;
    warn_of_old_algorithms();
    built_recording_.warn_of_old_copies();
}

void Stream::warn_of_old_algorithms() {
    if (warned_of_old_algorithms_) return;
    const auto old =
        std::ranges::find_if(operations_, [](const auto& operation) { return operation->outdated(); });
    if (old == operations_.end()) return;
    warned_of_old_algorithms_ = true;
    warn_user(
        "The " + label() + " runs " + (*old)->name() +
        " with the algorithm as it was recorded, and that was rebuilt since: call rerecord() to run the "
        "new one");
}

// Operations with foreign code take the interpreter lock for each call of it. If they gave it back each time,
// busy threads would make them wait each time.
bool Stream::takes_long() const noexcept {
    size_t parts = operations_.size();
    for (size_t i = 0; i < operations_.size() && parts < many_parts; ++i)
        parts += operations_[i]->parts() - 1;
    return parts >= many_parts && std::none_of(operations_.begin(), operations_.end(),
                                               [](const auto& each) { return each->calls_out(); });
}

void Stream::make_commands(StreamPlan::Kept& outdated) {
    const StreamPlan& plan = built_recording_.plan();
    for (auto missing = built_recording_.make(operations_, outdated);
         !missing.empty() || plan.asks_remaking(); missing = built_recording_.make(operations_, outdated)) {
        if (plan.asks_remaking()) [[unlikely]] {
            remake_operations();
        } else {
            std::unique_lock graph(device().graph_mutex());
            const Turn::CallingOut calling(turn_, graph);
            long_call([&missing] {
                // Begin all of them first, so that the collected copies are submitted at once.
                for (const auto& resource : missing) resource->bring_contents();
                for (const auto& resource : missing) (void)resource->initial_end();
            });
        }
        require_init("evaluate");
    }
    submission_.deliveries.clear();
    submission_.deliveries = host_.prepare();
    record_commands();
    if (!device().dump().empty()) keep_recording();
    if (commands_->handles() != submission_.commands) submission_.prepare(queue_, commands_->handles());
}

void Stream::keep_recording() {
    const std::string name = label();
    std::string text;
    {
        const std::lock_guard graph(device().graph_mutex());
        text = text_of({name, queue_index_, operations_, built_recording_.plan(), built_recording_.barriers(),
                        [this](size_t i) { return line_of(i); }});
    }
    if (const std::string why = keep_text(device().dump(), name, text); !why.empty()) device().note_once(why);
}

void Stream::remake_operations() {
    for (OperationPtr& operation : operations_)
        if (OperationPtr made = operation->remade()) operation = std::move(made);
}

void Stream::begin_profiling(std::unique_lock<RankedMutex>& graph) {
    profiled_ = nullptr;
    Profiler* profiler = device().profiler();
    if (!profiler) return;
    std::vector<std::shared_ptr<const void>> contents;
    if (profiler->looks() == ProfilerLooks::values) {
        graph.unlock();  // operations take it, too
        for (const OperationPtr& operation : operations_)
            contents.push_back(std::make_shared<const OperationContent>(operation->content()));
        graph.lock();
        profiler = device().profiler();
        if (!profiler) return;
    }
    const StreamPlan& plan = built_recording_.plan();
    auto what = std::make_shared<Profiled>();
    what->label = label();
    what->queue_index = queue_index_;
    const bool whole = profiler->looks() == ProfilerLooks::sequences;
    if (whole) what->operations.push_back({label(), {}, 0, 0, {}});
    for (size_t i = 0; i < operations_.size(); ++i) {
        const auto [read, written] = operations_[i]->moved(plan, i);
        if (!whole) {
            const std::string* line = line_of(i);
            what->operations.push_back({operations_[i]->name(), operations_[i]->groups(), read, written,
                                        line ? *line : std::string()});
        } else {
            what->operations.front().read += read;
            what->operations.front().written += written;
        }
    }
    if (profiler->looks() == ProfilerLooks::values) {
        what->values = plan_values(plan, device().memory());
        what->contents = std::move(contents);
    } else {
        what->queries = std::make_shared<const TimestampQueries>(
            device(), queue_, static_cast<uint32_t>(what->operations.size()) + 1, "a profile");
    }
    profiled_ = what;
    profiler->list(commands_->handle(), std::move(what));
}

void Stream::record_commands() {
    StreamCommands::Open open(*commands_);
    const VkCommandBuffer commands = commands_->handle();
    const Allocation* slots =
        submission_.deliveries.empty() ? nullptr : submission_.deliveries.front()->slots.get();
    Recorder recorder(device().vk(), commands, built_recording_.plan(),
                      slots ? slots->block_buffer() : VK_NULL_HANDLE, slots ? slots->offset() : 0,
                      *commands_);
    recorder.allowed = device().watchdog() / 2;
    // Held while built-in operations read their objects' handles, so that no thread destroys these
    // meanwhile.
    std::unique_lock lock(device().graph_mutex());
    begin_profiling(lock);
    const auto timestamp = [&](uint32_t index) {
        if (timestamps_) timestamps_->queries().stamp(recorder.commands, index);
        if (profiled_) profiled_->stamp(recorder.commands, index, operations_.size());
    };
    const BarrierPlan& barriers = built_recording_.barriers();
    if (timestamps_) timestamps_->queries().record_reset(commands);
    if (profiled_ && profiled_->queries) profiled_->queries->record_reset(commands);
    const auto copy_values = [&](uint32_t position) {
        if (!profiled_ || !profiled_->values) return;
        profiled_->values->record(device(), recorder.commands, position);
    };
    recorder.barrier(barriers.head);
    // Written after all earlier submissions are done; otherwise the first operation's time would include
    // them.
    timestamp(0);
    auto barrier = barriers.barriers.cbegin();
    for (uint32_t i = 0; i < operations_.size(); ++i) {
        const Operation& operation = *operations_[i];
        for (; barrier != barriers.barriers.cend() && barrier->before == i; ++barrier)
            recorder.barrier(*barrier);
        copy_values(i);
        // With a watchdog, an operation may end in another command buffer than it began in.
        std::optional<DeviceContext::Label> label;
        if (recorder.allowed == 0) label.emplace(device(), commands, operation.name(), line_of(i));
        recorder.operation = i;
        if (operation.calls_out()) {
            {
                const Turn::CallingOut calling(turn_, lock);
                operation.record(recorder);
            }
            // It may have destroyed objects that the commands use; then the recording cannot continue.
            if (built_recording_.is_stale(std::memory_order_relaxed) || !is_init()) return;
        } else if (!built_recording_.is_stale(std::memory_order_relaxed)) {
            operation.record(recorder);
        }
        timestamp(i + 1);
        if (label) label->end(commands);
    }
    for (; barrier != barriers.barriers.cend(); ++barrier) recorder.barrier(*barrier);
    copy_values(static_cast<uint32_t>(operations_.size()));
    recorder.barrier(barriers.tail);
    lock.unlock();
    open.end();
    timed_ = std::move(recorder.timed);
}

// -- the end ------------------------------------------------------------------------------------------------

void Stream::release(std::vector<Point> points) {
    // From here on, submissions are refused, and a call that has begun is short unless it runs foreign
    // code.
    (void)built_recording_.make_stale();
    // Another thread that wants to drive waits for the end of this, and then fails require_init().
    if (const Turn::Taken turn = turn_.take_for_release()) release_driven(std::move(points));
}

void Stream::release_driven(std::vector<Point> points) {
    struct Payload {
        std::shared_ptr<StreamCommands> commands;
        std::shared_ptr<Timestamps> timestamps;
        std::vector<OperationPtr> operations;
        StreamPlan::Kept kept;
        std::vector<std::shared_ptr<Object>> disjoint;
        std::vector<std::shared_ptr<const Delivery>> deliveries;
        std::shared_ptr<const Profiled> profiled;
    };
    auto payload = std::make_shared<Payload>();
    {
        const std::lock_guard lock(device().graph_mutex());
        // When this returns, a submission in progress has either been made or been refused.
        const Point point = built_recording_.make_stale();
        if (point.timeline && is_running()) {
            merge_point(points, point);
            built_recording_.order().pass_on(point);
        }
        built_recording_.unregister();
        payload->disjoint = built_recording_.order().take_disjoint();
        payload->profiled = std::move(profiled_);
        if (Profiler* const profiler = device().profiler(); profiler && commands_)
            profiler->forget(commands_->handle());
        payload->commands = std::move(commands_);
    }
    run_.stop();
    payload->timestamps = std::move(timestamps_);
    payload->operations = std::move(operations_);
    payload->kept = built_recording_.plan().take_kept();
    payload->deliveries = std::move(submission_.deliveries);
    operations_.clear();
    device().retired().push(std::move(points), std::move(payload));
}

}  // namespace kp
