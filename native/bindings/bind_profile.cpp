#include "bindings.hpp"
#include "device/profiler.hpp"
#include "user_line.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace kp {
namespace {

// One profile of a device, from its construction to end(), or to its own end.
class ProfileReader {
public:
    ProfileReader(const Context& context, bool operations) : device_(context.shared()) {
        device_->require_open("profile");
        const Unlocked unlocked;
        first_ = device_->begin_profile(user_line,
                                        operations ? ProfilerLooks::operations : ProfilerLooks::sequences);
    }
    ProfileReader(const ProfileReader&) = delete;
    ProfileReader& operator=(const ProfileReader&) = delete;
    ~ProfileReader() {
        if (!ended_ && !device_->foreign()) device_->end_profile();
    }

    // Waits for the work submitted until now, unless its Manager was destroyed: that has waited.
    void settle() {
        if (ended_ || device_->foreign()) return;
        {
            const Unlocked unlocked;
            last_ = device_->profiled_runs();
        }
        if (!device_->is_open() || device_->lost()) return;
        await_points(device_->submitted());
        {
            const Unlocked unlocked;
            device_->settle_profile();
        }
        if (device_->lost()) device_->throw_lost("waiting", "the end of a profile");
    }

    // The runs until settle(). In a child process of fork() there are none.
    ProfiledRuns end() {
        if (ended_ || device_->foreign()) return {};
        ended_ = true;
        const Unlocked unlocked;
        struct Ending {
            Device& device;
            ~Ending() { device.end_profile(); }
        } const ending{*device_};
        return device_->profiled(first_, std::max(first_, last_));
    }

private:
    std::shared_ptr<Device> device_;
    size_t first_ = 0;
    size_t last_ = 0;
    bool ended_ = false;
};

// Looks at the values of a device's operations, from its construction to end(), or to its own end.
class ValueReader {
public:
    explicit ValueReader(const Context& context) : device_(context.shared()) {
        device_->require_open("look at values");
        const Unlocked unlocked;
        (void)device_->begin_profile(user_line, ProfilerLooks::values);
    }
    ValueReader(const ValueReader&) = delete;
    ValueReader& operator=(const ValueReader&) = delete;
    ~ValueReader() { end(); }

    [[nodiscard]] std::vector<ProfiledRun> take() {
        return ended_ || device_->foreign() ? std::vector<ProfiledRun>() : device_->take_values();
    }
    void end() noexcept {
        if (!ended_ && !device_->foreign()) device_->end_profile();
        ended_ = true;
    }

private:
    std::shared_ptr<Device> device_;
    bool ended_ = false;
};

py::dict described_values(const ProfiledRun& run, bool contents) {
    const ValueCopies& values = *run.what->values;
    py::list parts;
    for (const auto& part : values.parts)
        parts.append(py::make_tuple(
            std::static_pointer_cast<Resource>(part.memory), part.begin, part.end,
            py::bytes(reinterpret_cast<const char*>(run.values.data() + part.at), part.end - part.begin)));
    py::list operations;
    for (size_t i = 0; i < values.operations.size(); ++i) {
        py::list uses;
        for (const auto& use : values.operations[i])
            uses.append(py::make_tuple(use.before, use.after, use.reads, use.whole));
        const auto& operation = run.what->operations[i];
        operations.append(py::make_tuple(operation.name, operation.line, uses));
    }
    py::dict result;
    if (contents) {
        py::list recorded;
        for (size_t i = 0; i < run.what->contents.size(); ++i)
            recorded.append(
                content_to_python(run.what->operations[i].name,
                                  *std::static_pointer_cast<const OperationContent>(run.what->contents[i])));
        result["recorded"] = std::move(recorded);
    }
    result["label"] = run.what->label;
    result["line"] = run.line;
    result["submission"] = run.submission;
    result["queue"] = run.what->queue_index;
    py::list disjoint;
    for (const auto& memory : values.disjoint) disjoint.append(std::static_pointer_cast<Resource>(memory));
    result["disjoint"] = disjoint;
    result["parts"] = parts;
    result["operations"] = operations;
    return result;
}

py::dict described(const ProfiledRun& run) {
    py::list operations;
    for (const auto& operation : run.what->operations)
        operations.append(py::make_tuple(
            operation.name, py::make_tuple(operation.groups[0], operation.groups[1], operation.groups[2]),
            operation.read, operation.written, operation.line));
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
    m.def("set_package", &set_package, py::arg("folder"));
    m.def("begin_spans", &HostSpans::start);
    m.def(
        "end_spans",
        [](size_t first) {
            py::list result;
            for (const HostSpanNote& note : HostSpans::stop(first))
                result.append(
                    py::make_tuple(note.kind, note.text, note.begin, note.end, note.thread, note.bytes));
            return result;
        },
        py::arg("first"));
    m.def(
        "note_span",
        [](std::string kind, std::string text, uint64_t begin) {
            if (HostSpans::wanted())
                HostSpans::note({std::move(kind), std::move(text), begin, host_clock(), this_thread(), 0});
        },
        py::arg("kind"), py::arg("text"), py::arg("begin"));
    py::class_<ValueReader>(m, "ValueReader")
        .def(py::init<const Context&>(), py::arg("context"))
        .def(
            "take",
            [](ValueReader& reader, bool contents) {
                py::list runs;
                for (const ProfiledRun& run : reader.take()) runs.append(described_values(run, contents));
                return runs;
            },
            py::arg("contents"))
        .def("end", &ValueReader::end);
    py::class_<ProfileReader>(m, "ProfileReader")
        .def(py::init<const Context&, bool>(), py::arg("context"), py::arg("operations"))
        .def("settle", &ProfileReader::settle)
        .def("end", [](ProfileReader& reader) {
            const ProfiledRuns ended = reader.end();
            py::list runs;
            for (const ProfiledRun& run : ended.runs) runs.append(described(run));
            return py::make_tuple(runs, ended.uncertainty, ended.calibrated);
        });
}

}  // namespace kp
