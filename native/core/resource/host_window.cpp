#include "resource/host_window.hpp"

#include "base/error.hpp"
#include "device/device.hpp"
#include "resource/host_import.hpp"

namespace kp {
namespace {

// A smaller transfer takes less time than an import.
constexpr uint64_t least = uint64_t{1} << 20;
// No system has smaller pages, so the rest of an array's last page exists.
constexpr uint64_t page = 4096;

}  // namespace

std::unique_ptr<HostWindow> HostWindow::open(Device& device, void* data, uint64_t nbytes, uint64_t unit,
                                             bool writable) {
    const PhysicalDevice& physical = device.physical();
    const uint64_t alignment = physical.host_import_alignment;
    const uint64_t before = alignment ? reinterpret_cast<uintptr_t>(data) % alignment : 0;
    if (physical.properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU || nbytes < least || alignment == 0 ||
        alignment > page || before % unit != 0 || before % 4 != 0)
        return nullptr;
    HostRange range;
    range.data = static_cast<std::byte*>(data) - before;
    range.nbytes = (before + nbytes + alignment - 1) / alignment * alignment;
    range.padded = range.nbytes;
    range.read_only = !writable;
    if (range.nbytes > physical.max_buffer_size) return nullptr;

    std::unique_ptr<HostWindow> made(new HostWindow(device));
    made->offset_ = before;
    auto& vk = device.vk();
    VkExternalMemoryBufferCreateInfo external{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO};
    external.handleTypes = host_import_handle;
    VkBufferCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    create.pNext = &external;
    create.size = range.nbytes;
    // The usage of tensors over imported memory, for which the device was asked.
    create.usage = buffer_usage;
    if (device.buffer_addresses()) create.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    device.share(create);
    try {
        check_host_import(device, range);
        check_vk(vk.vkCreateBuffer(device.handle(), &create, nullptr, &made->buffer_), "vkCreateBuffer",
                 "memory of an array");
        VkMemoryRequirements needs{};
        vk.vkGetBufferMemoryRequirements(device.handle(), made->buffer_, &needs);
        made->memory_ =
            import_host(device, range.data, check_needs(device, range, needs), needs.memoryTypeBits);
        check_vk(vk.vkBindBufferMemory(device.handle(), made->buffer_, made->memory_.memory(),
                                       made->memory_.offset()),
                 "vkBindBufferMemory", "memory of an array");
    } catch (const Error&) {
        return nullptr;  // the transfer goes through the ring
    }
    return made;
}

HostWindow::~HostWindow() {
    if (buffer_ != VK_NULL_HANDLE) device_.vk().vkDestroyBuffer(device_.handle(), buffer_, nullptr);
}

}  // namespace kp
