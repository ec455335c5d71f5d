// The Vulkan functions that the floor calls, from the loader that the process already uses.
//
// Device functions come from vkGetDeviceProcAddr: like the engine's own table, they go to the driver with no
// trampoline.
#pragma once

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <stdexcept>
#include <string>

namespace benchmark_floor {

#define FLOOR_GLOBAL_FUNCTIONS(X) X(vkCreateInstance)

#define FLOOR_INSTANCE_FUNCTIONS(X)                                                                          \
    X(vkDestroyInstance)                                                                                     \
    X(vkEnumeratePhysicalDevices)                                                                            \
    X(vkGetPhysicalDeviceQueueFamilyProperties)                                                              \
    X(vkGetPhysicalDeviceMemoryProperties)                                                                   \
    X(vkCreateDevice)                                                                                        \
    X(vkGetDeviceProcAddr)

#define FLOOR_DEVICE_FUNCTIONS(X)                                                                            \
    X(vkDestroyDevice)                                                                                       \
    X(vkGetDeviceQueue)                                                                                      \
    X(vkDeviceWaitIdle)                                                                                      \
    X(vkCreateSemaphore)                                                                                     \
    X(vkDestroySemaphore)                                                                                    \
    X(vkWaitSemaphores)                                                                                      \
    X(vkQueueSubmit)                                                                                         \
    X(vkCreateBuffer)                                                                                        \
    X(vkDestroyBuffer)                                                                                       \
    X(vkGetBufferMemoryRequirements)                                                                         \
    X(vkAllocateMemory)                                                                                      \
    X(vkFreeMemory)                                                                                          \
    X(vkBindBufferMemory)                                                                                    \
    X(vkMapMemory)                                                                                           \
    X(vkCreateShaderModule)                                                                                  \
    X(vkDestroyShaderModule)                                                                                 \
    X(vkCreateDescriptorSetLayout)                                                                           \
    X(vkDestroyDescriptorSetLayout)                                                                          \
    X(vkCreatePipelineLayout)                                                                                \
    X(vkDestroyPipelineLayout)                                                                               \
    X(vkCreateComputePipelines)                                                                              \
    X(vkDestroyPipeline)                                                                                     \
    X(vkCreateDescriptorPool)                                                                                \
    X(vkDestroyDescriptorPool)                                                                               \
    X(vkAllocateDescriptorSets)                                                                              \
    X(vkUpdateDescriptorSets)                                                                                \
    X(vkCreateCommandPool)                                                                                   \
    X(vkDestroyCommandPool)                                                                                  \
    X(vkAllocateCommandBuffers)                                                                              \
    X(vkBeginCommandBuffer)                                                                                  \
    X(vkEndCommandBuffer)                                                                                    \
    X(vkCmdBindPipeline)                                                                                     \
    X(vkCmdBindDescriptorSets)                                                                               \
    X(vkCmdDispatch)                                                                                         \
    X(vkCmdCopyBuffer)                                                                                       \
    X(vkCmdPipelineBarrier)

// Throws std::runtime_error naming the call; the floor has no way on from a failure.
void check(VkResult result, const char* call);

struct Functions {
#define FLOOR_MEMBER(name) PFN_##name name = nullptr;
    FLOOR_GLOBAL_FUNCTIONS(FLOOR_MEMBER)
    FLOOR_INSTANCE_FUNCTIONS(FLOOR_MEMBER)
    FLOOR_DEVICE_FUNCTIONS(FLOOR_MEMBER)
#undef FLOOR_MEMBER

    void load_global();
    void load_instance(VkInstance instance);
    void load_device(VkDevice device);
};

}  // namespace benchmark_floor
