// A base type that gives its subclasses the buffer protocol and NumPy's `__array_interface__`. Python classes
// can implement the protocol since Python 3.12 (PEP 688); before, only C types can. It has no data of its
// own, so a class can derive from it and from others.
//
// NumPy asks every object for both before it calls `__array__`, and drops the errors of objects that refuse.
// So a subclass refuses by returning (class of the error, its arguments): up to CPython 3.11 the error is
// made only if it is looked at.
#include "bindings.hpp"

namespace kp {
namespace {

// Calls the method `name` without arguments. Null with an error set if it raises or refuses.
PyObject* ask(PyObject* self, PyObject* name) {
    PyObject* answer = PyObject_CallMethodNoArgs(self, name);
    if (!answer || !PyTuple_CheckExact(answer)) return answer;
    if (PyTuple_GET_SIZE(answer) == 2)
        PyErr_SetObject(PyTuple_GET_ITEM(answer, 0), PyTuple_GET_ITEM(answer, 1));
    else
        PyErr_SetString(PyExc_SystemError, "A refusal is (class of the error, its arguments)");
    Py_DECREF(answer);
    return nullptr;
}

// Asks the object for a memoryview and passes on its buffer, which keeps the memory alive.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
    static PyObject* const name = PyUnicode_InternFromString("_memoryview");
    view->obj = nullptr;
    PyObject* memory = ask(self, name);
    if (!memory) return -1;
    const int result = PyObject_GetBuffer(memory, view, flags);
    Py_DECREF(memory);
    return result;
}

PyObject* array_interface(PyObject* self, void*) {
    static PyObject* const name = PyUnicode_InternFromString("_array_interface");
    return ask(self, name);
}

}  // namespace

void bind_buffer_protocol(py::module_& m) {
    static PyGetSetDef attributes[] = {
        {"__array_interface__", &array_interface, nullptr,
         "For libraries that read memory by its address, such as ``PIL.Image.fromarray(t)``.\n\n"
         "Only `host` and `deviceAndHost` memory of plain numbers has it, because the host cannot address "
         "other\nmemory. Waits for pending work. The memory lives as long as the tensor. Otherwise raises\n"
         "ArrayAttributeError (an AttributeError): use ``t.read()``.",
         nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr}};
    static PyType_Slot slots[] = {
        {Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
        {Py_tp_getset, attributes},
        {Py_tp_doc, const_cast<char*>("Gives subclasses the buffer protocol, from their _memoryview(), and "
                                      "`__array_interface__`, from their _array_interface().")},
        {0, nullptr}};
    static PyType_Spec spec = {"kompute_py._native.BufferExporter", 0, 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    m.add_object("BufferExporter", py::reinterpret_steal<py::object>(PyType_FromSpec(&spec)));
}

}  // namespace kp
