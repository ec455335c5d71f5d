#include "bindings.hpp"
#include "call_support.hpp"
#include "spirv/declared_format.hpp"

#include "spirv/invocation.hpp"
#include "spirv/reach.hpp"
#include "spirv/reflect.hpp"

#include <cstring>

namespace kp {
namespace {

const char* scalar_name(ScalarKind kind, uint32_t width) {
    switch (kind) {
    case ScalarKind::boolean: return "bool";
    case ScalarKind::signed_int:
        return width == 8 ? "int8" : width == 16 ? "int16" : width == 64 ? "int64" : "int32";
    case ScalarKind::unsigned_int:
        return width == 8 ? "uint8" : width == 16 ? "uint16" : width == 64 ? "uint64" : "uint32";
    case ScalarKind::bfloat16: return "bfloat16";
    case ScalarKind::floating: return width == 16 ? "float16" : width == 64 ? "float64" : "float32";
    case ScalarKind::none: return "struct";
    }
    return "struct";
}

py::dict layout_to_python(const TypeLayout& layout) {
    py::dict result;
    result["name"] = layout.name;
    result["type_name"] = layout.type_name;
    result["kind"] = layout.physical_pointer ? "pointer" : scalar_name(layout.scalar, layout.width);
    result["rows"] = layout.rows;
    result["columns"] = layout.columns;
    result["row_major"] = layout.row_major;
    result["hlsl_matrix"] = layout.hlsl_matrix;
    result["matrix_stride"] = layout.matrix_stride;
    result["array"] = layout.array;
    result["array_strides"] = layout.array_strides;
    result["offset"] = layout.offset;
    result["size"] = layout.size;
    py::list members;
    for (const auto& member : layout.members) members.append(layout_to_python(member));
    result["members"] = members;
    return result;
}

py::object default_value(const SpecConstantInfo& constant) {
    const uint64_t bits = constant.default_bits;
    switch (constant.scalar) {
    case ScalarKind::boolean: return py::bool_(bits != 0);
    case ScalarKind::signed_int:
        return py::int_(static_cast<int64_t>(bits << (64 - constant.width)) >> (64 - constant.width));
    case ScalarKind::bfloat16: return py::float_(bfloat16_value(bits));
    case ScalarKind::floating: {
        if (constant.width == 64) {
            double value = 0;
            std::memcpy(&value, &bits, 8);
            return py::float_(value);
        }
        if (constant.width == 32) {
            float value = 0;
            const auto low = static_cast<uint32_t>(bits);
            std::memcpy(&value, &low, 4);
            return py::float_(value);
        }
        // NumPy converts to half precision.
        const auto low = static_cast<uint16_t>(bits);
        return py::module_::import("numpy")
            .attr("frombuffer")(py::bytes(reinterpret_cast<const char*>(&low), 2), "float16")
            .attr("item")(0);
    }
    default: return py::int_(bits);
    }
}

py::dict image_to_python(const BindingInfo& binding) {
    constexpr const char* dims[] = {"1D", "2D", "3D", "Cube", "Rect", "Buffer", "SubpassData"};
    py::dict result;
    result["dim"] = binding.image_dim < 7 ? dims[binding.image_dim] : "unknown";
    result["arrayed"] = binding.image_arrayed;
    result["multisampled"] = binding.image_multisampled;
    result["format"] = declared_format(binding.image_format).name;
    result["component"] = scalar_name(binding.image_scalar, 32);
    return result;
}

bool is_image(DescriptorKind kind) {
    return kind == DescriptorKind::storage_image || kind == DescriptorKind::sampled_image ||
           kind == DescriptorKind::combined_image_sampler || kind == DescriptorKind::uniform_texel_buffer ||
           kind == DescriptorKind::storage_texel_buffer;
}

}  // namespace

Specialization specialization_of(const py::bytes& data, const SpecializationMap& map) {
    Specialization result;
    result.data = std::string(data);
    for (const auto& [id, offset, size] : map) {
        if (uint64_t{offset} + size > result.data.size())
            throw Error(ErrorKind::internal, "A specialization constant lies outside its data");
        result.entries.push_back({id, offset, size});
    }
    return result;
}

std::vector<Argument> arguments_of(const py::sequence& arguments) {
    std::vector<Argument> result;
    result.reserve(arguments.size());
    uint32_t position = 0;
    for (const py::handle each : arguments) {
        Argument argument;
        argument.binding = position++;
        py::detail::make_caster<ResourceRange> range;
        if (range.load(each, false)) {
            argument.range = py::detail::cast_op<ResourceRange>(range);
        } else if (py::isinstance<Sampler>(each)) {
            argument.sampler = each.cast<std::shared_ptr<Sampler>>();
        } else if (py::isinstance<py::tuple>(each)) {
            const auto parts = py::reinterpret_borrow<py::tuple>(each);
            if (parts.size() == 5) {
                argument.set = parts[0].cast<uint32_t>();
                argument.binding = parts[1].cast<uint32_t>();
                argument.element = parts[2].cast<uint32_t>();
            }
            const py::object memory = parts[parts.size() - 2], sampler = parts[parts.size() - 1];
            if (!memory.is_none()) argument.range = memory.cast<ResourceRange>();
            if (py::isinstance<py::str>(sampler))
                argument.texels = find_image_format(sampler.cast<std::string>());
            else if (!sampler.is_none())
                argument.sampler = sampler.cast<std::shared_ptr<Sampler>>();
        } else if (each.is_none()) {
            continue;
        } else {
            throw Error(ErrorKind::argument_type, "An algorithm binds memory and samplers");
        }
        result.push_back(std::move(argument));
    }
    return result;
}

std::shared_ptr<Algorithm> make_algorithm(const Context& context, std::shared_ptr<Shader> shader,
                                          const py::sequence& arguments,
                                          const std::array<int64_t, 3>& workgroup, const py::bytes& spec,
                                          const SpecializationMap& map, const py::bytes& push) {
    context.device().require_open("make an algorithm");
    std::array<uint32_t, 3> groups{};
    for (size_t i = 0; i < 3; ++i)
        groups[i] = static_cast<uint32_t>(std::clamp<int64_t>(workgroup[i], 0, UINT32_MAX));
    const Specialization constants = specialization_of(spec, map);
    std::string push_constants(push);
    std::vector<Argument> bound = arguments_of(arguments);
    auto make = [device = context.shared(), shader, bound = std::move(bound), groups, constants,
                 push_constants = std::move(push_constants)]() mutable {
        return make_object<Algorithm>(std::move(device), std::move(shader), std::move(bound), groups,
                                      constants, std::move(push_constants));
    };
    // Compiling a pipeline takes at least milliseconds; some drivers take minutes for some shaders.
    Device& device = context.device();
    if (!device.pipelines().knows(shader, constants)) return making_pipeline(device, std::move(make));
    const Unlocked unlocked;
    return make();
}

std::string axes_text(uint8_t axes) {
    std::string text;
    for (uint32_t axis = 0; axis < 3; ++axis)
        if (axes >> axis & 1) text += "xyz"[axis];
    return text;
}

py::dict invocation_to_python(const InvocationUse& use) {
    py::dict result;
    result["global"] = axes_text(use.global);
    result["group"] = axes_text(use.group);
    result["group_alone"] = axes_text(use.group_alone);
    result["group_below_block"] = axes_text(use.group_below_block);
    result["local"] = axes_text(use.local);
    result["local_index"] = use.local_index;
    result["group_count"] = axes_text(use.group_count);
    return result;
}

py::dict reflection_to_python(const ShaderInfo& info) {
    py::dict result;
    result["version"] = py::make_tuple((info.version >> 16) & 0xff, (info.version >> 8) & 0xff);
    result["entry"] = info.entry;
    py::list entries;
    for (const auto& entry : info.entry_points) {
        py::dict point;
        point["name"] = entry.name;
        point["model"] = execution_model_name(entry.execution_model);
        entries.append(point);
    }
    result["entry_points"] = entries;
    result["local_size"] = py::make_tuple(info.local_size[0], info.local_size[1], info.local_size[2]);
    py::list spec_ids;
    for (const auto& id : info.local_size_spec_id)
        spec_ids.append(id ? py::object(py::int_(*id)) : py::object(py::none()));
    result["local_size_spec_ids"] = py::tuple(spec_ids);
    result["shared_bytes"] = info.shared_bytes;
    py::list capabilities;
    for (const uint32_t capability : info.capabilities) capabilities.append(capability_name(capability));
    result["capabilities"] = capabilities;
    py::list bindings;
    for (const auto& binding : info.bindings) {
        py::dict entry;
        entry["set"] = binding.set;
        entry["binding"] = binding.binding;
        entry["kind"] = to_string(binding.kind);
        entry["count"] = binding.count;
        entry["access"] = to_string(binding.access);
        entry["used"] = binding.used;
        entry["name"] = binding.instance_name;
        entry["block_name"] = binding.block_name;
        entry["readonly"] = binding.readonly;
        entry["writeonly"] = binding.writeonly;
        entry["atomic"] = binding.atomic;
        entry["layout"] = layout_to_python(binding.layout);
        entry["image"] =
            is_image(binding.kind) ? py::object(image_to_python(binding)) : py::object(py::none());
        bindings.append(entry);
    }
    result["bindings"] = bindings;
    result["push_constants"] = py::none();
    if (info.push_constants) {
        py::dict push;
        push["offset"] = info.push_constants->offset;
        push["size"] = info.push_constants->size;
        push["name"] = info.push_constants->instance_name;
        push["block_name"] = info.push_constants->block_name;
        push["layout"] = layout_to_python(info.push_constants->layout);
        result["push_constants"] = push;
    }
    py::list constants;
    for (const auto& constant : info.spec_constants) {
        py::dict entry;
        entry["id"] = constant.id;
        entry["name"] = constant.name;
        entry["type"] = scalar_name(constant.scalar, constant.width);
        entry["default"] = default_value(constant);
        if (!constant.conflict.empty()) entry["conflict"] = constant.conflict;
        constants.append(entry);
    }
    result["spec_constants"] = constants;
    return result;
}

namespace {

py::tuple reach_to_python(const ShaderReach& found) {
    constexpr const char* names[] = {"unknown", "constant",      "invocation", "group",      "local",
                                     "groups",  "push_constant", "length",     "image_size", "memory",
                                     "derived", "add",           "subtract",   "multiply",   "minimum",
                                     "maximum", "divide",        "modulo"};
    py::list expressions, accesses;
    for (const auto& each : found.expressions)
        expressions.append(py::make_tuple(names[static_cast<size_t>(each.term)], each.value, each.a, each.b));
    for (const auto& each : found.accesses)
        accesses.append(py::make_tuple(each.set, each.binding, each.offset, each.stride, each.length,
                                       py::cast(each.indices), py::cast(each.guards), each.written,
                                       each.certain));
    return py::make_tuple(expressions, accesses);
}

}  // namespace

std::vector<uint32_t> spirv_words(const py::bytes& spirv) {
    const std::string_view bytes = spirv;
    if (bytes.empty() || bytes.size() % 4 != 0)
        throw Error(ErrorKind::invalid_argument,
                    "Not SPIR-V: " + std::to_string(bytes.size()) +
                        " bytes, but a module is a non-empty whole number of 4-byte words");
    std::vector<uint32_t> words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
}

void bind_shader(py::module_& m) {
    m.def(
        "reflect_spirv",
        [](const py::bytes& spirv, const std::string& entry, const py::bytes& spec,
           const SpecializationMap& map) {
            const std::vector<uint32_t> words = spirv_words(spirv);
            return reflection_to_python(reflect(words, entry, specialization_of(spec, map).values()));
        },
        py::arg("spirv"), py::arg("entry") = "main", py::arg("spec_constants") = py::bytes(),
        py::arg("spec_map") = SpecializationMap{});
    m.def(
        "invocation_use",
        [](const py::bytes& spirv, const std::string& entry, const py::bytes& spec,
           const SpecializationMap& map) {
            const std::vector<uint32_t> words = spirv_words(spirv);
            return invocation_to_python(invocation_use(words, entry, specialization_of(spec, map).values()));
        },
        py::arg("spirv"), py::arg("entry") = "main", py::arg("spec_constants") = py::bytes(),
        py::arg("spec_map") = SpecializationMap{});
    m.def(
        "reach_spirv",
        [](const py::bytes& spirv, const std::string& entry, const py::bytes& spec,
           const SpecializationMap& map) {
            const std::vector<uint32_t> words = spirv_words(spirv);
            return reach_to_python(reach(words, entry, specialization_of(spec, map).values()));
        },
        py::arg("spirv"), py::arg("entry") = "main", py::arg("spec_constants") = py::bytes(),
        py::arg("spec_map") = SpecializationMap{});
    py::class_<Shader, std::shared_ptr<Shader>>(m, "Shader")
        .def_property_readonly("reflection", [](const Shader& s) { return reflection_to_python(s.info()); })
        .def("made_of",
             [](const Shader& s) {
                 const auto bytes = [](std::span<const uint32_t> words) {
                     return py::bytes(reinterpret_cast<const char*>(words.data()), words.size_bytes());
                 };
                 return py::make_tuple(bytes(s.words()), s.info().entry, bytes(s.declared()),
                                       s.subgroups().size, s.subgroups().full, s.generated);
             })
        .def_readwrite("generated", &Shader::generated)
        .def_property(
            "extra",
            [](const Shader& s) -> py::object {
                if (!s.extra) return py::none();
                return py::reinterpret_borrow<py::object>(static_cast<PyObject*>(s.extra.get()));
            },
            [](Shader& s, const py::object& value) { s.extra = keep_object(value); })
        .def("refuses", [](const Shader& s, const std::array<uint32_t, 3>& groups, const py::bytes& spec,
                           const SpecializationMap& map) {
            return s.refuses(groups, specialization_of(spec, map).values());
        });

    py::class_<Algorithm, std::shared_ptr<Algorithm>>(m, "Algorithm")
        .def_property_readonly("shader", [](const Algorithm& a) { return a.shader(); })
        .def_property_readonly("workgroup",
                               [](const Algorithm& a) {
                                   const auto w = a.workgroup();
                                   return py::make_tuple(w[0], w[1], w[2]);
                               })
        .def_property_readonly("local_size",
                               [](const Algorithm& a) {
                                   const auto& size = a.pipeline().local_size;
                                   return py::make_tuple(size[0], size[1], size[2]);
                               })
        .def_property(
            "name", [](const Algorithm& a) { return a.name(); },
            [](Algorithm& a, const std::string& n) { a.set_name(n); })
        .def("supersede", &Algorithm::supersede)
        .def("is_init", [](const Algorithm& a) { return a.is_init(); })
        .def(
            "destroy", [](Algorithm& a) { a.destroy(); }, py::call_guard<Unlocked>())
        .def_property_readonly("vk_pipeline",
                               [](const Algorithm& a) { return handle_value(a.pipeline().handle()); })
        .def_property_readonly("vk_pipeline_layout",
                               [](const Algorithm& a) { return handle_value(a.pipeline().layout->handle()); })
        .def_property_readonly("vk_descriptor_sets", [](const Algorithm& a) {
            py::list sets;
            for (const VkDescriptorSet set : a.sets())
                if (set != VK_NULL_HANDLE) sets.append(handle_value(set));
            return sets;
        });
}

}  // namespace kp
