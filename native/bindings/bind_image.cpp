#include "bindings.hpp"
#include "relief.hpp"

#include "record/image_operation.hpp"

namespace kp {
namespace {

const ImageFormat& format_named(const std::string& name) {
    const ImageFormat* format = find_image_format(name);
    if (!format) throw Error(ErrorKind::invalid_argument, "There is no image format '" + name + "'");
    return *format;
}

// (x, y, z, layer, width, height, depth, layers)
using RegionTuple = std::array<uint32_t, 8>;

ImageRegion region_of(const RegionTuple& r) { return {r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]}; }

void check_bytes(const Image& image, const ImageRegion& region, const Bytes& bytes, const char* action) {
    image.check_region(region, action);
    if (bytes.size != image.bytes_of(region))
        throw Error(ErrorKind::invalid_argument, "The region of the " + image.label() + " has " +
                                                     std::to_string(image.bytes_of(region)) +
                                                     " bytes, the array " + std::to_string(bytes.size));
}

void read_region(Image& image, const py::array& out, const RegionTuple& tuple) {
    const Bytes bytes = bytes_of(out, true);
    const ImageRegion region = region_of(tuple);
    check_bytes(image, region, bytes, "read");
    bring(image);
    await_points(image.pending(true));
    if (!image.host_visible()) await_staging(image.device());
    const Unlocked unlocked;
    image.read_region(bytes.data, region);
}

void write_region(Image& image, const py::array& data, const RegionTuple& tuple) {
    const Bytes bytes = bytes_of(data, false);
    const ImageRegion region = region_of(tuple);
    check_bytes(image, region, bytes, "write");
    await_points(image.pending());
    if (!image.host_visible()) await_staging(image.device());
    const Unlocked unlocked;
    image.write_region(bytes.data, region);
}

py::list formats() {
    py::list result;
    for (const ImageFormat& format : image_formats()) {
        py::dict entry;
        entry["name"] = format.name;
        entry["vulkan"] = format.vulkan;
        entry["vk_format"] = static_cast<int>(format.format);
        entry["component"] = format.component;
        entry["channels"] = format.channels;
        entry["texel_bytes"] = format.texel_bytes;
        entry["scalar"] = format.scalar == ScalarKind::floating       ? "float"
                          : format.scalar == ScalarKind::unsigned_int ? "uint"
                                                                      : "int";
        entry["plain"] = format.plain;
        result.append(entry);
    }
    return result;
}

// [(name, ["store", "sample", "filter"])] of optimal images.
py::list format_uses(const Context& context) {
    py::list result;
    for (const ImageFormat& format : image_formats()) {
        VkFormatProperties properties{};
        vkGetPhysicalDeviceFormatProperties(context.device().physical().handle, format.format, &properties);
        py::list uses;
        const VkFormatFeatureFlags features = properties.optimalTilingFeatures;
        if (features & VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT) uses.append("store");
        if (features & VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT) uses.append("sample");
        if (features & VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT) uses.append("filter");
        result.append(py::make_tuple(format.name, uses));
    }
    return result;
}

VkSamplerAddressMode address_named(const std::string& name) {
    if (name == "clamp_to_edge") return VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE;
    if (name == "clamp_to_border") return VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER;
    if (name == "repeat") return VK_SAMPLER_ADDRESS_MODE_REPEAT;
    if (name == "mirrored_repeat") return VK_SAMPLER_ADDRESS_MODE_MIRRORED_REPEAT;
    throw Error(ErrorKind::invalid_argument,
                "There is no address mode '" + name +
                    "'; use clamp_to_edge, clamp_to_border, repeat or mirrored_repeat");
}

VkBorderColor border_named(const std::string& name, bool integer) {
    if (name == "transparent_black")
        return integer ? VK_BORDER_COLOR_INT_TRANSPARENT_BLACK : VK_BORDER_COLOR_FLOAT_TRANSPARENT_BLACK;
    if (name == "opaque_black")
        return integer ? VK_BORDER_COLOR_INT_OPAQUE_BLACK : VK_BORDER_COLOR_FLOAT_OPAQUE_BLACK;
    if (name == "opaque_white")
        return integer ? VK_BORDER_COLOR_INT_OPAQUE_WHITE : VK_BORDER_COLOR_FLOAT_OPAQUE_WHITE;
    throw Error(ErrorKind::invalid_argument, "There is no border colour '" + name +
                                                 "'; use transparent_black, opaque_black or opaque_white");
}

}  // namespace

