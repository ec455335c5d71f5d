// Formats: colour formats whose channels are all of one size. One- and two- and four-channel formats are
// storable; three-channel formats are not supported for images, as on real devices.
#include "entry_points.hpp"

#include <bit>

namespace kpnull {
namespace {

// clang-format off
#define KP_ONE(R, suffix, bits, numeric) {VK_FORMAT_##R##_##suffix, 0, bits, Numeric::numeric, false}
#define KP_FAMILY(R, bits) \
    KP_ONE(R, UNORM, bits, Unorm), KP_ONE(R, SNORM, bits, Snorm), KP_ONE(R, UINT, bits, Uint), \
    KP_ONE(R, SINT, bits, Sint)
#define KP_NUMBERS(R, bits) \
    KP_ONE(R, UINT, bits, Uint), KP_ONE(R, SINT, bits, Sint), KP_ONE(R, SFLOAT, bits, Float)

uint8_t channels_of(VkFormat format) {
    switch (format) {
        case VK_FORMAT_R8_UNORM: case VK_FORMAT_R8_SNORM: case VK_FORMAT_R8_UINT: case VK_FORMAT_R8_SINT:
        case VK_FORMAT_R16_UNORM: case VK_FORMAT_R16_SNORM: case VK_FORMAT_R16_UINT: case VK_FORMAT_R16_SINT:
        case VK_FORMAT_R16_SFLOAT: case VK_FORMAT_R32_UINT: case VK_FORMAT_R32_SINT:
        case VK_FORMAT_R32_SFLOAT: case VK_FORMAT_R64_UINT: case VK_FORMAT_R64_SINT:
        case VK_FORMAT_R64_SFLOAT:
            return 1;
        case VK_FORMAT_R8G8_UNORM: case VK_FORMAT_R8G8_SNORM: case VK_FORMAT_R8G8_UINT:
        case VK_FORMAT_R8G8_SINT: case VK_FORMAT_R16G16_UNORM: case VK_FORMAT_R16G16_SNORM:
        case VK_FORMAT_R16G16_UINT: case VK_FORMAT_R16G16_SINT: case VK_FORMAT_R16G16_SFLOAT:
        case VK_FORMAT_R32G32_UINT: case VK_FORMAT_R32G32_SINT: case VK_FORMAT_R32G32_SFLOAT:
            return 2;
        default:
            return 4;
    }
}

const std::vector<FormatInfo>& formats() {
    static const auto* list = [] {
        auto* all = new std::vector<FormatInfo>{
            KP_FAMILY(R8, 8), KP_FAMILY(R8G8, 8), KP_FAMILY(R8G8B8A8, 8),
            KP_FAMILY(R16, 16), KP_FAMILY(R16G16, 16), KP_FAMILY(R16G16B16A16, 16),
            KP_NUMBERS(R32, 32), KP_NUMBERS(R32G32, 32), KP_NUMBERS(R32G32B32A32, 32),
            {VK_FORMAT_R16_SFLOAT, 0, 16, Numeric::Float, false},
            {VK_FORMAT_R16G16_SFLOAT, 0, 16, Numeric::Float, false},
            {VK_FORMAT_R16G16B16A16_SFLOAT, 0, 16, Numeric::Float, false},
            {VK_FORMAT_R64_UINT, 0, 64, Numeric::Uint, false},
            {VK_FORMAT_R64_SINT, 0, 64, Numeric::Sint, false},
            {VK_FORMAT_B8G8R8A8_UNORM, 0, 8, Numeric::Unorm, true},
            {VK_FORMAT_R8G8B8A8_SRGB, 0, 8, Numeric::Srgb, false},
            {VK_FORMAT_B8G8R8A8_SRGB, 0, 8, Numeric::Srgb, true}};
        for (FormatInfo& f : *all) f.channels = channels_of(f.format);
        return all;
    }();
    return *list;
}
// clang-format on

constexpr VkFormatFeatureFlags kTransfer =
    VK_FORMAT_FEATURE_TRANSFER_SRC_BIT | VK_FORMAT_FEATURE_TRANSFER_DST_BIT;

}  // namespace

const FormatInfo* find_format(VkFormat format) {
    for (const FormatInfo& f : formats())
        if (f.format == format) return &f;
    return nullptr;
}

VkFormatFeatureFlags format_features(VkFormat format, VkImageTiling tiling) {
    const FormatInfo* f = find_format(format);
    if (!f) return 0;
    VkFormatFeatureFlags flags = kTransfer | VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT;
    if (f->numeric != Numeric::Srgb && !f->bgra) flags |= VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT;
    if (f->numeric != Numeric::Uint && f->numeric != Numeric::Sint)
        flags |= VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT;
    if (f->channels == 1 && f->bits == 32) flags |= VK_FORMAT_FEATURE_STORAGE_IMAGE_ATOMIC_BIT;
    if (tiling == VK_IMAGE_TILING_OPTIMAL && f->bits < 64) flags |= VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BIT;
    return flags;
}

VkFormatFeatureFlags format_buffer_features(VkFormat format) {
    const FormatInfo* f = find_format(format);
    if (!f || f->numeric == Numeric::Srgb) return 0;
    VkFormatFeatureFlags flags =
        VK_FORMAT_FEATURE_UNIFORM_TEXEL_BUFFER_BIT | VK_FORMAT_FEATURE_STORAGE_TEXEL_BUFFER_BIT;
    if (f->channels == 1 && f->bits == 32) flags |= VK_FORMAT_FEATURE_STORAGE_TEXEL_BUFFER_ATOMIC_BIT;
    return flags;
}

VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceFormatProperties(VkPhysicalDevice, VkFormat format,
                                                               VkFormatProperties* out) {
    KP_COUNTED("vkGetPhysicalDeviceFormatProperties");
    out->linearTilingFeatures = format_features(format, VK_IMAGE_TILING_LINEAR);
    out->optimalTilingFeatures = format_features(format, VK_IMAGE_TILING_OPTIMAL);
    out->bufferFeatures = format_buffer_features(format);
}
VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceFormatProperties2(VkPhysicalDevice, VkFormat format,
                                                                VkFormatProperties2* out) {
    KP_COUNTED("vkGetPhysicalDeviceFormatProperties2");
    VkFormatProperties& p = out->formatProperties;
    p.linearTilingFeatures = format_features(format, VK_IMAGE_TILING_LINEAR);
    p.optimalTilingFeatures = format_features(format, VK_IMAGE_TILING_OPTIMAL);
    p.bufferFeatures = format_buffer_features(format);
    if (auto* three = find_in_chain<VkFormatProperties3>(out->pNext, VK_STRUCTURE_TYPE_FORMAT_PROPERTIES_3)) {
        const auto widen = [](VkFormatFeatureFlags flags) {
            VkFormatFeatureFlags2 wide = flags;
            if (flags & (VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT | VK_FORMAT_FEATURE_STORAGE_TEXEL_BUFFER_BIT))
                wide |= VK_FORMAT_FEATURE_2_STORAGE_READ_WITHOUT_FORMAT_BIT |
                        VK_FORMAT_FEATURE_2_STORAGE_WRITE_WITHOUT_FORMAT_BIT;
            return wide;
        };
        three->linearTilingFeatures = widen(p.linearTilingFeatures);
        three->optimalTilingFeatures = widen(p.optimalTilingFeatures);
        three->bufferFeatures = widen(p.bufferFeatures);
    }
}

namespace {
VkResult image_format_properties(VkPhysicalDevice handle, VkFormat format, VkImageType type,
                                 VkImageTiling tiling, VkImageUsageFlags usage, VkImageCreateFlags flags,
                                 VkImageFormatProperties* out) {
    *out = {};
    const VkFormatFeatureFlags features =
        tiling <= VK_IMAGE_TILING_LINEAR ? format_features(format, tiling) : 0;
    constexpr std::pair<VkImageUsageFlags, VkFormatFeatureFlags> kNeeds[] = {
        {VK_IMAGE_USAGE_STORAGE_BIT, VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT},
        {VK_IMAGE_USAGE_SAMPLED_BIT, VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT},
        {VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT, VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BIT},
        {VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT, VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT}};
    constexpr VkImageCreateFlags kSparse = VK_IMAGE_CREATE_SPARSE_BINDING_BIT |
                                           VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT |
                                           VK_IMAGE_CREATE_SPARSE_ALIASED_BIT | VK_IMAGE_CREATE_PROTECTED_BIT;
    if (!features || (flags & kSparse)) return VK_ERROR_FORMAT_NOT_SUPPORTED;
    for (const auto& [use, feature] : kNeeds)
        if ((usage & use) && !(features & feature)) return VK_ERROR_FORMAT_NOT_SUPPORTED;
    const bool linear = tiling == VK_IMAGE_TILING_LINEAR;
    if (linear && type == VK_IMAGE_TYPE_3D) return VK_ERROR_FORMAT_NOT_SUPPORTED;
    const PhysicalDevice& device = *from<PhysicalDevice>(handle);
    const VkPhysicalDeviceLimits& l = device.properties.limits;
    const uint32_t side = type == VK_IMAGE_TYPE_3D   ? l.maxImageDimension3D
                          : type == VK_IMAGE_TYPE_2D ? l.maxImageDimension2D
                                                     : l.maxImageDimension1D;
    out->maxExtent = {side, type == VK_IMAGE_TYPE_1D ? 1 : side, type == VK_IMAGE_TYPE_3D ? side : 1};
    out->maxMipLevels = linear ? 1 : uint32_t(std::bit_width(side));
    out->maxArrayLayers = linear || type == VK_IMAGE_TYPE_3D ? 1 : l.maxImageArrayLayers;
    out->sampleCounts = VK_SAMPLE_COUNT_1_BIT;
    out->maxResourceSize = 4ull << 30;
    return VK_SUCCESS;
}
}  // namespace

VKAPI_ATTR VkResult VKAPI_CALL vkGetPhysicalDeviceImageFormatProperties(
    VkPhysicalDevice device, VkFormat format, VkImageType type, VkImageTiling tiling, VkImageUsageFlags usage,
    VkImageCreateFlags flags, VkImageFormatProperties* out) {
    KP_FAILABLE("vkGetPhysicalDeviceImageFormatProperties");
    return image_format_properties(device, format, type, tiling, usage, flags, out);
}
VKAPI_ATTR VkResult VKAPI_CALL vkGetPhysicalDeviceImageFormatProperties2(
    VkPhysicalDevice device, const VkPhysicalDeviceImageFormatInfo2* info, VkImageFormatProperties2* out) {
    KP_FAILABLE("vkGetPhysicalDeviceImageFormatProperties2");
    if (const auto* external = find_in_chain<VkPhysicalDeviceExternalImageFormatInfo>(
            info->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_IMAGE_FORMAT_INFO);
        external && external->handleType)
        return VK_ERROR_FORMAT_NOT_SUPPORTED;
    return image_format_properties(device, info->format, info->type, info->tiling, info->usage, info->flags,
                                   &out->imageFormatProperties);
}
VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceSparseImageFormatProperties(VkPhysicalDevice, VkFormat,
                                                                          VkImageType, VkSampleCountFlagBits,
                                                                          VkImageUsageFlags, VkImageTiling,
                                                                          uint32_t* count,
                                                                          VkSparseImageFormatProperties*) {
    KP_COUNTED("vkGetPhysicalDeviceSparseImageFormatProperties");
    *count = 0;
}
VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceSparseImageFormatProperties2(
    VkPhysicalDevice, const VkPhysicalDeviceSparseImageFormatInfo2*, uint32_t* count,
    VkSparseImageFormatProperties2*) {
    KP_COUNTED("vkGetPhysicalDeviceSparseImageFormatProperties2");
    *count = 0;
}

}  // namespace kpnull
