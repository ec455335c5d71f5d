// A base type that gives its subclasses the buffer protocol. Python classes can implement it since
// Python 3.12 (PEP 688); before, only C types can. It has no data of its own, so a class can derive from it
// and from others.
#include "bindings.hpp"

namespace kp {
namespace {

// Asks the object for a memoryview and passes on its buffer, which keeps the memory alive.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
    view->obj = nullptr;
    PyObject* memory = PyObject_CallMethod(self, "_memoryview", nullptr);
    if (!memory) return -1;
    const int result = PyObject_GetBuffer(memory, view, flags);
    Py_DECREF(memory);
    return result;
}

}  // namespace

void bind_buffer_protocol(py::module_& m) {
    static PyType_Slot slots[] = {
        {Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
        {Py_tp_doc, const_cast<char*>("Gives subclasses the buffer protocol, from their _memoryview().")},
        {0, nullptr}};
    static PyType_Spec spec = {"kompute_py._native.BufferExporter", 0, 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    m.add_object("BufferExporter", py::reinterpret_steal<py::object>(PyType_FromSpec(&spec)));
}

}  // namespace kp
