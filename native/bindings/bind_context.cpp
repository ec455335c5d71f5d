#include "base/loader_library.hpp"
#include "bind_device_info.hpp"
#include "bind_shader_compile.hpp"
#include "bindings.hpp"
#include "device/memory_report.hpp"
#include "pipeline/debugger.hpp"
#include "pipeline/shader.hpp"

#include <mutex>
#include <thread>

namespace kp {

namespace {

std::mutex orphans_mutex;
std::vector<std::shared_ptr<Device>>& orphans() {
    static auto* devices =
        new std::vector<std::shared_ptr<Device>>();  // outlives every static destructor on purpose
    return *devices;
}

py::list memory_statistics(const Context& context) {
    const auto heaps = context.device().memory().statistics();
    py::list result;
    for (uint32_t i = 0; i < context.device().physical().memory.memoryHeapCount; ++i) {
        py::dict heap;
        heap["number"] = i;
        heap["size"] = heaps[i].size;
        heap["device_local"] = heaps[i].device_local;
        heap["reserved"] = heaps[i].reserved;
        heap["used"] = heaps[i].used;
        heap["peak"] = heaps[i].peak;
        heap["imported"] = heaps[i].imported;
        if (heaps[i].budget != 0)
            heap["budget"] = heaps[i].budget;
        else
            heap["budget"] = py::none();
        heap["largest_free"] = heaps[i].largest_free;
        heap["blocks"] = heaps[i].blocks;
        heap["allocations"] = heaps[i].allocations;
        result.append(heap);
    }
    return result;
}

py::dict pipeline_counts(const Context& context) {
    PipelineCounts counts;
    size_t samplers = 0;
    if (context.device().is_open()) {
        const Unlocked unlocked;
        counts = context.device().pipelines().counts();
        samplers = context.device().samplers().count();
    }
    py::dict result;
    result["modules"] = counts.modules;
    result["module_bytes"] = counts.module_bytes;
    result["unused_modules"] = counts.unused_modules;
    result["unused_module_bytes"] = counts.unused_module_bytes;
    result["pipelines"] = counts.pipelines;
    result["unused_pipelines"] = counts.unused_pipelines;
    result["layouts"] = counts.layouts;
    result["set_layouts"] = counts.set_layouts;
    result["descriptor_pools"] = counts.descriptor_pools;
    result["samplers"] = samplers;
    return result;
}

py::list memory_holders_for_python(const Context& context) {
    std::vector<MemoryHolder> holders;
    {
        const Unlocked unlocked;
        holders = context.device().memory_holders();
    }
    py::list result;
    for (const auto& holder : holders)
        result.append(py::make_tuple(holder.name, to_string(holder.kind), holder.bytes));
    return result;
}

py::list passed_over(const Selection& selection) {
    py::list result;
    for (const auto& rejection : selection.passed_over)
        result.append(py::make_tuple(rejection.index, rejection.name, rejection.reason));
    return result;
}

py::list queues(const Context& context) {
    py::list result;
    for (const auto& logical : context.device().queues()) {
        py::dict queue;
        queue["family"] = logical.queue->family();
        queue["index"] = logical.queue->index();
        queue["shared"] = logical.shared;
        result.append(queue);
    }
    return result;
}

// The live objects of a device, or of the process.
py::dict alive(const Context* context) {
    collect_orphans(false);
    py::dict result;
    for (size_t i = 0; i < object_kinds; ++i) {
        const auto kind = static_cast<ObjectKind>(i);
        result[count_name(kind)] = context ? context->device().alive(kind) : alive_count(kind).load();
    }
    return result;
}

DeviceOptions options_of(const std::optional<uint32_t>& index, std::string preferences,
                         std::optional<std::string> visible, std::vector<uint32_t> families,
                         std::vector<std::string> desired, std::vector<std::string> required, bool validation,
                         std::vector<std::string> layers, std::string driver, bool robust_access,
                         std::string cache_dir, const MemoryOptions& memory, size_t recent_pipelines,
                         double pipeline_timeout, double watchdog, std::string dump, const std::string& wait,
                         const Instruments& instruments) {
    DeviceOptions options;
    options.wait = wait == "spin" ? WaitMode::spin : wait == "block" ? WaitMode::block : WaitMode::automatic;
    options.request.index = index;
    options.request.preferences = std::move(preferences);
    options.visible = std::move(visible);
    options.instance.validation = validation;
    options.instance.layers = std::move(layers);
    options.instance.driver = std::move(driver);
    options.family_queue_indices = std::move(families);
    options.desired_extensions = std::move(desired);
    options.required_extensions = std::move(required);
    options.robust_access = robust_access;
    options.pipeline_cache_dir = std::move(cache_dir);
    options.memory = memory;
    options.recent_pipelines = recent_pipelines;
    options.pipeline_seconds = pipeline_timeout;
    options.watchdog = watchdog;
    options.dump = std::move(dump);
    options.instruments = instruments;
    return options;
}

Instruments instruments_of(const std::vector<std::string>& words) {
    const auto has = [&](const char* word) {
        return std::find(words.begin(), words.end(), word) != words.end();
    };
    return {.printf = has("printf"),
            .bounds = has("bounds"),
            .races = has("races"),
            .barriers = has("barriers"),
            .loops = has("loops")};
}

// The records as bytes and the number of dropped ones; None if work runs or nothing is there.
py::object take_debug(const Context& context) {
    Debugger* const debugger = context.device().debugger();
    if (!debugger || !context.device().is_open() || context.device().foreign()) return py::none();
    Debugger::Records records;
    {
        const Unlocked unlocked;
        if (!context.device().queues().front().queue->while_idle([&] { records = debugger->take(); }))
            return py::none();
    }
    if (records.words.empty() && records.dropped == 0) return py::none();
    return py::make_tuple(py::bytes(reinterpret_cast<const char*>(records.words.data()),
                                    records.words.size() * sizeof(uint32_t)),
                          records.dropped);
}

py::list debug_sites(const Context& context, uint32_t module) {
    py::list result;
    if (Debugger* const debugger = context.device().debugger())
        for (const DebugSite& site : debugger->sites(module)) {
            py::list strings;
            for (const std::string& each : site.strings) strings.append(to_text(each));
            constexpr const char* kinds[] = {"printf", "bounds", "races", "barriers", "loops"};
            result.append(py::make_tuple(kinds[static_cast<size_t>(site.kind)], to_text(site.file), site.line,
                                         to_text(site.text), site.arguments, strings));
        }
    return result;
}

BorrowedDevice borrowed_device(const py::object& given) {
    using Names = std::vector<std::string>;
    using Queues = std::vector<std::pair<uint32_t, uint32_t>>;
    auto [instance, physical, device, queues, extensions, features, owner] =
        given.cast<std::tuple<uint64_t, uint64_t, uint64_t, Queues, Names, Names, py::object>>();
    BorrowedDevice made;
    made.instance = reinterpret_cast<VkInstance>(instance);
    made.physical = reinterpret_cast<VkPhysicalDevice>(physical);
    made.device = reinterpret_cast<VkDevice>(device);
    made.queues = std::move(queues);
    made.extensions = std::move(extensions);
    made.features = std::move(features);
    made.owner = keep_object(owner);
    return made;
}

}  // namespace

std::vector<std::string> Context::abandon() noexcept {
    std::vector<std::string> told;
    if (!device_ || !device_->is_open()) return told;
    try {
        // Every semaphore keeps its Manager alive, so no semaphore is left that could be signalled.
        told = device_->cancel_held("when its Manager was dropped");
        if (!device_->busy()) {
            device_->close();
            return told;
        }
        const std::lock_guard lock(orphans_mutex);
        orphans().push_back(device_);
    } catch (...) {
        return told;  // closed with its last object
    }
    return told;
}

void collect_orphans(bool wait) {
    std::vector<std::shared_ptr<Device>> finished;
    {
        const std::lock_guard lock(orphans_mutex);
        std::erase_if(orphans(), [&](const auto& device) {
            // The end of the process does not wait for compilations.
            if (wait ? !device->pipelines().await_users(0) : device->busy()) return false;
            finished.push_back(device);
            return true;
        });
    }
    for (const auto& device : finished) device->close();
}

void bind_context(py::module_& m) {
    py::class_<Context>(m, "Context")
        .def(py::init([](const std::optional<uint32_t>& index, std::string preferences,
                         std::optional<std::string> visible, std::vector<uint32_t> families,
                         std::vector<std::string> desired, std::vector<std::string> required, bool validation,
                         std::vector<std::string> layers, std::string driver, bool robust_access,
                         std::string cache_dir, uint64_t memory_block_size, uint64_t memory_limit,
                         const std::optional<uint64_t>& memory_idle_limit, bool memory_debug,
                         bool force_staging, bool force_non_coherent, uint64_t recent_pipelines,
                         double pipeline_timeout, double watchdog, std::string dump,
                         const std::string& wait_mode, const std::vector<std::string>& debug,
                         std::vector<float> queue_priorities,
                         const std::vector<std::tuple<std::string, uint32_t, std::vector<bool>>>& features,
                         const py::object& borrowed) {
                 collect_orphans(false);
                 auto options =
                     options_of(index, std::move(preferences), std::move(visible), std::move(families),
                                std::move(desired), std::move(required), validation, std::move(layers),
                                std::move(driver), robust_access, std::move(cache_dir),
                                {.largest_block = memory_block_size,
                                 .limit = memory_limit,
                                 .idle_limit = memory_idle_limit.value_or(UINT64_MAX),
                                 .debug = memory_debug,
                                 .force_staging = force_staging,
                                 .force_non_coherent = force_non_coherent},
                                recent_pipelines, pipeline_timeout, watchdog, std::move(dump), wait_mode,
                                instruments_of(debug));
                 options.queue_priorities = std::move(queue_priorities);
                 for (const auto& [extension, type, wanted] : features)
                     options.features.push_back({extension, type, wanted});
                 if (!borrowed.is_none()) options.borrowed = borrowed_device(borrowed);
                 const Unlocked unlocked;
                 return std::make_unique<Context>(std::move(options));
             }),
             py::kw_only(), py::arg("index"), py::arg("preferences"), py::arg("visible"),
             py::arg("family_queue_indices"), py::arg("desired_extensions"), py::arg("required_extensions"),
             py::arg("validation"), py::arg("layers"), py::arg("driver"), py::arg("robust_access"),
             py::arg("pipeline_cache_dir"), py::arg("memory_block_size"), py::arg("memory_limit"),
             py::arg("memory_idle_limit"), py::arg("memory_debug"), py::arg("force_staging"),
             py::arg("force_non_coherent"), py::arg("recent_pipelines"), py::arg("pipeline_timeout"),
             py::arg("watchdog"), py::arg("dump"), py::arg("wait_mode"), py::arg("debug"),
             py::arg("queue_priorities"), py::arg("features"), py::arg("borrowed") = py::none())
        .def_property_readonly("info", [](const Context& c) { return device_info(c.device().physical()); })
        .def_property_readonly("driver_library",
                               [](const Context& c) {
                                   const auto submit = c.device().vk().vkQueueSubmit;
                                   const auto* entry = reinterpret_cast<const void*>(submit);
                                   return py::bytes(library_of(entry));
                               })
        .def_property_readonly("request", [](const Context& c) { return c.device().selection().request; })
        .def_property_readonly("passed_over",
                               [](const Context& c) { return passed_over(c.device().selection()); })
        .def_property_readonly("enabled_extensions",
                               [](const Context& c) { return c.device().enabled_extensions(); })
        .def_property_readonly("enabled_features",
                               [](const Context& c) { return c.device().enabled_features(); })
        .def_property_readonly("waits",
                               [](const Context& c) -> std::string {
                                   const WaitChoice& waits = c.device().waits();
                                   return waits.measuring() ? "measuring" : waits.spins() ? "spin" : "block";
                               })
        .def("take_notes",
             [](const Context& c) {
                 py::list notes;
                 for (const std::string& note : c.device().take_notes()) notes.append(to_text(note));
                 return notes;
             })
        .def_property_readonly("queue_count", [](const Context& c) { return c.device().queues().size(); })
        .def_property_readonly("queues", &queues)
        .def(
            "least_busy",
            [](const Context& c, const std::vector<size_t>& among) {
                c.device().require_open("make a sequence");
                return c.device().least_busy(among);
            },
            py::arg("among"), py::call_guard<Unlocked>())
        .def("note_lines", [](const Context& c) { c.device().note_lines(); })
        .def_property_readonly("validation",
                               [](const Context& c) { return c.device().instance().validation(); })
        .def_property_readonly("vk_instance",
                               [](const Context& c) { return handle_value(c.device().instance().handle()); })
        .def_property_readonly("vk_physical_device",
                               [](const Context& c) { return handle_value(c.device().physical().handle); })
        .def_property_readonly("vk_device",
                               [](const Context& c) { return handle_value(c.device().handle()); })
        .def("vk_queue",
             [](const Context& c, size_t i) {
                 const auto& all = c.device().queues();
                 if (i >= all.size())
                     throw Error(ErrorKind::out_of_range, "Queue index " + std::to_string(i) +
                                                              " does not exist: this Manager opened " +
                                                              std::to_string(all.size()) + " queue(s)");
                 return handle_value(all[i].queue->handle());
             })
        .def_property_readonly("foreign", [](const Context& c) { return c.device().foreign(); })
        .def("is_init", [](const Context& c) { return c.device().is_open(); })
        .def("destroy",
             [](const Context& c) {
                 std::vector<std::string> told;
                 Device& device = c.device();
                 if (!device.is_open()) return told;
                 // Ctrl-C is heard here, before anything has changed; a second destroy() continues. close()
                 // cannot be interrupted.
                 try {
                     await_points(device.submitted());
                 } catch (const Error&) {
                     // The wait failed, not the work; close() waits in other ways.
                 }
                 (void)wait_for(
                     -1, [&] { return device.pipelines().await_users(0); },
                     [&](uint64_t slice) { return device.pipelines().await_users(slice); });
                 told = device.cancel_held("when its Manager was destroyed");
                 const Unlocked unlocked;
                 device.close();
                 return told;
             })
        .def("abandon", &Context::abandon)
        .def("cancel_held", [](const Context& c) { return c.device().cancel_held("when the program ended"); })
        .def("wait_submitted",
             [](const Context& c) {
                 if (!c.device().foreign()) await_points(c.device().submitted());
             })
        .def("wait_idle",
             [](const Context& c) {
                 c.device().require_open("wait");
                 await_points(c.device().unfinished());
                 {
                     const Unlocked unlocked;
                     c.device().wait_idle();
                 }
                 if (c.device().lost()) c.device().throw_lost("waiting", "the device");
             })
        .def("holds_work", [](const Context& c) { return c.device().holds_work(); })
        .def("is_lost", [](const Context& c) { return c.device().lost(); })
        .def("is_acting", [](const Context& c) { return c.device().is_acting(); })
        .def("drain_messages",
             [](const Context& c) {
                 py::list result;
                 for (auto& message : c.device().messages().drain())
                     result.append(py::make_tuple(message.severity, message.id, message.text, message.own));
                 return result;
             })
        .def("take_debug", &take_debug)
        .def("debug_sites", &debug_sites, py::arg("module"))
        .def(
            "debug_operation",
            [](const Context& c, uint32_t number) {
                Debugger* const debugger = c.device().debugger();
                return to_text(debugger ? debugger->operation(number) : std::string());
            },
            py::arg("number"))
        .def_property_readonly("repeated_devices",
                               [](const Context& c) { return c.device().selection().repeated; })
        .def("memory_statistics", &memory_statistics)
        .def("memory_holders", &memory_holders_for_python)
        .def("pipeline_counts", &pipeline_counts)
        .def(
            "memory_trim", [](const Context& c) { return c.device().is_open() ? c.device().trim() : 0; },
            py::call_guard<Unlocked>())
        .def("memory_reset_peak", [](const Context& c) { c.device().memory().reset_peak(); })
        .def(
            "memory_check", [](const Context& c) { return c.device().memory().check_guards(); },
            py::call_guard<Unlocked>())
        .def("buffer", &make_buffer, py::arg("data"), py::arg("nbytes"), py::arg("memory_type"),
             py::arg("fill") = py::none(), py::arg("wishes") = py::none())
        .def(
            "memory_place",
            [](const Context& c, int type, uint32_t required) {
                c.device().require_open("query memory");
                const PhysicalDevice& physical = c.device().physical();
                return std::pair(memory_types_for(c.device(), static_cast<MemoryType>(type), required),
                                 std::min(physical.max_allocation, physical.max_buffer_size));
            },
            py::arg("memory_type"), py::arg("required"))
        .def("shares_memory", [](const Context& c) { return shares_memory(c.device(), false); })
        .def("import_array", &import_array, py::arg("array"), py::arg("padded"), py::arg("root"),
             py::arg("read_only"), py::arg("on_done"))
        .def("await_writers", &await_writers, py::arg("begin"), py::arg("end"))
        .def_property_readonly("host_import_alignment",
                               [](const Context& c) { return c.device().physical().host_import_alignment; })
        .def("image", &make_image)
        .def("sampler", &make_sampler)
        .def("algorithm", &make_algorithm)
        .def(
            "shader",
            [](const Context& c, const py::bytes& spirv, const std::string& entry, const py::bytes& declared,
               uint32_t subgroup_size, bool full_subgroups, bool unchecked) {
                c.device().require_open("make an algorithm");
                const std::string_view bytes(spirv);
                const std::string_view declared_bytes(declared);
                const Unlocked unlocked;
                return c.device().pipelines().shader(bytes, entry, declared_bytes,
                                                     {subgroup_size, full_subgroups}, unchecked);
            },
            py::arg("spirv"), py::arg("entry") = "main", py::arg("declared") = py::bytes(),
            py::arg("subgroup_size") = 0, py::arg("full_subgroups") = false, py::arg("unchecked") = false)
        .def("knows_pipeline",
             [](const Context& c, const std::shared_ptr<Shader>& shader, const py::bytes& spec,
                const SpecializationMap& map) {
                 c.device().require_open("make an algorithm");
                 return c.device().pipelines().knows(shader, specialization_of(spec, map));
             })
        .def("check_pipeline",
             [](const Context& c, const std::shared_ptr<Shader>& shader, const py::bytes& spec,
                const SpecializationMap& map) {
                 c.device().require_open("make an algorithm");
                 const Specialization constants = specialization_of(spec, map);
                 if (c.device().pipelines().knows(shader, constants)) return;
                 (void)making_pipeline(c.device(), [device = c.shared(), shader, constants] {
                     const auto in_use = device->pipelines().use();
                     return device->pipelines().pipeline(shader, constants, {});
                 });
             })
        .def("pipeline_executables",
             [](const Context& c, const std::shared_ptr<Shader>& shader, const py::bytes& spec,
                const SpecializationMap& map) {
                 c.device().require_open("describe a pipeline");
                 const Specialization constants = specialization_of(spec, map);
                 const auto told = making_pipeline(c.device(), [device = c.shared(), shader, constants] {
                     return device->pipelines().executables(shader, constants);
                 });
                 py::list found;
                 for (const auto& each : told)
                     found.append(py::make_tuple(each.name, each.description, each.subgroup_size,
                                                 each.statistics, each.texts));
                 return found;
             })
        .def(
            "stream",
            [](const Context& c, int64_t queue_index, int64_t timestamps,
               const std::vector<std::shared_ptr<Resource>>& disjoint) {
                c.device().require_open("make a sequence");
                if (queue_index < 0 || queue_index > UINT32_MAX)
                    throw Error(ErrorKind::out_of_range,
                                "Queue index " + std::to_string(queue_index) + " does not exist");
                return make_object<Stream>(
                    c.shared(), static_cast<uint32_t>(queue_index), timestamps,
                    std::vector<std::shared_ptr<Object>>(disjoint.begin(), disjoint.end()));
            },
            py::arg("queue_index"), py::arg("timestamps"),
            py::arg("disjoint") = std::vector<std::shared_ptr<Resource>>{});
    m.def("alive", &alive, py::arg("context") = py::none());
    m.def(
        "shutdown",
        [] {
            leave_at_exit();
            collect_orphans(true);
        },
        py::call_guard<Unlocked>());
    m.def("loader_info", &loader_info_to_python);
    m.def("enumerate_devices", &enumerate_devices);
    m.def("late_loader", &late_loader);
    m.def("select_device", &select_device_for_python);
}

}  // namespace kp
