#include "call_form.hpp"

#include "call_arguments.hpp"
#include "call_support.hpp"
#include "direct.hpp"
#include "record/warm_up_operation.hpp"

namespace kp {

bool CallForm::pushes(std::span<PyObject* const> given, std::vector<std::string>& made) const {
    if (pack.is_none()) {
        made = push;
        return true;
    }
    py::list values(given.size());
    for (size_t i = 0; i < given.size(); ++i) values[i] = py::reinterpret_borrow<py::object>(given[i]);
    const py::object packed = pack(values);
    if (packed.is_none()) return false;  // the form is for numbers of another dtype
    made = packed.cast<std::vector<std::string>>();
    return true;
}

std::vector<Bound> CallForm::bound(const std::vector<ResourceRange>& memory, const std::string& title) const {
    std::vector<Bound> found;
    found.reserve(parts->size());
    for (const Part& part : *parts) {
        std::vector<Argument> arguments;
        arguments.reserve(part.places.size());
        for (const auto& [set, binding, number, whole] : part.places) {
            Argument& argument = arguments.emplace_back();
            argument.set = set;
            argument.binding = binding;
            argument.range = memory.at(number);
            argument.whole = whole;
        }
        const Groups& own = groups[found.size()];
        Bound& made = found.emplace_back();
        made.algorithm = make_object<Algorithm>(part.base, std::move(arguments), own);
        made.algorithm->set_name(title.empty()       ? part.name
                                 : part.name.empty() ? title
                                                     : title + "." + part.name);
        if (!part.indirect) continue;
        const auto& [number, byte] = *part.indirect;
        ResourceRange& indirect = made.memory.indirect = memory.at(number);
        indirect.offset += byte;
        indirect.size -= std::min(byte, indirect.size);
    }
    return found;
}

std::vector<OperationPtr> CallForm::bind(const std::vector<ResourceRange>& memory,
                                         std::span<const std::string> push, const std::string& title) const {
    if (push.size() != parts->size())
        throw Error(ErrorKind::internal, "A prepared call needs push constants for each dispatch");
    std::vector<OperationPtr> operations;
    operations.reserve(parts->size());
    for (auto& [algorithm, own] : bound(memory, title)) {
        const size_t i = operations.size();
        operations.push_back(make_dispatch(prepared(algorithm, groups[i]), groups[i], push[i],
                                           {std::nullopt, true}, own.indirect));
    }
    return operations;
}

std::shared_ptr<Stream> CallForm::new_stream(const std::shared_ptr<Stream>& first) const {
    return make_object<Stream>(first ? first->shared_device() : parts->front().base.device, 0, 0);
}

void CallForm::run(const std::vector<OperationPtr>& operations, const std::shared_ptr<Stream>& first) {
    // Taken, because another thread may call meanwhile. A call that fails, or that Ctrl-C ends, leaves none.
    std::shared_ptr<Stream> stream = std::move(stream_);
    if (!stream || !stream->is_init()) stream = new_stream(first);
    for (const OperationPtr& operation : operations) stream->record(operation);
    evaluate(stream, first);
    stream->clear();
    stream_ = std::move(stream);
}

namespace {

// The call writes all of the results in the slots `whole`: once the last of its dispatches that writes one
// has run.
void mark_whole(std::vector<CallForm::Part>& parts, std::vector<uint32_t> whole) {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        const auto& bindings = part->base.pipeline->shader->info().bindings;
        for (CallForm::Place& place : part->places) {
            const auto info = std::ranges::find_if(bindings, [&](const BindingInfo& each) {
                return each.set == place.set && each.binding == place.binding;
            });
            const bool writes = info != bindings.end() &&
                                (info->access == Access::write || info->access == Access::read_write);
            place.whole = writes && std::erase(whole, place.number) != 0;
        }
    }
}

using Operations = std::vector<std::shared_ptr<Operation>>;  // as Python holds them

Operations given_out(const std::vector<OperationPtr>& operations) {
    Operations found;
    found.reserve(operations.size());
    for (const auto& each : operations) found.push_back(std::const_pointer_cast<Operation>(each));
    return found;
}

// The memory of a call: tensors and images, or native memory.
std::vector<ResourceRange> memory_of(const CallForm& form, const py::sequence& given,
                                     const py::sequence& made) {
    static PyObject* const native_name = interned("_native");
    auto* const natives = reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base);
    std::vector<ResourceRange> found;
    found.reserve(form.slots.size());
    for (const auto& slot : form.slots) {
        if (slot.memory.resource) {
            found.push_back(slot.memory);
            continue;
        }
        const py::object each = slot.value >= 0 ? given[static_cast<size_t>(slot.value)]
                                                : made[static_cast<size_t>(-2 - slot.value)];
        const bool native = PyObject_TypeCheck(each.ptr(), natives);
        found.push_back((native ? each : slot_of(each.ptr(), native_name)).cast<ResourceRange>());
    }
    return found;
}

}  // namespace

