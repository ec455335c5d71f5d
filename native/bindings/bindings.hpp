// Declarations shared by the binding files. Each concept of the core has a bind_<concept>.cpp; module.cpp
// lists them.
#pragma once

#include "base/deep_stack.hpp"
#include "base/error.hpp"
#include "base/host_span.hpp"
#include "device/device.hpp"
#include "direct.hpp"
#include "interpreter.hpp"
#include "pipeline/pipeline_store.hpp"
#include "record/algorithm.hpp"
#include "record/operation.hpp"
#include "resource/buffer_view.hpp"
#include "resource/image.hpp"
#include "resource/make_object.hpp"
#include "run/stream.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>

namespace kp {

namespace py = pybind11;

void bind_errors(py::module_& m);
void bind_context(py::module_& m);
void bind_memory(py::module_& m);
void bind_host_import(py::module_& m);
void bind_dlpack(py::module_& m);
void bind_buffer_protocol(py::module_& m);
void bind_image(py::module_& m);
void bind_shader(py::module_& m);
void bind_operation(py::module_& m);
void bind_stream(py::module_& m);
void bind_shader_compile(py::module_& m);
void bind_shader_check(py::module_& m);
void bind_profile(py::module_& m);
void bind_mapping(py::module_& m);
void bind_fence(py::module_& m);
void bind_peer_copy(py::module_& m);
void bind_waiter(py::module_& m);
void bind_substitution(py::module_& m);
void bind_content(py::module_& m);

// What an operation does, as `recorded` of _native.pyi describes it.
py::dict content_to_python(const std::string& name, const OperationContent& content);

// The longest single wait in the driver before checking for Ctrl-C.
inline constexpr uint64_t wait_slice_nanoseconds = 50'000'000;
// For waits that end by themselves.
struct NeverHeld {
    std::vector<Point> operator()() const { return {}; }
};
// The semaphores that must be signalled before these points can be reached (Gate::why_held); empty if none.
[[nodiscard]] std::string why_held(const std::vector<Point>& points);
// Warns about a wait of `seconds` if it waits for held work. Returns whether it warned.
bool warn_if_held(const std::vector<Point>& points, double seconds);
[[nodiscard]] double seconds_before_warning() noexcept;
// Waits until `done()` or `wait(nanoseconds)`, called without the interpreter lock, returns true; false on
// time-out. The time-out is in seconds; negative means none. Hears Ctrl-C between slices. After some seconds
// it warns once if the `points` depend on a semaphore that no submitted work signals.
template <typename Done, typename Wait, typename Points = NeverHeld>
bool wait_for(double seconds, const Done& done, const Wait& wait, const Points& points = {}) {
    using Clock = std::chrono::steady_clock;
    if (done()) return true;
    const HostSpan span("wait");
    const auto start = Clock::now();
    bool warned = false;
    while (true) {
        uint64_t slice = wait_slice_nanoseconds;
        if (seconds >= 0) {
            const double left = seconds - std::chrono::duration<double>(Clock::now() - start).count();
            if (left <= 0) return done();
            slice = std::min(slice, static_cast<uint64_t>(left * 1e9) + 1);
        }
        bool finished = false;
        {
            const Unlocked unlocked;
            finished = wait(slice);
        }
        if (finished) return true;
        check_signals();
        if (warned) continue;
        const double lasted = std::chrono::duration<double>(Clock::now() - start).count();
        if (lasted >= seconds_before_warning()) warned = warn_if_held(points(), lasted);
    }
}
// Calls `work` on another thread, without the interpreter lock, and returns its result. This thread hears
// Ctrl-C meanwhile: it raises KeyboardInterrupt at once, the work continues alone, and its result is dropped.
// So `work` must own everything that it uses, and use no Python object. For calls into compilers and drivers
// that may take seconds and cannot be stopped.
// After `seconds` it throws Error(eval_timeout) with the message `late`, and the work continues in the same
// way.
template <typename Work>
auto interruptibly(Work work, double seconds = std::numeric_limits<double>::infinity(),
                   const std::string& late = "") {
    using Result = std::invoke_result_t<Work&>;
    struct Task {
        Work work;
        std::optional<Result> result;
        explicit Task(Work w) : work(std::move(w)) {}
    };
    auto task = std::make_shared<Task>(std::move(work));
    std::optional<DeepWork> deep;
    const auto wait = [&] {
        const Unlocked unlocked;
        if (!deep)
            deep.emplace([task] {
                const UnderWay under_way;
                task->result = task->work();
            });
        return deep->wait(wait_slice_nanoseconds);
    };
    const auto start = std::chrono::steady_clock::now();
    Leaving leaving;
    while (!wait()) {
        check_signals();
        if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() >= seconds)
            throw Error(ErrorKind::eval_timeout, late);
    }
    leaving.ended = true;
    deep->rethrow();
    return std::move(*task->result);
}
// The same for work that makes a pipeline, within the device's time limit.
template <typename Work>
auto making_pipeline(const Device& device, Work work) {
    const double seconds = device.pipeline_seconds();
    std::array<char, 32> shown{};
    std::snprintf(shown.data(), shown.size(), "%g", seconds);
    return interruptibly(
        std::move(work), seconds,
        "'" + std::string(device.physical().properties.deviceName) + "' takes longer than " + shown.data() +
            " s to make the pipeline (option pipeline_timeout). The driver cannot be stopped: "
            "it goes on in a thread of its own, and a later call finds what it made. Large "
            "local arrays and structs, and unrolled loops, take long: kp.check tells of them");
}
// The same for several objects.
void await_points(const std::vector<Point>& points);
// resource.bring(), which may copy and wait, with the interpreter lock released where it does.
inline void bring(Resource& resource) {
    if (resource.on_device()) {
        (void)resource.initial_end();
        return;
    }
    const Unlocked unlocked;
    resource.bring();
}
// The same resource, with its contents in device memory, because users of a handle or an address may read it
// at any time. Recordings upload the contents themselves.
template <typename T>
T& exported(T& resource) {
    if (resource.on_device() || !BuiltRecording::covered_by_caller(resource)) bring(resource);
    return resource;
}
// The same, for a handle through which others may write the memory at any time. Custom operations declare
// their writes.
template <typename T>
T& shared_out(T& resource) {
    if (!Turn::is_in_foreign_code()) resource.note_exported();
    return exported(resource);
}
// Called before a transfer through the staging ring: waits for the work submitted before it.
void await_staging(Device& device);

