#include "call_table.hpp"

namespace kp {

struct CallEntry {
    std::vector<Bound> work;
    std::shared_ptr<Stream> recorded;      // instead of work
    std::shared_ptr<const CallForm> form;  // if it is part of the key
    std::vector<uint64_t> key;
    std::vector<std::vector<uint64_t>> plans;
    std::vector<py::object> watchers;
    size_t number = 0;
    size_t place = 0;  // in the list of all
    bool dropped = false;
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

// The tensors that are given for a form's slots.
std::vector<py::object> objects_of(const CallForm& form, std::span<PyObject* const> given) {
    std::vector<py::object> found;
    for (const auto& slot : form.slots)
        if (slot.is_object())
            found.push_back(py::reinterpret_borrow<py::object>(given[static_cast<size_t>(slot.value)]));
    return found;
}

// Whether a recording can be submitted now over this memory. Python explains why not.
bool is_ready(Stream& recorded, std::span<const ResourceRange> memory) {
    if (!std::ranges::all_of(memory, [](const auto& each) { return each.resource->is_init(); })) return false;
    try {
        return recorded.is_init() && (!recorded.is_running() || recorded.poll());
    } catch (const Error&) {
        return false;
    }
}

bool same(const std::vector<py::object>& some, const std::vector<py::object>& others) {
    return std::ranges::equal(some, others, [](const auto& one, const auto& other) { return one.is(other); });
}

}  // namespace

CallTable::CallTable(CallVocabulary vocabulary, std::vector<PushField> fields, size_t push_size,
                     py::object pack, size_t parameters, size_t most_entries)
    : vocabulary_(std::move(vocabulary)),
      fields_(std::move(fields)),
      push_size_(push_size),
      pack_(std::move(pack)),
      parameters_(parameters),
      most_entries_(std::max<size_t>(most_entries, 1)) {}

// -- calls --------------------------------------------------------------------------------------------------

py::object CallTable::call(const py::object& args, const py::object& keywords) {
    Found found;
    if (!find(found, args.ptr(), keywords.ptr(), false)) return unknown();
    const Plan& plan = *found.plan;
    const CallForm& form = *plan.form;
    py::list fresh;
    std::vector<OperationPtr> once;  // of a call without an entry
    if ((!plan.entry || !form.fresh.empty()) && !bind_once(found, fresh, once)) return unknown();
    const auto result = [&](size_t i) {
        const auto [value, item] = plan.results[i];
        if (value == -1) return form.results[i].make();
        PyObject* each = value < -1 ? PyList_GET_ITEM(fresh.ptr(), -2 - value)
                                    : found.given->value(static_cast<size_t>(value));
        return py::reinterpret_borrow<py::object>(item < 0 ? each : PyTuple_GET_ITEM(each, item));
    };
    const size_t count = form.results.size();
    const bool one = count == 1 && !form.several;
    py::object returned = py::none();
    if (one) {
        returned = result(0);
    } else if (count || form.several) {
        py::tuple all(count);
        for (size_t i = 0; i < count; ++i) all[i] = result(i);
        returned = std::move(all);
    }
    const auto array = [&](size_t i) {
        return one ? returned.ptr() : PyTuple_GET_ITEM(returned.ptr(), static_cast<Py_ssize_t>(i));
    };
    const auto recorded = plan.entry ? plan.entry->recorded : nullptr;
    if (form.copies) {
        for (const auto& slot : form.slots)
            if (slot.memory.resource && slot.value >= 0)
                upload(slot.memory, found.given->value(static_cast<size_t>(slot.value)));
        // A kernel may leave elements out. A recording's memory has what they are.
        for (size_t i = 0; i < count && !recorded; ++i)
            if (form.results[i].value == -1) upload(form.results[i].memory, array(i));
    }
    if (!once.empty())
        plan.form->run(once, recorded);
    else if (recorded)
        kp::evaluate(recorded);
    else
        run(*plan.entry, form.groups, found.push);
    if (!form.after.is_none()) form.after();
    if (form.copies)
        for (size_t i = 0; i < count; ++i) download(form.results[i].memory, array(i));
    return returned;
}

py::object CallTable::submit(const py::object& args, const py::object& keywords,
                             const std::optional<WaitsAndSignals>& order) {
    Found found;
    if (!find(found, args.ptr(), keywords.ptr(), true)) return unknown();
    const CallForm& form = *found.plan->form;
    if (form.copies) return unknown();
    const auto& entry = found.plan->entry;
    const std::shared_ptr<Stream> recorded = entry ? entry->recorded : nullptr;
    const auto submitted = [&](const std::shared_ptr<Stream>& stream) {
        std::vector<std::shared_ptr<Stream>> streams{stream};
        if (recorded && recorded != stream) streams.insert(streams.begin(), recorded);
        if (order || streams.size() > 1)
            return py::cast(
                submit_in_order(stream->shared_device(), streams, order.value_or(WaitsAndSignals())));
        stream->submit();
        return py::cast(Fence::of(streams));
    };
    if (!form.fresh.empty()) {
        py::list fresh;
        std::vector<OperationPtr> once;
        if (!bind_once(found, fresh, once)) return unknown();
        const auto stream = form.new_stream(recorded);
        for (const OperationPtr& operation : once) stream->record(operation);
        return py::make_tuple(submitted(stream), py::tuple(fresh));
    }
    if (recorded) return submitted(recorded);
    std::shared_ptr<Line> line;
    if (!submitting_.empty() && (submitting_.size() >= most_submitting || !submitting_.front()->is_busy())) {
        // The oldest goes to the end. A device with many submissions in flight gets another in its place.
        line = std::move(submitting_.front());
        submitting_.pop_front();
    }
    if (!line || line->is_busy()) line = std::make_shared<Line>();
    submitting_.push_back(line);
    const Taken taken(*line);
    return submitted(line->prepare(entry->work, form.groups, found.push));
}

py::object CallTable::bind(const py::object& args, const py::object& keywords) {
    Found found;
    if (!find(found, args.ptr(), keywords.ptr(), true)) return unknown();
    const CallForm& form = *found.plan->form;
    if (form.copies || !form.fresh.empty() || form.info.is_none()) return unknown();
    const auto& algorithm = found.plan->entry->work.front().algorithm;
    for (const Argument& argument : algorithm->arguments())
        if (argument.range.resource && !argument.range.resource->is_init()) return unknown();
    py::tuple memories(parameters_);
    for (size_t i = 0; i < parameters_; ++i) memories[i] = vocabulary_.missing;
    for (const auto& slot : form.slots)
        memories[slot.parameter] =
            py::reinterpret_borrow<py::object>(found.given->value(static_cast<size_t>(slot.value)));
    return py::make_tuple(
        make_bound_dispatch(prepared(algorithm, form.groups.front()), form.groups.front(), found.packed),
        py::bytes(found.packed), memories, form.info);
}

bool CallTable::find(Found& found, PyObject* args, PyObject* keywords, bool entry) {
    const bool readable = found.exactly.read(vocabulary_, args, keywords);
    if (const auto plan = readable ? plans_.find(found.exactly.key()) : plans_.end(); plan != plans_.end())
        found.plan = plan->second;
    else
        found.plan = plan_of(found, readable, args, keywords, entry);
    if (found.plan && found.plan->entry && found.plan->entry->recorded)
        return is_ready(*found.plan->entry->recorded, found.plan->memory);
    if (!found.plan || !bind_memory(*found.plan)) return false;
    if (vocabulary_.function) {
        found.push = found.plan->push;
        return true;
    }
    found.packed = pack(found.exactly, keywords);
    found.push = {&found.packed, 1};
    CallForm& form = *found.plan->form;
    if (!form.check.is_none() && form.push.front() != found.packed) {
        if (!form.check(py::bytes(found.packed)).cast<bool>()) return false;
        form.push.front() = found.packed;
    }
    return true;
}

std::shared_ptr<const CallTable::Plan> CallTable::plan_of(Found& found, bool readable, PyObject* args,
                                                          PyObject* keywords, bool certain) {
    const bool function = vocabulary_.function.has_value();
    CallArguments& given = function ? found.shaped : found.exactly;
    found.given = &given;
    Key own;
    if (readable) own.assign(found.exactly.key().begin(), found.exactly.key().end());
    if (function ? places_.empty() || !given.read_parameters(vocabulary_, args, keywords)
                 : !readable || !given.read_shapes(vocabulary_))
        return nullptr;
    auto plan = std::make_shared<Plan>();
    plan->form = form_of(given);
    std::vector<py::object> owners;
    if (!plan->form || !memory_of(*plan->form, given.all(), plan->memory, owners)) return nullptr;
    const CallForm& form = *plan->form;
    if (function && !form.pushes(given.all(), plan->push)) return nullptr;
    for (const auto& result : form.results) plan->results.emplace_back(result.value, -1);
    const bool whole =
        readable && !(function && owners.empty()) && same(objects_of(form, given.all()), owners);
    if (!whole && (!form.fresh.empty() || (function && !certain))) return plan;
    plan->entry = entry(key_of(form, plan->memory), plan->form, owners, function && !certain);
    if (!whole || !plan->entry) return plan;
    if (!function) {
        add_plan(own, plan, found.exactly, owners);
        return plan;
    }
    auto again = std::make_shared<Plan>(*plan);
    for (auto& [value, item] : again->results) {
        if (value < 0) continue;
        std::tie(value, item) = found.exactly.place_of(given.value(static_cast<size_t>(value)));
        if (value < 0) return plan;
    }
    add_plan(own, again, found.exactly, owners);
    return plan;
}

std::shared_ptr<CallForm> CallTable::form_of(CallArguments& given) {
    if (vocabulary_.function) {
        const Kept* kept = find_kept(given);
        return kept && kept->form->repeats ? kept->form : nullptr;
    }
    if (const auto form = forms_.find(given.key()); form != forms_.end()) return form->second.form;
    if (families_.empty()) return nullptr;
    const Key shapes(given.key().begin(), given.key().end());
    if (!given.read_dtypes(vocabulary_)) return nullptr;
    const auto family = families_.find(given.key());
    if (family == families_.end()) return nullptr;
    const std::shared_ptr<CallFamily> kept = family->second;
    auto form = form_of(*kept, given);
    if (form) add_form(shapes, {form, {}});
    return form;
}

bool CallTable::tried(const std::function<void()>& bind) {
    try {
        bind();
        return true;
    } catch (const Error& error) {
        // The longer way tries again, and explains.
        if (error.kind() == ErrorKind::out_of_memory) clear();  // the table may take it
        return false;
    }
}

bool CallTable::bind_once(const Found& found, py::list& fresh, std::vector<OperationPtr>& operations) {
    const CallForm& form = *found.plan->form;
    std::vector<std::shared_ptr<Buffer>> made;
    if (!form.fresh.empty()) fresh = made_for(form, made);
    std::vector<ResourceRange> memory = found.plan->memory;
    for (size_t i = 0; i < memory.size(); ++i)
        if (const int64_t value = form.slots[i].value; value < -1)
            memory[i] = ResourceRange(made[static_cast<size_t>(-2 - value)]);
    return tried([&] {
        if (!found.plan->entry || !found.plan->entry->recorded) {
            operations = form.bind(memory, found.push);
            return;
        }
        for (size_t i = 0; i < memory.size(); ++i)
            if (form.slots[i].value < -1) operations.push_back(make_copy({form.slots[i].memory, memory[i]}));
    });
}

bool CallTable::bind_memory(const Plan& plan) {
    const CallForm& form = *plan.form;
    if (!plan.entry || !form.fresh.empty() || !plan.entry->work.empty()) return true;
    std::vector<Bound> work;
    const bool done = tried([&] {
        work = form.bound(plan.memory);
        for (size_t i = 0; i < work.size(); ++i) (void)prepared(work[i].algorithm, form.groups[i]);
    });
    if (!done) return false;
    // Another thread may have been faster.
    if (plan.entry->work.empty()) plan.entry->work = std::move(work);
    return true;
}

bool CallTable::memory_of(const CallForm& form, std::span<PyObject* const> given,
                          std::vector<ResourceRange>& memory, std::vector<py::object>& owners) const {
    static PyObject* const native_name = interned("_native");
    static PyObject* const manager_name = interned("_manager");
    static PyObject* const base_name = interned("_base");
    // Of a function's the facts tell where parts begin; Python finds a kernel other memory, or refuses. A
    // program's form has no dispatches. The device's number is at least 1.
    const uint64_t alignment =
        vocabulary_.function || form.parts->empty()
            ? 1
            : form.parts->front().base.device->limits().minStorageBufferOffsetAlignment;
    memory.reserve(form.slots.size());
    for (const auto& slot : form.slots) {
        if (!slot.is_object()) {
            memory.push_back(slot.memory);
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
            if (memory.back().offset % alignment != 0) return false;
        } else {
            memory.emplace_back(native.cast<std::shared_ptr<Resource>>());
            if (!memory.back().resource->is_init()) return false;
        }
        py::object owner = py::reinterpret_borrow<py::object>(tensor);
        while (part && is_view(slot_of(owner.ptr(), native_name))) owner = slot_of(owner.ptr(), base_name);
        owners.push_back(std::move(owner));
    }
    return true;
}

std::string CallTable::pack(const CallArguments& given, PyObject* keywords) const {
    std::string push(push_size_, '\0');
    if (push_size_ == 0) return push;
    auto* bytes = reinterpret_cast<std::byte*>(push.data());
    bool done = !fields_.empty() && fields_.size() == vocabulary_.push_constants;
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
        const auto& limits = form->parts->front().base.device->limits();
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
        slot.memory = ResourceRange(memory.cast<std::shared_ptr<Resource>>(), 0, sizes[i]);
    }
    for (size_t i = 0; i < family.results.size(); ++i)
        form->results[i].memory = form->slots[family.results[i]].memory;
    return form;
}

