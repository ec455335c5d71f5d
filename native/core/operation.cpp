#include "operation.hpp"

#include "algorithm.hpp"
#include "buffer.hpp"
#include "device.hpp"
#include "error.hpp"
#include "image.hpp"
#include "stream_plan.hpp"

#include <algorithm>

namespace kp {
namespace {

std::shared_ptr<Device> common_device(const std::vector<ResourcePtr>& resources, const char* operation) {
    if (resources.empty())
        throw Error(ErrorKind::invalid_argument,
                    std::string(operation) + " needs at least one tensor or image");
    for (const auto& resource : resources) {
        if (&resource->device() != &resources.front()->device())
            throw Error(ErrorKind::invalid_argument,
                        std::string(operation) + " got objects of different Managers: the " +
                            resource->label() + " belongs to another one than the " +
                            resources.front()->label());
        resource->require_init("record");
    }
    return resources.front()->shared_device();
}

// Twice the same object in one operation would copy over itself; once is what was meant.
std::vector<ResourcePtr> distinct(std::vector<ResourcePtr> resources) {
    std::vector<ResourcePtr> result;
    for (auto& resource : resources)
        if (std::find(result.begin(), result.end(), resource) == result.end())
            result.push_back(std::move(resource));
    return result;
}

class ResourceOperation : public Operation {
public:
    ResourceOperation(std::shared_ptr<Device> device, std::string name, std::vector<ResourcePtr> resources)
        : Operation(std::move(device), std::move(name)), resources_(std::move(resources)) {}

    void check() const override {
        for (const auto& resource : resources_) resource->require_init("use");
    }

protected:
    std::vector<ResourcePtr> resources_;
};

class SyncDevice final : public ResourceOperation {
public:
    using ResourceOperation::ResourceOperation;

    void declare(StreamPlan& plan) const override {
        for (const auto& resource : resources_) {
            if (resource->has_host_copy()) {
                plan.use_host(*resource, UseKind::transfer_read);
                plan.use(*resource, UseKind::transfer_write);
            } else {
                plan.mention(*resource);
                if (resource->memory_type() != MemoryType::storage) plan.bring_to_device(*resource);
            }
        }
    }

    void record(Recorder& to) const override {
        for (const auto& resource : resources_) {
            if (!resource->has_host_copy()) continue;
            if (const auto* image = dynamic_cast<const Image*>(resource.get())) {
                const VkBufferImageCopy region = image->whole(resource->host_offset());
                to.vk.vkCmdCopyBufferToImage(to.commands, resource->host_buffer(), image->handle(),
                                             VK_IMAGE_LAYOUT_GENERAL, 1, &region);
            } else {
                const VkBufferCopy region{resource->host_offset(), 0, resource->nbytes()};
                to.vk.vkCmdCopyBuffer(to.commands, resource->host_buffer(),
                                      static_cast<Buffer&>(*resource).handle(), 1, &region);
            }
        }
    }
};

class SyncLocal final : public ResourceOperation {
public:
    using ResourceOperation::ResourceOperation;

    void declare(StreamPlan& plan) const override {
        for (const auto& resource : resources_) {
            if (resource->has_host_copy()) {
                plan.use(*resource, UseKind::transfer_read);
                plan.use_host(*resource, UseKind::transfer_write);
            } else {
                plan.mention(*resource);
                if (resource->memory_type() != MemoryType::storage) plan.bring_to_host(*resource);
            }
        }
    }

    void record(Recorder& to) const override {
        for (const auto& resource : resources_) {
            if (!resource->has_host_copy()) continue;
            if (const auto* image = dynamic_cast<const Image*>(resource.get())) {
                const VkBufferImageCopy region = image->whole(resource->host_offset());
                to.vk.vkCmdCopyImageToBuffer(to.commands, image->handle(), VK_IMAGE_LAYOUT_GENERAL,
                                             resource->host_buffer(), 1, &region);
            } else {
                const VkBufferCopy region{0, resource->host_offset(), resource->nbytes()};
                to.vk.vkCmdCopyBuffer(to.commands, static_cast<Buffer&>(*resource).handle(),
                                      resource->host_buffer(), 1, &region);
            }
        }
    }
};

class Copy final : public ResourceOperation {
public:
    using ResourceOperation::ResourceOperation;

    void declare(StreamPlan& plan) const override {
        plan.use(*resources_.front(), UseKind::transfer_read);
        for (size_t i = 1; i < resources_.size(); ++i) plan.use(*resources_[i], UseKind::transfer_write);
    }