std::shared_ptr<Image> make_image(const Context& context, const py::object& data, uint32_t dims, bool arrayed,
                                  const std::array<int64_t, 4>& size, const std::string& format, int type) {
    context.device().require_open("make an image");
    if (type < 0 || type > 3)
        throw Error(ErrorKind::invalid_argument, "Unknown memory type " + std::to_string(type));
    ImageShape shape;
    shape.dims = std::clamp<uint32_t>(dims, 1, 3);
    shape.arrayed = arrayed;
    shape.format = &format_named(format);
    uint32_t* const lengths[4] = {&shape.width, &shape.height, &shape.depth, &shape.layers};
    for (size_t axis = 0; axis < 4; ++axis)
        *lengths[axis] = static_cast<uint32_t>(std::clamp<int64_t>(size[axis], 0, UINT32_MAX));
    const void* source = nullptr;
    if (!data.is_none()) {
        const Bytes bytes = bytes_of(py::reinterpret_borrow<py::array>(data), false);
        const uint64_t wanted =
            uint64_t{shape.width} * shape.height * shape.depth * shape.layers * shape.format->texel_bytes;
        if (bytes.size != wanted)
            throw Error(ErrorKind::invalid_argument, "The data has " + std::to_string(bytes.size) +
                                                         " bytes, but a " + describe(shape) + " has " +
                                                         std::to_string(wanted));
        source = bytes.data;
    }
    return with_relief(context.device(), [&] {
        const Unlocked unlocked;
        return make_object<Image>(context.shared(), source, shape, static_cast<MemoryType>(type));
    });
}

std::shared_ptr<Sampler> make_sampler(const Context& context, const std::string& filter,
                                      const std::array<std::string, 3>& address, const std::string& border,
                                      bool integer_border, bool unnormalized) {
    SamplerInfo info;
    if (filter != "nearest" && filter != "linear")
        throw Error(ErrorKind::invalid_argument,
                    "There is no filter '" + filter + "'; use nearest or linear");
    info.linear = filter == "linear";
    for (size_t axis = 0; axis < 3; ++axis) info.address[axis] = address_named(address[axis]);
    info.border = border_named(border, integer_border);
    info.unnormalized = unnormalized;
    return context.device().samplers().sampler(info);
}

void bind_image(py::module_& m) {
    py::class_<Image, Resource, std::shared_ptr<Image>>(m, "Image")
        .def("read_region", &read_region)
        .def("write_region", &write_region)
        .def_property_readonly("shape",
                               [](const Image& i) {
                                   const ImageShape& s = i.shape();
                                   return py::make_tuple(s.dims, s.arrayed,
                                                         py::make_tuple(s.width, s.height, s.depth, s.layers),
                                                         s.format->name);
                               })
        .def_property_readonly("storable", &Image::storable)
        .def_property_readonly("sampleable", &Image::sampleable)
        .def_property_readonly("filterable", &Image::filterable)
        .def_property_readonly("vk_image", [](Image& i) { return handle_value(shared_out(i).handle()); })
        .def_property_readonly("vk_image_view", [](Image& i) { return handle_value(shared_out(i).view()); })
        .def_property_readonly("vk_format", [](const Image& i) { return static_cast<int>(i.format()); });
    py::class_<Sampler, std::shared_ptr<Sampler>>(m, "Sampler")
        .def_property_readonly("vk_sampler", [](const Sampler& s) { return handle_value(s.handle()); });
    m.def("image_formats", &formats);
    m.attr("Context").attr("image_formats") =
        py::cpp_function(&format_uses, py::is_method(m.attr("Context")));
    m.def("op_copy_region", [](const ResourceRange& source, const std::optional<RegionTuple>& from,
                               const ResourceRange& target, const std::optional<RegionTuple>& to) {
        const auto region = [](const std::optional<RegionTuple>& tuple) {
            return tuple ? std::optional<ImageRegion>(region_of(*tuple)) : std::nullopt;
        };
        return std::const_pointer_cast<Operation>(make_copy_region(source, region(from), target, region(to)));
    });
}

}  // namespace kp
