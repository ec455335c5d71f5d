// Errors of the core. One C++ type; the bindings turn `kind` into the Python class of the same name.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace kp {

// One enumerator for each Python exception class that the core raises (kompute_py/_base/errors.py).
enum class ErrorKind : uint8_t {
    invalid_argument,
    argument_type,
    out_of_range,
    not_found,
    out_of_memory,
    eval_timeout,
    failed_precondition,
    donated,
    unimplemented,
    unavailable,
    device_lost,
    shader_compile,
    exchange,
    aborted,
    cancelled,
    internal,
};

class Error : public std::runtime_error {
public:
    Error(ErrorKind kind, const std::string& message, int32_t vk_result = 0)
        : std::runtime_error(message), kind_(kind), vk_result_(vk_result) {}

    [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }
    // The VkResult behind the error; 0 (VK_SUCCESS) if no Vulkan call failed.
    [[nodiscard]] int32_t vk_result() const noexcept { return vk_result_; }

private:
    ErrorKind kind_;
    int32_t vk_result_;
};

// The name of a VkResult, "VK_ERROR_DEVICE_LOST" for -4; "VkResult 12345" for an unknown one.
std::string vk_result_name(int32_t result);

// Throws the Error for `result`: it names the Vulkan call, the object that was being made, and the fix.
[[noreturn]] void throw_vk(int32_t result, const char* call, const std::string& what);

// For calls that only succeed with VK_SUCCESS. `what` describes the object, e.g. "tensor 'weights'".
inline void check_vk(int32_t result, const char* call, const char* what) {
    if (result != 0) [[unlikely]]
        throw_vk(result, call, what);
}

}  // namespace kp
