#include "bindings.hpp"
#include "call_support.hpp"
#include "relief.hpp"
#include "run/fence.hpp"
#include "user_line.hpp"

#include <pybind11/stl.h>

#include <variant>

namespace kp {
namespace {

// KeyboardInterrupt leaves the stream running, and a later wait collects it.
bool wait(Stream& stream, double seconds) {
    // Work that a lost device refused never ran, so its end never comes.
    if (stream.device().lost() && !stream.is_running())
        stream.device().throw_lost("waiting", "the " + stream.label());
    return wait_for(
        seconds, [&] { return stream.poll(); }, [&](uint64_t slice) { return stream.wait(slice); },
        [&] {
            const Point last = stream.last_point();
            return last.timeline ? std::vector<Point>{last} : std::vector<Point>{};
        });
}

// Cancelled, and only another wait reported it.
bool is_cancelled(const Stream& stream) {
    const Point last = stream.last_point();
    return last.timeline && last.timeline->failed(last.value);
}

py::list barriers(const Stream& stream) {
    py::list result;
    const auto add = [&](const Barrier& b) {
        if (b.src_stages != 0)
            result.append(py::make_tuple(b.before, b.src_stages, b.src_access, b.dst_stages, b.dst_access));
    };
    const BarrierPlan plan = stream.barriers();
    add(plan.head);
    for (const auto& barrier : plan.barriers) add(barrier);
    add(plan.tail);
    return result;
}

Stream& stream_of(PyObject* self) {
    auto* stream = native_of<Stream>(self);
    if (!stream) throw py::type_error("The Stream has no native object");
    return *stream;
}

PyObject* record(PyObject* self, PyObject* given) {
    return translated([&]() -> PyObject* {
        auto operation = OperationObject::get(given);
        if (!operation) throw py::type_error("A Stream records an Operation");
        Stream& stream = stream_of(self);
        Stream::UserLine line;
        if (stream.device().notes_lines()) [[unlikely]]
            line = std::make_shared<const std::string>(user_line());
        stream.record(std::move(operation), std::move(line));
        Py_RETURN_NONE;
    });
}

PyObject* eval(PyObject* self, PyObject*) {
    return translated([&]() -> PyObject* {
        Stream& stream = stream_of(self);
        if (stream.submit() && !stream.poll()) wait(stream, -1);
        Py_RETURN_NONE;
    });
}

PyObject* clear(PyObject* self, PyObject*) {
    return translated([&]() -> PyObject* {
        stream_of(self).clear();
        Py_RETURN_NONE;
    });
}

PyMethodDef record_method = {"record", record, METH_O,
                             "record($self, operation, /)\n--\n\n"
                             "record(self, operation: Operation, /) -> None"};
PyMethodDef eval_method = {"eval", eval, METH_NOARGS, "eval($self, /)\n--\n\neval(self) -> None"};
PyMethodDef clear_method = {"clear", clear, METH_NOARGS, "clear($self, /)\n--\n\nclear(self) -> None"};

}  // namespace

void evaluate(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Stream>& first) {
    const bool runs = with_relief(stream->device(), [&] {
        if (!first) return stream->submit();
        (void)submit_in_order(stream->shared_device(), {first, stream}, {});
        return true;
    });
    if (runs && !stream->poll()) wait(*stream, -1);
}

void bind_stream(py::module_& m) {
    py::class_<Stream, std::shared_ptr<Stream>> type(m, "Stream");
    replace_method(type, record_method);
    replace_method(type, eval_method);
    replace_method(type, clear_method);
    type.def("submit", [](Stream& s) { s.submit(); })
        .def(
            "wait",
            [](Stream& s, double timeout) {
                if (!s.is_running() && is_cancelled(s)) return s.wait(0);
                return wait(s, timeout);
            },
            py::arg("timeout"))
        .def("due",
             [](const std::shared_ptr<Stream>& s) -> std::variant<bool, std::shared_ptr<Fence>> {
                 if (!s->is_running()) {
                     if (!is_cancelled(*s)) return false;
                     return s->wait(0);  // throws
                 }
                 if (s->poll()) return true;
                 return Fence::of({s});
             })
        .def("rerecord", &Stream::rerecord)
        .def("build", [](Stream& s) { Stream::require_together(s.device(), {&s}, {}); })
        .def("destroy",
             [](Stream& s) {
                 std::vector<std::string> told;
                 if (s.is_init() && s.is_running()) {
                     told = s.cancel_held();
                     try {
                         wait(s, -1);
                     } catch (const Error&) {
                         // The device is lost or the work was cancelled; it can only be destroyed.
                     }
                 }
                 s.destroy();
                 return told;
             })
        .def("cancel_held", &Stream::cancel_held)
        .def("is_recording", &Stream::is_recording)
        .def("is_running", &Stream::is_working)
        .def("is_due", [](const Stream& s) { return s.is_running() || is_cancelled(s); })
        .def("is_complete", &Stream::is_complete)
        .def("is_init", [](const Stream& s) { return s.is_init(); })
        .def("operation_names", &Stream::operation_names)
        .def("timestamps", &Stream::timestamps)
        .def("timed_names", [](const Stream& s) { return s.timed_names(); })
        .def("barriers", &barriers)
        .def_property(
            "name", [](const Stream& s) { return s.name(); },
            [](Stream& s, const std::string& n) { s.set_name(n); })
        .def_property_readonly("queue_index", &Stream::queue_index)
        .def_property_readonly("timestamp_bits", [](const Stream& s) { return s.queue().timestamp_bits(); })
        .def_property_readonly("vk_command_buffer",
                               [](const Stream& s) { return handle_value(s.command_buffer()); })
        .def_property_readonly("vk_semaphore",
                               [](const Stream& s) {
                                   const Point last = s.last_point();
                                   return handle_value(last.timeline ? last.timeline->semaphore()
                                                                     : s.queue().semaphore());
                               })
        .def_property_readonly("last_value", [](const Stream& s) { return s.last_point().value; });
}

}  // namespace kp
