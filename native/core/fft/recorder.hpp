// The Vulkan and the glslang that VkFFT sees: they only note its calls, from which plan_fft makes a plan.
//
// VkFFT is written for a program that hands it a device. Its calls go to the functions below instead, under
// Vulkan's and glslang's names, so its kernels are compiled, cached, bound, ordered and run as all others
// are. Only make_plan.cpp includes this, before VkFFT: with VK_NO_PROTOTYPES, Vulkan's headers declare no
// functions.
#pragma once

#include "fft/plan.hpp"

#include <vulkan/vulkan.h>

#include <glslang/Include/glslang_c_interface.h>  // of fft/stand_in

#include <algorithm>
#include <clocale>
#include <cstring>
#include <deque>
#include <map>

namespace kp::fft {

struct Buffer {
    uint64_t bytes = 0;
    std::vector<std::byte> contents;
    uint32_t number = 0;     // in the plan
    bool is_listed = false;  // the plan has it
};
struct Memory {
    Buffer* buffer = nullptr;
};
struct DescriptorSet {
    std::map<uint32_t, Buffer*> bindings;
};

class Recorder {
public:
    explicit Recorder(const FftDevice& device) : device(device) {}

    template <class Handle, class Object>
    static Handle handle(Object* object) {
        return (Handle)(uintptr_t)object;
    }
    template <class Object, class Handle>
    static Object* object(Handle handle) {
        return (Object*)(uintptr_t)handle;
    }
    static VkResult make(auto* handle, uint64_t value) {
        *handle = (std::remove_pointer_t<decltype(handle)>)(uintptr_t)value;
        return VK_SUCCESS;
    }

    uint32_t program(const char* source) {
        const auto found = std::find(plan.programs.begin(), plan.programs.end(), source);
        if (found == plan.programs.end()) plan.programs.emplace_back(source);
        return static_cast<uint32_t>(std::find(plan.programs.begin(), plan.programs.end(), source) -
                                     plan.programs.begin());
    }
    uint32_t listed(Buffer& buffer) {
        if (!buffer.is_listed) {
            buffer.number = static_cast<uint32_t>(plan.buffers.size());
            buffer.is_listed = true;
            plan.buffers.push_back({buffer.bytes, buffer.contents});
        }
        return buffer.number;
    }
    void dispatch(std::array<uint32_t, 3> groups) {
        FftPlan::Dispatch made{pipeline, {}, groups};
        for (const auto& [binding, buffer] : set->bindings) {
            if (binding != made.buffers.size()) is_unknown = true;
            made.buffers.push_back(listed(*buffer));
        }
        if (!is_running) is_unknown = true;
        plan.run.push_back(std::move(made));
    }

    FftDevice device;
    FftPlan plan;
    std::deque<Buffer> buffers;
    std::deque<Memory> memories;
    std::deque<DescriptorSet> sets;
    uint32_t source = 0;    // of the shader that is being compiled
    uint32_t code[4] = {};  // in the place of its SPIR-V
    uint32_t pipeline = 0;  // bound
    DescriptorSet* set = nullptr;
    bool is_running = false;  // after the preparation
    bool is_unknown = false;  // something that plans do not have
};

inline thread_local Recorder* recorder = nullptr;

}  // namespace kp::fft

