// Whether two invocations that write the same element of an array write the same value.
#pragma once

#include "spirv/constants.hpp"
#include "spirv/flow.hpp"
#include "spirv/module.hpp"
#include "spirv/reach_terms.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kp::spirv {

// The numbers of integers' expressions: equal expressions have one number.
class Numbering {
public:
    virtual ~Numbering() = default;
    virtual uint32_t number_of(uint32_t id) = 0;
    virtual uint32_t number_of_part(uint32_t id, uint32_t index) = 0;  // of a vector
    virtual uint32_t number_of(const ReachExpression& made) = 0;
    [[nodiscard]] virtual const ReachExpression& expression(uint32_t number) const = 0;
    [[nodiscard]] virtual bool varies(uint32_t number) const = 0;
    [[nodiscard]] virtual uint32_t original(uint32_t id) const = 0;          // of copies and parameters
    [[nodiscard]] virtual uint32_t only_value(uint32_t variable) const = 0;  // 0 if there are several
};

class Dependence {
public:
    // `numbering` and the others must outlive this.
    Dependence(const Module& module, const Constants& constants, uint32_t entry, Numbering& numbering);

    // What is known about a store or an atomic operation in block `label` at element `index`.
    [[nodiscard]] ReachWrite judge(Instruction write, uint32_t label, uint32_t index);

private:
    // A sum of products: sorted factors, which are numbers of expressions -> the product's factor.
    using Product = std::vector<uint32_t>;
    using Polynomial = std::map<Product, uint64_t>;
    struct Store {
        uint32_t pointer = 0;
        uint32_t value = 0;   // 0: unknown
        uint32_t source = 0;  // the pointer that is copied from, instead of a value
        uint32_t label = 0;
    };
    // A condition that has a certain value.
    struct Fact {
        uint32_t condition = 0;
        bool holds = true;
    };
    using Call = std::pair<Instruction, uint32_t>;     // with its block
    using Comparison = std::pair<uint32_t, uint32_t>;  // the first is less than the second
    struct Slice;                                      // a search backwards

    void index_block(const Function& function, Instruction instruction, uint32_t label);
    void index_pointers(Instruction instruction);
    void add_store(Store store);
    [[nodiscard]] const std::vector<Call>& calls_of(uint32_t function) const;
    [[nodiscard]] const Flow* flow_of(uint32_t label) const;
    [[nodiscard]] std::vector<uint32_t> roots(uint32_t pointer, uint32_t depth = 0) const;
    [[nodiscard]] uint32_t base_of(uint32_t pointer, std::vector<uint32_t>* indices = nullptr) const;
    [[nodiscard]] std::optional<uint32_t> storage_of(uint32_t pointer) const;

    // -- polynomials
    [[nodiscard]] const Polynomial& polynomial(uint32_t number);
    [[nodiscard]] Polynomial expanded(const ReachExpression& made, const Polynomial& whole);
    [[nodiscard]] Polynomial varying_part(uint32_t number);
    [[nodiscard]] bool is_varying(uint32_t number);
    [[nodiscard]] bool follows_element(uint32_t id);
    [[nodiscard]] bool is_integer(uint32_t id) const;
    [[nodiscard]] std::vector<uint32_t> leaves(uint32_t number) const;
    [[nodiscard]] uint32_t axes(uint32_t number) const;
    [[nodiscard]] bool is_bound(uint32_t number, uint32_t own);

    // -- searches backwards: true if the value depends on the invocation other than through the element
    [[nodiscard]] bool differs(std::vector<uint32_t> values, bool cut, std::set<Way>* reads = nullptr,
                               uint32_t ignored = 0);
    [[nodiscard]] bool look(Slice& slice, uint32_t id);
    [[nodiscard]] bool look_at_memory(Slice& slice, uint32_t pointer);
    [[nodiscard]] bool look_at_stores(Slice& slice, uint32_t variable);
    [[nodiscard]] bool look_at_phi(Slice& slice, Instruction phi);
    [[nodiscard]] bool differs_in_uniform(uint32_t id);
    void look_at_ways(Slice& slice, uint32_t label, uint32_t above);
    [[nodiscard]] const Store* only_store_before(uint32_t variable, uint32_t load) const;

    // -- conditions
    void assume(uint32_t label);
    [[nodiscard]] std::optional<Fact> fact_of(const Way& way) const;
    void split(const Fact& fact, std::vector<Fact>& found, uint32_t depth);
    void split_phi(Instruction phi, bool holds, std::vector<Fact>& found, uint32_t depth);
    void compare(const Fact& fact, std::vector<Comparison>& found);
    void compare_float(Instruction made, bool holds, std::vector<Comparison>& found);
    [[nodiscard]] bool conditions_agree(uint32_t label, ReachWrite& made);

    const Module& module_;
    const Constants& constants_;
    Numbering& numbers_;
    std::map<uint32_t, std::unique_ptr<Flow>> flows_;                         // by function
    std::unordered_map<uint32_t, uint32_t> function_of_;                      // label -> its function
    std::unordered_map<uint32_t, uint32_t> label_of_;                         // result -> its block
    std::unordered_map<uint32_t, std::vector<Store>> stores_;                 // by variable
    std::unordered_map<uint32_t, std::pair<uint32_t, uint32_t>> parameters_;  // -> function, position
    std::unordered_map<uint32_t, std::vector<Call>> calls_;                   // by function
    std::unordered_map<uint32_t, std::vector<std::pair<uint32_t, uint32_t>>> returned_;  // (value, label)
    std::set<uint32_t> opaque_;  // variables with uses that are not followed
    std::set<uint32_t> wild_;    // storage classes with stores through unknown pointers
    std::set<uint32_t> images_;  // variables of images that are written
    bool any_image_ = false;     // an image that is written is unknown
    std::unordered_map<uint32_t, Polynomial> polynomials_;  // by number
    uint32_t nested_ = 0;                                   // sums in sums

    // Of the write that is judged.
    Polynomial element_;
    uint32_t place_ = 0;  // its block
    std::set<Way> assumed_;
    std::unordered_map<uint32_t, bool> uniform_;  // id -> differs, without the cut
    std::unordered_map<uint32_t, bool> varying_;  // number -> differs between invocations
};

}  // namespace kp::spirv
