// DLPack: exports a tensor's memory as a capsule, and imports capsules of other libraries as arrays.
//
// An exported capsule owns the memory, its VkBuffer and the VkDevice. Freeing them does not need Python, so
// consumers may drop the capsule on any thread, with or without the interpreter lock, before or after the
// tensor and its Manager are destroyed.
#include "bindings.hpp"
#include "dlpack.hpp"

#include <cstring>
#include <limits>
#include <new>

namespace kp {
namespace {

constexpr std::align_val_t copy_alignment{64};  // vectorised consumers require it

struct FreeCopy {
    void operator()(void* data) const noexcept { ::operator delete(data, copy_alignment); }
};

struct Exported {
    std::shared_ptr<void> keep;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    dlpack::Managed plain;
    dlpack::ManagedVersioned versioned;
};

// A capsule that was not consumed still has its original name.
template <typename T>
void drop_unused(PyObject* capsule, const char* name) {
    if (!PyCapsule_IsValid(capsule, name)) return;
    auto* managed = static_cast<T*>(PyCapsule_GetPointer(capsule, name));
    if (managed->deleter) managed->deleter(managed);
}

py::object to_capsule(std::unique_ptr<Exported> exported, const dlpack::Tensor& tensor, bool versioned,
                      uint64_t flags) {
    PyObject* capsule = nullptr;
    if (versioned) {
        auto& managed = exported->versioned;
        managed.version = {1, 1};
        managed.context = exported.get();
        managed.deleter = [](dlpack::ManagedVersioned* self) {
            delete static_cast<Exported*>(self->context);
        };
        managed.flags = flags;
        managed.tensor = tensor;
        capsule = PyCapsule_New(&managed, dlpack::versioned_name, [](PyObject* made) {
            drop_unused<dlpack::ManagedVersioned>(made, dlpack::versioned_name);
        });
    } else {
        auto& managed = exported->plain;
        managed.context = exported.get();
        managed.deleter = [](dlpack::Managed* self) { delete static_cast<Exported*>(self->context); };
        managed.tensor = tensor;
        capsule = PyCapsule_New(&managed, dlpack::name,
                                [](PyObject* made) { drop_unused<dlpack::Managed>(made, dlpack::name); });
    }
    if (!capsule) throw py::error_already_set();
    (void)exported.release();  // now owned by the capsule
    return py::reinterpret_steal<py::object>(capsule);
}

// None if the memory cannot be shared and no copy was requested.
py::object export_tensor(const ResourceRange& range, std::vector<int64_t> shape, uint8_t code, uint8_t bits,
                         bool versioned, bool copy) {
    Resource& resource = *range.resource;
    auto exported = std::make_unique<Exported>();
    exported->shape = std::move(shape);
    exported->strides.resize(exported->shape.size());
    int64_t step = 1;
    for (size_t i = exported->shape.size(); i-- > 0; step *= exported->shape[i]) exported->strides[i] = step;

    dlpack::Tensor tensor;
    tensor.device = {dlpack::cpu, 0};
    tensor.ndim = static_cast<int32_t>(exported->shape.size());
    tensor.dtype = {code, bits, 1};
    tensor.shape = exported->shape.data();
    tensor.strides = exported->strides.data();
    uint64_t flags = 0;
    if (copy) {
        void* data = ::operator new(range.size, copy_alignment, std::nothrow);
        if (!data)
            throw Error(ErrorKind::out_of_memory, "There is no host memory for a copy of " +
                                                      std::to_string(range.size) + " bytes of the " +
                                                      range.label());
        exported->keep = std::shared_ptr<void>(data, FreeCopy{});
        await_points(resource.pending(true));
        if (!resource.host_visible()) await_staging(resource.device());
        const Unlocked unlocked;
        resource.read(data, range.offset, range.size);
        tensor.data = data;
        flags = dlpack::flag_is_copied;
    } else {
        const Unlocked unlocked;  // another thread may transfer or destroy it
        Resource::Shared shared = resource.share();
        if (shared.data) tensor.data = shared.data + range.offset;
        exported->keep = std::move(shared.keep);
        if (resource.read_only()) flags = dlpack::flag_read_only;
    }
    if (!tensor.data) return py::none();
    return to_capsule(std::move(exported), tensor, versioned, flags);
}

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorKind::exchange, why); }

