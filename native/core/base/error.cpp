#include "base/error.hpp"

#include <algorithm>
#include <iterator>

namespace kp {

namespace {

struct ResultInfo {
    int32_t result;
    const char* name;
    ErrorKind kind;
    const char* advice;  // the meaning and the fix
};

// By number, not by the header's enumerators: a driver may be newer than the header of the build.
constexpr ResultInfo kResults[] = {
    {0, "VK_SUCCESS", ErrorKind::internal,
     "the call reported success where a failure was handled; please report this"},
    {1, "VK_NOT_READY", ErrorKind::internal,
     "the result is not there yet; wait for the work before asking for it"},
    {2, "VK_TIMEOUT", ErrorKind::eval_timeout,
     "the device did not finish in time; the work goes on: await it again, with a longer timeout"},
    {3, "VK_EVENT_SET", ErrorKind::internal, "an event's state came back where a plain success was expected"},
    {4, "VK_EVENT_RESET", ErrorKind::internal,
     "an event's state came back where a plain success was expected"},
    {5, "VK_INCOMPLETE", ErrorKind::internal, "the driver had more to list than it had announced; try again"},
    {-1, "VK_ERROR_OUT_OF_HOST_MEMORY", ErrorKind::out_of_memory,
     "the driver found no host memory (RAM); free memory in this process or on this machine"},
    {-2, "VK_ERROR_OUT_OF_DEVICE_MEMORY", ErrorKind::out_of_memory,
     "the device's memory is exhausted; destroy tensors that are no longer needed, use smaller ones, or "
     "choose a "
     "device with more memory"},
    {-3, "VK_ERROR_INITIALIZATION_FAILED", ErrorKind::unavailable,
     "the driver could not start; close devices if many are open, and check that it is installed for this "
     "GPU and "
     "that this user may open it (on "
     "Linux, "
     "membership of the groups render and video), or choose another device"},
    {-4, "VK_ERROR_DEVICE_LOST", ErrorKind::device_lost,
     "the device stopped: a shader that crashed or ran longer than the system allows, a driver fault, or the "
     "device "
     "was removed. All its contents are lost: make a new Manager. Manager(validation=True) helps to find the "
     "cause"},
    {-5, "VK_ERROR_MEMORY_MAP_FAILED", ErrorKind::out_of_memory,
     "there is no room in this process's address space to map the memory; free mapped tensors or use smaller "
     "ones"},
    {-6, "VK_ERROR_LAYER_NOT_PRESENT", ErrorKind::unavailable,
     "a requested layer is not installed; for validation install the Vulkan validation layers (Debian and "
     "Ubuntu: "
     "vulkan-validationlayers), or do not ask for the layer"},
    {-7, "VK_ERROR_EXTENSION_NOT_PRESENT", ErrorKind::unavailable,
     "a required extension is not supported; do not require it, update the driver, or choose another device"},
    {-8, "VK_ERROR_FEATURE_NOT_PRESENT", ErrorKind::unavailable,
     "a required feature is not supported; do not require it, update the driver, or choose another device"},
    {-9, "VK_ERROR_INCOMPATIBLE_DRIVER", ErrorKind::unavailable,
     "no installed driver supports this version of Vulkan; install or update one (Debian and Ubuntu: "
     "mesa-vulkan-drivers, which includes a CPU driver)"},
    {-10, "VK_ERROR_TOO_MANY_OBJECTS", ErrorKind::out_of_memory,
     "the driver's limit on objects of this kind is reached; destroy some that are no longer needed"},
    {-11, "VK_ERROR_FORMAT_NOT_SUPPORTED", ErrorKind::unavailable,
     "the device does not support this image format; use another dtype or number of channels, or a tensor"},
    {-12, "VK_ERROR_FRAGMENTED_POOL", ErrorKind::out_of_memory,
     "a descriptor pool is too fragmented; destroy algorithms or sequences that are no longer needed"},
    {-13, "VK_ERROR_UNKNOWN", ErrorKind::internal,
     "the driver gives no reason; Manager(validation=True) may find a wrong use, else update the driver"},
    {-1000069000, "VK_ERROR_OUT_OF_POOL_MEMORY", ErrorKind::out_of_memory,
     "a pool is full; destroy algorithms or sequences that are no longer needed"},
    {-1000072003, "VK_ERROR_INVALID_EXTERNAL_HANDLE", ErrorKind::invalid_argument,
     "the memory or handle that was to be imported is not one that the device can use; check that it is "
     "valid, of "
     "the stated type and suitably aligned, or copy the data instead"},
    {-1000161000, "VK_ERROR_FRAGMENTATION", ErrorKind::out_of_memory,
     "a pool is too fragmented; destroy algorithms or sequences that are no longer needed"},
    {-1000257000, "VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS", ErrorKind::internal,
     "the requested device address is not available"},
    {1000297000, "VK_PIPELINE_COMPILE_REQUIRED", ErrorKind::internal,
     "the pipeline was not in the cache where it had to be"},
    {-1000174001, "VK_ERROR_NOT_PERMITTED", ErrorKind::internal,
     "the system does not let this process do that, such as raise a queue's priority"},
    {-1000011001, "VK_ERROR_VALIDATION_FAILED_EXT", ErrorKind::internal,
     "a validation layer found a wrong use of Vulkan; its message names the rule"},
    {-1000012000, "VK_ERROR_INVALID_SHADER_NV", ErrorKind::invalid_argument,
     "the driver could not compile the shader; check that its SPIR-V is valid (spirv-val) and that the "
     "device "
     "supports all that it uses"},
    {1000268000, "VK_THREAD_IDLE_KHR", ErrorKind::internal,
     "a deferred operation has no work for this thread"},
    {1000268001, "VK_THREAD_DONE_KHR", ErrorKind::internal,
     "a deferred operation has no more work for this thread"},
    {1000268002, "VK_OPERATION_DEFERRED_KHR", ErrorKind::internal, "the operation was deferred"},
    {1000268003, "VK_OPERATION_NOT_DEFERRED_KHR", ErrorKind::internal, "the operation was not deferred"},
    {-1000338000, "VK_ERROR_COMPRESSION_EXHAUSTED_EXT", ErrorKind::out_of_memory,
     "the resources for compressed images are exhausted; destroy images that are no longer needed"},
    {1000482000, "VK_INCOMPATIBLE_SHADER_BINARY_EXT", ErrorKind::internal,
     "the shader binary is for another driver or device"},
    {1000483000, "VK_PIPELINE_BINARY_MISSING_KHR", ErrorKind::internal, "the pipeline binary is missing"},
    {-1000483000, "VK_ERROR_NOT_ENOUGH_SPACE_KHR", ErrorKind::internal,
     "the buffer given for the result is too small"},
};

const ResultInfo* find_result(int32_t result) {
    const auto* found = std::find_if(std::begin(kResults), std::end(kResults),
                                     [result](const ResultInfo& info) { return info.result == result; });
    return found == std::end(kResults) ? nullptr : found;
}

}  // namespace

std::string vk_result_name(int32_t result) {
    const ResultInfo* info = find_result(result);
    return info != nullptr ? info->name : "VkResult " + std::to_string(result);
}

void throw_vk(int32_t result, const char* call, const std::string& what) {
    const ResultInfo* info = find_result(result);
    std::string message = std::string(call) + " failed";
    if (!what.empty()) message += " for " + what;
    message += " with " + vk_result_name(result) + ": ";
    message += info != nullptr ? info->advice
                               : "a code that this version does not know; see the driver's documentation";
    throw Error(info != nullptr ? info->kind : ErrorKind::internal, message, result);
}

}  // namespace kp
