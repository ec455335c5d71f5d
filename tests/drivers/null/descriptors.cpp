// Descriptor set layouts, pools with real limits, sets, updates.
#include "entry_points.hpp"

#include <algorithm>

namespace kpnull {
namespace {

Descriptor from_buffer(VkDescriptorType type, const VkDescriptorBufferInfo& info) {
    auto* buffer = from<Buffer>(info.buffer);
    const VkDeviceSize range = info.range == VK_WHOLE_SIZE && buffer
                                   ? buffer->size - std::min(buffer->size, info.offset)
                                   : info.range;
    if (buffer && (info.offset >= buffer->size || range > buffer->size - info.offset))
        violation("a descriptor names %llu bytes at %llu of VkBuffer (%s) with %llu",
                  (unsigned long long)range, (unsigned long long)info.offset, label(buffer),
                  (unsigned long long)buffer->size);
    if (buffer && type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER) {
        const VkPhysicalDeviceLimits& limits =
            static_cast<Device*>(buffer->parent)->physical->properties.limits;
        if (range > limits.maxStorageBufferRange)
            violation("a descriptor's range %llu exceeds maxStorageBufferRange %u", (unsigned long long)range,
                      limits.maxStorageBufferRange);
        if (info.offset % limits.minStorageBufferOffsetAlignment)
            violation("a descriptor's offset %llu is not a multiple of minStorageBufferOffsetAlignment %llu",
                      (unsigned long long)info.offset,
                      (unsigned long long)limits.minStorageBufferOffsetAlignment);
    }
    if (buffer && type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER) {
        const VkPhysicalDeviceLimits& limits =
            static_cast<Device*>(buffer->parent)->physical->properties.limits;
        if (range > limits.maxUniformBufferRange)
            violation("a descriptor's range %llu exceeds maxUniformBufferRange %u", (unsigned long long)range,
                      limits.maxUniformBufferRange);
        if (info.offset % limits.minUniformBufferOffsetAlignment)
            violation("a descriptor's offset %llu is not a multiple of minUniformBufferOffsetAlignment %llu",
                      (unsigned long long)info.offset,
                      (unsigned long long)limits.minUniformBufferOffsetAlignment);
    }
    return {type, buffer, info.offset, range};
}
Descriptor from_image(VkDescriptorType type, const VkDescriptorImageInfo& info) {
    if (type == VK_DESCRIPTOR_TYPE_SAMPLER) return {type, from<Sampler>(info.sampler), 0, 0};
    return {type, from<ImageView>(info.imageView), 0, 0};
}

// Where descriptor `element` of `binding` lies; elements past the end of a binding continue in the next one.
Descriptor* slot(DescriptorSet& set, uint32_t binding, uint32_t element) {
    for (const auto& b : set.bindings) {
        if (b.binding != binding) continue;
        const size_t index = size_t(b.first) + element;
        if (index < set.descriptors.size()) return &set.descriptors[index];
        break;
    }
    violation("descriptor update of binding %u element %u, which VkDescriptorSet (%s) does not have", binding,
              element, label(&set));
    return nullptr;
}

void release_set(DescriptorSet* set) {
    DescriptorPool& pool = *set->pool;
    --pool.used_sets;
    for (const auto& b : set->bindings) pool.capacity[b.type].second -= b.count;
    pool.sets.erase(set);
    retire(set);
}
void release_all(DescriptorPool& pool) {
    while (!pool.sets.empty()) release_set(*pool.sets.begin());
}

}  // namespace

void write_descriptors(DescriptorSet& set, const VkWriteDescriptorSet& write) {
    for (uint32_t i = 0; i < write.descriptorCount; ++i) {
        Descriptor* d = slot(set, write.dstBinding, write.dstArrayElement + i);
        if (!d) return;
        switch (write.descriptorType) {
        case VK_DESCRIPTOR_TYPE_SAMPLER:
        case VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER:
        case VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE:
        case VK_DESCRIPTOR_TYPE_STORAGE_IMAGE:
            *d = from_image(write.descriptorType, write.pImageInfo[i]);
            break;
        case VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER:
        case VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER:
            *d = {write.descriptorType, from<BufferView>(write.pTexelBufferView[i]), 0, 0};
            break;
        default: *d = from_buffer(write.descriptorType, write.pBufferInfo[i]);
        }
    }
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreateDescriptorSetLayout(VkDevice device,
                                                           const VkDescriptorSetLayoutCreateInfo* info,
                                                           const VkAllocationCallbacks*,
                                                           VkDescriptorSetLayout* out) {
    KP_FAILABLE("vkCreateDescriptorSetLayout");
    const auto* flags = find_in_chain<VkDescriptorSetLayoutBindingFlagsCreateInfo>(
        info->pNext, VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO);
    auto* layout = create<DescriptorSetLayout>(from<Device>(device));
    layout->flags = info->flags;
    for (uint32_t i = 0; i < info->bindingCount; ++i) {
        const VkDescriptorSetLayoutBinding& b = info->pBindings[i];
        layout->bindings.push_back({b.binding, b.descriptorCount, 0, b.descriptorType,
                                    flags && flags->bindingCount > i ? flags->pBindingFlags[i] : 0});
    }
    std::sort(layout->bindings.begin(), layout->bindings.end(),
              [](auto& a, auto& b) { return a.binding < b.binding; });
    for (auto& b : layout->bindings) {
        b.first = layout->total;
        layout->total += b.count;
    }
    *out = to(layout);
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyDescriptorSetLayout(VkDevice, VkDescriptorSetLayout layout,
                                                        const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyDescriptorSetLayout");
    destroy<DescriptorSetLayout>(layout);
}
VKAPI_ATTR void VKAPI_CALL vkGetDescriptorSetLayoutSupport(VkDevice device,
                                                           const VkDescriptorSetLayoutCreateInfo* info,
                                                           VkDescriptorSetLayoutSupport* out) {
    KP_COUNTED("vkGetDescriptorSetLayoutSupport");
    uint64_t total = 0;
    for (uint32_t i = 0; i < info->bindingCount; ++i) total += info->pBindings[i].descriptorCount;
    // Drivers take more than they promise, as far as memory goes.
    const uint64_t promised = from<Device>(device)->physical->instance->config.max_set_descriptors;
    out->supported = total <= std::min<uint64_t>(1u << 20, 4 * promised);
    if (auto* variable = find_in_chain<VkDescriptorSetVariableDescriptorCountLayoutSupport>(
            out->pNext, VK_STRUCTURE_TYPE_DESCRIPTOR_SET_VARIABLE_DESCRIPTOR_COUNT_LAYOUT_SUPPORT))
        variable->maxVariableDescriptorCount = 1u << 20;
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreateDescriptorPool(VkDevice device, const VkDescriptorPoolCreateInfo* info,
                                                      const VkAllocationCallbacks*, VkDescriptorPool* out) {
    KP_FAILABLE("vkCreateDescriptorPool");
    auto* pool = create<DescriptorPool>(from<Device>(device));
    pool->flags = info->flags;
    pool->max_sets = info->maxSets;
    for (uint32_t i = 0; i < info->poolSizeCount; ++i)
        pool->capacity[info->pPoolSizes[i].type].first += info->pPoolSizes[i].descriptorCount;
    *out = to(pool);
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyDescriptorPool(VkDevice, VkDescriptorPool handle,
                                                   const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyDescriptorPool");
    if (!handle) return;
    release_all(*from<DescriptorPool>(handle));
    retire(from<DescriptorPool>(handle));
}

VKAPI_ATTR VkResult VKAPI_CALL vkAllocateDescriptorSets(VkDevice device,
                                                        const VkDescriptorSetAllocateInfo* info,
                                                        VkDescriptorSet* out) {
    KP_FAILABLE("vkAllocateDescriptorSets");
    DescriptorPool& pool = *from<DescriptorPool>(info->descriptorPool);
    const auto* variable = find_in_chain<VkDescriptorSetVariableDescriptorCountAllocateInfo>(
        info->pNext, VK_STRUCTURE_TYPE_DESCRIPTOR_SET_VARIABLE_DESCRIPTOR_COUNT_ALLOCATE_INFO);
    for (uint32_t i = 0; i < info->descriptorSetCount; ++i) {
        const DescriptorSetLayout& layout = *from<DescriptorSetLayout>(info->pSetLayouts[i]);
        auto bindings = layout.bindings;
        uint32_t total = layout.total;
        if (!bindings.empty() &&
            (bindings.back().flags & VK_DESCRIPTOR_BINDING_VARIABLE_DESCRIPTOR_COUNT_BIT)) {
            total -= bindings.back().count;
            bindings.back().count =
                variable && i < variable->descriptorSetCount ? variable->pDescriptorCounts[i] : 0;
            total += bindings.back().count;
        }
        std::map<VkDescriptorType, uint32_t> wanted;
        for (const auto& b : bindings) wanted[b.type] += b.count;
        bool fits = pool.used_sets < pool.max_sets;
        for (const auto& [type, count] : wanted) {
            const auto found = pool.capacity.find(type);
            if (count && (found == pool.capacity.end() || found->second.first - found->second.second < count))
                fits = false;
        }
        if (!fits) {
            for (uint32_t k = 0; k < i; ++k) release_set(from<DescriptorSet>(out[k]));
            for (uint32_t k = 0; k < info->descriptorSetCount; ++k) out[k] = VK_NULL_HANDLE;
            return VK_ERROR_OUT_OF_POOL_MEMORY;
        }
        for (const auto& [type, count] : wanted) pool.capacity[type].second += count;
        ++pool.used_sets;
        auto* set = create<DescriptorSet>(from<Device>(device));
        set->pool = &pool;
        set->bindings = std::move(bindings);
        set->descriptors.resize(total);
        pool.sets.insert(set);
        out[i] = to(set);
    }
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkFreeDescriptorSets(VkDevice, VkDescriptorPool handle, uint32_t count,
                                                    const VkDescriptorSet* sets) {
    KP_FAILABLE("vkFreeDescriptorSets");
    const DescriptorPool& pool = *from<DescriptorPool>(handle);
    if (!(pool.flags & VK_DESCRIPTOR_POOL_CREATE_FREE_DESCRIPTOR_SET_BIT))
        violation("vkFreeDescriptorSets: VkDescriptorPool (%s) lacks FREE_DESCRIPTOR_SET", label(&pool));
    for (uint32_t i = 0; i < count; ++i)
        if (sets[i]) release_set(from<DescriptorSet>(sets[i]));
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkUpdateDescriptorSets(VkDevice, uint32_t write_count,
                                                  const VkWriteDescriptorSet* writes, uint32_t copy_count,
                                                  const VkCopyDescriptorSet*) {
    KP_COUNTED("vkUpdateDescriptorSets");
    const auto check = [](const DescriptorSet& set, uint32_t binding) {
        if (!set.pending) return;
        for (const auto& b : set.bindings)
            if (b.binding == binding && (b.flags & (VK_DESCRIPTOR_BINDING_UPDATE_AFTER_BIND_BIT |
                                                    VK_DESCRIPTOR_BINDING_UPDATE_UNUSED_WHILE_PENDING_BIT)))
                return;
        violation("VkDescriptorSet (%s) is updated while a pending submission uses it", label(&set));
    };
    for (uint32_t i = 0; i < write_count; ++i) {
        DescriptorSet& set = *from<DescriptorSet>(writes[i].dstSet);
        check(set, writes[i].dstBinding);
        write_descriptors(set, writes[i]);
    }
    if (copy_count) violation("vkUpdateDescriptorSets: the null driver copies no descriptors");
}

}  // namespace kpnull
