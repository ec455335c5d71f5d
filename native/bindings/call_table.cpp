#include "call_table.hpp"

#include "call_support.hpp"

#include <cmath>

namespace kp {

// A function's call.
struct Repetition {
    std::shared_ptr<Stream> stream;
    py::object make, after;
    std::vector<std::pair<int64_t, int64_t>> results;
    bool single = true;
    const PyObject* form = nullptr;
    bool busy = false;
};

struct CallEntry {
    std::shared_ptr<Algorithm> algorithm;
    DispatchMemory memory;
    std::optional<Repetition> repetition;
    std::vector<uint64_t> key;
    std::vector<std::vector<uint64_t>> plans;
    std::vector<py::object> watchers;
    size_t number = 0;
    size_t place = 0;  // in the list of all
    bool dropped = false;
};

// Everything about a call but the memory of its tensors and its push constants.
struct CallForm {
    struct Slot {
        size_t parameter = 0;
        uint32_t set = 0;
        uint32_t binding = 0;
        int64_t value = -1;   // the number of its value; -1: the call leaves the array out
        ResourceRange array;  // the memory for an array; empty for an object
    };
    struct Result {
        int64_t value = -1;
        ResourceRange memory;
        py::object make;  // the array that the call leaves out
    };
    std::vector<Slot> slots;
    std::vector<Result> results;
    std::array<uint32_t, 3> groups{};
    AlgorithmBase base;
    py::object check;  // None: all push constants will do
    std::string checked;
    py::object info;
    std::vector<py::object> kept;  // the dtypes of the key
    bool copies = false;
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

void add_words(std::vector<uint64_t>& key, const Argument& argument) {
    key.push_back(uint64_t{argument.set} << 32 | argument.binding);
    key.push_back(argument.element);
    key.push_back(reinterpret_cast<uintptr_t>(argument.range.resource.get()));
    key.push_back(argument.range.offset);
    key.push_back(argument.range.size);
    key.push_back(reinterpret_cast<uintptr_t>(argument.sampler.get()));
    key.push_back(reinterpret_cast<uintptr_t>(argument.texels));
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

py::object unknown() { return py::reinterpret_borrow<py::object>(Py_NotImplemented); }

// A copy of the pointer, because a line may lose its stream while the stream runs.
void run(std::shared_ptr<Stream> stream) { evaluate(stream); }

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

CallTable::CallTable(CallVocabulary vocabulary, const py::object& manager, std::vector<PushField> fields,
                     size_t push_size, py::object pack, size_t parameters, py::object missing,
                     std::string given, size_t most_entries)
    : name(std::move(given)),
      vocabulary_(std::move(vocabulary)),
      manager_(manager.ptr()),
      fields_(std::move(fields)),
      push_size_(push_size),
      pack_(std::move(pack)),
      parameters_(parameters),
      missing_(std::move(missing)),
      most_entries_(std::max<size_t>(most_entries, 1)) {}

// -- calls --------------------------------------------------------------------------------------------------

py::object CallTable::call(const py::object& args, const py::object& keywords) {
    CallArguments given;
    const Prepared found = find(given, args.ptr(), keywords.ptr(), true);
    if (!found.found) return unknown();
    if (found.entry->repetition) return run_again(found.entry, given);
    const CallForm& form = *found.form;
    std::vector<py::object> made;
    if (form.copies) {
        for (const auto& result : form.results)
            made.push_back(result.value < 0 ? result.make()
                                            : py::reinterpret_borrow<py::object>(
                                                  given.value(static_cast<size_t>(result.value))));
        for (const auto& slot : form.slots)
            if (slot.array.resource && slot.value >= 0)
                upload(slot.array, given.value(static_cast<size_t>(slot.value)));
        for (size_t i = 0; i < form.results.size(); ++i)
            if (form.results[i].value < 0) upload(form.results[i].memory, made[i].ptr());
    }
    run(line_of(*found.entry).prepare(found.entry->algorithm, form.groups, found.push, found.entry->memory));
    for (size_t i = 0; i < form.results.size(); ++i) download(form.results[i].memory, made[i].ptr());
    if (made.empty()) return py::none();
    if (made.size() == 1) return made.front();
    py::tuple all(made.size());
    for (size_t i = 0; i < made.size(); ++i) all[i] = made[i];
    return all;
}

py::object CallTable::submit(const py::object& args, const py::object& keywords) {
    CallArguments given;
    const Prepared found = find(given, args.ptr(), keywords.ptr(), true);
    if (!found.found || found.form->copies) return unknown();
    return py::cast(submit(*found.entry, found.form->groups, found.push));
}

py::object CallTable::bind(const py::object& args, const py::object& keywords) {
    CallArguments given;
    const Prepared found = find(given, args.ptr(), keywords.ptr(), false);
    if (!found.found || found.form->copies) return unknown();
    const CallForm& form = *found.form;
    std::vector<Argument> arguments;
    std::vector<py::object> owners;
    if (found.entry)
        arguments = found.entry->algorithm->arguments();
    else if (!arguments_of(form, given, arguments, owners))
        return unknown();
    for (const Argument& argument : arguments)
        if (argument.range.resource && !argument.range.resource->is_init()) return unknown();
    auto algorithm = make_object<Algorithm>(form.base, std::move(arguments), form.groups);
    algorithm->set_name(name);
    py::tuple memories(parameters_);
    for (size_t i = 0; i < parameters_; ++i) memories[i] = missing_;
    for (const auto& slot : form.slots)
        memories[slot.parameter] =
            py::reinterpret_borrow<py::object>(given.value(static_cast<size_t>(slot.value)));
    return py::make_tuple(make_bound_dispatch(std::move(algorithm), form.groups, found.push),
                          py::bytes(found.push), memories, form.info);
}

CallTable::Prepared CallTable::find(CallArguments& given, PyObject* args, PyObject* keywords, bool entry) {
    Prepared found;
    if (!given.read(vocabulary_, args, keywords)) return found;
    if (const auto plan = plans_.find(given.key()); plan != plans_.end()) {
        static_cast<Plan&>(found) = plan->second;
        if (found.entry->repetition) {
            found.found = true;
            return found;
        }
    } else if (vocabulary_.values) {
        return found;
    } else {
        const Key own(given.key().begin(), given.key().end());
        if (!given.read_shapes(vocabulary_)) return found;
        if (const auto form = forms_.find(given.key()); form != forms_.end()) {
            found.form = form->second;
        } else if (!families_.empty()) {
            const Key shapes(given.key().begin(), given.key().end());
            if (!given.read_dtypes(vocabulary_)) return found;
            const auto family = families_.find(given.key());
            if (family == families_.end()) return found;
            const std::shared_ptr<CallFamily> kept = family->second;
            found.form = form_of(*kept, given);
            if (found.form) add_form(shapes, found.form);
        }
        if (!found.form) return found;
        if (entry) {
            std::vector<Argument> arguments;
            std::vector<py::object> owners;
            if (!arguments_of(*found.form, given, arguments, owners)) return found;
            Key key;
            for (const Argument& argument : arguments) add_words(key, argument);
            found.entry = find_entry(key);
            if (!found.entry) {
                std::shared_ptr<Algorithm> algorithm;
                try {
                    algorithm =
                        make_object<Algorithm>(found.form->base, std::move(arguments), found.form->groups);
                } catch (const Error& error) {
                    // The longer way tries again, and explains.
                    if (error.kind() == ErrorKind::out_of_memory) clear();  // the table may take it
                    return found;
                }
                algorithm->set_name(name);
                found.entry = add_entry(std::move(key), std::move(algorithm), {}, owners);
            }
            // Only objects that the entry watches can be recognized by their identity.
            bool whole = true;
            size_t at = 0;
            for (const auto& slot : found.form->slots)
                if (!slot.array.resource)
                    whole = whole && owners[at++].ptr() == given.value(static_cast<size_t>(slot.value));
            if (whole) add_plan(own, found);
        }
    }
    found.push = pack(given, keywords);
    CallForm& form = *found.form;
    if (!form.check.is_none() && form.checked != found.push) {
        if (!form.check(py::bytes(found.push)).cast<bool>()) return found;
        form.checked = found.push;
    }
    found.found = true;
    return found;
}

bool CallTable::arguments_of(const CallForm& form, const CallArguments& given,
                             std::vector<Argument>& arguments, std::vector<py::object>& owners) const {
    static PyObject* const native_name = interned("_native");
    static PyObject* const manager_name = interned("_manager");
    static PyObject* const base_name = interned("_base");
    for (const auto& slot : form.slots) {
        Argument& argument = arguments.emplace_back();
        argument.set = slot.set;
        argument.binding = slot.binding;
        if (slot.array.resource) {
            argument.range = slot.array;
            continue;
        }
        PyObject* tensor = given.value(static_cast<size_t>(slot.value));
        if (slot_of(tensor, manager_name).ptr() != manager_) return false;
        py::object native = slot_of(tensor, native_name);
        py::object owner = py::reinterpret_borrow<py::object>(tensor);
        if (py::isinstance<BufferView>(native)) {
            const auto& view = native.cast<const BufferView&>();
            if (!view.is_init()) return false;
            argument.range = view.range("bind");
            while (py::isinstance<BufferView>(slot_of(owner.ptr(), native_name)))
                owner = slot_of(owner.ptr(), base_name);
        } else {
            argument.range = ResourceRange(native.cast<std::shared_ptr<Resource>>());
            if (!argument.range.resource->is_init()) return false;
        }
        owners.push_back(std::move(owner));
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
        sizes.push_back(py::isinstance<BufferView>(native) ? native.cast<const BufferView&>().size()
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
        if (groups > form->base.device->limits().maxComputeWorkGroupCount[family.axis]) return nullptr;
        form->groups = {1, 1, 1};
        form->groups[family.axis] = static_cast<uint32_t>(groups);
        std::array<uint64_t, 3> extent{1, 1, 1};
        extent[family.axis] = count;
        form->info = py::make_tuple(py::make_tuple(extent[0], extent[1], extent[2]),
                                    py::make_tuple(form->groups[0], form->groups[1], form->groups[2]), true);
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
    for (const Argument& argument : kp::arguments_of(arguments)) add_words(key, argument);
    std::vector<ResourceRange> reached;
    for (const py::handle each : references) {
        reached.push_back(each.cast<ResourceRange>());
        add_words(key, {UINT32_MAX, UINT32_MAX, 0, reached.back(), nullptr});
    }
    ResourceRange groups;
    if (!indirect.is_none()) {
        groups = indirect.cast<ResourceRange>();
        add_words(key, {UINT32_MAX, UINT32_MAX, 1, groups, nullptr});
    }
    if (auto found = find_entry(key)) return found;
    std::vector<py::object> all;
    for (const py::handle each : owners) all.push_back(py::reinterpret_borrow<py::object>(each));
    return add_entry(std::move(key), make().cast<std::shared_ptr<Algorithm>>(),
                     {std::move(reached), std::move(groups)}, all);
}

std::shared_ptr<CallEntry> CallTable::add_entry(Key key, std::shared_ptr<Algorithm> algorithm,
                                                DispatchMemory memory,
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
    made->algorithm = std::move(algorithm);
    made->memory = std::move(memory);
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
    if (!lines_.empty()) lines_[entry.number % lines_.size()].forget(*entry.algorithm);
    for (auto& line : submitting_) line.forget(*entry.algorithm);
}

void CallTable::clear() {
    while (!all_.empty()) drop(*all_.back());
    plans_.clear();
    once_.clear();
    forms_.clear();
    families_.clear();
}

// -- running ------------------------------------------------------------------------------------------------

CallLine& CallTable::line_of(const CallEntry& entry) {
    if (lines_.size() < most_lines && entry.number >= lines_.size())
        lines_.resize(std::min(most_lines, std::max<size_t>(entry.number + 1, 2 * lines_.size())));
    return lines_[entry.number % lines_.size()];
}

void CallTable::evaluate(const std::shared_ptr<CallEntry>& entry, const std::array<int64_t, 3>& groups,
                         const py::bytes& push) {
    const auto counts = groups_of(groups);
    (void)prepared(entry->algorithm, counts);
    run(line_of(*entry).prepare(entry->algorithm, counts, std::string_view(push), entry->memory));
}

std::shared_ptr<Fence> CallTable::submit_entry(const std::shared_ptr<CallEntry>& entry,
                                               const std::array<int64_t, 3>& groups, const py::bytes& push) {
    const auto counts = groups_of(groups);
    (void)prepared(entry->algorithm, counts);
    return submit(*entry, counts, std::string_view(push));
}

std::shared_ptr<Fence> CallTable::submit(const CallEntry& entry, const std::array<uint32_t, 3>& groups,
                                         std::string_view push) {
    if (submitting_.empty() || (submitting_.front().is_busy() && submitting_.size() < most_submitting))
        submitting_.emplace_front();
    // The oldest goes to the end. A device with many submissions in flight gets another line in its place.
    CallLine line = std::move(submitting_.front());
    submitting_.pop_front();
    if (line.is_busy()) line = CallLine();
    submitting_.push_back(std::move(line));
    const std::shared_ptr<Stream> stream =
        submitting_.back().prepare(entry.algorithm, groups, push, entry.memory);
    stream->submit();
    return Fence::of({stream});
}

// -- a function's calls -------------------------------------------------------------------------------------

py::object CallTable::run_again(const std::shared_ptr<CallEntry>& entry, const CallArguments& given) {
    Repetition& call = *entry->repetition;
    if (call.busy) return unknown();  // another thread waits for it
    struct Busy {
        bool& flag;
        explicit Busy(bool& busy) : flag(busy) { flag = true; }
        ~Busy() { flag = false; }
        Busy(const Busy&) = delete;
        Busy& operator=(const Busy&) = delete;
    } const busy(call.busy);
    py::object fresh;
    if (call.stream)
        run(call.stream);
    else
        fresh = call.make();
    if (!call.after.is_none()) call.after();
    const auto result = [&](const std::pair<int64_t, int64_t>& place) {
        const auto [value, item] = place;
        if (value < 0) return py::reinterpret_borrow<py::object>(fresh[py::int_(item)]);
        PyObject* found = given.value(static_cast<size_t>(value));
        return py::reinterpret_borrow<py::object>(item < 0 ? found : PyTuple_GET_ITEM(found, item));
    };
    if (call.single) return result(call.results.front());
    py::tuple all(call.results.size());
    for (size_t i = 0; i < call.results.size(); ++i) all[i] = result(call.results[i]);
    return all;
}

py::object CallTable::recorded(const py::object& args, const py::object& keywords) {
    CallArguments given;
    if (!given.read(vocabulary_, args.ptr(), keywords.ptr()) || !given.mark()) return unknown();
    const auto found = plans_.find(given.key());
    if (found == plans_.end()) return unknown();
    const Repetition& call = *found->second.entry->repetition;
    return py::make_tuple(call.stream, call.make);
}

bool CallTable::repeats(const py::object& args, const py::object& keywords, bool marked,
                        const py::object& first) {
    CallArguments given;
    if (!given.read(vocabulary_, args.ptr(), keywords.ptr()) || (marked && !given.mark())) return false;
    // Of a tensor always the same, while it lives.
    const auto seen = py::reinterpret_steal<py::object>(PyWeakref_NewRef(first.ptr(), nullptr));
    if (!seen) throw py::error_already_set();
    const auto found = once_.find(given.key());
    if (found == once_.end() || !found->second.is(seen)) {
        if (once_.size() >= 4 * most_entries_) once_.clear();
        once_.insert_or_assign(Key(given.key().begin(), given.key().end()), seen);
        return false;
    }
    // Of more calls in turn than are kept few are prepared.
    return all_.size() < most_entries_ || random_() % 64 == 0;
}

void CallTable::repeat(const py::object& args, const py::object& keywords, bool marked,
                       std::shared_ptr<Stream> stream, py::object make, py::object after,
                       const py::list& results, bool single, const py::list& owners, const py::object& form) {
    CallArguments given;
    if (!given.read(vocabulary_, args.ptr(), keywords.ptr()) || (marked && !given.mark())) return;
    if (plans_.contains(given.key())) return;  // another thread was first, or runs it
    std::vector<py::object> all;
    for (const py::handle each : owners) all.push_back(py::reinterpret_borrow<py::object>(each));
    const auto made = add_entry(Key(given.key().begin(), given.key().end()), nullptr, {}, all);
    auto& call = made->repetition.emplace();
    call.stream = std::move(stream);
    call.make = std::move(make);
    call.after = std::move(after);
    for (const py::handle each : results) call.results.push_back(each.cast<std::pair<int64_t, int64_t>>());
    call.single = single;
    call.form = form.ptr();
    add_plan(given.key(), {nullptr, made});
}

void CallTable::drop_of(const py::object& form) {
    for (size_t i = all_.size(); i-- > 0;)
        // Other entries may end with what one holds.
        if (i < all_.size() && all_[i]->repetition && all_[i]->repetition->form == form.ptr()) drop(*all_[i]);
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
    form->groups = groups_of(groups);
    if (!algorithm.fits(form->groups)) return;  // it runs in layers
    form->base = algorithm.base();
    form->check = std::move(check);
    form->checked = std::string(push);
    form->info = std::move(info);
    for (const py::handle each : slots) {
        const auto parts = each.cast<py::tuple>();
        CallForm::Slot slot{parts[0].cast<size_t>(),
                            parts[1].cast<uint32_t>(),
                            parts[2].cast<uint32_t>(),
                            parts[3].cast<int64_t>(),
                            {}};
        if (!parts[4].is_none()) slot.array = parts[4].cast<ResourceRange>();
        form->copies = form->copies || slot.array.resource;
        form->slots.push_back(std::move(slot));
    }
    for (const py::handle each : results) {
        const auto parts = each.cast<py::tuple>();
        form->results.push_back(
            {parts[0].cast<int64_t>(), parts[1].cast<ResourceRange>(), parts[2].cast<py::object>()});
    }
    static PyObject* const dtype_names[] = {interned("dtype"), interned("_dtype")};
    for (size_t i = 0; i < given.values(); ++i)
        for (PyObject* each : dtype_names)
            if (PyObject* dtype = PyObject_GetAttr(given.value(i), each))
                form->kept.push_back(py::reinterpret_steal<py::object>(dtype));
            else
                PyErr_Clear();
    const bool watched = entry && std::ranges::all_of(form->slots, [&](const auto& slot) {
                             if (slot.array.resource) return true;
                             PyObject* object = given.value(static_cast<size_t>(slot.value));
                             return std::ranges::any_of(entry->watchers, [&](const py::object& watcher) {
                                 return PyWeakref_GetObject(watcher.ptr()) == object;
                             });
                         });
    if (watched) add_plan(given.key(), {form, entry});
    if (!general || !given.read_shapes(vocabulary_)) return;
    add_form(given.key(), form);
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

void CallTable::add_form(std::span<const uint64_t> key, std::shared_ptr<CallForm> form) {
    if (forms_.size() >= most_forms) forms_.erase(forms_.begin());
    forms_.insert_or_assign(Key(key.begin(), key.end()), std::move(form));
}

void bind_call_table(py::module_& m) {
    py::class_<CallEntry, std::shared_ptr<CallEntry>>(m, "CallEntry")
        .def_property_readonly("algorithm", [](const CallEntry& e) { return e.algorithm; });
    py::class_<CallTable, std::shared_ptr<CallTable>>(m, "CallTable")
        .def(py::init([](const py::object& tensor_type, const std::vector<std::string>& bindings,
                         const std::vector<std::string>& counts, const std::vector<std::string>& constants,
                         const py::object& manager,
                         const std::vector<std::pair<std::string, uint32_t>>& fields, size_t push_size,
                         py::object pack, size_t parameters, py::object missing, std::string name,
                         size_t most_entries, bool values) {
                 CallVocabulary vocabulary;
                 vocabulary.tensor_type = tensor_type;
                 vocabulary.values = values;
                 const auto add = [&](const std::string& text, CallVocabulary::Role role, uint32_t field) {
                     vocabulary.names.push_back(
                         {py::reinterpret_steal<py::object>(interned(text.c_str())), role, field});
                 };
                 for (const auto& each : counts) add(each, CallVocabulary::Role::counts, 0);
                 for (const auto& each : bindings) add(each, CallVocabulary::Role::binding, 0);
                 for (const auto& each : constants)
                     add(each, CallVocabulary::Role::push_constant, vocabulary.push_constants++);
                 std::vector<CallTable::PushField> all;
                 for (const auto& [code, offset] : fields) all.push_back({code.at(0), offset});
                 return std::make_shared<CallTable>(std::move(vocabulary), manager, std::move(all), push_size,
                                                    std::move(pack), parameters, std::move(missing),
                                                    std::move(name), most_entries);
             }),
             py::kw_only(), py::arg("tensor_type"), py::arg("bindings"), py::arg("counts"),
             py::arg("constants"), py::arg("manager"), py::arg("fields"), py::arg("push_size"),
             py::arg("pack"), py::arg("parameters"), py::arg("missing"), py::arg("name"),
             py::arg("most_entries"), py::arg("values") = false)
        .def("call", &CallTable::call)
        .def("submit", py::overload_cast<const py::object&, const py::object&>(&CallTable::submit))
        .def("bind", &CallTable::bind)
        .def("entry", &CallTable::entry, py::arg("arguments"), py::arg("references"), py::arg("owners"),
             py::arg("make"), py::arg("indirect") = py::none())
        .def("evaluate", &CallTable::evaluate)
        .def("submit_entry", &CallTable::submit_entry)
        .def("learn", &CallTable::learn)
        .def("repeats", &CallTable::repeats)
        .def("repeat", &CallTable::repeat)
        .def("recorded", &CallTable::recorded)
        .def("drop_of", &CallTable::drop_of)
        .def("clear", &CallTable::clear)
        .def("__len__", &CallTable::size)
        .def_readwrite("name", &CallTable::name)
        .def_readwrite("lending", &CallTable::lending);
}

}  // namespace kp
