#include "record/algorithm.hpp"

#include "base/error.hpp"
#include "base/long_call.hpp"
#include "device/device.hpp"
#include "record/descriptor_writes.hpp"
#include "record/substitution.hpp"
#include "resource/buffer.hpp"
#include "resource/image.hpp"
#include "resource/make_object.hpp"
#include "spirv/declared_format.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace kp {
namespace {

std::string describe(const BindingInfo& binding) {
    const std::string& name = binding.instance_name.empty() ? binding.block_name : binding.instance_name;
    return "binding " + std::to_string(binding.binding) + (name.empty() ? "" : " ('" + name + "')");
}

// The image's dimensions as SpvDim.
uint32_t dim_of(const ImageShape& shape) { return shape.dims - 1; }

std::string name_of(uint32_t dim, bool arrayed, bool multisampled) {
    constexpr const char* names[] = {"1D", "2D", "3D", "Cube", "Rect", "Buffer", "SubpassData"};
    return std::string(dim < std::size(names) ? names[dim] : "?") + (multisampled ? "MS" : "") +
           (arrayed ? "Array" : "");
}

void free_view(const DeviceContext& context, uint64_t view) noexcept {
    context.vk().vkDestroyBufferView(context.handle(), handle_from<VkBufferView>(view), nullptr);
}

std::tuple<uint32_t, uint32_t, uint32_t> place_of(const Argument& argument) {
    return {argument.set, argument.binding, argument.element};
}

UseKind use_of(const BindingInfo& binding) {
    if (binding.kind == DescriptorKind::uniform_buffer) return UseKind::uniform_read;
    if (binding.kind == DescriptorKind::sampled_image ||
        binding.kind == DescriptorKind::combined_image_sampler)
        return UseKind::sampled_read;
    switch (binding.access) {
    case Access::read: return UseKind::shader_read;
    case Access::write: return UseKind::shader_write;
    default: return UseKind::shader_read_write;
    }
}

}  // namespace

Algorithm::Algorithm(std::shared_ptr<Device> owner, std::shared_ptr<Shader> shader,
                     std::vector<Argument> arguments, std::array<uint32_t, 3> workgroup,
                     const Specialization& constants, std::string push_constants)
    : Object(std::move(owner), ObjectKind::algorithm),
      shader_(std::move(shader)),
      constants_(constants),
      arguments_(std::move(arguments)),
      workgroup_(workgroup),
      push_constants_(std::move(push_constants)) {
    if (!shader_->belongs_to(device()))
        throw Error(ErrorKind::invalid_argument, "The shader belongs to another Manager");
    check_arguments();
    const ShaderInfo& info = shader_->info();
    const uint64_t block = info.push_constants ? info.push_constants->size : 0;
    if (!push_constants_.empty() && push_constants_.size() != block)
        throw Error(ErrorKind::invalid_argument,
                    "Push constants of " + std::to_string(push_constants_.size()) +
                        " bytes do not fit the shader's block of " + std::to_string(block) + " bytes");
    index_arguments();
    const DescriptorCounts counts = count_descriptors();
    {
        const auto in_use = device().pipelines().use();
        pipeline_ = device().pipelines().pipeline(shader_, constants, counts);
        bind_all(counts);
    }
    warn_of_overlaps();
}

Algorithm::Algorithm(const AlgorithmBase& base, std::vector<Argument> arguments,
                     std::array<uint32_t, 3> workgroup)
    : Object(base.device, ObjectKind::algorithm),
      shader_(base.pipeline->shader),
      pipeline_(base.pipeline),
      constants_(base.constants),
      arguments_(std::move(arguments)),
      workgroup_(workgroup) {
    check_arguments();
    index_arguments();
    const DescriptorCounts counts = count_descriptors();
    {
        const auto in_use = device().pipelines().use();
        bind_all(counts);
    }
    warn_of_overlaps();
}

