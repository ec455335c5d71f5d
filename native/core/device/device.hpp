// A VkDevice: its function table, queues, allocator, caches, retire list, and the objects made from it.
#pragma once

#include "adapter/device_handle.hpp"
#include "adapter/instance.hpp"
#include "adapter/physical_device.hpp"
#include "memory/allocator.hpp"
#include "resource/object.hpp"
#include "sync/delivery.hpp"
#include "sync/gate.hpp"
#include "sync/queue.hpp"
#include "sync/retire.hpp"
#include "sync/wait_choice.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kp {

class InitialWork;
class PipelineStore;
class Resource;
class SamplerStore;
class Staging;
class Waiter;

struct DeviceOptions {
    DeviceRequest request;
    std::optional<std::string> visible;  // the list of devices that count; nullopt: all
    InstanceRequest instance;
    std::vector<uint32_t> family_queue_indices;    // one queue each; repeats take the family's next queue
    std::vector<std::string> desired_extensions;   // enabled where the device has them, noted where not
    std::vector<std::string> required_extensions;  // a device without them is passed over
    bool robust_access = true;
    std::string pipeline_cache_dir;  // "": no cache on disk
    MemoryOptions memory;
    size_t recent_pipelines = 128;  // see PipelineStore
    WaitMode wait = WaitMode::automatic;
};

struct LogicalQueue {
    Queue* queue = nullptr;
    bool shared = false;  // multiplexed: the family has fewer queues than were asked for
};

class Device : public std::enable_shared_from_this<Device> {
public:
    [[nodiscard]] static std::shared_ptr<Device> create(DeviceOptions options);
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    ~Device();

    [[nodiscard]] VkDevice handle() const noexcept { return handle_; }
    [[nodiscard]] const VolkDeviceTable& vk() const noexcept {
        if (watched_ != 0) [[unlikely]]
            acting_device = watched_;  // whose the messages of the call are
        return table_;
    }
    [[nodiscard]] const PhysicalDevice& physical() const noexcept { return physical_; }
    [[nodiscard]] const VkPhysicalDeviceLimits& limits() const noexcept {
        return physical_.properties.limits;
    }
    [[nodiscard]] const FeatureChain& enabled() const noexcept { return *enabled_; }
    [[nodiscard]] const std::vector<std::string>& enabled_features() const noexcept {
        return enabled_features_;
    }
    [[nodiscard]] const std::vector<std::string>& enabled_extensions() const noexcept {
        return enabled_extensions_;
    }
    [[nodiscard]] const ShaderHost& shader_host() const noexcept { return shader_host_; }
    [[nodiscard]] bool buffer_addresses() const noexcept { return buffer_addresses_; }
    [[nodiscard]] Instance& instance() const noexcept { return *instance_; }
    [[nodiscard]] const Selection& selection() const noexcept { return selection_; }

    [[nodiscard]] const std::vector<LogicalQueue>& queues() const noexcept { return logical_queues_; }
    [[nodiscard]] MemoryAllocator& memory() noexcept { return *memory_; }
    [[nodiscard]] PipelineStore& pipelines() noexcept { return *pipelines_; }
    // Where Vulkan objects with several owners are listed.
    [[nodiscard]] const std::shared_ptr<DeviceHandles>& handles() const noexcept { return handles_; }
    [[nodiscard]] SamplerStore& samplers() noexcept { return *samplers_; }
    [[nodiscard]] Staging& staging() noexcept { return *staging_; }
    [[nodiscard]] InitialWork& initial_work() noexcept { return *initial_work_; }
    [[nodiscard]] Retire& retired() noexcept { return retire_; }
    [[nodiscard]] WaitChoice& waits() noexcept { return *waits_; }
    [[nodiscard]] Gate& gate() noexcept { return gate_; }
    [[nodiscard]] Deliveries& deliveries() noexcept { return deliveries_; }
    // Threads that wait for fences of this device: woken where something failed that the driver does not tell of.
    void add_waiter(Waiter* waiter);
    void remove_waiter(Waiter* waiter) noexcept;
    void wake_waiters() noexcept;
    // A timeline that nothing uses any more, for a stream's own, and the last value that was used on it.
    [[nodiscard]] Point take_timeline();
    void give_timeline(Point last) noexcept;
    // Guards every object's list of users, and planning, which numbers objects. Held briefly; never while waiting.
    [[nodiscard]] std::mutex& graph_mutex() noexcept { return graph_mutex_; }
    // Held from the look at other queues' ends to the submission that waits for them, so that of two streams that share memory one
    // sees the other. Comes before the graph mutex and the gate's.
    [[nodiscard]] std::mutex& order_mutex() noexcept { return order_mutex_; }
    [[nodiscard]] uint64_t next_epoch() noexcept { return ++epoch_; }  // under the graph mutex
    // The streams that are built, where there are several queues. Under the graph mutex.
    [[nodiscard]] std::vector<Stream*>& built_streams() noexcept { return built_streams_; }

    // Buffers and images are CONCURRENT over the opened queue families when there are several.
    template <typename CreateInfo>
    void share(CreateInfo& create) const noexcept {
        create.sharingMode = families_.size() > 1 ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE;
        create.queueFamilyIndexCount = families_.size() > 1 ? static_cast<uint32_t>(families_.size()) : 0;
        create.pQueueFamilyIndices = families_.size() > 1 ? families_.data() : nullptr;
    }

