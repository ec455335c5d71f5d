#include "call_arguments.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

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
    kind_token,
    facts_token
};

constexpr size_t most_facts = 1 << 15;

PyObject* array_type() { return reinterpret_cast<PyObject*>(py::detail::npy_api::get().PyArray_Type_); }

// numpy.generic. The import lets other threads run Python. In the initializer of a static variable it would
// wait for a thread that waits there and holds the interpreter's lock.
PyObject* generic_type() {
    static PyObject* type = nullptr;  // held for ever
    if (!type) type = py::object(py::module_::import("numpy").attr("generic")).release().ptr();
    return type;
}

PyTypeObject* numpy_type(const char* name) {
    const py::object type = py::module_::import("numpy").attr(name);
    return reinterpret_cast<PyTypeObject*>(type.inc_ref().ptr());
}

template <typename T>
bool put_int(std::byte* to, PyObject* value) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) return false;
    if constexpr (sizeof(T) < 8 || std::is_signed_v<T>) {
        if (number < static_cast<long long>(std::numeric_limits<T>::min()) ||
            number > static_cast<long long>(std::numeric_limits<T>::max()))
            return false;
    } else if (number < 0) {
        return false;
    }
    const T exact = static_cast<T>(number);
    std::memcpy(to, &exact, sizeof exact);
    return true;
}

}  // namespace

bool put(std::byte* to, char code, PyObject* value) {
    static PyTypeObject* const float32 = numpy_type("float32");
    static PyTypeObject* const float64 = numpy_type("float64");
    if (code == 'f' || code == 'd') {
        double number = 0;
        if (PyFloat_CheckExact(value)) {
            number = PyFloat_AS_DOUBLE(value);
        } else if (PyLong_CheckExact(value)) {
            int overflow = 0;
            const long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
            if (overflow || whole > (1LL << 53) || whole < -(1LL << 53)) return false;
            number = static_cast<double>(whole);
        } else if (Py_TYPE(value) == float64) {  // a subclass of float
            number = PyFloat_AS_DOUBLE(value);
        } else if (Py_TYPE(value) == float32) {
            number = PyFloat_AsDouble(value);
            if (number == -1.0 && PyErr_Occurred()) {
                PyErr_Clear();
                return false;
            }
        } else {
            return false;
        }
        if (code == 'd') {
            std::memcpy(to, &number, sizeof number);
            return true;
        }
        // A NaN's bits are Python's business.
        if (std::isnan(number)) return false;
        const auto single = static_cast<float>(number);
        if (std::isinf(single) && !std::isinf(number)) return false;
        std::memcpy(to, &single, sizeof single);
        return true;
    }
    if (!PyLong_CheckExact(value)) return false;
    switch (code) {
    case 'b': return put_int<int8_t>(to, value);
    case 'B': return put_int<uint8_t>(to, value);
    case 'h': return put_int<int16_t>(to, value);
    case 'H': return put_int<uint16_t>(to, value);
    case 'i': return put_int<int32_t>(to, value);
    case 'I': return put_int<uint32_t>(to, value);
    case 'q': return put_int<int64_t>(to, value);
    case 'Q': return put_int<uint64_t>(to, value);
    default: return false;
    }
}

py::object slot_of(PyObject* object, PyObject* name) {
    PyObject* found = PyObject_GetAttr(object, name);
    if (!found) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(found);
}