void Algorithm::check_arguments() const {
    for (const Argument& argument : arguments_) {
        const bool foreign = (argument.range.resource && &argument.range.resource->device() != &device()) ||
                             (argument.sampler && argument.sampler->context() != &device());
        if (foreign)
            throw Error(
                ErrorKind::invalid_argument,
                "Memory object " + std::to_string(argument.binding) + " (" +
                    (argument.range.resource ? argument.range.label() : "a sampler") +
                    ") belongs to another Manager; an algorithm binds objects of its own. Copy it over with "
                    ".to(mgr)");
        if (argument.range.resource) argument.range.resource->require_init("bind");
    }
}

void Algorithm::bind_all(const DescriptorCounts& counts) {
    const PipelineLayout& layout = *pipeline_->layout;
    handles_.resize(layout.sets.size(), VK_NULL_HANDLE);
    if (layout.instruments != VK_NULL_HANDLE) handles_.push_back(layout.instruments);
    if (layout.sets.empty()) return;
    try {
        for (uint32_t set = 0; set < layout.sets.size(); ++set) {
            if (layout.descriptors[set].empty()) continue;
            sets_.push_back(device().pipelines().allocate_set(layout, set));
            handles_[set] = sets_.back().handle;
        }
        // Compiling took some time, so check again. No thread can destroy bound objects under this lock.
        const std::lock_guard lock(device().graph_mutex());
        for (const Argument& argument : arguments_)
            if (argument.range.resource) argument.range.resource->require_init("bind");
        DescriptorWrites writes;
        for (const auto& binding : shader_->info().bindings) {
            if (!binding.used) continue;  // it has no place in the layout
            const uint32_t count = counts.of(binding);
            for (uint32_t element = 0; element < count; ++element)
                if (const Argument* argument = find(binding.set, binding.binding, element))
                    bind(binding, *argument, writes);
        }
        writes.send(device());
    } catch (...) {
        free_sets();
        throw;
    }
}

// The invocations of a dispatch are in no order. A shader may use one memory through two bindings, element by
// element; if these begin at different places, an element of one is another element of the other.
void Algorithm::warn_of_overlaps() {
    const auto writes = [](const Binding& each) {
        return each.use == UseKind::shader_write || each.use == UseKind::shader_read_write;
    };
    const auto written = std::ranges::find_if(uses_, writes);
    if (uses_.size() < 2 || written == uses_.end()) return;
    for (auto one = written; one != uses_.end(); ++one) {
        if (!writes(*one)) continue;
        const auto apart = std::ranges::find_if(uses_, [&](const Binding& other) {
            return one->range.overlaps(other.range) && one->range.place().begin != other.range.place().begin;
        });
        if (apart == uses_.end()) continue;
        try {
            warn_user("The shader writes the " + one->range.label() + " and has the " + apart->range.label() +
                      " as another binding: they overlap, and begin at different bytes, so invocations find "
                      "what others write, in no order. Copy one of them first, or bind the whole once");
        } catch (...) {
            free_sets();
            throw;
        }
        return;
    }
}

Algorithm::~Algorithm() { finalize(); }

std::shared_ptr<Algorithm> Algorithm::substituted(const Substitution& by) {
    auto arguments = arguments_;
    bool changed = false;
    for (auto& argument : arguments) {
        if (!by.changes(argument.range)) continue;
        argument.range = by.range(argument.range);
        changed = true;
    }
    if (!changed) return std::static_pointer_cast<Algorithm>(shared_from_this());
    auto other = make_object<Algorithm>(shared_device(), shader_, std::move(arguments), workgroup_,
                                        constants_, push_constants_);
    if (!name().empty()) other->set_name(name());
    return other;
}

void Algorithm::supersede(const std::shared_ptr<Algorithm>& next) {
    std::shared_ptr<Algorithm> before;  // freed after the lock
    const std::lock_guard lock(device().graph_mutex());
    before = succession_.pass_on(next, next->succession_);
    outdate_recordings();  // they go on with this one, and say so
}

std::shared_ptr<Algorithm> Algorithm::successor() const {
    const std::lock_guard lock(device().graph_mutex());
    return succession_.latest();
}

