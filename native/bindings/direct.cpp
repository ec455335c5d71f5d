#include "direct.hpp"

#include "bindings.hpp"

#include <new>

namespace kp {

PyTypeObject* OperationObject::type_ = nullptr;

namespace {

void free_operation(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    reinterpret_cast<OperationObject*>(self)->operation.~shared_ptr();
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* name_of(PyObject* self, void*) {
    return translated(
        [&] { return py::str(reinterpret_cast<OperationObject*>(self)->operation->name()).release().ptr(); });
}

}  // namespace

void replace_method(const py::handle& type, PyMethodDef& method) {
    PyObject* made = PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &method);
    if (!made) throw py::error_already_set();
    py::setattr(type, method.ml_name, py::reinterpret_steal<py::object>(made));
}

void add_function(py::module_& m, PyMethodDef& function) {
    PyObject* made = PyCFunction_NewEx(&function, nullptr, m.attr("__name__").ptr());
    if (!made) throw py::error_already_set();
    m.attr(function.ml_name) = py::reinterpret_steal<py::object>(made);
}

PyObject* OperationObject::make(std::shared_ptr<Operation> operation) {
    auto* made = reinterpret_cast<OperationObject*>(type_->tp_alloc(type_, 0));
    if (!made) throw py::error_already_set();
    new (&made->operation) std::shared_ptr<Operation>(std::move(operation));
    return reinterpret_cast<PyObject*>(made);
}

std::shared_ptr<Operation> OperationObject::get(PyObject* object) {
    if (Py_TYPE(object) == type_) return reinterpret_cast<OperationObject*>(object)->operation;
    py::detail::copyable_holder_caster<BoundDispatch, std::shared_ptr<BoundDispatch>> bound;
    if (object == Py_None || !bound.load(object, false)) return nullptr;
    return static_cast<std::shared_ptr<BoundDispatch>&>(bound);
}

void OperationObject::bind(py::module_& m) {
    static PyGetSetDef properties[] = {{"name", name_of, nullptr, nullptr, nullptr},
                                       {nullptr, nullptr, nullptr, nullptr, nullptr}};
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, reinterpret_cast<void*>(free_operation)}, {Py_tp_getset, properties}, {0, nullptr}};
    static PyType_Spec spec = {
        "kompute_py._native.Operation", static_cast<int>(sizeof(OperationObject)), 0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE, slots};
    type_ = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!type_) throw py::error_already_set();
    m.attr("Operation") = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(type_));
}

}  // namespace kp
