// An open VkDevice: its function table, its properties and enabled features, and its errors.
//
// The rest of the core above this room uses a device through its context. The context has no queue work,
// memory or objects: those belong to Device, which is a context and owns them.
#pragma once

#include "adapter/instance.hpp"
#include "adapter/physical_device.hpp"
#include "base/messages.hpp"
#include "base/object_kind.hpp"
#include "base/ranked.hpp"
#include "base/vulkan.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kp {

class Error;

class DeviceHandles;

// A device that somebody else made and will destroy. Nothing can be asked about what it was made with.
struct BorrowedDevice {
    VkInstance instance = VK_NULL_HANDLE;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    VkDevice device = VK_NULL_HANDLE;
    std::vector<std::pair<uint32_t, uint32_t>> queues;  // family and index: nobody else submits to them
    std::vector<std::string> extensions;                // that are enabled
    std::vector<std::string> features;
    std::shared_ptr<void> owner;  // kept until nothing here uses the device any more
};

// The features of an extension that a caller turns on by the number of their struct, in Vulkan's order.
struct RawFeatures {
    std::string extension;
    uint32_t type = 0;  // VkStructureType
    std::vector<bool> wanted;
};

struct ContextOptions {
    std::optional<BorrowedDevice> borrowed;  // the other options mean nothing then
    DeviceRequest request;
    std::optional<std::string> visible;  // the list of visible devices; nullopt: all
    InstanceRequest instance;
    std::vector<uint32_t> family_queue_indices;    // one queue each; repeats take the family's next queue
    std::vector<float> queue_priorities;           // of each of them; empty: all 1
    std::vector<std::string> desired_extensions;   // enabled if the device has them, else noted
    std::vector<std::string> required_extensions;  // a device without them is passed over
    std::vector<RawFeatures> features;             // of those that are enabled; of others they mean nothing
    bool robust_access = true;
    std::string dump;     // the folder that keeps recordings as text; "": none
    double watchdog = 0;  // seconds that the system lets a submission run; 0: as long as it takes
};

class DeviceContext : public std::enable_shared_from_this<DeviceContext> {
public:
    DeviceContext(const DeviceContext&) = delete;
    DeviceContext& operator=(const DeviceContext&) = delete;

    [[nodiscard]] VkDevice handle() const noexcept { return handle_; }
    [[nodiscard]] const VolkDeviceTable& vk() const noexcept {
        if (watched_ != 0) [[unlikely]]
            acting_device = watched_;  // the call's messages belong to this device
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
    // The options of these names; "" and 0: none.
    [[nodiscard]] const std::string& dump() const noexcept { return dump_; }
    [[nodiscard]] double watchdog() const noexcept { return watchdog_; }
    [[nodiscard]] bool buffer_addresses() const noexcept { return buffer_addresses_; }
    [[nodiscard]] Instance& instance() const noexcept { return *instance_; }
    [[nodiscard]] const Selection& selection() const noexcept { return selection_; }
    // Vulkan objects with several owners; the list frees them with the device at the latest.
    [[nodiscard]] const std::shared_ptr<DeviceHandles>& handles() const noexcept { return handles_; }

    // Buffers and images are CONCURRENT over the opened queue families if there are several.
    template <typename CreateInfo>
    void share(CreateInfo& create) const noexcept {
        create.sharingMode = families_.size() > 1 ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE;
        create.queueFamilyIndexCount = families_.size() > 1 ? static_cast<uint32_t>(families_.size()) : 0;
        create.pQueueFamilyIndices = families_.size() > 1 ? families_.data() : nullptr;
    }

    // True if it belongs to a parent process (see device/fork.hpp).
    [[nodiscard]] bool foreign() const noexcept { return foreign_.load(std::memory_order_relaxed); }
    // Throws if it does.
    void require_own() const;
    [[nodiscard]] bool is_open() const noexcept { return !closed_.load(std::memory_order_acquire); }
    void require_open(const char* action) const;

    void mark_lost() noexcept {
        lost_.store(true, std::memory_order_release);
        was_lost();
    }
    [[nodiscard]] bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }
    // The work that ran when the device was lost. The first reporter's text is kept and named in every later
    // error.
    void note_lost_work(const std::string& work);
    [[nodiscard]] std::string lost_work() const;
    // In the handler of `error`: throws it again, with that work if the device was lost and it is not named
    // yet. Takes locks of all objects of the device, so the caller holds none.
    [[noreturn]] void rethrow_explained(const Error& error);
    // Throws the error that `call` on `what` met the lost device, with the work that ran, if it is known.
    [[noreturn]] void throw_lost(const char* call, const std::string& what);

    // Validation messages about this device, and our own of that kind.
    [[nodiscard]] Mailbox& messages() noexcept { return *mailbox_; }
    // True if this thread called this device last, as far as is known.
    [[nodiscard]] bool is_acting() const noexcept { return watched_ == 0 || acting_device == watched_; }
    void report(Message message) { mailbox_->append(std::move(message)); }

    // Sentences for the log: missing extensions, fall-backs in use.
    void note(std::string text);
    [[nodiscard]] std::vector<std::string> take_notes();
    // Adds a note only the first time.
    void note_once(const std::string& text);