const Argument* Algorithm::find(uint32_t set, uint32_t binding, uint32_t element) const noexcept {
    // Usually argument i is binding i of set 0.
    if (binding < arguments_.size()) {
        const Argument& likely = arguments_[binding];
        if (likely.set == set && likely.binding == binding && likely.element == element) return &likely;
    }
    if (by_place_.empty()) {
        for (const Argument& argument : arguments_)
            if (argument.set == set && argument.binding == binding && argument.element == element)
                return &argument;
        return nullptr;
    }
    const auto found = std::lower_bound(
        by_place_.begin(), by_place_.end(), std::tuple(set, binding, element),
        [this](uint32_t position, const auto& place) { return place_of(arguments_[position]) < place; });
    if (found == by_place_.end() || place_of(arguments_[*found]) != std::tuple(set, binding, element))
        return nullptr;
    return &arguments_[*found];
}

void Algorithm::index_arguments() {
    constexpr size_t few = 32;  // searching up to this many is as fast as making the index
    if (arguments_.size() <= few) return;
    by_place_.resize(arguments_.size());
    std::iota(by_place_.begin(), by_place_.end(), 0u);
    std::stable_sort(by_place_.begin(), by_place_.end(), [this](uint32_t a, uint32_t b) {
        return place_of(arguments_[a]) < place_of(arguments_[b]);
    });
}

DescriptorCounts Algorithm::count_descriptors() const {
    DescriptorCounts counts;
    for (const auto& binding : shader_->info().bindings) {
        uint32_t given = 0;
        for (const Argument& argument : arguments_)
            if (argument.set == binding.set && argument.binding == binding.binding)
                given = std::max(given, argument.element + 1);
        if (binding.count == 0) counts.runtime.push_back({binding.set, binding.binding, std::max(given, 1u)});
        if (!binding.used) continue;
        const uint32_t needed = std::max(binding.count, 1u);
        if (given > needed && binding.count != 0)
            throw Error(ErrorKind::invalid_argument,
                        "The shader's " + describe(binding) + " is an array of " + std::to_string(needed) +
                            " " + to_string(binding.kind) + "s; " + std::to_string(given) + " were given");
        for (uint32_t element = 0; element < std::max(needed, given); ++element)
            if (!find(binding.set, binding.binding, element))
                throw Error(ErrorKind::invalid_argument,
                            "Too few tensors: the shader's " + describe(binding) +
                                (binding.set ? " of set " + std::to_string(binding.set) : "") +
                                (binding.count == 1 ? "" : ", element " + std::to_string(element) + ",") +
                                " needs a memory object, and none was given");
    }
    return counts;
}

bool Algorithm::fits(const std::array<uint32_t, 3>& groups) const noexcept {
    const auto& most = device().limits().maxComputeWorkGroupCount;
    return groups[0] <= most[0] && groups[1] <= most[1] && groups[2] <= most[2];
}

Launch Algorithm::launch(const std::array<uint32_t, 3>& groups) const {
    if (fits(groups)) [[likely]]
        return {pipeline_, groups, {}, {}};
    require_init("dispatch");
    return device().pipelines().launch(shader_, constants_, count_descriptors(), groups);
}

void Algorithm::check() const {
    require_init("dispatch");
    for (const Argument& argument : arguments_)
        if (argument.range.resource) argument.range.resource->require_init("use");
}

