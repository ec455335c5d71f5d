// Name to function: what the loader and the application get from vkGet*ProcAddr.
#include "entry_points.hpp"

#include <string_view>
#include <type_traits>

namespace kpnull {
namespace {

constexpr const char* kCalibrated = "VK_EXT_calibrated_timestamps";
constexpr const char* kCooperative = "VK_KHR_cooperative_matrix";

enum class Level { Global, Instance, Physical, Device };
struct Known {
    PFN_vkVoidFunction function;
    Level level;
    uint32_t core;  // 10 ... 13; 0: extension only
    const char* extension;
};

uint32_t version(uint32_t core) { return VK_MAKE_API_VERSION(0, core / 10, core % 10, 0); }

const std::unordered_map<std::string_view, Known>& table() {
    static const auto* known = new std::unordered_map<std::string_view, Known>{
#define KP_FN(name) reinterpret_cast<PFN_vkVoidFunction>(&name)
#define KP_G(name) {#name, {KP_FN(name), Level::Global, 10, nullptr}},
#define KP_I(name, core) {#name, {KP_FN(name), Level::Instance, core, nullptr}},
#define KP_IE(name, extension) {#name, {KP_FN(name), Level::Instance, 0, extension}},
#define KP_P(name, core) {#name, {KP_FN(name), Level::Physical, core, nullptr}},
#define KP_PE(name, extension) {#name, {KP_FN(name), Level::Physical, 0, extension}},
#define KP_PA(alias, name, extension) {#alias, {KP_FN(name), Level::Physical, 0, extension}},
#define KP_D(name, core) {#name, {KP_FN(name), Level::Device, core, nullptr}},
#define KP_DE(name, extension) {#name, {KP_FN(name), Level::Device, 0, extension}},
        KP_ENTRY_POINTS(KP_G, KP_I, KP_IE, KP_P, KP_PE, KP_PA, KP_D, KP_DE)};
    return *known;
}

}  // namespace

bool knows_entry_point(const char* name) { return name && table().contains(name); }

// As the loader's own terminator does, extension functions resolve here whether or not the extension is
// enabled: the loader asks before it knows.
PFN_vkVoidFunction instance_function(const Instance* instance, const char* name) {
    const auto found = table().find(name);
    if (found == table().end()) return nullptr;
    const Known& known = found->second;
    if (!instance) return known.level == Level::Global ? known.function : nullptr;
    if (known.core && version(known.core) > instance->config.api_version) return nullptr;
    return known.function;
}

PFN_vkVoidFunction physical_device_function(const char* name) {
    const auto found = table().find(name);
    return found != table().end() && found->second.level == Level::Physical ? found->second.function
                                                                            : nullptr;
}

PFN_vkVoidFunction device_function(const Device& device, const char* name) {
    const auto found = table().find(name);
    if (found == table().end()) return nullptr;
    const Known& known = found->second;
    if (known.level != Level::Device) return nullptr;
    if (known.core) return version(known.core) <= device.api_version ? known.function : nullptr;
    return device.extensions.contains(known.extension) ? known.function : nullptr;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char* name) {
    return instance_function(from<Instance>(instance), name);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetDeviceProcAddr(VkDevice device, const char* name) {
    return device_function(*from<Device>(device), name);
}

}  // namespace kpnull

#define KP_EXPORT extern "C" __attribute__((visibility("default")))

KP_EXPORT VkResult VKAPI_CALL vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t* version) {
    constexpr uint32_t kNewest = 5;
    if (*version < 2) return VK_ERROR_INCOMPATIBLE_DRIVER;
    if (*version > kNewest) *version = kNewest;
    return VK_SUCCESS;
}
KP_EXPORT PFN_vkVoidFunction VKAPI_CALL vk_icdGetInstanceProcAddr(VkInstance instance, const char* name) {
    return kpnull::instance_function(kpnull::from<kpnull::Instance>(instance), name);
}
KP_EXPORT PFN_vkVoidFunction VKAPI_CALL vk_icdGetPhysicalDeviceProcAddr(VkInstance, const char* name) {
    return kpnull::physical_device_function(name);
}