void bind_call_form(py::module_& m) {
    using Place = std::tuple<uint32_t, uint32_t, uint32_t>;
    using Part = std::tuple<std::shared_ptr<Algorithm>, std::vector<Place>, std::array<int64_t, 3>,
                            std::optional<std::pair<uint32_t, uint64_t>>>;
    using Slot = std::tuple<int64_t, std::optional<ResourceRange>, size_t>;
    using Result = std::tuple<int64_t, std::optional<ResourceRange>, py::object>;
    using Fresh = std::vector<std::tuple<uint64_t, int, bool>>;
    const auto make = [](const std::vector<Part>& parts, const std::vector<Slot>& slots,
                         const std::vector<Result>& results, std::vector<std::string> push, bool several,
                         bool repeats, uint64_t nbytes, py::object pack, py::object check, py::object info,
                         Fresh fresh, py::object tensors, py::object after,
                         std::optional<std::vector<uint32_t>> whole) {
        auto made = std::make_shared<CallForm>();
        std::vector<CallForm::Part> all;
        for (const auto& [algorithm, bindings, groups, indirect] : parts) {
            std::vector<CallForm::Place> places;
            for (const auto& [set, binding, number] : bindings) places.push_back({set, binding, number});
            all.push_back({algorithm->base(), std::move(places), indirect, algorithm->name()});
            made->groups.push_back(groups_of(groups));
        }
        if (whole) mark_whole(all, std::move(*whole));
        made->parts = std::make_shared<const std::vector<CallForm::Part>>(std::move(all));
        for (const auto& [value, memory, parameter] : slots) {
            made->slots.push_back({value, memory.value_or(ResourceRange()), parameter});
            made->copies = made->copies || (memory && value >= 0);
        }
        for (const auto& [value, memory, array] : results) {
            made->results.push_back({value, memory.value_or(ResourceRange()), array});
            made->copies = made->copies || memory;
        }
        made->several = several;
        made->repeats = repeats;
        made->nbytes = nbytes;
        made->push = std::move(push);
        made->pack = std::move(pack);
        made->check = std::move(check);
        made->info = std::move(info);
        made->fresh = std::move(fresh);
        made->tensors = std::move(tensors);
        made->after = std::move(after);
        return made;
    };
    py::class_<CallForm, std::shared_ptr<CallForm>>(m, "CallForm")
        .def(py::init(make), py::kw_only(), py::arg("parts"), py::arg("slots"), py::arg("results"),
             py::arg("push"), py::arg("several") = false, py::arg("repeats") = true, py::arg("nbytes") = 0,
             py::arg("pack") = py::none(), py::arg("check") = py::none(), py::arg("info") = py::none(),
             py::arg("fresh") = Fresh(), py::arg("tensors") = py::none(), py::arg("after") = py::none(),
             py::arg("whole") = py::none())
        .def_readwrite("repeats", &CallForm::repeats)
        .def_readonly("nbytes", &CallForm::nbytes)
        .def(
            "bind",
            [](const CallForm& form, const py::sequence& given, const py::sequence& made,
               const std::vector<std::string>& push, const std::string& title) {
                return given_out(form.bind(memory_of(form, given, made), push, title));
            },
            py::arg("given"), py::arg("made"), py::arg("push"), py::arg("title") = "")
        .def("without_groups",
             [](const CallForm& form, const py::sequence& given, const py::sequence& made) {
                 Operations operations;
                 for (const Bound& each : form.bound(memory_of(form, given, made)))
                     operations.push_back(std::const_pointer_cast<Operation>(make_warm_up(each.algorithm)));
                 return operations;
             })
        .def("run", [](CallForm& form, const py::sequence& given, const py::sequence& made,
                       const std::vector<std::string>& push, const Operations& before,
                       const Operations& after) {
            std::vector<OperationPtr> operations(before.begin(), before.end());
            std::ranges::move(form.bind(memory_of(form, given, made), push), std::back_inserter(operations));
            operations.insert(operations.end(), after.begin(), after.end());
            form.run(operations);
        });
}

}  // namespace kp
