// Every entry point that the driver has. A definition in any file must match the type that the Vulkan headers
// give, because it is declared from it here.
//
//   GLOBAL(name)                 callable without an instance
//   INSTANCE(name, version)      first argument VkInstance
//   PHYSICAL(name, version)      first argument VkPhysicalDevice
//   DEVICE(name, version)        first argument VkDevice, VkQueue or VkCommandBuffer
//   *_EXT(name, extension)       the same, available with an extension
//   *_ALIAS(alias, name, extension)
#pragma once

#include "common.hpp"

// clang-format off
#define KP_ENTRY_POINTS(GLOBAL, INSTANCE, INSTANCE_EXT, INSTANCE_ALIAS, PHYSICAL, PHYSICAL_EXT, \
                        PHYSICAL_ALIAS, DEVICE, DEVICE_EXT, DEVICE_ALIAS) \
    GLOBAL(vkCreateInstance) \
    GLOBAL(vkEnumerateInstanceVersion) \
    GLOBAL(vkEnumerateInstanceExtensionProperties) \
    GLOBAL(vkEnumerateInstanceLayerProperties) \
    INSTANCE(vkDestroyInstance, 10) \
    INSTANCE(vkEnumeratePhysicalDevices, 10) \
    INSTANCE(vkGetInstanceProcAddr, 10) \
    INSTANCE(vkEnumeratePhysicalDeviceGroups, 11) \
    INSTANCE_ALIAS(vkEnumeratePhysicalDeviceGroupsKHR, vkEnumeratePhysicalDeviceGroups, \
                   "VK_KHR_device_group_creation") \
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
    PHYSICAL_ALIAS(vkGetPhysicalDeviceFeatures2KHR, vkGetPhysicalDeviceFeatures2, kGpp2) \
    PHYSICAL_ALIAS(vkGetPhysicalDeviceProperties2KHR, vkGetPhysicalDeviceProperties2, kGpp2) \
    PHYSICAL_ALIAS(vkGetPhysicalDeviceMemoryProperties2KHR, vkGetPhysicalDeviceMemoryProperties2, kGpp2) \
    PHYSICAL_ALIAS(vkGetPhysicalDeviceFormatProperties2KHR, vkGetPhysicalDeviceFormatProperties2, kGpp2) \
    PHYSICAL_ALIAS(vkGetPhysicalDeviceImageFormatProperties2KHR, \
                   vkGetPhysicalDeviceImageFormatProperties2, kGpp2) \
    PHYSICAL_ALIAS(vkGetPhysicalDeviceQueueFamilyProperties2KHR, \
                   vkGetPhysicalDeviceQueueFamilyProperties2, kGpp2) \
    PHYSICAL_ALIAS(vkGetPhysicalDeviceSparseImageFormatProperties2KHR, \
                   vkGetPhysicalDeviceSparseImageFormatProperties2, kGpp2) \
    PHYSICAL_ALIAS(vkGetPhysicalDeviceExternalBufferPropertiesKHR, \
                   vkGetPhysicalDeviceExternalBufferProperties, \
                   "VK_KHR_external_memory_capabilities") \
    PHYSICAL_ALIAS(vkGetPhysicalDeviceExternalFencePropertiesKHR, \
                   vkGetPhysicalDeviceExternalFenceProperties, \
                   "VK_KHR_external_fence_capabilities") \
    PHYSICAL_ALIAS(vkGetPhysicalDeviceExternalSemaphorePropertiesKHR, \
                   vkGetPhysicalDeviceExternalSemaphoreProperties, "VK_KHR_external_semaphore_capabilities") \
    PHYSICAL_ALIAS(vkGetPhysicalDeviceToolPropertiesEXT, \
                   vkGetPhysicalDeviceToolProperties, "VK_EXT_tooling_info") \
    PHYSICAL_EXT(vkGetPhysicalDeviceCalibrateableTimeDomainsEXT, kCalibrated) \
    PHYSICAL_ALIAS(vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR, cooperative_matrices, kCooperative) \
    DEVICE(vkGetDeviceProcAddr, 10) \
    DEVICE(vkDestroyDevice, 10) \
    DEVICE(vkGetDeviceQueue, 10) \
    DEVICE(vkGetDeviceQueue2, 11) \
    DEVICE(vkDeviceWaitIdle, 10) \
    DEVICE(vkQueueWaitIdle, 10) \
    DEVICE(vkQueueSubmit, 10) \
    DEVICE(vkQueueSubmit2, 13) \
    DEVICE_ALIAS(vkQueueSubmit2KHR, vkQueueSubmit2, kSync2) \
    DEVICE(vkQueueBindSparse, 10) \
    DEVICE_EXT(vkQueueBeginDebugUtilsLabelEXT, "VK_EXT_debug_utils") \
    DEVICE_EXT(vkQueueEndDebugUtilsLabelEXT, "VK_EXT_debug_utils") \
    DEVICE_EXT(vkQueueInsertDebugUtilsLabelEXT, "VK_EXT_debug_utils") \
    DEVICE_EXT(vkSetDebugUtilsObjectNameEXT, "VK_EXT_debug_utils") \
    DEVICE_EXT(vkSetDebugUtilsObjectTagEXT, "VK_EXT_debug_utils") \
    DEVICE(vkAllocateMemory, 10) \
    DEVICE(vkFreeMemory, 10) \
    DEVICE(vkMapMemory, 10) \
    DEVICE(vkUnmapMemory, 10) \
    DEVICE(vkFlushMappedMemoryRanges, 10) \
    DEVICE(vkInvalidateMappedMemoryRanges, 10) \
    DEVICE(vkGetDeviceMemoryCommitment, 10) \
    DEVICE(vkGetDeviceMemoryOpaqueCaptureAddress, 12) \
    DEVICE_ALIAS(vkGetDeviceMemoryOpaqueCaptureAddressKHR, vkGetDeviceMemoryOpaqueCaptureAddress, kBda) \
    DEVICE_EXT(vkGetMemoryHostPointerPropertiesEXT, "VK_EXT_external_memory_host") \
    DEVICE(vkGetDeviceGroupPeerMemoryFeatures, 11) \
    DEVICE_ALIAS(vkGetDeviceGroupPeerMemoryFeaturesKHR, \
                 vkGetDeviceGroupPeerMemoryFeatures, "VK_KHR_device_group") \
    DEVICE(vkCreateBuffer, 10) \
    DEVICE(vkDestroyBuffer, 10) \
    DEVICE(vkGetBufferMemoryRequirements, 10) \
    DEVICE(vkGetBufferMemoryRequirements2, 11) \
    DEVICE_ALIAS(vkGetBufferMemoryRequirements2KHR, vkGetBufferMemoryRequirements2, kGmr2) \
    DEVICE(vkGetDeviceBufferMemoryRequirements, 13) \
    DEVICE_ALIAS(vkGetDeviceBufferMemoryRequirementsKHR, vkGetDeviceBufferMemoryRequirements, kMaint4) \
    DEVICE(vkBindBufferMemory, 10) \
    DEVICE(vkBindBufferMemory2, 11) \
    DEVICE_ALIAS(vkBindBufferMemory2KHR, vkBindBufferMemory2, "VK_KHR_bind_memory2") \
    DEVICE(vkGetBufferDeviceAddress, 12) \
    DEVICE_ALIAS(vkGetBufferDeviceAddressKHR, vkGetBufferDeviceAddress, kBda) \
    DEVICE_ALIAS(vkGetBufferDeviceAddressEXT, vkGetBufferDeviceAddress, "VK_EXT_buffer_device_address") \
    DEVICE(vkGetBufferOpaqueCaptureAddress, 12) \
    DEVICE_ALIAS(vkGetBufferOpaqueCaptureAddressKHR, vkGetBufferOpaqueCaptureAddress, kBda) \
    DEVICE(vkCreateBufferView, 10) \
    DEVICE(vkDestroyBufferView, 10) \
    DEVICE(vkCreateImage, 10) \
    DEVICE(vkDestroyImage, 10) \
    DEVICE(vkGetImageSubresourceLayout, 10) \
    DEVICE(vkGetImageMemoryRequirements, 10) \
    DEVICE(vkGetImageMemoryRequirements2, 11) \
    DEVICE_ALIAS(vkGetImageMemoryRequirements2KHR, vkGetImageMemoryRequirements2, kGmr2) \
    DEVICE(vkGetDeviceImageMemoryRequirements, 13) \
    DEVICE_ALIAS(vkGetDeviceImageMemoryRequirementsKHR, vkGetDeviceImageMemoryRequirements, kMaint4) \
    DEVICE(vkGetImageSparseMemoryRequirements, 10) \
    DEVICE(vkGetImageSparseMemoryRequirements2, 11) \
    DEVICE_ALIAS(vkGetImageSparseMemoryRequirements2KHR, vkGetImageSparseMemoryRequirements2, kGmr2) \
    DEVICE(vkGetDeviceImageSparseMemoryRequirements, 13) \
    DEVICE_ALIAS(vkGetDeviceImageSparseMemoryRequirementsKHR, \
                 vkGetDeviceImageSparseMemoryRequirements, kMaint4) \
    DEVICE(vkBindImageMemory, 10) \
    DEVICE(vkBindImageMemory2, 11) \
    DEVICE_ALIAS(vkBindImageMemory2KHR, vkBindImageMemory2, "VK_KHR_bind_memory2") \
    DEVICE(vkCreateImageView, 10) \
    DEVICE(vkDestroyImageView, 10) \
    DEVICE(vkCreateSampler, 10) \
    DEVICE(vkDestroySampler, 10) \
    DEVICE(vkCreateShaderModule, 10) \
    DEVICE(vkDestroyShaderModule, 10) \
    DEVICE(vkCreateDescriptorSetLayout, 10) \
    DEVICE(vkDestroyDescriptorSetLayout, 10) \
    DEVICE(vkGetDescriptorSetLayoutSupport, 11) \
    DEVICE_ALIAS(vkGetDescriptorSetLayoutSupportKHR, vkGetDescriptorSetLayoutSupport, "VK_KHR_maintenance3") \
    DEVICE(vkCreateDescriptorPool, 10) \
    DEVICE(vkDestroyDescriptorPool, 10) \
    DEVICE(vkResetDescriptorPool, 10) \
    DEVICE(vkAllocateDescriptorSets, 10) \
    DEVICE(vkFreeDescriptorSets, 10) \
    DEVICE(vkUpdateDescriptorSets, 10) \
    DEVICE(vkCreateDescriptorUpdateTemplate, 11) \
    DEVICE_ALIAS(vkCreateDescriptorUpdateTemplateKHR, vkCreateDescriptorUpdateTemplate, kTemplate) \
    DEVICE(vkDestroyDescriptorUpdateTemplate, 11) \
    DEVICE_ALIAS(vkDestroyDescriptorUpdateTemplateKHR, vkDestroyDescriptorUpdateTemplate, kTemplate) \
    DEVICE(vkUpdateDescriptorSetWithTemplate, 11) \
    DEVICE_ALIAS(vkUpdateDescriptorSetWithTemplateKHR, vkUpdateDescriptorSetWithTemplate, kTemplate) \
    DEVICE(vkCreatePipelineLayout, 10) \
    DEVICE(vkDestroyPipelineLayout, 10) \
    DEVICE(vkCreateComputePipelines, 10) \
    DEVICE(vkDestroyPipeline, 10) \
    DEVICE(vkCreatePipelineCache, 10) \
    DEVICE(vkDestroyPipelineCache, 10) \
    DEVICE(vkGetPipelineCacheData, 10) \
    DEVICE(vkMergePipelineCaches, 10) \
    DEVICE(vkCreatePrivateDataSlot, 13) \
    DEVICE_ALIAS(vkCreatePrivateDataSlotEXT, vkCreatePrivateDataSlot, "VK_EXT_private_data") \
    DEVICE(vkDestroyPrivateDataSlot, 13) \
    DEVICE_ALIAS(vkDestroyPrivateDataSlotEXT, vkDestroyPrivateDataSlot, "VK_EXT_private_data") \
    DEVICE(vkSetPrivateData, 13) \
    DEVICE_ALIAS(vkSetPrivateDataEXT, vkSetPrivateData, "VK_EXT_private_data") \
    DEVICE(vkGetPrivateData, 13) \
    DEVICE_ALIAS(vkGetPrivateDataEXT, vkGetPrivateData, "VK_EXT_private_data") \
    DEVICE(vkCreateFence, 10) \
    DEVICE(vkDestroyFence, 10) \
    DEVICE(vkResetFences, 10) \
    DEVICE(vkGetFenceStatus, 10) \
    DEVICE(vkWaitForFences, 10) \
    DEVICE(vkCreateSemaphore, 10) \
    DEVICE(vkDestroySemaphore, 10) \
    DEVICE(vkGetSemaphoreCounterValue, 12) \
    DEVICE_ALIAS(vkGetSemaphoreCounterValueKHR, vkGetSemaphoreCounterValue, kTimeline) \
    DEVICE(vkWaitSemaphores, 12) \
    DEVICE_ALIAS(vkWaitSemaphoresKHR, vkWaitSemaphores, kTimeline) \
    DEVICE(vkSignalSemaphore, 12) \
    DEVICE_ALIAS(vkSignalSemaphoreKHR, vkSignalSemaphore, kTimeline) \
    DEVICE(vkCreateEvent, 10) \
    DEVICE(vkDestroyEvent, 10) \
    DEVICE(vkGetEventStatus, 10) \
    DEVICE(vkSetEvent, 10) \
    DEVICE(vkResetEvent, 10) \
    DEVICE(vkCreateQueryPool, 10) \
    DEVICE(vkDestroyQueryPool, 10) \
    DEVICE(vkGetQueryPoolResults, 10) \
    DEVICE(vkResetQueryPool, 12) \
    DEVICE_ALIAS(vkResetQueryPoolEXT, vkResetQueryPool, "VK_EXT_host_query_reset") \
    DEVICE_EXT(vkGetCalibratedTimestampsEXT, kCalibrated) \
    DEVICE(vkCreateCommandPool, 10) \
    DEVICE(vkDestroyCommandPool, 10) \
    DEVICE(vkResetCommandPool, 10) \
    DEVICE(vkTrimCommandPool, 11) \
    DEVICE_ALIAS(vkTrimCommandPoolKHR, vkTrimCommandPool, "VK_KHR_maintenance1") \
    DEVICE(vkAllocateCommandBuffers, 10) \
    DEVICE(vkFreeCommandBuffers, 10) \
    DEVICE(vkBeginCommandBuffer, 10) \
    DEVICE(vkEndCommandBuffer, 10) \
    DEVICE(vkResetCommandBuffer, 10) \
    DEVICE(vkCmdBindPipeline, 10) \
    DEVICE(vkCmdBindDescriptorSets, 10) \
    DEVICE(vkCmdPushConstants, 10) \
    DEVICE_EXT(vkCmdPushDescriptorSetKHR, "VK_KHR_push_descriptor") \
    DEVICE_EXT(vkCmdPushDescriptorSetWithTemplateKHR, "VK_KHR_push_descriptor") \
    DEVICE(vkCmdDispatch, 10) \
    DEVICE(vkCmdDispatchBase, 11) \
    DEVICE_ALIAS(vkCmdDispatchBaseKHR, vkCmdDispatchBase, "VK_KHR_device_group") \
    DEVICE(vkCmdDispatchIndirect, 10) \
    DEVICE(vkCmdSetDeviceMask, 11) \
    DEVICE_ALIAS(vkCmdSetDeviceMaskKHR, vkCmdSetDeviceMask, "VK_KHR_device_group") \
    DEVICE(vkCmdCopyBuffer, 10) \
    DEVICE(vkCmdCopyBuffer2, 13) \
    DEVICE_ALIAS(vkCmdCopyBuffer2KHR, vkCmdCopyBuffer2, kCopy2) \
    DEVICE(vkCmdFillBuffer, 10) \
    DEVICE(vkCmdUpdateBuffer, 10) \
    DEVICE(vkCmdCopyBufferToImage, 10) \
    DEVICE(vkCmdCopyBufferToImage2, 13) \
    DEVICE_ALIAS(vkCmdCopyBufferToImage2KHR, vkCmdCopyBufferToImage2, kCopy2) \
    DEVICE(vkCmdCopyImageToBuffer, 10) \
    DEVICE(vkCmdCopyImageToBuffer2, 13) \
    DEVICE_ALIAS(vkCmdCopyImageToBuffer2KHR, vkCmdCopyImageToBuffer2, kCopy2) \
    DEVICE(vkCmdCopyImage, 10) \
    DEVICE(vkCmdCopyImage2, 13) \
    DEVICE_ALIAS(vkCmdCopyImage2KHR, vkCmdCopyImage2, kCopy2) \
    DEVICE(vkCmdClearColorImage, 10) \
    DEVICE(vkCmdPipelineBarrier, 10) \
    DEVICE(vkCmdPipelineBarrier2, 13) \
    DEVICE_ALIAS(vkCmdPipelineBarrier2KHR, vkCmdPipelineBarrier2, kSync2) \
    DEVICE(vkCmdSetEvent, 10) \
    DEVICE(vkCmdSetEvent2, 13) \
    DEVICE_ALIAS(vkCmdSetEvent2KHR, vkCmdSetEvent2, kSync2) \
    DEVICE(vkCmdResetEvent, 10) \
    DEVICE(vkCmdResetEvent2, 13) \
    DEVICE_ALIAS(vkCmdResetEvent2KHR, vkCmdResetEvent2, kSync2) \
    DEVICE(vkCmdWaitEvents, 10) \
    DEVICE(vkCmdWaitEvents2, 13) \
    DEVICE_ALIAS(vkCmdWaitEvents2KHR, vkCmdWaitEvents2, kSync2) \
    DEVICE(vkCmdResetQueryPool, 10) \
    DEVICE(vkCmdWriteTimestamp, 10) \
    DEVICE(vkCmdWriteTimestamp2, 13) \
    DEVICE_ALIAS(vkCmdWriteTimestamp2KHR, vkCmdWriteTimestamp2, kSync2) \
    DEVICE(vkCmdBeginQuery, 10) \
    DEVICE(vkCmdEndQuery, 10) \
    DEVICE(vkCmdCopyQueryPoolResults, 10) \
    DEVICE(vkCmdExecuteCommands, 10) \
    DEVICE_EXT(vkCmdBeginDebugUtilsLabelEXT, "VK_EXT_debug_utils") \
    DEVICE_EXT(vkCmdEndDebugUtilsLabelEXT, "VK_EXT_debug_utils") \
    DEVICE_EXT(vkCmdInsertDebugUtilsLabelEXT, "VK_EXT_debug_utils")
// clang-format on

namespace kpnull {

#define KP_DECLARE(name, ...) std::remove_pointer_t<PFN_##name> name;
#define KP_IGNORE(...)
KP_ENTRY_POINTS(KP_DECLARE, KP_DECLARE, KP_DECLARE, KP_IGNORE, KP_DECLARE, KP_DECLARE, KP_IGNORE, KP_DECLARE,
                KP_DECLARE, KP_IGNORE)
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