// -- entries ------------------------------------------------------------------------------------------------

CallTable::Key CallTable::key_of(const CallForm& form, std::span<const ResourceRange> memory) const {
    // A kernel's leaves out the form: calls of other shapes have the same descriptor sets.
    Key key{vocabulary_.function ? reinterpret_cast<uintptr_t>(&form) : 0};
    for (size_t i = 0; i < memory.size(); ++i) {
        key.push_back(form.slots[i].parameter);
        key.push_back(reinterpret_cast<uintptr_t>(memory[i].resource.get()));
        key.push_back(memory[i].offset);
        key.push_back(memory[i].size);
    }
    return key;
}

std::shared_ptr<CallEntry> CallTable::entry(Key key, const std::shared_ptr<CallForm>& form,
                                            const std::vector<py::object>& owners, bool again) {
    if (const auto found = entries_.find(key); found != entries_.end()) return found->second;
    if (again) {
        // Of an object always the same, while it lives.
        const auto seen = py::reinterpret_steal<py::object>(PyWeakref_NewRef(owners.front().ptr(), nullptr));
        if (!seen) throw py::error_already_set();
        if (once_.size() >= 4 * most_entries_) once_.clear();
        py::object& first = once_[key];
        if (!first.is(seen)) {
            first = seen;
            return nullptr;
        }
        once_.erase(key);
    }
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
    if (key.front()) made->form = form;
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

void CallTable::add_plan(std::span<const uint64_t> key, const std::shared_ptr<const Plan>& plan,
                         const CallArguments& exactly, const std::vector<py::object>& objects) {
    CallEntry& entry = *plan->entry;
    // Only objects that the entry watches can be recognized by their identity.
    const auto watched = [&](const py::handle& object) {
        return std::ranges::any_of(entry.watchers, [&](const py::object& watcher) {
            return PyWeakref_GetObject(watcher.ptr()) == object.ptr();
        });
    };
    if (entry.dropped || !std::ranges::all_of(objects, watched)) return;
    if (!vocabulary_.function && !std::ranges::all_of(exactly.identified(), watched)) return;
    if (entry.plans.size() >= most_plans_of_entry) {
        for (const Key& each : entry.plans) plans_.erase(each);
        entry.plans.clear();
    }
    Key own(key.begin(), key.end());
    entry.plans.push_back(own);
    plans_.insert_or_assign(std::move(own), plan);
}

void CallTable::drop(CallEntry& entry) noexcept {
    if (entry.dropped) return;
    entry.dropped = true;
    // The tables' references go last: what they hold may have the last reference to other objects.
    const auto found = entries_.find(entry.key);
    const std::shared_ptr<CallEntry> kept = found == entries_.end() ? nullptr : found->second;
    entries_.erase(entry.key);
    std::vector<std::shared_ptr<const Plan>> plans;
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

// -- a function's calls -------------------------------------------------------------------------------------

const CallTable::Kept* CallTable::find_kept(CallArguments& given) {
    const auto places = places_.find(given.key());
    if (places == places_.end() || !given.add_values(vocabulary_, places->second)) return nullptr;
    const auto found = forms_.find(given.key());
    return found == forms_.end() ? nullptr : &found->second;
}

py::object CallTable::find_form(const py::sequence& values, const py::tuple& outs, const py::tuple& extra) {
    CallArguments given;
    if (!given.take(vocabulary_, values, outs, extra)) return py::none();
    const Kept* kept = find_kept(given);
    return kept ? kept->object : py::none();
}

void CallTable::keep(const py::sequence& values, const py::tuple& outs, const py::tuple& extra,
                     const std::vector<uint32_t>& places, const py::object& form) {
    if (places_.size() >= most_kinds || vocabulary_.known.size() >= most_kinds) clear();
    CallArguments given;
    if (!given.take(vocabulary_, values, outs, extra)) return;
    auto& all = places_.try_emplace(Key(given.key().begin(), given.key().end())).first->second;
    for (const uint32_t place : places)
        if (std::ranges::find(all, place) == all.end()) all.push_back(place);
    if (!given.add_values(vocabulary_, all)) return;
    Kept kept{form.cast<std::shared_ptr<CallForm>>(), form};
    kept.form->kept = dtypes_of(given);
    if (const auto earlier = forms_.find(given.key()); earlier != forms_.end()) drop_form(earlier);
    forms_.emplace(Key(given.key().begin(), given.key().end()), std::move(kept));
}

void CallTable::drop_form(Table<Kept>::iterator place) {
    const Kept kept = std::move(place->second);
    forms_.erase(place);
    for (size_t i = all_.size(); i-- > 0;)
        // Other entries may end with what one holds.
        if (i < all_.size() && all_[i]->form == kept.form) drop(*all_[i]);
}

void CallTable::drop_a_form() {
    if (!forms_.empty())
        drop_form(std::next(forms_.begin(), static_cast<int64_t>(random_() % forms_.size())));
}

uint64_t CallTable::kept_bytes() const noexcept {
    uint64_t found = 0;
    for (const auto& [key, kept] : forms_) found += kept.form->nbytes;
    return found;
}

py::list CallTable::made_for(const CallForm& form, std::vector<std::shared_ptr<Buffer>>& memory) const {
    static PyObject* const native_name = interned("_native");
    const py::object context = slot_of(const_cast<PyObject*>(vocabulary_.manager), native_name);
    py::list natives(form.fresh.size());
    for (const auto& [nbytes, type, zeros] : form.fresh) {
        const auto fill = zeros ? std::optional<std::string>(std::string(1, '\0')) : std::nullopt;
        memory.push_back(make_buffer(context.cast<const Context&>(), py::none(), nbytes, type, fill));
        natives[memory.size() - 1] = memory.back();
    }
    return form.tensors(natives).cast<py::list>();
}

// -- learning -----------------------------------------------------------------------------------------------

void CallTable::remember(const py::object& args, const py::object& keywords,
                         const std::shared_ptr<CallForm>& form, const py::sequence& given,
                         std::vector<std::string> push, const std::shared_ptr<BoundDispatch>& dispatch,
                         const py::object& record) {
    CallArguments exactly;
    if (!exactly.read(vocabulary_, args.ptr(), keywords.ptr())) return;
    auto plan = std::make_shared<Plan>();
    plan->form = form;
    plan->push = std::move(push);
    std::vector<PyObject*> all;
    for (const py::handle each : given) all.push_back(each.ptr());
    for (const auto& result : form->results) {
        const auto found = result.value < 0 ? std::pair<int64_t, int64_t>(result.value, -1)
                                            : exactly.place_of(all[static_cast<size_t>(result.value)]);
        if (result.value >= 0 && found.first < 0) return;
        plan->results.push_back(found);
    }
    const std::vector<py::object> objects = objects_of(*form, all);
    std::vector<py::object> owners;
    Key key{reinterpret_cast<uintptr_t>(form.get())};
    for (const auto& object : objects) key.push_back(reinterpret_cast<uintptr_t>(object.ptr()));
    if (objects.empty() && record.is_none()) return;
    if (!dispatch && !memory_of(*form, all, plan->memory, owners)) return;
    // A part's plan ends with the part itself.
    if (record.is_none() && same(objects, owners)) key = key_of(*form, plan->memory);
    plan->entry = entry(std::move(key), form, objects, !dispatch && !objects.empty());
    if (!plan->entry) return;
    if (dispatch) plan->entry->work = {{dispatch->algorithm(), dispatch->memory()}};
    // A fence keeps one that runs.
    if (!record.is_none()) plan->entry->recorded = record().cast<std::shared_ptr<Stream>>();
    add_plan(exactly.key(), plan, exactly, objects);
}

void CallTable::learn(const py::object& args, const py::object& keywords,
                      const std::shared_ptr<CallForm>& form, const py::object& family) {
    CallArguments given;
    if (!given.read(vocabulary_, args.ptr(), keywords.ptr()) || !given.read_shapes(vocabulary_)) return;
    form->kept = dtypes_of(given);
    add_form(given.key(), {form, {}});
    if (family.is_none() || !given.read_dtypes(vocabulary_)) return;
    auto made = std::make_shared<CallFamily>();
    made->form = *form;
    std::vector<size_t> slot_of_parameter(parameters_);
    for (size_t i = 0; i < form->slots.size(); ++i) {
        slot_of_parameter[form->slots[i].parameter] = i;
        if (!form->slots[i].memory.resource) continue;
        made->arrays.push_back(i);
        made->form.slots[i].memory = {};
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
    py::class_<CallTable, std::shared_ptr<CallTable>>(m, "CallTable")
        .def(py::init([=](const py::object& tensor_type, const py::object& manager, const py::object& missing,
                          const Names& bindings, size_t most_entries, const Names& counts,
                          const Names& constants, const std::vector<std::pair<std::string, uint32_t>>& fields,
                          size_t push_size, py::object pack, size_t parameters) {
                 CallVocabulary words = vocabulary(tensor_type, manager, missing);
                 add(words, counts, Role::counts);
                 add(words, bindings, Role::binding);
                 words.push_constants = add(words, constants, Role::push_constant);
                 std::vector<CallTable::PushField> all;
                 for (const auto& [code, offset] : fields) all.push_back({code.at(0), offset});
                 return std::make_shared<CallTable>(std::move(words), std::move(all), push_size,
                                                    std::move(pack), parameters, most_entries);
             }),
             py::kw_only(), py::arg("tensor_type"), py::arg("manager"), py::arg("missing"),
             py::arg("bindings"), py::arg("most_entries"), py::arg("counts") = Names(),
             py::arg("constants") = Names(),
             py::arg("fields") = std::vector<std::pair<std::string, uint32_t>>(), py::arg("push_size") = 0,
             py::arg("pack") = py::none(), py::arg("parameters") = 0)
        .def_static(
            "of_function",
            [=](const py::object& tensor_type, const py::object& manager, const py::object& missing,
                const Names& parameters, const std::vector<py::object>& defaults,
                const std::vector<std::vector<py::object>>& plain, size_t by_position, bool writes,
                const py::object& facts, const py::object& shared, size_t most_entries) {
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
                                                   py::none(), 0, most_entries);
            },
            py::kw_only(), py::arg("tensor_type"), py::arg("manager"), py::arg("missing"),
            py::arg("parameters"), py::arg("defaults"), py::arg("plain"), py::arg("by_position"),
            py::arg("writes"), py::arg("facts"), py::arg("shared"), py::arg("most_entries"))
        .def("call", &CallTable::call)
        .def("submit", &CallTable::submit, py::arg("args"), py::arg("keywords"),
             py::arg("order") = py::none())
        .def("bind", &CallTable::bind)
        .def("learn", &CallTable::learn)
        .def("remember", &CallTable::remember, py::arg("args"), py::arg("keywords"), py::arg("form"),
             py::arg("given"), py::arg("push"), py::arg("dispatch") = nullptr, py::arg("record") = py::none())
        .def("find_form", &CallTable::find_form)
        .def("keep", &CallTable::keep)
        .def_property_readonly("forms", &CallTable::forms)
        .def_property_readonly("kept_bytes", &CallTable::kept_bytes)
        .def("drop_a_form", &CallTable::drop_a_form)
        .def("clear", &CallTable::clear)
        .def("__len__", &CallTable::size)
        .def_readwrite("lending", &CallTable::lending);
}

}  // namespace kp
