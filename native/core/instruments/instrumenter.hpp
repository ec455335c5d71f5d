// Rewrites one module: what the units of the instruments share. instrument.hpp says what is added.
#pragma once

#include "instruments/instrument.hpp"
#include "spirv/builder.hpp"
#include "spirv/constants.hpp"
#include "spirv/module.hpp"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kp {

constexpr uint32_t most_sites = 1 << 16;  // of a module

// An access to memory through a pointer.
struct PointerAccess {
    uint32_t pointer = 0;          // position of this operand
    std::vector<uint32_t> values;  // positions of other operands that may be local ids
    char kind = 'r';
};

// An index and the length that it must stay below.
struct Check {
    uint32_t index = 0;
    uint32_t length = 0;             // id of a constant; 0: of a run-time array, below
    std::optional<uint64_t> number;  // the constant's value, if no specialization changes it
    uint32_t member = 0;             // of the block, that is the run-time array
};

// A pointer, as the variable that it leads into and the indices on the way.
struct Path {
    uint32_t root = 0;
    spv::StorageClass storage{};
    std::vector<uint32_t> indices;
    std::vector<Check> checks;
    std::string text;             // as a programmer writes it: "x[].y[]"
    std::vector<uint32_t> shown;  // the index of each "[]" in it
};

class Instrumenter {
public:
    using Builder = spirv::Builder;
    using Code = spirv::Code;
    using Instruction = spirv::Instruction;

    Instrumenter(std::span<const uint32_t> words, const Instruments& wanted, uint32_t set, uint32_t number)
        : words_(words),
          module_(words),
          constants_(module_),
          builder_(module_, words[spirv::bound_word]),
          wanted_(wanted),
          set_(set),
          number_(number) {}

    Instrumented run();

private:
    // -- the module (instrument.cpp)
    [[nodiscard]] std::string why_not() const;
    void find_names();
    void find_starts();
    void copy_functions();
    // Writes the instruction, with code before it, after it or in its place.
    void rewrite(Instruction instruction, Code& into);
    void follow_lines(Instruction instruction);
    [[nodiscard]] bool has(spv::Capability capability) const;
    [[nodiscard]] std::string place() const;  // " in file:line"; "" if unknown
    // True if there may be no more sites; the module has a problem then.
    [[nodiscard]] bool is_full();
    [[nodiscard]] uint32_t new_site(DebugSite::Kind kind, std::string text);
    [[nodiscard]] std::vector<uint32_t> assembled() const;

    // -- messages (printf.cpp)
    [[nodiscard]] bool print(Instruction instruction, Code& into);
    // Appends the 32-bit words of a value; false for types without any.
    bool add_words(Code& into, uint32_t value, std::vector<uint32_t>& to, std::string& letters);
    void add_scalar(Code& into, uint32_t value, Instruction type, std::vector<uint32_t>& to);

    // -- accesses (paths.cpp)
    [[nodiscard]] static std::optional<PointerAccess> access_of(Instruction instruction);
    [[nodiscard]] std::optional<Path> path_of(uint32_t pointer) const;
    // Follows the indices through the types; false if this access cannot be checked.
    [[nodiscard]] bool read_types(Path& path) const;
    [[nodiscard]] bool is_signed(uint32_t id) const;
    // The integer as 32 bits; larger ones as the largest.
    [[nodiscard]] uint32_t as_word(Code& into, uint32_t integer, Instruction type);

    // -- indices (bounds.cpp)
    [[nodiscard]] bool check(Instruction instruction, Code& into);
    // The type as which functions take and return values of a type: 32 bits for small numbers that the module
    // may only load, store and convert. 0: there is none, for matrices of them.
    [[nodiscard]] uint32_t passed_as(uint32_t type);
    [[nodiscard]] uint32_t conversion(uint32_t small) const;  // the opcode, there and back
    // `into` gets conversions of the arguments.
    [[nodiscard]] uint32_t accessor(Code& into, Instruction instruction, const PointerAccess& access,
                                    const Path& path, uint32_t site, std::vector<uint32_t>& arguments);
    // Notes that the access of `site` was outside.
    void note_fault(Code& into, uint32_t site, uint32_t index, uint32_t length);
    // Reports what the invocation has noted.
    void report_faults(Code& into);
    // Tests if the index, as a word, is below its length; `length` gets the id of the length.
    [[nodiscard]] uint32_t within(Code& into, const Check& check, uint32_t index, uint32_t root,
                                  uint32_t& length);

