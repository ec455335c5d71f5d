#include "device/device.hpp"

#include "base/error.hpp"
#include "base/host_heap.hpp"
#include "device/initial_work.hpp"
#include "device/profiler.hpp"
#include "device/staging.hpp"
#include "pipeline/debugger.hpp"
#include "pipeline/pipeline_store.hpp"
#include "pipeline/sampler.hpp"

#include <algorithm>
#include <map>
#include <thread>

namespace kp {

std::shared_ptr<Device> Device::create(const DeviceOptions& options) {
    std::shared_ptr<Device> device(new Device(options));
    enlist_for_fork(*device);
    return device;
}

Device::Device(const DeviceOptions& options)
    : DeviceContext(options),
      memory_(std::make_unique<MemoryAllocator>(
          *this, options.memory,
          MemoryCallbacks{
              // The staging ring's memory is released last, because the next transfer needs it again.
              .on_pressure = [this] { return staging_->release_idle_memory(); },
              .holders = [this] { return describe_largest(memory_holders(), 5); },
          })),
      deliveries_(*this, *memory_),
      waits_(options.wait),
      pipeline_seconds_(options.pipeline_seconds),
      timeline_parts_{*this, deliveries_, waits_} {
    std::map<QueuePlace, Queue*> opened;
    std::vector<Queue*> all;
    for (const auto& asked : queue_places()) {
        const auto& place = options.instruments.any() ? queue_places().front() : asked;
        Queue*& queue = opened[place];
        const bool shared = queue != nullptr;
        if (!queue) {
            queues_.push_back(std::make_unique<Queue>(timeline_parts_, place.first, place.second,
                                                      physical().families[place.first].timestampValidBits));
            queue = queues_.back().get();
            all.push_back(queue);
            messages().claim(handle_value(queue->handle()));
        }
        logical_queues_.push_back({queue, shared});
    }
    if (options.instruments.any())
        debugger_ = std::make_unique<Debugger>(*this, *memory_, options.instruments);
    pipelines_ = std::make_unique<PipelineStore>(*this, std::move(all), options.pipeline_cache_dir,
                                                 options.recent_pipelines, debugger_.get());
    samplers_ = std::make_unique<SamplerStore>(*this);
    Queue& first = *logical_queues_.front().queue;
    staging_ = std::make_unique<Staging>(*this, *memory_, first, retire_);
    initial_work_ = std::make_unique<InitialWork>(*this, *memory_, first, retire_,
                                                  [this](Point end) { order_after_initial_work(end); });
}

Device::~Device() {
    delist_for_fork(*this);
    // Every object is gone, so only work that the retire list tracks may still be running.
    // The owner of a borrowed device has queues that this thread must not wait for.
    if (borrowed())
        see_through();
    else if (!lost())
        vk().vkDeviceWaitIdle(handle());
    staging_.reset();
    retire_.drain();
    initial_work_.reset();
    pipelines_.reset();
    debugger_.reset();
    samplers_.reset();
    handles()->close();
    deliveries_.abandon();  // before the allocator, because deliveries hold memory
    memory_.reset();
    timelines_.clear();
    queues_.clear();
}

// -- fork ---------------------------------------------------------------------------------------------------

void Device::before_fork() noexcept {
    // The locks of all devices are held together. Any other thread that holds two of these holds those of
    // one device.
    members_mutex_.unranked().lock();
    names_mutex_.unranked().lock();
}

void Device::after_fork() noexcept {
    names_mutex_.unranked().unlock();
    members_mutex_.unranked().unlock();
}

void Device::become_foreign(std::vector<std::shared_ptr<void>>& kept) {
    mark_foreign();
    if (auto owned = weak_from_this().lock()) kept.push_back(std::move(owned));
    for (Member* member = members_; member; member = member->next_) {
        (void)member->end_once();
        if (auto owned = member->hold()) kept.push_back(std::move(owned));
    }
    after_fork();
}

// -- work that runs, or is held -----------------------------------------------------------------------------

bool Device::known_idle() const noexcept {
    return std::all_of(queues_.begin(), queues_.end(),
                       [](const auto& queue) { return queue->known_reached(queue->submitted()); });
}

bool Device::busy() {
    if (foreign()) return false;
    if (!pipelines_->await_users(0)) return true;
    if (lost()) return false;
    return std::any_of(queues_.begin(), queues_.end(), [](const auto& queue) {
        try {
            return !queue->reached(queue->submitted());
        } catch (const Error& error) {
            // If the device was lost meanwhile, no work runs any more. If only the query failed, work may
            // run.
            return error.kind() != ErrorKind::device_lost;
        }
    });
}

size_t Device::least_busy(const std::vector<size_t>& among) {
    const size_t first = turns_.fetch_add(1, std::memory_order_relaxed);
    size_t best = 0;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < among.size(); ++i) {
        const size_t index = among[(first + i) % among.size()];
        Queue& queue = *logical_queues_.at(index).queue;
        const uint64_t submitted = queue.submitted();
        const uint64_t done = queue.known_reached(submitted) ? submitted : queue.query();
        const uint64_t pending = submitted - std::min(submitted, done);
        if (pending < least) {
            least = pending;
            best = index;
        }
    }
    return best;
}

