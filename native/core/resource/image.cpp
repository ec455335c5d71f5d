#include "resource/image.hpp"

#include "base/error.hpp"
#include "base/first_touch.hpp"
#include "device/device.hpp"
#include "device/initial_work.hpp"
#include "device/staging.hpp"
#include "memory/guard.hpp"
#include "resource/host_window.hpp"

#include <algorithm>
#include <cstring>

namespace kp {
namespace {

constexpr VkImageUsageFlags transfers = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;

uint64_t bytes_of_all(const ImageShape& shape) {
    return uint64_t{shape.width} * shape.height * shape.depth * shape.layers * shape.format->texel_bytes;
}

VkImageType type_of(const ImageShape& shape) {
    return shape.dims == 1 ? VK_IMAGE_TYPE_1D : shape.dims == 2 ? VK_IMAGE_TYPE_2D : VK_IMAGE_TYPE_3D;
}

VkImageViewType view_type_of(const ImageShape& shape) {
    if (shape.dims == 3) return VK_IMAGE_VIEW_TYPE_3D;
    if (shape.dims == 2) return shape.arrayed ? VK_IMAGE_VIEW_TYPE_2D_ARRAY : VK_IMAGE_VIEW_TYPE_2D;
    return shape.arrayed ? VK_IMAGE_VIEW_TYPE_1D_ARRAY : VK_IMAGE_VIEW_TYPE_1D;
}

void check_limits(const ImageShape& shape, const VkPhysicalDeviceLimits& limits) {
    const auto check = [&](const char* what, uint32_t value, const char* name, uint32_t limit) {
        if (value < 1 || value > limit)
            throw Error(ErrorKind::invalid_argument, "A " + describe(shape) + " is not possible: " + what +
                                                         " must be 1 to " + std::to_string(limit) +
                                                         " on this device (" + name + ")");
    };
    const char* name = shape.dims == 1   ? "maxImageDimension1D"
                       : shape.dims == 2 ? "maxImageDimension2D"
                                         : "maxImageDimension3D";
    const uint32_t limit = shape.dims == 1   ? limits.maxImageDimension1D
                           : shape.dims == 2 ? limits.maxImageDimension2D
                                             : limits.maxImageDimension3D;
    check("its width", shape.width, name, limit);
    check("its height", shape.height, name, limit);
    check("its depth", shape.depth, name, limit);
    check("the number of its layers", shape.layers, "maxImageArrayLayers", limits.maxImageArrayLayers);
}

}  // namespace

std::string describe(const ImageShape& shape) {
    std::string text = std::to_string(shape.width);
    if (shape.dims > 1) text += " x " + std::to_string(shape.height);
    if (shape.dims > 2) text += " x " + std::to_string(shape.depth);
    text += " image of " + std::string(shape.format->name) + " (" + shape.format->component + ")";
    if (shape.arrayed) text += " with " + std::to_string(shape.layers) + " layers";
    return text;
}

Image::Image(std::shared_ptr<Device> owner, const void* data, const ImageShape& shape, MemoryType type)
    : Resource(std::move(owner), ObjectKind::image, bytes_of_all(shape), type), shape_(shape) {
    check_limits(shape, device().limits());

    // The device decides what shaders may do with the format, by tiling.
    VkFormatProperties properties{};
    vkGetPhysicalDeviceFormatProperties(device().physical().handle, format(), &properties);
    VkImageUsageFlags usage = 0;
    const auto supported = [&](VkImageTiling tiling) {
        const VkFormatFeatureFlags features = tiling == VK_IMAGE_TILING_LINEAR
                                                  ? properties.linearTilingFeatures
                                                  : properties.optimalTilingFeatures;
        storable_ = features & VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT;
        sampleable_ = features & VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT;
        filterable_ = features & VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT;
        if (!storable_ && !sampleable_) return false;
        usage = transfers;
        if (storable_) usage |= VK_IMAGE_USAGE_STORAGE_BIT;
        if (sampleable_) usage |= VK_IMAGE_USAGE_SAMPLED_BIT;
        VkImageFormatProperties support{};
        return vkGetPhysicalDeviceImageFormatProperties(device().physical().handle, format(), type_of(shape),
                                                        tiling, usage, 0, &support) == VK_SUCCESS &&
               support.maxExtent.width >= shape.width && support.maxExtent.height >= shape.height &&
               support.maxExtent.depth >= shape.depth && support.maxArrayLayers >= shape.layers &&
               support.maxResourceSize >= nbytes_;
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
    create.imageType = type_of(shape);
    create.format = format();
    create.extent = {shape.width, shape.height, shape.depth};
    create.mipLevels = 1;
    create.arrayLayers = shape.layers;
    create.samples = VK_SAMPLE_COUNT_1_BIT;
    device().share(create);

    std::shared_ptr<ImageSide> side;
    const bool wants_one_memory = type == MemoryType::host || type == MemoryType::device_and_host;
    const bool may_be_linear = shape.dims == 2 && !shape.arrayed;
    if (wants_one_memory && may_be_linear && supported(VK_IMAGE_TILING_LINEAR) && storable_) {
        // One memory for both sides works only if rows follow each other without padding, as in the host's
        // array.
        create.usage = usage;
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
            throw Error(ErrorKind::unimplemented, "'" +
                                                      std::string(device().physical().properties.deviceName) +
                                                      "' has no " + describe(shape) +
                                                      ". Use another component type or 4 channels "
                                                      "(mgr.image_formats() lists what it has), or a "
                                                      "tensor");
        if (wants_one_memory)
            device().note_once("This device pads the rows of host-visible images, or has none of that kind: "
                               "host and deviceAndHost "
                               "images keep a host copy that OpSyncDevice and OpSyncLocal move");
        create.usage = usage;
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
    device().retired().collect();
    side->memory =
        device().memory().allocate(needs, use, linear ? MemoryPool::buffers : MemoryPool::images, "an image");
    check_vk(
        vk.vkBindImageMemory(device().handle(), side->image, side->memory.memory(), side->memory.offset()),
        "vkBindImageMemory", "an image");
    const VkImageSubresourceRange all{VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, shape.layers};
    VkImageViewCreateInfo view{VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO};
    view.image = side->image;
    view.viewType = view_type_of(shape);
    view.format = format();
    view.subresourceRange = all;
    check_vk(vk.vkCreateImageView(device().handle(), &view, nullptr, &side->view), "vkCreateImageView",
             "an image");

    image_ = side->image;
    view_ = side->view;
    if (linear) address(side->memory);
    device_side_ = std::move(side);
    if (!linear && type != MemoryType::storage) {
        if (data)
            make_host_copy();
        else
            defer_host_copy(std::nullopt);
    }

    // In a debug run, undefined contents must not look right.
    std::vector<std::byte> poison;
    if (!data && device().memory().options().debug) {
        poison.assign(nbytes_, poison_value);
        data = poison.data();
    }
    if (data && host_data()) first_copy(host_data(), data, nbytes_);
    if (linear) flush(device_memory());
    expect_initial_work();
    VkImageMemoryBarrier barrier{VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER};
    barrier.srcAccessMask = linear ? VK_ACCESS_HOST_WRITE_BIT : 0;
    barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
    barrier.oldLayout = create.initialLayout;
    barrier.newLayout = VK_IMAGE_LAYOUT_GENERAL;
    barrier.srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.image = image_;
    barrier.subresourceRange = all;
    device().initial_work().transition(initial_target(), barrier);
    if (linear) return;
    if (type != MemoryType::storage) begin_on_host();
    if (data && !host_data()) begin_with(data);
}

Image::~Image() { finalize(); }

void Image::release(std::vector<Point> points) {
    end_transfers();
    image_ = VK_NULL_HANDLE;
    view_ = VK_NULL_HANDLE;
    Resource::release(std::move(points));
}

ImageRegion Image::whole_region() const noexcept {
    return {0, 0, 0, 0, shape_.width, shape_.height, shape_.depth, shape_.layers};
}

uint64_t Image::bytes_of(const ImageRegion& region) const noexcept {
    return uint64_t{region.width} * region.height * region.depth * region.layers * shape_.format->texel_bytes;
}

void Image::check_region(const ImageRegion& region, const char* action) const {
    const auto inside = [](uint32_t begin, uint32_t length, uint32_t all) {
        return length >= 1 && begin < all && length <= all - begin;
    };
    if (inside(region.x, region.width, shape_.width) && inside(region.y, region.height, shape_.height) &&
        inside(region.z, region.depth, shape_.depth) && inside(region.layer, region.layers, shape_.layers))
        return;
    throw Error(ErrorKind::out_of_range, std::string("Cannot ") + action + " a region that leaves the " +
                                             label() + ", a " + describe(shape_));
}

VkBufferImageCopy Image::copy(uint64_t buffer_offset, const ImageRegion& region) const noexcept {
    VkBufferImageCopy result{};
    result.bufferOffset = buffer_offset;
    result.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, region.layer, region.layers};
    result.imageOffset = {static_cast<int32_t>(region.x), static_cast<int32_t>(region.y),
                          static_cast<int32_t>(region.z)};
    result.imageExtent = {region.width, region.height, region.depth};
    return result;
}

void Image::set_name(const std::string& name) {
    Resource::set_name(name);
    name_handles([this](const std::string& given) {
        device().name_handle(VK_OBJECT_TYPE_IMAGE, handle_value(image_), given);
    });
}

void Image::stage(bool up, void* host, const ImageRegion& region) {
    auto& vk = device().vk();
    if (const auto window =
            HostWindow::open(device(), host, bytes_of(region), shape_.format->texel_bytes, !up)) {
        device().staging().run([&](VkCommandBuffer commands) {
            const VkBufferImageCopy all = copy(window->offset(), region);
            if (up)
                vk.vkCmdCopyBufferToImage(commands, window->buffer(), image_, VK_IMAGE_LAYOUT_GENERAL, 1,
                                          &all);
            else
                vk.vkCmdCopyImageToBuffer(commands, image_, VK_IMAGE_LAYOUT_GENERAL, window->buffer(), 1,
                                          &all);
        });
        return;
    }
    const uint64_t row = uint64_t{region.width} * shape_.format->texel_bytes;
    const uint64_t step = std::max<uint64_t>(1, device().staging().slot_bytes() / row) * row;
    // Rows are numbered through all planes; a piece may begin and end in the middle of a plane.
    const auto record = [&](VkCommandBuffer commands, VkBuffer buffer, uint64_t offset, uint64_t begin,
                            uint64_t bytes) {
        std::vector<VkBufferImageCopy> copies;
        const uint64_t last = (begin + bytes) / row;
        for (uint64_t at = begin / row; at < last;) {
            const auto plane = static_cast<uint32_t>(at / region.height);
            const auto first = static_cast<uint32_t>(at % region.height);
            ImageRegion part = region;
            part.y = region.y + first;
            part.height = static_cast<uint32_t>(std::min<uint64_t>(region.height - first, last - at));
            part.z = region.z + (region.layers == 1 ? plane : 0);
            part.layer = region.layer + (region.layers == 1 ? 0 : plane);
            part.depth = part.layers = 1;
            copies.push_back(copy(offset + at * row - begin, part));
            at += part.height;
        }
        const auto count = static_cast<uint32_t>(copies.size());
        if (up)
            vk.vkCmdCopyBufferToImage(commands, buffer, image_, VK_IMAGE_LAYOUT_GENERAL, count,
                                      copies.data());
        else
            vk.vkCmdCopyImageToBuffer(commands, image_, VK_IMAGE_LAYOUT_GENERAL, buffer, count,
                                      copies.data());
    };
    if (up)
        device().staging().upload(host, bytes_of(region), step, record);
    else
        device().staging().download(host, bytes_of(region), step, record);
}

void Image::read_region(void* out, const ImageRegion& region) {
    check_region(region, "read");
    transfer("read", false, false, [&] {
        if (reads_staged()) {
            stage(false, out, region);
            return;
        }
        const uint64_t row = uint64_t{region.width} * shape_.format->texel_bytes;
        for (uint32_t y = 0; y < region.height; ++y)
            std::memcpy(static_cast<std::byte*>(out) + y * row,
                        direct_ +
                            (uint64_t{region.y + y} * shape_.width + region.x) * shape_.format->texel_bytes,
                        row);
    });
}

void Image::write_region(const void* data, const ImageRegion& region) {
    check_region(region, "write");
    transfer("write", true, region == whole_region(), [&] {
        if (!direct_) {
            stage(true, const_cast<void*>(data), region);
            return;
        }
        const uint64_t row = uint64_t{region.width} * shape_.format->texel_bytes;
        for (uint32_t y = 0; y < region.height; ++y)
            std::memcpy(direct_ +
                            (uint64_t{region.y + y} * shape_.width + region.x) * shape_.format->texel_bytes,
                        static_cast<const std::byte*>(data) + y * row, row);
    });
}

bool Image::collect_upload(const void* data) {
    return device().initial_work().upload(
        initial_target(), data, nbytes_,
        [&owner = device(), image = image_, region = whole(0)](VkCommandBuffer commands, VkBuffer from,
                                                               uint64_t offset) {
            VkBufferImageCopy copy = region;
            copy.bufferOffset = offset;
            owner.vk().vkCmdCopyBufferToImage(commands, from, image, VK_IMAGE_LAYOUT_GENERAL, 1, &copy);
        });
}

// Transfers of a part of an image's bytes go through a copy of all its bytes, because Vulkan copies
// only whole texels.
void Image::download(void* out, uint64_t offset, uint64_t size) {
    if (offset == 0 && size == nbytes_) {
        stage(false, out, whole_region());
        return;
    }
    std::vector<std::byte> all(nbytes_);
    stage(false, all.data(), whole_region());
    std::memcpy(out, all.data() + offset, size);
}

void Image::upload(const void* data, uint64_t offset, uint64_t size) {
    if (offset == 0 && size == nbytes_) {
        stage(true, const_cast<void*>(data), whole_region());
        return;
    }
    std::vector<std::byte> all(nbytes_);
    stage(false, all.data(), whole_region());
    std::memcpy(all.data() + offset, data, size);
    stage(true, all.data(), whole_region());
}

}  // namespace kp
