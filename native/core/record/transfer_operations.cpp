// Operations that move bytes with Vulkan's transfer commands: syncs and copies.
#include "base/error.hpp"
#include "device/device.hpp"
#include "record/operation.hpp"
#include "record/stream_plan.hpp"
#include "record/substitution.hpp"
#include "resource/buffer.hpp"
#include "resource/image.hpp"
#include "resource/overlaps.hpp"

#include <numeric>
#include <typeinfo>

namespace kp {
namespace {

std::shared_ptr<Device> common_device(const std::vector<ResourceRange>& ranges, const char* operation) {
    if (ranges.empty())
        throw Error(ErrorKind::invalid_argument,
                    std::string(operation) + " needs at least one tensor or image");
    const Resource& first = *ranges.front().resource;
    for (const auto& range : ranges) {
        if (&range.resource->device() != &first.device())
            throw Error(ErrorKind::invalid_argument,
                        std::string(operation) + " got objects of different Managers: the " + range.label() +
                            " belongs to another one than the " + ranges.front().label() +
                            ". Copy one of them over with .to(mgr)");
        range.resource->require_init("record");
    }
    return first.shared_device();
}

void need_host_copies(const std::vector<ResourceRange>& ranges) {
    for (const auto& range : ranges) range.resource->need_host_copy();
}

class RangeOperation : public Operation {
public:
    RangeOperation(std::shared_ptr<Device> device, std::string name, std::vector<ResourceRange> ranges)
        : Operation(std::move(device), std::move(name)), ranges_(std::move(ranges)) {}

    void check() const override {
        for (const auto& range : ranges_) range.resource->require_init("use");
    }
    [[nodiscard]] size_t parts() const noexcept override { return ranges_.size(); }
    [[nodiscard]] OperationContent content() const override {
        OperationContent content;
        content.kind = syncs() == SyncDirection::to_device ? "sync device"
                       : syncs() == SyncDirection::to_host ? "sync local"
                                                           : "copy";
        content.ranges = ranges_;
        return content;
    }

protected:
    std::vector<ResourceRange> ranges_;
};

// The resource as an image; null for a buffer. Both classes are final, so no cast has to search.
const Image* image_of(const Resource& resource) {
    return typeid(resource) == typeid(Image) ? static_cast<const Image*>(&resource) : nullptr;
}

OperationPtr make_sync(std::vector<ResourceRange> ranges, SyncDirection direction);

// OpSyncDevice and OpSyncLocal: between host copies and device memory.
class Sync final : public RangeOperation {
public:
    Sync(std::shared_ptr<Device> device, std::string name, std::vector<ResourceRange> ranges,
         SyncDirection direction)
        : RangeOperation(std::move(device), std::move(name), std::move(ranges)), direction_(direction) {}

    [[nodiscard]] OperationPtr substituted(const Substitution& by) const override {
        auto ranges = by.synced(ranges_);
        return ranges.empty() ? nullptr : make_sync(std::move(ranges), direction_);
    }
    [[nodiscard]] SyncDirection syncs() const noexcept override { return direction_; }
    [[nodiscard]] Moved moved(const StreamPlan& /*plan*/, size_t /*index*/) const override {
        uint64_t bytes = 0;
        for (const auto& range : ranges_)
            bytes += image_of(*range.resource) ? range.resource->nbytes() : range.size;
        return direction_ == SyncDirection::to_device ? Moved{0, bytes} : Moved{bytes, 0};
    }

    void declare(StreamPlan& plan) const override {
        const bool up = direction_ == SyncDirection::to_device;
        for (const auto& range : ranges_) {
            const Resource& resource = *range.resource;
            if (!resource.has_host_copy()) {
                // The one memory: each operation that writes it brings it to the host at its own end.
                plan.mention(*range.resource);
                if (up && resource.memory_type() != MemoryType::storage) plan.bring_to_device(range);
                continue;
            }
            if (up) {
                plan.use_host(range, UseKind::transfer_read);
                plan.overwrite(range);
            } else {
                plan.use(range, UseKind::transfer_read);
                plan.use_host(range, UseKind::transfer_write);
            }
            plan.note_sync(range, direction_);
        }
    }

    void record(Recorder& to) const override {
        for (const auto& range : ranges_) {
            const Resource& resource = *range.resource;
            if (!resource.has_host_copy() || range.size == 0) continue;
            const auto* image = image_of(resource);
            if (!image) {
                to.sync(range, static_cast<const Buffer&>(resource).handle(), direction_);
                continue;
            }
            const VkBufferImageCopy region = image->whole(resource.host_offset());
            if (direction_ == SyncDirection::to_device)
                to.vk.vkCmdCopyBufferToImage(to.commands, resource.host_buffer(), image->handle(),
                                             VK_IMAGE_LAYOUT_GENERAL, 1, &region);
            else
                to.vk.vkCmdCopyImageToBuffer(to.commands, image->handle(), VK_IMAGE_LAYOUT_GENERAL,
                                             resource.host_buffer(), 1, &region);
        }
    }

private:
    const SyncDirection direction_;
};

class Copy final : public RangeOperation {
public:
    using RangeOperation::RangeOperation;

    [[nodiscard]] OperationPtr substituted(const Substitution& by) const override {
        return make_copy(by.ranges(ranges_));
    }

    void declare(StreamPlan& plan) const override {
        plan.use(ranges_.front(), UseKind::transfer_read);
        for (size_t i = 1; i < ranges_.size(); ++i) plan.overwrite(ranges_[i]);
    }

