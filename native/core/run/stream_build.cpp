// How a list of operations becomes a command buffer, what has to be on the device before, and who is to know of it.

#include "base/error.hpp"
#include "base/long_call.hpp"
#include "device/device.hpp"
#include "device/initial_work.hpp"
#include "resource/resource.hpp"
#include "run/stream.hpp"

#include <algorithm>
#include <thread>

namespace kp {
namespace {

// Planning needs room that every stream on a thread can share.
HazardPlanner& planner() {
    thread_local HazardPlanner instance;
    return instance;
}

thread_local uint32_t calls_out = 0;  // how deep this thread is in code that is not ours

void remove(std::vector<Stream*>& streams, const Stream* stream) { std::erase(streams, stream); }

}  // namespace

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
    std::unique_lock<std::mutex>& graph_;
};

void Stream::build() {
    Stream* const self = this;
    const Building building({&self, 1});
    built_ = false;
    make_command_buffer();
    prepare_timestamps();
    StreamPlan::Kept outdated;  // let go of after the lock: destructors may be slow
    for (auto missing = plan(outdated); !missing.empty(); missing = plan(outdated)) {
        {
            std::unique_lock graph(device().graph_mutex());
            const CallingOut calling(*this, graph);
            long_call([&missing] {
                // All of them first, so that what they collect is handed over at once.
                for (const auto& resource : missing) resource->bring_contents();
                for (const auto& resource : missing) (void)resource->initial_end();
            });
        }
        require_init("evaluate");
    }
    prepare_host_side();
    record_commands();
    built_ = true;
}

std::vector<std::shared_ptr<Resource>> Stream::plan(StreamPlan::Kept& outdated) {
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
        return user.stream->covers(user.slot) &&
               user.stream->caller_.load(std::memory_order_relaxed) == std::this_thread::get_id();
    });
}

void Stream::come_after(Point point) {
    if (!undeclared_ || point.timeline == queue_) return;
    merge_point(inherited_, point);
    note_rivals();
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
            for (const auto& user : object.users_) {
                Stream& other = *user.stream;
                if ((planned.written || other.plan_.objects()[user.slot].written) &&
                    !apart_from(other, object))
                    order_with(other);
            }
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
    note_rivals();
}

void Stream::unregister_users() noexcept {
    if (!registered_) return;
    note_effects();
    registered_ = false;
    settle_covers();
    covers_ = false;
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

}  // namespace kp
