// The dispatches of a custom operation over memory that changes from call to call.
#pragma once

#include "bindings.hpp"

namespace kp {

// A list of dispatches that were prepared once. `run` binds them to memory, records, submits, waits, and lets
// go of the memory: nothing that a call used stays alive in the line.
class ProgramLine {
public:
    struct Part {
        AlgorithmBase base;
        std::vector<uint32_t> slots;  // for each binding its number in the memory of a call
        std::array<uint32_t, 3> groups{};
        // Where the device reads the groups instead: the number of the memory, and the byte in it.
        std::optional<std::pair<uint32_t, uint64_t>> indirect;
        std::string name;
    };

    explicit ProgramLine(std::vector<Part> parts) : parts_(std::move(parts)) {}
    [[nodiscard]] const std::vector<Part>& parts() const noexcept { return parts_; }
    // `push`: for each part its push constants. `title` comes before the names of the parts.
    [[nodiscard]] std::vector<OperationPtr> bind(const std::vector<ResourceRange>& memory,
                                                 const std::vector<std::string>& push,
                                                 const std::string& title = {}) const;
    // Operations that dispatch each part with no groups.
    [[nodiscard]] std::vector<OperationPtr> warm_up(const std::vector<ResourceRange>& memory) const;
    // `before` and `after` run around the dispatches. Several threads may call it.
    void run(const std::vector<ResourceRange>& memory, const std::vector<std::string>& push,
             const std::vector<OperationPtr>& before, const std::vector<OperationPtr>& after);

private:
    [[nodiscard]] static std::shared_ptr<Algorithm>
    algorithm(const Part& part, const std::vector<ResourceRange>& memory, const std::string& title = {});

    const std::vector<Part> parts_;
    std::shared_ptr<Stream> stream_;
};

void bind_program_line(py::module_& m);

}  // namespace kp