    // -- races (races.cpp)
    struct Matrix {  // by decorations on the member that holds it
        uint32_t stride = 0;
        bool row_major = false;
    };
    struct Scalar {
        std::vector<uint32_t> path;  // literals, from the value that is read or written
        uint64_t slot = 0;           // from the value's first
    };
    // The slot of an access: a number, and indices times numbers or times ids.
    struct Place {
        uint64_t first = 0;
        struct Term {
            uint32_t index = 0;
            uint64_t stride = 0;   // 0: that of `type`
            uint32_t element = 0;  // a type; only the specialization knows its slots
        };
        std::vector<Term> terms;
        std::vector<Scalar> scalars;
        bool as_one = false;  // all accesses of the memory have these scalars: the first stands for them
    };
    void find_shadowed();
    [[nodiscard]] uint32_t accessed(Instruction access) const;  // the type of the value
    [[nodiscard]] static uint32_t touched_key(const Path& path);
    void note_fence(Instruction instruction);
    [[nodiscard]] bool is_shared_between_groups(const Path& path, Instruction access) const;
    void track(Instruction instruction, Code& into);
    [[nodiscard]] uint32_t tracker(Code& into, Instruction instruction, const PointerAccess& access,
                                   const Path& path, const Place& place, uint32_t site,
                                   std::vector<uint32_t>& arguments);
    [[nodiscard]] std::optional<Place> place_of(const Path& path) const;
    [[nodiscard]] bool add_scalars(Place& place, uint32_t type, Matrix matrix, bool in_buffer,
                                   std::vector<uint32_t>& path, uint64_t slot) const;
    [[nodiscard]] Matrix matrix_of(uint32_t type, uint32_t member) const;
    [[nodiscard]] uint64_t bytes_of(Instruction scalar) const;
    // How many scalars a type of shared memory has.
    [[nodiscard]] std::optional<uint64_t> fixed_count(uint32_t type) const;
    [[nodiscard]] uint32_t count_of(Code& into, uint32_t type);
    [[nodiscard]] uint32_t shared_slots(Code& into, uint32_t before);
    // The function that notes one access to one slot, and returns the earlier one that it races with.
    [[nodiscard]] uint32_t toucher(char kind);
    // Whether the last access, or any that its words tell of, is another invocation's and in no order with
    // mine; `only_far`: only some of other groups are, and not the last one.
    struct Others {
        uint32_t last, any, only_far;
    };
    [[nodiscard]] Others others_of(Code& into, uint32_t group, uint32_t state, uint32_t my_group,
                                   uint32_t me);
    [[nodiscard]] uint32_t bits_of_others(Code& into, uint32_t group, uint32_t before, uint32_t my_group,
                                          uint32_t me);
    [[nodiscard]] uint32_t same_group_and(Code& into, uint32_t group, uint32_t my_group, uint32_t both,
                                          uint32_t mask);
    [[nodiscard]] uint32_t has(Code& into, uint32_t state, uint32_t bit);
    [[nodiscard]] uint32_t other_group(Code& into, uint32_t group, uint32_t my_group);
    [[nodiscard]] uint32_t is_known(Code& into, uint32_t group);
    [[nodiscard]] uint32_t same_phase(Code& into, uint32_t group, uint32_t state, uint32_t me);
    [[nodiscard]] uint32_t differs(Code& into, uint32_t group, uint32_t state, uint32_t my_group,
                                   uint32_t me);
    [[nodiscard]] uint32_t shadow(Code& into, uint32_t index);
    [[nodiscard]] uint32_t shadow_word(Code& into, uint32_t place);
    void pass_barrier(Code& into);
    void start_tracking(Code& code);
    [[nodiscard]] std::pair<uint32_t, uint32_t> buffer_key(uint32_t root) const;  // set and binding
    [[nodiscard]] uint32_t load(Code& into, uint32_t variable) {
        return builder_.value(into, spv::OpLoad, builder_.uint_type(), {variable});
    }

    // -- barriers and loops (turns.cpp)
    [[nodiscard]] bool is_group_barrier(Instruction instruction) const;
    void before_barrier(Instruction instruction, Code& into);
    void after_barrier(Instruction instruction, Code& into);
    void count_turn(Instruction instruction, Code& into);
    void start_counts(Code& into);
    void write_start();
    [[nodiscard]] uint32_t group_size(Code& into);

