// The properties of a physical device, and its features for compute.
#pragma once

#include "adapter/cooperative_matrix.hpp"
#include "adapter/device_select.hpp"
#include "adapter/shader_host.hpp"
#include "base/vulkan.hpp"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kp {

class Instance;

// VkPhysicalDeviceShaderBfloat16FeaturesKHR, by number: the headers may be older.
struct Bfloat16Features {
    VkStructureType sType = static_cast<VkStructureType>(1000141000);
    void* pNext = nullptr;
    VkBool32 shaderBFloat16Type = VK_FALSE;
    VkBool32 shaderBFloat16DotProduct = VK_FALSE;
    VkBool32 shaderBFloat16CooperativeMatrix = VK_FALSE;
};

// The feature structs of one device in one pNext chain. Structs that the device does not know stay out of the
// chain and read as all false. Not copyable: the chain points into itself.
class FeatureChain {
public:
    FeatureChain(uint32_t api_version, const std::vector<std::string>& extensions);
    FeatureChain(const FeatureChain&) = delete;
    FeatureChain& operator=(const FeatureChain&) = delete;

    void query(VkPhysicalDevice device);
    // Turns on each feature of the allow-list that `supported` has and `wanted` takes by its name; returns
    // the names of those turned on.
    std::vector<std::string> enable_from(const FeatureChain& supported,
                                         const std::function<bool(const char*)>& wanted);
    // (name, supported) for the whole allow-list.
    [[nodiscard]] std::vector<std::pair<std::string, bool>> list() const;

    [[nodiscard]] const VkPhysicalDeviceFeatures2* head() const noexcept { return &core; }

    VkPhysicalDeviceFeatures2 core{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    VkPhysicalDeviceVulkan11Features v11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
    VkPhysicalDeviceVulkan12Features v12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceVulkan13Features v13{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
    VkPhysicalDeviceShaderAtomicFloatFeaturesEXT atomic_float{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT};
    VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT atomic_float2{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_2_FEATURES_EXT};
    VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
    VkPhysicalDeviceMaintenance4Features maintenance4{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES};
    VkPhysicalDeviceShaderClockFeaturesKHR shader_clock{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CLOCK_FEATURES_KHR};
    VkPhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR workgroup_layout{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_FEATURES_KHR};
    VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR uniform_control_flow{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_FEATURES_KHR};
    VkPhysicalDeviceShaderImageAtomicInt64FeaturesEXT image_int64{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_IMAGE_ATOMIC_INT64_FEATURES_EXT};
    VkPhysicalDeviceRobustness2FeaturesEXT robustness2{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT};
    // The extension of KHR has the same structure.
    VkPhysicalDeviceComputeShaderDerivativesFeaturesNV derivatives{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COMPUTE_SHADER_DERIVATIVES_FEATURES_NV};
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
    VkPhysicalDeviceFaultFeaturesEXT fault{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FAULT_FEATURES_EXT};
    VkPhysicalDeviceMemoryPriorityFeaturesEXT memory_priority{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT};
    VkPhysicalDevicePageableDeviceLocalMemoryFeaturesEXT pageable_memory{
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT};
    CooperativeMatrixFeatures cooperative_matrix;
    Bfloat16Features bfloat16;

    // Extensions that must be enabled for the structs in the chain.
    [[nodiscard]] const std::vector<const char*>& needed_extensions() const noexcept { return extensions_; }

private:
    std::vector<const char*> extensions_;
};

constexpr VkExternalMemoryHandleTypeFlagBits host_import_handle =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
// The usage flags of every tensor's VkBuffer.
constexpr VkBufferUsageFlags buffer_usage =
    VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
    VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT |
    VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;

struct PhysicalDevice {
    VkPhysicalDevice handle = VK_NULL_HANDLE;
    uint32_t index = 0;         // among the visible devices
    uint32_t vulkan_index = 0;  // among all
    bool has_twin = false;      // another one has the same UUIDs
    VkPhysicalDeviceProperties properties{};
    VkPhysicalDeviceVulkan11Properties v11{};
    VkPhysicalDeviceVulkan12Properties v12{};
    VkPhysicalDeviceSubgroupSizeControlProperties subgroup_sizes{};  // zeros if the device tells none
    VkPhysicalDeviceMemoryProperties memory{};
    std::vector<VkQueueFamilyProperties> families;
    std::vector<std::string> extensions;
    std::vector<std::pair<std::string, bool>> features;  // the allow-list
    std::vector<CooperativeMatrix> cooperative_matrices;
    uint64_t max_allocation = UINT64_MAX;    // maxMemoryAllocationSize
    uint64_t max_buffer_size = UINT64_MAX;   // of VkBufferCreateInfo::size, if the device reports it
    uint64_t host_import_alignment = 0;      // alignment of imported process memory; 0: not supported
    std::string pci_address;                 // "0000:01:00.0"; empty if unknown
    VkPhysicalDeviceDrmPropertiesEXT drm{};  // zeros if the device tells none

    [[nodiscard]] bool has_extension(const char* name) const;
    [[nodiscard]] bool timestamps() const;  // on some compute queue
    [[nodiscard]] uint64_t device_local_bytes() const;
    [[nodiscard]] DeviceCandidate candidate() const;

    std::string
        broken;  // not empty: the driver failed during a query, and how; other fields are incomplete then

    // Never throws because of a driver's answers: see `broken`. One bad driver must not hide the others'
    // devices.
    [[nodiscard]] static PhysicalDevice query(VkInstance instance, VkPhysicalDevice handle, uint32_t index);

private:
    void ask(VkInstance instance);
};

// The instance's devices with their properties: all of them in Vulkan's order, or those that the list
// `visible` names, in its order. Their indices count the visible devices. Throws the errors of
// visible_positions and of Instance::physical_devices.
struct DeviceList {
    std::vector<PhysicalDevice> devices;
    size_t hidden = 0;
    std::vector<std::string> repeated;  // entries of the list that add no device
};
[[nodiscard]] DeviceList query_devices(const Instance& instance, const std::optional<std::string>& visible);

[[nodiscard]] std::string vendor_name(uint32_t vendor_id);
[[nodiscard]] std::string driver_id_name(VkDriverId id);  // "MESA_LLVMPIPE"; a number if it is newer
[[nodiscard]] std::string version_text(uint32_t version);

// The device's support for shaders, with these features on.
[[nodiscard]] ShaderHost shader_host(const PhysicalDevice& device, std::vector<std::string> features);

}  // namespace kp
