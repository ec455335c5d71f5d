#include "base/long_call.hpp"
#include "bindings.hpp"
#include "call_form.hpp"
#include "call_table.hpp"

PYBIND11_MODULE(_native, m) {
    m.doc() = "The native core of kompute_py. Private: use the package's public classes.";
    m.attr("__version__") = KOMPUTE_PY_VERSION;
    kp::set_long_call([](const std::function<void()>& body) { kp::run_unlocked(body); });
    // Held from the start: see errors.cpp.
    static PyObject* const warn = pybind11::module_::import("kompute_py._base.warn")
                                      .attr("warn")
                                      .cast<pybind11::object>()
                                      .release()
                                      .ptr();
    kp::set_warning([](const std::string& text) {
        const kp::Locked locked;
        kp::run_python([&] { pybind11::handle{warn}(text); });
    });
    kp::bind_errors(m);
    kp::bind_memory(m);
    kp::bind_host_import(m);
    kp::bind_dlpack(m);
    kp::bind_buffer_protocol(m);
    kp::bind_shader(m);
    kp::bind_operation(m);
    kp::bind_stream(m);
    kp::bind_fence(m);
    kp::bind_call_table(m);
    kp::bind_call_form(m);
    kp::bind_peer_copy(m);
    kp::bind_waiter(m);
    kp::bind_substitution(m);
    kp::bind_content(m);
    kp::bind_mapping(m);
    kp::bind_context(m);
    kp::bind_image(m);
    kp::bind_shader_compile(m);
    kp::bind_shader_check(m);
    kp::bind_profile(m);
}
