#include "bindings.hpp"
#include "run/fence.hpp"
#include "run/peer_copy.hpp"

namespace kp {
namespace {

// The interpreter lock is free while the core works, and taken between the slices of a wait to hear Ctrl-C.
void await_points_unlocked(const std::vector<Point>& points) {
    const Locked locked;
    await_points(points);
}

void submit_copy(PeerCopy& copy) {
    const Unlocked unlocked;
    copy.submit(await_points_unlocked);
}

const char* name_of(PeerCopy::Route route) {
    switch (route) {
    case PeerCopy::Route::undecided: return "undecided";
    case PeerCopy::Route::same_device: return "same device";
    case PeerCopy::Route::direct: return "direct";
    case PeerCopy::Route::shared: return "shared";
    case PeerCopy::Route::bounced: return "bounced";
    }
    return "";
}

}  // namespace

void bind_peer_copy(py::module_& m) {
    py::class_<PeerCopy, std::shared_ptr<PeerCopy>>(m, "PeerCopy")
        .def(py::init<ResourceRange, ResourceRange>(), py::arg("source"), py::arg("target"))
        .def_property_readonly("name", [](const PeerCopy&) { return "OpCopy"; })
        .def("check", &PeerCopy::check)
        .def("submit", &submit_copy)
        .def("why_held", [](const PeerCopy& copy) { return why_held(copy.comes_after()); })
        .def("poll", &PeerCopy::poll)
        .def("is_running", &PeerCopy::is_running)
        .def("fence", &PeerCopy::fence)
        .def_property_readonly("route", [](const PeerCopy& copy) { return name_of(copy.route()); });
}

}  // namespace kp
