#include "device/device.hpp"

#include "base/error.hpp"
#include "base/host_heap.hpp"
#include "device/fork.hpp"
#include "device/initial_work.hpp"
#include "device/staging.hpp"
#include "pipeline/pipeline_store.hpp"
#include "pipeline/sampler.hpp"
#include "resource/resource.hpp"
#include "run/waiter.hpp"

#include <algorithm>
#include <map>
#include <thread>

namespace kp {
namespace {

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

void add_unique(std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

}  // namespace

std::shared_ptr<Device> Device::create(DeviceOptions options) {
    std::shared_ptr<Device> device(new Device());
    device->instance_ = Instance::get(options.instance);

    device->mailbox_ = std::make_unique<Mailbox>(device->instance_->messages());
    if (device->instance_->debug_utils()) device->watched_ = device->mailbox_->number();
    acting_device = device->watched_;
    DeviceList list = query_devices(*device->instance_, options.visible);
    std::vector<DeviceCandidate> candidates;
    for (const auto& physical : list.devices) {
        candidates.push_back(physical.candidate());
        for (const auto& name : options.required_extensions)
            if (!physical.has_extension(name.c_str())) candidates.back().missing_extensions.push_back(name);
    }
    device->selection_ = select_device(candidates, options.request);
    device->selection_.hidden = list.hidden;
    device->selection_.repeated = list.repeated;
    if (!device->selection_.position) {
        const bool asked = options.request.index.has_value() || !options.request.preferences.empty();
        throw Error(asked && !candidates.empty() ? ErrorKind::not_found : ErrorKind::unavailable,
                    explain_failure(device->selection_));
    }
    device->waits_ = std::make_unique<WaitChoice>(options.wait);
    device->physical_ = std::move(list.devices[*device->selection_.position]);
    device->create_device(options);
    enlist_for_fork(*device);
    return device;
}

std::vector<std::pair<uint32_t, uint32_t>> Device::plan_queues(const std::vector<uint32_t>& asked) {
    const auto& families = physical_.families;
    std::vector<uint32_t> wanted = asked;
    if (wanted.empty()) {
        // A family that also has graphics is what drivers optimise first and what Kompute takes: the first with compute.
        for (uint32_t i = 0; i < families.size() && wanted.empty(); ++i)
            if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) && families[i].queueCount != 0)
                wanted.push_back(i);
    }
    std::map<uint32_t, uint32_t> taken;
    std::vector<std::pair<uint32_t, uint32_t>> plan;
    for (const uint32_t family : wanted) {
        if (family >= families.size())
            throw Error(ErrorKind::out_of_range, "Queue family " + std::to_string(family) +
                                                     " does not exist on '" +
                                                     physical_.properties.deviceName + "', which has " +
                                                     std::to_string(families.size()) + " (0 to " +
                                                     std::to_string(families.size() - 1) + ")");
        // The first queue serves all that names none. Beside it, one that only moves memory is of use.
        const VkQueueFlags enough =
            plan.empty() ? VK_QUEUE_COMPUTE_BIT : VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT;
        if (!(families[family].queueFlags & enough)) {
            std::string fit;
            for (uint32_t i = 0; i < families.size(); ++i)
                if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)
                    fit += (fit.empty() ? "" : ", ") + std::to_string(i);
            throw Error(ErrorKind::invalid_argument,
                        "Queue family " + std::to_string(family) + " of '" + physical_.properties.deviceName +
                            "' has no compute queues" +
                            (plan.empty() ? ", which the first must be" : " and none for transfers") +
                            ". Families with compute: " + fit);
        }
        const uint32_t nth = taken[family]++;
        plan.emplace_back(family, nth % families[family].queueCount);
        if (nth == families[family].queueCount)
            note("Queue family " + std::to_string(family) + " has " +
                 std::to_string(families[family].queueCount) + " queue(s); further ones share them");
    }
    return plan;
}

