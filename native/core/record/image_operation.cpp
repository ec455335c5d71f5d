#include "record/image_operation.hpp"

#include "base/error.hpp"
#include "device/device.hpp"
#include "record/stream_plan.hpp"
#include "record/substitution.hpp"
#include "resource/buffer.hpp"

#include <numeric>

namespace kp {
namespace {

struct Side {
    ResourceRange range;
    const Image* image = nullptr;
    const Buffer* buffer = nullptr;
    ImageRegion region;
    uint64_t bytes = 0;
};

Side side_of(const ResourceRange& range, const std::optional<ImageRegion>& region, const char* action) {
    range.resource->require_init("record");
    Side side;
    side.range = range;
    side.image = dynamic_cast<const Image*>(range.resource.get());
    side.buffer = dynamic_cast<const Buffer*>(range.resource.get());
    if (side.image) {
        side.region = region.value_or(side.image->whole_region());
        side.image->check_region(side.region, action);
        side.bytes = side.image->bytes_of(side.region);
    } else {
        side.bytes = range.size;
    }
    return side;
}

VkImageCopy image_copy(const ImageRegion& from, const ImageRegion& to) {
    VkImageCopy copy{};
    copy.srcSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, from.layer, from.layers};
    copy.dstSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, to.layer, to.layers};
    copy.srcOffset = {static_cast<int32_t>(from.x), static_cast<int32_t>(from.y),
                      static_cast<int32_t>(from.z)};
    copy.dstOffset = {static_cast<int32_t>(to.x), static_cast<int32_t>(to.y), static_cast<int32_t>(to.z)};
    copy.extent = {from.width, from.height, from.depth};
    return copy;
}

bool overlap(const ImageRegion& a, const ImageRegion& b) {
    const auto meet = [](uint32_t p, uint32_t n, uint32_t q, uint32_t m) { return p < q + m && q < p + n; };
    return meet(a.x, a.width, b.x, b.width) && meet(a.y, a.height, b.y, b.height) &&
           meet(a.z, a.depth, b.z, b.depth) && meet(a.layer, a.layers, b.layer, b.layers);
}

class CopyRegion final : public Operation {
public:
    CopyRegion(std::shared_ptr<Device> owner, Side source, Side target)
        : Operation(std::move(owner), "OpCopyRegion"),
          source_(std::move(source)),
          target_(std::move(target)) {}

    void check() const override {
        source_.range.resource->require_init("use");
        target_.range.resource->require_init("use");
    }

    // Transfer-only queues may take only regions of certain sizes (minImageTransferGranularity).
    [[nodiscard]] bool needs_compute_queue() const noexcept override { return true; }

    [[nodiscard]] OperationContent content() const override {
        OperationContent content;
        content.kind = "copy region";
        content.ranges = {source_.range, target_.range};
        content.regions = {source_.region, target_.region};
        return content;
    }

    [[nodiscard]] OperationPtr substituted(const Substitution& by) const override {
        const auto other = [&](Side side) {
            side.range = by.range(side.range);
            side.image = dynamic_cast<const Image*>(side.range.resource.get());
            side.buffer = dynamic_cast<const Buffer*>(side.range.resource.get());
            return side;
        };
        return std::make_shared<CopyRegion>(source_.range.resource->shared_device(), other(source_),
                                            other(target_));
    }

    void declare(StreamPlan& plan) const override {
        plan.use(source_.range, UseKind::transfer_read);
        plan.use(target_.range, UseKind::transfer_write);
    }

    void record(Recorder& to) const override {
        constexpr VkImageLayout general = VK_IMAGE_LAYOUT_GENERAL;
        if (source_.image && target_.image) {
            const VkImageCopy copy = image_copy(source_.region, target_.region);
            to.vk.vkCmdCopyImage(to.commands, source_.image->handle(), general, target_.image->handle(),
                                 general, 1, &copy);
        } else if (source_.image) {
            const VkBufferImageCopy copy = source_.image->copy(target_.range.offset, source_.region);
            to.vk.vkCmdCopyImageToBuffer(to.commands, source_.image->handle(), general,
                                         target_.buffer->handle(), 1, &copy);
        } else {
            const VkBufferImageCopy copy = target_.image->copy(source_.range.offset, target_.region);
            to.vk.vkCmdCopyBufferToImage(to.commands, source_.buffer->handle(), target_.image->handle(),
                                         general, 1, &copy);
        }
    }

private:
    Side source_;
    Side target_;
};

}  // namespace

OperationPtr make_copy_region(const ResourceRange& source_range,
                              const std::optional<ImageRegion>& source_region,
                              const ResourceRange& target_range,
                              const std::optional<ImageRegion>& target_region) {
    if (&source_range.resource->device() != &target_range.resource->device())
        throw Error(ErrorKind::invalid_argument, "OpCopyRegion got objects of different Managers");
    Side source = side_of(source_range, source_region, "copy");
    Side target = side_of(target_range, target_region, "copy to");
    if (!source.image && !target.image)
        throw Error(ErrorKind::argument_type,
                    "OpCopyRegion is for images: copy parts of tensors with OpCopy");
    if (source.image && target.image) {
        const ImageRegion &a = source.region, &b = target.region;
        // A plane of a 3D image may be copied to a layer, and back; otherwise the boxes must be the same.
        if (a.width != b.width || a.height != b.height || a.depth != b.depth || a.layers != b.layers)
            throw Error(ErrorKind::invalid_argument,
                        "OpCopyRegion needs regions of one size: " + source_range.label() + " and " +
                            target_range.label() + " are copied with different ones");
        if (source.image->shape().format->texel_bytes != target.image->shape().format->texel_bytes)
            throw Error(ErrorKind::invalid_argument,
                        "OpCopyRegion copies texels bit by bit: " + describe(source.image->shape()) +
                            " and " + describe(target.image->shape()) + " have texels of different size");
        if (source.image == target.image && overlap(a, b))
            throw Error(ErrorKind::invalid_argument,
                        "OpCopyRegion cannot copy a region of the " + source_range.label() + " onto itself");
    } else {
        if (source.bytes != target.bytes)
            throw Error(ErrorKind::invalid_argument,
                        "OpCopyRegion needs equal sizes: the " + source_range.label() + " gives " +
                            std::to_string(source.bytes) + " bytes, the " + target_range.label() + " takes " +
                            std::to_string(target.bytes));
        const Side& buffer = source.buffer ? source : target;
        const uint64_t texel = (source.image ? source.image : target.image)->shape().format->texel_bytes;
        const uint64_t step = std::lcm(texel, uint64_t{4});
        if (buffer.range.offset % step != 0)
            throw Error(ErrorKind::invalid_argument,
                        "OpCopyRegion needs a byte offset that is a multiple of " + std::to_string(step) +
                            " in the " + buffer.range.label() +
                            ". Slice the tensor elsewhere, or copy through one of its own");
    }
    const auto device = source_range.resource->shared_device();
    return std::make_shared<CopyRegion>(device, std::move(source), std::move(target));
}

}  // namespace kp
