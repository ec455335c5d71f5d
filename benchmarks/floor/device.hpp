// An instance, a device and one compute queue with a timeline: what a careful C program opens before its
// first submit.
#pragma once

#include "loader.hpp"

#include <cstdint>

namespace benchmark_floor {

class Device {
public:
    Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    ~Device();

    [[nodiscard]] const Functions& vk() const noexcept { return vk_; }
    [[nodiscard]] VkDevice handle() const noexcept { return device_; }
    [[nodiscard]] VkQueue queue() const noexcept { return queue_; }
    [[nodiscard]] uint32_t family() const noexcept { return family_; }

    // The first memory type of `allowed` with all of `required`, one that has `preferred` too where there is
    // such.
    [[nodiscard]] uint32_t memory_type(uint32_t allowed, VkMemoryPropertyFlags required,
                                       VkMemoryPropertyFlags preferred) const;

private:
    void create_instance();
    void choose_physical_device();
    void create_device();

    Functions vk_;
    VkInstance instance_ = VK_NULL_HANDLE;
    VkPhysicalDevice physical_ = VK_NULL_HANDLE;
    VkDevice device_ = VK_NULL_HANDLE;
    VkQueue queue_ = VK_NULL_HANDLE;
    uint32_t family_ = 0;
};

// A buffer with memory of its own.
class Buffer {
public:
    Buffer(const Device& device, uint64_t size, VkMemoryPropertyFlags required,
           VkMemoryPropertyFlags preferred);
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer();

    [[nodiscard]] VkBuffer handle() const noexcept { return buffer_; }
    [[nodiscard]] uint64_t size() const noexcept { return size_; }
    // Maps the memory; it stays mapped.
    [[nodiscard]] void* map();

private:
    const Device& device_;
    uint64_t size_;
    VkBuffer buffer_ = VK_NULL_HANDLE;
    VkDeviceMemory memory_ = VK_NULL_HANDLE;
};

}  // namespace benchmark_floor