void Device::create_device(const DeviceOptions& options) {
    const auto plan = plan_queues(options.family_queue_indices);
    std::map<uint32_t, uint32_t> counts;  // family -> physical queues to open
    for (const auto& [family, index] : plan) counts[family] = std::max(counts[family], index + 1);

    std::vector<std::string> extensions;
    for (const auto& name : options.required_extensions) add_unique(extensions, name);
    for (const auto& name : options.desired_extensions) {
        if (physical_.has_extension(name.c_str()))
            add_unique(extensions, name);
        else
            note("The desired extension " + name + " is not supported by '" +
                 physical_.properties.deviceName + "'");
    }
    for (const char* name : {"VK_KHR_portability_subset", VK_EXT_MEMORY_BUDGET_EXTENSION_NAME})
        if (physical_.has_extension(name)) add_unique(extensions, name);
    if (physical_.host_import_alignment != 0)
        add_unique(extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);

    FeatureChain supported(physical_.properties.apiVersion, physical_.extensions);
    supported.query(physical_.handle);
    enabled_ = std::make_unique<FeatureChain>(physical_.properties.apiVersion, physical_.extensions);
    enabled_features_ = enabled_->enable_from(supported, options.robust_access);
    shader_host_ = kp::shader_host(physical_, enabled_features_);
    for (const char* name : enabled_->needed_extensions()) add_unique(extensions, name);
    buffer_addresses_ = enabled_->v12.bufferDeviceAddress;

    std::vector<VkDeviceQueueCreateInfo> queue_infos;
    const std::vector<float> priorities(plan.size() + 1, 1.0f);
    for (const auto& [family, count] : counts) {
        VkDeviceQueueCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
        info.queueFamilyIndex = family;
        info.queueCount = count;
        info.pQueuePriorities = priorities.data();
        queue_infos.push_back(info);
        families_.push_back(family);
    }
    std::vector<const char*> names;
    for (const auto& name : extensions) names.push_back(name.c_str());

    VkDeviceCreateInfo create{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    create.pNext = enabled_->head();
    create.queueCreateInfoCount = static_cast<uint32_t>(queue_infos.size());
    create.pQueueCreateInfos = queue_infos.data();
    create.enabledExtensionCount = static_cast<uint32_t>(names.size());
    create.ppEnabledExtensionNames = names.data();
    VkDevice made = VK_NULL_HANDLE;
    const VkResult result = vkCreateDevice(physical_.handle, &create, nullptr, &made);
    check_vk(result, "vkCreateDevice",
             (std::string("device '") + physical_.properties.deviceName + "' with extensions " +
              joined(extensions))
                 .c_str());
    handle_ = made;
    mailbox_->claim(handle_value(handle_));
    alive_count(ObjectKind::context).fetch_add(1, std::memory_order_relaxed);
    enabled_extensions_ = std::move(extensions);
    volkLoadDeviceTable(&table_, handle_);
    if (instance_->debug_utils())
        set_name_ = reinterpret_cast<PFN_vkSetDebugUtilsObjectNameEXT>(
            vkGetDeviceProcAddr(handle_, "vkSetDebugUtilsObjectNameEXT"));

    std::map<std::pair<uint32_t, uint32_t>, Queue*> opened;
    for (const auto& key : plan) {
        Queue*& queue = opened[key];
        const bool shared = queue != nullptr;
        if (!queue) {
            queues_.push_back(std::make_unique<Queue>(*this, key.first, key.second,
                                                      physical_.families[key.first].timestampValidBits));
            queue = queues_.back().get();
            mailbox_->claim(handle_value(queue->handle()));
        }
        logical_queues_.push_back({queue, shared});
    }
    memory_ = std::make_unique<MemoryAllocator>(*this, options.memory);
    handles_ = std::make_shared<DeviceHandles>(*this);
    pipelines_ = std::make_unique<PipelineStore>(*this, options.pipeline_cache_dir, options.recent_pipelines);
    samplers_ = std::make_unique<SamplerStore>(*this);
    staging_ = std::make_unique<Staging>(*this);
    initial_work_ = std::make_unique<InitialWork>(*this);
}

Device::~Device() {
    delist_for_fork(*this);
    if (handle_ == VK_NULL_HANDLE) return;
    // Every object is gone, so what still runs is what the retire list holds.
    if (!lost()) table_.vkDeviceWaitIdle(handle_);
    staging_.reset();
    retire_.drain();
    initial_work_.reset();
    pipelines_.reset();
    samplers_.reset();
    if (handles_) handles_->close();
    memory_.reset();
    timelines_.clear();
    queues_.clear();
    table_.vkDestroyDevice(handle_, nullptr);
    alive_count(ObjectKind::context).fetch_sub(1, std::memory_order_relaxed);
}

void Device::require_own() const {
    if (foreign())
        throw Error(
            ErrorKind::failed_precondition,
            "The device belongs to the parent process, and this one cannot use it. Make a new Manager "
            "in this process");
}

void Device::require_open(const char* action) const {
    if (foreign())
        throw Error(ErrorKind::failed_precondition,
                    std::string("Cannot ") + action +
                        ": the Manager belongs to the parent process. Make a new Manager in this process");
    if (!is_open())
        throw Error(ErrorKind::failed_precondition,
                    std::string("Cannot ") + action + ": the Manager was destroyed. Make a new Manager");
}

void Device::note_lost_work(const std::string& work) {
    const std::lock_guard lock(lost_mutex_);
    if (lost_work_.empty()) lost_work_ = work;
}

std::string Device::lost_work() const {
    const std::lock_guard lock(lost_mutex_);
    return lost_work_;
}

void Device::throw_lost(const char* call, const std::string& what) {
    mark_lost();
    try {
        throw_vk(VK_ERROR_DEVICE_LOST, call, what);
    } catch (const Error& error) {
        const std::string work = lost_work();
        if (work.empty()) throw;
        throw Error(error.kind(), std::string(error.what()) + ". It was lost during " + work,
                    error.vk_result());
    }
}

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
            // Lost while we looked: nothing runs any more. Where only the question failed, something may.
            return error.kind() != ErrorKind::device_lost;
        }
    });
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

