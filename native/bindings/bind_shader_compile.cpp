// compile, validate, disassemble, assemble, decompile. They release the interpreter lock and hear Ctrl-C.
#include "bind_shader_compile.hpp"

#include "bindings.hpp"

#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>

namespace kp {
namespace {

using namespace py::literals;

py::str to_str(const std::string& text) {
    PyObject* made = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
    if (!made) throw py::error_already_set();
    return py::reinterpret_steal<py::str>(made);
}

// Paths are decoded as by os.fsdecode, so that Python can open them.
py::str to_path(const std::string& path) {
    PyObject* made = PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size()));
    if (!made) throw py::error_already_set();
    return py::reinterpret_steal<py::str>(made);
}

py::bytes to_bytes(const std::vector<uint32_t>& words) {
    return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(uint32_t)};
}

std::vector<uint32_t> words_of(const py::bytes& bytes) {
    const std::string_view view = bytes;
    if (view.size() % sizeof(uint32_t) != 0)
        throw Error(ErrorKind::invalid_argument, "SPIR-V is words of 4 bytes; " +
                                                     std::to_string(view.size()) +
                                                     " bytes are no whole number of them");
    std::vector<uint32_t> words(view.size() / sizeof(uint32_t));
    if (!words.empty()) std::memcpy(words.data(), view.data(), view.size());
    return words;
}

SourceLanguage language_named(const std::string& name) {
    if (name == "glsl") return SourceLanguage::glsl;
    if (name == "hlsl") return SourceLanguage::hlsl;
    throw Error(ErrorKind::invalid_argument,
                "'" + name + "' is not a shading language; choose one of glsl, hlsl");
}

OptimizeFor optimization_named(const std::string& name) {
    if (name == "none") return OptimizeFor::nothing;
    if (name == "size") return OptimizeFor::size;
    if (name == "performance") return OptimizeFor::performance;
    throw Error(ErrorKind::invalid_argument,
                "'" + name + "' is not a level of optimization; choose one of none, size, performance");
}

CompileRequest request_of(std::string source, std::string name, std::string entry,
                          std::vector<std::pair<std::string, std::string>> defines,
                          std::vector<std::string> include_dirs,
                          std::map<std::string, std::string> virtual_includes, const std::string& optimize,
                          bool debug_info, std::string target, std::string spirv_version,
                          std::string glsl_version, bool auto_bind, bool hlsl_offsets) {
    return {std::move(source),
            std::move(name),
            std::move(entry),
            std::move(defines),
            std::move(include_dirs),
            std::move(virtual_includes),
            optimization_named(optimize),
            debug_info,
            std::move(target),
            std::move(spirv_version),
            std::move(glsl_version),
            auto_bind,
            hlsl_offsets};
}

// (SPIR-V, SPIR-V before optimization or b"" if it is the same, warnings, files used,
// [(path, content | None)] for every path at which an include was looked up).
py::tuple compile_in_python(CompileRequest request, double seconds) {
    const CompileOutput output = interruptibly([request = std::move(request)] { return compile(request); },
                                               seconds, "compiling takes longer than its time limit");
    py::list included;
    for (const std::string& path : output.included) included.append(to_path(path));
    return py::make_tuple(to_bytes(output.spirv), to_bytes(output.declared),
                          diagnostics_to_python(output.warnings), included, probes_to_python(output.probes));
}

// (SPIR-V, SPIR-V before optimization or b"").
py::tuple finish_in_python(const py::bytes& spirv, const std::string& name, const std::string& optimize,
                           const std::string& target) {
    std::vector<uint32_t> words = words_of(spirv);
    const OptimizeFor aim = optimization_named(optimize);
    CompileOutput output;
    {
        const Unlocked released;
        output = finish_spirv(std::move(words), name, aim, target);
    }
    return py::make_tuple(to_bytes(output.spirv), to_bytes(output.declared));
}

using DiagnosticTuple = std::tuple<std::string, uint32_t, uint32_t, std::string, std::string, std::string>;

py::str render_in_python(const std::vector<DiagnosticTuple>& listed) {
    std::vector<Diagnostic> diagnostics;
    diagnostics.reserve(listed.size());
    for (const auto& [file, line, column, severity, message, source_line] : listed)
        diagnostics.push_back({file, line, column, severity, message, source_line});
    return to_str(render(diagnostics));
}

}  // namespace

py::object diagnostics_to_python(const std::vector<Diagnostic>& diagnostics) {
    py::list list;
    for (const Diagnostic& d : diagnostics)
        list.append(py::make_tuple(to_str(d.file), d.line, d.column, to_str(d.severity), to_str(d.message),
                                   to_str(d.source_line)));
    return list;
}

py::list probes_to_python(const std::vector<IncludeProbe>& probes) {
    py::list list;
    for (const IncludeProbe& probe : probes)
        list.append(py::make_tuple(to_path(probe.path), probe.found ? py::object(py::bytes(probe.content))
                                                                    : py::object(py::none())));
    return list;
}

void bind_shader_compile(py::module_& m) {
    py::class_<CompileRequest>(m, "CompileRequest")
        .def(py::init(&request_of), "source"_a, "name"_a, "entry"_a, "defines"_a, "include_dirs"_a,
             "virtual_includes"_a, "optimize"_a, "debug_info"_a, "target"_a, "spirv_version"_a,
             "glsl_version"_a, "auto_bind"_a, "hlsl_offsets"_a)
        .def("check", &check_request);
    m.def("compile", &compile_in_python, "request"_a, "seconds"_a = std::numeric_limits<double>::infinity());
    m.def("finish_spirv", &finish_in_python, "spirv"_a, "name"_a, "optimize"_a, "target"_a);
    m.def("render_diagnostics", &render_in_python, "diagnostics"_a);
    m.def("compiler_id", &compiler_id);
    m.def(
        "validate_spirv",
        [](const py::bytes& spirv, uint32_t vulkan_minor, bool scalar_block_layout,
           bool uniform_buffer_standard_layout, bool relax_block_layout, bool workgroup_scalar_block_layout) {
            const ValidationOptions options{vulkan_minor, scalar_block_layout, uniform_buffer_standard_layout,
                                            relax_block_layout, workgroup_scalar_block_layout};
            return interruptibly(
                [words = words_of(spirv), options] { return validate_spirv(words, options); });
        },
        "spirv"_a, "vulkan_minor"_a = 2, "scalar_block_layout"_a = false,
        "uniform_buffer_standard_layout"_a = true, "relax_block_layout"_a = true,
        "workgroup_scalar_block_layout"_a = false);
    m.def(
        "disassemble_spirv",
        [](const py::bytes& spirv, bool friendly_names) {
            return interruptibly([words = words_of(spirv), friendly_names] {
                return disassemble_spirv(words, friendly_names);
            });
        },
        "spirv"_a, "friendly_names"_a = true);
    m.def(
        "assemble_spirv",
        [](const std::string& text, uint32_t vulkan_minor, const std::string& name) {
            return to_bytes(interruptibly(
                [text, vulkan_minor, name] { return assemble_spirv(text, vulkan_minor, name); }));
        },
        "text"_a, "vulkan_minor"_a = 2, "name"_a = "<source>");
    m.def(
        "decompile_spirv",
        [](const py::bytes& spirv, const std::string& language, const std::string& entry) {
            return interruptibly([words = words_of(spirv), chosen = language_named(language), entry] {
                return decompile_spirv(words, chosen, entry);
            });
        },
        "spirv"_a, "language"_a, "entry"_a);
}

}  // namespace kp
