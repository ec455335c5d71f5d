// The calls that a kernel or a function has prepared. Python prepares a call the first time
// (kompute_py/_kernels, kompute_py/_functions) and describes it here; from then on a call of the same kind
// needs no Python code.
//
// Four tables, from the most to the least specific.
// - plans: calls with the very same tensors. One look-up, then the submission.
// - forms: calls with tensors of the same shapes and dtypes, so that everything but the memory is checked.
//   The tensors' entry is looked up or made. A function's calls get one when they are made again.
// - families: calls with arguments of the same dtypes, if the groups follow the number of elements of one
//   argument, and the arrays only have to agree in their numbers of elements. A call of a new shape gets a
//   form.
// - entries: descriptor sets by the memory that they bind.
//
// No table is ordered by use, so cyclic use does not thrash. A table that is full drops an entry at random.
// Entries keep their memory alive, so they must not outlive the Python objects that own it: weak references
// tell their end. All of this runs under the interpreter lock and, except for those ends, under the kernel's
// lock. A function has no lock: while a call of it runs, others may come.
#pragma once

#include "call_arguments.hpp"
#include "call_support.hpp"
#include "dispatches.hpp"

#include <deque>
#include <random>
#include <span>
#include <unordered_map>

namespace kp {

// The descriptor sets for certain memory.
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

    CallTable(CallVocabulary vocabulary, std::vector<PushField> fields, size_t push_size, py::object pack,
              size_t parameters, std::string name, size_t most_entries);
    CallTable(const CallTable&) = delete;
    CallTable& operator=(const CallTable&) = delete;

    // The result of the call, or NotImplemented if it was not prepared.
    [[nodiscard]] py::object call(const py::object& args, const py::object& keywords);
    // A fence, or NotImplemented.
    [[nodiscard]] py::object submit(const py::object& args, const py::object& keywords,
                                    const std::optional<WaitsAndSignals>& order);
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
                                                      const py::bytes& push,
                                                      const std::optional<WaitsAndSignals>& order);
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

    // The values of a function's parameters, the memory for its results, and what else a form depends on.
    struct Given {
        py::sequence values;
        py::tuple outs, extra;
    };
    // The form that `keep` was given for such a call, or None.
    [[nodiscard]] py::object find_form(const Given& call);
    // Keeps a form, which has so many bytes. `places` are those of the numbers that it depends on. `native`:
    // None if Python must run it.
    void keep(const Given& call, const std::vector<uint32_t>& places, const py::object& form, uint64_t nbytes,
              std::shared_ptr<CallForm> native);
    // Prepares the very same call if it is made again. `given`: all memory and numbers, lists one by one.
    void repeat(const py::object& args, const py::object& keywords, const Given& call,
                const py::sequence& given);
    [[nodiscard]] size_t forms() const noexcept { return forms_.size(); }
    [[nodiscard]] uint64_t kept_bytes() const noexcept;
    void drop_a_form();

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
    // Of the very same call of a function.
    struct Exactly {
        std::vector<std::string> push;
        // Of each result the number of the value and its place in that, or -1; or -2 - n for a new one.
        std::vector<std::pair<int64_t, int64_t>> results;
        std::vector<ResourceRange> memory;  // if it has new results
    };
    struct Plan {
        std::shared_ptr<CallForm> form;
        std::shared_ptr<CallEntry> entry;
        std::shared_ptr<const Exactly> exactly;
    };
    struct Prepared : Plan {
        std::vector<ResourceRange> memory;  // if there is no entry
        std::string packed;                 // a kernel's push constants
        std::vector<std::string> push;      // a function's
        Key own;                            // of a function's arguments, if they have one
        bool found = false;

        [[nodiscard]] std::span<const std::string> pushed() const {
            if (exactly) return exactly->push;
            return push.empty() ? std::span<const std::string>(&packed, 1) : push;
        }
    };
    struct Kept {
        std::shared_ptr<CallForm> native;
        py::object form;
        uint64_t nbytes = 0;
        std::vector<py::object> dtypes;  // those of the key
    };
    friend struct CallEntry;

    // Finds the call's form and, with `entry`, its entry; packs and checks its push constants.
    [[nodiscard]] Prepared find(CallArguments& given, PyObject* args, PyObject* keywords, bool entry);
    // Of a function: the same for calls that are not those of a plan.
    void find_parameters(Prepared& found, CallArguments& given, PyObject* args, PyObject* keywords);
    [[nodiscard]] const Kept* find_kept(CallArguments& given);
    // The memory of a call, but new results'. `owners`: also the objects with which it ends. False if one
    // cannot be used.
    [[nodiscard]] bool memory_of(const CallForm& form, std::span<PyObject* const> given,
                                 std::vector<ResourceRange>& memory,
                                 std::vector<py::object>* owners = nullptr) const;
    // A function's push constants; false if the form does not take these numbers.
    [[nodiscard]] static bool packed(const CallForm& form, std::span<PyObject* const> given,
                                     std::vector<std::string>& push);
    // A form for other shapes; null if the longer way must look at the call.
    [[nodiscard]] std::shared_ptr<CallForm> form_of(const CallFamily& family,
                                                    const CallArguments& given) const;
    void add_form(std::span<const uint64_t> key, Kept kept);
    void drop_form(Table<Kept>::iterator place);
    [[nodiscard]] std::string pack(const CallArguments& given, PyObject* keywords) const;
    [[nodiscard]] bool repeats(std::span<const uint64_t> key, PyObject* first);
    void repeat(const CallArguments& given, const std::shared_ptr<CallForm>& form,
                std::span<PyObject* const> all, std::vector<std::string> push);
    void repeat(PyObject* args, PyObject* keywords, Prepared& found, std::span<PyObject* const> all);
    // The tensors of new results, with their memory.
    [[nodiscard]] py::object made_for(const CallForm& form,
                                      std::vector<std::shared_ptr<Buffer>>& memory) const;
    [[nodiscard]] std::shared_ptr<CallEntry> find_entry(std::span<const uint64_t> key) const;
    std::shared_ptr<CallEntry> add_entry(Key key, std::vector<Bound> work,
                                         const std::vector<py::object>& owners);
    void add_plan(std::span<const uint64_t> key, Plan plan);
    void drop(CallEntry& entry) noexcept;
    void run(const CallEntry& entry, std::span<const Groups> groups, std::span<const std::string> push);
    [[nodiscard]] std::shared_ptr<Fence> submit(std::span<const Bound> work, bool kept,
                                                std::span<const Groups> groups,
                                                std::span<const std::string> push,
                                                const std::optional<WaitsAndSignals>& order);

    CallVocabulary vocabulary_;
    const std::vector<PushField> fields_;
    const size_t push_size_;
    const py::object pack_;
    const size_t parameters_;
    const size_t most_entries_;
    py::object ended_;  // called with the weak reference of an object that ended

    Table<std::shared_ptr<CallEntry>> entries_;
    Table<Kept> forms_;
    Table<std::vector<uint32_t>> places_;  // of the numbers on which a function's forms depend
    Table<std::shared_ptr<CallFamily>> families_;
    Table<Plan> plans_;
    Table<py::object> once_;  // weak references to the first tensors of a function's calls
    std::unordered_map<PyObject*, CallEntry*> watched_;  // by weak reference
    std::vector<CallEntry*> all_;
    std::minstd_rand random_;
    size_t made_ = 0;
    std::vector<std::shared_ptr<Line>> lines_;      // of calls, by the entry's number
    std::deque<std::shared_ptr<Line>> submitting_;  // of submissions, the oldest first
};

void bind_call_table(py::module_& m);

}  // namespace kp
