#include "bindings.hpp"
#include "call_arguments.hpp"
#include "call_support.hpp"
#include "record/repeat_operation.hpp"
#include "record/warm_up_operation.hpp"

namespace kp {

std::array<uint32_t, 3> groups_of(const std::array<int64_t, 3>& groups) {
    std::array<uint32_t, 3> result{};
    for (size_t i = 0; i < 3; ++i) {
        if (groups[i] < 0 || groups[i] > UINT32_MAX)
            throw Error(ErrorKind::invalid_argument,
                        "A workgroup count must be 0 to 4294967295, not " + std::to_string(groups[i]));
        result[i] = static_cast<uint32_t>(groups[i]);
    }
    return result;
}

std::shared_ptr<Algorithm> prepared(std::shared_ptr<Algorithm> algorithm,
                                    const std::array<uint32_t, 3>& groups) {
    if (!algorithm->fits(groups)) [[unlikely]]
        (void)making_pipeline(algorithm->device(), [algorithm, groups] { return algorithm->launch(groups); });
    return algorithm;
}

namespace {

OperationPtr custom(const Context& context, std::string name, const py::object& record,
                    const std::optional<std::vector<ResourceRange>>& reads,
                    const std::optional<std::vector<ResourceRange>>& writes) {
    CustomUses uses;
    uses.declared = reads.has_value() || writes.has_value();
    uses.reads = reads.value_or(std::vector<ResourceRange>{});
    uses.writes = writes.value_or(std::vector<ResourceRange>{});
    // Borrowed: the Python Sequence keeps the callable alive. The retire list frees operations on any thread,
    // and a reference here would then need the interpreter lock.
    PyObject* callable = record.ptr();
    return make_custom(
        context.shared(), std::move(name),
        [callable](VkCommandBuffer commands) {
            const Locked locked;
            run_python([&] { py::reinterpret_borrow<py::object>(callable)(handle_value(commands)); });
        },
        std::move(uses));
}

// A sync operation creates missing host copies and touches their memory, so it runs without the interpreter
// lock.
template <class Make>
OperationPtr make_sync(std::vector<ResourceRange> ranges, const Make& make) {
    std::optional<Unlocked> unlocked;
    for (const auto& range : ranges) {
        if (range.resource->host_copy_made()) continue;
        unlocked.emplace();
        break;
    }
    return make(std::move(ranges));
}

// The range of a tensor or image of Python; nothing if `memory` is something else.
std::optional<ResourceRange> range_of(PyObject* memory) {
    static PyObject* const native_name = interned("_native");
    static PyObject* const buffer_type = py::type::of<Buffer>().release().ptr();
    const auto native = py::reinterpret_steal<py::object>(PyObject_GetAttr(memory, native_name));
    if (!native) {
        PyErr_Clear();
        return std::nullopt;
    }
    if (reinterpret_cast<PyObject*>(Py_TYPE(native.ptr())) == buffer_type) {
        const std::shared_ptr<Buffer>* buffer = holder_of<Buffer>(native.ptr());
        if (buffer && *buffer) return ResourceRange(*buffer);
        return std::nullopt;
    }
    py::detail::make_caster<ResourceRange> other;
    if (!other.load(native, false)) return std::nullopt;
    return py::detail::cast_op<ResourceRange&&>(std::move(other));
}

// The sync of a list or tuple of tensors and images; None for anything else, and in place of an error: the
// caller finds what to say.
template <OperationPtr (*make)(std::vector<ResourceRange>)>
PyObject* sync_of(PyObject*, PyObject* memories) {
    if (!PyList_CheckExact(memories) && !PyTuple_CheckExact(memories)) Py_RETURN_NONE;
    try {
        std::vector<ResourceRange> ranges;
        ranges.reserve(static_cast<size_t>(PySequence_Fast_GET_SIZE(memories)));
        // Attributes may run code, which may change the list.
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(memories); ++i) {
            const auto memory = py::reinterpret_borrow<py::object>(PySequence_Fast_GET_ITEM(memories, i));
            auto range = range_of(memory.ptr());
            if (!range) Py_RETURN_NONE;
            ranges.push_back(std::move(*range));
        }
        if (ranges.empty()) Py_RETURN_NONE;
        return OperationObject::make(std::const_pointer_cast<Operation>(make_sync(std::move(ranges), make)));
    } catch (const Error&) {
        Py_RETURN_NONE;
    } catch (...) {
        return translated([]() -> PyObject* { throw; });
    }
}

PyMethodDef sync_device = {"sync_device_of", &sync_of<&make_sync_device>, METH_O,
                           "sync_device_of(memories, /)\n--\n\n"
                           "sync_device_of(memories: object, /) -> Operation | None"};
PyMethodDef sync_local = {"sync_local_of", &sync_of<&make_sync_local>, METH_O,
                          "sync_local_of(memories, /)\n--\n\n"
                          "sync_local_of(memories: object, /) -> Operation | None"};

}  // namespace

