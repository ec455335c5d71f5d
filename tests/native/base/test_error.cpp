#include "base/error.hpp"

#include <doctest/doctest.h>
#include <vulkan/vulkan_core.h>

#include <set>
#include <string>

namespace {

kp::Error thrown(int32_t result, const char* call = "vkCall", const std::string& what = "it") {
    try {
        kp::throw_vk(result, call, what);
    } catch (const kp::Error& error) {
        return error;
    }
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

struct Named {
    VkResult result;
    const char* name;
};

#define NAMED(result)                                                                                        \
    { result, #result }

// Every enumerator of the header, in its own spelling.
const Named kNamed[] = {
    NAMED(VK_SUCCESS),
    NAMED(VK_NOT_READY),
    NAMED(VK_TIMEOUT),
    NAMED(VK_EVENT_SET),
    NAMED(VK_EVENT_RESET),
    NAMED(VK_INCOMPLETE),
    NAMED(VK_ERROR_OUT_OF_HOST_MEMORY),
    NAMED(VK_ERROR_OUT_OF_DEVICE_MEMORY),
    NAMED(VK_ERROR_INITIALIZATION_FAILED),
    NAMED(VK_ERROR_DEVICE_LOST),
    NAMED(VK_ERROR_MEMORY_MAP_FAILED),
    NAMED(VK_ERROR_LAYER_NOT_PRESENT),
    NAMED(VK_ERROR_EXTENSION_NOT_PRESENT),
    NAMED(VK_ERROR_FEATURE_NOT_PRESENT),
    NAMED(VK_ERROR_INCOMPATIBLE_DRIVER),
    NAMED(VK_ERROR_TOO_MANY_OBJECTS),
    NAMED(VK_ERROR_FORMAT_NOT_SUPPORTED),
    NAMED(VK_ERROR_FRAGMENTED_POOL),
    NAMED(VK_ERROR_UNKNOWN),
    NAMED(VK_ERROR_OUT_OF_POOL_MEMORY),
    NAMED(VK_ERROR_INVALID_EXTERNAL_HANDLE),
    NAMED(VK_ERROR_FRAGMENTATION),
    NAMED(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS),
    NAMED(VK_PIPELINE_COMPILE_REQUIRED),
    NAMED(VK_ERROR_VALIDATION_FAILED_EXT),
    NAMED(VK_ERROR_INVALID_SHADER_NV),
    NAMED(VK_THREAD_IDLE_KHR),
    NAMED(VK_THREAD_DONE_KHR),
    NAMED(VK_OPERATION_DEFERRED_KHR),
    NAMED(VK_OPERATION_NOT_DEFERRED_KHR),
};

}  // namespace

TEST_CASE("error: results have the header's names") {
    for (const Named& named : kNamed) CHECK(kp::vk_result_name(named.result) == named.name);
    CHECK(kp::vk_result_name(VK_ERROR_NOT_PERMITTED_EXT) == "VK_ERROR_NOT_PERMITTED");
    CHECK(kp::vk_result_name(12345) == "VkResult 12345");
    CHECK(kp::vk_result_name(-99) == "VkResult -99");
}

TEST_CASE("error: each result becomes the kind of error that fits") {
    using enum kp::ErrorKind;
    CHECK(thrown(VK_ERROR_OUT_OF_HOST_MEMORY).kind() == out_of_memory);
    CHECK(thrown(VK_ERROR_OUT_OF_DEVICE_MEMORY).kind() == out_of_memory);
    CHECK(thrown(VK_ERROR_OUT_OF_POOL_MEMORY).kind() == out_of_memory);
    CHECK(thrown(VK_ERROR_FRAGMENTATION).kind() == out_of_memory);
    CHECK(thrown(VK_ERROR_FRAGMENTED_POOL).kind() == out_of_memory);
    CHECK(thrown(VK_ERROR_TOO_MANY_OBJECTS).kind() == out_of_memory);
    CHECK(thrown(VK_ERROR_MEMORY_MAP_FAILED).kind() == out_of_memory);
    CHECK(thrown(VK_ERROR_DEVICE_LOST).kind() == device_lost);
    CHECK(thrown(VK_TIMEOUT).kind() == eval_timeout);
    CHECK(thrown(VK_ERROR_EXTENSION_NOT_PRESENT).kind() == unavailable);
    CHECK(thrown(VK_ERROR_FEATURE_NOT_PRESENT).kind() == unavailable);
    CHECK(thrown(VK_ERROR_LAYER_NOT_PRESENT).kind() == unavailable);
    CHECK(thrown(VK_ERROR_FORMAT_NOT_SUPPORTED).kind() == unavailable);
    CHECK(thrown(VK_ERROR_INCOMPATIBLE_DRIVER).kind() == unavailable);
    CHECK(thrown(VK_ERROR_INITIALIZATION_FAILED).kind() == unavailable);
    CHECK(thrown(VK_ERROR_INVALID_SHADER_NV).kind() == invalid_argument);
    CHECK(thrown(VK_ERROR_INVALID_EXTERNAL_HANDLE).kind() == invalid_argument);
    CHECK(thrown(VK_ERROR_UNKNOWN).kind() == internal);
    CHECK(thrown(VK_INCOMPLETE).kind() == internal);
    CHECK(thrown(VK_SUCCESS).kind() == internal);
    CHECK(thrown(-99).kind() == internal);
}

TEST_CASE("error: the message names the call, the object, the result and the fix") {
    const kp::Error error = thrown(VK_ERROR_OUT_OF_DEVICE_MEMORY, "vkAllocateMemory", "tensor 'x'");
    const std::string message = error.what();
    CHECK(message.rfind("vkAllocateMemory failed for tensor 'x' with VK_ERROR_OUT_OF_DEVICE_MEMORY: ", 0) ==
          0);
    CHECK(contains(message, "destroy tensors"));
    CHECK(error.vk_result() == -2);

    CHECK(std::string(thrown(VK_ERROR_UNKNOWN, "vkCreateFence", "").what())
              .rfind("vkCreateFence failed with ", 0) == 0);
    const kp::Error unknown = thrown(12345, "vkQueueSubmit", "sequence");
    CHECK(contains(unknown.what(), "with VkResult 12345: "));
    CHECK(unknown.vk_result() == 12345);
}

TEST_CASE("error: no two results share their message, and each one says something") {
    std::set<std::string> names;
    for (const Named& named : kNamed) {
        const std::string message = thrown(named.result).what();
        CAPTURE(message);
        CHECK(names.insert(message).second);
        CHECK(message.size() >
              std::string("vkCall failed for it with : ").size() + std::string(named.name).size());
    }
}

TEST_CASE("error: check_vk throws for everything but VK_SUCCESS") {
    CHECK_NOTHROW(kp::check_vk(VK_SUCCESS, "vkCall", "it"));
    CHECK_THROWS_AS(kp::check_vk(VK_ERROR_DEVICE_LOST, "vkCall", "it"), kp::Error);
    CHECK_THROWS_AS(kp::check_vk(VK_TIMEOUT, "vkCall", "it"), kp::Error);
    try {
        kp::check_vk(VK_ERROR_DEVICE_LOST, "vkQueueSubmit", "sequence 'main'");
    } catch (const std::runtime_error& error) {
        CHECK(contains(error.what(), "sequence 'main'"));
    }
}

TEST_CASE("error: an error with no Vulkan call behind it has VK_SUCCESS") {
    const kp::Error error(kp::ErrorKind::not_found, "no such device");
    CHECK(error.vk_result() == 0);
    CHECK(error.kind() == kp::ErrorKind::not_found);
    CHECK(std::string(error.what()) == "no such device");
}
