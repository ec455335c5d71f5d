#include "device/profiler.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <span>
#include <utility>

namespace kp {
namespace {

// A profiler takes part in the submissions of these queues.
struct Attached {
    VkQueue handle;
    const Queue* queue;
    Profiler* profiler;
};

struct AttachedQueues {
    RankedMutex mutex{LockRank::profiled_queues};
    std::vector<Attached> list;
};

AttachedQueues& attached() {
    static auto* const kept = new AttachedQueues;
    return *kept;
}

constexpr int clock_tries = 8;

// The profiler's own submissions are not noted.
thread_local bool measures_clock = false;

}  // namespace

// -- timestamps ---------------------------------------------------------------------------------------------

bool TimestampQueries::resets_on_host(const DeviceContext& device, const Queue& queue) {
    return !(device.physical().families[queue.family()].queueFlags &
             (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT));
}

TimestampQueries::TimestampQueries(const DeviceContext& device, const Queue& queue, uint32_t count,
                                   const std::string& owner)
    : device_(device), count_(count), resets_on_host_(resets_on_host(device, queue)) {
    if (queue.timestamp_bits() == 0 || (resets_on_host_ && !device.enabled().v12.hostQueryReset)) return;
    VkQueryPoolCreateInfo create{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    create.queryType = VK_QUERY_TYPE_TIMESTAMP;
    create.queryCount = count;
    check_vk(device.vk().vkCreateQueryPool(device.handle(), &create, nullptr, &pool_), "vkCreateQueryPool",
             owner.c_str());
}

TimestampQueries::~TimestampQueries() { device_.vk().vkDestroyQueryPool(device_.handle(), pool_, nullptr); }

void TimestampQueries::record_reset(VkCommandBuffer commands) const {
    if (pool_ != VK_NULL_HANDLE && !resets_on_host_)
        device_.vk().vkCmdResetQueryPool(commands, pool_, 0, count_);
}

void TimestampQueries::reset_on_host() const noexcept {
    if (pool_ != VK_NULL_HANDLE && resets_on_host_)
        device_.vk().vkResetQueryPool(device_.handle(), pool_, 0, count_);
}

void TimestampQueries::stamp(VkCommandBuffer commands, uint32_t index) const {
    if (pool_ == VK_NULL_HANDLE) return;
    // llvmpipe works on one command after the other, and waits at its threads for all of a later stage.
    const bool in_turn = device_.physical().v12.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
    device_.vk().vkCmdWriteTimestamp(
        commands, in_turn ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT : VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool_,
        index);
}

VkResult TimestampQueries::read(std::vector<std::array<uint64_t, 2>>& ticks) const {
    if (pool_ == VK_NULL_HANDLE) return VK_NOT_READY;
    ticks.resize(count_);
    return device_.vk().vkGetQueryPoolResults(device_.handle(), pool_, 0, count_,
                                              ticks.size() * sizeof(ticks[0]), ticks.data(), sizeof(ticks[0]),
                                              VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT);
}

std::vector<uint64_t> TimestampQueries::ticks() const {
    std::vector<std::array<uint64_t, 2>> results;
    if (read(results) != VK_SUCCESS) return {};
    std::vector<uint64_t> ticks;
    ticks.reserve(count_);
    for (const auto& [tick, available] : results) {
        if (!available) return {};
        ticks.push_back(tick);
    }
    return ticks;
}

// -- attaching ----------------------------------------------------------------------------------------------

Profiler::Profiler(const DeviceContext& device, std::vector<Queue*> queues, std::function<uint64_t()> memory,
                   std::function<std::string()> line, ProfilerLooks looks)
    : device_(device),
      queues_(std::move(queues)),
      memory_(std::move(memory)),
      line_(std::move(line)),
      looks_(looks) {
    {
        const std::lock_guard lock(attached().mutex);
        for (const Queue* queue : queues_) attached().list.push_back({queue->handle(), queue, this});
    }
    for (Queue* queue : queues_) queue->send_through(&Profiler::submit);
}

Profiler::~Profiler() {
    for (const auto& [family, pool] : pools_)
        device_.vk().vkDestroyCommandPool(device_.handle(), pool, nullptr);
}

void Profiler::detach() noexcept {
    for (Queue* queue : queues_) queue->send_through(nullptr);
    const std::lock_guard lock(attached().mutex);
    std::erase_if(attached().list, [this](const Attached& each) { return each.profiler == this; });
}

void Profiler::before_fork() noexcept { attached().mutex.unranked().lock(); }
void Profiler::after_fork() noexcept { attached().mutex.unranked().unlock(); }

void Profiler::list(VkCommandBuffer commands, std::shared_ptr<const Profiled> what) {
    const std::lock_guard lock(mutex_);
    Listed& listed = listed_[commands];
    read(listed);
    listed.what = std::move(what);
}

void Profiler::forget(VkCommandBuffer commands) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = listed_.find(commands);
    if (found == listed_.end()) return;
    if (const size_t run = found->second.pending; run != 0) left_.push_back(run);
    listed_.erase(found);
}

// -- submissions --------------------------------------------------------------------------------------------

VkResult Profiler::submit(VkQueue handle, uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
    Attached found{};
    {
        const std::lock_guard lock(attached().mutex);
        const auto& list = attached().list;
        const auto at = std::ranges::find(list, handle, &Attached::handle);
        if (at != list.end()) found = *at;
    }
    // Only a queue that goes through this function calls it, and those are in the list.
    return found.profiler->note(*found.queue, infos[count - 1], fence);
}

VkResult Profiler::note(const Queue& queue, const VkSubmitInfo& info, VkFence fence) {
    VkSubmitInfo submitted = info;
    const auto pass_on = [&] { return device_.vk().vkQueueSubmit(queue.handle(), 1, &submitted, fence); };
    if (measures_clock) return pass_on();
    if (looks_ == ProfilerLooks::values) return note_values(queue, info, fence);
    const std::lock_guard lock(mutex_);
    const size_t first = runs_.size();
    std::vector<VkCommandBuffer> framed;
    try {
        ProfiledRun run;
        run.family = queue.family();
        run.queue = queue.index();
        run.thread = this_thread();
        if (line_) run.line = line_();
        run.memory = memory_();
        framed = add(queue, info, std::move(run));
    } catch (const std::exception&) {  // no memory: the work goes on, and the profile lacks it
        drop(queue, info, first);
    }
    // Queries are reset before each run, whether it is noted or not.
    for (const VkCommandBuffer commands : std::span(info.pCommandBuffers, info.commandBufferCount))
        if (const auto found = listed_.find(commands); found != listed_.end() && found->second.what->queries)
            found->second.what->queries->reset_on_host();
    if (!framed.empty()) {
        submitted.commandBufferCount = static_cast<uint32_t>(framed.size());
        submitted.pCommandBuffers = framed.data();
    }
    const uint64_t begin = host_clock();
    const VkResult result = pass_on();
    const uint64_t end = host_clock();
    if (result != VK_SUCCESS) drop(queue, info, first);
    for (size_t i = first; i < runs_.size(); ++i) {
        runs_[i].submit_begin = begin;
        runs_[i].submit_end = end;
    }
    return result;
}

VkResult Profiler::note_values(const Queue& queue, const VkSubmitInfo& info, VkFence fence) {
    std::vector<std::shared_ptr<const Profiled>> ran;
    {
        const std::lock_guard lock(mutex_);
        for (const VkCommandBuffer commands : std::span(info.pCommandBuffers, info.commandBufferCount))
            if (const auto found = listed_.find(commands); found != listed_.end())
                ran.push_back(found->second.what);
    }
    // Other threads may have to submit what this work waits for, so no lock of the profiler is held.
    const VkResult result = device_.vk().vkQueueSubmit(queue.handle(), 1, &info, fence);
    if (result != VK_SUCCESS || ran.empty()) return result;
    if (device_.vk().vkQueueWaitIdle(queue.handle()) != VK_SUCCESS) return result;  // the next wait raises
    const std::string line = line_ ? line_() : std::string();
    const std::lock_guard lock(mutex_);
    for (auto& what : ran) try {
            ProfiledRun run;
            run.family = queue.family();
            run.queue = queue.index();
            run.submission = submissions_;
            run.thread = this_thread();
            run.line = line;
            run.values = what->values->take(device_);
            run.what = std::move(what);
            runs_.push_back(std::move(run));
        } catch (const std::exception&) {  // no memory: nobody sees these values
        }
    ++submissions_;
    return result;
}

std::vector<ProfiledRun> Profiler::take_values() {
    const std::lock_guard lock(mutex_);
    return std::exchange(runs_, {});
}

std::vector<VkCommandBuffer> Profiler::add(const Queue& queue, const VkSubmitInfo& info, ProfiledRun run) {
    const std::span buffers(info.pCommandBuffers, info.commandBufferCount);
    const size_t first = runs_.size();
    run.submission = submissions_++;
    for (const VkCommandBuffer commands : buffers) {
        const auto found = listed_.find(commands);
        if (found == listed_.end()) continue;
        read(found->second);
        run.what = found->second.what;
        runs_.push_back(run);
        found->second.pending = runs_.size();
    }
    std::vector<VkCommandBuffer> framed;
    if (runs_.size() != first) return framed;
    auto what = std::make_shared<Profiled>();
    const Naming* naming = Naming::current;
    what->label = naming ? naming->name_ : buffers.empty() ? "waits and signals" : "submission";
    if (!buffers.empty()) {
        what->operations.push_back(
            {what->label, {}, naming ? naming->read_ : 0, naming ? naming->written_ : 0, {}});
        Frame frame = take_frame(queue);
        what->queries = frame.queries;
        what->queries->reset_on_host();
        framed.reserve(buffers.size() + 2);
        framed.push_back(frame.commands[0]);
        framed.insert(framed.end(), buffers.begin(), buffers.end());
        framed.push_back(frame.commands[1]);
        runs_.reserve(runs_.size() + 1);
        framed_[&queue].emplace_back(runs_.size() + 1, std::move(frame));
    }
    run.what = std::move(what);
    runs_.push_back(std::move(run));
    return framed;
}

void Profiler::drop(const Queue& queue, const VkSubmitInfo& info, size_t first) noexcept {
    for (const VkCommandBuffer commands : std::span(info.pCommandBuffers, info.commandBufferCount))
        if (const auto found = listed_.find(commands); found != listed_.end()) found->second.pending = 0;
    if (const auto found = framed_.find(&queue); found != framed_.end())
        while (!found->second.empty() && found->second.back().first > first) found->second.pop_back();
    runs_.resize(first);
}

void Profiler::read(size_t run) noexcept {
    ProfiledRun& done = runs_[run - 1];
    if (!done.what->queries || !done.times.empty()) return;
    try {
        done.times = done.what->queries->ticks();
    } catch (const std::exception&) {  // no memory: the profile lacks these times
    }
}

void Profiler::read(Listed& listed) noexcept {
    if (listed.pending != 0) read(std::exchange(listed.pending, 0));
}

Profiler::Frame Profiler::take_frame(const Queue& queue) {
    auto& frames = framed_[&queue];
    if (!frames.empty()) {
        const auto [run, frame] = frames.front();
        read(run);
        if (!runs_[run - 1].times.empty()) {
            frames.pop_front();
            return frame;
        }
    }
    return make_frame(queue);
}

Profiler::Frame Profiler::make_frame(const Queue& queue) {
    auto& vk = device_.vk();
    VkCommandPool& pool = pools_[queue.family()];
    if (pool == VK_NULL_HANDLE) {
        VkCommandPoolCreateInfo create{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
        create.queueFamilyIndex = queue.family();
        check_vk(vk.vkCreateCommandPool(device_.handle(), &create, nullptr, &pool), "vkCreateCommandPool",
                 "a profile");
    }
    Frame frame;
    frame.queries = std::make_shared<const TimestampQueries>(device_, queue, 2, "a profile");
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = pool;
    allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate.commandBufferCount = static_cast<uint32_t>(frame.commands.size());
    check_vk(vk.vkAllocateCommandBuffers(device_.handle(), &allocate, frame.commands.data()),
             "vkAllocateCommandBuffers", "a profile");
    for (uint32_t i = 0; i < frame.commands.size(); ++i) {
        // Their timestamps tell that they have run, but the driver may not be done with them then.
        VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
        begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
        check_vk(vk.vkBeginCommandBuffer(frame.commands[i], &begin), "vkBeginCommandBuffer", "a profile");
        if (i == 0) frame.queries->record_reset(frame.commands[i]);
        frame.queries->stamp(frame.commands[i], i);
        check_vk(vk.vkEndCommandBuffer(frame.commands[i]), "vkEndCommandBuffer", "a profile");
    }
    return frame;
}

// -- the end ------------------------------------------------------------------------------------------------

size_t Profiler::count() {
    const std::lock_guard lock(mutex_);
    return runs_.size();
}

void Profiler::settle() noexcept {
    {
        const std::lock_guard lock(mutex_);
        for (auto& [commands, listed] : listed_)
            if (listed.pending != 0)
                read(listed.pending);  // still pending if another thread has begun it now
        std::erase_if(left_, [this](size_t run) {
            read(run);
            return !runs_[run - 1].times.empty();
        });
        for (auto& [queue, frames] : framed_)
            for (const auto& [run, frame] : frames) read(run);
    }
    for (Queue* queue : queues_) {
        if (queue->timestamp_bits() == 0) continue;
        try {
            const Moment moment = now_of(*queue);
            const std::lock_guard lock(mutex_);
            moments_[{queue->family(), queue->index()}] = moment;
        } catch (const std::exception&) {  // the runs of this queue have no times
        }
    }
}

ProfiledRuns Profiler::take(size_t first, size_t last) {
    const std::lock_guard lock(mutex_);
    ProfiledRuns result;
    result.runs.assign(runs_.begin() + static_cast<ptrdiff_t>(first),
                       runs_.begin() + static_cast<ptrdiff_t>(last));
    for (const auto& [queue, moment] : moments_) {
        result.uncertainty = std::max(result.uncertainty, moment.uncertainty);
        result.calibrated = moment.calibrated;
    }
    for (ProfiledRun& run : result.runs) {
        const auto moment = moments_.find({run.family, run.queue});
        if (moment == moments_.end()) run.times.clear();
        for (uint64_t& time : run.times) time = moment->second.host_time(time, run.submit_begin);
    }
    return result;
}

uint64_t Profiler::Moment::host_time(uint64_t time, uint64_t submitted) const noexcept {
    // Negative if another thread has measured this moment before that work ended.
    auto ago = static_cast<int64_t>(ticks - time);
    if (bits < 63) {
        // The counter begins at 0 again after its last value, and may have done so several times since. Of
        // the moments that it may mean, work ends at the first after its submission. The clocks may be a
        // second apart.
        const int64_t range = int64_t{1} << bits;
        const double since = static_cast<double>(static_cast<int64_t>(host - submitted)) / period;
        const double most = since + std::min(1e9 / period, static_cast<double>(range) / 4);
        ago &= range - 1;
        ago += range * static_cast<int64_t>(
                           std::floor((most - static_cast<double>(ago)) / static_cast<double>(range)));
    }
    return host - static_cast<uint64_t>(std::llround(static_cast<double>(ago) * period));
}

Profiler::Moment Profiler::now_of(Queue& queue) const {
    Moment best;
    best.period = device_.limits().timestampPeriod;
    best.bits = queue.timestamp_bits();
    best.uncertainty = UINT64_MAX;
#ifndef _WIN32
    if (const auto calibrated = device_.vk().vkGetCalibratedTimestampsEXT) {
        VkCalibratedTimestampInfoEXT infos[2]{
            {VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, nullptr, VK_TIME_DOMAIN_DEVICE_EXT},
            {VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, nullptr, VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT}};
        uint64_t times[2]{};
        uint64_t deviation = 0;
        if (calibrated(device_.handle(), 2, infos, times, &deviation) == VK_SUCCESS) {
            best.ticks = times[0];
            best.host = times[1];
            best.uncertainty = deviation;
            best.calibrated = true;
            return best;
        }
    }
#endif
    // The timestamp was taken at some moment between the submission and the end of the wait.
    struct Measuring {
        Measuring() { measures_clock = true; }
        ~Measuring() { measures_clock = false; }
    } const measuring;
    auto& vk = device_.vk();
    const TimestampQueries queries(device_, queue, 1, "a profile");
    VkCommandPoolCreateInfo create{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    create.queueFamilyIndex = queue.family();
    struct Pool {
        const DeviceContext& device;
        VkCommandPool handle = VK_NULL_HANDLE;
        ~Pool() { device.vk().vkDestroyCommandPool(device.handle(), handle, nullptr); }
    } pool{device_};
    check_vk(vk.vkCreateCommandPool(device_.handle(), &create, nullptr, &pool.handle), "vkCreateCommandPool",
             "a profile");
    VkCommandBufferAllocateInfo allocate{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = pool.handle;
    allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
    allocate.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    check_vk(vk.vkAllocateCommandBuffers(device_.handle(), &allocate, &commands), "vkAllocateCommandBuffers",
             "a profile");
    VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    check_vk(vk.vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer", "a profile");
    queries.record_reset(commands);
    queries.stamp(commands, 0);
    check_vk(vk.vkEndCommandBuffer(commands), "vkEndCommandBuffer", "a profile");
    PreparedSubmit submission;
    submission.prepare(queue, {commands});
    for (int i = 0; i < clock_tries; ++i) {
        queries.reset_on_host();
        const uint64_t before = host_clock();
        const uint64_t end = queue.submit(submission);
        try {
            queue.wait_until(end);
        } catch (...) {
            queue.let_finish();  // the wait failed, not the work
            throw;
        }
        const uint64_t after = host_clock();
        const std::vector<uint64_t> ticks = queries.ticks();
        if (ticks.empty() || (after - before) / 2 >= best.uncertainty) continue;
        best.ticks = ticks.front();
        best.host = before + (after - before) / 2;
        best.uncertainty = (after - before) / 2;
    }
    return best;
}

}  // namespace kp