void bind_operation(py::module_& m) {
    OperationObject::bind(m);

    const auto own = [](const OperationPtr& operation) {
        return std::const_pointer_cast<Operation>(operation);
    };
    m.def("op_sync_device", [own](std::vector<ResourceRange> memories) {
        return own(make_sync(std::move(memories), make_sync_device));
    });
    m.def("op_sync_local", [own](std::vector<ResourceRange> memories) {
        return own(make_sync(std::move(memories), make_sync_local));
    });
    add_function(m, sync_device);
    add_function(m, sync_local);
    m.def("op_copy",
          [own](std::vector<ResourceRange> memories) { return own(make_copy(std::move(memories))); });
    m.def("op_fill", [own](std::vector<ResourceRange> ranges, const std::vector<py::bytes>& patterns) {
        if (ranges.size() != patterns.size())
            throw Error(ErrorKind::internal, "op_fill needs a pattern for each range");
        std::vector<Filling> fillings;
        for (size_t i = 0; i < ranges.size(); ++i)
            fillings.push_back({std::move(ranges[i]), std::string(patterns[i])});
        return own(make_fill(std::move(fillings)));
    });
    m.def(
        "op_dispatch",
        [own](std::shared_ptr<Algorithm> algorithm, const std::array<int64_t, 3>& groups,
              const py::bytes& push, const std::optional<std::array<uint64_t, 3>>& grid, bool own_push,
              std::optional<ResourceRange> indirect) {
            const auto counts = groups_of(groups);
            return own(make_dispatch(prepared(std::move(algorithm), counts), counts, std::string(push),
                                     {grid, own_push}, std::move(indirect).value_or(ResourceRange())));
        },
        py::arg("algorithm"), py::arg("groups"), py::arg("push_constants"), py::arg("grid"),
        py::arg("own_push"), py::arg("indirect") = py::none());
    using Pair = std::pair<ResourceRange, ResourceRange>;
    m.def("op_repeat", [own](const std::vector<std::shared_ptr<Operation>>& operations, uint64_t times,
                             const std::vector<Pair>& swaps) {
        return own(make_repeat({operations.begin(), operations.end()}, times, swaps));
    });
    m.def("written_last",
          [](const std::vector<std::shared_ptr<Operation>>& operations, const std::vector<Pair>& swaps) {
              return written_last({operations.begin(), operations.end()}, swaps);
          });
    m.def("op_warm_up",
          [own](std::shared_ptr<Algorithm> algorithm) { return own(make_warm_up(std::move(algorithm))); });
    py::class_<BoundDispatch, std::shared_ptr<BoundDispatch>>(m, "BoundDispatch")
        .def_property_readonly("name", [](const BoundDispatch& dispatch) { return dispatch.name(); })
        .def("set",
             [](BoundDispatch& dispatch, const std::array<int64_t, 3>& groups, const py::bytes& push,
                std::vector<ResourceRange> references) {
                 const auto counts = groups_of(groups);
                 (void)prepared(dispatch.algorithm(), counts);
                 dispatch.set(counts, std::string(push), std::move(references));
             })
        .def_property_readonly("algorithm", &BoundDispatch::algorithm)
        .def("supersede", &BoundDispatch::supersede)
        .def("replace", [](BoundDispatch& dispatch, std::shared_ptr<Algorithm> algorithm,
                           const std::array<int64_t, 3>& groups, const py::bytes& push,
                           std::vector<ResourceRange> references) {
            const auto counts = groups_of(groups);
            dispatch.replace(prepared(std::move(algorithm), counts), counts, std::string(push),
                             {std::move(references), dispatch.memory().indirect});
        });
    m.def(
        "op_bound_dispatch",
        [](std::shared_ptr<Algorithm> algorithm, const std::array<int64_t, 3>& groups, const py::bytes& push,
           std::vector<ResourceRange> references, std::optional<ResourceRange> indirect) {
            const auto counts = groups_of(groups);
            return make_bound_dispatch(
                prepared(std::move(algorithm), counts), counts, std::string(push),
                {std::move(references), std::move(indirect).value_or(ResourceRange())});
        },
        py::arg("algorithm"), py::arg("groups"), py::arg("push_constants"), py::arg("references"),
        py::arg("indirect") = py::none());
    m.def("op_custom", [](const Context& context, std::string name, const py::object& record,
                          const std::optional<std::vector<ResourceRange>>& reads,
                          const std::optional<std::vector<ResourceRange>>& writes) {
        return std::const_pointer_cast<Operation>(custom(context, std::move(name), record, reads, writes));
    });
}

}  // namespace kp
