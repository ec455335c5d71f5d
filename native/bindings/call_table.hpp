// The calls that a kernel or a function has prepared. Python prepares a call the first time
// (kompute_py/_kernels, kompute_py/_functions) and describes it here; from then on a call of the same kind
// needs no Python code.
//
// Four tables, from the most to the least specific. A function's calls are in the first; its forms are those
// of Python.
// - plans: calls with the very same tensors. One look-up, then the submission.
// - forms: calls with tensors of the same shapes and dtypes, so that everything but the memory is checked.
// The
//   tensors' entry is looked up or made.
// - families: calls with arguments of the same dtypes, if the groups follow the number of elements of one
//   argument, and the arrays only have to agree in their numbers of elements. A call of a new shape gets a
//   form.
// - entries: descriptor sets by the memory that they bind.
//
// No table is ordered by use, so cyclic use does not thrash. A table that is full drops an entry at random.
// Entries keep their memory alive, so they must not outlive the Python objects that own it: weak references
// tell their end. All of this runs under the interpreter lock and, except for those ends, under the kernel's
// lock. A function has no lock: a call of it that runs is busy, and a second one goes the longer way.
#pragma once

#include "call_arguments.hpp"
#include "run/call_line.hpp"
#include "run/fence.hpp"

#include <deque>
#include <random>
#include <span>
#include <unordered_map>

namespace kp {

// What is prepared for certain memory: a kernel's descriptor sets, or a function's recording.
struct CallEntry;
struct CallForm;
struct CallFamily;

class CallTable : public std::enable_shared_from_this<CallTable> {
public:
    // One number among the push constants: its name in calls, code of Python's struct and byte.
    struct PushField {
        char code = 0;
        uint32_t offset = 0;
    };

    CallTable(CallVocabulary vocabulary, const py::object& manager, std::vector<PushField> fields,
              size_t push_size, py::object pack, size_t parameters, py::object missing, std::string name,
              size_t most_entries);
    CallTable(const CallTable&) = delete;
    CallTable& operator=(const CallTable&) = delete;

    // The result of the call, or NotImplemented if it was not prepared.
    [[nodiscard]] py::object call(const py::object& args, const py::object& keywords);
    // A fence, or NotImplemented.
    [[nodiscard]] py::object submit(const py::object& args, const py::object& keywords);
    // (native operation, push constants, memory by parameter, `info` of `learn`), or NotImplemented.
    [[nodiscard]] py::object bind(const py::object& args, const py::object& keywords);

    // The entry for the arguments of an algorithm; `make` makes the algorithm if there is none. `owners`: the
    // objects with whose end the entry ends. `indirect`: the memory with the numbers of groups, or None.
    [[nodiscard]] std::shared_ptr<CallEntry> entry(const py::list& arguments, const py::list& references,
                                                   const py::list& owners, const py::object& make,
                                                   const py::object& indirect);
    void evaluate(const std::shared_ptr<CallEntry>& entry, const std::array<int64_t, 3>& groups,
                  const py::bytes& push);
    [[nodiscard]] std::shared_ptr<Fence> submit_entry(const std::shared_ptr<CallEntry>& entry,
                                                      const std::array<int64_t, 3>& groups,
                                                      const py::bytes& push);
    // Prepares calls like this one. `slots`: for each bound parameter (parameter, set, binding, number of its
    // value or -1, memory of an array or None). `results`: for each result (number of its value or -1,
    // memory, function that makes the array or None). `check(push)`: False if other push constants must be
    // prepared anew; None if any do. `general`: also for other tensors of these shapes. `entry` may be null
    // then. `family`: None, or (parameter that gives the number of elements or -1, bytes of an element, axis,
    // invocations of a group on that axis, [[(parameter, first byte, bytes of an element), ...], ...]): the
    // arrays of each list have equal numbers of elements.
    void learn(const py::object& args, const py::object& keywords, const std::shared_ptr<CallEntry>& entry,
               const Algorithm& algorithm, const py::list& slots, const py::list& results,
               const std::array<int64_t, 3>& groups, const py::bytes& push, py::object check, py::object info,
               bool general, const py::object& family);

