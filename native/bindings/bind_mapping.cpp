#include "bindings.hpp"

#include "resource/mapping.hpp"

namespace kp {
namespace {

std::unique_ptr<Mapping> map(const ResourceRange& range, bool read, bool write, bool in_place) {
    auto mapping = std::make_unique<Mapping>(range, write, in_place);
    await_points(mapping->pending());
    const Unlocked unlocked;  // it may copy contents into the memory
    mapping->begin(read);
    return mapping;
}

// The mapped bytes as a flat array. Its base keeps the memory alive, not the mapping, so later reads are
// still safe.
py::object array(const Mapping& mapping, const ResourceRange& range, const py::dtype& dtype,
                 py::ssize_t count) {
    if (!mapping.data()) return py::none();
    auto* owner = new std::shared_ptr<void>(range.resource->keep_device_side());
    const py::capsule base(owner, [](void* p) { delete static_cast<std::shared_ptr<void>*>(p); });
    return py::array(dtype, {count}, {dtype.itemsize()}, mapping.data(), base);
}

Bytes whole(const Mapping& mapping, const py::array& array, bool writable) {
    const Bytes bytes = bytes_of(array, writable);
    if (!mapping.is_open()) throw Error(ErrorKind::failed_precondition, "The mapping is closed");
    if (bytes.size != mapping.range().size)
        throw Error(ErrorKind::invalid_argument, "The array has " + std::to_string(bytes.size) +
                                                     " bytes, the mapping " +
                                                     std::to_string(mapping.range().size));
    mapping.range().resource->require_init("copy");
    await_staging(mapping.range().resource->device());
    return bytes;
}

void read_mapping(Mapping& mapping, const py::array& out) {
    const Bytes bytes = whole(mapping, out, true);
    const Unlocked unlocked;
    mapping.read(bytes.data);
}

void write_mapping(Mapping& mapping, const py::array& data) {
    const Bytes bytes = whole(mapping, data, false);
    const Unlocked unlocked;
    mapping.write(bytes.data);
}

}  // namespace

void bind_mapping(py::module_& m) {
    py::class_<Mapping>(m, "MappedMemory")
        .def(py::init(&map), py::arg("memory"), py::arg("read"), py::arg("write"), py::arg("in_place") = true)
        .def("array", &array, py::arg("memory"), py::arg("dtype"), py::arg("count"))
        .def("read", &read_mapping, py::arg("out"))
        .def("write", &write_mapping, py::arg("data"))
        .def("close", &Mapping::close);
}

}  // namespace kp
