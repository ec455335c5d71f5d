// The calls that a kernel, a function or an entry of a program has prepared. Python prepares a call the first
// time (kompute_py/_kernels, _functions, _programs) and describes its form here (`CallForm`); from then on a
// call of the same kind needs no Python code.
//
// Four tables, from the most to the least specific.
// - plans: calls with the very same tensors. One look-up, then the submission.
// - forms: calls with tensors of the same shapes and dtypes, so that everything but the memory is checked.
//   The tensors' entry is looked up or made.
// - families: a kernel's calls with arguments of the same dtypes, if the groups follow the number of elements
//   of one argument, and the arrays only have to agree in their numbers of elements. A call of a new shape
//   gets a form.
// - entries: descriptor sets by the memory that they bind. Those of a function's calls are made when its
//   tensors come again. An entry of a program has a recording over the memory instead.
//
// No table is ordered by use, so cyclic use does not thrash. A table that is full drops an entry at random.
// Entries keep their memory alive, so they must not outlive the Python objects that own it: weak references
// tell their end. All of this runs under the interpreter lock and, except for those ends, under the kernel's
// lock. A function has no lock: while a call of it runs, others may come.
#pragma once

#include "call_arguments.hpp"
#include "call_form.hpp"
#include "call_support.hpp"

#include <deque>
#include <functional>
#include <random>
#include <span>
#include <unordered_map>

namespace kp {

// The descriptor sets for certain memory.
struct CallEntry;
struct CallFamily;

class CallTable : public std::enable_shared_from_this<CallTable> {
public:
    // One number among the push constants: its name in calls, code of Python's struct and byte.
    struct PushField {
        char code = 0;
        uint32_t offset = 0;
    };

    CallTable(CallVocabulary vocabulary, std::vector<PushField> fields, size_t push_size, py::object pack,
              size_t parameters, size_t most_entries);
    CallTable(const CallTable&) = delete;
    CallTable& operator=(const CallTable&) = delete;

    // The result of the call, or NotImplemented if it was not prepared.
    [[nodiscard]] py::object call(const py::object& args, const py::object& keywords);
    // (fence, tensors of new results), or NotImplemented.
    [[nodiscard]] py::object submit(const py::object& args, const py::object& keywords,
                                    const std::optional<WaitsAndSignals>& order);
    // (native operation, push constants, memory by parameter, the form's `info`), or NotImplemented.
    [[nodiscard]] py::object bind(const py::object& args, const py::object& keywords);

    // A kernel's calls with tensors like these have the form. `family`: None, or (parameter that gives the
    // number of elements or -1, bytes of an element, axis, invocations of a group on that axis, [[(parameter,
    // first byte, bytes of an element), ...], ...]): the arrays of each list have equal numbers of elements.
    void learn(const py::object& args, const py::object& keywords, const std::shared_ptr<CallForm>& form,
               const py::object& family);
    // The very same call has the form. `given`: all memory and numbers, by the form's values. `push`: a
    // function's push constants. `dispatch`: its only one; null if the form makes it. `record`: makes the
    // recording that runs instead; None for none.
    void remember(const py::object& args, const py::object& keywords, const std::shared_ptr<CallForm>& form,
                  const py::sequence& given, std::vector<std::string> push,
                  const std::shared_ptr<BoundDispatch>& dispatch, const py::object& record);

    // The form that `keep` was given for such a call of a function, or None: `values` of its parameters,
    // memory for its results, and what else a form depends on.
    [[nodiscard]] py::object find_form(const py::sequence& values, const py::tuple& outs,
                                       const py::tuple& extra);
    // Keeps a form. `places` are those of the numbers that it depends on.
    void keep(const py::sequence& values, const py::tuple& outs, const py::tuple& extra,
              const std::vector<uint32_t>& places, const py::object& form);
    [[nodiscard]] size_t forms() const noexcept { return forms_.size(); }
    [[nodiscard]] uint64_t kept_bytes() const noexcept;
    void drop_a_form();