    // Of a function: whether a call like this one was made before, over the same `first` tensor, and there is
    // room for it. `marked`: the call is submitted, not waited for.
    [[nodiscard]] bool repeats(const py::object& args, const py::object& keywords, bool marked,
                               const py::object& first);
    // Prepares the very same call of a function. `stream` runs it, or else the function `make`, which returns
    // its new results; `after` is called then, unless it is None. `results`: for each (number of the value
    // that it is, or -1 for a new one; its place in the tuple, or among the new ones; else -1). `single`: the
    // call returns the only result. `owners`: the tensors with which it ends. `form`: what it was made from.
    void repeat(const py::object& args, const py::object& keywords, bool marked,
                std::shared_ptr<Stream> stream, py::object make, py::object after, const py::list& results,
                bool single, const py::list& owners, const py::object& form);
    // The (stream, `make`) of a call that is submitted, or NotImplemented.
    [[nodiscard]] py::object recorded(const py::object& args, const py::object& keywords);
    // Drops the calls that were made from `form`.
    void drop_of(const py::object& form);

    [[nodiscard]] size_t size() const noexcept { return all_.size(); }
    void clear();
    std::string name;
    // Makes memory for arrays: memory(parameter, bytes); None for too many. It must not keep the table alive.
    py::object lending;

private:
    struct Hash {
        using is_transparent = void;
        size_t operator()(std::span<const uint64_t> key) const noexcept {
            uint64_t hash = key.size();
            for (const uint64_t word : key) {
                hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
                hash ^= hash >> 29;
            }
            return hash;
        }
    };
    struct Same {
        using is_transparent = void;
        bool operator()(std::span<const uint64_t> a, std::span<const uint64_t> b) const noexcept {
            return std::ranges::equal(a, b);
        }
    };
    using Key = std::vector<uint64_t>;
    template <typename T>
    using Table = std::unordered_map<Key, T, Hash, Same>;
    struct Plan {
        std::shared_ptr<CallForm> form;
        std::shared_ptr<CallEntry> entry;
    };
    struct Prepared : Plan {
        std::string push;
        bool found = false;
    };
    friend struct CallEntry;

    // Finds the call's form and, with `entry`, its entry; packs and checks its push constants.
    [[nodiscard]] Prepared find(CallArguments& given, PyObject* args, PyObject* keywords, bool entry);
    [[nodiscard]] bool arguments_of(const CallForm& form, const CallArguments& given,
                                    std::vector<Argument>& arguments, std::vector<py::object>& owners) const;
    // A form for other shapes; null if the longer way must look at the call.
    [[nodiscard]] std::shared_ptr<CallForm> form_of(const CallFamily& family,
                                                    const CallArguments& given) const;
    void add_form(std::span<const uint64_t> key, std::shared_ptr<CallForm> form);
    [[nodiscard]] std::string pack(const CallArguments& given, PyObject* keywords) const;
    [[nodiscard]] std::shared_ptr<CallEntry> find_entry(std::span<const uint64_t> key) const;
    std::shared_ptr<CallEntry> add_entry(Key key, std::shared_ptr<Algorithm> algorithm, DispatchMemory memory,
                                         const std::vector<py::object>& owners);
    void add_plan(std::span<const uint64_t> key, Plan plan);
    void drop(CallEntry& entry) noexcept;
    [[nodiscard]] static py::object run_again(const std::shared_ptr<CallEntry>& entry,
                                              const CallArguments& given);
    [[nodiscard]] CallLine& line_of(const CallEntry& entry);
    [[nodiscard]] std::shared_ptr<Fence> submit(const CallEntry& entry, const std::array<uint32_t, 3>& groups,
                                                std::string_view push);

    const CallVocabulary vocabulary_;
    const PyObject* const manager_;  // the kernel's, which outlives the table
    const std::vector<PushField> fields_;
    const size_t push_size_;
    const py::object pack_;
    const size_t parameters_;
    const py::object missing_;
    const size_t most_entries_;
    py::object ended_;  // called with the weak reference of an object that ended

    Table<std::shared_ptr<CallEntry>> entries_;
    Table<std::shared_ptr<CallForm>> forms_;
    Table<std::shared_ptr<CallFamily>> families_;
    Table<Plan> plans_;
    Table<py::object> once_;  // weak references to the first tensors of a function's calls
    std::unordered_map<PyObject*, CallEntry*> watched_;  // by weak reference
    std::vector<CallEntry*> all_;
    std::minstd_rand random_;
    size_t made_ = 0;
    std::vector<CallLine> lines_;      // of calls, by the entry's number
    std::deque<CallLine> submitting_;  // of submissions, the oldest first
};

void bind_call_table(py::module_& m);

}  // namespace kp