void Algorithm::bind(const BindingInfo& binding, const Argument& argument, DescriptorWrites& writes) {
    const ResourceRange& range = argument.range;
    const auto& limits = device().limits();
    const DescriptorPlace place{handles_[binding.set], binding.binding, argument.element,
                                PipelineStore::descriptor_type(binding.kind)};

    const auto wrong_kind = [&](const std::string& given) {
        throw Error(ErrorKind::invalid_argument, "The shader's " + describe(binding) + " is a " +
                                                     to_string(binding.kind) + ", but memory object number " +
                                                     std::to_string(binding.binding) + " is " + given);
    };
    // If a binding is declared but not used, only the argument's kind matters.
    const bool used = binding.access != Access::none;
    const auto image_of = [&]() -> const Image& {
        auto* image = dynamic_cast<Image*>(range.resource.get());
        if (!image) wrong_kind(range.resource ? "a tensor. Use mgr.image() for it" : "a sampler alone");
        const ImageShape& shape = image->shape();
        const std::string word = binding.kind == DescriptorKind::storage_image   ? "image"
                                 : binding.kind == DescriptorKind::sampled_image ? "texture"
                                                                                 : "sampler";
        if (used && (binding.image_dim != dim_of(shape) || binding.image_arrayed != shape.arrayed ||
                     binding.image_multisampled))
            wrong_kind("a " + kp::describe(shape) + ", and the shader declares " + word +
                       name_of(binding.image_dim, binding.image_arrayed, binding.image_multisampled) +
                       ": declare it as " + word + name_of(dim_of(shape), shape.arrayed, false) +
                       ", or make another image");
        if (used && binding.image_scalar != shape.format->scalar)
            wrong_kind(
                "a " + kp::describe(shape) +
                ". A shader sees float and normalized components as image2D (sampler2D), signed ones as "
                "iimage2D, unsigned ones as uimage2D");
        return *image;
    };
    const auto sampled = [&](const Image& image) {
        if (!image.sampleable())
            throw Error(ErrorKind::unimplemented,
                        "The " + image.label() + ", a " + kp::describe(image.shape()) +
                            ", cannot be sampled on this device: use a storage image");
    };
    const auto check_filter = [&](const Image& image, const Sampler& sampler) {
        if (sampler.info().linear && !image.filterable())
            throw Error(ErrorKind::invalid_argument,
                        "The " + image.label() + ", a " + kp::describe(image.shape()) +
                            ", cannot be filtered on this device: use a sampler with filter=\"nearest\"");
        if (sampler.info().unnormalized && (image.shape().dims == 3 || image.shape().arrayed))
            throw Error(ErrorKind::invalid_argument,
                        "A sampler with unnormalized coordinates reads 1D and 2D images, "
                        "not a " +
                            kp::describe(image.shape()));
    };
    switch (binding.kind) {
    case DescriptorKind::storage_buffer:
    case DescriptorKind::uniform_buffer: {
        auto* buffer = dynamic_cast<Buffer*>(range.resource.get());
        if (!buffer) wrong_kind(range.resource ? "an image. Use mgr.tensor() for it" : "a sampler");
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
        if (range.size == 0) {
            // Vulkan has no range of zero bytes, so bind one byte. It is smaller than any element except a
            // one-byte element, so the shader finds an empty array and reads and writes nothing.
            writes.add(place, VkDescriptorBufferInfo{buffer->handle(), 0, 1});
            note_empty(binding);
            return;
        }
        if (range.offset % std::max<uint64_t>(alignment, 1) != 0)
            throw Error(
                ErrorKind::invalid_argument,
                "The shader's " + describe(binding) + " cannot begin at byte " +
                    std::to_string(range.offset) + " of the " + range.resource->label() +
                    ": on this device it must be a multiple of " + std::to_string(alignment) + " bytes (" +
                    (uniform ? "minUniformBufferOffsetAlignment" : "minStorageBufferOffsetAlignment") +
                    "). Slice there, call a kernel with the part alone, which copies it, bind the whole "
                    "tensor and pass the first element's number as a push constant, or copy the part with "
                    "OpCopy into a tensor of its own");
        writes.add(place, VkDescriptorBufferInfo{buffer->handle(), range.offset, range.size});
        break;
    }
    case DescriptorKind::storage_image: {
        const Image& image = image_of();
        if (!image.storable())
            throw Error(ErrorKind::unimplemented, "The " + image.label() + ", a " +
                                                      kp::describe(image.shape()) +
                                                      ", cannot be stored to on this device: sample it");
        writes.add(place, VkDescriptorImageInfo{VK_NULL_HANDLE, image.view(), VK_IMAGE_LAYOUT_GENERAL});
        break;
    }
    case DescriptorKind::combined_image_sampler: {
        const Image& image = image_of();
        if (!argument.sampler) wrong_kind("an image with no sampler. Pass image.sampled(filter=...)");
        sampled(image);
        check_filter(image, *argument.sampler);
        writes.add(place,
                   VkDescriptorImageInfo{argument.sampler->handle(), image.view(), VK_IMAGE_LAYOUT_GENERAL});
        break;
    }
    case DescriptorKind::sampled_image: {
        const Image& image = image_of();
        sampled(image);
        writes.add(place, VkDescriptorImageInfo{VK_NULL_HANDLE, image.view(), VK_IMAGE_LAYOUT_GENERAL});
        break;
    }
    case DescriptorKind::sampler: {
        if (!argument.sampler || range.resource) wrong_kind("memory. Pass mgr.sampler(...)");
        writes.add(place, VkDescriptorImageInfo{argument.sampler->handle(), VK_NULL_HANDLE,
                                                VK_IMAGE_LAYOUT_UNDEFINED});
        break;
    }
    case DescriptorKind::uniform_texel_buffer:
    case DescriptorKind::storage_texel_buffer: {
        const auto* buffer = dynamic_cast<Buffer*>(range.resource.get());
        if (!buffer) wrong_kind(range.resource ? "an image. Use mgr.tensor() for it" : "a sampler");
        writes.add(place, view_of(binding, argument, *buffer));
        break;
    }
    default:
        throw Error(ErrorKind::unimplemented, "The shader's " + describe(binding) + " is a " +
                                                  to_string(binding.kind) +
                                                  ", but an algorithm binds buffers, images and samplers. "
                                                  "Use one of these");
    }
    if (used && range.resource) uses_.push_back({range, use_of(binding), argument.whole});
}

