#include "bindings.hpp"
#include "device/profiler.hpp"

#include <pybind11/stl.h>

namespace kp {
namespace {

// The line of this thread that called the package: "file.py:12". Runs under locks of the core, so it neither
// waits for the interpreter lock nor lets Python collect garbage, which may destroy objects of ours.
class Line {
public:
    explicit Line(std::string package) : package_(std::move(package)) {}

    std::string operator()() const {
        if (!has_interpreter_lock()) return {};
        const int collected = PyGC_Disable();
        std::string line = find();
        if (collected) PyGC_Enable();
        return line;
    }

private:
    [[nodiscard]] std::string find() const {
        PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
        std::string line;
        while (frame) {
            PyCodeObject* code = PyFrame_GetCode(frame);
            const char* file = PyUnicode_AsUTF8(code->co_filename);
            if (!file) PyErr_Clear();
            if (file && std::string_view(file).substr(0, package_.size()) != package_)
                line = std::string(file) + ':' + std::to_string(PyFrame_GetLineNumber(frame));
            Py_DECREF(code);
            PyFrameObject* const caller = line.empty() ? PyFrame_GetBack(frame) : nullptr;
            Py_DECREF(frame);
            frame = caller;
        }
        return line;
    }

    std::string package_;
};

py::dict described(const ProfiledRun& run) {
    py::list operations;
    for (const auto& operation : run.what->operations)
        operations.append(py::make_tuple(
            operation.name, py::make_tuple(operation.groups[0], operation.groups[1], operation.groups[2]),
            operation.read, operation.written));
    py::dict result;
    result["label"] = run.what->label;
    result["operations"] = operations;
    result["family"] = run.family;
    result["queue"] = run.queue;
    result["submission"] = run.submission;
    result["submit_begin"] = run.submit_begin;
    result["submit_end"] = run.submit_end;
    result["thread"] = run.thread;
    result["line"] = run.line;
    result["times"] = run.times;
    result["memory"] = run.memory;
    return result;
}

}  // namespace

void bind_profile(py::module_& m) {
    m.def("begin_spans", &HostSpans::start);
    m.def(
        "end_spans",
        [](size_t first) {
            py::list result;
            for (const HostSpanNote& note : HostSpans::stop(first))
                result.append(py::make_tuple(note.kind, note.text, note.begin, note.end, note.thread));
            return result;
        },
        py::arg("first"));
    m.def(
        "note_span",
        [](std::string kind, std::string text, uint64_t begin) {
            if (HostSpans::wanted())
                HostSpans::note({std::move(kind), std::move(text), begin, host_clock(), this_thread()});
        },
        py::arg("kind"), py::arg("text"), py::arg("begin"));
    m.def(
        "begin_profile",
        [](const Context& context, std::string package, bool operations) {
            context.device().require_open("profile");
            const Unlocked unlocked;
            return context.device().begin_profile(Line(std::move(package)), operations);
        },
        py::arg("context"), py::arg("package"), py::arg("operations"));
    m.def(
        "end_profile",
        [](const Context& context, size_t first) {
            ProfiledRuns ended;
            {
                const Unlocked unlocked;
                ended = context.device().end_profile(first);
            }
            py::list runs;
            for (const ProfiledRun& run : ended.runs) runs.append(described(run));
            return py::make_tuple(runs, ended.uncertainty, ended.calibrated);
        },
        py::arg("context"), py::arg("first"));
}

}  // namespace kp
