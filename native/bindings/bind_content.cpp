#include "bindings.hpp"
#include "record/algorithm.hpp"
#include "record/operation.hpp"
#include "run/stream.hpp"

namespace kp {
namespace {

// (memory, offset, bytes); None without memory.
py::object range_to_python(const ResourceRange& range) {
    if (!range.resource) return py::none();
    return py::make_tuple(range.resource, range.offset, range.size);
}

py::list ranges_to_python(const std::vector<ResourceRange>& ranges) {
    py::list result;
    for (const auto& range : ranges) result.append(range_to_python(range));
    return result;
}

py::object sampler_to_python(const std::shared_ptr<Sampler>& sampler) {
    if (!sampler) return py::none();
    const SamplerInfo& info = sampler->info();
    const auto mode = [](VkSamplerAddressMode address) {
        switch (address) {
        case VK_SAMPLER_ADDRESS_MODE_REPEAT: return "repeat";
        case VK_SAMPLER_ADDRESS_MODE_MIRRORED_REPEAT: return "mirrored_repeat";
        case VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER: return "clamp_to_border";
        default: return "clamp_to_edge";
        }
    };
    const auto border = [&]() -> std::pair<const char*, bool> {
        switch (info.border) {
        case VK_BORDER_COLOR_INT_TRANSPARENT_BLACK: return {"transparent_black", true};
        case VK_BORDER_COLOR_FLOAT_OPAQUE_BLACK: return {"opaque_black", false};
        case VK_BORDER_COLOR_INT_OPAQUE_BLACK: return {"opaque_black", true};
        case VK_BORDER_COLOR_FLOAT_OPAQUE_WHITE: return {"opaque_white", false};
        case VK_BORDER_COLOR_INT_OPAQUE_WHITE: return {"opaque_white", true};
        default: return {"transparent_black", false};
        }
    }();
    return py::make_tuple(info.linear ? "linear" : "nearest",
                          py::make_tuple(mode(info.address[0]), mode(info.address[1]), mode(info.address[2])),
                          border.first, border.second, info.unnormalized);
}

py::object region_to_python(const ImageRegion& r) {
    return py::make_tuple(r.x, r.y, r.z, r.layer, r.width, r.height, r.depth, r.layers);
}

void add_dispatch(py::dict& to, const OperationContent& content) {
    const Algorithm& algorithm = *content.algorithm;
    to["shader"] = algorithm.shader();
    const Specialization constants = algorithm.base().constants;
    py::list map;
    for (const auto& entry : constants.entries)
        map.append(py::make_tuple(entry.constantID, entry.offset, entry.size));
    to["constants"] = py::make_tuple(py::bytes(constants.data), std::move(map));
    py::list arguments;
    for (const auto& each : algorithm.arguments())
        arguments.append(py::make_tuple(each.set, each.binding, each.element, range_to_python(each.range),
                                        sampler_to_python(each.sampler),
                                        each.texels ? py::cast(each.texels->name) : py::none()));
    to["arguments"] = std::move(arguments);
    to["groups"] = py::make_tuple(content.groups[0], content.groups[1], content.groups[2]);
    to["push"] = py::bytes(content.push_constants);
    to["indirect"] = range_to_python(content.memory.indirect);
    to["by_address"] =
        !content.memory.references.empty() || algorithm.shader()->info().physical_storage_buffer;
}

}  // namespace

py::dict content_to_python(const std::string& name, const OperationContent& content) {
    py::dict result;
    result["kind"] = content.kind;
    result["name"] = name;
    if (content.algorithm) add_dispatch(result, content);
    result["ranges"] = ranges_to_python(content.ranges);
    py::list patterns;
    for (const auto& pattern : content.patterns) patterns.append(py::bytes(pattern));
    result["patterns"] = std::move(patterns);
    py::list regions;
    for (const auto& region : content.regions) regions.append(region_to_python(region));
    result["regions"] = std::move(regions);
    py::list operations;
    for (const auto& each : content.operations)
        operations.append(content_to_python(each->name(), each->content()));
    result["operations"] = std::move(operations);
    result["times"] = content.times;
    py::list swaps;
    for (const auto& [one, other] : content.swaps)
        swaps.append(py::make_tuple(range_to_python(one), range_to_python(other)));
    result["swaps"] = std::move(swaps);
    return result;
}

void bind_content(py::module_& m) {
    m.def("recorded", [](Stream& stream) {
        const Turn::Taken turn = stream.drive();
        py::list result;
        for (const auto& operation : stream.operations("save"))
            result.append(content_to_python(operation->name(), operation->content()));
        return result;
    });
}

}  // namespace kp
