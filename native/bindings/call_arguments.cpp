#include "call_arguments.hpp"

#include <algorithm>
#include <cstring>

namespace kp {
namespace {

// The first word of each argument.
enum Token : uint64_t {
    array_token = 1,
    object_token,
    shape_token,
    name_token,
    counts_token,
    none_token,
    bool_token,
    int_token,
    float_token,
    text_token,
    tuple_token,
    scalar_token,
    mark_token
};

}  // namespace

py::object slot_of(PyObject* object, PyObject* name) {
    PyObject* found = PyObject_GetAttr(object, name);
    if (!found) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(found);
}

PyObject* interned(const char* text) {
    PyObject* made = PyUnicode_InternFromString(text);
    if (!made) throw py::error_already_set();
    return made;
}

const CallVocabulary::Name* CallVocabulary::find(PyObject* name) const noexcept {
    for (const Name& each : names)
        if (each.text.ptr() == name) return &each;
    // A keyword that is written in a call is interned; one of a dict need not be.
    for (const Name& each : names)
        if (PyUnicode_Compare(each.text.ptr(), name) == 0) return &each;
    return nullptr;
}

bool CallArguments::read(const CallVocabulary& vocabulary, PyObject* args, PyObject* keywords) {
    const auto positional = static_cast<size_t>(PyTuple_GET_SIZE(args));
    if (positional + static_cast<size_t>(PyDict_GET_SIZE(keywords)) > most_values) return false;
    given_ = 0;
    for (; given_ < positional; ++given_) {
        values_[given_] = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(given_));
        names_[given_] = nullptr;
    }
    PyObject *name = nullptr, *value = nullptr;
    uint32_t push_constants = 0;
    for (Py_ssize_t i = 0; PyDict_Next(keywords, &i, &name, &value);) {
        const CallVocabulary::Name* known = vocabulary.find(name);
        if (!known) return false;
        if (known->role == CallVocabulary::Role::push_constant) {
            push_constants_[known->field] = value;
            ++push_constants;
        }
        values_[given_] = value;
        names_[given_++] = known;
    }
    return push_constants == vocabulary.push_constants && write_key(vocabulary, Detail::objects);
}

bool CallArguments::write_key(const CallVocabulary& vocabulary, Detail detail) {
    count_ = 0;
    for (size_t i = 0; i < given_; ++i) {
        const CallVocabulary::Name* name = names_[i];
        if (name && (!add(name_token) || !add(name->text.ptr()))) return false;
        if (name && name->role == CallVocabulary::Role::push_constant) continue;
        const bool added = name && name->role == CallVocabulary::Role::counts
                               ? add_counts(values_[i])
                               : add_object(vocabulary, values_[i], detail);
        if (!added) return false;
    }
    return true;
}

bool CallArguments::add_object(const CallVocabulary& vocabulary, PyObject* value, Detail detail) {
    static PyObject* const array_type = reinterpret_cast<PyObject*>(py::detail::npy_api::get().PyArray_Type_);
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(value));
    if (vocabulary.values) return add_value(vocabulary, value);
    if (type == array_type) {
        const auto* array = py::detail::array_proxy(value);
        constexpr int needed =
            py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
        if ((array->flags & needed) != needed) return false;
        const bool writable = array->flags & py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
        if (!add(array_token | (writable ? 256u : 0u)) || !add(array->descr)) return false;
        if (detail == Detail::dtypes) return true;
        if (!add(static_cast<uint64_t>(array->nd))) return false;
        for (int axis = 0; axis < array->nd; ++axis)
            if (!add(static_cast<uint64_t>(array->dimensions[axis]))) return false;
        return true;
    }
    if (detail == Detail::objects) return add(object_token) && add(value);
    return type == vocabulary.tensor_type.ptr() && add_shape(value, detail);
}