// An array over the capsule's memory; consumes the capsule. `to_dtype(code, bits)` returns the NumPy dtype,
// or raises.
template <typename T>
py::array take(const py::object& capsule, const char* name, const char* used_name, bool read_only,
               const py::function& to_dtype) {
    auto* managed = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), name));
    if (!managed) throw py::error_already_set();
    const dlpack::Tensor& tensor = managed->tensor;
    const int32_t where = tensor.device.type;
    if (where != dlpack::cpu && where != dlpack::cuda_host && where != dlpack::rocm_host)
        refuse("The DLPack tensor lies on a device of type " + std::to_string(where) +
               ", not in the CPU's memory: move it there first");
    if (tensor.dtype.lanes != 1)
        refuse("The DLPack tensor has elements of " + std::to_string(tensor.dtype.lanes) +
               " lanes: view it as scalars first");
    const auto dtype = py::reinterpret_borrow<py::dtype>(to_dtype(tensor.dtype.code, tensor.dtype.bits));
    const auto item = static_cast<py::ssize_t>(dtype.itemsize());
    std::vector<py::ssize_t> shape(tensor.shape, tensor.shape + tensor.ndim);
    std::vector<py::ssize_t> strides(shape.size());
    py::ssize_t step = item;
    for (size_t i = shape.size(); i-- > 0; step *= shape[i])
        strides[i] = tensor.strides ? static_cast<py::ssize_t>(tensor.strides[i]) * item : step;

    // From here on, the array owns the producer's memory, not the capsule.
    if (PyCapsule_SetName(capsule.ptr(), used_name) != 0) throw py::error_already_set();
    const py::capsule owner(managed, [](void* taken) {
        auto* of_producer = static_cast<T*>(taken);
        if (of_producer->deleter) of_producer->deleter(of_producer);
    });
    py::array array(dtype, shape, strides, static_cast<std::byte*>(tensor.data) + tensor.byte_offset, owner);
    if (read_only) array.attr("setflags")(py::arg("write") = false);
    return array;
}

py::array import_capsule(const py::object& capsule, const py::function& to_dtype) {
    if (PyCapsule_IsValid(capsule.ptr(), dlpack::versioned_name)) {
        const auto* managed = static_cast<const dlpack::ManagedVersioned*>(
            PyCapsule_GetPointer(capsule.ptr(), dlpack::versioned_name));
        // Other major versions have another layout; only the fields before the flags are the same.
        if (managed->version.major != 1)
            refuse("The DLPack tensor has version " + std::to_string(managed->version.major) + "." +
                   std::to_string(managed->version.minor) + "; this is for versions 0 and 1");
        return take<dlpack::ManagedVersioned>(capsule, dlpack::versioned_name, dlpack::used_versioned_name,
                                              (managed->flags & dlpack::flag_read_only) != 0, to_dtype);
    }
    if (PyCapsule_IsValid(capsule.ptr(), dlpack::name))
        return take<dlpack::Managed>(capsule, dlpack::name, dlpack::used_name, false, to_dtype);
    refuse("The object is not a DLPack capsule, or it was used already: each is for one consumer");
}

}  // namespace

void bind_dlpack(py::module_& m) {
    m.def("dlpack_export", &export_tensor, py::arg("memory"), py::arg("shape"), py::arg("code"),
          py::arg("bits"), py::arg("versioned"), py::arg("copy"));
    m.def("dlpack_import", &import_capsule, py::arg("capsule"), py::arg("to_dtype"));
}

}  // namespace kp
