// The dispatches of a prepared call, over memory that is given by numbers: one of a kernel, several of a
// function.
#pragma once

#include "bindings.hpp"
#include "run/line.hpp"

namespace kp {

// Several threads may use one: it has no memory of a call.
class Dispatches {
public:
    struct Place {
        uint32_t set = 0;
        uint32_t binding = 0;
        uint32_t number = 0;  // of the memory of a call
    };
    struct Part {
        AlgorithmBase base;
        std::vector<Place> places;
        // Where the device reads the groups instead: the number of the memory, and the byte in it.
        std::optional<std::pair<uint32_t, uint64_t>> indirect;
        std::string name;
    };

    Dispatches(std::vector<Part> parts, std::vector<Groups> groups)
        : parts_(std::move(parts)), groups_(std::move(groups)) {}
    [[nodiscard]] const std::vector<Part>& parts() const noexcept { return parts_; }
    [[nodiscard]] const std::vector<Groups>& groups() const noexcept { return groups_; }
    [[nodiscard]] std::vector<Argument> arguments(size_t part,
                                                  const std::vector<ResourceRange>& memory) const;
    // `title` comes before the names of the parts.
    [[nodiscard]] std::vector<Bound> bound(const std::vector<ResourceRange>& memory,
                                           const std::vector<Groups>& groups,
                                           const std::string& title = {}) const;
    // `push`: for each part its push constants.
    [[nodiscard]] std::vector<OperationPtr> bind(const std::vector<ResourceRange>& memory,
                                                 std::span<const std::string> push,
                                                 const std::string& title = {}) const;
    // Operations that dispatch each part with no groups.
    [[nodiscard]] std::vector<OperationPtr> warm_up(const std::vector<ResourceRange>& memory) const;
    // Records what was bound, submits, waits, and lets go of the memory.
    void run(const std::vector<OperationPtr>& operations);

private:
    const std::vector<Part> parts_;
    const std::vector<Groups> groups_;
    std::shared_ptr<Stream> stream_;  // of the last run
};

void bind_dispatches(py::module_& m);

}  // namespace kp
