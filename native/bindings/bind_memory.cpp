#include "bindings.hpp"
#include "relief.hpp"

#include <algorithm>

namespace kp {
namespace {

PyObject* give_back = nullptr;  // of Python's

}  // namespace

bool relieved() {
    if (!give_back) return false;
    PyObject* found = PyObject_CallNoArgs(give_back);
    if (!found) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(found).cast<bool>();
}

bool awaited(Device& device) {
    const std::vector<Point> ends = device.submitted();
    const bool running = std::any_of(ends.begin(), ends.end(),
                                     [](const Point& end) { return !end.timeline->reached(end.value); });
    if (!running && device.retired().empty()) return false;
    await_points(ends);
    device.retired().collect();
    return true;
}

Bytes bytes_of(const py::array& array, bool writable) {
    if (!(array.flags() & py::array::c_style))
        throw Error(ErrorKind::invalid_argument,
                    "The array is not C-contiguous. Use np.ascontiguousarray() on it");
    if (writable && !array.writeable())
        throw Error(ErrorKind::invalid_argument, "The array is read-only. Pass a writable one");
    return {const_cast<void*>(array.data()), static_cast<uint64_t>(array.nbytes())};
}

void await_points(const std::vector<Point>& points) {
    for (const Point& point : points) try {
            wait_for(
                -1, [&] { return point.timeline->reached(point.value); },
                [&](uint64_t slice) { return point.timeline->wait(point.value, slice); },
                [&] { return std::vector<Point>{point}; });
        } catch (const Error& error) {
            point.timeline->context().rethrow_explained(error);
        }
}

// Called before a transfer through the staging ring, which runs on the first queue after all submitted work.
// The core's own wait does not hear Ctrl-C; this one does.
void await_staging(Device& device) {
    Queue* queue = device.queues().front().queue;
    if (const uint64_t last = queue->submitted()) await_points({{queue, last}});
}

namespace {

std::byte* host_side(Resource& resource) {
    resource.require_init("access the data of");
    if (const Point point = resource.settled(); point.timeline) [[unlikely]]
        await_points({point});
    if (!resource.host_copy_made()) {
        with_relief(resource.device(), [&] {
            const Unlocked unlocked;
            resource.need_host_copy();
        });
    }
    std::byte* data = resource.host_data();
    if (!data)
        throw Error(ErrorKind::failed_precondition,
                    "The " + resource.label() +
                        " has no host memory: its memory type is storage. Read it with "
                        "read(), or copy it to a device tensor with OpCopy");
    return data;
}

py::array array_over(const Resource& resource, const std::byte* data, const py::object& base,
                     const py::dtype& dtype, py::ssize_t count) {
    py::array array(dtype, {count}, {dtype.itemsize()}, data, base);
    if (resource.read_only()) array.attr("setflags")(py::arg("write") = false);
    return array;
}

py::array host_array(Resource& resource, const py::object& base, const py::dtype& dtype, py::ssize_t count) {
    std::byte* data = host_side(resource);
    if (static_cast<uint64_t>(count) * static_cast<uint64_t>(dtype.itemsize()) > resource.nbytes())
        throw Error(ErrorKind::out_of_range, "The view is larger than the " + resource.label());
    resource.note_view();
    return array_over(resource, data, base, dtype, count);
}

py::array host_array_of_view(BufferView& view, const py::object& base, const py::dtype& dtype,
                             py::ssize_t count) {
    const uint64_t bytes = static_cast<uint64_t>(count) * static_cast<uint64_t>(dtype.itemsize());
    const uint64_t offset = view.locate(0, bytes, "access the data of");
    std::byte* data = host_side(view.buffer());
    view.keep_host();
    view.buffer().note_view();
    return array_over(view.buffer(), data + offset, base, dtype, count);
}

void read(Resource& resource, const py::array& out, uint64_t offset) {
    const Bytes bytes = bytes_of(out, true);
    bring(resource);
    await_points(resource.pending(true));
    if (resource.reads_staged()) await_staging(resource.device());
    const Unlocked unlocked;
    resource.read(bytes.data, offset, bytes.size);
}

void write(Resource& resource, const py::array& data, uint64_t offset) {
    const Bytes bytes = bytes_of(data, false);
    await_points(resource.pending());
    if (!resource.host_visible()) await_staging(resource.device());
    const Unlocked unlocked;
    resource.write(bytes.data, offset, bytes.size);
}

// A strided part: `axes` are (count, bytes from one to the next), the outermost first.
using RunAxes = std::vector<std::pair<uint64_t, uint64_t>>;

Runs runs_of(const py::array& array, uint64_t offset, uint64_t length, const RunAxes& axes) {
    std::vector<Runs::Axis> made;
    for (const auto& [count, stride] : axes) made.push_back({count, stride});
    Runs runs(offset, length, std::move(made));
    if (runs.bytes() != static_cast<uint64_t>(array.nbytes()))
        throw Error(ErrorKind::invalid_argument, "The part has " + std::to_string(runs.bytes()) +
                                                     " bytes, and the array " +
                                                     std::to_string(array.nbytes()));
    return runs;
}

void read_runs(Buffer& buffer, const py::array& out, const Runs& runs) {
    const Bytes bytes = bytes_of(out, true);
    bring(buffer);
    await_points(buffer.pending(true));
    if (buffer.reads_staged()) await_staging(buffer.device());
    const Unlocked unlocked;
    buffer.read_runs(bytes.data, runs);
}

void write_runs(Buffer& buffer, const py::array& data, const Runs& runs) {
    const Bytes bytes = bytes_of(data, false);
    await_points(buffer.pending());
    if (!buffer.host_visible()) await_staging(buffer.device());
    const Unlocked unlocked;
    buffer.write_runs(bytes.data, runs);
}

// `to`: NumPy's kind and the bytes of an element. False if a number does not fit.
bool write_numbers(Buffer& buffer, const py::array& data, const std::pair<char, uint64_t>& to,
                   uint64_t offset) {
    const Bytes bytes = bytes_of(data, false);
    const auto from = number_of(data.dtype().kind(), static_cast<uint64_t>(data.itemsize()));
    const auto target = number_of(to.first, to.second);
    if (!from || !target || !converts(*from, *target) || !buffer.host_visible())
        throw Error(ErrorKind::argument_type, "The numbers cannot be converted while they are written");
    await_points(buffer.pending());
    const Unlocked unlocked;
    return buffer.write_numbers(bytes.data, bytes.size / bytes_of(*from), *from, *target, offset);
}

// The same part, with offsets of the whole buffer.
Runs located(const BufferView& view, const Runs& runs, const char* action, uint64_t length,
             const RunAxes& axes, const py::array& array) {
    return runs_of(array, view.locate(runs.offset(), runs.extent(), action), length, axes);
}

void wait_for_resource(Resource& resource) {
    resource.require_init("wait for");
    await_points(resource.pending());
    const Unlocked unlocked;
    resource.wait_pending();
}

const char* named(Freshness freshness) {
    switch (freshness) {
    case Freshness::unsent: return "unsent";
    case Freshness::matches: return "matches";
    case Freshness::behind: return "behind";
    case Freshness::partly: return "partly";
    case Freshness::unknown: break;
    }
    return "unknown";
}

py::object keep_host(const Resource& resource) {
    auto kept = resource.keep_host();
    if (!kept) return py::none();
    auto* owner = new std::shared_ptr<void>(std::move(kept));
    return py::capsule(owner, [](void* p) { delete static_cast<std::shared_ptr<void>*>(p); });
}

// Gives a tensor of Python's the buffer `made` in place of its own, and returns that with whether nothing
// else refers to it: no view, recording, prepared call or array, and no thread in the middle of a call. None
// if it has none, or one that is destroyed. The interpreter lock is held throughout, so one caller at most
// gets it.
py::object exchange_buffer(const py::object& tensor, const py::object& made) {
    py::object native = tensor.attr("_native");
    if (!py::isinstance<Buffer>(native) || !native.cast<const Buffer&>().is_init()) return py::none();
    tensor.attr("_native") = made;
    tensor.attr("_is_init") = made.attr("is_init");
    const auto* holder = holder_of<Buffer>(native.ptr());
    const bool alone = native.ref_count() == 1 && holder && holder->use_count() == 1 && !(*holder)->viewed();
    return py::make_tuple(std::move(native), alone);
}

// None if the device heeds none.
std::optional<float> priority_of(const Resource& resource) {
    if (!resource.device().memory().has_priorities()) return std::nullopt;
    return resource.device_memory().priority();
}

std::unique_ptr<BufferView> view_of(const ResourceRange& base, uint64_t offset, uint64_t size) {
    if (!dynamic_cast<const Buffer*>(base.resource.get()))
        throw Error(ErrorKind::argument_type,
                    "The " + base.label() + " has no views; only tensors have them");
    return std::make_unique<BufferView>(base, offset, size);
}

}  // namespace

std::shared_ptr<Buffer> make_buffer(const Context& context, const py::object& data, uint64_t nbytes, int type,
                                    const std::optional<std::string>& fill,
                                    const std::optional<MemoryWishes>& wishes) {
    context.device().require_open("make a tensor");
    if (type < 0 || type > 3)
        throw Error(ErrorKind::invalid_argument, "Unknown memory type " + std::to_string(type));
    const auto memory_type = static_cast<MemoryType>(type);
    const void* source = nullptr;
    if (!data.is_none()) {
        const auto array = py::reinterpret_borrow<py::array>(data);
        const Bytes bytes = bytes_of(array, false);
        if (bytes.size != nbytes)
            throw Error(ErrorKind::invalid_argument, "The data has " + std::to_string(bytes.size) +
                                                         " bytes, not " + std::to_string(nbytes));
        source = bytes.data;
    }
    if (fill && (source || fill->empty() || nbytes % fill->size() != 0))
        throw Error(ErrorKind::invalid_argument,
                    "A fill of " + std::to_string(fill->size()) + " bytes " +
                        (source ? "excludes data" : "does not fit into " + std::to_string(nbytes)));
    const auto make = [&] {
        if (source) return make_object<Buffer>(context.shared(), source, nbytes, memory_type);
        const auto pattern = fill ? std::optional<FillPattern>(*fill) : std::nullopt;
        if (!wishes) return make_object<Buffer>(context.shared(), pattern, nbytes, memory_type);
        const auto [required, priority] = *wishes;
        return make_object<Buffer>(context.shared(), pattern, nbytes, memory_type, required,
                                   priority.value_or(default_priority));
    };
    // Data that goes through the device (of a `storage` buffer, of a fill) waits if much is in flight
    // already.
    const bool quick = nbytes <= release_lock_above && memory_type != MemoryType::storage && !fill;
    return with_relief(context.device(), [&] {
        if (quick) return make();
        const Unlocked unlocked;
        return make();
    });
}

// A buffer over new memory that can be shared, or over memory of the descriptor `fd`, which this owns.
std::shared_ptr<Buffer> share_buffer(const Context& context, uint64_t nbytes, int type, uint64_t key, int fd,
                                     uint64_t size, uint32_t memory_type) {
    SharedMemory shared{key, Descriptor(fd), size, memory_type};
    context.device().require_open("make a tensor");
    return with_relief(context.device(), [&] {
        const Unlocked unlocked;
        return make_object<Buffer>(context.shared(), nbytes, static_cast<MemoryType>(type), shared);
    });
}

void bind_memory(py::module_& m) {
    py::class_<Resource, std::shared_ptr<Resource>>(m, "Memory")
        .def_property_readonly("identity", [](const Resource& r) { return reinterpret_cast<uintptr_t>(&r); })
        .def_property_readonly("nbytes", &Resource::nbytes)
        .def_property_readonly("memory_type",
                               [](const Resource& r) { return static_cast<int>(r.memory_type()); })
        .def_property(
            "name", [](const Resource& r) { return r.name(); },
            [](Resource& r, const std::string& n) { r.set_name(n); })
        .def("is_init", [](const Resource& r) { return r.is_init(); })
        .def(
            "destroy", [](Resource& r) { r.destroy(); }, py::call_guard<Unlocked>())
        .def(
            "donate", [](Resource& r, const std::string& taker) { r.donate(taker); }, py::arg("taker"),
            py::call_guard<Unlocked>())
        .def_property_readonly("taker", [](const Resource& r) { return r.taker(); })
        .def_property_readonly("viewed", &Resource::viewed)
        .def("host_array", &host_array, py::arg("base"), py::arg("dtype"), py::arg("count"))
        .def("keep_host", &keep_host)
        .def("read", &read, py::arg("out"), py::arg("offset") = 0)
        .def("write", &write, py::arg("data"), py::arg("offset") = 0)
        .def("wait", &wait_for_resource)
        .def_property_readonly("host_visible", &Resource::host_visible)
        .def_property_readonly("host_address",
                               [](const Resource& r) { return reinterpret_cast<uintptr_t>(r.mapped()); })
        .def_property_readonly(
            "imported",
            [](const Resource& r) { return r.first_byte() != 0 && r.first_byte() < first_shared_key; })
        .def_property_readonly("first_byte", &Resource::first_byte)
        .def_property_readonly("slow_to_read", &Resource::slow_to_read)
        .def_property_readonly("has_host_copy", &Resource::has_host_copy)
        .def_property_readonly("host_copy_made", &Resource::host_copy_made)
        .def_property_readonly("shareable", &Resource::shareable)
        .def_property_readonly("read_only", &Resource::read_only)
        .def("freeze", &Resource::freeze, py::call_guard<Unlocked>())
        .def_property_readonly("on_device", &Resource::on_device)
        .def_property_readonly("idle", &Resource::idle)
        .def_property_readonly("freshness", [](Resource& r) { return named(r.freshness(0, r.nbytes())); })
        .def("note_match", [](Resource& r) { r.note_match(0, r.nbytes()); })
        .def("note_host_write", [](Resource& r) { r.note_host_write(0, r.nbytes()); })
        .def_property_readonly(
            "vk_memory", [](Resource& r) { return handle_value(shared_out(r).device_memory().memory()); })
        .def_property_readonly("vk_memory_type", [](const Resource& r) { return r.device_memory().type(); })
        .def_property_readonly("priority", [](const Resource& r) { return priority_of(r); })
        .def_property_readonly("vk_memory_offset",
                               [](const Resource& r) { return r.device_memory().offset(); });

    py::class_<Buffer, Resource, std::shared_ptr<Buffer>>(m, "Buffer")
        .def(
            "write_numbers",
            [](Buffer& b, const py::array& data, const std::pair<char, uint64_t>& to) {
                return write_numbers(b, data, to, 0);
            },
            py::arg("data"), py::arg("to"))
        .def(
            "read_runs",
            [](Buffer& b, const py::array& out, uint64_t offset, uint64_t length, const RunAxes& axes) {
                read_runs(b, out, runs_of(out, offset, length, axes));
            },
            py::arg("out"), py::arg("offset"), py::arg("length"), py::arg("axes"))
        .def(
            "write_runs",
            [](Buffer& b, const py::array& data, uint64_t offset, uint64_t length, const RunAxes& axes) {
                write_runs(b, data, runs_of(data, offset, length, axes));
            },
            py::arg("data"), py::arg("offset"), py::arg("length"), py::arg("axes"))
        .def_property_readonly("vk_buffer", [](Buffer& b) { return handle_value(shared_out(b).handle()); })
        .def_property_readonly("vk_offset", [](const Buffer&) { return 0; })
        .def_property_readonly("vk_size", &Buffer::nbytes)
        .def_property_readonly("vk_device_address", [](Buffer& b) { return exported(b).device_address(); })
        .def("descriptor", [](Buffer& b) {
            const Allocation& memory = shared_out(b).device_memory();
            Descriptor descriptor = b.descriptor();
            return py::make_tuple(descriptor.release(), memory.size(), memory.type());
        });
    m.def("share_buffer", &share_buffer, py::arg("context"), py::arg("nbytes"), py::arg("memory_type"),
          py::arg("key"), py::arg("fd") = -1, py::arg("size") = 0, py::arg("type") = 0);
    m.def("before_out_of_memory", [](const py::function& call) {
        Py_XDECREF(give_back);
        give_back = py::object(call).release().ptr();
    });
    m.def("exchange_buffer", &exchange_buffer, py::arg("tensor"), py::arg("made"));
    m.def("view", &view_of, py::arg("base"), py::arg("offset"), py::arg("size"));

    // The methods of Buffer, for a part of a buffer.
    py::class_<BufferView>(m, "BufferView")
        .def_property_readonly("nbytes", &BufferView::size)
        .def_property_readonly("memory_type",
                               [](const BufferView& v) { return static_cast<int>(v.buffer().memory_type()); })
        .def_property("name", &BufferView::name, &BufferView::set_name)
        .def("is_init", [](const BufferView& v) { return v.is_init(); })
        .def("destroy", [](BufferView& v) { v.destroy(); })
        .def_property_readonly("taker", [](const BufferView& v) { return v.buffer().taker(); })
        .def("host_array", &host_array_of_view, py::arg("base"), py::arg("dtype"), py::arg("count"))
        .def("keep_host", [](const BufferView& v) { return keep_host(v.buffer()); })
        .def(
            "read",
            [](BufferView& v, const py::array& out, uint64_t offset) {
                read(v.buffer(), out, v.locate(offset, static_cast<uint64_t>(out.nbytes()), "read"));
            },
            py::arg("out"), py::arg("offset") = 0)
        .def(
            "write",
            [](BufferView& v, const py::array& data, uint64_t offset) {
                write(v.buffer(), data, v.locate(offset, static_cast<uint64_t>(data.nbytes()), "write"));
            },
            py::arg("data"), py::arg("offset") = 0)
        .def(
            "read_runs",
            [](BufferView& v, const py::array& out, uint64_t offset, uint64_t length, const RunAxes& axes) {
                const Runs runs = runs_of(out, offset, length, axes);
                read_runs(v.buffer(), out, located(v, runs, "read", length, axes, out));
            },
            py::arg("out"), py::arg("offset"), py::arg("length"), py::arg("axes"))
        .def(
            "write_runs",
            [](BufferView& v, const py::array& data, uint64_t offset, uint64_t length, const RunAxes& axes) {
                const Runs runs = runs_of(data, offset, length, axes);
                write_runs(v.buffer(), data, located(v, runs, "write", length, axes, data));
            },
            py::arg("data"), py::arg("offset"), py::arg("length"), py::arg("axes"))
        .def(
            "write_numbers",
            [](BufferView& v, const py::array& data, const std::pair<char, uint64_t>& to) {
                const uint64_t size = static_cast<uint64_t>(data.size()) * to.second;
                return write_numbers(v.buffer(), data, to, v.locate(0, size, "write"));
            },
            py::arg("data"), py::arg("to"))
        .def("wait",
             [](BufferView& v) {
                 (void)v.range("wait for");
                 wait_for_resource(v.buffer());
             })
        .def_property_readonly("host_visible", [](const BufferView& v) { return v.buffer().host_visible(); })
        .def_property_readonly("slow_to_read", [](const BufferView& v) { return v.buffer().slow_to_read(); })
        .def_property_readonly("has_host_copy",
                               [](const BufferView& v) { return v.buffer().has_host_copy(); })
        .def_property_readonly("host_copy_made",
                               [](const BufferView& v) { return v.buffer().host_copy_made(); })
        .def_property_readonly("shareable", [](const BufferView& v) { return v.buffer().shareable(); })
        .def_property_readonly("read_only", [](const BufferView& v) { return v.buffer().read_only(); })
        .def_property_readonly("on_device", [](const BufferView& v) { return v.buffer().on_device(); })
        .def_property_readonly("idle", [](const BufferView& v) { return v.buffer().idle(); })
        .def_property_readonly(
            "freshness",
            [](const BufferView& v) { return named(v.buffer().freshness(v.offset(), v.size())); })
        .def("note_match", [](BufferView& v) { v.buffer().note_match(v.offset(), v.size()); })
        .def("note_host_write", [](BufferView& v) { v.buffer().note_host_write(v.offset(), v.size()); })
        .def_property_readonly(
            "vk_memory",
            [](const BufferView& v) { return handle_value(shared_out(v.buffer()).device_memory().memory()); })
        .def_property_readonly("vk_memory_type",
                               [](const BufferView& v) { return v.buffer().device_memory().type(); })
        .def_property_readonly("priority", [](const BufferView& v) { return priority_of(v.buffer()); })
        .def_property_readonly(
            "vk_memory_offset",
            [](const BufferView& v) { return v.buffer().device_memory().offset() + v.offset(); })
        .def_property_readonly(
            "vk_buffer", [](const BufferView& v) { return handle_value(shared_out(v.buffer()).handle()); })
        .def_property_readonly("host_address",
                               [](const BufferView& v) {
                                   const auto start = reinterpret_cast<uintptr_t>(v.buffer().mapped());
                                   return start ? start + v.offset() : 0;
                               })
        .def_property_readonly("identity",
                               [](const BufferView& v) { return reinterpret_cast<uintptr_t>(&v.buffer()); })
        .def_property_readonly("vk_offset", &BufferView::offset)
        .def_property_readonly("vk_size", &BufferView::size)
        .def_property_readonly("vk_device_address", [](const BufferView& v) -> uint64_t {
            const uint64_t address = exported(v.buffer()).device_address();
            return address ? address + v.offset() : 0;
        });
}

}  // namespace kp
