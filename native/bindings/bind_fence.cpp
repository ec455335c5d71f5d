#include "bindings.hpp"

#include "core/fence.hpp"

#include <chrono>

namespace kp {
namespace {

// Seconds; negative: no limit. Hears Ctrl-C between slices.
bool wait(Fence& fence, double seconds) {
    using Clock = std::chrono::steady_clock;
    if (fence.done()) return true;
    const auto start = Clock::now();
    while (true) {
        uint64_t slice = wait_slice_nanoseconds;
        if (seconds >= 0) {
            const double left = seconds - std::chrono::duration<double>(Clock::now() - start).count();
            if (left <= 0) return fence.done();
            slice = std::min(slice, static_cast<uint64_t>(left * 1e9) + 1);
        }
        bool done = false;
        {
            const py::gil_scoped_release unlocked;
            done = fence.wait(slice);
        }
        if (done) return true;
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    }
}

}  // namespace

void bind_fence(py::module_& m) {
    py::class_<Fence, std::shared_ptr<Fence>>(m, "Fence")
        .def(
            "done", [](Fence& f) { return f.done(); }, py::call_guard<py::gil_scoped_release>())
        .def("wait", &wait, py::arg("timeout"))
        .def_static("join", &Fence::join);
    m.def("submit_once", [](const std::shared_ptr<Operation>& operation) { return submit_once(operation); });
}

}  // namespace kp