    void record(Recorder& to) const override {
        const auto* source_image = dynamic_cast<const Image*>(resources_.front().get());
        const auto* source_buffer = dynamic_cast<const Buffer*>(resources_.front().get());
        for (size_t i = 1; i < resources_.size(); ++i) {
            const auto* image = dynamic_cast<const Image*>(resources_[i].get());
            const auto* buffer = dynamic_cast<const Buffer*>(resources_[i].get());
            if (source_buffer && buffer) {
                const VkBufferCopy region{0, 0, buffer->nbytes()};
                to.vk.vkCmdCopyBuffer(to.commands, source_buffer->handle(), buffer->handle(), 1, &region);
            } else if (source_image && image) {
                const VkImageSubresourceLayers layers{VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
                const VkImageCopy region{
                    layers, {}, layers, {}, {image->shape().width, image->shape().height, 1}};
                to.vk.vkCmdCopyImage(to.commands, source_image->handle(), VK_IMAGE_LAYOUT_GENERAL,
                                     image->handle(), VK_IMAGE_LAYOUT_GENERAL, 1, &region);
            } else if (source_image) {
                const VkBufferImageCopy region = source_image->whole(0);
                to.vk.vkCmdCopyImageToBuffer(to.commands, source_image->handle(), VK_IMAGE_LAYOUT_GENERAL,
                                             buffer->handle(), 1, &region);
            } else {
                const VkBufferImageCopy region = image->whole(0);
                to.vk.vkCmdCopyBufferToImage(to.commands, source_buffer->handle(), image->handle(),
                                             VK_IMAGE_LAYOUT_GENERAL, 1, &region);
            }
        }
    }
};

class Fill final : public ResourceOperation {
public:
    Fill(std::shared_ptr<Device> device, std::vector<ResourcePtr> resources, uint32_t word)
        : ResourceOperation(std::move(device), "OpFill", std::move(resources)), word_(word) {}

    void declare(StreamPlan& plan) const override {
        for (const auto& resource : resources_) plan.use(*resource, UseKind::transfer_write);
    }

    void record(Recorder& to) const override {
        for (const auto& resource : resources_) {
            const auto& buffer = static_cast<const Buffer&>(*resource);
            to.vk.vkCmdFillBuffer(to.commands, buffer.handle(), 0, buffer.handle_size(), word_);
        }
    }

private:
    uint32_t word_;
};

class Dispatch final : public Operation {
public:
    Dispatch(std::shared_ptr<Algorithm> algorithm, std::array<uint32_t, 3> groups, std::string push_constants)
        : Operation(algorithm->shared_device(), "OpAlgoDispatch"),
          algorithm_(std::move(algorithm)),
          groups_(groups),
          push_constants_(std::move(push_constants)) {}

    void check() const override {
        algorithm_->require_init("dispatch");
        for (const auto& resource : algorithm_->resources()) resource->require_init("use");
    }

    void declare(StreamPlan& plan) const override {
        plan.mention(*algorithm_);
        for (const auto& use : algorithm_->uses()) plan.use(*use.resource, use.use);
        if (algorithm_->shader()->info().physical_storage_buffer)
            plan.full_barrier();  // it reaches memory that no binding names
    }

    void record(Recorder& to) const override {
        const Pipeline& pipeline = algorithm_->pipeline();
        const PipelineLayout& layout = *pipeline.layout;
        to.bind(pipeline.handle, layout.handle, algorithm_->set());
        if (layout.push.size != 0)
            to.vk.vkCmdPushConstants(to.commands, layout.handle, VK_SHADER_STAGE_COMPUTE_BIT,
                                     layout.push.offset, layout.push.size, push_constants_.data());
        to.vk.vkCmdDispatch(to.commands, groups_[0], groups_[1], groups_[2]);
    }

private:
    std::shared_ptr<Algorithm> algorithm_;
    std::array<uint32_t, 3> groups_;
    std::string push_constants_;
};

class Custom final : public Operation {
public:
    Custom(std::shared_ptr<Device> device, std::string name, std::function<void(VkCommandBuffer)> record,
           CustomUses uses)
        : Operation(std::move(device), std::move(name)), record_(std::move(record)), uses_(std::move(uses)) {}

    void check() const override {
        for (const auto* list : {&uses_.reads, &uses_.writes})
            for (const auto& resource : *list) resource->require_init("use");
    }

    void declare(StreamPlan& plan) const override {
        if (!uses_.declared) {
            plan.full_barrier();
            return;
        }
        for (const auto& resource : uses_.reads) plan.use(*resource, UseKind::any_read);
        for (const auto& resource : uses_.writes) plan.use(*resource, UseKind::everything);
    }

