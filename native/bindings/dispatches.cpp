#include "dispatches.hpp"

#include "call_support.hpp"
#include "direct.hpp"
#include "record/warm_up_operation.hpp"

namespace kp {

std::vector<Argument> Dispatches::arguments(size_t part, const std::vector<ResourceRange>& memory) const {
    std::vector<Argument> found;
    found.reserve(parts_[part].places.size());
    for (const auto& [set, binding, number] : parts_[part].places) {
        Argument& argument = found.emplace_back();
        argument.set = set;
        argument.binding = binding;
        argument.range = memory.at(number);
    }
    return found;
}

std::vector<Bound> Dispatches::bound(const std::vector<ResourceRange>& memory,
                                     const std::vector<Groups>& groups, const std::string& title) const {
    std::vector<Bound> found;
    found.reserve(parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
        const Part& part = parts_[i];
        Bound& made = found.emplace_back();
        made.algorithm = make_object<Algorithm>(part.base, arguments(i, memory), groups[i]);
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

std::vector<OperationPtr> Dispatches::warm_up(const std::vector<ResourceRange>& memory) const {
    std::vector<OperationPtr> operations;
    for (const Bound& each : bound(memory, groups_)) operations.push_back(make_warm_up(each.algorithm));
    return operations;
}

std::vector<OperationPtr> Dispatches::bind(const std::vector<ResourceRange>& memory,
                                           std::span<const std::string> push,
                                           const std::string& title) const {
    if (push.size() != parts_.size())
        throw Error(ErrorKind::internal, "A program needs push constants for each dispatch");
    std::vector<OperationPtr> operations;
    operations.reserve(parts_.size());
    for (auto& [algorithm, own] : bound(memory, groups_, title)) {
        const size_t i = operations.size();
        operations.push_back(make_dispatch(prepared(algorithm, groups_[i]), groups_[i], push[i],
                                           {std::nullopt, true}, own.indirect));
    }
    return operations;
}

void Dispatches::run(const std::vector<OperationPtr>& operations) {
    // Taken, because another thread may call meanwhile. A call that fails, or that Ctrl-C ends, leaves none.
    std::shared_ptr<Stream> stream = std::move(stream_);
    if (!stream || !stream->is_init()) stream = make_object<Stream>(parts_.front().base.device, 0, 0);
    for (const OperationPtr& operation : operations) stream->record(operation);
    evaluate(stream);
    stream->clear();
    stream_ = std::move(stream);
}

namespace {

// As Python holds them.
std::vector<std::shared_ptr<Operation>> given_out(const std::vector<OperationPtr>& operations) {
    std::vector<std::shared_ptr<Operation>> found;
    found.reserve(operations.size());
    for (const auto& each : operations) found.push_back(std::const_pointer_cast<Operation>(each));
    return found;
}

}  // namespace

void bind_dispatches(py::module_& m) {
    using Place = std::tuple<uint32_t, uint32_t, uint32_t>;
    using Given = std::tuple<std::shared_ptr<Algorithm>, std::vector<Place>, std::array<int64_t, 3>,
                             std::optional<std::pair<uint32_t, uint64_t>>>;
    py::class_<Dispatches, std::shared_ptr<Dispatches>>(m, "Dispatches")
        .def(py::init([](const std::vector<Given>& given) {
            if (given.empty()) throw Error(ErrorKind::internal, "A program has a dispatch");
            std::vector<Dispatches::Part> parts;
            std::vector<Groups> all;
            for (const auto& [algorithm, bindings, groups, indirect] : given) {
                std::vector<Dispatches::Place> places;
                for (const auto& [set, binding, number] : bindings) places.push_back({set, binding, number});
                parts.push_back({algorithm->base(), std::move(places), indirect, algorithm->name()});
                all.push_back(groups_of(groups));
            }
            return std::make_shared<Dispatches>(std::move(parts), std::move(all));
        }))
        .def(
            "bind",
            [](const Dispatches& d, const std::vector<ResourceRange>& memory,
               const std::vector<std::string>& push,
               const std::string& title) { return given_out(d.bind(memory, push, title)); },
            py::arg("memory"), py::arg("push"), py::arg("title") = "")
        .def("warm_up", [](const Dispatches& d,
                           const std::vector<ResourceRange>& memory) { return given_out(d.warm_up(memory)); })
        .def(
            "run",
            [](Dispatches& d, const std::vector<ResourceRange>& memory, const std::vector<std::string>& push,
               const std::vector<std::shared_ptr<Operation>>& before,
               const std::vector<std::shared_ptr<Operation>>& after) {
                std::vector<OperationPtr> operations(before.begin(), before.end());
                std::ranges::move(d.bind(memory, push), std::back_inserter(operations));
                operations.insert(operations.end(), after.begin(), after.end());
                d.run(operations);
            },
            py::arg("memory"), py::arg("push"), py::arg("before") = std::vector<std::shared_ptr<Operation>>(),
            py::arg("after") = std::vector<std::shared_ptr<Operation>>());
}

}  // namespace kp