    void record(Recorder& to) const override {
        const ResourceRange& source = ranges_.front();
        const auto* source_image = dynamic_cast<const Image*>(source.resource.get());
        const auto* source_buffer = dynamic_cast<const Buffer*>(source.resource.get());
        for (size_t i = 1; i < ranges_.size(); ++i) {
            const ResourceRange& target = ranges_[i];
            if (target.size == 0) continue;
            const auto* image = dynamic_cast<const Image*>(target.resource.get());
            const auto* buffer = dynamic_cast<const Buffer*>(target.resource.get());
            if (source_buffer && buffer) {
                const VkBufferCopy region{source.offset, target.offset, target.size};
                to.vk.vkCmdCopyBuffer(to.commands, source_buffer->handle(), buffer->handle(), 1, &region);
            } else if (source_image && image) {
                const ImageShape& shape = image->shape();
                const VkImageSubresourceLayers layers{VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, shape.layers};
                const VkImageCopy region{layers, {}, layers, {}, {shape.width, shape.height, shape.depth}};
                to.vk.vkCmdCopyImage(to.commands, source_image->handle(), VK_IMAGE_LAYOUT_GENERAL,
                                     image->handle(), VK_IMAGE_LAYOUT_GENERAL, 1, &region);
            } else if (source_image) {
                const VkBufferImageCopy region = source_image->whole(target.offset);
                to.vk.vkCmdCopyImageToBuffer(to.commands, source_image->handle(), VK_IMAGE_LAYOUT_GENERAL,
                                             buffer->handle(), 1, &region);
            } else {
                const VkBufferImageCopy region = image->whole(source.offset);
                to.vk.vkCmdCopyBufferToImage(to.commands, source_buffer->handle(), image->handle(),
                                             VK_IMAGE_LAYOUT_GENERAL, 1, &region);
            }
        }
    }
};

// Texels are copied to and from a buffer at offsets that are multiples of four and of a texel's size.
void check_texel_offset(const ResourceRange& buffer, const Image& image) {
    const uint64_t texel = image.shape().format->texel_bytes;
    const uint64_t step = std::lcm(texel, uint64_t{4});
    if (buffer.offset % step != 0)
        throw Error(ErrorKind::invalid_argument,
                    "OpCopy between the " + image.label() + " and the " + buffer.label() +
                        " needs a byte offset that is a multiple of " + std::to_string(step) +
                        ". Slice the tensor elsewhere, or copy through a tensor of its own");
}

OperationPtr make_sync(std::vector<ResourceRange> ranges, SyncDirection direction) {
    const char* name = direction == SyncDirection::to_device ? "OpSyncDevice" : "OpSyncLocal";
    auto device = common_device(ranges, name);
    need_host_copies(ranges);
    return std::make_shared<Sync>(std::move(device), name, merged(std::move(ranges)), direction);
}

}  // namespace

OperationPtr make_sync_device(std::vector<ResourceRange> ranges) {
    return make_sync(std::move(ranges), SyncDirection::to_device);
}

OperationPtr make_sync_local(std::vector<ResourceRange> ranges) {
    return make_sync(std::move(ranges), SyncDirection::to_host);
}

void require_fit(const ResourceRange& source, const ResourceRange& destination) {
    if (destination.size != source.size)
        throw Error(ErrorKind::invalid_argument, "OpCopy needs equal sizes: the source " + source.label() +
                                                     " has " + std::to_string(source.size) +
                                                     " bytes, the destination " + destination.label() +
                                                     " has " + std::to_string(destination.size));
    const auto* from = dynamic_cast<const Image*>(source.resource.get());
    const auto* to = dynamic_cast<const Image*>(destination.resource.get());
    if (from && to &&
        (from->whole_region() != to->whole_region() ||
         from->shape().format->texel_bytes != to->shape().format->texel_bytes))
        throw Error(ErrorKind::invalid_argument, "OpCopy between images needs equal sizes and texels: a " +
                                                     describe(from->shape()) + " does not fit a " +
                                                     describe(to->shape()));
}

OperationPtr make_copy(std::vector<ResourceRange> ranges) {
    auto device = common_device(ranges, "OpCopy");
    if (ranges.size() < 2)
        throw Error(ErrorKind::invalid_argument, "OpCopy needs a source and at least one destination");
    const ResourceRange& source = ranges.front();
    for (size_t i = 1; i < ranges.size(); ++i) {
        const ResourceRange& destination = ranges[i];
        if (destination.overlaps(source))
            throw Error(ErrorKind::invalid_argument,
                        "OpCopy cannot copy the " + source.label() + " onto " +
                            (destination == source ? "itself: give another destination, OpCopy([from, to])"
                                                   : "the " + destination.label() + ": they overlap"));
        require_fit(source, destination);
        const auto* from = dynamic_cast<const Image*>(source.resource.get());
        const auto* to = dynamic_cast<const Image*>(destination.resource.get());
        if (from && !to) check_texel_offset(destination, *from);
        if (to && !from) check_texel_offset(source, *to);
    }
    // The source overlaps no destination.
    const Repetitions found = repetitions(ranges);
    if (found.overlap)
        throw Error(ErrorKind::invalid_argument, "OpCopy has destinations that overlap: the " +
                                                     ranges[found.overlap->first].label() + " and the " +
                                                     ranges[found.overlap->second].label());
    // A repeated destination would be written twice at once, so it is written once.
    std::vector<ResourceRange> distinct;
    distinct.reserve(ranges.size());
    for (size_t i = 0; i < ranges.size(); ++i)
        if (found.first[i] == i) distinct.push_back(std::move(ranges[i]));
    return std::make_shared<Copy>(std::move(device), "OpCopy", std::move(distinct));
}

}  // namespace kp
