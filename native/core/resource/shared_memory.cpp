#include "resource/shared_memory.hpp"

#include "base/error.hpp"
#include "device/device.hpp"

#include <cerrno>
#include <cstring>
#ifndef _WIN32
#include <fcntl.h>
#include <unistd.h>
#endif

namespace kp {
namespace {

VkExternalMemoryFeatureFlags features_of(const Device& device) {
    VkPhysicalDeviceExternalBufferInfo asked{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO};
    asked.usage = buffer_usage;
    asked.handleType = shared_handle;
    VkExternalBufferProperties found{VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
    vkGetPhysicalDeviceExternalBufferProperties(device.physical().handle, &asked, &found);
    return found.externalMemoryProperties.externalMemoryFeatures;
}

bool serves(VkMemoryPropertyFlags flags, MemoryUse use) noexcept {
    return use == MemoryUse::device || (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT);
}

// The type of new memory.
uint32_t best_type(const Device& device, uint32_t type_bits, MemoryUse use) {
    for (const uint32_t type : rank_memory_types(device.physical().memory, use))
        if (type_bits & (1u << type)) return type;
    throw Error(ErrorKind::unimplemented, std::string("'") + device.physical().properties.deviceName +
                                              "' has no memory of this type that can be shared: use "
                                              "memory_type=\"storage\"");
}

void check_fit(const Device& device, const SharedMemory& shared, const VkMemoryRequirements& needs,
               MemoryUse use) {
    const auto& memory = device.physical().memory;
    if (shared.type >= memory.memoryTypeCount || !(needs.memoryTypeBits & (1u << shared.type)))
        throw Error(ErrorKind::invalid_argument,
                    "The memory has Vulkan's type " + std::to_string(shared.type) + ", which buffers of '" +
                        device.physical().properties.deviceName + "' cannot have: it is of another device");
    if (needs.size > shared.size)
        throw Error(ErrorKind::invalid_argument, "The memory has " + std::to_string(shared.size) +
                                                     " bytes, but the tensor needs " +
                                                     std::to_string(needs.size));
    if (!serves(memory.memoryTypes[shared.type].propertyFlags, use))
        throw Error(ErrorKind::invalid_argument,
                    "The host cannot address this memory: import it with memory_type=\"storage\"");
}

}  // namespace

bool shares_memory(const Device& device, bool importing) {
    const VkExternalMemoryFeatureFlags needed =
        importing ? VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT : VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT;
    return device.vk().vkGetMemoryFdKHR && (features_of(device) & needed);
}

void check_sharing(const Device& device, bool importing) {
    if (shares_memory(device, importing)) return;
    throw Error(ErrorKind::unimplemented,
                std::string("'") + device.physical().properties.deviceName + "' does not " +
                    (importing ? "import" : "export") +
                    " memory as file descriptors (VK_KHR_external_memory_fd): copy the contents, with "
                    "t.read() and t.write()");
}

Allocation share_memory(Device& device, SharedMemory& shared, VkBuffer buffer,
                        const VkMemoryRequirements& needs, MemoryUse use) {
    constexpr auto what = "a shared tensor";
    const bool importing = shared.fd.is_open();
    if (importing) check_fit(device, shared, needs, use);
    const uint32_t type = importing ? shared.type : best_type(device, needs.memoryTypeBits, use);
    const uint64_t size = importing ? shared.size : needs.size;
    device.memory().require_allocation(size, what, !importing);

    VkMemoryDedicatedAllocateInfo dedicated{VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO};
    dedicated.buffer = buffer;
    VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO};
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkImportMemoryFdInfoKHR import{VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR};
    import.handleType = shared_handle;
    Descriptor given = importing ? shared.fd.copy() : Descriptor();  // Vulkan's, if it takes it
    import.fd = given.get();
    VkExportMemoryAllocateInfo exported{VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO};
    exported.handleTypes = shared_handle;

    VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
    allocate.allocationSize = size;
    allocate.memoryTypeIndex = type;
    const auto chain = [&](auto& next) {
        next.pNext = allocate.pNext;
        allocate.pNext = &next;
    };
    if (features_of(device) & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT) chain(dedicated);
    if (device.buffer_addresses()) chain(flags);
    // Never both: NVIDIA's driver (580) makes new memory then, and imports nothing.
    if (importing)
        chain(import);
    else
        chain(exported);

    VkDeviceMemory memory = VK_NULL_HANDLE;
    const VkResult result = device.vk().vkAllocateMemory(device.handle(), &allocate, nullptr, &memory);
    if (importing && result == VK_ERROR_INVALID_EXTERNAL_HANDLE)
        throw Error(ErrorKind::invalid_argument,
                    "The driver does not know this file descriptor as memory of its own: it must come from "
                    "the same driver and device, and be open",
                    result);
    check_vk(result, "vkAllocateMemory", what);
    given.release();
    try {
        void* address = nullptr;
        if (device.physical().memory.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)
            check_vk(device.vk().vkMapMemory(device.handle(), memory, 0, VK_WHOLE_SIZE, 0, &address),
                     "vkMapMemory", what);
        return device.memory().adopt(memory, type, size, static_cast<std::byte*>(address), !importing);
    } catch (...) {
        device.vk().vkFreeMemory(device.handle(), memory, nullptr);
        throw;
    }
}

Descriptor::~Descriptor() {
#ifndef _WIN32
    if (fd_ >= 0) close(fd_);
#endif
}

Descriptor Descriptor::copy() const {
#ifdef _WIN32
    return Descriptor();  // no Manager has one there
#else
    const int fd = fcntl(fd_, F_DUPFD_CLOEXEC, 0);
    if (fd < 0 && errno == EBADF)
        throw Error(ErrorKind::invalid_argument,
                    "The file descriptor " + std::to_string(fd_) + " is not open");
    if (fd < 0)
        throw Error(ErrorKind::out_of_memory, "This process cannot open another file descriptor (" +
                                                  std::string(std::strerror(errno)) + "): `ulimit -n`");
    return Descriptor(fd);
#endif
}

Descriptor descriptor_of(Device& device, VkDeviceMemory memory) {
    VkMemoryGetFdInfoKHR info{VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR};
    info.memory = memory;
    info.handleType = shared_handle;
    int fd = -1;
    check_vk(device.vk().vkGetMemoryFdKHR(device.handle(), &info, &fd), "vkGetMemoryFdKHR",
             "a shared tensor");
    return Descriptor(fd);
}

}  // namespace kp
