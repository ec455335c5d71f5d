#include "record/descriptor_writes.hpp"

#include "adapter/context.hpp"

namespace kp {
namespace {

bool is_buffer(VkDescriptorType type) noexcept {
    return type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER || type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
}

bool is_texels(VkDescriptorType type) noexcept {
    return type == VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER || type == VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER;
}

}  // namespace

void DescriptorWrites::add(const DescriptorPlace& place, const VkDescriptorBufferInfo& buffer) {
    buffers_.push_back(buffer);
    add(place);
}

void DescriptorWrites::add(const DescriptorPlace& place, const VkDescriptorImageInfo& image) {
    images_.push_back(image);
    add(place);
}

void DescriptorWrites::add(const DescriptorPlace& place, VkBufferView texels) {
    texels_.push_back(texels);
    add(place);
}

void DescriptorWrites::add(const DescriptorPlace& place) {
    if (!writes_.empty()) {
        VkWriteDescriptorSet& last = writes_.back();
        if (last.dstSet == place.set && last.dstBinding == place.binding &&
            last.dstArrayElement + last.descriptorCount == place.element) {
            ++last.descriptorCount;
            return;
        }
    }
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = place.set;
    write.dstBinding = place.binding;
    write.dstArrayElement = place.element;
    write.descriptorCount = 1;
    write.descriptorType = place.type;
    writes_.push_back(write);
}

void DescriptorWrites::send(const DeviceContext& context) {
    if (writes_.empty()) return;
    const VkDescriptorBufferInfo* buffer = buffers_.data();
    const VkDescriptorImageInfo* image = images_.data();
    const VkBufferView* texels = texels_.data();
    for (VkWriteDescriptorSet& write : writes_) {
        if (is_buffer(write.descriptorType)) {
            write.pBufferInfo = buffer;
            buffer += write.descriptorCount;
        } else if (is_texels(write.descriptorType)) {
            write.pTexelBufferView = texels;
            texels += write.descriptorCount;
        } else {
            write.pImageInfo = image;
            image += write.descriptorCount;
        }
    }
    context.vk().vkUpdateDescriptorSets(context.handle(), static_cast<uint32_t>(writes_.size()),
                                        writes_.data(), 0, nullptr);
}

}  // namespace kp