VkBufferView Algorithm::view_of(const BindingInfo& binding, const Argument& argument, const Buffer& buffer) {
    const ResourceRange& range = argument.range;
    const auto refuse = [&](ErrorKind kind, const std::string& why) {
        throw Error(kind, "The shader's " + describe(binding) + " is a " + to_string(binding.kind) + why);
    };
    const bool declared = binding.image_format != 0;
    const ImageFormat* format =
        declared ? find_image_format(declared_format(binding.image_format).name) : argument.texels;
    if (!format)
        refuse(ErrorKind::invalid_argument,
               declared ? " of an unknown format" : " without a format, and none was given: declare one");
    if (binding.access != Access::none && binding.image_scalar != format->scalar)
        refuse(ErrorKind::invalid_argument,
               std::string(" with texels of the format ") + format->name +
                   ". A shader sees float and normalized components as imageBuffer (samplerBuffer), signed "
                   "ones as iimageBuffer, unsigned ones as uimageBuffer");
    const bool storage = binding.kind == DescriptorKind::storage_texel_buffer;
    VkFormatProperties properties{};
    vkGetPhysicalDeviceFormatProperties(device().physical().handle, format->format, &properties);
    const VkFormatFeatureFlags needed =
        !storage         ? VkFormatFeatureFlags{VK_FORMAT_FEATURE_UNIFORM_TEXEL_BUFFER_BIT}
        : binding.atomic ? VkFormatFeatureFlags{VK_FORMAT_FEATURE_STORAGE_TEXEL_BUFFER_ATOMIC_BIT}
                         : VkFormatFeatureFlags{VK_FORMAT_FEATURE_STORAGE_TEXEL_BUFFER_BIT};
    if ((properties.bufferFeatures & needed) != needed)
        refuse(ErrorKind::unimplemented, std::string(" of the format ") + format->name + ", which '" +
                                             device().physical().properties.deviceName + "' does not have" +
                                             (binding.atomic ? " with atomics" : "") +
                                             ": use a storage buffer, or another format");
    const auto& limits = device().limits();
    if (range.size == 0 || range.size % format->texel_bytes != 0)
        refuse(ErrorKind::invalid_argument, " with texels of " + std::to_string(format->texel_bytes) +
                                                " bytes (" + format->name + "); the " + range.label() +
                                                " has " + std::to_string(range.size) +
                                                " bytes, which is not a whole number of them, at least one");
    if (const uint64_t texels = range.size / format->texel_bytes; texels > limits.maxTexelBufferElements)
        refuse(ErrorKind::invalid_argument,
               "; the " + range.label() + " has " + std::to_string(texels) +
                   " texels, but a shader of this device sees at most " +
                   std::to_string(limits.maxTexelBufferElements) +
                   " (maxTexelBufferElements). Bind windows of it (t[a:b]), one dispatch each, or declare a "
                   "storage buffer");
    if (range.offset % std::max<uint64_t>(limits.minTexelBufferOffsetAlignment, 1) != 0)
        refuse(ErrorKind::invalid_argument,
               " and cannot begin at byte " + std::to_string(range.offset) + " of the " +
                   range.resource->label() + ": on this device it must be a multiple of " +
                   std::to_string(limits.minTexelBufferOffsetAlignment) +
                   " bytes (minTexelBufferOffsetAlignment). Slice there, or copy the part with OpCopy into a "
                   "tensor of its own");
    VkBufferViewCreateInfo create{VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO};
    create.buffer = buffer.handle();
    create.format = format->format;
    create.offset = range.offset;
    create.range = range.size;
    VkBufferView view = VK_NULL_HANDLE;
    check_vk(device().vk().vkCreateBufferView(device().handle(), &create, nullptr, &view),
             "vkCreateBufferView", "a texel buffer");
    views_.emplace_back().own(device().handles(), view, &free_view);
    return view;
}

