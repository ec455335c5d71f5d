// About 1370 lines because building, submitting and releasing a stream share one set of flags. Other threads
// read these flags between any two lines, so each part is best read with the others in view.
#include "run/stream.hpp"

#include "base/error.hpp"
#include "base/host_span.hpp"
#include "base/long_call.hpp"
#include "device/device.hpp"
#include "device/initial_work.hpp"
#include "device/profiler.hpp"
#include "resource/resource.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <optional>
#include <thread>

namespace kp {
namespace {

// The planner's working memory; all streams of a thread share it.
HazardPlanner& planner() {
    thread_local HazardPlanner instance;
    return instance;
}

thread_local uint32_t calls_out = 0;  // how deep this thread is in foreign code

// How often a recording is rebuilt because its objects change meanwhile.
constexpr int most_attempts = 16;

// A recording with more parts takes long to build: about half a millisecond.
constexpr size_t many_parts = 1024;

bool promised(const std::vector<Point>& points) {
    return std::all_of(points.begin(), points.end(),
                       [](const Point& point) { return point.timeline->promised() >= point.value; });
}

std::string listed(const std::vector<std::string>& names) {
    constexpr size_t most = 8;
    std::string list;
    for (size_t i = 0; i < names.size() && i < most; ++i) list += (i ? ", " : "") + names[i];
    if (names.size() > most) list += " and " + std::to_string(names.size() - most) + " more";
    return list;
}

}  // namespace

Stream::Stream(std::shared_ptr<Device> owner, uint32_t queue_index, int64_t timestamps,
               std::vector<std::shared_ptr<Object>> disjoint)
    : Object(std::move(owner), ObjectKind::stream),
      queue_index_(queue_index),
      timestamp_limit_(timestamps),
      disjoint_(std::move(disjoint)) {
    for (const auto& object : disjoint_) {
        object->require_init("list as disjoint");
        if (&object->device() != &device())
            throw Error(ErrorKind::invalid_argument,
                        "disjoint: the " + object->label() + " belongs to another Manager than the sequence");
    }
    const auto& queues = device().queues();
    if (queue_index >= queues.size())
        throw Error(ErrorKind::out_of_range,
                    "Queue index " + std::to_string(queue_index) + " does not exist: this Manager opened " +
                        std::to_string(queues.size()) +
                        " queue(s). Open more with Manager(family_queue_indices=[...])");
    queue_ = queues[queue_index].queue;
    computes_ = (device().physical().families[queue_->family()].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0;
    if (timestamps != 0 && queue_->timestamp_bits() == 0)
        throw Error(ErrorKind::unimplemented,
                    "Queue family " + std::to_string(queue_->family()) +
                        " of this device has no timestamps. Make the sequence without them");
    // Queues that only move memory may write timestamps but cannot record the reset of their queries.
    resets_queries_on_host_ = timestamps != 0 && !computes_;
    if (resets_queries_on_host_ && !device().enabled().v12.hostQueryReset)
        throw Error(ErrorKind::unimplemented,
                    "Queue family " + std::to_string(queue_->family()) +
                        " of this device only moves memory: its timestamps need the device feature "
                        "'hostQueryReset', which '" +
                        device().physical().properties.deviceName +
                        "' does not have. Make the sequence without timestamps, or on a queue that computes");
    device().retired().collect();
}

Stream::~Stream() {
    finalize();
    if (own_.timeline) device().give_timeline(own_);
}

void Stream::refuse_second_thread() const {
    throw Error(
        ErrorKind::failed_precondition,
        is_calling_out()
            ? "The " + label() +
                  " is recording: neither an operation in it nor another thread can change or "
                  "evaluate it meanwhile. Use a sequence in one thread at a time"
            : "The " + label() +
                  " is being changed or evaluated by another thread. Use a sequence in one thread at a "
                  "time, or one for each");
}

void Stream::let_others_go_on(int& tries) {
    if (++tries < 100) return std::this_thread::yield();
    long_call([] { std::this_thread::sleep_for(std::chrono::microseconds(50)); });
}

void Stream::wait_for_turn() const {
    for (int tries = 0; !take_turn(Turn::driving);) {
        if (turn_.load(std::memory_order_relaxed) == Turn::driving) refuse_second_thread();
        let_others_go_on(tries);
    }
}

// The turn of a thread that only reads. Foreign code that the stream calls may read at any moment, because
// nothing changes meanwhile.
class Stream::Looking {
public:
    explicit Looking(const Stream& stream) : stream_(stream) {
        for (int tries = 0; !stream_.take_turn(Turn::looking);) {
            const std::thread::id caller = stream_.caller_.load(std::memory_order_acquire);
            if (caller == std::this_thread::get_id()) {
                inside_ = true;
                return;
            }
            if (caller != std::thread::id()) stream_.refuse_second_thread();
            let_others_go_on(tries);
        }
    }
    Looking(const Looking&) = delete;
    Looking& operator=(const Looking&) = delete;
    ~Looking() {
        if (!inside_) stream_.end_turn();
    }

private:
    const Stream& stream_;
    bool inside_ = false;
};

VkCommandBuffer Stream::command_buffer() const {
    const Looking looking(*this);
    return commands_;
}

std::vector<std::string> Stream::timed_names() const {
    const Looking looking(*this);
    return timed_names_;
}

BarrierPlan Stream::barriers() const {
    const Looking looking(*this);
    return barriers_;
}

std::vector<std::string> Stream::operation_names() const {
    const Looking looking(*this);
    return names_of_operations();
}

void Stream::require_idle(const char* action) {
    require_init(action);
    if (is_running() && (is_working() || !poll()))
        throw Error(ErrorKind::failed_precondition, std::string("Cannot ") + action + " the " + label() +
                                                        " while it is running. Call eval_await() first");
}

void Stream::record(OperationPtr operation) {
    const Driving driving(*this);
    require_idle("record into");
    if (&operation->device() != &device())
        throw Error(ErrorKind::invalid_argument,
                    operation->name() + " uses objects of another Manager than the " + label() +
                        "'s. Copy them over with .to(mgr), or record OpCopy between the two");
    if (!computes_ && operation->needs_compute_queue())
        throw Error(ErrorKind::failed_precondition,
                    operation->name() + " needs a queue that computes, and queue " +
                        std::to_string(queue_index_) + ", of family " + std::to_string(queue_->family()) +
                        ", only moves memory. Record it in a sequence of another queue");
    if (OperationPtr now = operation->renewed()) [[unlikely]]
        operation = std::move(now);
    operation->check();
    if (!recording_) {
        drop_operations();
        recording_ = true;
    }
    if (timestamp_limit_ > 0 && operations_.size() >= static_cast<uint64_t>(timestamp_limit_))
        throw Error(ErrorKind::out_of_range,
                    "The " + label() + " has room for the timestamps of " + std::to_string(timestamp_limit_) +
                        " operations, and that many are recorded. Make it with a larger "
                        "total_timestamps, or with timestamps=True");
    operations_.push_back(std::move(operation));
    built_ = false;
}

void Stream::clear() {
    const Driving driving(*this);
    require_idle("clear");
    drop_operations();
    recording_ = false;
    built_ = false;
}

// Operations go. Others that come are ordered as those of a new stream.
void Stream::leave_users() {
    if (!registered_) return;
    const std::lock_guard lock(device().graph_mutex());
    inherited_.clear();
    unregister_users();
}

void Stream::drop_operations() {
    leave_users();
    // Clear these last: the operations kept alive the objects that listed this stream as a user.
    operations_.clear();
    (void)plan_.take_kept();
    may_cover_ = true;
    warned_of_old_algorithms_ = false;
}

void Stream::rerecord() {
    const Driving driving(*this);
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
        leave_users();
        operations_.swap(now);
        // Clear these last, as in drop_operations().
        now.clear();
        (void)plan_.take_kept();
    }
    recording_ = true;
    built_ = false;
}

std::vector<std::string> Stream::names_of_operations() const {
    std::vector<std::string> names;
    for (const auto& operation : operations_) names.push_back(operation->name());
    return names;
}

Point Stream::make_stale() noexcept {
    stale_.store(true, std::memory_order_seq_cst);
    // submit() raises this flag before it reads stale_, and only for the length of one driver call.
    while (submitting_.load(std::memory_order_seq_cst)) std::this_thread::yield();
    return last_point();
}

Point Stream::hold_back() noexcept {
    held_back_.fetch_add(1, std::memory_order_seq_cst);
    while (submitting_.load(std::memory_order_seq_cst)) std::this_thread::yield();  // as in make_stale
    return last_point();
}

void Stream::make_command_buffer() {
    auto& vk = device().vk();
    if (pool_ == VK_NULL_HANDLE) {
        VkCommandPoolCreateInfo create{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
        create.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
        create.queueFamilyIndex = queue_->family();
        check_vk(vk.vkCreateCommandPool(device().handle(), &create, nullptr, &pool_), "vkCreateCommandPool",
                 label().c_str());
    }
    if (commands_ == VK_NULL_HANDLE) {
        VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
        allocate.commandPool = pool_;
        allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
        allocate.commandBufferCount = 1;
        VkCommandBuffer made = VK_NULL_HANDLE;
        check_vk(vk.vkAllocateCommandBuffers(device().handle(), &allocate, &made), "vkAllocateCommandBuffers",
                 label().c_str());
        submission_.prepare(*queue_, {made});
        {
            const std::lock_guard lock(device().graph_mutex());  // set_name() may read it
            commands_ = made;
        }
        tell_name();
    }
}

void Stream::set_name(const std::string& name) {
    Object::set_name(name);
    tell_name();
}

void Stream::tell_name() {
    name_handles([this](const std::string& given) {
        device().name_handle(VK_OBJECT_TYPE_COMMAND_BUFFER, handle_value(commands_), given);
    });
}

std::vector<uint64_t> Stream::timestamps() {
    const Looking looking(*this);
    if (is_calling_out()) refuse_second_thread();
    require_idle("read the timestamps of");
    if (timestamp_limit_ == 0)
        throw Error(ErrorKind::failed_precondition,
                    "The " + label() +
                        " has no timestamps. Make it with total_timestamps=N or timestamps=True");
    if (!timed_)
        throw Error(ErrorKind::failed_precondition,
                    "The " + label() + " was not evaluated yet, so it has no timestamps");
    std::vector<uint64_t> ticks(query_count_);
    check_vk(device().vk().vkGetQueryPoolResults(device().handle(), queries_, 0, query_count_,
                                                 ticks.size() * sizeof(uint64_t), ticks.data(),
                                                 sizeof(uint64_t), VK_QUERY_RESULT_64_BIT),
             "vkGetQueryPoolResults", label().c_str());
    return ticks;
}

// -- building: operations become a command buffer, contents reach the device, objects register their users --

Stream::Building::Building(std::span<Stream* const> streams) {
    if (!streams.front()->together_.empty()) return;  // one of several that are marked already
    streams_ = streams;
    for (Stream* stream : streams_) stream->together_ = streams_;
}

Stream::Building::~Building() {
    for (Stream* stream : streams_) {
        stream->together_ = {};
        // Set by other threads only while foreign code ran.
        if (!std::exchange(stream->release_later_, false)) continue;
        try {
            stream->release_driven({});
        } catch (...) {
            continue;  // out of host memory: it is released with the device
        }
    }
}

// Exists while foreign code runs. Releases the graph mutex meanwhile, because that code may take locks of
// its own.
class Stream::CallingOut {
public:
    CallingOut(const Stream& stream, std::unique_lock<RankedMutex>& graph)
        : streams_(stream.together_), graph_(graph) {
        mark(std::this_thread::get_id());
        ++calls_out;
        graph_.unlock();
    }
    CallingOut(const CallingOut&) = delete;
    CallingOut& operator=(const CallingOut&) = delete;
    ~CallingOut() {
        graph_.lock();
        --calls_out;
        mark({});
    }

private:
    void mark(std::thread::id id) const {
        for (Stream* stream : streams_) stream->caller_.store(id, std::memory_order_release);
    }

    std::span<Stream* const> streams_;
    std::unique_lock<RankedMutex>& graph_;
};

void Stream::build() {
    const HostSpan span("build");
    Stream* const self = this;
    const Building building({&self, 1});
    built_ = false;
    make_command_buffer();
    prepare_timestamps();
    StreamPlan::Kept outdated;  // freed after the lock, because destructors may be slow
    const auto make = [&] { make_commands(outdated); };
    if (takes_long())
        long_call(make);
    else
        make();
    built_ = true;
    warn_of_old_algorithms();
    warn_of_old_copies();
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

void Stream::warn_of_old_copies() {
    std::string older;
    {
        const std::lock_guard lock(device().graph_mutex());
        if (warned_of_old_copies_) return;
        std::vector<uint32_t> refreshed;  // by a download of the same recording
        plan_.each_sync([&](uint32_t slot, const Effect& effect) {
            if (effect.kind == Effect::Kind::download) {
                refreshed.push_back(slot);
            } else if (older.empty() && std::ranges::find(refreshed, slot) == refreshed.end()) {
                auto& resource = static_cast<Resource&>(*plan_.objects()[slot].object);
                if (resource.left_behind(effect.begin, effect.end)) older = resource.label();
            }
        });
        if (older.empty()) return;
        warned_of_old_copies_ = true;
    }
    warn_user(
        "The " + label() + " sends the host copy of the " + older +
        " over what write() or an item assignment put there: those change the device's contents and not "
        "the host copy. Edit data() instead, or leave the OpSyncDevice out; if data() has been edited since, "
        "all is well");
}

void Stream::note_host_write(uint32_t slot, uint64_t begin, uint64_t end) noexcept {
    if (warned_of_old_copies_) return;
    bool sends = false;
    plan_.each_sync([&](uint32_t of, const Effect& effect) {
        sends = sends || (of == slot && effect.kind == Effect::Kind::upload && effect.begin < end &&
                          begin < effect.end);
    });
    if (sends) (void)make_stale();
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
    for (auto missing = plan(outdated); !missing.empty() || plan_.asks_remaking(); missing = plan(outdated)) {
        if (plan_.asks_remaking()) [[unlikely]] {
            remake_operations();
        } else {
            std::unique_lock graph(device().graph_mutex());
            const CallingOut calling(*this, graph);
            long_call([&missing] {
                // Begin all of them first, so that the collected copies are submitted at once.
                for (const auto& resource : missing) resource->bring_contents();
                for (const auto& resource : missing) (void)resource->initial_end();
            });
        }
        require_init("evaluate");
    }
    prepare_host_side();
    record_commands();
}

std::vector<std::shared_ptr<Resource>> Stream::plan(StreamPlan::Kept& outdated) {
    const std::lock_guard lock(device().graph_mutex());
    // destroy() waits for this lock, so objects that exist now stay while the plan is made.
    for (size_t i = 0; i < operations_.size(); ++i) {
        try {
            operations_[i]->check();
        } catch (const Error& error) {
            throw Error(error.kind(),
                        operations_[i]->name() + ", operation " + std::to_string(i + 1) + " of the " +
                            label() + ": " + error.what(),
                        error.vk_result());
        }
    }
    stale_.store(false, std::memory_order_seq_cst);
    unregister_users();
    if (outdated.empty())
        outdated = plan_.take_kept();
    else
        for (auto& object : plan_.take_kept()) outdated.push_back(std::move(object));
    plan_.begin(device().next_epoch(), device().memory().atom());
    for (const auto& operation : operations_) {
        plan_.begin_operation();
        operation->declare(plan_);
    }
    if (plan_.asks_remaking()) [[unlikely]] {
        plan_.objects().clear();
        return {};
    }
    if (auto missing = absent(); !missing.empty()) {
        plan_.objects().clear();
        return missing;
    }
    plan_.settle_host_side();
    planner().plan(plan_.commands(), plan_.uses(), plan_.host_visible(), barriers_);
    check_mappings();
    register_users();
    return {};
}

void Stream::remake_operations() {
    for (OperationPtr& operation : operations_)
        if (OperationPtr made = operation->remade()) operation = std::move(made);
}

std::vector<std::shared_ptr<Resource>> Stream::absent() {
    std::vector<std::shared_ptr<Resource>> missing;
    for (auto& planned : plan_.objects()) {
        if (!planned.used) continue;  // else it is memory
        auto& resource = static_cast<Resource&>(*planned.object);
        const bool overwritten = planned.overwritten && may_cover_;
        if (resource.must_be_brought(overwritten))
            missing.push_back(std::static_pointer_cast<Resource>(resource.shared_from_this()));
        else
            planned.covered = overwritten && !resource.on_device();
    }
    return missing;
}

void Stream::settle_covers() noexcept {
    if (!covers_) return;
    const uint64_t last = last_.load(std::memory_order_acquire);
    if (last == 0 || last == built_after_) return;
    covers_ = false;
    for (auto& planned : plan_.objects())
        if (std::exchange(planned.covered, false)) static_cast<Resource&>(*planned.object).note_brought();
}

void Stream::add_last_run(uint32_t slot, uint64_t begin, uint64_t end,
                          FreshnessRecord& record) const noexcept {
    const uint64_t last = last_.load(std::memory_order_acquire);
    if (last == 0 || last == built_after_) return;
    const Point point = point_of(last);
    const FreshnessRecord::Run run{point.timeline->place(point.value), rank_};
    plan_.each_effect([&](uint32_t of, const Effect& effect) {
        if (of == slot && effect.begin < end && begin < effect.end) record.note_run(effect, run);
    });
}

void Stream::note_effects() noexcept {
    const uint64_t last = last_.load(std::memory_order_acquire);
    if (!registered_ || last == 0 || last == built_after_) return;
    const Point point = point_of(last);
    const FreshnessRecord::Run run{point.timeline->place(point.value), rank_};
    plan_.each_effect([&](uint32_t slot, const Effect& effect) {
        static_cast<Resource&>(*plan_.objects()[slot].object).note_run(effect, run);
    });
}

bool Stream::uncover(Device& device, const std::vector<Stream*>& streams) {
    const std::lock_guard lock(device.graph_mutex());
    bool any = false;
    for (Stream* stream : streams) {
        stream->settle_covers();
        if (!stream->covers_) continue;
        any = true;
        stream->may_cover_ = false;
        stream->built_ = false;
    }
    return any;
}

bool Stream::is_recording_here() noexcept { return calls_out != 0; }

bool Stream::covered_by_caller(Resource& resource) {
    if (resource.on_device()) return false;
    const std::lock_guard lock(resource.device().graph_mutex());
    const auto& users = static_cast<Object&>(resource).users_;
    return std::any_of(users.begin(), users.end(), [](const Object::User& user) {
        const Stream& stream = of(*user.recording);
        return stream.covers(user.slot) &&
               stream.caller_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    });
}

void Stream::come_after(Point point) {
    if (!undeclared_ || point.timeline == queue_) return;
    merge_point(inherited_, point);
    note_order();
}

void Stream::prepare_host_side() {
    submission_.deliveries.clear();
    Delivery delivery;
    delivery.invalidates = plan_.invalidates();
    delivery.all_in_place = undeclared_ && device().memory().in_place_needs_sync();
    needs_flush_ = !plan_.flushes().empty() || delivery.all_in_place;
    prepares_ = needs_flush_ || resets_queries_on_host_;
    if (const uint64_t bytes = plan_.slot_bytes()) {
        device().retired().collect();
        delivery.slots = std::make_shared<const Allocation>(
            device().memory().allocate_host_copy(bytes, "the ends of a tensor's parts"));
        if (!delivery.slots->coherent()) delivery.invalidates.push_back(delivery.slots->mapped_range());
        delivery.edges = plan_.edges();
        for (const auto& [to, slot, size] : plan_.landings())
            delivery.landings.push_back({to, delivery.slots->mapped() + slot, size});
    }
    if (!delivery.empty())
        submission_.deliveries.push_back(std::make_shared<const Delivery>(std::move(delivery)));
}

// Memory of the process is disjoint if all tensors over it that this stream uses are.
void Stream::note_disjoint() noexcept {
    if (disjoint_.empty()) return;
    auto& objects = plan_.objects();
    for (auto& planned : objects)
        planned.disjoint =
            planned.object->kind() == ObjectKind::host_pages ||
            std::ranges::any_of(disjoint_, [&](const auto& each) { return each.get() == planned.object; });
    for (const auto& planned : objects)
        if (planned.used && !planned.disjoint) objects[planned.object->ordered_by().slot_].disjoint = false;
}

void Stream::add_contested() {
    crossed_.reserve(contested_ + size_t{1});
    ++contested_;
    crossed_changed_ = true;
    note_order();
}

void Stream::drop_contested() noexcept {
    --contested_;
    crossed_changed_ = true;
    note_order();
}

template <typename Others>
void Stream::begin_crossing(Crossing& crossing, bool writes, const Others& others) {
    const bool before = crossing.contested();
    crossing.add(*queue_, writes);
    if (!crossing.contested()) return;
    add_contested();
    if (before) return;
    // Until now, the others did not note their ends.
    size_t count = 1;
    others([&](Stream&, bool) { ++count; });
    crossing.reserve(2 * count);  // and for those that are about to note one: see note_crossed()
    others([&](Stream& other, bool other_writes) {
        other.add_contested();
        // From here on it submits in order, unless it is submitting now.
        while (other.submitting_.load(std::memory_order_seq_cst)) std::this_thread::yield();
        if (const Point end = other.last_point(); end.timeline) crossing.note(end, other_writes);
    });
}

template <typename Others>
void Stream::end_crossing(Crossing& crossing, bool writes, const Others& others) noexcept {
    const bool before = crossing.contested();
    crossing.remove(*queue_, writes);
    if (!before || crossing.contested()) return;
    crossing.forget();
    others([](Stream& other, bool) { other.drop_contested(); });
}

void Stream::begin_crossing(const PlannedObject& planned) {
    Object& object = *planned.object;
    const auto others = [&](const auto& each) {
        for (const auto& user : object.users_)
            if (Stream& other = of(*user.recording); !other.is_disjoint(user.slot))
                each(other, other.writes(user.slot));
    };
    if (!object.crossing_) {
        if (object.users_.empty() || of(*object.users_.front().recording).queue_ == queue_) return;
        object.crossing_ = std::make_unique<Crossing>();
        others([&](const Stream& other, bool writes) { object.crossing_->add(*other.queue_, writes); });
    }
    if (!planned.disjoint) begin_crossing(*object.crossing_, planned.written, others);
}

void Stream::end_crossing(const PlannedObject& planned) noexcept {
    Object& object = *planned.object;
    if (!object.crossing_) return;
    if (!planned.disjoint)
        end_crossing(*object.crossing_, planned.written, [&](const auto& each) {
            for (const auto& user : object.users_)
                if (Stream& other = of(*user.recording); !other.is_disjoint(user.slot)) each(other, false);
        });
    if (object.users_.empty()) object.crossing_.reset();
}

const std::vector<Stream::Crossed>& Stream::crossed() noexcept {
    if (!std::exchange(crossed_changed_, false)) return crossed_;
    crossed_.clear();
    if (device().undeclared_crossing().contested())
        crossed_.push_back({&device().undeclared_crossing(), undeclared_});
    for (const auto& planned : plan_.objects())
        if (Crossing* crossing = planned.object->crossing_.get();
            crossing && crossing->contested() && !planned.disjoint)
            crossed_.push_back({crossing, planned.written});
    return crossed_;
}

void Stream::register_users() {
    note_disjoint();
    const bool several_queues = device().queues().size() > 1;
    undeclared_ = std::any_of(plan_.commands().begin(), plan_.commands().end(),
                              [](const CommandUses& command) { return command.full_barrier; });
    if (several_queues) {
        // An operation may touch anything that it does not declare, so such a stream is ordered with all
        // streams of other queues.
        auto& built = device().built_recordings();
        begin_crossing(device().undeclared_crossing(), undeclared_, [&](const auto& each) {
            for (Recording* other : built) each(of(*other), of(*other).undeclared_);
        });
        built_link_ = static_cast<uint32_t>(built.size());
        built.push_back(this);
        std::vector<Point> points;
        device().add_undeclared(points, false);
        if (undeclared_)
            if (const Point point = device().initial_work().handed_over(); point.timeline)
                merge_point(points, point);
        for (const auto& point : points)
            if (point.timeline != queue_) merge_point(inherited_, point);
    }
    built_after_ = last_.load(std::memory_order_relaxed);
    for (uint32_t slot = 0; slot < plan_.objects().size(); ++slot) {
        auto& planned = plan_.objects()[slot];
        Object& object = *planned.object;
        covers_ = covers_ || planned.covered;
        if (!object.is_init())
            stale_.store(true, std::memory_order_seq_cst);  // destroyed since check(); submit() finds out
        if (several_queues) {
            begin_crossing(planned);
            for (const auto& point : object.left_behind_)
                if (point.timeline != queue_) merge_point(inherited_, point);
            if (planned.used)
                if (const Point point = static_cast<Resource&>(object).initial_point();
                    point.timeline && point.timeline != queue_)
                    merge_point(inherited_, point);
        }
        planned.link = static_cast<uint32_t>(object.users_.size());
        object.users_.push_back({this, slot});
    }
    registered_ = true;
    note_order();
}

void Stream::unregister_users() noexcept {
    if (!registered_) return;
    note_effects();
    registered_ = false;
    settle_covers();
    covers_ = false;
    const bool several_queues = device().queues().size() > 1;
    if (several_queues) {
        auto& built = device().built_recordings();
        built[built_link_] = built.back();
        of(*built[built_link_]).built_link_ = built_link_;
        built.pop_back();
        end_crossing(device().undeclared_crossing(), undeclared_, [&](const auto& each) {
            for (Recording* other : built) each(of(*other), false);
        });
    }
    for (const auto& planned : plan_.objects()) {
        auto& users = planned.object->users_;
        const uint32_t link = planned.link;
        if (link + 1 != users.size()) {
            users[link] = users.back();
            of(*users[link].recording).plan_.objects()[users[link].slot].link = link;
        }
        users.pop_back();
        if (several_queues) end_crossing(planned);
    }
    plan_.objects().clear();
    crossed_.clear();
    crossed_changed_ = false;
    contested_ = 0;
    note_order();
    // These mappings no longer know this stream.
    held_back_.store(0, std::memory_order_release);
}

void Stream::prepare_timestamps() {
    if (timestamp_limit_ == 0) return;
    timed_ = false;
    timed_names_ = names_of_operations();
    const auto needed = static_cast<uint32_t>(operations_.size()) + 1;
    if (needed > query_capacity_) {
        auto& vk = device().vk();
        if (queries_ != VK_NULL_HANDLE)
            vk.vkDestroyQueryPool(device().handle(), std::exchange(queries_, nullptr), nullptr);
        query_capacity_ = 0;
        VkQueryPoolCreateInfo create{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
        create.queryType = VK_QUERY_TYPE_TIMESTAMP;
        create.queryCount = needed;
        check_vk(vk.vkCreateQueryPool(device().handle(), &create, nullptr, &queries_), "vkCreateQueryPool",
                 label().c_str());
        query_capacity_ = needed;
    }
    query_count_ = needed;
}

void Stream::begin_profiling() {
    profiled_ = nullptr;
    Profiler* const profiler = device().profiler();
    if (!profiler) return;
    auto what = std::make_shared<Profiled>();
    what->label = label();
    if (!profiler->times_operations()) what->operations.push_back({label(), {}, 0, 0});
    for (size_t i = 0; i < operations_.size(); ++i) {
        const auto [read, written] = plan_.moved(plan_.commands()[i]);
        if (profiler->times_operations()) {
            what->operations.push_back({operations_[i]->name(), operations_[i]->groups(), read, written});
        } else {
            what->operations.front().read += read;
            what->operations.front().written += written;
        }
    }
    what->queries = std::make_shared<const TimestampQueries>(
        device(), *queue_, static_cast<uint32_t>(what->operations.size()) + 1);
    profiled_ = what;
    profiler->list(commands_, std::move(what));
}

VkCommandBuffer Stream::make() {
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = pool_;
    allocate.level = VK_COMMAND_BUFFER_LEVEL_SECONDARY;
    allocate.commandBufferCount = 1;
    secondaries_.reserve(secondaries_.size() + 1);
    VkCommandBuffer made = VK_NULL_HANDLE;
    check_vk(device().vk().vkAllocateCommandBuffers(device().handle(), &allocate, &made),
             "vkAllocateCommandBuffers", label().c_str());
    secondaries_.push_back(made);
    return made;
}

void Stream::free_secondaries() noexcept {
    if (secondaries_.empty()) [[likely]]
        return;
    device().vk().vkFreeCommandBuffers(device().handle(), pool_, static_cast<uint32_t>(secondaries_.size()),
                                       secondaries_.data());
    secondaries_.clear();
}

void Stream::record_commands() {
    auto& vk = device().vk();
    free_secondaries();
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    check_vk(vk.vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer", label().c_str());
    struct Reset {  // an interrupted recording must not stay open
        Stream& stream;
        bool armed = true;
        ~Reset() {
            if (!armed) return;
            stream.device().vk().vkResetCommandBuffer(stream.commands_, 0);
            stream.free_secondaries();
        }
    } reset{*this};
    const Allocation* slots =
        submission_.deliveries.empty() ? nullptr : submission_.deliveries.front()->slots.get();
    Recorder recorder(vk, commands_, plan_, slots ? slots->block_buffer() : VK_NULL_HANDLE,
                      slots ? slots->offset() : 0, *this);
    // Held while built-in operations read their objects' handles, so that no thread destroys these
    // meanwhile.
    std::unique_lock lock(device().graph_mutex());
    begin_profiling();
    const auto timestamp = [&](uint32_t index) {
        if (queries_ != VK_NULL_HANDLE)
            vk.vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, index);
        if (profiled_) profiled_->stamp(commands_, index, operations_.size());
    };
    if (queries_ != VK_NULL_HANDLE && !resets_queries_on_host_)
        vk.vkCmdResetQueryPool(commands_, queries_, 0, query_count_);
    if (profiled_) profiled_->queries->record_reset(commands_);
    recorder.barrier(barriers_.head);
    // Written after all earlier submissions are done; otherwise the first operation's time would include
    // them.
    timestamp(0);
    auto barrier = barriers_.barriers.cbegin();
    for (uint32_t i = 0; i < operations_.size(); ++i) {
        const Operation& operation = *operations_[i];
        for (; barrier != barriers_.barriers.cend() && barrier->before == i; ++barrier)
            recorder.barrier(*barrier);
        if (operation.calls_out()) {
            {
                const CallingOut calling(*this, lock);
                operation.record(recorder);
            }
            // It may have destroyed objects that the commands use; then the recording cannot continue.
            if (stale_.load(std::memory_order_relaxed) || !is_init()) return;
        } else if (!stale_.load(std::memory_order_relaxed)) {
            operation.record(recorder);
        }
        timestamp(i + 1);
    }
    for (; barrier != barriers_.barriers.cend(); ++barrier) recorder.barrier(*barrier);
    recorder.barrier(barriers_.tail);
    lock.unlock();
    check_vk(vk.vkEndCommandBuffer(commands_), "vkEndCommandBuffer", label().c_str());
    reset.armed = false;
}

// -- submitting: the built commands go to the queue, and their end is collected -----------------------------

// Lasts from the check of what other threads change to the new last point, which is one driver call.
// make_stale() waits for its end.
class Stream::Submitting {
public:
    explicit Submitting(Stream& stream) : flag_(stream.submitting_) {
        flag_.store(true, std::memory_order_seq_cst);
    }
    Submitting(const Submitting&) = delete;
    Submitting& operator=(const Submitting&) = delete;
    ~Submitting() { flag_.store(false, std::memory_order_release); }

private:
    std::atomic<bool>& flag_;
};

Point Stream::last_point() const noexcept { return point_of(last_.load(std::memory_order_acquire)); }

Point Stream::point_of(uint64_t last) const noexcept {
    if (last == 0) return {};
    if (last & own_bit) return {own_.timeline, last & ~own_bit};
    return {queue_, last};
}

bool Stream::is_working() noexcept {
    if (!is_running()) return false;
    const uint64_t number = last_.load(std::memory_order_acquire);
    const Point last = point_of(number);
    if (!last.timeline || last.timeline->failed(last.value)) return true;
    return !((number & own_bit) ? last.timeline->passed(last.value)
                                : last.timeline->known_reached(last.value));
}

void Stream::require_not_running() {
    if (is_running() && (is_working() || !poll()))
        throw Error(ErrorKind::failed_precondition,
                    "The " + label() + " is already running. Call eval_await() before evaluating it again");
}

bool Stream::make_ready() {
    require_init("evaluate");
    require_not_running();
    if (!built_ || stale_.load(std::memory_order_relaxed)) [[unlikely]] {
        if (operations_.empty()) {
            recording_ = false;
            return false;
        }
        build();
    }
    recording_ = false;
    return true;
}

bool Stream::fit_to_submit() const noexcept {
    return !stale_.load(std::memory_order_seq_cst) && held_back_.load(std::memory_order_seq_cst) == 0;
}

void Stream::check_interference() {
    {
        const std::lock_guard lock(device().graph_mutex());
        check_mappings();
    }
    require_init("evaluate");
}

void Stream::flush() const {
    if (!prepares_) [[likely]]
        return;
    if (resets_queries_on_host_) device().vk().vkResetQueryPool(device().handle(), queries_, 0, query_count_);
    if (!needs_flush_) return;
    if (undeclared_) device().memory().flush_in_place();
    device().flush(plan_.flushes(), label().c_str());
}

void Stream::await_edges() const {
    if (!needs_flush_ || !device().deliveries().any()) return;
    for (const Point& point : device().deliveries().in_the_way(plan_.flushes()))
        point.timeline->wait_until(point.value);
}

void Stream::require_clear_of(std::span<const VkMappedMemoryRange> edges) {
    const VkMappedMemoryRange* edge = find_overlap(edges, plan_.flushes());
    if (!edge) return;
    std::string name = "a tensor";
    {
        const std::lock_guard lock(device().graph_mutex());
        for (const auto& planned : plan_.objects()) {
            const auto* resource = dynamic_cast<const Resource*>(planned.object);
            if (!resource || !resource->is_init() || !resource->has_host_copy() ||
                !resource->host_copy_made())
                continue;
            const VkMappedMemoryRange range = resource->host_memory().mapped_range();
            if (find_overlap({&range, 1}, {edge, 1})) name = "the " + resource->label();
        }
    }
    throw Error(
        ErrorKind::failed_precondition,
        "The " + label() + " cannot be submitted: it syncs bytes of " + name + " that lie within " +
            std::to_string(edge->size) +
            " bytes of the end of a part which OpSyncLocal is to bring to the host before, in work that "
            "is held or in the same submission. On this memory, which is not coherent, the part has to "
            "arrive first: submit the two apart, or sync parts that begin and end at multiples of " +
            std::to_string(device().memory().atom()) + " bytes (nonCoherentAtomSize)");
}

void Stream::note_submitted(uint64_t last) noexcept {
    last_.store(last, std::memory_order_release);
    running_.store(true, std::memory_order_release);
    timed_ = true;
}

bool Stream::submit() {
    const Driving driving(*this);
    return submit_driven();
}

inline void Stream::send() {
    flush();
    try {
        note_submitted(queue_->submit(submission_));
    } catch (const Error& error) {
        rethrow_unsubmitted({this}, error);
    }
    if (undeclared_) [[unlikely]]
        queue_->note_undeclared(last_point().value);
}

bool Stream::submit_driven() {
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        if (!make_ready()) return false;
        if (needs_flush_) [[unlikely]]
            await_edges();
        if (device().gate().holds()) [[unlikely]] {
            submit_driven(device(), *queue_, {this}, {});
            return true;
        }
        if (is_ordered_.load(std::memory_order_acquire) || has_waits_) [[unlikely]] {
            if (submit_in_order()) return true;
        } else {
            const Submitting submitting(*this);
            // A stream of another queue that was built a moment ago either sees this stream submitting, or
            // is seen here.
            if (is_ordered_.load(std::memory_order_seq_cst)) continue;
            if (fit_to_submit()) [[likely]] {
                send();
                return true;
            }
        }
        check_interference();
    }
    throw Error(ErrorKind::failed_precondition,
                "The " + label() + " cannot be evaluated: an operation changes it each time it is recorded");
}

bool Stream::submit_in_order() {
    std::unique_lock order(device().order_mutex());
    const std::vector<Point> points = ends_on_other_queues(1);
    if (!promised(points)) {
        order.unlock();
        submit_driven(device(), *queue_, {this}, {});
        return true;
    }
    submission_.clear_waits();
    for (const auto& point : points) submission_.add_wait(point);
    has_waits_ = !points.empty();
    {
        const Submitting submitting(*this);
        if (!fit_to_submit()) return false;
        send();
    }
    note_crossed();
    return true;
}

void Stream::require_possible(const SubmitOrder& order) {
    for (const Point& wait : order.waits)
        for (const Point& signal : order.signals)
            if (wait.timeline == signal.timeline && wait.value >= signal.value &&
                wait.timeline->promised() < wait.value)
                throw Error(ErrorKind::invalid_argument,
                            "The work waits for the value " + std::to_string(wait.value) +
                                " of a semaphore that it signals itself to " + std::to_string(signal.value) +
                                ": it would never start");
}

void Stream::require_once(const std::vector<Stream*>& streams) {
    for (size_t i = 0; i < streams.size(); ++i)
        if (std::find(streams.begin(), streams.begin() + static_cast<ptrdiff_t>(i), streams[i]) !=
            streams.begin() + static_cast<ptrdiff_t>(i))
            throw Error(
                ErrorKind::invalid_argument,
                "The " + streams[i]->label() +
                    " is given twice: one submission runs it once. Record its operations in a second one");
}

std::vector<Stream*> Stream::make_ready(const std::vector<Stream*>& streams) {
    std::vector<Stream*> ready;
    // While one stream is built, foreign code or another thread may destroy another one.
    std::optional<Building> building;
    if (streams.size() > 1) building.emplace(streams);
    for (Stream* stream : streams)
        if (stream->make_ready()) ready.push_back(stream);
    return ready;
}

void Stream::require_together(Device& device, const std::vector<Stream*>& streams, const SubmitOrder& order) {
    require_possible(order);
    require_once(streams);
    std::deque<Driving> driving;
    for (Stream* stream : streams) driving.emplace_back(*stream);
    const std::vector<Stream*> ready = make_ready(streams);
    Gate& gate = device.gate();
    const std::lock_guard order_lock(device.order_mutex());
    const bool held = gate.holds() || !promised(order.waits);
    // The last queue's submission signals, which may release held work.
    const auto last = std::find_if(streams.rbegin(), streams.rend(), [&](const Stream* stream) {
                          return stream->queue_ != streams.back()->queue_;
                      }).base();
    const std::vector<Point> later = gate.released_by(order.signals);
    for (size_t i = 0; i < ready.size(); ++i) {
        Stream& stream = *ready[i];
        if (!stream.fit_to_submit()) stream.check_interference();
        if (!stream.needs_flush_) continue;
        const bool signals = std::find(last, streams.end(), &stream) != streams.end();
        stream.require_clear_of(gate.edges(signals ? later : std::vector<Point>{}));
        // Unless the submission is held, the host waits for deliveries of other queues.
        for (size_t j = 0; j < i; ++j)
            if (held || ready[j]->queue_ == stream.queue_)
                for (const auto& earlier : ready[j]->submission_.deliveries)
                    stream.require_clear_of(earlier->edges);
    }
}

void Stream::submit_together(Device& device, Queue& queue, const std::vector<Stream*>& streams,
                             const SubmitOrder& order) {
    require_possible(order);
    require_once(streams);
    std::deque<Driving> driving;
    for (Stream* stream : streams) driving.emplace_back(*stream);
    submit_driven(device, queue, streams, order);
}

void Stream::submit_driven(Device& device, Queue& queue, const std::vector<Stream*>& streams,
                           const SubmitOrder& order) {
    Gate& gate = device.gate();
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        const std::vector<Stream*> ready = make_ready(streams);
        for (const Stream* stream : ready) stream->await_edges();
        if (ready.empty() && order.waits.empty() && order.signals.empty()) return;

        std::unique_lock order_lock(device.order_mutex());
        Submission submission;
        submission.queue = &queue;
        submission.order = order;
        const std::vector<Point> later =
            gate.holds() ? gate.released_by(order.signals) : std::vector<Point>{};
        for (Stream* stream : ready) {
            if (stream->needs_flush_) {
                for (const auto& earlier : submission.deliveries) stream->require_clear_of(earlier->edges);
                if (gate.holds()) stream->require_clear_of(gate.edges(later));
            }
            for (const Point& point : stream->ends_on_other_queues(ready.size()))
                if (!std::any_of(later.begin(), later.end(),
                                 [&](const Point& p) { return p.timeline == point.timeline; }))
                    merge_point(submission.order.waits, point);
            if (gate.holds()) stream->merge_held(submission.order.waits, later);
            submission.commands.push_back(stream->commands_);
            submission.undeclared = submission.undeclared || stream->undeclared_;
            for (const auto& each : stream->submission_.deliveries) submission.deliveries.push_back(each);
        }
        if (!promised(submission.order.waits)) {
            if (uncover(device, ready)) continue;
            for (Stream* stream : ready)
                if (!stream->own_.timeline) stream->own_ = device.take_timeline();
            // A cancelled run is forgotten, and must not make the effects of the run before it forgotten
            // too.
            const std::lock_guard graph(device.graph_mutex());
            for (Stream* stream : ready) stream->note_effects();
        }
        const auto hold = [&](Submission& held) {
            held.label = label_of(ready);
            for (Stream* stream : ready) held.ends.push_back(stream->next_own());
        };

        Stream* unfit = nullptr;
        uint64_t value = 0;
        {
            std::deque<Submitting> submitting;
            for (Stream* stream : ready) submitting.emplace_back(*stream);
            for (Stream* stream : ready)
                if (!stream->fit_to_submit()) unfit = stream;
            if (!unfit) {
                for (const Stream* stream : ready) stream->flush();
                try {
                    value = gate.pass(submission, hold);
                } catch (const Error& error) {
                    rethrow_unsubmitted(ready, error);
                }
                for (uint32_t i = 0; i < ready.size(); ++i) ready[i]->rank_ = i;
                for (Stream* stream : ready)
                    stream->note_submitted(value ? value : stream->own_.value | own_bit);
            }
        }
        if (!unfit)
            for (Stream* stream : ready) stream->note_crossed();
        order_lock.unlock();
        if (!unfit) {
            if (value) Gate::note_uses(submission, value);
            gate.release();
            return;
        }
        unfit->check_interference();
    }
    throw Error(ErrorKind::failed_precondition,
                "The sequences cannot be evaluated: an operation changes them each time they are recorded");
}

std::string Stream::label_of(const std::vector<Stream*>& streams) {
    if (streams.empty()) return "submission without sequences";
    std::string text;
    for (const Stream* stream : streams)
        text += (text.empty() ? "" : " and the ") + stream->label() + " (" +
                listed(stream->names_of_operations()) + ")";
    return text;
}

std::vector<std::string> Stream::cancel_held() {
    const Point last = last_point();
    if (!is_running() || !last.timeline) return {};
    auto told = device().gate().cancel(last, "when it was destroyed");
    if (!told.empty()) device().wake_waiters();
    return told;
}

Point Stream::next_own() { return {own_.timeline, ++own_.value}; }

std::vector<Point> Stream::ends_on_other_queues(size_t submitted) {
    const std::lock_guard lock(device().graph_mutex());
    if (std::erase_if(inherited_, [](const Point& point) { return point.timeline->passed(point.value); }))
        note_order();
    std::vector<Point> points = inherited_;
    for (const auto& [crossing, writes] : crossed()) {
        crossing->collect(*queue_, writes, points);
        crossing->reserve(submitted);
    }
    return points;
}

void Stream::note_crossed() noexcept {
    const std::lock_guard lock(device().graph_mutex());
    const Point last = last_point();
    for (const auto& [crossing, writes] : crossed()) crossing->note(last, writes);
}

void Stream::merge_held(std::vector<Point>& waits, const std::vector<Point>& later) {
    const auto merge = [&](const Point& point) {
        if (!point.timeline || point.timeline->promised() >= point.value) return;  // cancelled, or submitted
        if (std::none_of(later.begin(), later.end(),
                         [&](const Point& p) { return p.timeline == point.timeline; }))
            merge_point(waits, point);
    };
    for (const Point& end : device().gate().ends(!undeclared_)) merge(end);
    const std::lock_guard lock(device().graph_mutex());
    for (const auto& planned : plan_.objects()) {
        for (const Point& point : planned.object->left_behind_) merge(point);
        for (const auto& user : planned.object->users_)
            if (const Stream& other = of(*user.recording);
                &other != this && (other.undeclared_ || ((planned.written || other.writes(user.slot)) &&
                                                         !planned.disjoint && !other.is_disjoint(user.slot))))
                merge(other.last_point());
    }
}

bool Stream::poll() {
    if (!is_running()) return true;
    const uint64_t number = last_.load(std::memory_order_acquire);
    const Point last = point_of(number);
    if (!last.timeline) return true;  // cancelled, and another thread was told
    try {
        if (!last.timeline->reached(last.value)) return false;
    } catch (const Error& error) {
        // Now that a thread is told of the failure, the stream is not running any more. eval_await() is
        // told too.
        if (last.timeline->failed(last.value)) finish(number);
        rethrow(error);
    }
    finish(number);
    return true;
}

bool Stream::wait(uint64_t nanoseconds) {
    const uint64_t number = last_.load(std::memory_order_acquire);
    const Point last = point_of(number);
    if (!last.timeline)
        return true;  // nothing was submitted, or it was cancelled and another thread was told
    if (!is_running() && !last.timeline->failed(last.value)) return true;
    try {
        if (!last.timeline->wait(last.value, nanoseconds, &was_long_)) return false;
    } catch (const Error& error) {
        if (last.timeline->failed(last.value)) forget_cancelled();
        rethrow(error);
    }
    finish(number);
    return true;
}

// The first operation that has not ended according to its timestamp, or all operations if there are no
// timestamps.
std::string Stream::what_ran() const {
    const std::vector<std::string>& names =
        timed_ && !timed_names_.empty() ? timed_names_ : names_of_operations();
    std::vector<std::array<uint64_t, 2>> ticks(timed_ && timestamp_limit_ != 0 ? query_count_ : 0);
    if (!ticks.empty() && ticks.size() == names.size() + 1) {
        const VkResult result = device().vk().vkGetQueryPoolResults(
            device().handle(), queries_, 0, query_count_, ticks.size() * sizeof(ticks[0]), ticks.data(),
            sizeof(ticks[0]), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT);
        if (result == VK_SUCCESS || result == VK_NOT_READY)
            for (size_t i = 0; i < names.size(); ++i)
                if (!ticks[i + 1][1])
                    return names[i] + ", operation " + std::to_string(i + 1) + " of " +
                           std::to_string(names.size()) + " of the " + label();
    }
    return what_runs(names);
}

std::string Stream::what_runs(const std::vector<std::string>& names) const {
    return (names.size() > 1 ? "one of " : "") + listed(names) + " of the " + label();
}

void Stream::explain_loss() const {
    if (!device().lost() || !is_running()) return;
    // Held work did not run.
    const Point last = last_point();
    if (!last.timeline || last.timeline->promised() < last.value) return;
    // If another thread is recording or submitting now, only the sequence's name is known.
    std::string work = "the " + label();
    if (take_turn(Turn::looking)) {
        work = what_ran();
        end_turn();
    }
    device().note_lost_work(work);
}

void Stream::rethrow(const Error& error) const {
    if (error.kind() != ErrorKind::device_lost || !device().lost_work().empty()) throw;
    explain_loss();
    const std::string work = device().lost_work();
    if (work.empty()) throw;
    throw Error(error.kind(), std::string(error.what()) + ". It was lost during " + work, error.vk_result());
}

void Stream::rethrow_unsubmitted(const std::vector<Stream*>& streams, const Error& error) {
    if (error.kind() != ErrorKind::device_lost || streams.empty()) throw;
    Device& device = streams.front()->device();
    // Work in flight was running; the wait for that work will name it.
    if (!device.lost_work().empty() || !device.known_idle()) throw;
    std::string work = "the submission of ";
    for (size_t i = 0; i < streams.size(); ++i)
        work += (i ? ", " : "") + streams[i]->what_runs(streams[i]->names_of_operations());
    device.note_lost_work(work);
    throw Error(error.kind(), std::string(error.what()) + ". It was lost during " + work, error.vk_result());
}

// Nothing of the submission ran, and a thread was told: from here on, the stream behaves as if it had not
// been submitted.
void Stream::forget_cancelled() noexcept {
    while (collecting_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    // Another thread may have been told meanwhile and submitted again.
    uint64_t last = last_.load(std::memory_order_acquire);
    const bool ran = is_running();
    if (const Point point = point_of(last); point.timeline && point.timeline->failed(point.value))
        if (last_.compare_exchange_strong(last, 0, std::memory_order_acq_rel) && ran)
            running_.store(false, std::memory_order_release);
    collecting_.store(false, std::memory_order_release);
}

bool Stream::is_complete() {
    const Point last = last_point();
    if (!last.timeline) return true;
    try {
        return last.timeline->reached(last.value);
    } catch (const Error&) {
        (void)poll();
        throw;
    }
}

void Stream::check_mappings() {
    for (uint32_t slot = 0; slot < plan_.objects().size(); ++slot) {
        Object& object = *plan_.objects()[slot].object;
        if (object.kind() == ObjectKind::buffer || object.kind() == ObjectKind::image)
            static_cast<Resource&>(object).require_unmapped(
                [&](const Object::Held& held) { return touches(slot, held); });
    }
}

void Stream::finish(uint64_t last) noexcept {
    // Fences and waits of other threads may get here for the same submission, or for one that was followed
    // by another. Its writes are visible already: the thread that learned of the end has received them (see
    // sync/delivery.hpp).
    while (collecting_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    if (is_running() && last_.load(std::memory_order_acquire) == last)
        running_.store(false, std::memory_order_release);
    collecting_.store(false, std::memory_order_release);
}

// -- the end ------------------------------------------------------------------------------------------------

void Stream::release(std::vector<Point> points) {
    // From here on, submissions are refused, and a call that has begun is short unless it runs foreign
    // code.
    (void)make_stale();
    // Take the turn as a reader: another thread that wants to drive waits for the end of this, and then
    // fails require_init().
    for (int tries = 0; !take_turn(Turn::looking);) {
        {
            const std::lock_guard lock(device().graph_mutex());
            if (is_calling_out()) {
                release_later_ = true;
                return;
            }
        }
        let_others_go_on(tries);
    }
    struct Ending {
        const Stream& stream;
        ~Ending() { stream.end_turn(); }
    } const ending{*this};
    release_driven(std::move(points));
}

// Work of other streams still has to come after `last`, although this stream leaves the crossings.
void Stream::pass_on(Point last) {
    const auto leave_to = [&](Stream& other, bool conflicts) {
        if (!conflicts || other.queue_ == queue_) return;
        merge_point(other.inherited_, last);
        other.note_order();
    };
    if (device().undeclared_crossing().contested())
        for (Recording* other : device().built_recordings())
            leave_to(of(*other), undeclared_ || of(*other).undeclared_);
    for (const auto& planned : plan_.objects()) {
        Object& object = *planned.object;
        merge_point(object.left_behind_, last);
        if (!object.crossing_ || !object.crossing_->contested() || planned.disjoint) continue;
        for (const auto& user : object.users_)
            if (Stream& other = of(*user.recording); !other.is_disjoint(user.slot))
                leave_to(other, planned.written || other.writes(user.slot));
    }
}

void Stream::release_driven(std::vector<Point> points) {
    struct Payload {
        Device& device;
        VkCommandPool pool;
        VkQueryPool queries;
        std::vector<OperationPtr> operations;
        StreamPlan::Kept kept;
        std::vector<std::shared_ptr<Object>> disjoint;
        std::vector<std::shared_ptr<const Delivery>> deliveries;
        std::shared_ptr<const Profiled> profiled;
        explicit Payload(Device& d) : device(d), pool(VK_NULL_HANDLE), queries(VK_NULL_HANDLE) {}
        ~Payload() {
            device.vk().vkDestroyCommandPool(device.handle(), pool, nullptr);
            device.vk().vkDestroyQueryPool(device.handle(), queries, nullptr);
        }
    };
    auto payload = std::make_shared<Payload>(device());
    {
        const std::lock_guard lock(device().graph_mutex());
        // When this returns, a submission in progress has either been made or been refused.
        const Point point = make_stale();
        if (point.timeline && is_running()) {
            merge_point(points, point);
            pass_on(point);
        }
        unregister_users();
        payload->disjoint = std::move(disjoint_);
        disjoint_.clear();
        payload->profiled = std::move(profiled_);
        if (Profiler* const profiler = device().profiler()) profiler->forget(commands_);
    }
    running_.store(false, std::memory_order_release);
    payload->pool = std::exchange(pool_, nullptr);
    payload->queries = std::exchange(queries_, nullptr);
    payload->operations = std::move(operations_);
    payload->kept = plan_.take_kept();
    payload->deliveries = std::move(submission_.deliveries);
    commands_ = VK_NULL_HANDLE;
    operations_.clear();
    device().retired().push(std::move(points), std::move(payload));
}

}  // namespace kp
