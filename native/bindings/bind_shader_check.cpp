// check_shader: reasons for which a described device, which is not opened, would refuse a shader.
#include "adapter/check_shader.hpp"
#include "bindings.hpp"
#include "spirv/interface.hpp"

#include <algorithm>
#include <map>

namespace kp {
namespace {

using namespace py::literals;

uint32_t limit_named(const std::map<std::string, uint32_t>& limits, const char* name) {
    const auto found = limits.find(name);
    if (found == limits.end())
        throw Error(ErrorKind::invalid_argument, std::string("The device's limits lack ") + name);
    return found->second;
}

ShaderHost host_of(std::string name, std::pair<uint32_t, uint32_t> vulkan, std::vector<std::string> features,
                   const std::vector<std::string>& subgroup_operations,
                   const std::map<std::string, uint32_t>& limits,
                   const std::array<uint32_t, 3>& work_group_size, std::vector<std::string> extensions,
                   std::vector<std::string> float_controls, const std::string& denorms,
                   const std::string& rounding) {
    const auto independence = [](const std::string& value) {
        const auto found = std::find(float_independence_names.begin(), float_independence_names.end(), value);
        return found == float_independence_names.end()
                   ? 2u
                   : static_cast<uint32_t>(found - float_independence_names.begin());
    };
    ShaderHost host;
    host.extensions = std::move(extensions);
    host.float_controls = std::move(float_controls);
    host.denorm_independence = independence(denorms);
    host.rounding_independence = independence(rounding);
    host.name = std::move(name);
    host.vulkan = VK_MAKE_API_VERSION(0, vulkan.first, vulkan.second, 0);
    host.features = std::move(features);
    for (const auto& [operation, bit] : subgroup_operation_names)
        if (std::find(subgroup_operations.begin(), subgroup_operations.end(), operation) !=
            subgroup_operations.end())
            host.subgroup_operations |= bit;
#define X(limit) host.limits.limit = limit_named(limits, #limit);
    KP_SHADER_LIMITS(X)
#undef X
    host.limits.maxComputeWorkGroupSize = work_group_size;
    return host;
}

py::object to_python(const FindingValue& value) {
    if (const auto* number = std::get_if<uint64_t>(&value)) return py::int_(*number);
    if (const auto* text = std::get_if<std::string>(&value)) return py::str(*text);
    return py::none();
}

}  // namespace

void bind_shader_check(py::module_& m) {
    m.def(
        "check_shader",
        [](const py::bytes& spirv, std::string name, const std::pair<uint32_t, uint32_t>& vulkan,
           std::vector<std::string> features, const std::vector<std::string>& subgroup_operations,
           const std::map<std::string, uint32_t>& limits, const std::array<uint32_t, 3>& work_group_size,
           const std::string& entry, const py::bytes& spec_constants, const SpecializationMap& spec_map,
           const std::vector<ArrayLength>& array_lengths, std::vector<std::string> extensions,
           std::vector<std::string> float_controls, const std::string& denorm_independence,
           const std::string& rounding_independence) {
            ShaderHost host = host_of(std::move(name), vulkan, std::move(features), subgroup_operations,
                                      limits, work_group_size, std::move(extensions),
                                      std::move(float_controls), denorm_independence, rounding_independence);
            const auto found =
                interruptibly([words = spirv_words(spirv), host = std::move(host), entry,
                               values = specialization_of(spec_constants, spec_map).values(), array_lengths] {
                    return check_shader(words, host, entry, values, array_lengths);
                });
            py::list list;
            for (const Finding& finding : found)
                list.append(py::make_tuple(to_string(finding.kind), finding.what, to_python(finding.needed),
                                           to_python(finding.has), finding.message));
            return list;
        },
        "spirv"_a, "name"_a, "vulkan"_a, "features"_a, "subgroup_operations"_a, "limits"_a,
        "work_group_size"_a, "entry"_a, "spec_constants"_a, "spec_map"_a,
        "array_lengths"_a = std::vector<ArrayLength>(), "extensions"_a = std::vector<std::string>(),
        "float_controls"_a = std::vector<std::string>(), "denorm_independence"_a = "none",
        "rounding_independence"_a = "none");
    m.def(
        "private_bytes",
        [](const py::bytes& spirv, const py::bytes& spec_constants, const SpecializationMap& spec_map) {
            return private_bytes(spirv_words(spirv), specialization_of(spec_constants, spec_map).values());
        },
        "spirv"_a, "spec_constants"_a, "spec_map"_a);
}

}  // namespace kp
