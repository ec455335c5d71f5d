#include "adapter/instance.hpp"

#include "adapter/validation_settings.hpp"
#include "base/error.hpp"
#include "base/loader_library.hpp"
#include "base/ranked.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace kp {
namespace {

// The first version that tracks timeline semaphores correctly if a thread waits for any of several.
constexpr const char* sound_validation = "1.3.296";

// volk keeps one set of global function pointers. The instance-level ones are the loader's trampolines, which
// dispatch by the given handle. So one set serves every instance; only loading them needs the lock.
RankedMutex& loader_mutex() {
    static RankedMutex mutex{LockRank::loader};
    return mutex;
}

constexpr const char* no_loader =
    "The Vulkan loader library was not found. Install it: Debian/Ubuntu 'apt-get install libvulkan1 "
    "mesa-vulkan-drivers', Fedora 'dnf install vulkan-loader mesa-vulkan-drivers', Arch 'pacman -S "
    "vulkan-icd-loader', "
    "macOS 'brew install vulkan-loader molten-vk', Windows: the GPU vendor's driver";

std::string loader_places() {
    const char* places = std::getenv(loader_variable);
    return places ? places : "";
}

struct Opened {
    RankedMutex mutex{LockRank::loader_state};
    bool yes = false;
    std::string places;  // the variable's value at that time
};
Opened& opened() {
    static Opened state;
    return state;
}

// Why there is no loader; empty once it is open.
std::string open_loader() {
    Opened& state = opened();
    const std::lock_guard lock(state.mutex);
    // A failed attempt is not remembered: the user may install a loader and try again in the same notebook.
    if (state.yes) return {};
    state.places = loader_places();
    const NamedLoader named = open_named_loader();
    if (named.get_proc) {
        volkInitializeCustom(named.get_proc);
    } else if (named.named) {
        return std::string("The environment variable ") + loader_variable +
               " names no Vulkan loader that opens: " + named.error;
    } else if (volkInitialize() != VK_SUCCESS) {
        return no_loader;
    }
    state.yes = true;
    return {};
}

constexpr const char* no_driver = "The Vulkan loader found no driver. Install the GPU vendor's driver, or a "
                                  "CPU driver: Debian/Ubuntu 'apt-get install "
                                  "mesa-vulkan-drivers' (lavapipe), Fedora 'dnf install "
                                  "mesa-vulkan-drivers'; and check VK_DRIVER_FILES and "
                                  "VK_ICD_FILENAMES, which override the loader's search";

// Newer loaders say only this much if a driver fails to list its devices.
constexpr const char* no_device =
    "The Vulkan loader found a driver, but no device: the driver has none, or failed to list them. Check "
    "that the GPU is there, that its kernel module is loaded and that you may open its files (Linux: "
    "/dev/dri, /dev/nvidia*), or install a CPU driver: Debian/Ubuntu 'apt-get install "
    "mesa-vulkan-drivers' (lavapipe), Fedora 'dnf install mesa-vulkan-drivers'. VK_LOADER_DEBUG=all shows "
    "what each driver answers; VK_DRIVER_FILES and VK_ICD_FILENAMES choose the drivers";

std::vector<VkLayerProperties> present_layers() {
    uint32_t count = 0;
    if (vkEnumerateInstanceLayerProperties(&count, nullptr) != VK_SUCCESS) return {};
    std::vector<VkLayerProperties> properties(count);
    if (vkEnumerateInstanceLayerProperties(&count, properties.data()) < 0) return {};
    properties.resize(count);
    return properties;
}

std::vector<std::string> layer_names() {
    std::vector<std::string> names;
    for (const auto& layer : present_layers()) names.emplace_back(layer.layerName);
    return names;
}

std::vector<std::string> extension_names(const char* layer) {
    uint32_t count = 0;
    if (vkEnumerateInstanceExtensionProperties(layer, &count, nullptr) != VK_SUCCESS) return {};
    std::vector<VkExtensionProperties> properties(count);
    if (vkEnumerateInstanceExtensionProperties(layer, &count, properties.data()) < 0) return {};
    std::vector<std::string> names;
    for (uint32_t i = 0; i < count; ++i) names.emplace_back(properties[i].extensionName);
    return names;
}

bool has_name(const std::vector<std::string>& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

std::string listed(const std::vector<std::string>& names) {
    std::string text;
    for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? "none" : text;
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
    if (is_about_settings(data->pMessage)) return VK_FALSE;
    // Mesa 25 warns of every samplerBuffer; only SPIR-V 1.6 and later forbid its type, and validation says
    // so.
    if (data->pMessage && std::strstr(data->pMessage, "OpTypeSampledImage should not have a Dim of Buffer"))
        return VK_FALSE;
    // volk asks for a function of video encoding as a device's, and with drivers that have it layers warn of
    // it.
    if (data->pMessageIdName && std::strstr(data->pMessageIdName, "vkGetDeviceProcAddr-device"))
        return VK_FALSE;
    Message message;
    if (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT)
        message.severity = "error";
    else if (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT)
        message.severity = "warning";
    else
        message.severity = "info";
    message.id = data->pMessageIdName ? data->pMessageIdName : "";
    message.text = data->pMessage ? data->pMessage : "";
    // This is the layer's own fault, not the program's, so a strict Manager must not raise it.
    if (message.id.find("VkSemaphore-state-timeout") != std::string::npos) {
        message.severity = "warning";
        message.text +=
            std::string(" (Two threads stood in a lock of the validation layer for 10 s: a fault of "
                        "layers before ") +
            sound_validation + ": the program is right, only slow. Use a newer layer)";
    }
    std::vector<uint64_t> handles;
    for (uint32_t i = 0; i < data->objectCount; ++i)
        if (data->pObjects[i].objectType == VK_OBJECT_TYPE_DEVICE ||
            data->pObjects[i].objectType == VK_OBJECT_TYPE_QUEUE)
            handles.push_back(data->pObjects[i].objectHandle);
    static_cast<MessageRouter*>(user)->route(std::move(message), handles);
    return VK_FALSE;
}

}  // namespace

std::string late_loader() {
    Opened& state = opened();
    const std::lock_guard lock(state.mutex);
    const std::string places = loader_places();
    if (!state.yes || places == state.places) return {};
    const auto said = [](const std::string& value) { return value.empty() ? "not set" : "'" + value + "'"; };
    return std::string(loader_variable) + " is " + said(places) +
           ", but the Vulkan loader was opened before, when it was " + said(state.places) +
           ": a process opens one loader. Set the variable before the first Manager, list of devices or "
           "import that "
           "makes one, or restart the process";
}

LoaderInfo loader_info() {
    LoaderInfo info;
    info.error = open_loader();
    if (!info.error.empty()) return info;
    info.available = true;
    info.version = volkGetInstanceVersion();
    for (const auto& layer : present_layers()) {
        info.layers.emplace_back(layer.layerName);
        info.layer_versions.push_back(layer.specVersion);
    }
    info.extensions = extension_names(nullptr);
    return info;
}

namespace {

RankedMutex instances_mutex{LockRank::instances};
std::vector<std::weak_ptr<Instance>> instances;

}  // namespace

void Instance::before_fork() { instances_mutex.lock(); }
void Instance::after_fork() { instances_mutex.unlock(); }
bool Instance::forget_all() {
    const bool any =
        std::any_of(instances.begin(), instances.end(), [](const auto& weak) { return !weak.expired(); });
    instances.clear();
    return any;
}

std::shared_ptr<Instance> Instance::get(const InstanceRequest& request) {
    const std::lock_guard lock(instances_mutex);
    std::erase_if(instances, [](const auto& weak) { return weak.expired(); });
    for (const auto& weak : instances) {
        auto instance = weak.lock();
        if (instance && instance->request_ == request) return instance;
    }
    std::shared_ptr<Instance> instance(new Instance(request));
    instances.push_back(instance);
    return instance;
}

std::shared_ptr<Instance> Instance::borrow(VkInstance handle) {
    if (const std::string error = open_loader(); !error.empty()) throw Error(ErrorKind::unavailable, error);
    std::shared_ptr<Instance> instance(new Instance());
    instance->handle_ = handle;
    instance->borrowed_ = true;
    const std::lock_guard lock(loader_mutex());
    volkLoadInstanceOnly(handle);
    return instance;
}

Instance::Instance(InstanceRequest request) : request_(std::move(request)) {
    if (const std::string error = open_loader(); !error.empty()) throw Error(ErrorKind::unavailable, error);
    if (volkGetInstanceVersion() < VK_API_VERSION_1_1)
        throw Error(ErrorKind::unavailable,
                    "The Vulkan loader is older than 1.1; kompute_py needs 1.2. Update the loader");

    std::vector<const char*> layers;
    std::vector<const char*> extensions;
    if (request_.validation || !request_.layers.empty()) {
        const auto available = layer_names();
        if (request_.validation) {
            if (!has_name(available, validation_layer))
                throw Error(ErrorKind::unavailable, std::string("Validation was asked for, but the layer ") +
                                                        validation_layer +
                                                        " is not installed. Debian/Ubuntu: 'apt-get install "
                                                        "vulkan-validationlayers'; others: the "
                                                        "Vulkan SDK. Layers present: " +
                                                        listed(available));
            layers.push_back(validation_layer);
        }
        for (const auto& layer : request_.layers) {
            if (!has_name(available, layer.c_str()))
                throw Error(ErrorKind::unavailable,
                            "The Vulkan layer '" + layer +
                                "' is not installed. Layers present: " + listed(available));
            if (std::find_if(layers.begin(), layers.end(), [&](const char* l) { return layer == l; }) ==
                layers.end())
                layers.push_back(layer.c_str());
        }
    }

    const auto available = extension_names(nullptr);
    VkInstanceCreateFlags flags = 0;
    if (has_name(available, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
        // Without it, the loader hides MoltenVK and other drivers that do not implement all of Vulkan.
        extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
        flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
    }
    // Also without layers: debuggers, profilers and drivers show the names of objects.
    debug_utils_ =
        has_name(available, VK_EXT_DEBUG_UTILS_EXTENSION_NAME) ||
        (!layers.empty() && has_name(extension_names(layers[0]), VK_EXT_DEBUG_UTILS_EXTENSION_NAME));
    const bool wants_messages = debug_utils_ && !layers.empty();
    if (debug_utils_) extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);

    VkDebugUtilsMessengerCreateInfoEXT messenger{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
    messenger.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    // No performance advice: it concerns our choices, such as images in GENERAL, which the user cannot
    // change.
    messenger.messageType =
        VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
    messenger.pfnUserCallback = on_message;
    messenger.pUserData = &messages_;

    const void* next = nullptr;
    if (wants_messages) {
        messenger.pNext = next;
        next = &messenger;
    }
    ValidationSettings settings;
    if (request_.validation) next = settings.chain(extension_names(validation_layer), extensions, next);

    VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.pApplicationName = "kompute_py";
    application.pEngineName = "kompute_py";
    application.apiVersion = VK_API_VERSION_1_3;

    VkInstanceCreateInfo create{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    create.pNext = next;
    create.flags = flags;
    create.pApplicationInfo = &application;
    create.enabledLayerCount = static_cast<uint32_t>(layers.size());
    create.ppEnabledLayerNames = layers.data();
    create.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
    create.ppEnabledExtensionNames = extensions.data();

    const std::lock_guard lock(loader_mutex());
    const OnlyDriver only(request_.driver);
    VkResult result = vkCreateInstance(&create, nullptr, &handle_);
    if (result == VK_ERROR_EXTENSION_NOT_PRESENT && settings.stop_naming(extensions)) {
        create.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
        result = vkCreateInstance(&create, nullptr, &handle_);
    }
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER && !request_.driver.empty())
        throw Error(ErrorKind::unavailable,
                    "The Vulkan loader cannot use the driver of " + request_.driver +
                        ": VK_LOADER_DEBUG=all shows why",
                    result);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER) throw Error(ErrorKind::unavailable, no_driver, result);
    check_vk(result, "vkCreateInstance", "the Vulkan instance");
    volkLoadInstanceOnly(handle_);
    if (wants_messages) {
        messenger.pNext = nullptr;
        auto make = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
            vkGetInstanceProcAddr(handle_, "vkCreateDebugUtilsMessengerEXT"));
        const VkResult made =
            make ? make(handle_, &messenger, nullptr, &messenger_) : VK_ERROR_EXTENSION_NOT_PRESENT;
        if (made != VK_SUCCESS) {
            vkDestroyInstance(handle_, nullptr);
            throw_vk(made, "vkCreateDebugUtilsMessengerEXT", "the validation message sink");
        }
    }
}

