#include "bindings.hpp"
#include "run/waiter.hpp"

namespace kp {

void bind_waiter(py::module_& m) {
    py::class_<Waiter, std::shared_ptr<Waiter>>(m, "Waiter")
        .def(py::init([](const Context& context) {
            context.device().require_own();
            return std::make_shared<Waiter>(context.shared());
        }))
        .def("watch", &Waiter::watch, py::arg("fence"))
        .def("forget", &Waiter::forget, py::arg("number"))
        .def(
            "wait",
            [](Waiter& w) {
                // Drivers interpret an infinite time-out differently.
                return w.wait(UINT64_C(1'000'000'000));
            },
            py::call_guard<Unlocked>())
        .def("close", &Waiter::close)
        .def("closed", &Waiter::closed);
}

}  // namespace kp