    // -- records (records.cpp)
    void make_buffer();
    [[nodiscard]] uint32_t make_block(uint32_t binding);
    [[nodiscard]] uint32_t element(Code& into, uint32_t index);
    void add_to(Code& into, uint32_t place, uint32_t value, uint32_t* old = nullptr);
    // The function that appends a record with so many words.
    [[nodiscard]] uint32_t reporter(uint32_t count);
    void report(Code& into, uint32_t site, const std::vector<uint32_t>& values);
    // A number that the device gives each invocation; `axis` for those that are vectors.
    [[nodiscard]] uint32_t built_in(Code& into, spv::BuiltIn which, std::optional<uint32_t> axis = {});

    // The call of a function that reports what the invocation has kept: its faults and its race.
    void end_entry(Code& into);
    void write_end();
    void report_race(Code& into);

    // -- code
    [[nodiscard]] uint32_t word(uint32_t value) { return builder_.uint_constant(value); }
    [[nodiscard]] uint32_t combine(Code& into, uint32_t op, uint32_t a, uint32_t b) {
        return builder_.value(into, op, builder_.uint_type(), {a, b});
    }
    [[nodiscard]] uint32_t test(Code& into, uint32_t op, uint32_t a, uint32_t b) {
        return builder_.value(into, op, builder_.bool_type(), {a, b});
    }
    // Begins a function, up to its first label; `parameters` gets their ids.
    [[nodiscard]] uint32_t begin_function(Code& into, uint32_t type, const std::vector<uint32_t>& types,
                                          std::vector<uint32_t>& parameters);
    [[nodiscard]] uint32_t variable(spv::StorageClass storage, uint32_t type);

    std::span<const uint32_t> words_;
    spirv::Module module_;
    spirv::Constants constants_;
    Builder builder_;
    Instruments wanted_;
    uint32_t set_;
    uint32_t number_;
    uint32_t printf_set_ = 0;  // ids of the instruction sets; 0: not imported
    uint32_t debug_info_set_ = 0;
    std::set<uint32_t> globals_;        // ids that every function sees
    std::set<const uint32_t*> starts_;  // the instructions of entry points before which counts begin
    std::string file_;
    uint32_t line_ = 0;
    std::unordered_map<uint32_t, std::pair<std::string, uint32_t>> entered_;  // block -> file, line
    uint32_t last_line_ = 0;                                                  // the last one known
    Code body_;  // the module's functions, rewritten
    std::vector<DebugSite> sites_;
    std::string problem_;                                           // of an access that could not be checked
    uint32_t buffer_ = 0;                                           // 0: not made
    std::map<spv::BuiltIn, std::pair<uint32_t, uint32_t>> inputs_;  // variable and its type
    std::vector<uint32_t> variables_;                               // others that were added
    std::map<uint32_t, uint32_t> reporters_;
    uint32_t scope_ = 0;
    // bounds
    std::vector<std::array<uint32_t, 4>> faults_;  // variables of each invocation
    size_t places_ = 0;                            // accesses that are checked
    // races
    uint32_t shadow_ = 0;  // the buffer; 0: not made
    uint32_t epoch_ = 0;   // the number of barriers that the invocation passed
    uint32_t granule_ = 4;
    uint32_t smallest_ = 4;                    // scalar, in bytes
    bool fenced_ = false;                      // it has fences that order groups
    bool across_ = true;                       // whether accesses of different groups are compared
    bool inside_ = true;                       // ... and those of one
    std::map<uint32_t, uint32_t> touched_as_;  // the type of all accesses; 0: there are several
    size_t touched_ = 0;
    std::set<uint32_t> written_, compared_;  // variables; the second by compare-and-swap
    struct Shown {
        uint32_t number = 0, base = 0, count = 0;  // its place in the head; variables
    };
    std::map<std::pair<uint32_t, uint32_t>, Shown> shadowed_;
    // Variables of each invocation: what it knows of itself; its race: site plus 1, words, indices.
    uint32_t group_ = 0, whole_group_ = 0, local_ = 0, shared_base_ = 0, shared_count_ = 0;
    std::vector<uint32_t> race_;
    uint32_t end_ = 0;  // the function that reports it, and faults
    std::set<uint32_t> entries_;
    bool in_entry_ = false;
    std::map<char, uint32_t> touchers_;
    // barriers and loops
    struct Counted {
        uint32_t site = 0, arrived = 0, told = 0, passed = 0;  // variables: shared, shared, private
    };
    std::vector<Counted> counted_;
    uint32_t start_ = 0;    // the function that begins the counts
    uint32_t turns_ = 0;    // the variable
    uint32_t counter_ = 0;  // the function that counts them
    uint32_t waiting_ = 0;  // the site of the barrier at hand, plus 1
};

}  // namespace kp
