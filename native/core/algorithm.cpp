#include "algorithm.hpp"

#include "buffer.hpp"
#include "device.hpp"
#include "error.hpp"
#include "image.hpp"

#include <algorithm>

namespace kp {
namespace {

std::string describe(const BindingInfo& binding) {
    const std::string& name = binding.instance_name.empty() ? binding.block_name : binding.instance_name;
    return "binding " + std::to_string(binding.binding) + (name.empty() ? "" : " ('" + name + "')");
}

constexpr uint32_t spirv_dim_2d = 1;

ScalarKind scalar_of(const ImageShape& shape) {
    if (shape.normalized || shape.component.starts_with("float")) return ScalarKind::floating;
    return shape.component.starts_with("u") ? ScalarKind::unsigned_int : ScalarKind::signed_int;
}

UseKind use_of(const BindingInfo& binding) {
    if (binding.kind == DescriptorKind::uniform_buffer) return UseKind::uniform_read;
    switch (binding.access) {
    case Access::read: return UseKind::shader_read;
    case Access::write: return UseKind::shader_write;
    default: return UseKind::shader_read_write;
    }
}

}  // namespace

Algorithm::Algorithm(std::shared_ptr<Device> owner, std::shared_ptr<Shader> shader,
                     std::vector<ResourceRange> ranges, std::array<uint32_t, 3> workgroup,
                     const Specialization& constants, std::string push_constants)
    : Object(std::move(owner), ObjectKind::algorithm),
      shader_(std::move(shader)),
      ranges_(std::move(ranges)),
      workgroup_(workgroup),
      push_constants_(std::move(push_constants)) {
    if (!shader_->belongs_to(device()))
        throw Error(ErrorKind::invalid_argument, "The shader belongs to another Manager");
    for (size_t i = 0; i < ranges_.size(); ++i) {
        if (&ranges_[i].resource->device() != &device())
            throw Error(ErrorKind::invalid_argument,
                        "Memory object " + std::to_string(i) + " (" + ranges_[i].label() +
                            ") belongs to another Manager; an algorithm binds objects of its own");
        ranges_[i].resource->require_init("bind");
    }
    const ShaderInfo& info = shader_->info();
    const uint64_t block = info.push_constants ? info.push_constants->size : 0;
    if (!push_constants_.empty() && push_constants_.size() != block)
        throw Error(ErrorKind::invalid_argument,
                    "Push constants of " + std::to_string(push_constants_.size()) +
                        " bytes do not fit the shader's block of " + std::to_string(block) + " bytes");
    for (const auto& binding : info.bindings) {
        if (binding.set != 0)
            throw Error(ErrorKind::invalid_argument,
                        "The shader's " + describe(binding) + " is in descriptor set " +
                            std::to_string(binding.set) +
                            ", but an algorithm binds set 0 only. Declare it with set = 0");
        if (binding.count != 1)
            throw Error(
                ErrorKind::invalid_argument,
                "The shader's " + describe(binding) +
                    " is an array of descriptors, but an algorithm binds one memory object to each binding");
        if (binding.binding >= ranges_.size())
            throw Error(ErrorKind::invalid_argument, "Too few tensors: the shader's " + describe(binding) +
                                                         " needs memory object number " +
                                                         std::to_string(binding.binding) + ", but " +
                                                         std::to_string(ranges_.size()) + " were given");
    }
    pipeline_ = device().pipelines().pipeline(shader_, constants);
    if (pipeline_->layout->sets.empty()) return;
    set_ = device().pipelines().allocate_set(*pipeline_->layout, 0, info);
    try {
        // Compiling took its time: under the lock nobody destroys what is bound.
        const std::lock_guard lock(device().graph_mutex());
        for (const auto& range : ranges_) range.resource->require_init("bind");
        for (const auto& binding : info.bindings) bind(binding, ranges_[binding.binding]);
    } catch (...) {
        device().pipelines().free_set(set_);
        throw;
    }
}

Algorithm::~Algorithm() { finalize(); }

void Algorithm::bind(const BindingInfo& binding, const ResourceRange& range) {
    Resource& resource = *range.resource;
    const auto& limits = device().limits();
    VkDescriptorBufferInfo buffer_info{};
    VkDescriptorImageInfo image_info{};
    VkWriteDescriptorSet write{VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET};
    write.dstSet = set_.handle;
    write.dstBinding = binding.binding;
    write.descriptorCount = 1;
    write.descriptorType = PipelineStore::descriptor_type(binding.kind);

    const auto wrong_kind = [&](const char* given) {
        throw Error(ErrorKind::invalid_argument, "The shader's " + describe(binding) + " is a " +
                                                     to_string(binding.kind) + ", but memory object number " +
                                                     std::to_string(binding.binding) + " is " + given);
    };
    switch (binding.kind) {
    case DescriptorKind::storage_buffer:
    case DescriptorKind::uniform_buffer: {
        auto* buffer = dynamic_cast<Buffer*>(&resource);
        if (!buffer) wrong_kind("an image. Use mgr.tensor() for it");
        const bool uniform = binding.kind == DescriptorKind::uniform_buffer;
        const uint64_t limit = uniform ? limits.maxUniformBufferRange : limits.maxStorageBufferRange;
        if (range.size > limit)
            throw Error(
                ErrorKind::invalid_argument,
                "The " + range.label() + " has " + std::to_string(range.size) +
                    " bytes, but a shader of this device sees at most " + std::to_string(limit) + " bytes (" +
                    (uniform ? "maxUniformBufferRange" : "maxStorageBufferRange") +
                    ") of one binding. Bind windows of it (t[a:b]), one dispatch each, or reach it through "
                    "its buffer address");
        const uint64_t alignment =
            uniform ? limits.minUniformBufferOffsetAlignment : limits.minStorageBufferOffsetAlignment;
        if (range.offset % std::max<uint64_t>(alignment, 1) != 0)
            throw Error(
                ErrorKind::invalid_argument,
                "The shader's " + describe(binding) + " cannot begin at byte " +
                    std::to_string(range.offset) + " of the " + resource.label() +
                    ": on this device it must be a multiple of " + std::to_string(alignment) + " bytes (" +
                    (uniform ? "minUniformBufferOffsetAlignment" : "minStorageBufferOffsetAlignment") +
                    "). Slice there, bind the whole tensor and pass the first element's number as a push "
                    "constant, or copy the part with OpCopy into a tensor of its own");
        buffer_info = {buffer->handle(), range.offset, range.size};
        write.pBufferInfo = &buffer_info;
        break;
    }
    case DescriptorKind::storage_image: {
        auto* image = dynamic_cast<Image*>(&resource);
        if (!image) wrong_kind("a tensor. Use mgr.image() for it");
        // What a binding that is declared and not used would have to be does not matter.
        const bool used = binding.access != Access::none;
        if (used &&
            (binding.image_dim != spirv_dim_2d || binding.image_arrayed || binding.image_multisampled))
            wrong_kind("a two-dimensional image of one layer. Declare it as image2D");
        if (used && binding.image_scalar != scalar_of(image->shape()))
            wrong_kind(
                ("an image of " + std::string(image->shape().normalized ? "normalized " : "") +
                 image->shape().component +
                 ". A shader sees float and normalized components as image2D, signed ones as iimage2D, "
                 "unsigned ones as uimage2D")
                    .c_str());
        image_info = {VK_NULL_HANDLE, image->view(), VK_IMAGE_LAYOUT_GENERAL};
        write.pImageInfo = &image_info;
        break;
    }
    default:
        throw Error(ErrorKind::unimplemented,
                    "The shader's " + describe(binding) + " is a " + to_string(binding.kind) +
                        ", but an algorithm binds storage buffers, uniform buffers and storage "
                        "images. Use one of these");
    }
    device().vk().vkUpdateDescriptorSets(device().handle(), 1, &write, 0, nullptr);
    if (binding.access != Access::none) uses_.push_back({range, use_of(binding)});
}

void Algorithm::set_name(const std::string& name) {
    Object::set_name(name);
    device().name_handle(VK_OBJECT_TYPE_DESCRIPTOR_SET, handle_value(set_.handle), name);
}

void Algorithm::release(std::vector<Point> points) {
    if (set_.handle == VK_NULL_HANDLE) return;
    struct SetOwner {
        Device& device;
        DescriptorSet set;
        SetOwner(Device& d, DescriptorSet s) : device(d), set(s) {}
        ~SetOwner() { device.pipelines().free_set(set); }
    };
    const DescriptorSet set = std::exchange(set_, {});
    if (points.empty())
        device().pipelines().free_set(set);
    else
        device().retired().push(std::move(points), std::make_shared<SetOwner>(device(), set));
}

}  // namespace kp
