#include "loader.hpp"

#include <dlfcn.h>

namespace benchmark_floor {
namespace {

PFN_vkGetInstanceProcAddr entry() {
    // Never closed, as any Vulkan program keeps its loader.
    static void* const library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        throw std::runtime_error(
            "libvulkan.so.1 cannot be opened; install the Vulkan loader (Debian: libvulkan1)");
    auto* found = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr"));
    if (found == nullptr) throw std::runtime_error("libvulkan.so.1 has no vkGetInstanceProcAddr");
    return found;
}

template <class Function, class Loaded>
void assign(Function& function, Loaded loaded, const char* name) {
    function = reinterpret_cast<Function>(loaded);
    if (function == nullptr) throw std::runtime_error(std::string("The Vulkan driver has no ") + name);
}

}  // namespace

void check(VkResult result, const char* call) {
    if (result != VK_SUCCESS)
        throw std::runtime_error(std::string(call) + " returned VkResult " + std::to_string(result));
}

void Functions::load_global() {
    const auto get = entry();
#define FLOOR_LOAD(name) assign(name, get(VK_NULL_HANDLE, #name), #name);
    FLOOR_GLOBAL_FUNCTIONS(FLOOR_LOAD)
#undef FLOOR_LOAD
}

void Functions::load_instance(VkInstance instance) {
    const auto get = entry();
#define FLOOR_LOAD(name) assign(name, get(instance, #name), #name);
    FLOOR_INSTANCE_FUNCTIONS(FLOOR_LOAD)
#undef FLOOR_LOAD
}

void Functions::load_device(VkDevice device) {
#define FLOOR_LOAD(name) assign(name, vkGetDeviceProcAddr(device, #name), #name);
    FLOOR_DEVICE_FUNCTIONS(FLOOR_LOAD)
#undef FLOOR_LOAD
}

}  // namespace benchmark_floor
