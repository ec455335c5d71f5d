// The arguments of a call as a key: a list of words that is equal for calls that need the same preparation.
// Values of a kernel's push constants are not part of it; those of a function's numbers are.
//
// - A tensor or image counts by its identity, so its words are only valid as long as the object lives.
//   A key by shapes takes a tensor's shape and dtype instead.
// - A NumPy array counts by its shape, dtype and whether it is writable.
// - A key by dtypes leaves out all shapes.
// - Names of keywords count in the order in which they are given, and grid= and groups= by their numbers.
// - Numbers, texts and tuples of ints or tensors count by their values, if the vocabulary has values. Arrays
//   then have no key.
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
        uint32_t field = 0;  // of a push constant: its number
    };

    py::object tensor_type;
    std::vector<Name> names;
    uint32_t push_constants = 0;
    bool values = false;  // a function's: arguments may be numbers and texts

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

    [[nodiscard]] std::span<const uint64_t> key() const noexcept { return {words_.data(), count_}; }
    // The positional arguments, and after them the keywords' values, in order.
    [[nodiscard]] PyObject* value(size_t i) const noexcept { return values_[i]; }
    [[nodiscard]] size_t values() const noexcept { return given_; }
    // Marks the key as that of another kind of call with the same arguments.
    [[nodiscard]] bool mark() noexcept;
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
    [[nodiscard]] bool add_bytes(const void* bytes, size_t size);
    [[nodiscard]] bool write_key(const CallVocabulary& vocabulary, Detail detail);

    std::array<uint64_t, most_words> words_;
    size_t count_ = 0;
    std::array<PyObject*, most_values> values_;
    std::array<const CallVocabulary::Name*, most_values> names_;  // null: by position
    size_t given_ = 0;
    std::array<PyObject*, most_values> push_constants_;
};

// A slot of a Python object, by an interned name. Throws Python's error.
[[nodiscard]] py::object slot_of(PyObject* object, PyObject* name);
[[nodiscard]] PyObject* interned(const char* text);

}  // namespace kp