    // For non-coherent memory: flush before the device uses it, invalidate before the host reads it. `what`
    // is for the error.
    void flush(std::span<const VkMappedMemoryRange> ranges, const char* what) const;
    void invalidate(std::span<const VkMappedMemoryRange> ranges, const char* what) const;

    // One more object of this kind, of the device and of the process, or one fewer.
    void count(ObjectKind kind, int64_t change) const noexcept {
        alive_[static_cast<size_t>(kind)].fetch_add(change, std::memory_order_relaxed);
        alive_count(kind).fetch_add(change, std::memory_order_relaxed);
    }
    // The live objects of this kind, of this device.
    [[nodiscard]] int64_t alive(ObjectKind kind) const noexcept {
        return alive_[static_cast<size_t>(kind)].load(std::memory_order_relaxed);
    }

    void name_handle(VkObjectType type, uint64_t handle, const std::string& name) const noexcept;
    // Until end(), the commands that are recorded have a label, which debuggers, profilers, messages of
    // validation and some drivers' reports show: `name`, and the line of the user's that `line` points to. A
    // recording that fails has no end(): its command buffer may be invalid, and nobody submits it.
    class Label {
    public:
        Label(const DeviceContext& device, VkCommandBuffer commands, const std::string& name,
              const std::string* line);
        Label(const Label&) = delete;
        Label& operator=(const Label&) = delete;
        // In the command buffer that is recorded then, which may be a later one of the same submission.
        void end(VkCommandBuffer commands) const {
            if (end_) end_(commands);
        }

    private:
        PFN_vkCmdEndDebugUtilsLabelEXT end_ = nullptr;
    };

protected:
    // Chooses a device and opens it. Throws Error(unavailable) or Error(not_found) with the reasons why each
    // device was passed over.
    explicit DeviceContext(const ContextOptions& options);
    // Destroys the VkDevice; nothing may use it any more.
    ~DeviceContext();

    // The opened queues: family and index of each requested queue. A queue appears twice if its family has
    // too few.
    using QueuePlace = std::pair<uint32_t, uint32_t>;
    [[nodiscard]] const std::vector<QueuePlace>& queue_places() const noexcept { return queue_places_; }
    // The device is lost and will never finish its work.
    virtual void was_lost() noexcept {}
    // How far each queue came, for the error of a lost device.
    [[nodiscard]] virtual std::string progress() const { return {}; }
    // The work that the device has not ended, in words; empty if there is none.
    [[nodiscard]] virtual std::string running_work() const { return {}; }
    // True if the VkDevice is somebody else's.
    [[nodiscard]] bool borrowed() const noexcept { return borrowed_; }
    // Returns true if it was open until now.
    [[nodiscard]] bool close_once() noexcept { return !closed_.exchange(true, std::memory_order_acq_rel); }
    // In a child process: the device belongs to the parent.
    void mark_foreign() noexcept;

private:
    DeviceContext() = default;
    void choose(const ContextOptions& options);
    void open(const ContextOptions& options);
    void borrow(const BorrowedDevice& given);
    // With the features that `wanted` takes, of those that the device has.
    void enable(const std::function<bool(const char*)>& wanted);
    void took(VkDevice device, std::vector<std::string> extensions);
    [[nodiscard]] std::vector<QueuePlace> plan_queues(const std::vector<uint32_t>& families);

    // The lost device: its name, how far its queues came, and the driver's words. It stays as it was first.
    [[nodiscard]] std::string lost_device();
    // The driver's words about its loss (VK_EXT_device_fault); empty if nothing.
    [[nodiscard]] std::string fault() const;

    std::shared_ptr<void> owner_;  // of a borrowed device; goes last
    bool borrowed_ = false;
    std::shared_ptr<Instance> instance_;
    std::unique_ptr<Mailbox> mailbox_;
    uint64_t watched_ = 0;  // the mailbox's number, if the instance has a messenger
    PhysicalDevice physical_;
    Selection selection_;
    VkDevice handle_ = VK_NULL_HANDLE;
    VolkDeviceTable table_{};
    std::unique_ptr<FeatureChain> enabled_;
    std::vector<std::string> enabled_features_;
    std::vector<std::string> enabled_extensions_;
    ShaderHost shader_host_;
    std::string dump_;
    double watchdog_ = 0;
    bool buffer_addresses_ = false;
    std::vector<uint32_t> families_;
    std::vector<QueuePlace> queue_places_;
    std::shared_ptr<DeviceHandles> handles_;
    RankedMutex notes_mutex_{LockRank::notes};
    std::vector<std::string> notes_;
    std::vector<std::string> noted_;
    mutable std::array<std::atomic<int64_t>, object_kinds> alive_{};
    std::atomic<bool> closed_{false};
    std::atomic<bool> foreign_{false};
    std::atomic<bool> lost_{false};
    mutable RankedMutex lost_mutex_{LockRank::lost_work};
    std::string lost_work_;
    std::string lost_device_;
    // Null without VK_EXT_debug_utils.
    PFN_vkSetDebugUtilsObjectNameEXT set_name_ = nullptr;
    PFN_vkCmdBeginDebugUtilsLabelEXT begin_label_ = nullptr;
    PFN_vkCmdEndDebugUtilsLabelEXT end_label_ = nullptr;
};

}  // namespace kp