void Device::add_waiter(Waiter* waiter) {
    const std::lock_guard lock(waiters_mutex_);
    waiters_.push_back(waiter);
}

void Device::remove_waiter(Waiter* waiter) noexcept {
    const std::lock_guard lock(waiters_mutex_);
    std::erase(waiters_, waiter);
}

void Device::wake_waiters() noexcept {
    const std::lock_guard lock(waiters_mutex_);
    for (Waiter* waiter : waiters_) waiter->wake();
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
    timelines_.push_back(std::make_unique<Timeline>(*this, 0, "a sequence's timeline"));
    free_timelines_.reserve(timelines_.size());  // so that giving it back needs no memory
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
            continue;
        } catch (const Error&) {
            // The wait failed, not the work: its objects must not go before it ends.
        }
        try {
            while (!lost() && !queue->reached(last)) std::this_thread::yield();
        } catch (const Error&) {
            continue;  // a lost device: its objects can and must be destroyed all the same
        }
    }
}

void Device::close() {
    if (closed_.exchange(true, std::memory_order_acq_rel)) return;
    (void)cancel_held("when its Manager was destroyed");
    see_through();
    while (true) {
        std::shared_ptr<Object> object;
        {
            const std::lock_guard lock(objects_mutex_);
            for (Object* next = objects_; next; next = next->next_) {
                // An object whose last owner is just going away destroys itself.
                if (next->is_init() && (object = next->weak_from_this().lock())) break;
            }
        }
        if (!object) break;
        if (auto* resource = dynamic_cast<Resource*>(object.get())) resource->keep_viewed();
        object->destroy();
    }
    // Another thread may have submitted once more before its sequence was destroyed.
    see_through();
    staging_->clear();
    deliveries_.abandon();  // where even the waiting failed
    retire_.drain();
    initial_work_->clear();
    pipelines_->close();  // waits for threads that are binding samplers
    handles_->close();
    // The Manager's Python object may live on for long; the memory that no view shows must not.
    memory_->trim();
}

std::vector<std::shared_ptr<Resource>> Device::resources() {
    std::vector<std::shared_ptr<Resource>> all;
    const std::lock_guard lock(objects_mutex_);
    for (Object* next = objects_; next; next = next->next_) {
        if (next->kind() != ObjectKind::buffer && next->kind() != ObjectKind::image) continue;
        // One whose last owner is just going away counts as gone; one under construction is not there yet.
        if (auto object = next->weak_from_this().lock())
            all.push_back(std::static_pointer_cast<Resource>(std::move(object)));
    }
    return all;
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

void Device::note(std::string text) {
    const std::lock_guard lock(notes_mutex_);
    notes_.push_back(std::move(text));
}

void Device::note_once(const std::string& text) {
    const std::lock_guard lock(notes_mutex_);
    if (std::find(noted_.begin(), noted_.end(), text) != noted_.end()) return;
    noted_.push_back(text);
    notes_.push_back(text);
}

std::vector<std::string> Device::take_notes() {
    const std::lock_guard lock(notes_mutex_);
    return std::exchange(notes_, {});
}

void Device::flush(std::span<const VkMappedMemoryRange> ranges, const char* what) const {
    if (ranges.empty()) return;
    check_vk(table_.vkFlushMappedMemoryRanges(handle_, static_cast<uint32_t>(ranges.size()), ranges.data()),
             "vkFlushMappedMemoryRanges", what);
}

void Device::invalidate(std::span<const VkMappedMemoryRange> ranges, const char* what) const {
    if (ranges.empty()) return;
    check_vk(
        table_.vkInvalidateMappedMemoryRanges(handle_, static_cast<uint32_t>(ranges.size()), ranges.data()),
        "vkInvalidateMappedMemoryRanges", what);
}

void Device::name_handle(VkObjectType type, uint64_t handle, const std::string& name) const noexcept {
    if (!set_name_ || handle == 0) return;
    VkDebugUtilsObjectNameInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT};
    info.objectType = type;
    info.objectHandle = handle;
    info.pObjectName = name.c_str();
    set_name_(handle_, &info);
}

void Device::adopt(Object& object) {
    const std::lock_guard lock(objects_mutex_);
    // Under the lock that close() walks the list with: an object made while the device closes is either seen or refused.
    require_open("make an object");
    object.next_ = objects_;
    if (objects_) objects_->previous_ = &object;
    objects_ = &object;
    object.listed_ = true;
}

void Device::forget(Object& object) noexcept {
    const std::lock_guard lock(objects_mutex_);
    if (!object.listed_) return;
    object.listed_ = false;
    if (object.previous_)
        object.previous_->next_ = object.next_;
    else if (objects_ == &object)
        objects_ = object.next_;
    if (object.next_) object.next_->previous_ = object.previous_;
    object.previous_ = object.next_ = nullptr;
}

}  // namespace kp
