// Functions and objects of Python without pybind11's dispatch, for the calls that cost little else: about a
// quarter of the instructions.
#pragma once

#include "interpreter.hpp"

#include <pybind11/detail/exception_translation.h>

#include <memory>

namespace kp {

class Operation;

// Runs `body`, which returns a new reference, and turns its exceptions into Python's.
template <typename Body>
PyObject* translated(const Body& body) {
    try {
        return body();
    } catch (py::error_already_set& error) {
        error.restore();
#ifdef __GLIBCXX__
    } catch (abi::__forced_unwind&) {
        throw;
#endif
    } catch (...) {
        py::detail::try_translate_exceptions();
    }
    return nullptr;
}

// The native object of an instance of a class bound with pybind11. `object` must be of exactly this class, or
// of a subclass without other bases; null if its __init__ did not run.
template <typename T>
T* native_of(PyObject* object) {
    return reinterpret_cast<py::detail::instance*>(object)->get_value_and_holder().template value_ptr<T>();
}
// The same for one that is held by a std::shared_ptr; null if it has none.
template <typename T>
const std::shared_ptr<T>* holder_of(PyObject* object) {
    auto held = reinterpret_cast<py::detail::instance*>(object)->get_value_and_holder();
    return held.holder_constructed() ? &held.template holder<std::shared_ptr<T>>() : nullptr;
}

// Replaces a method of a class bound with pybind11. Its first argument is an instance. `method` must live as
// long as the process.
void replace_method(const py::handle& type, PyMethodDef& method);
// Adds a function to the module. `function` must live as long as the process.
void add_function(py::module_& m, PyMethodDef& function);

// Python's handle on an operation, `_native.Operation`.
struct OperationObject {
    PyObject_HEAD std::shared_ptr<Operation> operation;

    [[nodiscard]] static PyTypeObject* type() noexcept { return type_; }
    // A new reference.
    [[nodiscard]] static PyObject* make(std::shared_ptr<Operation> operation);
    // The operation of `object`, which may also be a `_native.BoundDispatch`; null if it is none.
    [[nodiscard]] static std::shared_ptr<Operation> get(PyObject* object);
    static void bind(py::module_& m);

private:
    static PyTypeObject* type_;
};

}  // namespace kp

template <>
struct pybind11::detail::type_caster<std::shared_ptr<kp::Operation>> {
    PYBIND11_TYPE_CASTER(std::shared_ptr<kp::Operation>, const_name("Operation"));

    bool load(handle source, bool /*convert*/) {
        value = kp::OperationObject::get(source.ptr());
        return value != nullptr;
    }
    static handle cast(std::shared_ptr<kp::Operation> operation, return_value_policy, handle) {
        if (!operation) return none().release();
        return kp::OperationObject::make(std::move(operation));
    }
};
