// Turns the core's error type into the matching Python class (see kompute_py/_base/errors.py).
#include "bind_shader_compile.hpp"
#include "bindings.hpp"

namespace kp {
namespace {

const char* kind_name(ErrorKind kind) {
    switch (kind) {
    case ErrorKind::invalid_argument: return "invalid_argument";
    case ErrorKind::argument_type: return "argument_type";
    case ErrorKind::out_of_range: return "out_of_range";
    case ErrorKind::not_found: return "not_found";
    case ErrorKind::out_of_memory: return "out_of_memory";
    case ErrorKind::eval_timeout: return "eval_timeout";
    case ErrorKind::failed_precondition: return "failed_precondition";
    case ErrorKind::donated: return "donated";
    case ErrorKind::unimplemented: return "unimplemented";
    case ErrorKind::unavailable: return "unavailable";
    case ErrorKind::device_lost: return "device_lost";
    case ErrorKind::shader_compile: return "shader_compile";
    case ErrorKind::exchange: return "exchange";
    case ErrorKind::aborted: return "aborted";
    case ErrorKind::cancelled: return "cancelled";
    case ErrorKind::internal: return "internal";
    }
    return "internal";
}

// Called with an exception before it is raised, so that messages of the validation layer are logged with the
// failing call.
PyObject* before_raising = nullptr;

// Makes the exception. Held from the start: objects that go when the interpreter shuts down may raise, and
// nothing can be imported then.
PyObject* from_native = nullptr;

void set_error(const Error& error, const py::object& diagnostics, const py::object& probes) {
    const py::object made = py::handle(from_native)(kind_name(error.kind()), to_text(error.what()),
                                                    error.vk_result(), diagnostics, probes);
    if (before_raising) {
        const auto done = py::reinterpret_steal<py::object>(PyObject_CallOneArg(before_raising, made.ptr()));
        // The original error is more informative.
        if (!done) PyErr_WriteUnraisable(before_raising);
    }
    PyErr_SetObject(py::type::handle_of(made).ptr(), made.ptr());
}

}  // namespace

py::str to_text(const std::string& text) {
    PyObject* made =
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
    if (!made) throw py::error_already_set();
    return py::reinterpret_steal<py::str>(made);
}

void bind_errors(py::module_& m) {
    from_native =
        py::module_::import("kompute_py._base.errors").attr("from_native").cast<py::object>().release().ptr();
    m.def("before_raising", [](const py::function& call) {
        Py_XDECREF(before_raising);
        before_raising = py::object(call).release().ptr();
    });
    py::register_exception_translator([](std::exception_ptr pointer) {
        try {
            if (pointer) std::rethrow_exception(pointer);
        } catch (const ShaderCompileFailure& failure) {
            run_python([&] {
                set_error(failure, diagnostics_to_python(failure.diagnostics()),
                          probes_to_python(failure.probes()));
            });
        } catch (const Error& error) {
            run_python([&] { set_error(error, py::tuple(), py::tuple()); });
        }
    });
}

}  // namespace kp
