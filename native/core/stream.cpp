#include "stream.hpp"

#include "device.hpp"
#include "error.hpp"

#include <algorithm>
#include <thread>

namespace kp {
namespace {

// Planning needs room that every stream on a thread can share.
HazardPlanner& planner() {
    thread_local HazardPlanner instance;
    return instance;
}

void remove(std::vector<Stream*>& streams, const Stream* stream) { std::erase(streams, stream); }

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
    // Queues that only move memory may write timestamps and not record the reset of their queries.
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

void Stream::wait_for_turn() const {
    while (!take_turn(Turn::driving)) {
        if (turn_.load(std::memory_order_relaxed) == Turn::driving) refuse_second_thread();
        std::this_thread::yield();
    }
}

// The turn of a thread that only looks. Code that the stream is calling out to may look at any moment: nothing changes meanwhile.
class Stream::Looking {
public:
    explicit Looking(const Stream& stream) : stream_(stream) {
        while (!stream_.take_turn(Turn::looking)) {
            const std::thread::id caller = stream_.caller_.load(std::memory_order_acquire);
            if (caller == std::this_thread::get_id()) {
                inside_ = true;
                return;
            }
            if (caller != std::thread::id()) stream_.refuse_second_thread();
            std::this_thread::yield();
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

void Stream::require_idle(const char* action) const {
    require_init(action);
    if (is_running())
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
        throw Error(ErrorKind::out_of_memory,
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

void Stream::drop_operations() {
    if (registered_) {
        const std::lock_guard lock(device().graph_mutex());
        unregister_users();
    }
    // Only now: the operations kept alive the objects whose lists we stood in.
    operations_.clear();
    (void)plan_.take_kept();
}

void Stream::rerecord() {
    const Driving driving(*this);
    require_idle("re-record");
    std::vector<OperationPtr> now;
    for (size_t i = 0; i < operations_.size(); ++i) {
        OperationPtr renewed = operations_[i]->renewed();
        if (!renewed) continue;
        if (now.empty()) now = operations_;
        now[i] = std::move(renewed);
    }
    if (!now.empty()) {
        if (registered_) {
            const std::lock_guard lock(device().graph_mutex());
            unregister_users();
        }
        operations_.swap(now);
        // Only now, as in drop_operations.
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
    // submit() raises this flag before it looks at stale_, and only for the length of one driver call.
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
            const std::lock_guard lock(device().graph_mutex());  // set_name() may look for it
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

Stream::Building::Building(std::span<Stream* const> streams) {
    if (!streams.front()->together_.empty()) return;  // one of several that are marked already
    streams_ = streams;
    for (Stream* stream : streams_) stream->together_ = streams_;
}

Stream::Building::~Building() {
    for (Stream* stream : streams_) {
        stream->together_ = {};
        // Set by others only while we called out.
        if (!std::exchange(stream->release_later_, false)) continue;
        try {
            stream->release_driven({});
        } catch (...) {
            continue;  // out of host memory: it goes with the device
        }
    }
}

// While code runs that is not ours. The graph mutex is let go of meanwhile: that code may take locks of its own.
class Stream::CallingOut {
public:
    CallingOut(const Stream& stream, std::unique_lock<std::mutex>& graph)
        : streams_(stream.together_), graph_(graph) {
        mark(std::this_thread::get_id());
        graph_.unlock();
    }
    CallingOut(const CallingOut&) = delete;
    CallingOut& operator=(const CallingOut&) = delete;
    ~CallingOut() {
        graph_.lock();
        mark({});
    }

private:
    void mark(std::thread::id id) const {
        for (Stream* stream : streams_) stream->caller_.store(id, std::memory_order_release);
    }

    std::span<Stream* const> streams_;
    std::unique_lock<std::mutex>& graph_;
};

void Stream::build() {
    Stream* const self = this;
    const Building building({&self, 1});
    built_ = false;
    make_command_buffer();
    prepare_timestamps();
    std::vector<std::shared_ptr<Object>> outdated;  // let go of after the lock: destructors may be slow
    {
        const std::lock_guard lock(device().graph_mutex());
        // Whoever destroys waits for the lock: what is there now stays while the plan is made.
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
        plan(outdated);
        check_mappings();
        register_users();
    }
    prepare_host_side();
    record_commands();
    built_ = true;
}

void Stream::plan(std::vector<std::shared_ptr<Object>>& outdated) {
    unregister_users();
    outdated = plan_.take_kept();
    plan_.begin(device().next_epoch(), device().memory().atom());
    for (const auto& operation : operations_) {
        plan_.begin_operation();
        operation->declare(plan_);
    }
    plan_.settle_host_side();
    planner().plan(plan_.commands(), plan_.uses(), plan_.host_visible(), barriers_);
}

void Stream::prepare_host_side() {
    submission_.deliveries.clear();
    Delivery delivery;
    delivery.invalidates = plan_.invalidates();
    delivery.all_in_place = undeclared_ && device().memory().in_place_needs_sync();
    needs_flush_ = !plan_.flushes().empty() || delivery.all_in_place;
    prepares_ = needs_flush_ || resets_queries_on_host_;
    if (const uint64_t bytes = plan_.slot_bytes()) {
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

void Stream::order_with(Stream& other) {
    if (other.queue_ == queue_ || std::find(rivals_.begin(), rivals_.end(), &other) != rivals_.end()) return;
    rivals_.push_back(&other);
    other.rivals_.push_back(this);
    other.has_rivals_.store(true, std::memory_order_seq_cst);
}

bool Stream::apart_from(const Stream& other, const Object& object) const noexcept {
    const auto lists = [&](const Stream& stream) {
        return std::any_of(stream.disjoint_.begin(), stream.disjoint_.end(),
                           [&](const auto& each) { return each.get() == &object; });
    };
    return lists(*this) || lists(other);
}

void Stream::register_users() {
    const bool several_queues = device().queues().size() > 1;
    undeclared_ = std::any_of(plan_.commands().begin(), plan_.commands().end(),
                              [](const CommandUses& command) { return command.full_barrier; });
    if (several_queues) {
        // What an operation does not declare may touch anything: such a stream is ordered with all of other queues.
        for (Stream* other : device().built_streams())
            if (undeclared_ || other->undeclared_) order_with(*other);
        device().built_streams().push_back(this);
        std::vector<Point> points;
        device().add_undeclared(points, false);
        for (const auto& point : points)
            if (point.timeline != queue_) merge_point(inherited_, point);
    }
    for (uint32_t slot = 0; slot < plan_.objects().size(); ++slot) {
        auto& planned = plan_.objects()[slot];
        Object& object = *planned.object;
        if (planned.written && (object.kind() == ObjectKind::buffer || object.kind() == ObjectKind::image))
            static_cast<Resource&>(object).note_on_device();
        if (!object.is_init())
            stale_.store(true, std::memory_order_seq_cst);  // destroyed since check(); submit() finds out
        if (several_queues) {
            for (const auto& user : object.users_) {
                Stream& other = *user.stream;
                if ((planned.written || other.plan_.objects()[user.slot].written) &&
                    !apart_from(other, object))
                    order_with(other);
            }
            for (const auto& point : object.left_behind_)
                if (point.timeline != queue_) merge_point(inherited_, point);
        }
        planned.link = static_cast<uint32_t>(object.users_.size());
        object.users_.push_back({this, slot});
    }
    registered_ = true;
    note_rivals();
}

void Stream::unregister_users() noexcept {
    if (!std::exchange(registered_, false)) return;
    remove(device().built_streams(), this);
    for (const auto& planned : plan_.objects()) {
        auto& users = planned.object->users_;
        const uint32_t link = planned.link;
        if (link + 1 != users.size()) {
            users[link] = users.back();
            users[link].stream->plan_.objects()[users[link].slot].link = link;
        }
        users.pop_back();
    }
    plan_.objects().clear();
    for (Stream* rival : rivals_) {
        remove(rival->rivals_, this);
        rival->note_rivals();
    }
    rivals_.clear();
    note_rivals();
    // Those mappings no longer know this stream.
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

void Stream::write_barrier(const Barrier& barrier) const {
    VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER};
    memory.srcAccessMask = barrier.src_access;
    memory.dstAccessMask = barrier.dst_access;
    const bool accesses = (barrier.src_access | barrier.dst_access) != 0;
    device().vk().vkCmdPipelineBarrier(commands_, barrier.src_stages, barrier.dst_stages, 0, accesses ? 1 : 0,
                                       &memory, 0, nullptr, 0, nullptr);
}

void Stream::record_commands() {
    auto& vk = device().vk();
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    check_vk(vk.vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer", label().c_str());
    struct Reset {  // a recording that was broken off must not stay open
        Stream& stream;
        bool armed = true;
        ~Reset() {
            if (armed) stream.device().vk().vkResetCommandBuffer(stream.commands_, 0);
        }
    } reset{*this};
    const Allocation* slots =
        submission_.deliveries.empty() ? nullptr : submission_.deliveries.front()->slots.get();
    Recorder recorder(vk, commands_, plan_, slots ? slots->block_buffer() : VK_NULL_HANDLE,
                      slots ? slots->offset() : 0);
    // Held while our own operations read their objects' handles, so that nobody destroys those meanwhile.
    std::unique_lock lock(device().graph_mutex());
    const auto timestamp = [&](VkPipelineStageFlagBits stage, uint32_t index) {
        if (queries_ != VK_NULL_HANDLE) vk.vkCmdWriteTimestamp(commands_, stage, queries_, index);
    };
    if (queries_ != VK_NULL_HANDLE && !resets_queries_on_host_)
        vk.vkCmdResetQueryPool(commands_, queries_, 0, query_count_);
    if (barriers_.head.src_stages != 0) write_barrier(barriers_.head);
    // Once all that was submitted before is done, or the first operation's time would include it.
    timestamp(VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0);
    auto barrier = barriers_.barriers.cbegin();
    for (uint32_t i = 0; i < operations_.size(); ++i) {
        const Operation& operation = *operations_[i];
        for (; barrier != barriers_.barriers.cend() && barrier->before == i; ++barrier)
            write_barrier(*barrier);
        if (operation.calls_out()) {
            {
                const CallingOut calling(*this, lock);
                operation.record(recorder);
            }
            // It may have destroyed what the commands so far use: then they are not fit to go on from.
            if (stale_.load(std::memory_order_relaxed) || !is_init()) return;
        } else if (!stale_.load(std::memory_order_relaxed)) {
            operation.record(recorder);
        }
        timestamp(VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, i + 1);
    }
    for (; barrier != barriers_.barriers.cend(); ++barrier) write_barrier(*barrier);
    if (barriers_.tail.src_stages != 0) write_barrier(barriers_.tail);
    lock.unlock();
    check_vk(vk.vkEndCommandBuffer(commands_), "vkEndCommandBuffer", label().c_str());
    reset.armed = false;
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

void Stream::release(std::vector<Point> points) {
    // From here on what is submitted is refused, and a call that has begun is short unless it calls out.
    (void)make_stale();
    // As one who looks: another thread that would drive waits this out, and is told of the end.
    while (!take_turn(Turn::looking)) {
        {
            const std::lock_guard lock(device().graph_mutex());
            if (is_calling_out()) {
                release_later_ = true;
                return;
            }
        }
        std::this_thread::yield();
    }
    struct Ending {
        const Stream& stream;
        ~Ending() { stream.end_turn(); }
    } const ending{*this};
    release_driven(std::move(points));
}

void Stream::release_driven(std::vector<Point> points) {
    struct Payload {
        Device& device;
        VkCommandPool pool;
        VkQueryPool queries;
        std::vector<OperationPtr> operations;
        std::vector<std::shared_ptr<Object>> kept;
        std::vector<std::shared_ptr<Object>> disjoint;
        std::vector<std::shared_ptr<const Delivery>> deliveries;
        explicit Payload(Device& d) : device(d), pool(VK_NULL_HANDLE), queries(VK_NULL_HANDLE) {}
        ~Payload() {
            device.vk().vkDestroyCommandPool(device.handle(), pool, nullptr);
            device.vk().vkDestroyQueryPool(device.handle(), queries, nullptr);
        }
    };
    auto payload = std::make_shared<Payload>(device());
    {
        const std::lock_guard lock(device().graph_mutex());
        // A submission that is just being made is either through when this returns, or refused.
        const Point point = make_stale();
        if (point.timeline && is_running()) {
            merge_point(points, point);
            for (const auto& planned : plan_.objects()) merge_point(planned.object->left_behind_, point);
            // What is built already looks at its rivals only, not at its objects.
            for (Stream* rival : rivals_) merge_point(rival->inherited_, point);
        }
        unregister_users();
        payload->disjoint = std::move(disjoint_);
        disjoint_.clear();
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
