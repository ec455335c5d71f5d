// Shader modules, pipeline layouts, compute pipelines, pipeline caches, private data.
#include "entry_points.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

namespace kpnull {
namespace {

constexpr uint32_t kSpirvMagic = 0x07230203;
constexpr uint32_t kOpEntryPoint = 15;
constexpr uint32_t kModelGlCompute = 5;
constexpr size_t kCacheHeader = 32;  // VkPipelineCacheHeaderVersionOne

// Whether the instruction stream is well-formed as far as lengths go.
bool is_spirv(const uint32_t* words, size_t count) {
    if (count < 5 || words[0] != kSpirvMagic) return false;
    for (size_t at = 5; at < count;) {
        const uint32_t length = words[at] >> 16;
        if (length == 0 || length > count - at) return false;
        at += length;
    }
    return true;
}
bool has_compute_entry(const std::vector<uint32_t>& code, const char* name) {
    for (size_t at = 5; at < code.size(); at += code[at] >> 16) {
        const uint32_t length = code[at] >> 16;
        if ((code[at] & 0xffff) != kOpEntryPoint || length < 4 || code[at + 1] != kModelGlCompute) continue;
        const char* entry = reinterpret_cast<const char*>(&code[at + 3]);
        const size_t room = (length - 3) * 4;
        if (strnlen(entry, room) < room && !std::strcmp(entry, name)) return true;
    }
    return false;
}

uint64_t hash_bytes(const void* data, size_t size, uint64_t hash) {
    for (size_t i = 0; i < size; ++i) hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 1099511628211ull;
    return hash;
}
uint64_t hash_stage(const VkPipelineShaderStageCreateInfo& stage, const std::vector<uint32_t>& code) {
    uint64_t hash = hash_bytes(code.data(), code.size() * 4, 14695981039346656037ull);
    hash = hash_bytes(stage.pName, std::strlen(stage.pName) + 1, hash);
    if (const VkSpecializationInfo* s = stage.pSpecializationInfo) {
        for (uint32_t i = 0; i < s->mapEntryCount; ++i) {
            hash = hash_bytes(&s->pMapEntries[i].constantID, 4, hash);
            hash = hash_bytes(static_cast<const uint8_t*>(s->pData) + s->pMapEntries[i].offset,
                              s->pMapEntries[i].size, hash);
        }
    }
    return hash;
}

void cache_header(const PhysicalDevice& physical, uint8_t* out) {
    const uint32_t words[4] = {kCacheHeader, VK_PIPELINE_CACHE_HEADER_VERSION_ONE,
                               physical.properties.vendorID, physical.properties.deviceID};
    std::memcpy(out, words, sizeof words);
    std::memcpy(out + sizeof words, physical.properties.pipelineCacheUUID, VK_UUID_SIZE);
}

VkResult create_pipeline(Device* device, PipelineCache* cache, const VkComputePipelineCreateInfo& info,
                         VkPipeline* out) {
    std::vector<uint32_t> inline_code;
    const std::vector<uint32_t>* code = nullptr;
    if (info.stage.module) {
        code = &from<ShaderModule>(info.stage.module)->code;
    } else if (const auto* module = find_in_chain<VkShaderModuleCreateInfo>(
                   info.stage.pNext, VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO)) {
        inline_code.assign(module->pCode, module->pCode + module->codeSize / 4);
        code = &inline_code;
    }
    if (!code || !is_spirv(code->data(), code->size()) || !has_compute_entry(*code, info.stage.pName)) {
        violation("vkCreateComputePipelines: the shader has no compute entry point '%s'",
                  info.stage.pName ? info.stage.pName : "(null)");
        return VK_ERROR_INVALID_SHADER_NV;
    }
    const uint64_t hash = hash_stage(info.stage, *code);
    if (const uint64_t takes = device->physical->instance->config.compile_ms; takes != 0) {
        std::unique_lock<std::mutex> alone;
        if (cache) alone = std::unique_lock(cache->compiling, std::try_to_lock);
        if (cache && !alone.owns_lock())
            violation("vkCreateComputePipelines: two threads compile with one cache at once");
        std::this_thread::sleep_for(std::chrono::milliseconds(takes));
    }
    bool hit = false;
    if (cache) {
        std::lock_guard lock(cache->mutex);
        hit = cache->hashes.contains(hash);
        if (!hit && !(info.flags & VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT))
            cache->hashes.insert(hash);
    }
    if (!hit && (info.flags & VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT))
        return VK_PIPELINE_COMPILE_REQUIRED;
    if (const auto* feedback = find_in_chain<VkPipelineCreationFeedbackCreateInfo>(
            info.pNext, VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO)) {
        const VkPipelineCreationFeedbackFlags flags =
            VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT |
            (hit ? VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT : 0);
        *feedback->pPipelineCreationFeedback = {flags, 1000};
        for (uint32_t i = 0; i < feedback->pipelineStageCreationFeedbackCount; ++i)
            feedback->pPipelineStageCreationFeedbacks[i] = {flags, 1000};
    }
    auto* pipeline = create<Pipeline>(device);
    pipeline->entry = info.stage.pName;
    pipeline->hash = hash;
    pipeline->flags = info.flags;
    *out = to(pipeline);
    return VK_SUCCESS;
}

}  // namespace

VKAPI_ATTR VkResult VKAPI_CALL vkCreateShaderModule(VkDevice device, const VkShaderModuleCreateInfo* info,
                                                    const VkAllocationCallbacks*, VkShaderModule* out) {
    KP_FAILABLE("vkCreateShaderModule");
    if (info->codeSize % 4 || !is_spirv(info->pCode, info->codeSize / 4)) {
        violation("vkCreateShaderModule: %zu bytes that are not SPIR-V", info->codeSize);
        return VK_ERROR_INVALID_SHADER_NV;
    }
    auto* module = create<ShaderModule>(from<Device>(device));
    module->code.assign(info->pCode, info->pCode + info->codeSize / 4);
    *out = to(module);
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyShaderModule(VkDevice, VkShaderModule module,
                                                 const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyShaderModule");
    destroy<ShaderModule>(module);
}

namespace {
// Notes where the descriptors of a layout, over all of its sets, are more than a compute shader may have.
void check_descriptors(const PipelineLayout& layout, const VkPhysicalDeviceLimits& l) {
    uint64_t samplers = 0, uniform = 0, storage = 0, sampled = 0, images = 0;
    for (const auto& set : layout.sets)
        for (const auto& b : set) switch (b.type) {
            case VK_DESCRIPTOR_TYPE_SAMPLER: samplers += b.count; break;
            case VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER: samplers += b.count, sampled += b.count; break;
            case VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE:
            case VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER: sampled += b.count; break;
            case VK_DESCRIPTOR_TYPE_STORAGE_IMAGE:
            case VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER: images += b.count; break;
            case VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER:
            case VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC: uniform += b.count; break;
            case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER:
            case VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC: storage += b.count; break;
            default: break;
            }
    const auto check = [](uint64_t count, const char* name, uint32_t limit) {
        if (count > limit)
            violation("vkCreatePipelineLayout: %llu descriptors exceed %s %u", (unsigned long long)count,
                      name, limit);
    };
    check(samplers, "maxPerStageDescriptorSamplers", l.maxPerStageDescriptorSamplers);
    check(uniform, "maxPerStageDescriptorUniformBuffers", l.maxPerStageDescriptorUniformBuffers);
    check(storage, "maxPerStageDescriptorStorageBuffers", l.maxPerStageDescriptorStorageBuffers);
    check(sampled, "maxPerStageDescriptorSampledImages", l.maxPerStageDescriptorSampledImages);
    check(images, "maxPerStageDescriptorStorageImages", l.maxPerStageDescriptorStorageImages);
    check(samplers, "maxDescriptorSetSamplers", l.maxDescriptorSetSamplers);
    check(uniform, "maxDescriptorSetUniformBuffers", l.maxDescriptorSetUniformBuffers);
    check(storage, "maxDescriptorSetStorageBuffers", l.maxDescriptorSetStorageBuffers);
    check(sampled, "maxDescriptorSetSampledImages", l.maxDescriptorSetSampledImages);
    check(images, "maxDescriptorSetStorageImages", l.maxDescriptorSetStorageImages);
    check(uniform + storage + sampled + images, "maxPerStageResources", l.maxPerStageResources);
}
}  // namespace

VKAPI_ATTR VkResult VKAPI_CALL vkCreatePipelineLayout(VkDevice handle, const VkPipelineLayoutCreateInfo* info,
                                                      const VkAllocationCallbacks*, VkPipelineLayout* out) {
    KP_FAILABLE("vkCreatePipelineLayout");
    auto* device = from<Device>(handle);
    auto* layout = create<PipelineLayout>(device);
    for (uint32_t i = 0; i < info->setLayoutCount; ++i)
        layout->sets.push_back(info->pSetLayouts[i]
                                   ? from<DescriptorSetLayout>(info->pSetLayouts[i])->bindings
                                   : std::vector<DescriptorSetLayout::Binding>{});
    for (uint32_t i = 0; i < info->pushConstantRangeCount; ++i)
        layout->push_bytes = std::max(layout->push_bytes, info->pPushConstantRanges[i].offset +
                                                              info->pPushConstantRanges[i].size);
    const VkPhysicalDeviceLimits& limits = device->physical->properties.limits;
    if (layout->push_bytes > limits.maxPushConstantsSize)
        violation("vkCreatePipelineLayout: %u bytes of push constants exceed maxPushConstantsSize %u",
                  layout->push_bytes, limits.maxPushConstantsSize);
    if (info->setLayoutCount > limits.maxBoundDescriptorSets)
        violation("vkCreatePipelineLayout: %u sets exceed maxBoundDescriptorSets %u", info->setLayoutCount,
                  limits.maxBoundDescriptorSets);
    check_descriptors(*layout, limits);
    *out = to(layout);
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyPipelineLayout(VkDevice, VkPipelineLayout layout,
                                                   const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyPipelineLayout");
    destroy<PipelineLayout>(layout);
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreateComputePipelines(VkDevice device, VkPipelineCache cache,
                                                        uint32_t count,
                                                        const VkComputePipelineCreateInfo* infos,
                                                        const VkAllocationCallbacks*, VkPipeline* out) {
    KP_FAILABLE("vkCreateComputePipelines");
    VkResult result = VK_SUCCESS;
    for (uint32_t i = 0; i < count; ++i) {
        out[i] = VK_NULL_HANDLE;
        if (result != VK_SUCCESS && (infos[i - 1].flags & VK_PIPELINE_CREATE_EARLY_RETURN_ON_FAILURE_BIT))
            continue;
        const VkResult one =
            create_pipeline(from<Device>(device), from<PipelineCache>(cache), infos[i], &out[i]);
        if (result == VK_SUCCESS || one < 0) result = one == VK_SUCCESS ? result : one;
    }
    return result;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyPipeline(VkDevice, VkPipeline pipeline, const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyPipeline");
    destroy<Pipeline>(pipeline);
}

VKAPI_ATTR VkResult VKAPI_CALL vkGetPipelineExecutablePropertiesKHR(
    VkDevice, const VkPipelineInfoKHR*, uint32_t* count, VkPipelineExecutablePropertiesKHR* properties) {
    KP_FAILABLE("vkGetPipelineExecutablePropertiesKHR");
    *count = 1;
    if (!properties) return VK_SUCCESS;
    properties->stages = VK_SHADER_STAGE_COMPUTE_BIT;
    std::snprintf(properties->name, sizeof properties->name, "Compute");
    std::snprintf(properties->description, sizeof properties->description, "the null device's code");
    properties->subgroupSize = 32;
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL
vkGetPipelineExecutableStatisticsKHR(VkDevice, const VkPipelineExecutableInfoKHR* info, uint32_t* count,
                                     VkPipelineExecutableStatisticKHR* statistics) {
    KP_FAILABLE("vkGetPipelineExecutableStatisticsKHR");
    if (!(from<Pipeline>(info->pipeline)->flags & VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR))
        violation("vkGetPipelineExecutableStatisticsKHR: the pipeline was made without CAPTURE_STATISTICS");
    *count = 4;
    if (!statistics) return VK_SUCCESS;
    const auto set = [&](size_t i, const char* name, VkPipelineExecutableStatisticFormatKHR format) {
        std::snprintf(statistics[i].name, sizeof statistics[i].name, "%s", name);
        statistics[i].format = format;
    };
    set(0, "Registers", VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR);
    statistics[0].value.u64 = 24;
    set(1, "Spills", VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR);
    statistics[1].value.b32 = VK_FALSE;
    set(2, "Occupancy", VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR);
    statistics[2].value.f64 = 0.75;
    set(3, "Code size", VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR);
    statistics[3].value.i64 = 640;
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkGetPipelineExecutableInternalRepresentationsKHR(
    VkDevice, const VkPipelineExecutableInfoKHR* info, uint32_t* count,
    VkPipelineExecutableInternalRepresentationKHR* forms) {
    KP_FAILABLE("vkGetPipelineExecutableInternalRepresentationsKHR");
    const auto needed = VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
    if (!(from<Pipeline>(info->pipeline)->flags & needed))
        violation("vkGetPipelineExecutableInternalRepresentationsKHR: the pipeline was made without "
                  "CAPTURE_INTERNAL_REPRESENTATIONS");
    *count = 2;
    if (!forms) return VK_SUCCESS;
    static const char kText[] = "v_add_f32 v0, v1, v2";
    static const char* kNames[] = {"Assembly", "Binary"};
    for (size_t i = 0; i < 2; ++i) {
        std::snprintf(forms[i].name, sizeof forms[i].name, "%s", kNames[i]);
        forms[i].isText = i == 0;
        if (forms[i].pData) std::memcpy(forms[i].pData, kText, std::min(forms[i].dataSize, sizeof kText));
        forms[i].dataSize = sizeof kText;
    }
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreatePipelineCache(VkDevice handle, const VkPipelineCacheCreateInfo* info,
                                                     const VkAllocationCallbacks*, VkPipelineCache* out) {
    KP_FAILABLE("vkCreatePipelineCache");
    auto* device = from<Device>(handle);
    auto* cache = create<PipelineCache>(device);
    uint8_t header[kCacheHeader];
    cache_header(*device->physical, header);
    const auto* data = static_cast<const uint8_t*>(info->pInitialData);
    // Data of another device or driver is ignored, as the specification asks.
    if (info->initialDataSize >= kCacheHeader && !std::memcmp(data, header, kCacheHeader)) {
        for (size_t at = kCacheHeader; at + 8 <= info->initialDataSize; at += 8) {
            uint64_t hash;
            std::memcpy(&hash, data + at, 8);
            cache->hashes.insert(hash);
        }
    }
    *out = to(cache);
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyPipelineCache(VkDevice, VkPipelineCache cache,
                                                  const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyPipelineCache");
    destroy<PipelineCache>(cache);
}
VKAPI_ATTR VkResult VKAPI_CALL vkGetPipelineCacheData(VkDevice device, VkPipelineCache handle, size_t* size,
                                                      void* out) {
    KP_FAILABLE("vkGetPipelineCacheData");
    PipelineCache& cache = *from<PipelineCache>(handle);
    std::lock_guard lock(cache.mutex);
    const size_t needed = kCacheHeader + cache.hashes.size() * 8;
    if (!out) {
        *size = needed;
        return VK_SUCCESS;
    }
    if (*size < kCacheHeader) {
        *size = 0;
        return VK_INCOMPLETE;
    }
    auto* bytes = static_cast<uint8_t*>(out);
    cache_header(*from<Device>(device)->physical, bytes);
    std::vector<uint64_t> hashes(cache.hashes.begin(), cache.hashes.end());
    std::sort(hashes.begin(), hashes.end());
    size_t at = kCacheHeader;
    for (uint64_t hash : hashes) {
        if (at + 8 > *size) break;
        std::memcpy(bytes + at, &hash, 8);
        at += 8;
    }
    *size = at;
    return at < needed ? VK_INCOMPLETE : VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkMergePipelineCaches(VkDevice, VkPipelineCache target, uint32_t count,
                                                     const VkPipelineCache* sources) {
    KP_FAILABLE("vkMergePipelineCaches");
    PipelineCache& into = *from<PipelineCache>(target);
    for (uint32_t i = 0; i < count; ++i) {
        PipelineCache& source = *from<PipelineCache>(sources[i]);
        if (&source == &into) continue;
        std::scoped_lock lock(into.mutex, source.mutex);
        into.hashes.insert(source.hashes.begin(), source.hashes.end());
    }
    return VK_SUCCESS;
}

}  // namespace kpnull