    void record(Recorder& to) const override {
        record_(to.commands);
        to.forget_bindings();
    }

    [[nodiscard]] bool calls_out() const noexcept override { return true; }

private:
    std::function<void(VkCommandBuffer)> record_;
    CustomUses uses_;
};

}  // namespace

OperationPtr make_sync_device(std::vector<ResourcePtr> resources) {
    auto device = common_device(resources, "OpSyncDevice");
    return std::make_shared<SyncDevice>(std::move(device), "OpSyncDevice", distinct(std::move(resources)));
}

OperationPtr make_sync_local(std::vector<ResourcePtr> resources) {
    auto device = common_device(resources, "OpSyncLocal");
    return std::make_shared<SyncLocal>(std::move(device), "OpSyncLocal", distinct(std::move(resources)));
}

OperationPtr make_copy(std::vector<ResourcePtr> resources) {
    auto device = common_device(resources, "OpCopy");
    if (resources.size() < 2)
        throw Error(ErrorKind::invalid_argument, "OpCopy needs a source and at least one destination");
    const Resource& source = *resources.front();
    for (size_t i = 1; i < resources.size(); ++i) {
        const Resource& destination = *resources[i];
        if (&destination == &source)
            throw Error(ErrorKind::invalid_argument,
                        "OpCopy cannot copy the " + source.label() + " onto itself");
        if (destination.nbytes() != source.nbytes())
            throw Error(ErrorKind::invalid_argument,
                        "OpCopy needs equal sizes: the source " + source.label() + " has " +
                            std::to_string(source.nbytes()) + " bytes, destination " + std::to_string(i) +
                            " (" + destination.label() + ") has " + std::to_string(destination.nbytes()));
        const auto* from = dynamic_cast<const Image*>(&source);
        const auto* to = dynamic_cast<const Image*>(&destination);
        if (from && to &&
            (from->shape().width != to->shape().width || from->shape().height != to->shape().height ||
             from->format() != to->format()))
            throw Error(ErrorKind::invalid_argument,
                        "OpCopy between images needs equal width, height, channels and format");
    }
    return std::make_shared<Copy>(std::move(device), "OpCopy", distinct(std::move(resources)));
}

OperationPtr make_fill(std::vector<std::shared_ptr<Buffer>> buffers, uint32_t word) {
    std::vector<ResourcePtr> resources(buffers.begin(), buffers.end());
    auto device = common_device(resources, "OpFill");
    return std::make_shared<Fill>(std::move(device), distinct(std::move(resources)), word);
}

OperationPtr make_dispatch(std::shared_ptr<Algorithm> algorithm, std::array<uint32_t, 3> groups,
                           std::string push_constants) {
    algorithm->require_init("dispatch");
    const auto& limits = algorithm->device().limits();
    for (size_t axis = 0; axis < 3; ++axis)
        if (groups[axis] == 0 || groups[axis] > limits.maxComputeWorkGroupCount[axis])
            throw Error(
                ErrorKind::invalid_argument,
                "Cannot dispatch " + std::to_string(groups[0]) + " x " + std::to_string(groups[1]) + " x " +
                    std::to_string(groups[2]) + " workgroups: axis " + "xyz"[axis] + " must be 1 to " +
                    std::to_string(limits.maxComputeWorkGroupCount[axis]) +
                    " on this device (maxComputeWorkGroupCount). Use a larger local size or more axes");
    if (push_constants.empty()) push_constants = algorithm->push_constants();
    const auto& push = algorithm->pipeline().layout->push;
    if (push_constants.empty() && push.size != 0)
        push_constants.assign(push.size,
                              '\0');  // a block whose values nobody gave reads as zero, not as noise
    if (push_constants.size() != push.size)
        throw Error(ErrorKind::invalid_argument,
                    "Push constants of " + std::to_string(push_constants.size()) +
                        " bytes do not fit the shader's block of " + std::to_string(push.size) + " bytes");
    return std::make_shared<Dispatch>(std::move(algorithm), groups, std::move(push_constants));
}

OperationPtr make_custom(std::shared_ptr<Device> device, std::string name,
                         std::function<void(VkCommandBuffer)> record, CustomUses uses) {
    for (const auto* list : {&uses.reads, &uses.writes})
        for (const auto& resource : *list)
            if (&resource->device() != device.get())
                throw Error(ErrorKind::invalid_argument, "The " + resource->label() + " that " + name +
                                                             " declares belongs to another Manager");
    return std::make_shared<Custom>(std::move(device), std::move(name), std::move(record), std::move(uses));
}

}  // namespace kp
