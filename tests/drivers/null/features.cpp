// The features of the device: Vulkan 1.0 to 1.3 and extensions. The structs that core versions absorbed are
// contiguous stretches of the VkPhysicalDeviceVulkan1xFeatures that absorbed them, so they are cut out of
// those.
#include "common.hpp"

#include <cstdio>
#include <set>

namespace kpnull {
namespace {

struct All {
    VkPhysicalDeviceFeatures core{};
    VkPhysicalDeviceVulkan11Features v11{};
    VkPhysicalDeviceVulkan12Features v12{};
    VkPhysicalDeviceVulkan13Features v13{};
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float{};
    VkPhysicalDeviceRobustness2FeaturesEXT robustness2{};
};

// One list of names: it sets the features that the device has and lets the configuration take each away.
// clang-format off
#define KP_CORE(F) \
    F(robustBufferAccess) F(fullDrawIndexUint32) F(imageCubeArray) F(samplerAnisotropy) \
    F(shaderImageGatherExtended) \
    F(shaderStorageImageExtendedFormats) F(shaderStorageImageReadWithoutFormat) \
    F(shaderStorageImageWriteWithoutFormat) F(shaderUniformBufferArrayDynamicIndexing) \
    F(shaderSampledImageArrayDynamicIndexing) F(shaderStorageBufferArrayDynamicIndexing) \
    F(shaderStorageImageArrayDynamicIndexing) F(shaderFloat64) F(shaderInt64) F(shaderInt16) \
    F(vertexPipelineStoresAndAtomics) F(fragmentStoresAndAtomics)
#define KP_V11(F) \
    F(storageBuffer16BitAccess) F(uniformAndStorageBuffer16BitAccess) F(storagePushConstant16) \
    F(variablePointersStorageBuffer) F(variablePointers) F(multiview) F(shaderDrawParameters)
#define KP_V12(F) \
    F(storageBuffer8BitAccess) F(uniformAndStorageBuffer8BitAccess) F(storagePushConstant8) \
    F(shaderBufferInt64Atomics) F(shaderSharedInt64Atomics) F(shaderFloat16) F(shaderInt8) \
    F(descriptorIndexing) \
    F(shaderUniformTexelBufferArrayDynamicIndexing) F(shaderStorageTexelBufferArrayDynamicIndexing) \
    F(shaderUniformBufferArrayNonUniformIndexing) F(shaderSampledImageArrayNonUniformIndexing) \
    F(shaderStorageBufferArrayNonUniformIndexing) F(shaderStorageImageArrayNonUniformIndexing) \
    F(shaderUniformTexelBufferArrayNonUniformIndexing) F(shaderStorageTexelBufferArrayNonUniformIndexing) \
    F(descriptorBindingSampledImageUpdateAfterBind) F(descriptorBindingStorageImageUpdateAfterBind) \
    F(descriptorBindingStorageBufferUpdateAfterBind) F(descriptorBindingUniformTexelBufferUpdateAfterBind) \
    F(descriptorBindingStorageTexelBufferUpdateAfterBind) F(descriptorBindingUpdateUnusedWhilePending) \
    F(descriptorBindingPartiallyBound) F(descriptorBindingVariableDescriptorCount) F(runtimeDescriptorArray) \
    F(scalarBlockLayout) F(imagelessFramebuffer) F(uniformBufferStandardLayout) \
    F(shaderSubgroupExtendedTypes) \
    F(separateDepthStencilLayouts) F(hostQueryReset) F(timelineSemaphore) F(bufferDeviceAddress) \
    F(vulkanMemoryModel) F(vulkanMemoryModelDeviceScope) F(vulkanMemoryModelAvailabilityVisibilityChains) \
    F(subgroupBroadcastDynamicId)
#define KP_V13(F) \
    F(robustImageAccess) F(inlineUniformBlock) F(pipelineCreationCacheControl) F(privateData) \
    F(shaderDemoteToHelperInvocation) F(shaderTerminateInvocation) F(subgroupSizeControl) \
    F(computeFullSubgroups) \
    F(synchronization2) F(shaderZeroInitializeWorkgroupMemory) F(dynamicRendering) \
    F(shaderIntegerDotProduct) \
    F(maintenance4)
#define KP_ATOMIC_FLOAT(F) \
    F(shaderBufferFloat32Atomics) F(shaderBufferFloat32AtomicAdd) F(shaderBufferFloat64Atomics) \
    F(shaderBufferFloat64AtomicAdd) F(shaderSharedFloat32Atomics) F(shaderSharedFloat32AtomicAdd) \
    F(shaderSharedFloat64Atomics) F(shaderSharedFloat64AtomicAdd) F(shaderImageFloat32Atomics) \
    F(shaderImageFloat32AtomicAdd)
#define KP_ROBUSTNESS2(F) F(robustBufferAccess2) F(robustImageAccess2) F(nullDescriptor)
// clang-format on

std::map<std::string, VkBool32*> name_features(All& all) {
    std::map<std::string, VkBool32*> names;
#define KP_NAME_CORE(f) names[#f] = &all.core.f;
#define KP_NAME_11(f) names[#f] = &all.v11.f;
#define KP_NAME_12(f) names[#f] = &all.v12.f;
#define KP_NAME_13(f) names[#f] = &all.v13.f;
#define KP_NAME_AF(f) names[#f] = &all.atomic_float.f;
#define KP_NAME_R2(f) names[#f] = &all.robustness2.f;
    KP_CORE(KP_NAME_CORE)
    KP_V11(KP_NAME_11)
    KP_V12(KP_NAME_12)
    KP_V13(KP_NAME_13)
    KP_ATOMIC_FLOAT(KP_NAME_AF)
    KP_ROBUSTNESS2(KP_NAME_R2)
    return names;
}

// A struct whose count of features is odd ends in padding; copying that much would read and write past the
// end.
template <class Struct>
void add(PhysicalDevice& device, VkStructureType type, const VkBool32* first, size_t count) {
    static_assert(sizeof(Struct) > sizeof(VkBaseOutStructure));
    device.feature_structs.push_back({type, std::vector<VkBool32>(first, first + count)});
}

}  // namespace

void describe_features(PhysicalDevice& device, const Config& config) {
    All all;
    auto names = name_features(all);
    // What Vulkan 1.2 demands.
    static const std::set<std::string> demanded{"robustBufferAccess",
                                                "multiview",
                                                "imagelessFramebuffer",
                                                "uniformBufferStandardLayout",
                                                "shaderSubgroupExtendedTypes",
                                                "separateDepthStencilLayouts",
                                                "hostQueryReset",
                                                "timelineSemaphore",
                                                "subgroupBroadcastDynamicId"};
    for (auto& [name, value] : names) *value = !config.bare || demanded.contains(name) ? VK_TRUE : VK_FALSE;
    for (const std::string& off : config.disabled_features) {
        const auto found = names.find(off);
        if (found == names.end())
            std::fprintf(stderr, "null driver: it has no feature '%s' to disable\n", off.c_str());
        else
            *found->second = VK_FALSE;
    }
    if (config.no_timeline) all.v12.timelineSemaphore = VK_FALSE;
    device.features = all.core;

#define KP_WHOLE(Struct, TYPE, source, first_field, last_field)                                              \
    add<Struct>(device, TYPE, &source.first_field, size_t(&source.last_field - &source.first_field) + 1)
#define KP_PART(Name, TYPE, source, first_field, last_field)                                                 \
    KP_WHOLE(VkPhysicalDevice##Name, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##TYPE, source, first_field,          \
             last_field)

    if (config.api_version >= VK_API_VERSION_1_2)
        KP_PART(Vulkan11Features, VULKAN_1_1_FEATURES, all.v11, storageBuffer16BitAccess,
                shaderDrawParameters);
    KP_PART(16BitStorageFeatures, 16BIT_STORAGE_FEATURES, all.v11, storageBuffer16BitAccess,
            storageInputOutput16);
    KP_PART(MultiviewFeatures, MULTIVIEW_FEATURES, all.v11, multiview, multiviewTessellationShader);
    KP_PART(VariablePointersFeatures, VARIABLE_POINTERS_FEATURES, all.v11, variablePointersStorageBuffer,
            variablePointers);
    KP_PART(ProtectedMemoryFeatures, PROTECTED_MEMORY_FEATURES, all.v11, protectedMemory, protectedMemory);
    KP_PART(SamplerYcbcrConversionFeatures, SAMPLER_YCBCR_CONVERSION_FEATURES, all.v11,
            samplerYcbcrConversion, samplerYcbcrConversion);
    KP_PART(ShaderDrawParametersFeatures, SHADER_DRAW_PARAMETERS_FEATURES, all.v11, shaderDrawParameters,
            shaderDrawParameters);
    if (config.api_version >= VK_API_VERSION_1_2)
        KP_PART(Vulkan12Features, VULKAN_1_2_FEATURES, all.v12, samplerMirrorClampToEdge,
                subgroupBroadcastDynamicId);
    KP_PART(8BitStorageFeatures, 8BIT_STORAGE_FEATURES, all.v12, storageBuffer8BitAccess,
            storagePushConstant8);
    KP_PART(ShaderAtomicInt64Features, SHADER_ATOMIC_INT64_FEATURES, all.v12, shaderBufferInt64Atomics,
            shaderSharedInt64Atomics);
    KP_PART(ShaderFloat16Int8Features, SHADER_FLOAT16_INT8_FEATURES, all.v12, shaderFloat16, shaderInt8);
    KP_PART(DescriptorIndexingFeatures, DESCRIPTOR_INDEXING_FEATURES, all.v12,
            shaderInputAttachmentArrayDynamicIndexing, runtimeDescriptorArray);
    KP_PART(ScalarBlockLayoutFeatures, SCALAR_BLOCK_LAYOUT_FEATURES, all.v12, scalarBlockLayout,
            scalarBlockLayout);
    KP_PART(ImagelessFramebufferFeatures, IMAGELESS_FRAMEBUFFER_FEATURES, all.v12, imagelessFramebuffer,
            imagelessFramebuffer);
    KP_PART(UniformBufferStandardLayoutFeatures, UNIFORM_BUFFER_STANDARD_LAYOUT_FEATURES, all.v12,
            uniformBufferStandardLayout, uniformBufferStandardLayout);
    KP_PART(ShaderSubgroupExtendedTypesFeatures, SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES, all.v12,
            shaderSubgroupExtendedTypes, shaderSubgroupExtendedTypes);
    KP_PART(SeparateDepthStencilLayoutsFeatures, SEPARATE_DEPTH_STENCIL_LAYOUTS_FEATURES, all.v12,
            separateDepthStencilLayouts, separateDepthStencilLayouts);
    KP_PART(HostQueryResetFeatures, HOST_QUERY_RESET_FEATURES, all.v12, hostQueryReset, hostQueryReset);
    KP_PART(TimelineSemaphoreFeatures, TIMELINE_SEMAPHORE_FEATURES, all.v12, timelineSemaphore,
            timelineSemaphore);
    KP_PART(BufferDeviceAddressFeatures, BUFFER_DEVICE_ADDRESS_FEATURES, all.v12, bufferDeviceAddress,
            bufferDeviceAddressMultiDevice);
    KP_PART(VulkanMemoryModelFeatures, VULKAN_MEMORY_MODEL_FEATURES, all.v12, vulkanMemoryModel,
            vulkanMemoryModelAvailabilityVisibilityChains);
    if (config.api_version >= VK_API_VERSION_1_3)
        KP_PART(Vulkan13Features, VULKAN_1_3_FEATURES, all.v13, robustImageAccess, maintenance4);
    KP_PART(ImageRobustnessFeatures, IMAGE_ROBUSTNESS_FEATURES, all.v13, robustImageAccess,
            robustImageAccess);
    KP_PART(InlineUniformBlockFeatures, INLINE_UNIFORM_BLOCK_FEATURES, all.v13, inlineUniformBlock,
            descriptorBindingInlineUniformBlockUpdateAfterBind);
    KP_PART(PipelineCreationCacheControlFeatures, PIPELINE_CREATION_CACHE_CONTROL_FEATURES, all.v13,
            pipelineCreationCacheControl, pipelineCreationCacheControl);
    KP_PART(PrivateDataFeatures, PRIVATE_DATA_FEATURES, all.v13, privateData, privateData);
    KP_PART(ShaderDemoteToHelperInvocationFeatures, SHADER_DEMOTE_TO_HELPER_INVOCATION_FEATURES, all.v13,
            shaderDemoteToHelperInvocation, shaderDemoteToHelperInvocation);
    KP_PART(ShaderTerminateInvocationFeatures, SHADER_TERMINATE_INVOCATION_FEATURES, all.v13,
            shaderTerminateInvocation, shaderTerminateInvocation);
    KP_PART(SubgroupSizeControlFeatures, SUBGROUP_SIZE_CONTROL_FEATURES, all.v13, subgroupSizeControl,
            computeFullSubgroups);
    KP_PART(Synchronization2Features, SYNCHRONIZATION_2_FEATURES, all.v13, synchronization2,
            synchronization2);
    KP_PART(ZeroInitializeWorkgroupMemoryFeatures, ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES, all.v13,
            shaderZeroInitializeWorkgroupMemory, shaderZeroInitializeWorkgroupMemory);
    KP_PART(DynamicRenderingFeatures, DYNAMIC_RENDERING_FEATURES, all.v13, dynamicRendering,
            dynamicRendering);
    KP_PART(ShaderIntegerDotProductFeatures, SHADER_INTEGER_DOT_PRODUCT_FEATURES, all.v13,
            shaderIntegerDotProduct, shaderIntegerDotProduct);
    KP_PART(Maintenance4Features, MAINTENANCE_4_FEATURES, all.v13, maintenance4, maintenance4);
    KP_PART(ShaderAtomicFloatFeaturesEXT, SHADER_ATOMIC_FLOAT_FEATURES_EXT, all.atomic_float,
            shaderBufferFloat32Atomics, sparseImageFloat32AtomicAdd);
    KP_PART(Robustness2FeaturesEXT, ROBUSTNESS_2_FEATURES_EXT, all.robustness2, robustBufferAccess2,
            nullDescriptor);
    if (config.executables)
        device.feature_structs.push_back(
            {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR, {VK_TRUE}});
    if (config.fault) {
        VkPhysicalDeviceFaultFeaturesEXT fault{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT};
        device.feature_structs.push_back({fault.sType, {VK_TRUE, VK_FALSE}});
    }
    if (config.priorities) {
        device.feature_structs.push_back(
            {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT, {VK_TRUE}});
        device.feature_structs.push_back(
            {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT, {VK_TRUE}});
    }
    // Headers of Debian 12 lack these extensions: their structs by number.
    if (config.cooperative)
        device.feature_structs.push_back({static_cast<VkStructureType>(1000506000), {VK_TRUE, VK_TRUE}});
    if (config.bfloat16)
        device.feature_structs.push_back(
            {static_cast<VkStructureType>(1000141000), {VK_TRUE, VK_TRUE, VK_FALSE}});
}

}  // namespace kpnull
