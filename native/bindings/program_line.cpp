#include "program_line.hpp"

#include "call_support.hpp"

namespace kp {

std::vector<OperationPtr> ProgramLine::bind(const std::vector<ResourceRange>& memory,
                                            const std::vector<py::bytes>& push) const {
    if (push.size() != parts_.size())
        throw Error(ErrorKind::internal, "A program needs push constants for each dispatch");
    std::vector<OperationPtr> operations;
    operations.reserve(parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
        const Part& part = parts_[i];
        std::vector<Argument> arguments;
        arguments.reserve(part.slots.size());
        for (const uint32_t slot : part.slots) {
            if (slot >= memory.size()) throw Error(ErrorKind::internal, "A program has fewer tensors");
            Argument& argument = arguments.emplace_back();
            argument.binding = static_cast<uint32_t>(arguments.size() - 1);
            argument.range = memory[slot];
        }
        ResourceRange indirect;
        if (part.indirect) {
            const auto& [slot, byte] = *part.indirect;
            if (slot >= memory.size()) throw Error(ErrorKind::internal, "A program has fewer tensors");
            indirect = memory[slot];
            indirect.offset += byte;
            indirect.size -= std::min(byte, indirect.size);
        }
        auto algorithm = make_object<Algorithm>(part.base, std::move(arguments), part.groups);
        algorithm->set_name(part.name);
        operations.push_back(make_dispatch(prepared(std::move(algorithm), part.groups), part.groups,
                                           std::string(push[i]), {std::nullopt, true}, std::move(indirect)));
    }
    return operations;
}

void ProgramLine::run(const std::vector<ResourceRange>& memory, const std::vector<py::bytes>& push,
                      const std::vector<OperationPtr>& before, const std::vector<OperationPtr>& after) {
    const std::vector<OperationPtr> operations = bind(memory, push);
    // A call that Ctrl-C ended left its work running.
    if (!stream_ || !stream_->is_init() || stream_->is_running())
        stream_ = make_object<Stream>(parts_.front().base.device, 0, 0);
    const std::shared_ptr<Stream> stream = stream_;
    try {
        for (const auto* list : {&before, &operations, &after})
            for (const OperationPtr& operation : *list) stream->record(operation);
        evaluate(stream);
    } catch (...) {
        stream_ = nullptr;
        throw;
    }
    stream->clear();
}

void bind_program_line(py::module_& m) {
    // Python's handle, recordings, views and prepared calls; one of them is the caller's.
    m.def("buffer_owners", [](const std::shared_ptr<Buffer>& buffer) { return buffer.use_count() - 1; });
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
        .def("bind",
             [](const ProgramLine& line, const std::vector<ResourceRange>& memory,
                const std::vector<py::bytes>& push) {
                 std::vector<std::shared_ptr<Operation>> found;
                 for (const auto& operation : line.bind(memory, push))
                     found.push_back(std::const_pointer_cast<Operation>(operation));
                 return found;
             })
        .def("run",
             [](ProgramLine& line, const std::vector<ResourceRange>& memory,
                const std::vector<py::bytes>& push, const std::vector<std::shared_ptr<Operation>>& before,
                const std::vector<std::shared_ptr<Operation>>& after) {
                 const std::vector<OperationPtr> first(before.begin(), before.end());
                 const std::vector<OperationPtr> last(after.begin(), after.end());
                 line.run(memory, push, first, last);
             });
}

}  // namespace kp
