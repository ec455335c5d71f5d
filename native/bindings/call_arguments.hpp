// The arguments of a call as a key: a list of words that is equal for calls that need the same preparation.
// Values of a kernel's push constants are not part of it.
//
// - A tensor or image counts by its identity, so its words are only valid as long as the object lives.
//   A key by shapes takes a tensor's shape and dtype instead.
//   A list or tuple of tensors counts by theirs.
// - A NumPy array counts by its shape, dtype and whether it is writable.
// - A key by dtypes leaves out all shapes.
// - Names of keywords count in the order in which they are given, and grid= and groups= by their numbers.
//
// A function's arguments are numbers, texts and tuples of ints or tensors, too, which count by their values;
// arrays have no such key. Its key by shapes is that of the values of its parameters, however they are given,
// and of out=. Numbers count by their types there. What is not a plain tensor, number or text counts by what
// Python says of it, and only if Python gives the values.
//
// A call with anything else, such as a list in the place of an array, has no key.
#pragma once

#include "bindings.hpp"

#include <array>
#include <span>

namespace kp {

// The types and names that keys are made of; one for each kernel or function. Names are interned.
struct CallVocabulary {
    enum class Role : uint8_t { binding, counts, push_constant };
    struct Name {
        py::object text;
        Role role = Role::binding;
        uint32_t field = 0;  // of a push constant or a function's parameter: its number
    };
    struct Parameter {
        py::object value;               // if it is left out
        std::vector<py::object> plain;  // the types of values that need no conversion
    };
    struct Function {
        std::vector<Parameter> parameters;
        size_t by_position = 0;
        bool writes = false;  // some of its parameters
        py::object facts;     // facts(value): what a call depends on of a value that is not plain
        py::object shared;    // the set of tensors with memory that others see
    };

    py::object tensor_type;
    const PyObject* manager = nullptr;  // outlives the table
    py::object missing;
    std::vector<Name> names;
    uint32_t push_constants = 0;
    std::optional<Function> function;
    py::dict known;  // of a function: numbers of facts

    [[nodiscard]] const Name* find(PyObject* name) const noexcept;
};

class CallArguments {
public:
    static constexpr size_t most_values = 48;
    static constexpr size_t most_words = 512;

    // Borrows `args` and `keywords`. False if the call has no key.
    [[nodiscard]] bool read(const CallVocabulary& vocabulary, PyObject* args, PyObject* keywords);
    // The keys by shapes and by dtypes; false if one of the objects is no plain tensor.
    [[nodiscard]] bool read_shapes(const CallVocabulary& vocabulary) {
        return write_key(vocabulary, Detail::shapes);
    }
    [[nodiscard]] bool read_dtypes(const CallVocabulary& vocabulary) {
        return write_key(vocabulary, Detail::dtypes);
    }

    // A function's: the key by shapes. False if Python must look at the values, or if what is written may
    // share memory with others.
    [[nodiscard]] bool read_parameters(const CallVocabulary& vocabulary, PyObject* args, PyObject* keywords);
    // The same for the values of all parameters, and memory for results; `extra` is part of the key.
    [[nodiscard]] bool take(CallVocabulary& vocabulary, const py::sequence& values, const py::tuple& outs,
                            const py::tuple& extra);
    // Adds the numbers and texts at these places to the key.
    [[nodiscard]] bool add_values(const CallVocabulary& vocabulary, std::span<const uint32_t> places);

    [[nodiscard]] std::span<const uint64_t> key() const noexcept { return {words_.data(), count_}; }
    // The positional arguments, and after them the keywords' values, in order; a function's parameters.
    [[nodiscard]] PyObject* value(size_t i) const noexcept { return values_[i]; }
    [[nodiscard]] size_t values() const noexcept { return given_; }
    [[nodiscard]] std::span<PyObject* const> all() const noexcept { return {values_.data(), given_}; }
    // The objects that the key of a kernel's call tells by their identity.
    [[nodiscard]] std::vector<PyObject*> identified() const;
    // The number of the value that this is, and its place in it if that is a tuple, else -1; -1 for none.
    [[nodiscard]] std::pair<int64_t, int64_t> place_of(const PyObject* object) const noexcept;
    [[nodiscard]] PyObject* push_constant(size_t field) const noexcept { return push_constants_[field]; }

private:
    enum class Detail : uint8_t { objects, shapes, dtypes };

    [[nodiscard]] bool add(uint64_t word) noexcept {
        if (count_ == most_words) return false;
        words_[count_++] = word;
        return true;
    }
    [[nodiscard]] bool add(const void* pointer) noexcept {
        return add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer)));
    }
    [[nodiscard]] bool add_object(const CallVocabulary& vocabulary, PyObject* value, Detail detail);
    [[nodiscard]] bool add_shape(PyObject* tensor, Detail detail);
    [[nodiscard]] bool add_counts(PyObject* value);
    [[nodiscard]] bool add_value(const CallVocabulary& vocabulary, PyObject* value);
    [[nodiscard]] bool add_kind(const CallVocabulary& vocabulary, PyObject* value, bool& memory);
    [[nodiscard]] bool add_facts(CallVocabulary& vocabulary, const py::object& facts);
    [[nodiscard]] bool add_bytes(const void* bytes, size_t size);
    [[nodiscard]] bool write_key(const CallVocabulary& vocabulary, Detail detail);
    [[nodiscard]] bool are_apart(const CallVocabulary& vocabulary) const;

    std::array<uint64_t, most_words> words_;
    size_t count_ = 0;
    std::array<PyObject*, most_values> values_;
    std::array<const CallVocabulary::Name*, most_values> names_;  // null: by position
    size_t given_ = 0;
    std::array<PyObject*, most_values> push_constants_;
};

// Puts a number, of a code of Python's struct, where it certainly goes as it is; false for all others, which
// Python packs or refuses.
[[nodiscard]] bool put(std::byte* to, char code, PyObject* value);
// Whether a tensor's native object is a part of another's memory.
[[nodiscard]] bool is_view(const py::object& native);
// A slot of a Python object, by an interned name. Throws Python's error.
[[nodiscard]] py::object slot_of(PyObject* object, PyObject* name);
[[nodiscard]] PyObject* interned(const char* text);

}  // namespace kp
