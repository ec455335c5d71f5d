// Some 970 lines because entries, forms, families and plans are dropped from each other, and are private
// here.
#include "call_table.hpp"

#include <cmath>

namespace kp {

struct CallEntry {
    std::vector<Bound> work;
    const CallForm* form = nullptr;  // a function's
    std::vector<uint64_t> key;
    std::vector<std::vector<uint64_t>> plans;
    std::vector<py::object> watchers;
    size_t number = 0;
    size_t place = 0;  // in the list of all
    bool dropped = false;
};

// Everything about a call but the memory of its tensors and its push constants.
struct CallForm {
    // Memory of a call.
    struct Slot {
        int64_t value = -1;   // the number of its value; -1: none; -2 - n: the new result n
        ResourceRange array;  // the memory for an array, or of all calls; empty for an object
        size_t parameter = 0;
    };
    struct Result {
        int64_t value = -1;
        ResourceRange memory;
        py::object make;  // the array that the call leaves out
    };
    std::shared_ptr<Dispatches> program;
    std::vector<Groups> groups;
    std::vector<Slot> slots;
    std::vector<Result> results;
    py::object check;  // None: all push constants will do
    std::string checked;
    py::object info;
    std::vector<py::object> kept;  // the dtypes of the key
    bool copies = false;
    // A function's.
    std::vector<std::string> push;
    py::object pack = py::none();  // push constants for a list of values; None if all calls have `push`
    std::vector<std::pair<uint64_t, int>> fresh;  // bytes and memory type of new results
    py::object tensors;                           // makes their tensors of native memory
    py::object after = py::none();                // called after the work; None for nothing
    bool several = false;                         // whether it returns a tuple
};

// Everything about a call but the number of elements of its arguments.
struct CallFamily {
    struct Use {
        size_t slot = 0;
        uint64_t offset = 0;
        uint64_t stride = 1;
    };
    CallForm form;                 // its arrays have no memory
    std::vector<size_t> arrays;    // slots
    std::vector<size_t> results;   // the slots of the form's results
    std::optional<size_t> source;  // the slot that gives the number of elements
    uint64_t stride = 1;
    size_t axis = 0;
    uint32_t local_size = 1;
    std::vector<std::vector<Use>> equal;
};

namespace {

constexpr size_t most_lines = 256;
constexpr size_t most_submitting = 64;
constexpr size_t most_plans_of_entry = 64;
constexpr size_t most_forms = 4096;
constexpr size_t most_families = 256;
constexpr size_t most_kinds = 1 << 14;

void add_words(std::vector<uint64_t>& key, uint32_t set, uint32_t binding, uint32_t element,
               const ResourceRange& range, const void* sampler = nullptr, const void* texels = nullptr) {
    key.push_back(uint64_t{set} << 32 | binding);
    key.push_back(element);
    key.push_back(reinterpret_cast<uintptr_t>(range.resource.get()));
    key.push_back(range.offset);
    key.push_back(range.size);
    key.push_back(reinterpret_cast<uintptr_t>(sampler));
    key.push_back(reinterpret_cast<uintptr_t>(texels));
}

template <typename Move>
void moving(uint64_t bytes, const Move& move) {
    if (bytes <= release_lock_above) return move();
    const Unlocked unlocked;
    move();
}

void upload(const ResourceRange& to, PyObject* array) {
    Resource& resource = *to.resource;
    if (to.size == 0) return;
    await_points(resource.pending());
    if (!resource.host_visible()) await_staging(resource.device());
    moving(to.size, [&] { resource.write(py::detail::array_proxy(array)->data, to.offset, to.size); });
}

void download(const ResourceRange& from, PyObject* array) {
    Resource& resource = *from.resource;
    if (from.size == 0) return;
    await_points(resource.pending(true));
    if (resource.reads_staged()) await_staging(resource.device());
    moving(from.size, [&] { resource.read(py::detail::array_proxy(array)->data, from.offset, from.size); });
}

struct Taken {
    Line& line;
    explicit Taken(Line& given) : line(given) { line.taken = true; }
    ~Taken() { line.taken = false; }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
};

py::object unknown() { return py::reinterpret_borrow<py::object>(Py_NotImplemented); }

// The objects by whose identity the key has the dtypes and types of values.
std::vector<py::object> dtypes_of(const CallArguments& given) {
    static PyObject* const names[] = {interned("dtype"), interned("_dtype")};
    std::vector<py::object> found;
    for (PyObject* value : given.all()) {
        found.push_back(py::type::of(value));
        for (PyObject* name : names)
            if (PyObject* dtype = PyObject_GetAttr(value, name))
                found.push_back(py::reinterpret_steal<py::object>(dtype));
            else
                PyErr_Clear();
    }
    return found;
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

// Puts a number where it certainly goes as it is; false for all others, which Python packs or refuses.
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

}  // namespace

CallTable::CallTable(CallVocabulary vocabulary, std::vector<PushField> fields, size_t push_size,
                     py::object pack, size_t parameters, std::string given, size_t most_entries)
    : name(std::move(given)),
      vocabulary_(std::move(vocabulary)),
      fields_(std::move(fields)),
      push_size_(push_size),
      pack_(std::move(pack)),
      parameters_(parameters),
      most_entries_(std::max<size_t>(most_entries, 1)) {}

// -- calls --------------------------------------------------------------------------------------------------

py::object CallTable::call(const py::object& args, const py::object& keywords) {
    CallArguments given;
    Prepared found = find(given, args.ptr(), keywords.ptr(), true);
    if (!found.found) return unknown();
    const CallForm& form = *found.form;
    std::vector<std::shared_ptr<Buffer>> memory_of_results;
    py::object fresh;
    const auto result = [&](int64_t value, int64_t item) {
        PyObject* each =
            value < -1 ? PyList_GET_ITEM(fresh.ptr(), -2 - value) : given.value(static_cast<size_t>(value));
        return py::reinterpret_borrow<py::object>(item < 0 ? each : PyTuple_GET_ITEM(each, item));
    };
    if (found.entry && !form.copies && form.fresh.empty()) {  // the commonest calls
        run(*found.entry, form.groups, found.pushed());
        if (!form.after.is_none()) form.after();
        if (!found.exactly) return py::none();
        if (!form.several) return result(found.exactly->results[0].first, found.exactly->results[0].second);
    }
    if (!form.fresh.empty()) fresh = made_for(form, memory_of_results);
    std::vector<py::object> results;
    if (found.exactly)
        for (const auto& [value, item] : found.exactly->results) results.push_back(result(value, item));
    else
        for (const auto& [value, memory, make] : form.results)
            results.push_back(value == -1 ? make() : result(value, -1));
    if (form.copies) {
        for (const auto& slot : form.slots)
            if (slot.array.resource && slot.value >= 0)
                upload(slot.array, given.value(static_cast<size_t>(slot.value)));
        for (size_t i = 0; i < form.results.size(); ++i)
            if (form.results[i].value == -1) upload(form.results[i].memory, results[i].ptr());
    }
    if (found.entry && form.copies) {
        run(*found.entry, form.groups, found.pushed());
    } else if (!found.entry || !form.fresh.empty()) {
        std::vector<ResourceRange> memory = found.exactly ? found.exactly->memory : found.memory;
        for (size_t i = 0; i < memory.size(); ++i)
            if (const int64_t value = form.slots[i].value; value < -1)
                memory[i] = ResourceRange(memory_of_results[static_cast<size_t>(-2 - value)]);
        form.program->run(memory, found.pushed());
        if (!found.own.empty()) repeat(args.ptr(), keywords.ptr(), found, given.all());
        if (!form.after.is_none()) form.after();
    }
    if (form.copies)
        for (size_t i = 0; i < form.results.size(); ++i) download(form.results[i].memory, results[i].ptr());
    if (results.size() == 1 && !form.several) return results.front();
    if (results.empty() && !form.several) return py::none();
    py::tuple all(results.size());
    for (size_t i = 0; i < results.size(); ++i) all[i] = results[i];
    return all;
}

py::object CallTable::submit(const py::object& args, const py::object& keywords,
                             const std::optional<WaitsAndSignals>& order) {
    CallArguments given;
    Prepared found = find(given, args.ptr(), keywords.ptr(), true);
    if (!found.found || found.form->copies || !found.form->fresh.empty()) return unknown();
    const CallForm& form = *found.form;
    if (found.entry) return py::cast(submit(found.entry->work, true, form.groups, found.pushed(), order));
    const auto work = form.program->bound(found.memory, form.groups);
    const auto fence = submit(work, false, form.groups, found.pushed(), order);
    if (!found.own.empty()) repeat(args.ptr(), keywords.ptr(), found, given.all());
    return py::cast(fence);
}

py::object CallTable::bind(const py::object& args, const py::object& keywords) {
    CallArguments given;
    const Prepared found = find(given, args.ptr(), keywords.ptr(), false);
    if (!found.found || found.form->copies) return unknown();
    const CallForm& form = *found.form;
    std::vector<Argument> arguments = found.entry ? found.entry->work.front().algorithm->arguments()
                                                  : form.program->arguments(0, found.memory);
    for (const Argument& argument : arguments)
        if (argument.range.resource && !argument.range.resource->is_init()) return unknown();
    auto algorithm =
        make_object<Algorithm>(form.program->parts().front().base, std::move(arguments), form.groups.front());
    algorithm->set_name(name);
    py::tuple memories(parameters_);
    for (size_t i = 0; i < parameters_; ++i) memories[i] = vocabulary_.missing;
    for (const auto& slot : form.slots)
        memories[slot.parameter] =
            py::reinterpret_borrow<py::object>(given.value(static_cast<size_t>(slot.value)));
    const std::string& push = found.packed;
    return py::make_tuple(make_bound_dispatch(std::move(algorithm), form.groups.front(), push),
                          py::bytes(push), memories, form.info);
}

CallTable::Prepared CallTable::find(CallArguments& given, PyObject* args, PyObject* keywords, bool entry) {
    Prepared found;
    const bool readable = given.read(vocabulary_, args, keywords);
    if (!readable && !vocabulary_.function) return found;
    if (const auto plan = readable ? plans_.find(given.key()) : plans_.end(); plan != plans_.end()) {
        static_cast<Plan&>(found) = plan->second;
        if (vocabulary_.function) {
            found.found = true;
            return found;
        }
    } else if (vocabulary_.function) {
        if (readable) found.own.assign(given.key().begin(), given.key().end());
        find_parameters(found, given, args, keywords);
        return found;
    } else {
        const Key own(given.key().begin(), given.key().end());
        if (!given.read_shapes(vocabulary_)) return found;
        if (const auto form = forms_.find(given.key()); form != forms_.end()) {
            found.form = form->second.native;
        } else if (!families_.empty()) {
            const Key shapes(given.key().begin(), given.key().end());
            if (!given.read_dtypes(vocabulary_)) return found;
            const auto family = families_.find(given.key());
            if (family == families_.end()) return found;
            const std::shared_ptr<CallFamily> kept = family->second;
            found.form = form_of(*kept, given);
            if (found.form) add_form(shapes, {found.form, {}});
        }
        if (!found.form) return found;
        std::vector<py::object> owners;
        if (!memory_of(*found.form, given.all(), found.memory, &owners)) return found;
        if (entry) {
            const Dispatches& program = *found.form->program;
            Key key;
            for (const auto& [set, binding, number] : program.parts().front().places)
                add_words(key, set, binding, 0, found.memory[number]);
            found.entry = find_entry(key);
            if (!found.entry) {
                std::vector<Bound> work;
                try {
                    work = program.bound(found.memory, found.form->groups, name);
                } catch (const Error& error) {
                    // The longer way tries again, and explains.
                    if (error.kind() == ErrorKind::out_of_memory) clear();  // the table may take it
                    return found;
                }
                found.entry = add_entry(std::move(key), std::move(work), owners);
            }
            // Only objects that the entry watches can be recognized by their identity.
            bool whole = true;
            size_t at = 0;
            for (const auto& slot : found.form->slots)
                if (!slot.array.resource)
                    whole = whole && owners[at++].ptr() == given.value(static_cast<size_t>(slot.value));
            if (whole) add_plan(own, {found.form, found.entry, {}});
        }
    }
    found.packed = pack(given, keywords);
    CallForm& form = *found.form;
    if (!form.check.is_none() && form.checked != found.packed) {
        if (!form.check(py::bytes(found.packed)).cast<bool>()) return found;
        form.checked = found.packed;
    }
    found.found = true;
    return found;
}

bool CallTable::memory_of(const CallForm& form, std::span<PyObject* const> given,
                          std::vector<ResourceRange>& memory, std::vector<py::object>* owners) const {
    static PyObject* const native_name = interned("_native");
    static PyObject* const manager_name = interned("_manager");
    static PyObject* const base_name = interned("_base");
    memory.clear();
    memory.reserve(form.slots.size());
    for (const auto& slot : form.slots) {
        if (slot.array.resource || slot.value < 0) {
            memory.push_back(slot.array);
            continue;
        }
        PyObject* tensor = given[static_cast<size_t>(slot.value)];
        if (slot_of(tensor, manager_name).ptr() != vocabulary_.manager) return false;
        const py::object native = slot_of(tensor, native_name);
        const bool part = is_view(native);
        if (part) {
            const auto& view = native.cast<const BufferView&>();
            if (!view.is_init()) return false;
            memory.push_back(view.range("bind"));
        } else {
            memory.emplace_back(native.cast<std::shared_ptr<Resource>>());
            if (!memory.back().resource->is_init()) return false;
        }
        if (!owners) continue;
        py::object owner = py::reinterpret_borrow<py::object>(tensor);
        while (part && is_view(slot_of(owner.ptr(), native_name))) owner = slot_of(owner.ptr(), base_name);
        owners->push_back(std::move(owner));
    }
    return true;
}

std::string CallTable::pack(const CallArguments& given, PyObject* keywords) const {
    std::string push(push_size_, '\0');
    if (push_size_ == 0) return push;
    auto* bytes = reinterpret_cast<std::byte*>(push.data());
    bool done = fields_.size() == vocabulary_.push_constants;
    for (size_t i = 0; done && i < fields_.size(); ++i)
        done = put(bytes + fields_[i].offset, fields_[i].code, given.push_constant(i));
    if (!done) push = pack_(py::reinterpret_borrow<py::object>(keywords)).cast<py::bytes>();
    return push;
}

std::shared_ptr<CallForm> CallTable::form_of(const CallFamily& family, const CallArguments& given) const {
    static PyObject* const native_name = interned("_native");
    static PyObject* const memory_name = interned("memory");
    std::vector<uint64_t> sizes;
    for (const auto& slot : family.form.slots) {
        PyObject* value = given.value(static_cast<size_t>(slot.value));
        if (py::isinstance<py::array>(value)) {
            sizes.push_back(static_cast<uint64_t>(py::reinterpret_borrow<py::array>(value).nbytes()));
            continue;
        }
        const py::object native = slot_of(value, native_name);
        sizes.push_back(is_view(native) ? native.cast<const BufferView&>().size()
                                        : native.cast<const Resource&>().nbytes());
    }
    for (const auto& uses : family.equal) {
        std::optional<uint64_t> count;
        for (const auto& use : uses) {
            if (sizes[use.slot] < use.offset) return nullptr;
            const uint64_t own = (sizes[use.slot] - use.offset) / use.stride;
            if (count && *count != own) return nullptr;
            count = own;
        }
    }
    auto form = std::make_shared<CallForm>(family.form);
    if (family.source) {
        const uint64_t size = sizes[*family.source];
        if (size == 0 || size % family.stride != 0) return nullptr;
        const uint64_t count = size / family.stride;
        const uint64_t groups = (count + family.local_size - 1) / family.local_size;
        const auto& limits = form->program->parts().front().base.device->limits();
        if (groups > limits.maxComputeWorkGroupCount[family.axis]) return nullptr;
        Groups& own = form->groups.front() = {1, 1, 1};
        own[family.axis] = static_cast<uint32_t>(groups);
        std::array<uint64_t, 3> extent{1, 1, 1};
        extent[family.axis] = count;
        form->info = py::make_tuple(py::make_tuple(extent[0], extent[1], extent[2]),
                                    py::make_tuple(own[0], own[1], own[2]), true);
    }
    for (const size_t i : family.arrays) {
        auto& slot = form->slots[i];
        const py::object memory = lending.attr(memory_name)(slot.parameter, sizes[i]);
        if (memory.is_none()) return nullptr;
        slot.array = ResourceRange(memory.cast<std::shared_ptr<Resource>>(), 0, sizes[i]);
    }
    for (size_t i = 0; i < family.results.size(); ++i)
        form->results[i].memory = form->slots[family.results[i]].array;
    return form;
}

// -- entries ------------------------------------------------------------------------------------------------

std::shared_ptr<CallEntry> CallTable::find_entry(std::span<const uint64_t> key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : found->second;
}

std::shared_ptr<CallEntry> CallTable::entry(const py::list& arguments, const py::list& references,
                                            const py::list& owners, const py::object& make,
                                            const py::object& indirect) {
    Key key;
    for (const auto& [set, binding, element, range, sampler, texels] : arguments_of(arguments))
        add_words(key, set, binding, element, range, sampler.get(), texels);
    std::vector<ResourceRange> reached;
    for (const py::handle each : references) {
        reached.push_back(each.cast<ResourceRange>());
        add_words(key, UINT32_MAX, UINT32_MAX, 0, reached.back());
    }
    ResourceRange groups;
    if (!indirect.is_none()) {
        groups = indirect.cast<ResourceRange>();
        add_words(key, UINT32_MAX, UINT32_MAX, 1, groups);
    }
    if (auto found = find_entry(key)) return found;
    std::vector<py::object> all;
    for (const py::handle each : owners) all.push_back(py::reinterpret_borrow<py::object>(each));
    return add_entry(std::move(key),
                     {{make().cast<std::shared_ptr<Algorithm>>(), {std::move(reached), std::move(groups)}}},
                     all);
}

std::shared_ptr<CallEntry> CallTable::add_entry(Key key, std::vector<Bound> work,
                                                const std::vector<py::object>& owners) {
    while (all_.size() >= most_entries_) drop(*all_[random_() % all_.size()]);
    if (!ended_) {
        // Weak, because it lives as long as the weak references, which the table keeps.
        ended_ = py::cpp_function([weak = weak_from_this()](const py::handle& reference) {
            const auto table = weak.lock();
            if (!table) return;
            if (const auto found = table->watched_.find(reference.ptr()); found != table->watched_.end())
                table->drop(*found->second);
        });
    }
    auto made = std::make_shared<CallEntry>();
    made->work = std::move(work);
    made->number = made_++;
    for (size_t i = 0; i < owners.size(); ++i) {
        const auto repeats = [&](const py::object& other) { return other.is(owners[i]); };
        if (std::any_of(owners.begin(), owners.begin() + static_cast<std::ptrdiff_t>(i), repeats)) continue;
        PyObject* reference = PyWeakref_NewRef(owners[i].ptr(), ended_.ptr());
        if (!reference) throw py::error_already_set();
        made->watchers.push_back(py::reinterpret_steal<py::object>(reference));
    }
    for (const auto& watcher : made->watchers) watched_[watcher.ptr()] = made.get();
    made->place = all_.size();
    made->key = key;
    all_.push_back(made.get());
    entries_.insert_or_assign(std::move(key), made);
    return made;
}

void CallTable::add_plan(std::span<const uint64_t> key, Plan plan) {
    CallEntry& entry = *plan.entry;
    if (entry.dropped) return;
    if (entry.plans.size() >= most_plans_of_entry) {
        for (const Key& each : entry.plans) plans_.erase(each);
        entry.plans.clear();
    }
    Key own(key.begin(), key.end());
    entry.plans.push_back(own);
    plans_.insert_or_assign(std::move(own), std::move(plan));
}

void CallTable::drop(CallEntry& entry) noexcept {
    if (entry.dropped) return;
    entry.dropped = true;
    // The tables' references go last: what they hold may have the last reference to other objects.
    const auto found = entries_.find(entry.key);
    const std::shared_ptr<CallEntry> kept = found == entries_.end() ? nullptr : found->second;
    entries_.erase(entry.key);
    std::vector<Plan> plans;
    for (const Key& key : entry.plans)
        if (const auto plan = plans_.find(key); plan != plans_.end()) {
            plans.push_back(std::move(plan->second));
            plans_.erase(plan);
        }
    all_[entry.place] = all_.back();
    all_[entry.place]->place = entry.place;
    all_.pop_back();
    for (const auto& watcher : entry.watchers) watched_.erase(watcher.ptr());
    if (entry.work.empty()) return;
    const Algorithm& algorithm = *entry.work.front().algorithm;
    if (!lines_.empty())
        if (const auto& line = lines_[entry.number % lines_.size()]) line->forget(algorithm);
    for (const auto& line : submitting_) line->forget(algorithm);
}

void CallTable::clear() {
    while (!all_.empty()) drop(*all_.back());
    plans_.clear();
    once_.clear();
    while (!forms_.empty()) drop_form(forms_.begin());
    places_.clear();
    families_.clear();
    vocabulary_.known = py::dict();
}

// -- running ------------------------------------------------------------------------------------------------

void CallTable::run(const CallEntry& entry, std::span<const Groups> groups,
                    std::span<const std::string> push) {
    if (lines_.size() < most_lines && entry.number >= lines_.size())
        lines_.resize(std::min(most_lines, std::max<size_t>(entry.number + 1, 2 * lines_.size())));
    auto& own = lines_[entry.number % lines_.size()];
    if (!own) own = std::make_shared<Line>();
    // Another thread may have it, and this one may lose it meanwhile.
    const std::shared_ptr<Line> line = own->taken ? std::make_shared<Line>() : own;
    const Taken taken(*line);
    const std::shared_ptr<Stream> stream = line->prepare(entry.work, groups, push);
    kp::evaluate(stream);
}

void CallTable::evaluate(const std::shared_ptr<CallEntry>& entry, const std::array<int64_t, 3>& groups,
                         const py::bytes& push) {
    const Groups counts = groups_of(groups);
    const std::string packed = push;
    (void)prepared(entry->work.front().algorithm, counts);
    run(*entry, {&counts, 1}, {&packed, 1});
}

std::shared_ptr<Fence> CallTable::submit_entry(const std::shared_ptr<CallEntry>& entry,
                                               const std::array<int64_t, 3>& groups, const py::bytes& push,
                                               const std::optional<WaitsAndSignals>& order) {
    const Groups counts = groups_of(groups);
    const std::string packed = push;
    (void)prepared(entry->work.front().algorithm, counts);
    return submit(entry->work, true, {&counts, 1}, {&packed, 1}, order);
}

std::shared_ptr<Fence> CallTable::submit(std::span<const Bound> work, bool kept,
                                         std::span<const Groups> groups, std::span<const std::string> push,
                                         const std::optional<WaitsAndSignals>& order) {
    std::shared_ptr<Line> line;
    if (kept && !submitting_.empty() &&
        (submitting_.size() >= most_submitting || !submitting_.front()->is_busy())) {
        // The oldest goes to the end. A device with many submissions in flight gets another in its place.
        line = std::move(submitting_.front());
        submitting_.pop_front();
    }
    if (!line || line->is_busy()) line = std::make_shared<Line>();
    if (kept) submitting_.push_back(line);
    const Taken taken(*line);
    const std::shared_ptr<Stream> stream = line->prepare(work, groups, push);
    if (order) return submit_in_order(stream->shared_device(), {stream}, *order);
    stream->submit();
    return Fence::of({stream});
}

// -- a function's calls -------------------------------------------------------------------------------------

const CallTable::Kept* CallTable::find_kept(CallArguments& given) {
    const auto places = places_.find(given.key());
    if (places == places_.end() || !given.add_values(vocabulary_, places->second)) return nullptr;
    const auto found = forms_.find(given.key());
    return found == forms_.end() ? nullptr : &found->second;
}

void CallTable::find_parameters(Prepared& found, CallArguments& given, PyObject* args, PyObject* keywords) {
    if (places_.empty() || !given.read_parameters(vocabulary_, args, keywords)) return;
    const Kept* kept = find_kept(given);
    if (!kept || !kept->native) return;
    const std::shared_ptr<CallForm> form = kept->native;
    if (!memory_of(*form, given.all(), found.memory)) return;
    found.form = form;
    found.found = packed(*form, given.all(), found.push);
}

bool CallTable::packed(const CallForm& form, std::span<PyObject* const> given,
                       std::vector<std::string>& push) {
    if (form.pack.is_none()) {
        push = form.push;
        return true;
    }
    py::list values(given.size());
    for (size_t i = 0; i < given.size(); ++i) values[i] = py::reinterpret_borrow<py::object>(given[i]);
    const py::object made = form.pack(values);
    if (made.is_none()) return false;  // the form is for numbers of another dtype
    push = made.cast<std::vector<std::string>>();
    return true;
}

py::object CallTable::find_form(const Given& call) {
    CallArguments given;
    if (!given.take(vocabulary_, call.values, call.outs, call.extra)) return py::none();
    const Kept* kept = find_kept(given);
    return kept ? kept->form : py::none();
}

void CallTable::keep(const Given& call, const std::vector<uint32_t>& places, const py::object& form,
                     uint64_t nbytes, std::shared_ptr<CallForm> native) {
    if (places_.size() >= most_kinds || vocabulary_.known.size() >= most_kinds) clear();
    CallArguments given;
    if (!given.take(vocabulary_, call.values, call.outs, call.extra)) return;
    auto& all = places_.try_emplace(Key(given.key().begin(), given.key().end())).first->second;
    for (const uint32_t place : places)
        if (std::ranges::find(all, place) == all.end()) all.push_back(place);
    if (!given.add_values(vocabulary_, all)) return;
    std::vector<py::object> dtypes = dtypes_of(given);
    if (const auto earlier = forms_.find(given.key()); earlier != forms_.end()) drop_form(earlier);
    forms_.emplace(Key(given.key().begin(), given.key().end()),
                   Kept{std::move(native), form, nbytes, std::move(dtypes)});
}

void CallTable::drop_form(Table<Kept>::iterator place) {
    const Kept kept = std::move(place->second);
    forms_.erase(place);
    for (size_t i = all_.size(); kept.native && i-- > 0;)
        // Other entries may end with what one holds.
        if (i < all_.size() && all_[i]->form == kept.native.get()) drop(*all_[i]);
}

void CallTable::drop_a_form() {
    if (!forms_.empty())
        drop_form(std::next(forms_.begin(), static_cast<int64_t>(random_() % forms_.size())));
}

uint64_t CallTable::kept_bytes() const noexcept {
    uint64_t found = 0;
    for (const auto& [key, kept] : forms_) found += kept.nbytes;
    return found;
}

void CallTable::repeat(const py::object& args, const py::object& keywords, const Given& call,
                       const py::sequence& given) {
    CallArguments exactly, taken;
    if (!exactly.read(vocabulary_, args.ptr(), keywords.ptr()) ||
        !taken.take(vocabulary_, call.values, call.outs, call.extra))
        return;
    const Kept* kept = find_kept(taken);
    if (!kept || !kept->native) return;
    const std::shared_ptr<CallForm> form = kept->native;
    std::vector<PyObject*> all;
    for (const py::handle each : given) all.push_back(each.ptr());
    std::vector<std::string> push;
    if (packed(*form, taken.all(), push)) repeat(exactly, form, all, std::move(push));
}

void CallTable::repeat(PyObject* args, PyObject* keywords, Prepared& found, std::span<PyObject* const> all) {
    CallArguments exactly;
    if (exactly.read(vocabulary_, args, keywords)) repeat(exactly, found.form, all, std::move(found.push));
}

py::object CallTable::made_for(const CallForm& form, std::vector<std::shared_ptr<Buffer>>& memory) const {
    static PyObject* const native_name = interned("_native");
    const py::object context = slot_of(const_cast<PyObject*>(vocabulary_.manager), native_name);
    py::list natives(form.fresh.size());
    for (const auto& [nbytes, type] : form.fresh) {
        memory.push_back(make_buffer(context.cast<const Context&>(), py::none(), nbytes, type, std::nullopt));
        natives[memory.size() - 1] = memory.back();
    }
    return form.tensors(natives).cast<py::list>();
}

// Whether a call like this one was made before, over the same first tensor, and there is room for it.
bool CallTable::repeats(std::span<const uint64_t> key, PyObject* first) {
    // Of a tensor always the same, while it lives.
    const auto seen = py::reinterpret_steal<py::object>(PyWeakref_NewRef(first, nullptr));
    if (!seen) throw py::error_already_set();
    const auto found = once_.find(key);
    if (found == once_.end() || !found->second.is(seen)) {
        if (once_.size() >= 4 * most_entries_) once_.clear();
        once_.insert_or_assign(Key(key.begin(), key.end()), seen);
        return false;
    }
    // Of more calls in turn than are kept few are prepared.
    return !plans_.contains(key) && (all_.size() < most_entries_ || random_() % 64 == 0);
}

void CallTable::repeat(const CallArguments& given, const std::shared_ptr<CallForm>& form,
                       std::span<PyObject* const> all, std::vector<std::string> push) {
    std::vector<py::object> owners;
    Key own{reinterpret_cast<uintptr_t>(form.get())};
    for (PyObject* each : all)
        if (reinterpret_cast<PyObject*>(Py_TYPE(each)) == vocabulary_.tensor_type.ptr()) {
            own.push_back(reinterpret_cast<uintptr_t>(each));
            owners.push_back(py::reinterpret_borrow<py::object>(each));
        }
    if (owners.empty() || !repeats(given.key(), owners.front().ptr())) return;
    Exactly exactly{std::move(push), {}, {}};
    for (const auto& result : form->results) {
        const auto found = result.value < 0 ? std::pair<int64_t, int64_t>(result.value, -1)
                                            : given.place_of(all[static_cast<size_t>(result.value)]);
        if (found.first == -1) return;
        exactly.results.push_back(found);
    }
    if (!memory_of(*form, all, exactly.memory)) return;
    auto entry = find_entry(own);
    if (!entry) {
        std::vector<Bound> work;
        if (form->fresh.empty()) work = form->program->bound(exactly.memory, form->groups);
        for (size_t i = 0; i < work.size(); ++i) (void)prepared(work[i].algorithm, form->groups[i]);
        entry = add_entry(std::move(own), std::move(work), owners);
        entry->form = form.get();
    }
    add_plan(given.key(), {form, entry, std::make_shared<const Exactly>(std::move(exactly))});
}

// -- learning -----------------------------------------------------------------------------------------------

void CallTable::learn(const py::object& args, const py::object& keywords,
                      const std::shared_ptr<CallEntry>& entry, const Algorithm& algorithm,
                      const py::list& slots, const py::list& results, const std::array<int64_t, 3>& groups,
                      const py::bytes& push, py::object check, py::object info, bool general,
                      const py::object& family) {
    CallArguments given;
    if ((entry && entry->dropped) || !given.read(vocabulary_, args.ptr(), keywords.ptr())) return;
    auto form = std::make_shared<CallForm>();
    form->groups = {groups_of(groups)};
    if (!algorithm.fits(form->groups.front())) return;  // it runs in layers
    form->check = std::move(check);
    form->checked = std::string(push);
    form->info = std::move(info);
    Dispatches::Part part{algorithm.base(), {}, {}, {}};
    for (const py::handle each : slots) {
        const auto parts = each.cast<py::tuple>();
        part.places.push_back({parts[1].cast<uint32_t>(), parts[2].cast<uint32_t>(),
                               static_cast<uint32_t>(form->slots.size())});
        CallForm::Slot slot{parts[3].cast<int64_t>(), {}, parts[0].cast<size_t>()};
        if (!parts[4].is_none()) slot.array = parts[4].cast<ResourceRange>();
        form->copies = form->copies || slot.array.resource;
        form->slots.push_back(std::move(slot));
    }
    form->program = std::make_shared<Dispatches>(std::vector{std::move(part)}, form->groups);
    for (const py::handle each : results) {
        const auto parts = each.cast<py::tuple>();
        form->results.push_back(
            {parts[0].cast<int64_t>(), parts[1].cast<ResourceRange>(), parts[2].cast<py::object>()});
    }
    form->kept = dtypes_of(given);
    const bool watched = entry && std::ranges::all_of(form->slots, [&](const auto& slot) {
                             if (slot.array.resource) return true;
                             PyObject* object = given.value(static_cast<size_t>(slot.value));
                             return std::ranges::any_of(entry->watchers, [&](const py::object& watcher) {
                                 return PyWeakref_GetObject(watcher.ptr()) == object;
                             });
                         });
    if (watched) add_plan(given.key(), {form, entry, {}});
    if (!general || !given.read_shapes(vocabulary_)) return;
    add_form(given.key(), {form, {}});
    if (family.is_none() || !given.read_dtypes(vocabulary_)) return;
    auto made = std::make_shared<CallFamily>();
    made->form = *form;
    std::vector<size_t> slot_of_parameter(parameters_);
    for (size_t i = 0; i < form->slots.size(); ++i) {
        slot_of_parameter[form->slots[i].parameter] = i;
        if (!form->slots[i].array.resource) continue;
        made->arrays.push_back(i);
        made->form.slots[i].array = {};
    }
    for (auto& result : made->form.results) {
        for (const size_t i : made->arrays)
            if (form->slots[i].value == result.value) made->results.push_back(i);
        result.memory = {};
    }
    const auto parts = family.cast<py::tuple>();
    if (const auto source = parts[0].cast<int64_t>(); source >= 0)
        made->source = slot_of_parameter[static_cast<size_t>(source)];
    made->stride = parts[1].cast<uint64_t>();
    made->axis = parts[2].cast<size_t>();
    made->local_size = parts[3].cast<uint32_t>();
    for (const py::handle uses : parts[4]) {
        auto& equal = made->equal.emplace_back();
        for (const py::handle each : uses) {
            const auto [parameter, offset, stride] = each.cast<std::tuple<size_t, uint64_t, uint64_t>>();
            equal.push_back({slot_of_parameter[parameter], offset, stride});
        }
    }
    if (families_.size() >= most_families) families_.erase(families_.begin());
    families_.insert_or_assign(Key(given.key().begin(), given.key().end()), std::move(made));
}

void CallTable::add_form(std::span<const uint64_t> key, Kept kept) {
    if (forms_.size() >= most_forms) forms_.erase(forms_.begin());
    forms_.insert_or_assign(Key(key.begin(), key.end()), std::move(kept));
}

void bind_call_table(py::module_& m) {
    using Names = std::vector<std::string>;
    py::class_<CallEntry, std::shared_ptr<CallEntry>>(m, "CallEntry")
        .def_property_readonly("algorithm", [](const CallEntry& e) { return e.work.front().algorithm; });
    py::class_<CallForm, std::shared_ptr<CallForm>>(m, "CallForm")
        .def(py::init([](std::shared_ptr<Dispatches> program, const std::vector<int64_t>& slots,
                         const std::vector<ResourceRange>& own, const std::vector<int64_t>& results,
                         bool several, std::vector<std::string> push, py::object pack,
                         std::vector<std::pair<uint64_t, int>> fresh, py::object tensors, py::object after) {
                 auto made = std::make_shared<CallForm>();
                 made->groups = program->groups();
                 made->program = std::move(program);
                 for (const int64_t value : slots) made->slots.push_back({value, {}, 0});
                 for (const auto& memory : own) made->slots.push_back({-1, memory, 0});
                 for (const int64_t value : results) made->results.push_back({value, {}, {}});
                 made->several = several;
                 made->push = std::move(push);
                 made->pack = std::move(pack);
                 made->fresh = std::move(fresh);
                 made->tensors = std::move(tensors);
                 made->after = std::move(after);
                 return made;
             }),
             py::kw_only(), py::arg("program"), py::arg("slots"), py::arg("own"), py::arg("results"),
             py::arg("several"), py::arg("push"), py::arg("pack"), py::arg("fresh"), py::arg("tensors"),
             py::arg("after"));
    const auto vocabulary = [](const py::object& tensor_type, const py::object& manager,
                               const py::object& missing) {
        CallVocabulary made;
        made.tensor_type = tensor_type;
        made.manager = manager.ptr();
        made.missing = missing;
        return made;
    };
    const auto add = [](CallVocabulary& to, const Names& names, CallVocabulary::Role role) {
        uint32_t number = 0;
        for (const auto& each : names)
            to.names.push_back({py::reinterpret_steal<py::object>(interned(each.c_str())), role, number++});
        return number;
    };
    using Role = CallVocabulary::Role;
    using Given = CallTable::Given;
    py::class_<CallTable, std::shared_ptr<CallTable>>(m, "CallTable")
        .def(py::init([=](const py::object& tensor_type, const py::object& manager, const py::object& missing,
                          const Names& bindings, const Names& counts, const Names& constants,
                          const std::vector<std::pair<std::string, uint32_t>>& fields, size_t push_size,
                          py::object pack, size_t parameters, std::string name, size_t most_entries) {
                 CallVocabulary words = vocabulary(tensor_type, manager, missing);
                 add(words, counts, Role::counts);
                 add(words, bindings, Role::binding);
                 words.push_constants = add(words, constants, Role::push_constant);
                 std::vector<CallTable::PushField> all;
                 for (const auto& [code, offset] : fields) all.push_back({code.at(0), offset});
                 return std::make_shared<CallTable>(std::move(words), std::move(all), push_size,
                                                    std::move(pack), parameters, std::move(name),
                                                    most_entries);
             }),
             py::kw_only(), py::arg("tensor_type"), py::arg("manager"), py::arg("missing"),
             py::arg("bindings"), py::arg("counts"), py::arg("constants"), py::arg("fields"),
             py::arg("push_size"), py::arg("pack"), py::arg("parameters"), py::arg("name"),
             py::arg("most_entries"))
        .def_static(
            "of_function",
            [=](const py::object& tensor_type, const py::object& manager, const py::object& missing,
                const Names& parameters, const std::vector<py::object>& defaults,
                const std::vector<std::vector<py::object>>& plain, size_t by_position, bool writes,
                const py::object& facts, const py::object& shared, std::string name, size_t most_entries) {
                CallVocabulary words = vocabulary(tensor_type, manager, missing);
                add(words, parameters, Role::binding);
                auto& function = words.function.emplace();
                for (size_t i = 0; i < defaults.size(); ++i)
                    function.parameters.push_back({defaults[i], plain.at(i)});
                function.by_position = by_position;
                function.writes = writes;
                function.facts = facts;
                function.shared = shared;
                return std::make_shared<CallTable>(std::move(words), std::vector<CallTable::PushField>{}, 0,
                                                   py::none(), 0, std::move(name), most_entries);
            },
            py::kw_only(), py::arg("tensor_type"), py::arg("manager"), py::arg("missing"),
            py::arg("parameters"), py::arg("defaults"), py::arg("plain"), py::arg("by_position"),
            py::arg("writes"), py::arg("facts"), py::arg("shared"), py::arg("name"), py::arg("most_entries"))
        .def("call", &CallTable::call)
        .def("submit",
             py::overload_cast<const py::object&, const py::object&, const std::optional<WaitsAndSignals>&>(
                 &CallTable::submit),
             py::arg("args"), py::arg("keywords"), py::arg("order") = py::none())
        .def("bind", &CallTable::bind)
        .def("entry", &CallTable::entry, py::arg("arguments"), py::arg("references"), py::arg("owners"),
             py::arg("make"), py::arg("indirect") = py::none())
        .def("evaluate", &CallTable::evaluate)
        .def("submit_entry", &CallTable::submit_entry, py::arg("entry"), py::arg("groups"),
             py::arg("push_constants"), py::arg("order") = py::none())
        .def("learn", &CallTable::learn)
        .def("find_form",
             [](CallTable& t, const py::sequence& values, const py::tuple& outs, const py::tuple& extra) {
                 return t.find_form({values, outs, extra});
             })
        .def("keep",
             [](CallTable& t, const py::sequence& values, const py::tuple& outs, const py::tuple& extra,
                const std::vector<uint32_t>& places, const py::object& form, uint64_t nbytes,
                std::shared_ptr<CallForm> native) {
                 t.keep({values, outs, extra}, places, form, nbytes, std::move(native));
             })
        .def("repeat",
             [](CallTable& t, const py::object& args, const py::object& keywords, const py::sequence& values,
                const py::tuple& outs, const py::tuple& extra, const py::sequence& given) {
                 t.repeat(args, keywords, {values, outs, extra}, given);
             })
        .def_property_readonly("forms", &CallTable::forms)
        .def_property_readonly("kept_bytes", &CallTable::kept_bytes)
        .def("drop_a_form", &CallTable::drop_a_form)
        .def("clear", &CallTable::clear)
        .def("__len__", &CallTable::size)
        .def_readwrite("name", &CallTable::name)
        .def_readwrite("lending", &CallTable::lending);
}

}  // namespace kp
