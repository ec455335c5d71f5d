// Buffers, images, their views and samplers.
#include "entry_points.hpp"

#include <algorithm>

namespace kpnull {
namespace {

VkMemoryRequirements buffer_requirements(const Device& device, VkDeviceSize size, VkBufferUsageFlags usage) {
    const VkDeviceSize alignment = usage & VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT ? 256 : kBufferAlignment;
    return {align_up(size, 16), alignment, device.physical->usable_types};
}
VkMemoryRequirements image_requirements(const Device& device, const Image& image) {
    return {align_up(image.total, 256), 256, device.physical->usable_types};
}
void fill_dedicated(void* next) {
    if (auto* dedicated = find_in_chain<VkMemoryDedicatedRequirements>(
            next, VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS))
        dedicated->prefersDedicatedAllocation = dedicated->requiresDedicatedAllocation = VK_FALSE;
}
const Device& device_of(VkDevice device) { return *from<Device>(device); }

void bind_buffer(VkDevice device, Buffer& buffer, DeviceMemory* memory, VkDeviceSize offset) {
    bind(buffer, memory, offset, buffer_requirements(device_of(device), buffer.size, buffer.usage), true);
    if ((buffer.usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) && !memory->address)
        violation("VkBuffer (%s) with SHADER_DEVICE_ADDRESS is bound to memory without "
                  "VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT",
                  label(&buffer));
    if (memory->imported && !buffer.external)
        violation("VkBuffer (%s) is bound to imported memory but was created without "
                  "VkExternalMemoryBufferCreateInfo",
                  label(&buffer));
}
void bind_image(VkDevice device, Image& image, DeviceMemory* memory, VkDeviceSize offset) {
    bind(image, memory, offset, image_requirements(device_of(device), image),
         image.info.tiling == VK_IMAGE_TILING_LINEAR);
}

bool acceptable(const VkImageCreateInfo& info) {
    const FormatInfo* format = find_format(info.format);
    return format && info.extent.width && info.extent.height && info.extent.depth && info.mipLevels &&
           info.arrayLayers && info.samples == VK_SAMPLE_COUNT_1_BIT && info.tiling <= VK_IMAGE_TILING_LINEAR;
}

}  // namespace

// --------------------------------------------------------------------------------------------- buffers

VKAPI_ATTR VkResult VKAPI_CALL vkCreateBuffer(VkDevice device, const VkBufferCreateInfo* info,
                                              const VkAllocationCallbacks*, VkBuffer* out) {
    KP_FAILABLE("vkCreateBuffer");
    if (info->size == 0 || info->size > 1ull << 40 || info->usage == 0) {
        violation("vkCreateBuffer: size %llu, usage %#x", static_cast<unsigned long long>(info->size),
                  info->usage);
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    auto* buffer = create<Buffer>(from<Device>(device));
    buffer->size = info->size;
    buffer->usage = info->usage;
    buffer->external = find_in_chain<VkExternalMemoryBufferCreateInfo>(
                           info->pNext, VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO) != nullptr;
    *out = to(buffer);
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyBuffer(VkDevice, VkBuffer handle, const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyBuffer");
    if (!handle) return;
    unbind(*from<Buffer>(handle));
    retire(from<Buffer>(handle));
}
VKAPI_ATTR void VKAPI_CALL vkGetBufferMemoryRequirements(VkDevice device, VkBuffer handle,
                                                         VkMemoryRequirements* out) {
    KP_COUNTED("vkGetBufferMemoryRequirements");
    const Buffer& buffer = *from<Buffer>(handle);
    *out = buffer_requirements(device_of(device), buffer.size, buffer.usage);
}
VKAPI_ATTR void VKAPI_CALL vkGetBufferMemoryRequirements2(VkDevice device,
                                                          const VkBufferMemoryRequirementsInfo2* info,
                                                          VkMemoryRequirements2* out) {
    KP_COUNTED("vkGetBufferMemoryRequirements2");
    const Buffer& buffer = *from<Buffer>(info->buffer);
    out->memoryRequirements = buffer_requirements(device_of(device), buffer.size, buffer.usage);
    fill_dedicated(out->pNext);
}
VKAPI_ATTR VkResult VKAPI_CALL vkBindBufferMemory(VkDevice device, VkBuffer buffer, VkDeviceMemory memory,
                                                  VkDeviceSize offset) {
    KP_FAILABLE("vkBindBufferMemory");
    bind_buffer(device, *from<Buffer>(buffer), from<DeviceMemory>(memory), offset);
    return VK_SUCCESS;
}
VKAPI_ATTR VkDeviceAddress VKAPI_CALL vkGetBufferDeviceAddress(VkDevice,
                                                               const VkBufferDeviceAddressInfo* info) {
    KP_COUNTED("vkGetBufferDeviceAddress");
    const Buffer& buffer = *from<Buffer>(info->buffer);
    if (!buffer.memory || !(buffer.usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT)) {
        violation("vkGetBufferDeviceAddress: VkBuffer (%s) is not bound or lacks SHADER_DEVICE_ADDRESS usage",
                  label(&buffer));
        return 0;
    }
    return reinterpret_cast<VkDeviceAddress>(buffer.bytes());
}
VKAPI_ATTR VkResult VKAPI_CALL vkCreateBufferView(VkDevice device, const VkBufferViewCreateInfo* info,
                                                  const VkAllocationCallbacks*, VkBufferView* out) {
    KP_FAILABLE("vkCreateBufferView");
    auto* view = create<BufferView>(from<Device>(device));
    view->buffer = from<Buffer>(info->buffer);
    view->format = info->format;
    view->offset = info->offset;
    view->range = info->range == VK_WHOLE_SIZE ? view->buffer->size - info->offset : info->range;
    *out = to(view);
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyBufferView(VkDevice, VkBufferView view, const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyBufferView");
    destroy<BufferView>(view);
}

// ---------------------------------------------------------------------------------------------- images

// Linear images have padded rows, optimal ones do not: copying one as if it were the other shows.
void Image::lay_out() {
    texel_bytes = find_format(info.format)->texel_bytes();
    const VkDeviceSize row_alignment = info.tiling == VK_IMAGE_TILING_LINEAR ? 256 : texel_bytes;
    VkDeviceSize at = 0;
    for (uint32_t level = 0; level < info.mipLevels; ++level) {
        const VkExtent3D extent = {std::max(1u, info.extent.width >> level),
                                   std::max(1u, info.extent.height >> level),
                                   std::max(1u, info.extent.depth >> level)};
        const VkDeviceSize row = align_up(VkDeviceSize(extent.width) * texel_bytes, row_alignment);
        const VkDeviceSize slice = row * extent.height;
        levels.push_back({at, row, slice, extent});
        at = align_up(at + slice * extent.depth, 256);
    }
    layer_pitch = at;
    total = at * info.arrayLayers;
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreateImage(VkDevice device, const VkImageCreateInfo* info,
                                             const VkAllocationCallbacks*, VkImage* out) {
    KP_FAILABLE("vkCreateImage");
    if (!acceptable(*info)) {
        violation(
            "vkCreateImage: format %d, extent %ux%ux%u, %u levels, %u layers, samples %d are not supported",
            int(info->format), info->extent.width, info->extent.height, info->extent.depth, info->mipLevels,
            info->arrayLayers, int(info->samples));
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    auto* image = create<Image>(from<Device>(device));
    image->info = *info;
    image->info.pNext = nullptr;
    image->info.pQueueFamilyIndices = nullptr;
    image->lay_out();
    *out = to(image);
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyImage(VkDevice, VkImage handle, const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyImage");
    if (!handle) return;
    unbind(*from<Image>(handle));
    retire(from<Image>(handle));
}
VKAPI_ATTR void VKAPI_CALL vkGetImageSubresourceLayout(VkDevice, VkImage handle,
                                                       const VkImageSubresource* subresource,
                                                       VkSubresourceLayout* out) {
    KP_COUNTED("vkGetImageSubresourceLayout");
    const Image& image = *from<Image>(handle);
    if (image.info.tiling != VK_IMAGE_TILING_LINEAR || subresource->mipLevel >= image.levels.size()) {
        violation("vkGetImageSubresourceLayout: VkImage (%s) is not linear or has no level %u", label(&image),
                  subresource->mipLevel);
        *out = {};
        return;
    }
    const Image::Level& level = image.levels[subresource->mipLevel];
    *out = {level.offset + subresource->arrayLayer * image.layer_pitch,
            level.slice_pitch * level.extent.depth, level.row_pitch, image.layer_pitch, level.slice_pitch};
}
VKAPI_ATTR void VKAPI_CALL vkGetImageMemoryRequirements(VkDevice device, VkImage image,
                                                        VkMemoryRequirements* out) {
    KP_COUNTED("vkGetImageMemoryRequirements");
    *out = image_requirements(device_of(device), *from<Image>(image));
}
VKAPI_ATTR void VKAPI_CALL vkGetImageMemoryRequirements2(VkDevice device,
                                                         const VkImageMemoryRequirementsInfo2* info,
                                                         VkMemoryRequirements2* out) {
    KP_COUNTED("vkGetImageMemoryRequirements2");
    out->memoryRequirements = image_requirements(device_of(device), *from<Image>(info->image));
    fill_dedicated(out->pNext);
}
VKAPI_ATTR void VKAPI_CALL vkGetImageSparseMemoryRequirements(VkDevice, VkImage, uint32_t* count,
                                                              VkSparseImageMemoryRequirements*) {
    KP_COUNTED("vkGetImageSparseMemoryRequirements");
    *count = 0;
}
VKAPI_ATTR void VKAPI_CALL vkGetImageSparseMemoryRequirements2(VkDevice,
                                                               const VkImageSparseMemoryRequirementsInfo2*,
                                                               uint32_t* count,
                                                               VkSparseImageMemoryRequirements2*) {
    KP_COUNTED("vkGetImageSparseMemoryRequirements2");
    *count = 0;
}
VKAPI_ATTR VkResult VKAPI_CALL vkBindImageMemory(VkDevice device, VkImage image, VkDeviceMemory memory,
                                                 VkDeviceSize offset) {
    KP_FAILABLE("vkBindImageMemory");
    bind_image(device, *from<Image>(image), from<DeviceMemory>(memory), offset);
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkCreateImageView(VkDevice device, const VkImageViewCreateInfo* info,
                                                 const VkAllocationCallbacks*, VkImageView* out) {
    KP_FAILABLE("vkCreateImageView");
    auto* view = create<ImageView>(from<Device>(device));
    view->image = from<Image>(info->image);
    view->format = info->format;
    view->range = info->subresourceRange;
    if (!view->image->memory)
        violation("vkCreateImageView: VkImage (%s) is not bound to memory", label(view->image));
    *out = to(view);
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyImageView(VkDevice, VkImageView view, const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyImageView");
    destroy<ImageView>(view);
}
VKAPI_ATTR VkResult VKAPI_CALL vkCreateSampler(VkDevice device, const VkSamplerCreateInfo*,
                                               const VkAllocationCallbacks*, VkSampler* out) {
    KP_FAILABLE("vkCreateSampler");
    *out = to(create<Sampler>(from<Device>(device)));
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroySampler(VkDevice, VkSampler sampler, const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroySampler");
    destroy<Sampler>(sampler);
}

}  // namespace kpnull