std::vector<Point> Device::submitted() const {
    std::vector<Point> points;
    for (const auto& queue : queues_)
        if (const uint64_t last = queue->submitted()) points.push_back({queue.get(), last});
    return points;
}

std::vector<Point> Device::unfinished() {
    initial_work_->submit();
    std::vector<Point> points = gate_.ends();
    for (const Point& point : submitted()) points.push_back(point);
    return points;
}

Point Device::take_timeline() {
    const std::lock_guard lock(timelines_mutex_);
    for (size_t i = 0; i < free_timelines_.size(); ++i) {
        const Point last = free_timelines_[i];
        if (!last.timeline->passed(last.value)) continue;
        free_timelines_[i] = free_timelines_.back();
        free_timelines_.pop_back();
        return last;
    }
    timelines_.push_back(std::make_unique<Timeline>(timeline_parts_, 0, "a sequence's timeline"));
    free_timelines_.reserve(timelines_.size());  // so that returning it needs no memory
    return {timelines_.back().get(), 0};
}

void Device::give_timeline(Point last) noexcept {
    const std::lock_guard lock(timelines_mutex_);
    free_timelines_.push_back(last);
}

void Device::add_undeclared(std::vector<Point>& points, bool held) {
    for (const auto& queue : queues_)
        if (const uint64_t value = queue->undeclared()) merge_point(points, {queue.get(), value});
    if (!held || !gate_.holds()) return;
    for (const Point& end : gate_.ends(true)) merge_point(points, end);
}

std::vector<std::string> Device::cancel_held(const char* why) noexcept {
    std::vector<std::string> told = gate_.cancel(why);
    if (!told.empty()) wake_waiters();
    return told;
}

void Device::wait_idle() {
    initial_work_->submit();
    for (auto& queue : queues_) {
        const uint64_t last = queue->submitted();
        if (last == 0) continue;
        queue->wait_until(last);
    }
    retire_.collect();
}

void Device::see_through() noexcept {
    for (auto& queue : queues_) {
        const uint64_t last = queue->submitted();
        try {
            queue->wait_until(last);
        } catch (const Error&) {
            // The wait failed, not the work: its objects must stay until it ends.
            try {
                while (!lost() && !queue->reached(last)) std::this_thread::yield();
            } catch (const Error&) {
                continue;  // a lost device: its objects can and must be destroyed all the same
            }
        }
        queue->let_finish();
    }
}

uint64_t Device::trim() noexcept {
    retire_.collect();
    pipelines_->trim();
    staging_->release_memory();
    initial_work_->trim();
    const uint64_t bytes = memory_->trim();
    give_back_heap();
    return bytes;
}

// -- members ------------------------------------------------------------------------------------------------

void Device::adopt(Member& member) {
    const std::lock_guard lock(members_mutex_);
    // Check under the lock that close() holds while it walks the list: an object made while the device
    // closes is either seen or refused.
    require_open("make an object");
    member.next_ = members_;
    if (members_) members_->previous_ = &member;
    members_ = &member;
    member.listed_ = true;
}

void Device::forget(Member& member) noexcept {
    const std::lock_guard lock(members_mutex_);
    if (!member.listed_) return;
    member.listed_ = false;
    if (member.previous_)
        member.previous_->next_ = member.next_;
    else if (members_ == &member)
        members_ = member.next_;
    if (member.next_) member.next_->previous_ = member.previous_;
    member.previous_ = member.next_ = nullptr;
}

std::vector<MemoryHolder> Device::memory_holders() {
    std::vector<std::shared_ptr<Member>> alive;
    {
        const std::lock_guard lock(members_mutex_);
        for (Member* next = members_; next; next = next->next_) {
            if (next->kind() != ObjectKind::buffer && next->kind() != ObjectKind::image) continue;
            // Skips an object if its last owner is dropping it, and an object under construction.
            if (auto member = next->hold()) alive.push_back(std::move(member));
        }
    }
    return holdings(alive);
}

void Device::close() {
    if (!close_once()) return;
    (void)cancel_held("when its Manager was destroyed");
    see_through();
    settle_profile();
    while (true) {
        std::shared_ptr<Member> member;
        {
            const std::lock_guard lock(members_mutex_);
            for (Member* next = members_; next; next = next->next_) {
                // An object destroys itself if its last owner is dropping it.
                if (next->is_init() && (member = next->hold())) break;
            }
        }
        if (!member) break;
        member->close();
    }
    // Another thread may have submitted once more before its sequence was destroyed.
    see_through();
    staging_->clear();
    deliveries_.abandon();  // in case even the waiting failed
    retire_.drain();
    initial_work_->clear();
    pipelines_->close();  // waits for threads that are binding samplers
    handles()->close();
    // The Manager's Python object may stay alive for long; memory without views must not.
    memory_->trim();
}