Instance::~Instance() {
    if (messenger_ != VK_NULL_HANDLE) {
        auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
            vkGetInstanceProcAddr(handle_, "vkDestroyDebugUtilsMessengerEXT"));
        if (destroy) destroy(handle_, messenger_, nullptr);
    }
    if (!borrowed_) vkDestroyInstance(handle_, nullptr);
}

std::vector<VkPhysicalDevice> Instance::physical_devices() const {
    std::vector<VkPhysicalDevice> devices;
    VkResult result = VK_INCOMPLETE;
    // The devices may change between the two calls (a GPU is plugged in), so repeat until the answer is
    // complete.
    while (result == VK_INCOMPLETE) {
        uint32_t count = 0;
        result = vkEnumeratePhysicalDevices(handle_, &count, nullptr);
        if (result == VK_ERROR_INITIALIZATION_FAILED) throw Error(ErrorKind::unavailable, no_device, result);
        check_vk(result, "vkEnumeratePhysicalDevices", "the list of devices");
        devices.resize(count);
        if (count == 0) break;
        result = vkEnumeratePhysicalDevices(handle_, &count, devices.data());
        if (result != VK_INCOMPLETE) check_vk(result, "vkEnumeratePhysicalDevices", "the list of devices");
        devices.resize(count);
    }
    if (devices.empty()) throw Error(ErrorKind::unavailable, no_device);
    return devices;
}

}  // namespace kp
