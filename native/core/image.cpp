#include "image.hpp"

#include "device.hpp"
#include "error.hpp"
#include "first_touch.hpp"
#include "staging.hpp"

#include <cstring>

namespace kp {
namespace {

struct FormatRow {
    const char* component;
    bool normalized;
    uint32_t bytes;
    VkFormat formats[3];  // one, two, four channels
};

constexpr FormatRow format_rows[] = {
    {"uint8", false, 1, {VK_FORMAT_R8_UINT, VK_FORMAT_R8G8_UINT, VK_FORMAT_R8G8B8A8_UINT}},
    {"int8", false, 1, {VK_FORMAT_R8_SINT, VK_FORMAT_R8G8_SINT, VK_FORMAT_R8G8B8A8_SINT}},
    {"uint8", true, 1, {VK_FORMAT_R8_UNORM, VK_FORMAT_R8G8_UNORM, VK_FORMAT_R8G8B8A8_UNORM}},
    {"int8", true, 1, {VK_FORMAT_R8_SNORM, VK_FORMAT_R8G8_SNORM, VK_FORMAT_R8G8B8A8_SNORM}},
    {"uint16", false, 2, {VK_FORMAT_R16_UINT, VK_FORMAT_R16G16_UINT, VK_FORMAT_R16G16B16A16_UINT}},
    {"int16", false, 2, {VK_FORMAT_R16_SINT, VK_FORMAT_R16G16_SINT, VK_FORMAT_R16G16B16A16_SINT}},
    {"uint16", true, 2, {VK_FORMAT_R16_UNORM, VK_FORMAT_R16G16_UNORM, VK_FORMAT_R16G16B16A16_UNORM}},
    {"int16", true, 2, {VK_FORMAT_R16_SNORM, VK_FORMAT_R16G16_SNORM, VK_FORMAT_R16G16B16A16_SNORM}},
    {"float16", false, 2, {VK_FORMAT_R16_SFLOAT, VK_FORMAT_R16G16_SFLOAT, VK_FORMAT_R16G16B16A16_SFLOAT}},
    {"uint32", false, 4, {VK_FORMAT_R32_UINT, VK_FORMAT_R32G32_UINT, VK_FORMAT_R32G32B32A32_UINT}},
    {"int32", false, 4, {VK_FORMAT_R32_SINT, VK_FORMAT_R32G32_SINT, VK_FORMAT_R32G32B32A32_SINT}},
    {"float32", false, 4, {VK_FORMAT_R32_SFLOAT, VK_FORMAT_R32G32_SFLOAT, VK_FORMAT_R32G32B32A32_SFLOAT}},
};

const FormatRow& row_of(const ImageShape& shape) {
    if (shape.channels != 1 && shape.channels != 2 && shape.channels != 4)
        throw Error(ErrorKind::invalid_argument, "An image has 1, 2 or 4 channels, not " +
                                                     std::to_string(shape.channels) +
                                                     (shape.channels == 3 ? ": pad the array to four" : ""));
    for (const auto& row : format_rows)
        if (shape.component == row.component && shape.normalized == row.normalized) return row;
    throw Error(ErrorKind::argument_type,
                "No image format has " + std::string(shape.normalized ? "normalized " : "") +
                    shape.component +
                    " components; use uint8, int8, uint16, int16, float16, uint32, int32 or float32");
}

std::string describe(const ImageShape& shape) {
    return std::to_string(shape.width) + " x " + std::to_string(shape.height) + " x " +
           std::to_string(shape.channels) + " image of " + (shape.normalized ? "normalized " : "") +
           shape.component;
}

uint64_t bytes_of(const ImageShape& shape) {
    return uint64_t{shape.width} * shape.height * shape.channels * row_of(shape).bytes;
}

constexpr VkImageUsageFlags image_usage =
    VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;

}  // namespace

Image::Image(std::shared_ptr<Device> owner, const void* data, const ImageShape& shape, MemoryType type)
    : Resource(std::move(owner), ObjectKind::image, bytes_of(shape), type), shape_(shape) {
    const uint32_t column = shape.channels == 4 ? 2 : shape.channels - 1;
    format_ = row_of(shape).formats[column];
    const auto& limits = device().limits();
    if (shape.width == 0 || shape.height == 0 || shape.width > limits.maxImageDimension2D ||
        shape.height > limits.maxImageDimension2D)
        throw Error(ErrorKind::invalid_argument,
                    "A " + describe(shape) + " is not possible: width and height must be 1 to " +
                        std::to_string(limits.maxImageDimension2D) + " on this device (maxImageDimension2D)");

    VkImageFormatProperties support{};
    const auto supported = [&](VkImageTiling tiling) {
        return vkGetPhysicalDeviceImageFormatProperties(device().physical().handle, format_, VK_IMAGE_TYPE_2D,
                                                        tiling, image_usage, 0, &support) == VK_SUCCESS &&
               support.maxExtent.width >= shape.width && support.maxExtent.height >= shape.height;
    };
    struct ImageSide final : DeviceSide {
        Device& device;
        VkImage image = VK_NULL_HANDLE;
        VkImageView view = VK_NULL_HANDLE;
        explicit ImageSide(Device& d) : device(d) {}
        ~ImageSide() override {
            device.vk().vkDestroyImageView(device.handle(), view, nullptr);
            device.vk().vkDestroyImage(device.handle(), image, nullptr);
        }
    };
    auto& vk = device().vk();
    VkImageCreateInfo create{VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO};
    create.imageType = VK_IMAGE_TYPE_2D;
    create.format = format_;
    create.extent = {shape.width, shape.height, 1};
    create.mipLevels = 1;
    create.arrayLayers = 1;
    create.samples = VK_SAMPLE_COUNT_1_BIT;
    create.usage = image_usage;
    device().share(create);

    std::shared_ptr<ImageSide> side;
    const bool wants_one_memory = type == MemoryType::host || type == MemoryType::device_and_host;
    if (wants_one_memory && supported(VK_IMAGE_TILING_LINEAR)) {
        // One memory for both sides works where rows follow each other without padding, as in the host's array.
        create.tiling = VK_IMAGE_TILING_LINEAR;
        create.initialLayout = VK_IMAGE_LAYOUT_PREINITIALIZED;
        side = std::make_shared<ImageSide>(device());
        check_vk(vk.vkCreateImage(device().handle(), &create, nullptr, &side->image), "vkCreateImage",
                 describe(shape).c_str());
        const VkImageSubresource subresource{VK_IMAGE_ASPECT_COLOR_BIT, 0, 0};
        VkSubresourceLayout layout{};
        vk.vkGetImageSubresourceLayout(device().handle(), side->image, &subresource, &layout);
        if (layout.offset != 0 || layout.rowPitch != nbytes_ / shape.height) side.reset();
    }
    const bool linear = side != nullptr;
    if (!linear) {
        if (!supported(VK_IMAGE_TILING_OPTIMAL))
            throw Error(ErrorKind::unimplemented,
                        "'" + std::string(device().physical().properties.deviceName) +
                            "' does not store the format of a " + describe(shape) +
                            ". Use another component type or 4 channels, or a tensor");
        if (wants_one_memory)
            device().note_once(
                "This device pads the rows of host-visible images: host and deviceAndHost images keep a host "
                "copy that OpSyncDevice and OpSyncLocal move");
        create.tiling = VK_IMAGE_TILING_OPTIMAL;
        create.initialLayout = VK_IMAGE_LAYOUT_UNDEFINED;
        side = std::make_shared<ImageSide>(device());
        check_vk(vk.vkCreateImage(device().handle(), &create, nullptr, &side->image), "vkCreateImage",
                 describe(shape).c_str());
    }

    VkMemoryRequirements needs{};
    vk.vkGetImageMemoryRequirements(device().handle(), side->image, &needs);
    MemoryUse use = MemoryUse::device;
    if (linear) use = type == MemoryType::host ? MemoryUse::host : MemoryUse::device_and_host;
    side->memory =
        device().memory().allocate(needs, use, linear ? MemoryPool::buffers : MemoryPool::images, "an image");
    check_vk(
        vk.vkBindImageMemory(device().handle(), side->image, side->memory.memory(), side->memory.offset()),
        "vkBindImageMemory", "an image");
    VkImageViewCreateInfo view{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
    view.image = side->image;
    view.viewType = VK_IMAGE_VIEW_TYPE_2D;
    view.format = format_;
    view.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    check_vk(vk.vkCreateImageView(device().handle(), &view, nullptr, &side->view), "vkCreateImageView",
             "an image");

    image_ = side->image;
    view_ = side->view;
    if (linear) direct_ = side->memory.mapped();
    device_side_ = std::move(side);
    if (!linear && type != MemoryType::storage) make_host_copy();

    if (data && host_data()) first_copy(host_data(), data, nbytes_);
    if (linear) flush(device_memory());
    device().staging().run([&](VkCommandBuffer commands) {
        VkImageMemoryBarrier barrier{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
        barrier.srcAccessMask = linear ? VK_ACCESS_HOST_WRITE_BIT : 0;
        barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
        barrier.oldLayout = create.initialLayout;
        barrier.newLayout = VK_IMAGE_LAYOUT_GENERAL;
        barrier.srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
        barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
        barrier.image = image_;
        barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
        vk.vkCmdPipelineBarrier(commands,
                                linear ? VK_PIPELINE_STAGE_HOST_BIT : VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
                                VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, nullptr, 0, nullptr, 1, &barrier);
    });
    if (data && !host_data()) write(data, 0, nbytes_);
}

Image::~Image() { finalize(); }

void Image::release(std::vector<Point> points) {
    end_transfers();
    image_ = VK_NULL_HANDLE;
    view_ = VK_NULL_HANDLE;
    Resource::release(std::move(points));
}

VkBufferImageCopy Image::whole(uint64_t buffer_offset) const noexcept {
    VkBufferImageCopy region{};
    region.bufferOffset = buffer_offset;
    region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    region.imageExtent = {shape_.width, shape_.height, 1};
    return region;
}

void Image::set_name(const std::string& name) {
    Object::set_name(name);
    device().name_handle(VK_OBJECT_TYPE_IMAGE, handle_value(image_), name);
}

// Images of foundation size travel whole: texel regions do not follow byte ranges.
void Image::download(void* out, uint64_t offset, uint64_t size) {
    Allocation staging = device().memory().allocate_host_copy(nbytes_, "an image's transfer");
    const VkBufferImageCopy region = whole(staging.offset());
    device().staging().run([&](VkCommandBuffer commands) {
        device().vk().vkCmdCopyImageToBuffer(commands, image_, VK_IMAGE_LAYOUT_GENERAL,
                                             staging.block_buffer(), 1, &region);
    });
    invalidate(staging);
    std::memcpy(out, staging.mapped() + offset, size);
}

void Image::upload(const void* data, uint64_t offset, uint64_t size) {
    Allocation staging = device().memory().allocate_host_copy(nbytes_, "an image's transfer");
    if (offset != 0 || size != nbytes_) download(staging.mapped(), 0, nbytes_);
    std::memcpy(staging.mapped() + offset, data, size);
    flush(staging);
    const VkBufferImageCopy region = whole(staging.offset());
    device().staging().run([&](VkCommandBuffer commands) {
        device().vk().vkCmdCopyBufferToImage(commands, staging.block_buffer(), image_,
                                             VK_IMAGE_LAYOUT_GENERAL, 1, &region);
    });
}

}  // namespace kp