void Algorithm::note_empty(const BindingInfo& binding) {
    const auto& members = binding.layout.members;
    const bool bytes = !members.empty() && !members.back().array_strides.empty() &&
                       members.back().array_strides.front() == 1;
    if (bytes && binding.access != Access::none && unbindable_.empty()) unbindable_ = describe(binding);
}

void Algorithm::set_name(const std::string& name) {
    Object::set_name(name);
    name_handles([this](const std::string& given) {
        for (const auto& set : sets_)
            device().name_handle(VK_OBJECT_TYPE_DESCRIPTOR_SET, handle_value(set.handle), given);
        // Algorithms over the same code share these. Others may use them by now, so the first name stays.
        if (pipeline_->named.exchange(true)) return;
        device().name_handle(VK_OBJECT_TYPE_PIPELINE, handle_value(pipeline_->handle()), given);
        device().name_handle(VK_OBJECT_TYPE_SHADER_MODULE, handle_value(shader_->handle()), given);
    });
}

void Algorithm::free_sets() noexcept {
    for (const auto& set : sets_) device().pipelines().free_set(set);
    sets_.clear();
    views_.clear();
}

void Algorithm::release(std::vector<Point> points) {
    if (points.empty()) {
        free_sets();
        return;
    }
    // Work in flight uses the pipeline and the samplers too, and this algorithm may be their only owner.
    struct Owner {
        std::shared_ptr<Pipeline> pipeline;
        std::vector<std::shared_ptr<Sampler>> samplers;
        std::vector<DescriptorSet> sets;
        std::list<DeviceHandle<VkBufferView>> views;
        Device& device;
        ~Owner() {
            for (const auto& set : sets) device.pipelines().free_set(set);
        }
    };
    std::vector<std::shared_ptr<Sampler>> samplers;
    for (const Argument& argument : arguments_)
        if (argument.sampler) samplers.push_back(argument.sampler);
    const std::shared_ptr<Owner> owner(new Owner{pipeline_, std::move(samplers), {}, {}, device()});
    owner->sets.swap(sets_);
    owner->views.swap(views_);
    device().retired().push(std::move(points), owner);
}

}  // namespace kp
