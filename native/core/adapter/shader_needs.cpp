#include "adapter/shader_needs.hpp"

#include "adapter/cooperative_matrix.hpp"
#include "base/vulkan.hpp"
#include "spirv/module.hpp"

#include <spirv/unified1/spirv.hpp>

#include <algorithm>
#include <optional>

namespace kp {
namespace {

using spirv::Instruction;
using spirv::Module;

// -- capabilities ------------------------------------------------------------------------------------------

// A capability that needs any one of these features. For atomics, the code decides which one: see
// spirv/atomics.hpp.
struct CapabilityNeed {
    uint32_t capability;
    const char* feature;
};

// By number: the headers may be older.
constexpr uint32_t cooperative_matrix_capability = 6022;
constexpr uint32_t bfloat16_capabilities[] = {5116, 5117, 5118};

constexpr CapabilityNeed feature_needs[] = {
    {spv::CapabilityFloat64, "shaderFloat64"},
    {spv::CapabilityInt64, "shaderInt64"},
    {spv::CapabilityInt16, "shaderInt16"},
    {spv::CapabilityInt8, "shaderInt8"},
    {spv::CapabilityFloat16, "shaderFloat16"},
    {spv::CapabilityInt64Atomics, "shaderBufferInt64Atomics"},
    {spv::CapabilityInt64Atomics, "shaderSharedInt64Atomics"},
    {spv::CapabilityStorageBuffer16BitAccess, "storageBuffer16BitAccess"},
    {spv::CapabilityUniformAndStorageBuffer16BitAccess, "uniformAndStorageBuffer16BitAccess"},
    {spv::CapabilityStoragePushConstant16, "storagePushConstant16"},
    {spv::CapabilityStorageBuffer8BitAccess, "storageBuffer8BitAccess"},
    {spv::CapabilityUniformAndStorageBuffer8BitAccess, "uniformAndStorageBuffer8BitAccess"},
    {spv::CapabilityStoragePushConstant8, "storagePushConstant8"},
    {spv::CapabilityVariablePointersStorageBuffer, "variablePointersStorageBuffer"},
    {spv::CapabilityVariablePointers, "variablePointers"},
    {spv::CapabilityStorageImageExtendedFormats, "shaderStorageImageExtendedFormats"},
    {spv::CapabilityStorageImageReadWithoutFormat, "shaderStorageImageReadWithoutFormat"},
    {spv::CapabilityStorageImageWriteWithoutFormat, "shaderStorageImageWriteWithoutFormat"},
    {spv::CapabilityUniformBufferArrayDynamicIndexing, "shaderUniformBufferArrayDynamicIndexing"},
    {spv::CapabilitySampledImageArrayDynamicIndexing, "shaderSampledImageArrayDynamicIndexing"},
    {spv::CapabilityStorageBufferArrayDynamicIndexing, "shaderStorageBufferArrayDynamicIndexing"},
    {spv::CapabilityStorageImageArrayDynamicIndexing, "shaderStorageImageArrayDynamicIndexing"},
    {spv::CapabilityImageGatherExtended, "shaderImageGatherExtended"},
    {spv::CapabilityMinLod, "shaderResourceMinLod"},
    {spv::CapabilityShaderNonUniform, "descriptorIndexing"},
    {spv::CapabilityRuntimeDescriptorArray, "runtimeDescriptorArray"},
    {spv::CapabilityUniformTexelBufferArrayDynamicIndexing, "shaderUniformTexelBufferArrayDynamicIndexing"},
    {spv::CapabilityStorageTexelBufferArrayDynamicIndexing, "shaderStorageTexelBufferArrayDynamicIndexing"},
    {spv::CapabilityUniformBufferArrayNonUniformIndexing, "shaderUniformBufferArrayNonUniformIndexing"},
    {spv::CapabilitySampledImageArrayNonUniformIndexing, "shaderSampledImageArrayNonUniformIndexing"},
    {spv::CapabilityStorageBufferArrayNonUniformIndexing, "shaderStorageBufferArrayNonUniformIndexing"},
    {spv::CapabilityStorageImageArrayNonUniformIndexing, "shaderStorageImageArrayNonUniformIndexing"},
    {spv::CapabilityUniformTexelBufferArrayNonUniformIndexing,
     "shaderUniformTexelBufferArrayNonUniformIndexing"},
    {spv::CapabilityStorageTexelBufferArrayNonUniformIndexing,
     "shaderStorageTexelBufferArrayNonUniformIndexing"},
    {spv::CapabilityComputeDerivativeGroupQuadsNV, "computeDerivativeGroupQuads"},
    {spv::CapabilityComputeDerivativeGroupLinearNV, "computeDerivativeGroupLinear"},
    {spv::CapabilityVulkanMemoryModel, "vulkanMemoryModel"},
    {spv::CapabilityVulkanMemoryModelDeviceScope, "vulkanMemoryModelDeviceScope"},
    {spv::CapabilityPhysicalStorageBufferAddresses, "bufferDeviceAddress"},
    {spv::CapabilityDemoteToHelperInvocation, "shaderDemoteToHelperInvocation"},
    {spv::CapabilityDotProduct, "shaderIntegerDotProduct"},
    {spv::CapabilityDotProductInputAll, "shaderIntegerDotProduct"},
    {spv::CapabilityDotProductInput4x8Bit, "shaderIntegerDotProduct"},
    {spv::CapabilityDotProductInput4x8BitPacked, "shaderIntegerDotProduct"},
    {spv::CapabilityAtomicFloat32AddEXT, "shaderBufferFloat32AtomicAdd"},
    {spv::CapabilityAtomicFloat32AddEXT, "shaderSharedFloat32AtomicAdd"},
    {spv::CapabilityAtomicFloat32AddEXT, "shaderImageFloat32AtomicAdd"},
    {spv::CapabilityAtomicFloat64AddEXT, "shaderBufferFloat64AtomicAdd"},
    {spv::CapabilityAtomicFloat64AddEXT, "shaderSharedFloat64AtomicAdd"},
    {spv::CapabilityAtomicFloat16AddEXT, "shaderBufferFloat16AtomicAdd"},
    {spv::CapabilityAtomicFloat16AddEXT, "shaderSharedFloat16AtomicAdd"},
    {spv::CapabilityAtomicFloat16MinMaxEXT, "shaderBufferFloat16AtomicMinMax"},
    {spv::CapabilityAtomicFloat16MinMaxEXT, "shaderSharedFloat16AtomicMinMax"},
    {spv::CapabilityAtomicFloat32MinMaxEXT, "shaderBufferFloat32AtomicMinMax"},
    {spv::CapabilityAtomicFloat32MinMaxEXT, "shaderSharedFloat32AtomicMinMax"},
    {spv::CapabilityAtomicFloat32MinMaxEXT, "shaderImageFloat32AtomicMinMax"},
    {spv::CapabilityAtomicFloat64MinMaxEXT, "shaderBufferFloat64AtomicMinMax"},
    {spv::CapabilityAtomicFloat64MinMaxEXT, "shaderSharedFloat64AtomicMinMax"},
    {spv::CapabilityWorkgroupMemoryExplicitLayoutKHR, "workgroupMemoryExplicitLayout"},
    {spv::CapabilityWorkgroupMemoryExplicitLayout8BitAccessKHR, "workgroupMemoryExplicitLayout8BitAccess"},
    {spv::CapabilityWorkgroupMemoryExplicitLayout16BitAccessKHR, "workgroupMemoryExplicitLayout16BitAccess"},
    {spv::CapabilityInt64ImageEXT, "shaderImageInt64Atomics"},
    {spv::CapabilityShaderClockKHR, "shaderSubgroupClock"},
    {spv::CapabilityShaderClockKHR, "shaderDeviceClock"},
    {cooperative_matrix_capability, "cooperativeMatrix"},
    {bfloat16_capabilities[0], "shaderBFloat16Type"},
    {bfloat16_capabilities[1], "shaderBFloat16DotProduct"},
    {bfloat16_capabilities[2], "shaderBFloat16CooperativeMatrix"},
};

struct SubgroupNeed {
    uint32_t capability;
    VkSubgroupFeatureFlags bit;
    const char* name;
};

constexpr SubgroupNeed subgroup_needs[] = {
    {spv::CapabilityGroupNonUniform, VK_SUBGROUP_FEATURE_BASIC_BIT, "basic"},
    {spv::CapabilityGroupNonUniformVote, VK_SUBGROUP_FEATURE_VOTE_BIT, "vote"},
    {spv::CapabilityGroupNonUniformArithmetic, VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, "arithmetic"},
    {spv::CapabilityGroupNonUniformBallot, VK_SUBGROUP_FEATURE_BALLOT_BIT, "ballot"},
    {spv::CapabilityGroupNonUniformShuffle, VK_SUBGROUP_FEATURE_SHUFFLE_BIT, "shuffle"},
    {spv::CapabilityGroupNonUniformShuffleRelative, VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT,
     "shuffle relative"},
    {spv::CapabilityGroupNonUniformClustered, VK_SUBGROUP_FEATURE_CLUSTERED_BIT, "clustered"},
    {spv::CapabilityGroupNonUniformQuad, VK_SUBGROUP_FEATURE_QUAD_BIT, "quad"},
};

// Capabilities that every Vulkan 1.2 device supports in compute shaders.
constexpr uint32_t always_there[] = {
    spv::CapabilityMatrix,      spv::CapabilityShader,     spv::CapabilityInputAttachment,
    spv::CapabilitySampled1D,   spv::CapabilityImage1D,    spv::CapabilitySampledBuffer,
    spv::CapabilityImageBuffer, spv::CapabilityImageQuery, spv::CapabilityDerivativeControl,
    spv::CapabilityDeviceGroup,
};

// If a missing capability comes with an extension: the name to look for in a driver's list.
struct CapabilityExtension {
    uint32_t capability;
    const char* extension;
};

constexpr CapabilityExtension extensions_of[] = {
    {spv::CapabilityAtomicFloat32AddEXT, VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME},
    {spv::CapabilityAtomicFloat64AddEXT, VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME},
    {spv::CapabilityAtomicFloat16AddEXT, VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME},
    {spv::CapabilityAtomicFloat16MinMaxEXT, VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME},
    {spv::CapabilityAtomicFloat32MinMaxEXT, VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME},
    {spv::CapabilityAtomicFloat64MinMaxEXT, VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME},
    {spv::CapabilityWorkgroupMemoryExplicitLayoutKHR, VK_KHR_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_EXTENSION_NAME},
    {spv::CapabilityWorkgroupMemoryExplicitLayout8BitAccessKHR,
     VK_KHR_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_EXTENSION_NAME},
    {spv::CapabilityWorkgroupMemoryExplicitLayout16BitAccessKHR,
     VK_KHR_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_EXTENSION_NAME},
    {spv::CapabilityInt64ImageEXT, VK_EXT_SHADER_IMAGE_ATOMIC_INT64_EXTENSION_NAME},
    {spv::CapabilityShaderClockKHR, VK_KHR_SHADER_CLOCK_EXTENSION_NAME},
    {spv::CapabilityComputeDerivativeGroupQuadsNV, "VK_KHR_compute_shader_derivatives"},
    {spv::CapabilityComputeDerivativeGroupLinearNV, "VK_KHR_compute_shader_derivatives"},
    {cooperative_matrix_capability, cooperative_matrix_extension},
    {bfloat16_capabilities[0], bfloat16_extension},
    {bfloat16_capabilities[1], bfloat16_extension},
    {bfloat16_capabilities[2], bfloat16_extension},
};

// " of the extension ...", if the feature comes with one.
std::string extension_of_atomics(const std::string& feature) {
    if (feature.find("Float") == std::string::npos) return "";
    const bool second = feature.find("Float16") != std::string::npos || feature.ends_with("MinMax");
    return std::string(" of the extension ") +
           (second ? VK_EXT_SHADER_ATOMIC_FLOAT_2_EXTENSION_NAME : VK_EXT_SHADER_ATOMIC_FLOAT_EXTENSION_NAME);
}

// Capabilities of an extension without a feature.
constexpr CapabilityExtension extension_alone[] = {
    {spv::CapabilitySubgroupBallotKHR, "VK_EXT_shader_subgroup_ballot"},
    {spv::CapabilitySubgroupVoteKHR, "VK_EXT_shader_subgroup_vote"},
    {spv::CapabilityGroups, "VK_AMD_shader_ballot"},
    {spv::CapabilityGroupNonUniformPartitionedNV, "VK_NV_shader_subgroup_partitioned"},
};

// Capabilities that Vulkan allows in compute shaders but kompute_py does not turn on. By number: the headers
// may be older.
struct Unused {
    uint32_t capability;
    const char* need;
};

constexpr Unused not_enabled[] = {
    {27, "the device feature 'shaderStorageImageMultisample'"},
    {34, "the device feature 'imageCubeArray'"},
    {41, "the device feature 'shaderResourceResidency'"},
    {45, "the device feature 'imageCubeArray'"},
    {48, "the device feature 'shaderStorageImageMultisample'"},
    {4165, "the device feature 'shaderCoreBuiltins' of the extension VK_ARM_shader_core_builtins"},
    {4174, "the device feature 'tensors' of the extension VK_ARM_tensors"},
    {4175, "the device feature 'shaderStorageTensorArrayDynamicIndexing' of the extension VK_ARM_tensors"},
    {4176, "the device feature 'shaderStorageTensorArrayNonUniformIndexing' of the extension VK_ARM_tensors"},
    {4191, "the device feature 'dataGraph' of the extension VK_ARM_data_graph"},
    {4201, "the extension VK_ARM_cooperative_matrix_layouts"},
    {4212, "the device feature 'shaderFloat8' of the extension VK_EXT_shader_float8"},
    {4213, "the device feature 'shaderFloat8CooperativeMatrix' of the extension VK_EXT_shader_float8"},
    {4472, "the device feature 'rayQuery' of the extension VK_KHR_ray_query"},
    {4473, "the device feature 'shaderUntypedPointers' of the extension VK_KHR_shader_untyped_pointers"},
    {4478, "the device feature 'rayTraversalPrimitiveCulling' of the extension VK_KHR_ray_tracing_pipeline"},
    {4484, "the device feature 'textureSampleWeighted' of the extension VK_QCOM_image_processing"},
    {4485, "the device feature 'textureBoxFilter' of the extension VK_QCOM_image_processing"},
    {4486, "the device feature 'textureBlockMatch' of the extension VK_QCOM_image_processing"},
    {4495, "the device feature 'tileShading' of the extension VK_QCOM_tile_shading"},
    {4498, "the device feature 'textureBlockMatch2' of the extension VK_QCOM_image_processing2"},
    {5008, "the extension VK_AMD_gpu_shader_half_float_fetch"},
    {5009, "the extension VK_AMD_texture_gather_bias_lod"},
    {5010, "the extension VK_AMD_shader_fragment_mask"},
    {5015, "the extension VK_AMD_shader_image_load_store_lod"},
    {5087, "the device feature 'shaderQuadControl' of the extension VK_KHR_shader_quad_control"},
    {5282, "the device feature 'imageFootprint' of the extension VK_NV_shader_image_footprint"},
    {5336, "the device feature 'rayTracingPositionFetch' of the extension VK_KHR_ray_tracing_position_fetch"},
    {5357, "the device feature 'cooperativeMatrix' of the extension VK_NV_cooperative_matrix"},
    {5373, "the device feature 'shaderSMBuiltins' of the extension VK_NV_shader_sm_builtins"},
    {5391, "the device feature 'rayTracingPositionFetch' of the extension VK_KHR_ray_tracing_position_fetch"},
    {5394, "the device feature 'cooperativeVector' of the extension VK_NV_cooperative_vector"},
    {5404,
     "the device feature 'shaderFloat16VectorAtomics' of the extension VK_NV_shader_atomic_float16_vector"},
    {5414, "the device feature 'shaderRawAccessChains' of the extension VK_NV_raw_access_chains"},
    {5430, "the device feature 'cooperativeMatrixReductions' of the extension VK_NV_cooperative_matrix2"},
    {5431, "the device feature 'cooperativeMatrixConversions' of the extension VK_NV_cooperative_matrix2"},
    {5432,
     "the device feature 'cooperativeMatrixPerElementOperations' of the extension VK_NV_cooperative_matrix2"},
    {5433,
     "the device feature 'cooperativeMatrixTensorAddressing' of the extension VK_NV_cooperative_matrix2"},
    {5434, "the device feature 'cooperativeMatrixBlockLoads' of the extension VK_NV_cooperative_matrix2"},
    {5435, "the device feature 'cooperativeVectorTraining' of the extension VK_NV_cooperative_vector"},
    {5439,
     "the device feature 'cooperativeMatrixTensorAddressing' of the extension VK_NV_cooperative_matrix2"},
    {5629, "the device feature 'shaderExpectAssume' of the extension VK_KHR_shader_expect_assume"},
    {6024,
     "the device feature 'shaderReplicatedComposites' of the extension VK_EXT_shader_replicated_composites"},
    {6026, "the device feature 'shaderSubgroupRotate' of the extension VK_KHR_shader_subgroup_rotate"},
    {6029, "the device feature 'shaderFloatControls2' of the extension VK_KHR_shader_float_controls2"},
};

// Of graphics pipelines.
constexpr uint32_t of_graphics[] = {
    2,    3,    23,   24,   32,   33,   35,   52,   53,   54,   57,   69,   70,
    4166, 4167, 4168, 4422, 4427, 4436, 4439, 4447, 5013, 5249, 5251, 5254, 5255,
    5259, 5260, 5265, 5266, 5283, 5284, 5291, 5303, 5310, 5363, 5372, 5378,
};

// Of ray-tracing pipelines.
constexpr uint32_t of_ray_tracing[] = {4471, 4479, 5340, 5341, 5353, 5380, 5381, 5383, 5409, 5437, 6020};

template <size_t count>
bool among(const uint32_t (&list)[count], uint32_t value) {
    return std::find(std::begin(list), std::end(list), value) != std::end(list);
}

bool has_extension(const ShaderHost& host, const std::string& name) {
    return std::find(host.extensions.begin(), host.extensions.end(), name) != host.extensions.end();
}

bool has_property(const ShaderHost& host, const std::string& name) {
    return std::find(host.float_controls.begin(), host.float_controls.end(), name) !=
           host.float_controls.end();
}

// -- float controls ----------------------------------------------------------------------------------------

// Floating-point execution modes. Each has a capability and, for each width, a property of the same name.
struct FloatMode {
    uint32_t capability;
    uint32_t mode;
    const char* name;
};

constexpr FloatMode float_modes[] = {
    {spv::CapabilityDenormPreserve, spv::ExecutionModeDenormPreserve, "DenormPreserve"},
    {spv::CapabilityDenormFlushToZero, spv::ExecutionModeDenormFlushToZero, "DenormFlushToZero"},
    {spv::CapabilitySignedZeroInfNanPreserve, spv::ExecutionModeSignedZeroInfNanPreserve,
     "SignedZeroInfNanPreserve"},
    {spv::CapabilityRoundingModeRTE, spv::ExecutionModeRoundingModeRTE, "RoundingModeRTE"},
    {spv::CapabilityRoundingModeRTZ, spv::ExecutionModeRoundingModeRTZ, "RoundingModeRTZ"},
};

std::string property_of(const FloatMode& mode, uint32_t width) {
    return std::string("shader") + mode.name + "Float" + std::to_string(width);
}

// "" if the host runs shaders that declare the capability, else the missing requirement.
std::string missing_for(uint32_t capability, const ShaderHost& host) {
    if (among(always_there, capability)) return "";
    std::string missing;
    bool known = false;
    for (const auto& need : feature_needs) {
        if (need.capability != capability) continue;
        known = true;
        if (host.has(need.feature)) return "";
        missing += std::string(missing.empty() ? "the device feature '" : " or '") + need.feature + "'";
    }
    if (known) {
        for (const auto& entry : extensions_of)
            if (entry.capability == capability)
                missing += std::string(" of the extension ") + entry.extension;
        return missing;
    }
    for (const auto& need : subgroup_needs) {
        if (need.capability != capability) continue;
        if (host.subgroup_operations & need.bit) return "";
        return std::string("subgroup operations of the kind '") + need.name + "' in compute shaders";
    }
    for (const FloatMode& mode : float_modes) {
        if (mode.capability != capability) continue;
        for (const uint32_t width : {16u, 32u, 64u}) {
            if (has_property(host, property_of(mode, width))) return "";
            missing += (missing.empty() ? "the device property '" : " or '") + property_of(mode, width) + "'";
        }
        return missing + " of VkPhysicalDeviceFloatControlsProperties";
    }
    for (const auto& entry : extension_alone)
        if (entry.capability == capability)
            return has_extension(host, entry.extension) ? ""
                                                        : std::string("the extension ") + entry.extension;
    for (const Unused& unused : not_enabled)
        if (unused.capability == capability)
            return std::string(unused.need) + ", which kompute_py does not turn on";
    if (among(of_graphics, capability)) return "a graphics pipeline: compute shaders have no use for it";
    if (among(of_ray_tracing, capability)) return "a ray-tracing pipeline: it is none of compute shaders'";
    if (capability_name(capability).starts_with("capability "))
        return "a newer kompute_py: it is not among the capabilities that this one knows";
    return "OpenCL: Vulkan does not have it";
}

// -- execution modes ---------------------------------------------------------------------------------------

constexpr uint32_t maximally_reconverges = 6023, fp_fast_math_default = 6028, quad_derivatives = 5088,
                   require_full_quads = 5089;

struct ModeFinding {
    std::string what;
    std::string need;  // "": met
};

// The name of the mode, and the requirement that the host does not meet.
ModeFinding judge(const spirv::ExecutionMode& mode, const ShaderHost& host) {
    const auto with_feature = [&](const char* name, const char* feature, const char* extension) {
        ModeFinding found{name, ""};
        if (!host.has(feature))
            found.need = std::string("the device feature '") + feature + "' of the extension " + extension;
        return found;
    };
    const auto never = [](const char* name, const char* feature, const char* extension) {
        return ModeFinding{name, std::string("the device feature '") + feature + "' of the extension " +
                                     extension + ", which kompute_py does not turn on"};
    };
    switch (mode.mode) {
    case spv::ExecutionModeLocalSize: return {"LocalSize", ""};
    case spv::ExecutionModeLocalSizeId:
        return with_feature("LocalSizeId", "maintenance4", "VK_KHR_maintenance4 (or Vulkan 1.3)");
    case spv::ExecutionModeSubgroupUniformControlFlowKHR:
        return with_feature("SubgroupUniformControlFlowKHR", "shaderSubgroupUniformControlFlow",
                            VK_KHR_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_EXTENSION_NAME);
    case maximally_reconverges:
        return never("MaximallyReconvergesKHR", "shaderMaximalReconvergence",
                     "VK_KHR_shader_maximal_reconvergence");
    case fp_fast_math_default:
        return never("FPFastMathDefault", "shaderFloatControls2", "VK_KHR_shader_float_controls2");
    case spv::ExecutionModeDerivativeGroupQuadsNV:
        return with_feature("DerivativeGroupQuadsKHR", "computeDerivativeGroupQuads",
                            "VK_KHR_compute_shader_derivatives");
    case spv::ExecutionModeDerivativeGroupLinearNV:
        return with_feature("DerivativeGroupLinearKHR", "computeDerivativeGroupLinear",
                            "VK_KHR_compute_shader_derivatives");
    case quad_derivatives:
        return never("QuadDerivativesKHR", "shaderQuadControl", "VK_KHR_shader_quad_control");
    case require_full_quads:
        return never("RequireFullQuadsKHR", "shaderQuadControl", "VK_KHR_shader_quad_control");
    default: break;
    }
    for (const FloatMode& each : float_modes) {
        if (each.mode != mode.mode) continue;
        const uint32_t width = mode.operands[0];
        const std::string property = property_of(each, width);
        return {std::string(each.name) + " for floats of " + std::to_string(width) + " bits",
                has_property(host, property) ? "" : "the device property '" + property + "'"};
    }
    return {"Execution mode " + std::to_string(mode.mode),
            "another kind of shader: compute shaders do not have it"};
}

// True if the two widths may be treated differently.
bool independent(uint32_t rule, uint32_t a, uint32_t b) {
    if (rule == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL) return true;
    return rule == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY && (a == 32 || b == 32);
}

// Finds two widths of floats that are treated differently although the device cannot.
std::string disagreement(const std::vector<const spirv::ExecutionMode*>& modes, uint32_t one, uint32_t other,
                         uint32_t rule, const char* property) {
    for (const auto* a : modes)
        for (const auto* b : modes)
            if (a->mode == one && b->mode == other && a->operands[0] != b->operands[0] &&
                !independent(rule, a->operands[0], b->operands[0]))
                return "Floats of " + std::to_string(a->operands[0]) + " and of " +
                       std::to_string(b->operands[0]) +
                       " bits are treated differently, which needs the device property '" + property +
                       "' to be other than '" + float_independence_names[std::min(rule, 2u)] + "'";
    return "";
}

// -- extensions --------------------------------------------------------------------------------------------

struct SpirvExtension {
    const char* name;
    uint32_t core;      // the minor version of Vulkan that includes it; `never_core`: none
    const char* needs;  // the device extension otherwise; "": checked through its declarations
};

constexpr uint32_t never_core = UINT32_MAX;

constexpr SpirvExtension known_extensions[] = {
    {"SPV_KHR_16bit_storage", 1, ""},
    {"SPV_KHR_8bit_storage", 2, ""},
    {"SPV_KHR_device_group", 1, ""},
    {"SPV_KHR_float_controls", 2, ""},
    {"SPV_KHR_multiview", 1, ""},
    {"SPV_KHR_no_integer_wrap_decoration", 2, ""},
    {"SPV_KHR_physical_storage_buffer", 2, ""},
    {"SPV_KHR_post_depth_coverage", never_core, ""},
    {"SPV_KHR_shader_draw_parameters", 1, ""},
    {"SPV_KHR_storage_buffer_storage_class", 1, ""},
    {"SPV_KHR_variable_pointers", 1, ""},
    {"SPV_KHR_vulkan_memory_model", 2, ""},
    {"SPV_EXT_descriptor_indexing", 2, ""},
    {"SPV_EXT_physical_storage_buffer", 2, ""},
    {"SPV_EXT_shader_viewport_index_layer", 2, ""},
    {"SPV_KHR_integer_dot_product", 3, ""},
    {"SPV_KHR_terminate_invocation", 3, ""},
    {"SPV_EXT_demote_to_helper_invocation", 3, ""},
    {"SPV_KHR_non_semantic_info", 3, "VK_KHR_shader_non_semantic_info"},
    {"SPV_AMD_gcn_shader", never_core, "VK_AMD_gcn_shader"},
    {"SPV_AMD_shader_ballot", never_core, "VK_AMD_shader_ballot"},
    {"SPV_AMD_shader_trinary_minmax", never_core, "VK_AMD_shader_trinary_minmax"},
    {"SPV_KHR_relaxed_extended_instruction", never_core, "VK_KHR_shader_relaxed_extended_instruction"},
    // Strings and names for tools, which drivers skip.
    {"SPV_GOOGLE_decorate_string", never_core, ""},
    {"SPV_GOOGLE_hlsl_functionality1", never_core, ""},
    {"SPV_GOOGLE_user_type", never_core, ""},
};

// Each permits capabilities, execution modes or built-ins, which are checked above.
constexpr const char* judged_by_what_they_bring[] = {
    "SPV_AMD_gpu_shader_half_float",
    "SPV_AMD_gpu_shader_half_float_fetch",
    "SPV_AMD_gpu_shader_int16",
    "SPV_AMD_shader_early_and_late_fragment_tests",
    "SPV_AMD_shader_explicit_vertex_parameter",
    "SPV_AMD_shader_fragment_mask",
    "SPV_AMD_shader_image_load_store_lod",
    "SPV_AMD_texture_gather_bias_lod",
    "SPV_ARM_cooperative_matrix_layouts",
    "SPV_ARM_core_builtins",
    "SPV_ARM_graph",
    "SPV_ARM_tensors",
    "SPV_EXT_arithmetic_fence",
    "SPV_EXT_float8",
    "SPV_EXT_fragment_fully_covered",
    "SPV_EXT_fragment_invocation_density",
    "SPV_EXT_fragment_shader_interlock",
    "SPV_EXT_mesh_shader",
    "SPV_EXT_opacity_micromap",
    "SPV_EXT_optnone",
    "SPV_EXT_replicated_composites",
    "SPV_EXT_shader_atomic_float16_add",
    "SPV_EXT_shader_atomic_float_add",
    "SPV_EXT_shader_atomic_float_min_max",
    "SPV_EXT_shader_image_int64",
    "SPV_EXT_shader_stencil_export",
    "SPV_EXT_shader_tile_image",
    "SPV_KHR_bfloat16",
    "SPV_KHR_bit_instructions",
    "SPV_KHR_compute_shader_derivatives",
    "SPV_KHR_cooperative_matrix",
    "SPV_KHR_expect_assume",
    "SPV_KHR_float_controls2",
    "SPV_KHR_fragment_shader_barycentric",
    "SPV_KHR_fragment_shading_rate",
    "SPV_KHR_linkonce_odr",
    "SPV_KHR_maximal_reconvergence",
    "SPV_KHR_quad_control",
    "SPV_KHR_ray_cull_mask",
    "SPV_KHR_ray_query",
    "SPV_KHR_ray_tracing",
    "SPV_KHR_ray_tracing_position_fetch",
    "SPV_KHR_shader_atomic_counter_ops",
    "SPV_KHR_shader_ballot",
    "SPV_KHR_shader_clock",
    "SPV_KHR_subgroup_rotate",
    "SPV_KHR_subgroup_uniform_control_flow",
    "SPV_KHR_subgroup_vote",
    "SPV_KHR_uniform_group_instructions",
    "SPV_KHR_untyped_pointers",
    "SPV_KHR_workgroup_memory_explicit_layout",
    "SPV_NVX_multiview_per_view_attributes",
    "SPV_NV_bindless_texture",
    "SPV_NV_cluster_acceleration_structure",
    "SPV_NV_compute_shader_derivatives",
    "SPV_NV_cooperative_matrix",
    "SPV_NV_cooperative_matrix2",
    "SPV_NV_cooperative_vector",
    "SPV_NV_displacement_micromap",
    "SPV_NV_fragment_shader_barycentric",
    "SPV_NV_geometry_shader_passthrough",
    "SPV_NV_linear_swept_spheres",
    "SPV_NV_mesh_shader",
    "SPV_NV_raw_access_chains",
    "SPV_NV_ray_tracing",
    "SPV_NV_ray_tracing_motion_blur",
    "SPV_NV_sample_mask_override_coverage",
    "SPV_NV_shader_atomic_fp16_vector",
    "SPV_NV_shader_image_footprint",
    "SPV_NV_shader_invocation_reorder",
    "SPV_NV_shader_sm_builtins",
    "SPV_NV_shader_subgroup_partitioned",
    "SPV_NV_shading_rate",
    "SPV_NV_stereo_view_rendering",
    "SPV_NV_tensor_addressing",
    "SPV_NV_viewport_array2",
    "SPV_QCOM_image_processing",
    "SPV_QCOM_image_processing2",
    "SPV_QCOM_tile_shading",
};

std::string missing_for_extension(const std::string& name, const ShaderHost& host) {
    const uint32_t minor = VK_API_VERSION_MAJOR(host.vulkan) > 1 ? 99 : VK_API_VERSION_MINOR(host.vulkan);
    for (const SpirvExtension& each : known_extensions) {
        if (name != each.name) continue;
        if (*each.needs == '\0' || minor >= each.core || has_extension(host, each.needs)) return "";
        return std::string("the extension ") + each.needs +
               (each.core == never_core ? "" : " or Vulkan 1." + std::to_string(each.core));
    }
    const auto judged =
        std::any_of(std::begin(judged_by_what_they_bring), std::end(judged_by_what_they_bring),
                    [&](const char* each) { return name == each; });
    if (judged) return "";
    if (name.starts_with("SPV_INTEL_") || name.starts_with("SPV_ALTERA_"))
        return "OpenCL: Vulkan does not have it";
    return "a newer kompute_py: it is not among the extensions of SPIR-V that this one knows";
}

// True if a variable in workgroup memory has an initial value; no capability declares this.
bool initializes_workgroup(const Module& module) {
    return std::any_of(module.globals.begin(), module.globals.end(), [](Instruction global) {
        return global.op() == spv::OpVariable && global[3] == spv::StorageClassWorkgroup && global.size() > 4;
    });
}

// The fix for a missing requirement, as the end of a sentence.
std::string advice(const std::string& what) {
    if (what == "StorageImageReadWithoutFormat" || what == "StorageImageWriteWithoutFormat")
        return "; or write the image's format, [[vk::image_format(\"r32f\")]] in HLSL and Slang, "
               "layout(r32f) in "
               "GLSL";
    return "";
}

}  // namespace

std::vector<Finding> unmet_needs(std::span<const uint32_t> words, const ShaderInfo& info,
                                 const ShaderHost& host) {
    std::vector<Finding> found;
    const auto add = [&](FindingKind kind, const std::string& what, const std::string& need,
                         const std::string& subject) {
        found.push_back({kind, what, need, {}, subject + " needs " + need + advice(what)});
    };
    for (const uint32_t capability : info.capabilities) {
        const std::string need = missing_for(capability, host);
        const std::string name = capability_name(capability);
        if (!need.empty()) add(FindingKind::capability, name, need, name);
    }
    for (const std::string& name : info.extensions)
        if (const std::string need = missing_for_extension(name, host); !need.empty())
            add(FindingKind::extension, name, need, name);

    const Module module(words);
    std::vector<const spirv::ExecutionMode*> modes;
    for (const auto& point : module.entry_points)
        if (point.model == spv::ExecutionModelGLCompute && point.name == info.entry)
            for (const auto& mode : module.execution_modes)
                if (mode.function == point.function) modes.push_back(&mode);
    for (const auto* mode : modes)
        if (const ModeFinding judged = judge(*mode, host); !judged.need.empty())
            add(FindingKind::mode, judged.what, judged.need, judged.what);
    if (found.empty())
        for (const std::string& problem :
             {disagreement(modes, spv::ExecutionModeDenormPreserve, spv::ExecutionModeDenormFlushToZero,
                           host.denorm_independence, "denormBehaviorIndependence"),
              disagreement(modes, spv::ExecutionModeRoundingModeRTE, spv::ExecutionModeRoundingModeRTZ,
                           host.rounding_independence, "roundingModeIndependence")})
            if (!problem.empty()) found.push_back({FindingKind::mode, "float controls", {}, {}, problem});

    for (const std::string& feature : info.atomic_features) {
        const bool known = std::any_of(found.begin(), found.end(), [&](const Finding& finding) {
            return finding.message.find("'" + feature + "'") != std::string::npos;
        });
        if (known || host.has(feature)) continue;
        const std::string need = "the device feature '" + feature + "'" + extension_of_atomics(feature);
        add(FindingKind::feature, feature, need, "The shader's atomics");
        found.back().message = "The shader's atomics need " + need;
    }
    if (initializes_workgroup(module) && !host.has("shaderZeroInitializeWorkgroupMemory"))
        add(FindingKind::feature, "shaderZeroInitializeWorkgroupMemory",
            "the device feature 'shaderZeroInitializeWorkgroupMemory'",
            "A shared variable with an initial value");
    return found;
}

}  // namespace kp
