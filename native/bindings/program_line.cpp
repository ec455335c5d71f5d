#include "program_line.hpp"

#include "call_support.hpp"
#include "direct.hpp"
#include "record/warm_up_operation.hpp"

namespace kp {

std::shared_ptr<Algorithm> ProgramLine::algorithm(const Part& part, const std::vector<ResourceRange>& memory,
                                                  const std::string& title) {
    std::vector<Argument> arguments;
    arguments.reserve(part.slots.size());
    for (const uint32_t slot : part.slots) {
        if (slot >= memory.size()) throw Error(ErrorKind::internal, "A program has fewer tensors");
        Argument& argument = arguments.emplace_back();
        argument.binding = static_cast<uint32_t>(arguments.size() - 1);
        argument.range = memory[slot];
    }
    auto made = make_object<Algorithm>(part.base, std::move(arguments), part.groups);
    made->set_name(title.empty() ? part.name : title + "." + part.name);
    return made;
}

std::vector<OperationPtr> ProgramLine::warm_up(const std::vector<ResourceRange>& memory) const {
    std::vector<OperationPtr> operations;
    for (const Part& part : parts_) operations.push_back(make_warm_up(algorithm(part, memory)));
    return operations;
}

std::vector<OperationPtr> ProgramLine::bind(const std::vector<ResourceRange>& memory,
                                            const std::vector<std::string>& push,
                                            const std::string& title) const {
    if (push.size() != parts_.size())
        throw Error(ErrorKind::internal, "A program needs push constants for each dispatch");
    std::vector<OperationPtr> operations;
    operations.reserve(parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
        const Part& part = parts_[i];
        ResourceRange indirect;
        if (part.indirect) {
            const auto& [slot, byte] = *part.indirect;
            if (slot >= memory.size()) throw Error(ErrorKind::internal, "A program has fewer tensors");
            indirect = memory[slot];
            indirect.offset += byte;
            indirect.size -= std::min(byte, indirect.size);
        }
        operations.push_back(make_dispatch(prepared(algorithm(part, memory, title), part.groups), part.groups,
                                           push[i], {std::nullopt, true}, std::move(indirect)));
    }
    return operations;
}

void ProgramLine::run(const std::vector<ResourceRange>& memory, const std::vector<std::string>& push,
                      const std::vector<OperationPtr>& before, const std::vector<OperationPtr>& after) {
    const std::vector<OperationPtr> operations = bind(memory, push);
    // Taken, because another thread may call meanwhile. A call that fails, or that Ctrl-C ends, leaves none.
    std::shared_ptr<Stream> stream = std::move(stream_);
    if (!stream || !stream->is_init()) stream = make_object<Stream>(parts_.front().base.device, 0, 0);
    for (const auto* list : {&before, &operations, &after})
        for (const OperationPtr& operation : *list) stream->record(operation);
    evaluate(stream);
    stream->clear();
    stream_ = std::move(stream);
}

namespace {

std::vector<OperationPtr> taken(const std::vector<std::shared_ptr<Operation>>& given) {
    return {given.begin(), given.end()};
}

// As Python holds them.
std::vector<std::shared_ptr<Operation>> given_out(const std::vector<OperationPtr>& operations) {
    std::vector<std::shared_ptr<Operation>> found;
    found.reserve(operations.size());
    for (const auto& each : operations) found.push_back(std::const_pointer_cast<Operation>(each));
    return found;
}

}  // namespace

void bind_program_line(py::module_& m) {
    using Given = std::tuple<std::shared_ptr<Algorithm>, std::vector<uint32_t>, std::array<int64_t, 3>,
                             std::optional<std::pair<uint32_t, uint64_t>>>;
    py::class_<ProgramLine, std::shared_ptr<ProgramLine>>(m, "ProgramLine")
        .def(py::init([](const std::vector<Given>& given) {
            if (given.empty()) throw Error(ErrorKind::internal, "A program has a dispatch");
            std::vector<ProgramLine::Part> parts;
            for (const auto& [algorithm, slots, groups, indirect] : given)
                parts.push_back({algorithm->base(), slots, groups_of(groups), indirect, algorithm->name()});
            return std::make_shared<ProgramLine>(std::move(parts));
        }))
        .def(
            "bind",
            [](const ProgramLine& line, const std::vector<ResourceRange>& memory,
               const std::vector<std::string>& push,
               const std::string& title) { return given_out(line.bind(memory, push, title)); },
            py::arg("memory"), py::arg("push"), py::arg("title") = "")
        .def("warm_up",
             [](const ProgramLine& line, const std::vector<ResourceRange>& memory) {
                 return given_out(line.warm_up(memory));
             })
        .def(
            "run",
            [](ProgramLine& line, const std::vector<ResourceRange>& memory,
               const std::vector<std::string>& push, const std::vector<std::shared_ptr<Operation>>& before,
               const std::vector<std::shared_ptr<Operation>>& after) {
                line.run(memory, push, taken(before), taken(after));
            },
            py::arg("memory"), py::arg("push"), py::arg("before") = std::vector<std::shared_ptr<Operation>>(),
            py::arg("after") = std::vector<std::shared_ptr<Operation>>())
        .def("repeated",
             [](const ProgramLine& line, const std::vector<ResourceRange>& memory, size_t first,
                const std::vector<std::pair<uint64_t, int>>& fresh, const std::vector<std::string>& push) {
                 if (first > memory.size()) throw Error(ErrorKind::internal, "A call has less memory");
                 return py::cpp_function([own = ProgramLine(line.parts()), memory, first, fresh,
                                          push](const Context& context) mutable {
                     std::vector<std::shared_ptr<Buffer>> made;
                     made.reserve(fresh.size());
                     for (const auto& [nbytes, type] : fresh)
                         made.push_back(make_buffer(context, py::none(), nbytes, type, std::nullopt));
                     const auto middle = memory.begin() + static_cast<std::ptrdiff_t>(first);
                     std::vector<ResourceRange> all(memory.begin(), middle);
                     all.reserve(memory.size() + made.size());
                     for (const auto& each : made) all.emplace_back(each);
                     all.insert(all.end(), middle, memory.end());
                     own.run(all, push, {}, {});
                     return made;
                 });
             });
}

}  // namespace kp
