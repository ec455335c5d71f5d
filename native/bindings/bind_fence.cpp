#include "call_support.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

namespace kp {
namespace {

std::atomic<double> warning_after{5.0};

bool wait_for_fence(Fence& fence, double seconds) {
    return wait_for(
        seconds, [&] { return fence.done(); }, [&](uint64_t slice) { return fence.wait(slice); },
        [&] { return fence.points(); });
}

bool wait_semaphore(Semaphore& semaphore, uint64_t value, double seconds) {
    semaphore.require_init("wait for");
    Timeline& timeline = semaphore.timeline();
    return wait_for(
        seconds, [&] { return timeline.reached(value); },
        [&](uint64_t slice) { return timeline.wait(value, slice); },
        [&] {
            return std::vector<Point>{{&timeline, value}};
        });
}

using Signal = SemaphoreValue;

void require_of(const Device& device, const Device& other, const char* what) {
    if (&device != &other)
        throw Error(ErrorKind::invalid_argument,
                    std::string("The ") + what +
                        " belongs to another Manager: a device waits only for its own. Wait for it on the "
                        "host, with fence.wait(), before; a shared semaphore is imported there, with "
                        "import_semaphore(semaphore.share())");
}

// `waits`: fences, and semaphores with a value; `signals`: semaphores with a value.
SubmitOrder order_of(Device& device, const std::vector<std::shared_ptr<Fence>>& fences,
                     const std::vector<Signal>& waits, const std::vector<Signal>& signals) {
    SubmitOrder order;
    const auto keep = [&](const std::shared_ptr<Semaphore>& object) {
        object->require_init("submit work with");
        require_of(device, object->device(), "semaphore");
        if (std::ranges::find(order.semaphores, std::shared_ptr<TimelineOwner>(object)) ==
            order.semaphores.end())
            order.semaphores.push_back(object);
    };
    for (const auto& fence : fences) {
        for (const auto& owner : fence->devices()) require_of(device, *owner, "fence");
        for (const Point& point : fence->points()) merge_point(order.waits, point);
        for (const auto& owner : fence->kept()) keep(std::dynamic_pointer_cast<Semaphore>(owner));
    }
    for (const auto& [semaphore, value] : waits) {
        keep(semaphore);
        merge_point(order.waits, {&semaphore->timeline(), value});
    }
    for (const auto& [semaphore, value] : signals) {
        keep(semaphore);
        semaphore->require_near(value);
        for (const Point& known : order.signals)
            if (known.timeline == &semaphore->timeline())
                throw Error(ErrorKind::invalid_argument, "The " + semaphore->label() +
                                                             " is to be signalled twice by one submission: "
                                                             "give the higher value only");
        order.signals.push_back({&semaphore->timeline(), value});
    }
    return order;
}

// The user's semaphores that reach the fence's points, with the values: to signal or to fail them.
std::vector<Signal> signals_of(const Fence& fence) {
    std::vector<Signal> found;
    for (const auto& [timeline, value] : fence.points()) {
        std::shared_ptr<Semaphore> semaphore;
        for (const auto& owner : fence.kept())
            if (&owner->timeline() == timeline) semaphore = std::dynamic_pointer_cast<Semaphore>(owner);
        if (!semaphore)
            throw Error(ErrorKind::failed_precondition,
                        "The fence is the end of submitted work, which alone signals it; only a fence of "
                        "semaphore.at(value) can be signalled or failed");
        found.emplace_back(std::move(semaphore), value);
    }
    return found;
}

bool passes_within(Timeline& timeline, uint64_t value, uint64_t nanoseconds) {
    const Unlocked unlocked;
    try {
        return timeline.wait(value, nanoseconds);
    } catch (const Error&) {
        return timeline.passed(value);  // the work failed: a wait reports it
    }
}

// Looks for up to `seconds` whether a wait would end: all points are reached or failed, or the device is
// lost. None if no submitted work will raise a point, so that looking is of no use.
std::optional<bool> look(const Fence& fence, double seconds) {
    using Clock = std::chrono::steady_clock;
    std::optional<Clock::time_point> end;
    for (const auto& [timeline, value] : fence.points()) {
        if (timeline->passed(value)) continue;
        if (timeline->promised() < value) return std::nullopt;
        if (seconds <= 0) return false;
        const auto now = Clock::now();
        if (!end) end = now + std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
        const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(*end - now).count();
        if (!passes_within(*timeline, value, left > 0 ? static_cast<uint64_t>(left) : 0)) return false;
    }
    return true;
}

}  // namespace

// Each change of queue in the list starts another submission; the last one waits for the others and signals.
std::shared_ptr<Fence> submit_in_order(const std::shared_ptr<Device>& shared,
                                       const std::vector<std::shared_ptr<Stream>>& streams,
                                       const WaitsAndSignals& given) {
    Device& device = *shared;
    const auto& [fences, waits, signals] = given;
    device.require_open("submit");
    for (const auto& stream : streams) {
        stream->require_init("submit");
        require_of(device, stream->device(), "sequence");
    }
    const SubmitOrder whole = order_of(device, fences, waits, signals);
    if (streams.empty() && whole.waits.empty() && whole.signals.empty())
        return std::make_shared<Fence>(shared, device.unfinished());
    if (streams.empty()) {
        // Only orders other work.
        Stream::submit_together(device, *device.queues().front().queue, {}, whole);
        std::vector<Point> ends = whole.waits;
        for (const Point& signal : whole.signals) merge_point(ends, signal);
        return std::make_shared<Fence>(shared, std::move(ends), whole.semaphores);
    }
    const auto elsewhere = [&](const auto& stream) { return &stream->queue() != &streams.front()->queue(); };
    if (std::any_of(streams.begin(), streams.end(), elsewhere)) {
        std::vector<Stream*> all;
        for (const auto& stream : streams) all.push_back(stream.get());
        Stream::require_together(device, all, whole);
    }
    SubmitOrder order{whole.waits, {}, whole.semaphores};
    std::vector<Point> ends;
    for (size_t first = 0, last = 0; first < streams.size(); first = last) {
        Queue& queue = streams[first]->queue();
        std::vector<Stream*> group;
        for (last = first; last < streams.size() && &streams[last]->queue() == &queue; ++last)
            group.push_back(streams[last].get());
        if (last == streams.size()) {
            order.signals = whole.signals;
            for (const Point& end : ends) merge_point(order.waits, end);
        }
        Stream::submit_together(device, queue, group, order);
        for (const Stream* stream : group)
            if (const Point end = stream->last_point(); end.timeline) merge_point(ends, end);
    }
    return Fence::of(streams);
}

double seconds_before_warning() noexcept { return warning_after.load(std::memory_order_relaxed); }

std::string why_held(const std::vector<Point>& points) {
    std::string text;
    std::vector<Device*> devices;
    for (const Point& point : points) {
        Device& device = Device::of(point.timeline->context());
        if (std::find(devices.begin(), devices.end(), &device) != devices.end()) continue;
        devices.push_back(&device);
        std::vector<Point> own;
        std::copy_if(points.begin(), points.end(), std::back_inserter(own),
                     [&](const Point& each) { return &each.timeline->context() == &device; });
        const std::string why = device.gate().why_held(std::move(own));
        if (!why.empty()) text += (text.empty() ? "" : ". ") + why;
    }
    return text;
}

// Held from the start: see errors.cpp.
static PyObject* warn_of_wait = nullptr;

bool warn_if_held(const std::vector<Point>& points, double seconds) {
    const std::string why = why_held(points);
    if (why.empty()) return false;
    py::handle{warn_of_wait}(why, seconds);
    return true;
}

void bind_fence(py::module_& m) {
    warn_of_wait =
        py::module_::import("kompute_py._base.warn").attr("warn_of_wait").cast<py::object>().release().ptr();
    py::class_<Fence, std::shared_ptr<Fence>>(m, "Fence")
        .def(
            "done", [](Fence& f) { return f.done(); }, py::call_guard<Unlocked>())
        .def("wait", &wait_for_fence, py::arg("timeout"))
        .def("look", &look, py::arg("seconds"))
        .def("why_held", [](const Fence& f) { return why_held(f.points()); })
        .def("signals", &signals_of)
        .def("points",
             [](const Fence& f) {
                 std::vector<std::pair<uint64_t, uint64_t>> points;
                 for (const auto& [timeline, value] : f.points())
                     points.emplace_back(handle_value(timeline->semaphore()), value);
                 return points;
             })
        .def_static("join", &Fence::join)
        .def_static("of", &Fence::of);
    m.def(
        "fence_before",
        [](const Context& context, const std::vector<ResourceRange>& reads,
           const std::vector<ResourceRange>& writes) {
            std::vector<Point> points;
            const auto add = [&](const ResourceRange& range, bool writers_only) {
                for (const Point& point : range.resource->pending(writers_only)) merge_point(points, point);
            };
            for (const auto& range : reads) add(range, true);
            for (const auto& range : writes) add(range, false);
            return std::make_shared<Fence>(context.shared(), std::move(points));
        },
        py::arg("context"), py::arg("reads"), py::arg("writes"));
    m.def("submit_once", [](const std::shared_ptr<Operation>& operation) { return submit_once(operation); });

    py::class_<Semaphore, std::shared_ptr<Semaphore>>(m, "Semaphore")
        .def(py::init([](const Context& context, uint64_t initial, bool shared) {
                 context.device().require_open("make a semaphore");
                 return make_object<Semaphore>(context.shared(), initial, shared);
             }),
             py::arg("context"), py::arg("initial"), py::arg("shared") = false)
        // The descriptor is Vulkan's, unless this raises.
        .def_static(
            "imported",
            [](const Context& context, int fd) {
                context.device().require_open("import a semaphore");
                return make_object<Semaphore>(context.shared(), SemaphoreFile{fd});
            },
            py::arg("context"), py::arg("fd"))
        .def("descriptor", &Semaphore::descriptor)
        .def("query", &Semaphore::query)
        .def("state", &Semaphore::state)
        .def(
            "why_held",
            [](Semaphore& s, uint64_t value) {
                return why_held({{&s.timeline(), value}});
            },
            py::arg("value"))
        .def("signal", &Semaphore::signal, py::arg("value"))
        .def("wait", &wait_semaphore, py::arg("value"), py::arg("timeout"))
        .def("fail", &Semaphore::fail, py::arg("message"))
        .def("abandon", &Semaphore::abandon)
        .def(
            "at",
            [](const std::shared_ptr<Semaphore>& s, uint64_t value) {
                s->require_init("wait for");
                return std::make_shared<Fence>(s->shared_device(),
                                               std::vector<Point>{{&s->timeline(), value}},
                                               std::vector<std::shared_ptr<TimelineOwner>>{s});
            },
            py::arg("value"))
        .def("is_init", [](const Semaphore& s) { return s.is_init(); })
        // The caller's reference and that of its Python object.
        .def("is_alone", [](const std::shared_ptr<Semaphore>& s) { return s.use_count() <= 2; })
        .def_property(
            "name", [](const Semaphore& s) { return s.name(); },
            [](Semaphore& s, const std::string& n) { s.set_name(n); })
        .def_property_readonly("vk_semaphore", [](const Semaphore& s) { return handle_value(s.handle()); });
    m.def(
        "warn_of_waits_after", [](double seconds) { return warning_after.exchange(seconds); },
        py::arg("seconds"));
    m.def(
        "submit",
        [](const Context& context, const std::vector<std::shared_ptr<Stream>>& streams,
           const std::vector<std::shared_ptr<Fence>>& fences, const std::vector<Signal>& waits,
           const std::vector<Signal>& signals) {
            return submit_in_order(context.shared(), streams, {fences, waits, signals});
        },
        py::arg("context"), py::arg("streams"), py::arg("fences"), py::arg("waits"), py::arg("signals"));
}

}  // namespace kp
