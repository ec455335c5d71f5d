// Collects the descriptors of an algorithm and hands them to the driver in one call.
//
// Neighbouring elements of one array become one write. Drivers, and the validation layer more so, do work
// for each call and each write that grows with the set, so an array written element by element takes a time
// that is quadratic in its length.
#pragma once

#include "base/vulkan.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kp {

class DeviceContext;

// The place of one descriptor.
struct DescriptorPlace {
    VkDescriptorSet set = VK_NULL_HANDLE;
    uint32_t binding = 0;
    uint32_t element = 0;
    VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
};

class DescriptorWrites {
public:
    DescriptorWrites() {
        writes_.reserve(usual);
        buffers_.reserve(usual);
    }

    void add(const DescriptorPlace& place, const VkDescriptorBufferInfo& buffer);
    void add(const DescriptorPlace& place, const VkDescriptorImageInfo& image);
    void add(const DescriptorPlace& place, VkBufferView texels);
    // Call it once, while all handles are alive.
    void send(const DeviceContext& context);

private:
    static constexpr size_t usual = 8;

    void add(const DescriptorPlace& place);

    std::vector<VkWriteDescriptorSet> writes_;  // their pointers are set by send()
    std::vector<VkDescriptorBufferInfo> buffers_;
    std::vector<VkDescriptorImageInfo> images_;
    std::vector<VkBufferView> texels_;
};

}  // namespace kp