    // Whether it is a parent process's (see device/fork.hpp).
    [[nodiscard]] bool foreign() const noexcept { return foreign_.load(std::memory_order_relaxed); }
    // Throws where it is.
    void require_own() const;
    [[nodiscard]] bool is_open() const noexcept { return !closed_.load(std::memory_order_acquire); }
    void require_open(const char* action) const;
    // Waits for the device's work, destroys every object made from it. The VkDevice and host copies live until the last
    // owner of an object is gone, so that NumPy views stay readable.
    void close();
    // Cancels what is held; `why` is told to whoever waits for it. Returns sentences about what did not run.
    [[nodiscard]] std::vector<std::string> cancel_held(const char* why) noexcept;
    // Whether any submitted work may still run, or a thread compiles a pipeline.
    [[nodiscard]] bool busy();
    void wait_idle();
    // The end of all that was submitted until now.
    [[nodiscard]] std::vector<Point> submitted() const;
    // That, and the end of all that is held.
    [[nodiscard]] std::vector<Point> unfinished();
    // Adds the ends of submissions that may use any object, since they do not say what they use; `held`: also of those that wait
    // at the gate, which the caller must not wait for.
    void add_undeclared(std::vector<Point>& points, bool held);
    void mark_lost() noexcept {
        lost_.store(true, std::memory_order_release);
        deliveries_.abandon();
    }
    // What was running when the device was lost: kept by the first who knows, said in every error from then on.
    void note_lost_work(const std::string& work);
    [[nodiscard]] std::string lost_work() const;
    // Throws that `call` on `what` met the lost device, with what was running as far as it is known.
    [[noreturn]] void throw_lost(const char* call, const std::string& what);
    // Whether all that was submitted is known to have ended, without asking the driver, which a lost device would refuse.
    [[nodiscard]] bool known_idle() const noexcept;
    [[nodiscard]] bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }

    // Validation messages about this device, and our own of that kind.
    [[nodiscard]] Mailbox& messages() noexcept { return *mailbox_; }
    // Whether this thread called this device last, as far as is known.
    [[nodiscard]] bool is_acting() const noexcept { return watched_ == 0 || acting_device == watched_; }
    void report(Message message) { mailbox_->append(std::move(message)); }

    // Sentences for the log: extensions that are missing, fall-backs taken.
    void note(std::string text);
    [[nodiscard]] std::vector<std::string> take_notes();
    // Says a note only the first time.
    void note_once(const std::string& text);

    // Before the device uses, and before the host reads, memory that is not coherent. `what` is for the error.
    void flush(std::span<const VkMappedMemoryRange> ranges, const char* what) const;
    void invalidate(std::span<const VkMappedMemoryRange> ranges, const char* what) const;

    void name_handle(VkObjectType type, uint64_t handle, const std::string& name) const noexcept;

    // The tensors and images that are alive. Not for callers that hold a lock which destroying one of them takes: the caller may
    // be the last to hold it.
    [[nodiscard]] std::vector<std::shared_ptr<Resource>> resources();
    // Gives back the memory that nothing uses at the moment; the bytes. Drops pipelines and shaders that nothing uses, too. Never waits
    // for the device.
    uint64_t trim() noexcept;
    // Guards the names of objects, which reports read on any thread.
    [[nodiscard]] std::mutex& names_mutex() noexcept { return names_mutex_; }

    void adopt(Object& object);
    void forget(Object& object) noexcept;

private:
    friend struct ForkHandlers;

    Device() = default;
    void create_device(const DeviceOptions& options);
    // Waits for all that was submitted, whatever the driver answers.
    void see_through() noexcept;
    [[nodiscard]] std::vector<std::pair<uint32_t, uint32_t>>
    plan_queues(const std::vector<uint32_t>& families);

    std::shared_ptr<Instance> instance_;
    std::unique_ptr<Mailbox> mailbox_;
    uint64_t watched_ = 0;  // the mailbox's number, where the instance has a messenger
    PhysicalDevice physical_;
    Selection selection_;
    VkDevice handle_ = VK_NULL_HANDLE;
    VolkDeviceTable table_{};
    std::unique_ptr<FeatureChain> enabled_;
    std::vector<std::string> enabled_features_;
    std::vector<std::string> enabled_extensions_;
    ShaderHost shader_host_;
    bool buffer_addresses_ = false;
    std::vector<uint32_t> families_;
    std::vector<std::unique_ptr<Queue>> queues_;
    std::vector<LogicalQueue> logical_queues_;
    std::unique_ptr<WaitChoice> waits_;
    Gate gate_;
    Deliveries deliveries_;
    std::mutex timelines_mutex_;
    std::vector<std::unique_ptr<Timeline>> timelines_;  // until the end: points on them may be anywhere
    std::vector<Point> free_timelines_;
    std::mutex waiters_mutex_;
    std::vector<Waiter*> waiters_;
    Retire retire_;
    std::unique_ptr<MemoryAllocator> memory_;
    std::shared_ptr<DeviceHandles> handles_;
    std::unique_ptr<PipelineStore> pipelines_;
    std::unique_ptr<SamplerStore> samplers_;
    std::unique_ptr<Staging> staging_;
    std::unique_ptr<InitialWork> initial_work_;
    std::mutex order_mutex_;
    std::mutex graph_mutex_;
    uint64_t epoch_ = 0;
    std::vector<Stream*> built_streams_;
    std::mutex objects_mutex_;
    std::mutex names_mutex_;
    Object* objects_ = nullptr;
    std::mutex notes_mutex_;
    std::vector<std::string> notes_;
    std::vector<std::string> noted_;
    std::atomic<bool> closed_{false};
    std::atomic<bool> foreign_{false};
    std::atomic<bool> lost_{false};
    mutable std::mutex lost_mutex_;
    std::string lost_work_;
    PFN_vkSetDebugUtilsObjectNameEXT set_name_ = nullptr;
};

}  // namespace kp