bool CallArguments::add_shape(PyObject* tensor, Detail detail) {
    static PyObject* const shape_name = interned("_shape");
    static PyObject* const dtype_name = interned("_dtype");
    if (!add(shape_token) || !add(slot_of(tensor, dtype_name).ptr())) return false;
    if (detail == Detail::dtypes) return true;
    const py::object shape = slot_of(tensor, shape_name);
    if (!PyTuple_CheckExact(shape.ptr())) return false;
    const Py_ssize_t axes = PyTuple_GET_SIZE(shape.ptr());
    if (!add(static_cast<uint64_t>(axes))) return false;
    for (Py_ssize_t axis = 0; axis < axes; ++axis) {
        const long long length = PyLong_AsLongLong(PyTuple_GET_ITEM(shape.ptr(), axis));
        if (length == -1 && PyErr_Occurred()) throw py::error_already_set();
        if (!add(static_cast<uint64_t>(length))) return false;
    }
    return true;
}

// One int, or a tuple or list of ints. Bools and NumPy's integers go the longer way, which takes them, too.
bool CallArguments::add_counts(PyObject* value) {
    if (value == Py_None) return add(none_token);
    const auto add_int = [this](PyObject* each) {
        if (!PyLong_CheckExact(each)) return false;
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(each, &overflow);
        return !overflow && add(static_cast<uint64_t>(number));
    };
    if (PyLong_CheckExact(value)) return add(counts_token) && add(uint64_t{1}) && add_int(value);
    if (!PyTuple_CheckExact(value) && !PyList_CheckExact(value)) return false;
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
    if (!add(counts_token) || !add(static_cast<uint64_t>(size))) return false;
    for (Py_ssize_t i = 0; i < size; ++i)
        if (!add_int(PySequence_Fast_GET_ITEM(value, i))) return false;
    return true;
}

bool CallArguments::mark() noexcept { return add(mark_token); }

bool CallArguments::add_bytes(const void* bytes, size_t size) {
    if (!add(uint64_t{size})) return false;
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, static_cast<const char*>(bytes) + at, std::min(size - at, sizeof word));
        if (!add(word)) return false;
    }
    return true;
}

bool CallArguments::add_value(const CallVocabulary& vocabulary, PyObject* value) {
    static PyObject* const generic = py::object(py::module_::import("numpy").attr("generic")).release().ptr();
    PyTypeObject* type = Py_TYPE(value);
    if (reinterpret_cast<PyObject*>(type) == vocabulary.tensor_type.ptr())
        return add(object_token) && add(value);
    if (value == Py_None) return add(none_token);
    if (type == &PyBool_Type) return add(bool_token) && add(uint64_t{value == Py_True});
    if (type == &PyLong_Type) {
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        return !overflow && add(int_token) && add(static_cast<uint64_t>(number));
    }
    if (type == &PyFloat_Type) {  // by its bits: 0.0 equals -0.0
        const double number = PyFloat_AS_DOUBLE(value);
        return add(float_token) && add_bytes(&number, sizeof number);
    }
    if (type == &PyUnicode_Type) {
        Py_ssize_t size = 0;
        const char* text = PyUnicode_AsUTF8AndSize(value, &size);
        if (!text) PyErr_Clear();  // of lone surrogates
        return text && add(text_token) && add_bytes(text, static_cast<size_t>(size));
    }
    if (type == &PyTuple_Type) {
        const Py_ssize_t size = PyTuple_GET_SIZE(value);
        if (!add(tuple_token) || !add(static_cast<uint64_t>(size))) return false;
        for (Py_ssize_t i = 0; i < size; ++i) {
            PyObject* item = PyTuple_GET_ITEM(value, i);
            if (Py_TYPE(item) != &PyLong_Type &&
                reinterpret_cast<PyObject*>(Py_TYPE(item)) != vocabulary.tensor_type.ptr())
                return false;
            if (!add_value(vocabulary, item)) return false;
        }
        return true;
    }
    if (!PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(generic))) return false;
    const py::bytes bytes = py::reinterpret_borrow<py::object>(value).attr("tobytes")();
    const std::string_view view = bytes;
    return add(scalar_token) && add(type) && add_bytes(view.data(), view.size());
}

}  // namespace kp