    [[nodiscard]] size_t size() const noexcept { return all_.size(); }
    void clear();
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
    // A call over certain memory.
    struct Plan {
        std::shared_ptr<CallForm> form;
        std::shared_ptr<CallEntry> entry;   // null for a call that is not made again
        std::vector<ResourceRange> memory;  // but new results'
        std::vector<std::string> push;      // a function's
        // Of each result the number of its value and the place in that, or -1.
        std::vector<std::pair<int64_t, int64_t>> results;
    };
    struct Found {
        CallArguments exactly, shaped;
        const CallArguments* given = &exactly;  // those whose values the results are among
        std::shared_ptr<const Plan> plan;
        std::string packed;  // a kernel's push constants
        std::span<const std::string> push;
    };
    struct Kept {
        std::shared_ptr<CallForm> form;
        py::object object;  // a function's, as `keep` was given it
    };
    friend struct CallEntry;

    // Finds the call's plan; packs and checks its push constants. False if the longer way must look at it.
    // `entry`: also for tensors that come for the first time.
    [[nodiscard]] bool find(Found& found, PyObject* args, PyObject* keywords, bool entry);
    // Makes a plan for a call that has none, if it has a form.
    [[nodiscard]] std::shared_ptr<const Plan> plan_of(Found& found, bool readable, PyObject* args,
                                                      PyObject* keywords, bool entry);
    // False if it throws because memory cannot be bound.
    [[nodiscard]] bool tried(const std::function<void()>& bind);
    // The operations of a call over new memory for its results, `fresh`; of a recording the copies of its
    // results. False if it cannot.
    [[nodiscard]] bool bind_once(const Found& found, py::list& fresh, std::vector<OperationPtr>& operations);
    // Makes the entry's descriptor sets, if it has none yet. False if it cannot.
    [[nodiscard]] bool bind_memory(const Plan& plan);
    [[nodiscard]] std::shared_ptr<CallForm> form_of(CallArguments& given);
    [[nodiscard]] const Kept* find_kept(CallArguments& given);
    // The memory of a call, but new results', and the objects that own it. False if one cannot be used.
    [[nodiscard]] bool memory_of(const CallForm& form, std::span<PyObject* const> given,
                                 std::vector<ResourceRange>& memory, std::vector<py::object>& owners) const;
    // A form for other shapes; null if the longer way must look at the call.
    [[nodiscard]] std::shared_ptr<CallForm> form_of(const CallFamily& family,
                                                    const CallArguments& given) const;
    void add_form(std::span<const uint64_t> key, Kept kept);
    void drop_form(Table<Kept>::iterator place);
    [[nodiscard]] std::string pack(const CallArguments& given, PyObject* keywords) const;
    // The tensors of new results, with their memory.
    [[nodiscard]] py::list made_for(const CallForm& form, std::vector<std::shared_ptr<Buffer>>& memory) const;
    [[nodiscard]] Key key_of(const CallForm& form, std::span<const ResourceRange> memory) const;
    // The entry with this key, which begins with the form if only calls of that have it. `again`: null if the
    // key comes for the first time with the first owner.
    std::shared_ptr<CallEntry> entry(Key key, const std::shared_ptr<CallForm>& form,
                                     const std::vector<py::object>& owners, bool again);
    // `objects`: the tensors by which the key of the call `exactly` is told.
    void add_plan(std::span<const uint64_t> key, const std::shared_ptr<const Plan>& plan,
                  const CallArguments& exactly, const std::vector<py::object>& objects);
    void drop(CallEntry& entry) noexcept;
    void run(const CallEntry& entry, std::span<const Groups> groups, std::span<const std::string> push);

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
    Table<std::shared_ptr<const Plan>> plans_;
    Table<py::object> once_;                             // weak references to first owners, by an entry's key
    std::unordered_map<PyObject*, CallEntry*> watched_;  // by weak reference
    std::vector<CallEntry*> all_;
    std::minstd_rand random_;
    size_t made_ = 0;
    std::vector<std::shared_ptr<Line>> lines_;      // of calls, by the entry's number
    std::deque<std::shared_ptr<Line>> submitting_;  // of submissions, the oldest first
};

void bind_call_table(py::module_& m);

}  // namespace kp
