// Every entry point that the driver has. A definition in any file must match the type that the Vulkan headers
// give, because it is declared from it here.
//
//   GLOBAL(name)                 callable without an instance
//   INSTANCE(name, version)      first argument VkInstance
//   PHYSICAL(name, version)      first argument VkPhysicalDevice
//   DEVICE(name, version)        first argument VkDevice, VkQueue or VkCommandBuffer: those that the core,
//   the
//                                benchmarks and validation layers call
//   *_EXT(name, extension)       the same, available with an extension
//   *_ALIAS(alias, name, extension)
#pragma once

#include "common.hpp"

// clang-format off
#define KP_ENTRY_POINTS(GLOBAL, INSTANCE, INSTANCE_EXT, PHYSICAL, PHYSICAL_EXT, PHYSICAL_ALIAS, \
                        DEVICE, DEVICE_EXT) \
    GLOBAL(vkCreateInstance) \
    GLOBAL(vkEnumerateInstanceVersion) \
    GLOBAL(vkEnumerateInstanceExtensionProperties) \
    GLOBAL(vkEnumerateInstanceLayerProperties) \
    INSTANCE(vkDestroyInstance, 10) \
    INSTANCE(vkEnumeratePhysicalDevices, 10) \
    INSTANCE(vkGetInstanceProcAddr, 10) \
    INSTANCE(vkEnumeratePhysicalDeviceGroups, 11) \
    INSTANCE_EXT(vkCreateDebugUtilsMessengerEXT, "VK_EXT_debug_utils") \
    INSTANCE_EXT(vkDestroyDebugUtilsMessengerEXT, "VK_EXT_debug_utils") \
    INSTANCE_EXT(vkSubmitDebugUtilsMessageEXT, "VK_EXT_debug_utils") \
    PHYSICAL(vkGetPhysicalDeviceFeatures, 10) \
    PHYSICAL(vkGetPhysicalDeviceProperties, 10) \
    PHYSICAL(vkGetPhysicalDeviceMemoryProperties, 10) \
    PHYSICAL(vkGetPhysicalDeviceFormatProperties, 10) \
    PHYSICAL(vkGetPhysicalDeviceImageFormatProperties, 10) \
    PHYSICAL(vkGetPhysicalDeviceQueueFamilyProperties, 10) \
    PHYSICAL(vkGetPhysicalDeviceSparseImageFormatProperties, 10) \
    PHYSICAL(vkEnumerateDeviceExtensionProperties, 10) \
    PHYSICAL(vkEnumerateDeviceLayerProperties, 10) \
    PHYSICAL(vkCreateDevice, 10) \
    PHYSICAL(vkGetPhysicalDeviceFeatures2, 11) \
    PHYSICAL(vkGetPhysicalDeviceProperties2, 11) \
    PHYSICAL(vkGetPhysicalDeviceMemoryProperties2, 11) \
    PHYSICAL(vkGetPhysicalDeviceFormatProperties2, 11) \
    PHYSICAL(vkGetPhysicalDeviceImageFormatProperties2, 11) \
    PHYSICAL(vkGetPhysicalDeviceQueueFamilyProperties2, 11) \
    PHYSICAL(vkGetPhysicalDeviceSparseImageFormatProperties2, 11) \
    PHYSICAL(vkGetPhysicalDeviceExternalBufferProperties, 11) \
    PHYSICAL(vkGetPhysicalDeviceExternalFenceProperties, 11) \
    PHYSICAL(vkGetPhysicalDeviceExternalSemaphoreProperties, 11) \
    PHYSICAL(vkGetPhysicalDeviceToolProperties, 13) \
    PHYSICAL_EXT(vkGetPhysicalDeviceCalibrateableTimeDomainsEXT, kCalibrated) \
    PHYSICAL_ALIAS(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR, cooperative_matrices, kCooperative) \
    DEVICE(vkGetDeviceProcAddr, 10) \
    DEVICE(vkDestroyDevice, 10) \
    DEVICE(vkGetDeviceQueue, 10) \
    DEVICE(vkDeviceWaitIdle, 10) \
    DEVICE(vkQueueWaitIdle, 10) \
    DEVICE(vkQueueSubmit, 10) \
    DEVICE_EXT(vkSetDebugUtilsObjectNameEXT, "VK_EXT_debug_utils") \
    DEVICE_EXT(vkCmdBeginDebugUtilsLabelEXT, "VK_EXT_debug_utils") \
    DEVICE_EXT(vkCmdEndDebugUtilsLabelEXT, "VK_EXT_debug_utils") \
    DEVICE(vkAllocateMemory, 10) \
    DEVICE(vkFreeMemory, 10) \
    DEVICE(vkMapMemory, 10) \
    DEVICE(vkUnmapMemory, 10) \
    DEVICE(vkFlushMappedMemoryRanges, 10) \
    DEVICE(vkInvalidateMappedMemoryRanges, 10) \
    DEVICE_EXT(vkGetMemoryHostPointerPropertiesEXT, "VK_EXT_external_memory_host") \
    DEVICE(vkCreateBuffer, 10) \
    DEVICE(vkDestroyBuffer, 10) \
    DEVICE(vkGetBufferMemoryRequirements, 10) \
    DEVICE(vkGetBufferMemoryRequirements2, 11) \
    DEVICE(vkBindBufferMemory, 10) \
    DEVICE(vkGetBufferDeviceAddress, 12) \
    DEVICE(vkCreateBufferView, 10) \
    DEVICE(vkDestroyBufferView, 10) \
    DEVICE(vkCreateImage, 10) \
    DEVICE(vkDestroyImage, 10) \
    DEVICE(vkGetImageSubresourceLayout, 10) \
    DEVICE(vkGetImageMemoryRequirements, 10) \
    DEVICE(vkGetImageMemoryRequirements2, 11) \
    DEVICE(vkGetImageSparseMemoryRequirements, 10) \
    DEVICE(vkGetImageSparseMemoryRequirements2, 11) \
    DEVICE(vkBindImageMemory, 10) \
    DEVICE(vkCreateImageView, 10) \
    DEVICE(vkDestroyImageView, 10) \
    DEVICE(vkCreateSampler, 10) \
    DEVICE(vkDestroySampler, 10) \
    DEVICE(vkCreateShaderModule, 10) \
    DEVICE(vkDestroyShaderModule, 10) \
    DEVICE(vkCreateDescriptorSetLayout, 10) \
    DEVICE(vkDestroyDescriptorSetLayout, 10) \
    DEVICE(vkGetDescriptorSetLayoutSupport, 11) \
    DEVICE(vkCreateDescriptorPool, 10) \
    DEVICE(vkDestroyDescriptorPool, 10) \
    DEVICE(vkAllocateDescriptorSets, 10) \
    DEVICE(vkFreeDescriptorSets, 10) \
    DEVICE(vkUpdateDescriptorSets, 10) \
    DEVICE(vkCreatePipelineLayout, 10) \
    DEVICE(vkDestroyPipelineLayout, 10) \
    DEVICE(vkCreateComputePipelines, 10) \
    DEVICE(vkDestroyPipeline, 10) \
    DEVICE(vkCreatePipelineCache, 10) \
    DEVICE(vkDestroyPipelineCache, 10) \
    DEVICE(vkGetPipelineCacheData, 10) \
    DEVICE(vkMergePipelineCaches, 10) \
    DEVICE(vkCreateSemaphore, 10) \
    DEVICE(vkDestroySemaphore, 10) \
    DEVICE(vkGetSemaphoreCounterValue, 12) \
    DEVICE(vkWaitSemaphores, 12) \
    DEVICE(vkSignalSemaphore, 12) \
    DEVICE_EXT(vkGetSemaphoreFdKHR, "VK_KHR_external_semaphore_fd") \
    DEVICE_EXT(vkImportSemaphoreFdKHR, "VK_KHR_external_semaphore_fd") \
    DEVICE(vkCreateQueryPool, 10) \
    DEVICE(vkDestroyQueryPool, 10) \
    DEVICE(vkGetQueryPoolResults, 10) \
    DEVICE(vkResetQueryPool, 12) \
    DEVICE_EXT(vkGetPipelineExecutablePropertiesKHR, "VK_KHR_pipeline_executable_properties") \
    DEVICE_EXT(vkGetPipelineExecutableStatisticsKHR, "VK_KHR_pipeline_executable_properties") \
    DEVICE_EXT(vkGetPipelineExecutableInternalRepresentationsKHR, "VK_KHR_pipeline_executable_properties") \
    DEVICE_EXT(vkGetDeviceFaultInfoEXT, "VK_EXT_device_fault") \
    DEVICE_EXT(vkGetCalibratedTimestampsEXT, kCalibrated) \
    DEVICE(vkCreateCommandPool, 10) \
    DEVICE(vkDestroyCommandPool, 10) \
    DEVICE(vkResetCommandPool, 10) \
    DEVICE(vkAllocateCommandBuffers, 10) \
    DEVICE(vkFreeCommandBuffers, 10) \
    DEVICE(vkBeginCommandBuffer, 10) \
    DEVICE(vkEndCommandBuffer, 10) \
    DEVICE(vkResetCommandBuffer, 10) \
    DEVICE(vkCmdBindPipeline, 10) \
    DEVICE(vkCmdBindDescriptorSets, 10) \
    DEVICE(vkCmdPushConstants, 10) \
    DEVICE(vkCmdDispatch, 10) \
    DEVICE(vkCmdDispatchBase, 11) \
    DEVICE(vkCmdDispatchIndirect, 10) \
    DEVICE(vkCmdCopyBuffer, 10) \
    DEVICE(vkCmdFillBuffer, 10) \
    DEVICE(vkCmdUpdateBuffer, 10) \
    DEVICE(vkCmdCopyBufferToImage, 10) \
    DEVICE(vkCmdCopyImageToBuffer, 10) \
    DEVICE(vkCmdCopyImage, 10) \
    DEVICE(vkCmdPipelineBarrier, 10) \
    DEVICE(vkCmdResetQueryPool, 10) \
    DEVICE(vkCmdWriteTimestamp, 10) \
    DEVICE(vkCmdExecuteCommands, 10)
// clang-format on

namespace kpnull {

#define KP_DECLARE(name, ...) std::remove_pointer_t<PFN_##name> name;
#define KP_IGNORE(...)
KP_ENTRY_POINTS(KP_DECLARE, KP_DECLARE, KP_DECLARE, KP_DECLARE, KP_DECLARE, KP_IGNORE, KP_DECLARE, KP_DECLARE)
#undef KP_DECLARE
#undef KP_IGNORE

// vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR, whose type older headers lack.
struct CooperativeMatrixProperties {
    VkStructureType sType;
    void* pNext;
    uint32_t rows, columns, depth, left, right, added, result;
    VkBool32 saturating;
    uint32_t scope;
};
VkResult VKAPI_CALL cooperative_matrices(VkPhysicalDevice device, uint32_t* count,
                                         CooperativeMatrixProperties* out);

bool knows_entry_point(const char* name);
PFN_vkVoidFunction instance_function(const Instance* instance, const char* name);
PFN_vkVoidFunction physical_device_function(const char* name);
PFN_vkVoidFunction device_function(const Device& device, const char* name);
const std::vector<VkExtensionProperties>& instance_extensions();

}  // namespace kpnull