namespace {

using kp::fft::recorder;

inline int glslang_initialize_process() { return 1; }
inline void glslang_finalize_process() {}
inline glslang_shader_t* glslang_shader_create(const glslang_input_t* input) {
    kp::fft::recorder->source = kp::fft::recorder->program(input->code);
    return (glslang_shader_t*)kp::fft::recorder;
}
inline void glslang_shader_delete(glslang_shader_t*) {}
inline int glslang_shader_preprocess(glslang_shader_t*, const glslang_input_t*) { return 1; }
inline int glslang_shader_parse(glslang_shader_t*, const glslang_input_t*) { return 1; }
inline const char* glslang_shader_get_info_log(glslang_shader_t*) { return ""; }
inline glslang_program_t* glslang_program_create() { return (glslang_program_t*)kp::fft::recorder; }
inline void glslang_program_delete(glslang_program_t*) {}
inline void glslang_program_add_shader(glslang_program_t*, glslang_shader_t*) {}
inline int glslang_program_link(glslang_program_t*, int) { return 1; }
inline const char* glslang_program_get_info_log(glslang_program_t*) { return ""; }
inline void glslang_program_SPIRV_generate(glslang_program_t*, int) {}
inline size_t glslang_program_SPIRV_get_size(glslang_program_t*) { return 4; }
inline unsigned int* glslang_program_SPIRV_get_ptr(glslang_program_t*) {
    kp::fft::recorder->code[0] = kp::fft::recorder->source;
    return kp::fft::recorder->code;
}
inline const char* glslang_program_SPIRV_get_messages(glslang_program_t*) { return nullptr; }

inline void vkGetPhysicalDeviceProperties(VkPhysicalDevice, VkPhysicalDeviceProperties* properties) {
    const kp::FftDevice& device = recorder->device;
    *properties = {};
    properties->apiVersion = VK_API_VERSION_1_2;
    properties->vendorID = device.vendor;
    VkPhysicalDeviceLimits& limits = properties->limits;
    limits.maxComputeSharedMemorySize = device.shared_bytes;
    limits.maxComputeWorkGroupInvocations = device.invocations;
    std::copy(device.group_size.begin(), device.group_size.end(), limits.maxComputeWorkGroupSize);
    std::fill_n(limits.maxComputeWorkGroupCount, 3, 0x7fffffffu);
}
inline void vkGetPhysicalDeviceMemoryProperties(VkPhysicalDevice, VkPhysicalDeviceMemoryProperties* found) {
    *found = {};
    found->memoryTypeCount = found->memoryHeapCount = 1;
    found->memoryTypes[0].propertyFlags = ~0u;
    found->memoryHeaps[0].size = ~0ull;
}

inline VkResult vkCreateBuffer(VkDevice, const VkBufferCreateInfo* info, const VkAllocationCallbacks*,
                               VkBuffer* made) {
    *made = kp::fft::Recorder::handle<VkBuffer>(&recorder->buffers.emplace_back());
    recorder->buffers.back().bytes = info->size;
    return VK_SUCCESS;
}
inline void vkDestroyBuffer(VkDevice, VkBuffer, const VkAllocationCallbacks*) {}
inline void vkGetBufferMemoryRequirements(VkDevice, VkBuffer buffer, VkMemoryRequirements* needs) {
    *needs = {recorder->object<kp::fft::Buffer>(buffer)->bytes, 4, 1};
}
inline VkResult vkAllocateMemory(VkDevice, const VkMemoryAllocateInfo*, const VkAllocationCallbacks*,
                                 VkDeviceMemory* made) {
    *made = kp::fft::Recorder::handle<VkDeviceMemory>(&recorder->memories.emplace_back());
    return VK_SUCCESS;
}
inline void vkFreeMemory(VkDevice, VkDeviceMemory, const VkAllocationCallbacks*) {}
inline VkResult vkBindBufferMemory(VkDevice, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize) {
    recorder->object<kp::fft::Memory>(memory)->buffer = recorder->object<kp::fft::Buffer>(buffer);
    return VK_SUCCESS;
}
inline VkResult vkMapMemory(VkDevice, VkDeviceMemory memory, VkDeviceSize, VkDeviceSize, VkMemoryMapFlags,
                            void** data) {
    kp::fft::Buffer& buffer = *recorder->object<kp::fft::Memory>(memory)->buffer;
    buffer.contents.resize(buffer.bytes);
    *data = buffer.contents.data();
    return VK_SUCCESS;
}
inline void vkUnmapMemory(VkDevice, VkDeviceMemory) {}
inline void vkCmdCopyBuffer(VkCommandBuffer, VkBuffer from, VkBuffer to, uint32_t count,
                            const VkBufferCopy* regions) {
    const kp::fft::Buffer& source = *recorder->object<kp::fft::Buffer>(from);
    kp::fft::Buffer& target = *recorder->object<kp::fft::Buffer>(to);
    const VkBufferCopy& region = *regions;
    if (count != 1 || region.srcOffset + region.size > source.contents.size() ||
        region.dstOffset + region.size > target.bytes) {
        recorder->is_unknown = true;
        return;
    }
    target.contents.resize(target.bytes);
    std::memcpy(target.contents.data() + region.dstOffset, source.contents.data() + region.srcOffset,
                region.size);
    target.is_listed = false;  // dispatches that are noted keep the contents from before
}

inline VkResult vkCreateShaderModule(VkDevice, const VkShaderModuleCreateInfo* info,
                                     const VkAllocationCallbacks*, VkShaderModule* made) {
    return kp::fft::Recorder::make(made, info->pCode[0] + 1);
}
inline void vkDestroyShaderModule(VkDevice, VkShaderModule, const VkAllocationCallbacks*) {}
inline VkResult vkCreateComputePipelines(VkDevice, VkPipelineCache, uint32_t count,
                                         const VkComputePipelineCreateInfo* infos,
                                         const VkAllocationCallbacks*, VkPipeline* made) {
    for (uint32_t i = 0; i < count; ++i)
        kp::fft::Recorder::make(made + i, (uint64_t)(uintptr_t)infos[i].stage.module);
    return VK_SUCCESS;
}
inline void vkDestroyPipeline(VkDevice, VkPipeline, const VkAllocationCallbacks*) {}
inline VkResult vkCreatePipelineLayout(VkDevice, const VkPipelineLayoutCreateInfo*,
                                       const VkAllocationCallbacks*, VkPipelineLayout* made) {
    return kp::fft::Recorder::make(made, 1);
}
inline void vkDestroyPipelineLayout(VkDevice, VkPipelineLayout, const VkAllocationCallbacks*) {}
inline VkResult vkCreateDescriptorSetLayout(VkDevice, const VkDescriptorSetLayoutCreateInfo*,
                                            const VkAllocationCallbacks*, VkDescriptorSetLayout* made) {
    return kp::fft::Recorder::make(made, 1);
}
inline void vkDestroyDescriptorSetLayout(VkDevice, VkDescriptorSetLayout, const VkAllocationCallbacks*) {}
inline VkResult vkCreateDescriptorPool(VkDevice, const VkDescriptorPoolCreateInfo*,
                                       const VkAllocationCallbacks*, VkDescriptorPool* made) {
    return kp::fft::Recorder::make(made, 1);
}
inline void vkDestroyDescriptorPool(VkDevice, VkDescriptorPool, const VkAllocationCallbacks*) {}
inline VkResult vkAllocateDescriptorSets(VkDevice, const VkDescriptorSetAllocateInfo* info,
                                         VkDescriptorSet* made) {
    for (uint32_t i = 0; i < info->descriptorSetCount; ++i)
        made[i] = kp::fft::Recorder::handle<VkDescriptorSet>(&recorder->sets.emplace_back());
    return VK_SUCCESS;
}
inline void vkUpdateDescriptorSets(VkDevice, uint32_t count, const VkWriteDescriptorSet* writes, uint32_t,
                                   const VkCopyDescriptorSet*) {
    for (uint32_t i = 0; i < count; ++i) {
        const VkWriteDescriptorSet& write = writes[i];
        // Each buffer is one block from its beginning: VkFFT is not told to split them.
        if (write.descriptorCount != 1 || write.dstArrayElement != 0 || write.pBufferInfo->offset != 0)
            recorder->is_unknown = true;
        recorder->object<kp::fft::DescriptorSet>(write.dstSet)->bindings[write.dstBinding] =
            recorder->object<kp::fft::Buffer>(write.pBufferInfo->buffer);
    }
}

inline VkResult vkAllocateCommandBuffers(VkDevice, const VkCommandBufferAllocateInfo* info,
                                         VkCommandBuffer* made) {
    for (uint32_t i = 0; i < info->commandBufferCount; ++i) kp::fft::Recorder::make(made + i, 1);
    return VK_SUCCESS;
}
inline void vkFreeCommandBuffers(VkDevice, VkCommandPool, uint32_t, const VkCommandBuffer*) {}
inline VkResult vkBeginCommandBuffer(VkCommandBuffer, const VkCommandBufferBeginInfo*) { return VK_SUCCESS; }
inline VkResult vkEndCommandBuffer(VkCommandBuffer) { return VK_SUCCESS; }
inline VkResult vkQueueSubmit(VkQueue, uint32_t, const VkSubmitInfo*, VkFence) { return VK_SUCCESS; }
inline VkResult vkWaitForFences(VkDevice, uint32_t, const VkFence*, VkBool32, uint64_t) { return VK_SUCCESS; }
inline VkResult vkResetFences(VkDevice, uint32_t, const VkFence*) { return VK_SUCCESS; }
inline void vkCmdPipelineBarrier(VkCommandBuffer, VkPipelineStageFlags, VkPipelineStageFlags,
                                 VkDependencyFlags, uint32_t, const VkMemoryBarrier*, uint32_t,
                                 const VkBufferMemoryBarrier*, uint32_t, const VkImageMemoryBarrier*) {}
inline void vkCmdBindPipeline(VkCommandBuffer, VkPipelineBindPoint, VkPipeline pipeline) {
    recorder->pipeline = static_cast<uint32_t>((uint64_t)(uintptr_t)pipeline - 1);
}
inline void vkCmdBindDescriptorSets(VkCommandBuffer, VkPipelineBindPoint, VkPipelineLayout, uint32_t,
                                    uint32_t, const VkDescriptorSet* sets, uint32_t, const uint32_t*) {
    recorder->set = recorder->object<kp::fft::DescriptorSet>(*sets);
}
inline void vkCmdPushConstants(VkCommandBuffer, VkPipelineLayout, VkShaderStageFlags, uint32_t, uint32_t,
                               const void*) {
    recorder->is_unknown = true;  // only for grids that are split, and offsets
}
inline void vkCmdDispatch(VkCommandBuffer, uint32_t x, uint32_t y, uint32_t z) {
    recorder->dispatch({x, y, z});
}

}  // namespace