bool is_view(const py::object& native) {
    static PyObject* const type = py::type::of<BufferView>().release().ptr();
    return reinterpret_cast<PyObject*>(Py_TYPE(native.ptr())) == type;
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
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(value));
    if (vocabulary.function) return add_value(vocabulary, value);
    if (type == array_type()) {
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
    if (detail == Detail::objects) {
        const bool list = type == reinterpret_cast<PyObject*>(&PyList_Type);
        if (!list && type != reinterpret_cast<PyObject*>(&PyTuple_Type))
            return add(object_token) && add(value);
        const Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
        if (!add(tuple_token) || !add(static_cast<uint64_t>(size))) return false;
        for (Py_ssize_t i = 0; i < size; ++i) {
            PyObject* item = PySequence_Fast_GET_ITEM(value, i);
            if (reinterpret_cast<PyObject*>(Py_TYPE(item)) != vocabulary.tensor_type.ptr() || !add(item))
                return false;
        }
        return true;
    }
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
    if (!PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(generic_type()))) return false;
    const py::bytes bytes = py::reinterpret_borrow<py::object>(value).attr("tobytes")();
    const std::string_view view = bytes;
    return add(scalar_token) && add(type) && add_bytes(view.data(), view.size());
}

std::vector<PyObject*> CallArguments::identified() const {
    std::vector<PyObject*> found;
    for (size_t i = 0; i < given_; ++i) {
        PyObject* value = values_[i];
        if (names_[i] && names_[i]->role != CallVocabulary::Role::binding) continue;
        if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) {
            PyObject** items = PySequence_Fast_ITEMS(value);
            found.insert(found.end(), items, items + PySequence_Fast_GET_SIZE(value));
        } else if (value != Py_None && reinterpret_cast<PyObject*>(Py_TYPE(value)) != array_type()) {
            found.push_back(value);
        }
    }
    return found;
}

std::pair<int64_t, int64_t> CallArguments::place_of(const PyObject* object) const noexcept {
    for (size_t i = 0; i < given_; ++i) {
        if (values_[i] == object) return {static_cast<int64_t>(i), -1};
        const Py_ssize_t size = PyTuple_CheckExact(values_[i]) ? PyTuple_GET_SIZE(values_[i]) : 0;
        for (Py_ssize_t item = 0; item < size; ++item)
            if (PyTuple_GET_ITEM(values_[i], item) == object) return {static_cast<int64_t>(i), item};
    }
    return {-1, -1};
}

// -- the parameters of a function ---------------------------------------------------------------------------

bool CallArguments::read_parameters(const CallVocabulary& vocabulary, PyObject* args, PyObject* keywords) {
    const auto& [parameters, by_position, writes, facts, shared] = *vocabulary.function;
    const auto positional = static_cast<size_t>(PyTuple_GET_SIZE(args));
    if (positional > by_position || parameters.size() >= most_values) return false;
    given_ = parameters.size();
    for (size_t i = 0; i < given_; ++i)
        values_[i] =
            i < positional ? PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i)) : parameters[i].value.ptr();
    PyObject *name = nullptr, *value = nullptr, *out = Py_None;
    for (Py_ssize_t i = 0; PyDict_Next(keywords, &i, &name, &value);) {
        const CallVocabulary::Name* known = vocabulary.find(name);
        if (!known || known->field < positional) return false;
        (known->field < given_ ? values_[known->field] : out) = value;
    }
    for (size_t i = 0; i < given_; ++i) {
        const auto is_type = [&](const py::object& type) {
            return type.ptr() == reinterpret_cast<PyObject*>(Py_TYPE(values_[i]));
        };
        if (std::ranges::none_of(parameters[i].plain, is_type)) return false;
    }
    const bool several = PyTuple_CheckExact(out);
    const Py_ssize_t outs = several ? PyTuple_GET_SIZE(out) : out != Py_None;
    if (given_ + static_cast<size_t>(outs) > most_values) return false;
    for (Py_ssize_t i = 0; i < outs; ++i) {
        PyObject* each = several ? PyTuple_GET_ITEM(out, i) : out;
        if (reinterpret_cast<PyObject*>(Py_TYPE(each)) != vocabulary.tensor_type.ptr()) return false;
        values_[given_++] = each;
    }
    count_ = 0;
    bool memory = false;
    for (size_t i = 0; i < given_; ++i)
        if (!add_kind(vocabulary, values_[i], memory)) return false;
    return memory && ((!writes && !outs) || are_apart(vocabulary));
}