// Python's handle on a Device. Its destructor closes the device without waiting.
class Context {
public:
    explicit Context(DeviceOptions options) : device_(Device::create(std::move(options))) {}
    ~Context() { (void)abandon(); }
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    [[nodiscard]] Device& device() const { return *device_; }
    [[nodiscard]] const std::shared_ptr<Device>& shared() const { return device_; }
    // Returns sentences about held work that did not run.
    std::vector<std::string> abandon() noexcept;

private:
    std::shared_ptr<Device> device_;
};

// Lets the interpreter's main thread drop a reference to a Python object between two of its instructions. For
// threads without the interpreter lock, and for code under a native lock.
void release_later(PyObject* object) noexcept;

// A Python object that the core keeps. It may be dropped on any thread and under native locks.
inline std::shared_ptr<void> keep_object(const py::object& object) {
    return {object.inc_ref().ptr(), [](void* pointer) { release_later(static_cast<PyObject*>(pointer)); }};
}

// Devices that lost their Context with work in flight; closed once they are idle.
void collect_orphans(bool wait);

// VkMemoryPropertyFlags that memory must have, and its priority. One argument, because pybind11 allocates
// memory for calls with more than six.
using MemoryWishes = std::pair<uint32_t, std::optional<float>>;
// Factories for Context's methods; each is defined beside the class that it creates.
[[nodiscard]] std::shared_ptr<Buffer> make_buffer(const Context& context, const py::object& data,
                                                  uint64_t nbytes, int type,
                                                  const std::optional<std::string>& fill,
                                                  const std::optional<MemoryWishes>& wishes = std::nullopt);
[[nodiscard]] std::shared_ptr<Buffer> import_array(const Context& context, const py::array& array,
                                                   uint64_t padded, std::pair<uint64_t, uint64_t> root,
                                                   bool read_only, const py::object& on_done);
void await_writers(const Context& context, uint64_t begin, uint64_t end);
[[nodiscard]] std::shared_ptr<Image> make_image(const Context& context, const py::object& data, uint32_t dims,
                                                bool arrayed, const std::array<int64_t, 4>& size,
                                                const std::string& format, int type);
[[nodiscard]] std::shared_ptr<Sampler> make_sampler(const Context& context, const std::string& filter,
                                                    const std::array<std::string, 3>& address,
                                                    const std::string& border, bool integer_border,
                                                    bool unnormalized);
using SpecializationMap = std::vector<std::tuple<uint32_t, uint32_t, uint32_t>>;  // id, offset, size
[[nodiscard]] std::shared_ptr<Algorithm>
make_algorithm(const Context& context, std::shared_ptr<Shader> shader, const py::sequence& arguments,
               const std::array<int64_t, 3>& workgroup, const py::bytes& spec, const SpecializationMap& map,
               const py::bytes& push);

[[nodiscard]] Specialization specialization_of(const py::bytes& data, const SpecializationMap& map);

// Throws if the size is not a whole number of words.
[[nodiscard]] std::vector<uint32_t> spirv_words(const py::bytes& spirv);

// {"set": ..., ...} of a reflected module, as _native.pyi describes it.
[[nodiscard]] py::dict reflection_to_python(const ShaderInfo& info);

// The NumPy array's bytes, which must be C-contiguous.
struct Bytes {
    void* data = nullptr;
    uint64_t size = 0;
};
[[nodiscard]] Bytes bytes_of(const py::array& array, bool writable);

}  // namespace kp

// A Memory is a range that covers all its bytes; a BufferView covers a part.
template <>
struct pybind11::detail::type_caster<kp::ResourceRange> {
    PYBIND11_TYPE_CASTER(kp::ResourceRange, const_name("Memory | BufferView"));

    bool load(handle source, bool convert) {
        copyable_holder_caster<kp::Resource, std::shared_ptr<kp::Resource>> whole;
        if (whole.load(source, convert)) {
            auto& resource = static_cast<std::shared_ptr<kp::Resource>&>(whole);
            if (!resource) return false;  // None
            value = kp::ResourceRange(resource);
            return true;
        }
        type_caster_base<kp::BufferView> view;
        if (source.is_none() || !view.load(source, convert)) return false;
        value = static_cast<kp::BufferView&>(view).range("use");
        return true;
    }
};
