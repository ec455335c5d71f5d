// The form of a prepared call: everything about it but the memory of its tensors and its push constants. It
// has one dispatch of a kernel or several of a function, over memory that is given by numbers.
#pragma once

#include "bindings.hpp"
#include "run/line.hpp"

namespace kp {

// Several threads may use one: it has no memory of a call.
struct CallForm {
    struct Place {
        uint32_t set = 0;
        uint32_t binding = 0;
        uint32_t number = 0;             // of the slot
        std::optional<bool> whole = {};  // as in a Use
    };
    struct Part {
        AlgorithmBase base;
        std::vector<Place> places;
        // Where the device reads the groups instead: the number of the slot, and the byte in it.
        std::optional<std::pair<uint32_t, uint64_t>> indirect;
        std::string name;
    };
    // Memory of a call.
    struct Slot {
        int64_t value = -1;    // the number of its value; -1: none; -2 - n: memory n of what the call makes
        ResourceRange memory;  // for an array, or of all calls; empty for an object
        size_t parameter = 0;  // a kernel's
        [[nodiscard]] bool is_object() const noexcept { return value >= 0 && !memory.resource; }
    };
    struct Result {
        int64_t value = -1;
        ResourceRange memory;  // of an array
        py::object make;       // the array that the call leaves out
    };
    std::shared_ptr<const std::vector<Part>> parts;  // as many as groups
    std::vector<Groups> groups;
    std::vector<Slot> slots;
    std::vector<Result> results;
    bool several = false;  // whether the call returns a tuple
    bool copies = false;   // whether there are arrays
    bool repeats = true;   // whether the table runs it again; if not, Python does
    uint64_t nbytes = 0;   // of memory that no other form has
    // A function's: push constants of all calls, or None and those for a list of values. A kernel's: those
    // that were checked last, and None if all will do.
    std::vector<std::string> push;
    py::object pack, check;
    py::object info;  // of a kernel's launch; None if `bind` must not take the form
    std::vector<std::tuple<uint64_t, int, bool>> fresh;  // of new results: bytes, memory type, if they are 0
    py::object tensors;                                  // makes their tensors of native memory
    py::object after;                                    // called after the work; None for nothing
    std::vector<py::object> kept;                        // the dtypes of the key

    // A function's push constants; false if the form does not take these numbers.
    [[nodiscard]] bool pushes(std::span<PyObject* const> given, std::vector<std::string>& made) const;
    // `title` comes before the names of the parts.
    [[nodiscard]] std::vector<Bound> bound(const std::vector<ResourceRange>& memory,
                                           const std::string& title = {}) const;
    // `push`: for each part its push constants.
    [[nodiscard]] std::vector<OperationPtr> bind(const std::vector<ResourceRange>& memory,
                                                 std::span<const std::string> push,
                                                 const std::string& title = {}) const;
    // Records what was bound, submits it after `first` if that is not null, waits, and lets go of the memory.
    void run(const std::vector<OperationPtr>& operations, const std::shared_ptr<Stream>& first = nullptr);
    // A stream for what was bound, and follows `first` if that is not null.
    [[nodiscard]] std::shared_ptr<Stream> new_stream(const std::shared_ptr<Stream>& first) const;

private:
    std::shared_ptr<Stream> stream_;  // of the last run
};

void bind_call_form(py::module_& m);

}  // namespace kp