bool CallArguments::take(CallVocabulary& vocabulary, const py::sequence& values, const py::tuple& outs,
                         const py::tuple& extra) {
    count_ = given_ = 0;
    if (values.size() + outs.size() > most_values) return false;
    bool memory = false;
    for (const py::handle list : {py::handle(values), py::handle(outs)})
        for (const py::handle each : list) {
            values_[given_++] = each.ptr();  // the lists keep them
            if (!add_kind(vocabulary, each.ptr(), memory) &&
                !add_facts(vocabulary, vocabulary.function->facts(each)))
                return false;
        }
    return extra.empty() || add_facts(vocabulary, extra);
}

// A tensor's shape and dtype, a text, or the type of a number; false for all else.
bool CallArguments::add_kind(const CallVocabulary& vocabulary, PyObject* value, bool& memory) {
    static PyObject* const type_name = interned("_memory_type");
    static PyObject* const manager_name = interned("_manager");
    static PyObject* const native_name = interned("_native");
    PyTypeObject* type = Py_TYPE(value);
    if (reinterpret_cast<PyObject*>(type) == vocabulary.tensor_type.ptr()) {
        if (slot_of(value, manager_name).ptr() != vocabulary.manager) return false;
        if (!add_shape(value, Detail::shapes)) return false;
        if (!memory && !add(slot_of(value, type_name).ptr())) return false;  // new results have it
        memory = true;
        const py::object native = slot_of(value, native_name);
        if (!is_view(native)) return true;
        constexpr uint64_t alignment = 256;  // the largest minStorageBufferOffsetAlignment of Vulkan
        return add(native.cast<const BufferView&>().offset() % alignment + 1);
    }
    if (type == &PyUnicode_Type || value == Py_None) return add_value(vocabulary, value);
    const bool number = type == &PyFloat_Type || type == &PyLong_Type || type == &PyBool_Type ||
                        type == &PyComplex_Type ||
                        PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(generic_type()));
    return number && add(kind_token) && add(type);
}

bool CallArguments::add_facts(CallVocabulary& vocabulary, const py::object& facts) {
    if (vocabulary.known.size() > most_facts) return false;
    const py::object number = py::int_(vocabulary.known.size());
    const py::object found = vocabulary.known.attr("setdefault")(facts, number);
    return add(facts_token) && add(found.cast<uint64_t>());
}

bool CallArguments::add_values(const CallVocabulary& vocabulary, std::span<const uint32_t> places) {
    for (const uint32_t place : places) {
        PyObject* value = values_[place];
        if (PyComplex_CheckExact(value)) {
            const Py_complex number = PyComplex_AsCComplex(value);
            if (!add_bytes(&number, sizeof number)) return false;
        } else if (!PyList_CheckExact(value) && !add_value(vocabulary, value)) {  // of lists the facts tell
            return false;
        }
    }
    return true;
}

// Whether all tensors have memory of their own.
bool CallArguments::are_apart(const CallVocabulary& vocabulary) const {
    static PyObject* const native_name = interned("_native");
    const py::object& shared = vocabulary.function->shared;
    const bool some = PyObject_IsTrue(shared.ptr());
    std::array<PyObject*, most_values> seen;
    size_t count = 0;
    for (size_t i = 0; i < given_; ++i) {
        if (reinterpret_cast<PyObject*>(Py_TYPE(values_[i])) != vocabulary.tensor_type.ptr()) continue;
        const py::object native = slot_of(values_[i], native_name);
        if (is_view(native)) return false;
        if (std::find(seen.begin(), seen.begin() + count, native.ptr()) != seen.begin() + count) return false;
        seen[count++] = native.ptr();
        if (some && shared.contains(py::handle(values_[i]))) return false;
    }
    return true;
}

}  // namespace kp
