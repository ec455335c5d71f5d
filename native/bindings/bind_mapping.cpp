#include "bindings.hpp"

#include "core/mapping.hpp"

namespace kp {
namespace {

std::unique_ptr<Mapping> map(const ResourceRange& range, bool read, bool write) {
    auto mapping = std::make_unique<Mapping>(range, write);
    await_points(mapping->pending());
    mapping->begin(read);
    return mapping;
}

// The mapped bytes as a flat array. Its base keeps the memory, not the mapping: whoever still looks at it later looks at memory.
py::object array(const Mapping& mapping, const ResourceRange& range, const py::dtype& dtype,
                 py::ssize_t count) {
    if (!mapping.data()) return py::none();
    auto* owner = new std::shared_ptr<void>(range.resource->keep_device_side());
    const py::capsule base(owner, [](void* p) { delete static_cast<std::shared_ptr<void>*>(p); });
    return py::array(dtype, {count}, {dtype.itemsize()}, mapping.data(), base);
}

}  // namespace

void bind_mapping(py::module_& m) {
    py::class_<Mapping>(m, "MappedMemory")
        .def(py::init(&map), py::arg("memory"), py::arg("read"), py::arg("write"))
        .def("array", &array, py::arg("memory"), py::arg("dtype"), py::arg("count"))
        .def("is_open", &Mapping::is_open)
        .def("close", &Mapping::close);
}

}  // namespace kp