// -- profiles -----------------------------------------------------------------------------------------------

std::vector<std::shared_ptr<Member>> Device::streams() const {
    std::vector<std::shared_ptr<Member>> streams;
    const std::lock_guard lock(members_mutex_);
    for (Member* next = members_; next; next = next->next_)
        if (next->kind() == ObjectKind::stream)
            if (auto member = next->hold()) streams.push_back(std::move(member));
    return streams;
}

void Device::outdate_recordings() {
    const auto all = streams();  // dropped after the lock
    const std::lock_guard lock(graph_mutex_);
    for (const auto& stream : all) stream->outdate();
}

std::string Device::running_work() const {
    constexpr size_t most = 4;
    std::string text;
    size_t count = 0;
    for (const auto& stream : streams())
        if (const std::string work = stream->running_work(); !work.empty() && ++count <= most)
            text += (count > 1 ? "; or " : "") + work;
    return count > most ? text + "; or other work" : text;
}

std::string Device::progress() const {
    std::string text;
    for (size_t i = 0; i < queues_.size(); ++i) {
        const Queue& queue = *queues_[i];
        text += (i ? ", queue " : "queue ") + std::to_string(i) + ": " + std::to_string(queue.known()) +
                " of " + std::to_string(queue.promised()) + " submissions ended";
    }
    return text;
}

size_t Device::begin_profile(std::function<std::string()> line, ProfilerLooks looks) {
    {
        const std::lock_guard lock(graph_mutex_);
        if (profiler_ && (looks == ProfilerLooks::values || profiler_->looks() == ProfilerLooks::values))
            throw Error(ErrorKind::failed_precondition,
                        "A Manager is profiled, or somebody looks at the values of its operations "
                        "(Manager(debug=...), mgr.watch): do one after the other");
        if (profiler_ && profiler_->looks() != looks)
            throw Error(ErrorKind::failed_precondition,
                        std::string("This Manager is being profiled already, with operations=") +
                            (looks == ProfilerLooks::operations ? "False" : "True") +
                            ": give the inner profile the same");
        if (profiler_) {
            ++profile_readers_;
            return profiler_->count();
        }
        std::vector<Queue*> queues;
        for (const auto& queue : queues_) queues.push_back(queue.get());
        profiler_ = std::make_shared<Profiler>(
            *this, std::move(queues), [this] { return memory_->used(); }, std::move(line), looks);
        profile_readers_ = 1;
        note_lines();
    }
    try {
        outdate_recordings();
    } catch (...) {
        end_profile();
        throw;
    }
    return 0;
}

std::shared_ptr<Profiler> Device::held_profiler() {
    const std::lock_guard lock(graph_mutex_);
    return profiler_;
}

size_t Device::profiled_runs() {
    if (is_open() && !lost()) initial_work_->submit();
    const size_t count = held_profiler()->count();
    // A run is counted within vkQueueSubmit, and its end is known a moment later: take each queue's lock
    // once.
    for (const auto& queue : queues_) (void)queue->while_idle([] {});
    return count;
}

void Device::settle_profile() noexcept {
    if (const auto profiler = held_profiler(); profiler && !lost()) profiler->settle();
}

std::vector<ProfiledRun> Device::take_values() { return held_profiler()->take_values(); }

ProfiledRuns Device::profiled(size_t first, size_t last) { return held_profiler()->take(first, last); }

void Device::end_profile() noexcept {
    std::shared_ptr<Profiler> ended;
    {
        // No other profiler takes these queues before this one has left them.
        const std::lock_guard lock(graph_mutex_);
        if (--profile_readers_ != 0) return;
        ended = std::move(profiler_);
        ended->detach();
        line_readers_.fetch_sub(1, std::memory_order_relaxed);
    }
    try {
        if (is_open()) outdate_recordings();
    } catch (const std::exception&) {  // no memory: recordings keep their timestamps until they are rebuilt
    }
    // Other threads may have submitted since the last wait, with commands of the profiler's.
    try {
        retire_.push(submitted(), ended);
    } catch (const std::exception&) {
        see_through();
    }
}

// -- waiting threads ----------------------------------------------------------------------------------------

void Device::add_waiter(Wakeable& waiter) {
    const std::lock_guard lock(waiters_mutex_);
    waiters_.push_back(&waiter);
}

void Device::remove_waiter(Wakeable& waiter) noexcept {
    const std::lock_guard lock(waiters_mutex_);
    std::erase(waiters_, &waiter);
}

void Device::wake_waiters() noexcept {
    const std::lock_guard lock(waiters_mutex_);
    for (Wakeable* waiter : waiters_) waiter->wake();
}

void Device::order_after_initial_work(Point end) {
    if (logical_queues_.size() <= 1) return;
    // A recording with undeclared uses may have got an object's address, and was built before that object.
    const std::lock_guard lock(graph_mutex_);
    if (!undeclared_crossing_.written()) return;
    for (Recording* recording : built_recordings_) recording->come_after(end);
}

}  // namespace kp
