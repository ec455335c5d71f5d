// Arrays that the device uses in place, and their release.
//
// A tensor over an array keeps the array alive. The tensor may end on a thread without the interpreter lock,
// or under a native lock, where Python code must not run. So the array and its `on_done` go on a list. The
// next call of from_host, on any thread, lets go of the listed arrays, so that their memory does not pile up
// while the main thread sleeps or computes. Py_AddPendingCall asks the interpreter's main thread to do the
// same between two of its instructions, and to call each `on_done`.
#include "bindings.hpp"
#include "relief.hpp"
#include "resource/host_pages.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace kp {
namespace {

struct Done {
    PyObject* array = nullptr;    // null: let go already
    PyObject* on_done = nullptr;  // null: not given
};

std::mutex done_mutex;
std::vector<Done>& done_list() {
    static auto* list = new std::vector<Done>();  // outlives every static destructor on purpose
    return *list;
}
// Under done_mutex:
bool asked = false;        // the main thread will come by
size_t without_array = 0;  // entries without an array, which come first

// Lets go of the listed arrays. Needs the interpreter lock and no native lock, because the end of an array
// may run Python code. Each `on_done` stays on the list, for the main thread.
void drop_arrays() {
    std::vector<PyObject*> arrays;
    {
        const std::lock_guard lock(done_mutex);
        auto& list = done_list();
        if (list.size() == without_array) return;
        arrays.reserve(list.size() - without_array);
        const auto kept =
            std::remove_if(list.begin() + static_cast<ptrdiff_t>(without_array), list.end(), [&](Done& done) {
                if (done.array) arrays.push_back(std::exchange(done.array, nullptr));
                return !done.on_done;
            });
        list.erase(kept, list.end());
        without_array = list.size();
    }
    for (PyObject* array : arrays) Py_DECREF(array);
}

// Needs the interpreter lock and no native lock. Errors of `on_done` cannot be raised to a caller.
void release_arrays() {
    std::vector<Done> done;
    {
        const std::lock_guard lock(done_mutex);
        done.swap(done_list());
        without_array = 0;
        asked = false;
    }
    for (const Done& each : done) {
        Py_XDECREF(each.array);
        if (!each.on_done) continue;
        PyObject* result = PyObject_CallNoArgs(each.on_done);
        if (result)
            Py_DECREF(result);
        else
            PyErr_WriteUnraisable(each.on_done);
        Py_DECREF(each.on_done);
    }
}

void let_go_later(Done done) noexcept {
    if (!Py_IsInitialized()) return;  // the interpreter and the array are gone
    bool ask = false;
    try {
        const std::lock_guard lock(done_mutex);
        done_list().push_back(done);
        ask = !asked;
        asked = true;
    } catch (...) {
        return;  // out of host memory: the array stays
    }
    const auto come_by = [](void*) {
        release_arrays();
        return 0;
    };
    if (ask && Py_AddPendingCall(come_by, nullptr) != 0) {
        const std::lock_guard lock(done_mutex);
        asked = false;  // the interpreter's list is full; the next release asks again
    }
}

}  // namespace

void release_later(PyObject* object) noexcept { let_go_later(Done{object, nullptr}); }

std::shared_ptr<Buffer> import_array(const Context& context, const py::array& array, uint64_t padded,
                                     std::pair<uint64_t, uint64_t> root, bool read_only,
                                     const py::object& on_done) {
    context.device().require_open("make a tensor");
    drop_arrays();
    const Bytes bytes = bytes_of(array, !read_only);
    if (bytes.size == 0)
        throw Error(ErrorKind::invalid_argument,
                    "The array cannot be imported: it has no element, so there is no memory to share");
    HostRange range;
    range.data = static_cast<std::byte*>(bytes.data);
    range.nbytes = bytes.size;
    range.padded = std::max(padded, bytes.size);
    range.root_begin = root.first;
    range.root_end = root.second;
    range.read_only = read_only;

    // Only a successful import owns `on_done`. If this throws, the caller copies the data and calls it.
    struct Owner {
        Done done;
        bool imported = false;
        ~Owner() {
            if (imported) let_go_later(done);
        }
    };
    auto owner = std::make_shared<Owner>();
    range.owner = owner;
    std::shared_ptr<Buffer> buffer;
    const auto import = [&] {
        const Unlocked unlocked;  // the driver may pin every page
        buffer = make_object<Buffer>(context.shared(), range);
    };
    try {
        import();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::failed_precondition) throw;
        // A tensor over a part of these pages may be gone, but not what is kept for its next calls.
        (void)relieved();
        context.device().retired().collect();
        import();
    }
    range.owner.reset();
    owner->done = {array.inc_ref().ptr(), on_done.is_none() ? nullptr : on_done.inc_ref().ptr()};
    owner->imported = true;
    return buffer;
}

void await_writers(const Context& context, uint64_t begin, uint64_t end) {
    await_points(writers_of_pages(context.device(), begin, end));
}

void bind_host_import(py::module_& m) { m.def("release_arrays", &release_arrays); }

}  // namespace kp
