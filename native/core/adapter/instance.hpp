// The Vulkan loader, and instances that equal requests share.
#pragma once

#include "base/messages.hpp"
#include "base/vulkan.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kp {

struct InstanceRequest {
    bool validation = false;
    std::vector<std::string> layers;  // further layers by name
    std::string driver;               // the manifest of the only driver; empty: the loader finds drivers

    friend bool operator==(const InstanceRequest&, const InstanceRequest&) = default;
};

struct LoaderInfo {
    bool available = false;
    std::string error;
    uint32_t version = 0;
    std::vector<std::string> layers;
    std::vector<uint32_t> layer_versions;  // of Vulkan, which a layer was made for
    std::vector<std::string> extensions;
};

// Never throws. `kompute-py info` shows it on a machine without Vulkan.
[[nodiscard]] LoaderInfo loader_info();

// Why the open loader is not the one that the environment names now; empty if it is, or if none is open.
[[nodiscard]] std::string late_loader();

class Instance {
public:
    // The instance of this request, made on first use and shared until its last owner is gone. Throws
    // Error(unavailable), naming the package to install, if there is no loader, no driver or no such layer.
    [[nodiscard]] static std::shared_ptr<Instance> get(const InstanceRequest& request);
    // Somebody else's instance, of the same loader, for Vulkan 1.2 or newer. It is not destroyed here. Throws
    // Error(unavailable) if there is no loader.
    [[nodiscard]] static std::shared_ptr<Instance> borrow(VkInstance handle);

    // Call these around fork(): they keep the list of instances consistent in the child, which then forgets
    // it.
    static void before_fork();
    static void after_fork();
    // Returns true if there were any.
    static bool forget_all();

    Instance(const Instance&) = delete;
    Instance& operator=(const Instance&) = delete;
    ~Instance();

    [[nodiscard]] VkInstance handle() const noexcept { return handle_; }
    [[nodiscard]] bool validation() const noexcept { return request_.validation; }
    // VK_EXT_debug_utils is enabled, so objects can be named. If a layer may send messages, they are
    // received.
    [[nodiscard]] bool debug_utils() const noexcept { return debug_utils_; }
    [[nodiscard]] bool sends_messages() const noexcept { return messenger_ != VK_NULL_HANDLE; }
    [[nodiscard]] MessageRouter& messages() noexcept { return messages_; }
    [[nodiscard]] std::vector<VkPhysicalDevice> physical_devices() const;

private:
    explicit Instance(InstanceRequest request);
    Instance() = default;  // for borrow()

    InstanceRequest request_;
    VkInstance handle_ = VK_NULL_HANDLE;
    bool borrowed_ = false;
    VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
    bool debug_utils_ = false;
    MessageRouter messages_;
};

}  // namespace kp
