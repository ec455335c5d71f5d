#include "run/stream.hpp"

#include "base/error.hpp"
#include "device/device.hpp"
#include "resource/resource.hpp"

#include <algorithm>
#include <thread>

namespace kp {
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
    may_cover_ = true;
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
        StreamPlan::Kept kept;
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
