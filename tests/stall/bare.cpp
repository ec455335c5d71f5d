// One thread raises a timeline semaphore, another waits for each value: nothing between the program and the
// loader.
//
//     bare DRIVER_LIBRARY CHECKS HOW ROUNDS [LATE_MS]
//
// CHECKS: "sync" asks the validation layer, if one is there, for synchronization validation; "plain" does
// not. HOW: "wait" waits in vkWaitSemaphores, "any" in a wait-any over the semaphore twice, "query" asks
// vkGetSemaphoreCounterValue again and again, "apart" the same under a lock that the raising thread holds,
// too. LATE_MS: each value comes so much later.
//
// A third thread looks at both. While one of them is inside one call for more than a second, it asks the
// *driver* for the counter: through the driver's own function, got from the driver's library, which no layer
// sees. It can, because layers hand on VkDevice as it is, and the validation layer is told to do so with
// VkSemaphore.
//
// Each line of output is one event: "stall CALL AWAITED DRIVER_HAS" while it lasts, "long CALL SECONDS" at
// its end, "message ID" for each message of a layer, "rounds N SECONDS" at the end.
#include <vulkan/vulkan.h>

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto long_call = 1s;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

void check(VkResult result, const char* call) {
    if (result == VK_SUCCESS) return;
    std::fprintf(stderr, "%s: VkResult %d\n", call, result);
    std::exit(2);
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void*) {
    std::printf("message %s\n", data->pMessageIdName ? data->pMessageIdName : "");
    return VK_FALSE;
}

// The driver's vkGetSemaphoreCounterValue, got past the loader and its layers.
PFN_vkGetSemaphoreCounterValue below_all_layers(const char* library, VkDevice device) {
    void* driver = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!driver) {
        std::fprintf(stderr, "%s\n", dlerror());
        std::exit(2);
    }
    const auto find = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(driver, "vk_icdGetInstanceProcAddr"));
    const auto create = reinterpret_cast<PFN_vkCreateInstance>(find(nullptr, "vkCreateInstance"));
    VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    info.pApplicationInfo = &application;
    VkInstance instance = VK_NULL_HANDLE;  // kept: the function is the driver's, whichever instance gave it
    check(create(&info, nullptr, &instance), "the driver's vkCreateInstance");
    const auto find_device = reinterpret_cast<PFN_vkGetDeviceProcAddr>(find(instance, "vkGetDeviceProcAddr"));
    return reinterpret_cast<PFN_vkGetSemaphoreCounterValue>(
        find_device(device, "vkGetSemaphoreCounterValue"));
}

// What a thread is doing, for the one that looks.
struct Doing {
    const char* call;
    std::atomic<uint64_t> value{0};  // 0: not inside
    std::atomic<Clock::rep> since{0};

    template <class Call>
    VkResult inside(uint64_t which, Call&& made) {
        const auto began = Clock::now();
        since = began.time_since_epoch().count();
        value = which;
        const VkResult result = made();
        value = 0;
        const auto took = Clock::now() - began;
        if (took > long_call) std::printf("long %s %.3f\n", call, seconds(took));
        return result;
    }
};

}  // namespace

int main(int count, char** arguments) {
    if (count < 5) return 2;
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const std::string how = arguments[3];
    const uint64_t rounds = std::strtoull(arguments[4], nullptr, 10);
    const auto late = std::chrono::milliseconds(count > 5 ? std::atoi(arguments[5]) : 0);

    VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = VK_API_VERSION_1_2;
    const char* debug = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    VkDebugUtilsMessengerCreateInfoEXT messenger{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
    messenger.messageSeverity =
        VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger.messageType =
        VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT;
    messenger.pfnUserCallback = on_message;
    VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    const VkValidationFeatureEnableEXT also = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
    const VkValidationFeatureDisableEXT without = VK_VALIDATION_FEATURE_DISABLE_UNIQUE_HANDLES_EXT;
    VkValidationFeaturesEXT features{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT};
    features.enabledValidationFeatureCount = std::string(arguments[2]) == "sync" ? 1 : 0;
    features.pEnabledValidationFeatures = &also;
    features.disabledValidationFeatureCount = 1;
    features.pDisabledValidationFeatures = &without;
    messenger.pNext = &features;
    info.pNext = &messenger;
    info.pApplicationInfo = &application;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &debug;
    VkInstance instance = VK_NULL_HANDLE;
    check(vkCreateInstance(&info, nullptr, &instance), "vkCreateInstance");
    const auto listen = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
        vkGetInstanceProcAddr(instance, "vkCreateDebugUtilsMessengerEXT"));
    messenger.pNext = nullptr;
    VkDebugUtilsMessengerEXT listening = VK_NULL_HANDLE;
    check(listen(instance, &messenger, nullptr, &listening), "vkCreateDebugUtilsMessengerEXT");

    uint32_t devices = 1;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    if (vkEnumeratePhysicalDevices(instance, &devices, &physical) < 0 || devices == 0) return 2;
    const float priority = 1;
    VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    VkPhysicalDeviceTimelineSemaphoreFeatures timelines{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
    timelines.timelineSemaphore = VK_TRUE;
    VkDeviceCreateInfo make{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    make.pNext = &timelines;
    make.queueCreateInfoCount = 1;
    make.pQueueCreateInfos = &queue;
    VkDevice device = VK_NULL_HANDLE;
    check(vkCreateDevice(physical, &make, nullptr, &device), "vkCreateDevice");

    VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    VkSemaphoreCreateInfo kind{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    kind.pNext = &type;
    VkSemaphore semaphore = VK_NULL_HANDLE;
    check(vkCreateSemaphore(device, &kind, nullptr, &semaphore), "vkCreateSemaphore");
    const auto ask_driver = below_all_layers(arguments[1], device);

    Doing raising{"vkSignalSemaphore"},
        waiting{how == "wait" || how == "any" ? "vkWaitSemaphores" : "vkGetSemaphoreCounterValue"};
    std::atomic<bool> over{false};
    std::mutex apart;
    const auto lock = [&] {
        return how == "apart" ? std::unique_lock(apart) : std::unique_lock<std::mutex>();
    };
    const auto began = Clock::now();

    std::thread looks([&] {
        while (!over) {
            std::this_thread::sleep_for(100ms);
            for (const Doing* each : {&raising, &waiting}) {
                const uint64_t awaited = each->value;
                const Clock::rep since = each->since;
                if (awaited == 0 || Clock::now() - Clock::time_point(Clock::duration(since)) < long_call)
                    continue;
                uint64_t has = 0;
                check(ask_driver(device, semaphore, &has), "the driver's vkGetSemaphoreCounterValue");
                // A call whose value has just come is about to return: what still stands after a while is a
                // stall.
                std::this_thread::sleep_for(500ms);
                if (each->value != awaited || each->since != since) continue;
                std::printf("stall %s %llu %llu\n", each->call, static_cast<unsigned long long>(awaited),
                            static_cast<unsigned long long>(has));
            }
        }
    });
    // The two meet at all distances: the raising thread does not wait for the other one.
    std::atomic<uint64_t> raised{0};
    std::thread waits([&] {
        for (uint64_t next = 1; next <= rounds; next = raised + 1) {
            if (how == "wait" || how == "any") {
                const std::vector<VkSemaphore> semaphores(how == "any" ? 2 : 1, semaphore);
                const std::vector<uint64_t> values(semaphores.size(), next);
                VkSemaphoreWaitInfo wait{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
                wait.flags = how == "any" ? VK_SEMAPHORE_WAIT_ANY_BIT : 0;
                wait.semaphoreCount = static_cast<uint32_t>(semaphores.size());
                wait.pSemaphores = semaphores.data();
                wait.pValues = values.data();
                check(waiting.inside(next, [&] { return vkWaitSemaphores(device, &wait, UINT64_MAX); }),
                      "vkWaitSemaphores");
            } else {
                const auto held = lock();
                uint64_t now = 0;
                check(
                    waiting.inside(next, [&] { return vkGetSemaphoreCounterValue(device, semaphore, &now); }),
                    "vkGetSemaphoreCounterValue");
            }
        }
    });
    for (uint64_t round = 1; round <= rounds; ++round) {
        std::this_thread::sleep_for(late);
        for (const auto start = Clock::now(); Clock::now() - start < 1us * (round % 100);) {}
        VkSemaphoreSignalInfo signal{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO};
        signal.semaphore = semaphore;
        signal.value = round;
        const auto held = lock();
        check(raising.inside(round, [&] { return vkSignalSemaphore(device, &signal); }), "vkSignalSemaphore");
        raised = round;
    }
    waits.join();
    over = true;
    looks.join();
    std::printf("rounds %llu %.2f\n", static_cast<unsigned long long>(rounds), seconds(Clock::now() - began));
    vkDestroySemaphore(device, semaphore, nullptr);
    vkDestroyDevice(device, nullptr);
    return 0;
}
