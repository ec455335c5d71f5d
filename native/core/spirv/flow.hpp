// The control flow of a function: which blocks decide whether another one runs.
#pragma once

#include "spirv/module.hpp"

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kp::spirv {

// A way out of a block: the block with the branch, and the block that it goes to.
using Way = std::pair<uint32_t, uint32_t>;

class Flow {
public:
    Flow(const Module& module, const Function& function);

    [[nodiscard]] bool runs(uint32_t label) const { return order_.contains(label); }
    // The last instruction of a block.
    [[nodiscard]] Instruction end(uint32_t label) const;
    // The block that all ways to `label` pass last; 0 for the first block.
    [[nodiscard]] uint32_t dominator(uint32_t label) const;
    [[nodiscard]] bool dominates(uint32_t above, uint32_t label) const;
    // The way that all ways to `label` from outside use to enter it; {0, 0} if there are several.
    [[nodiscard]] Way entry(uint32_t label) const;
    // The ways that decide whether `label` runs next: it certainly follows them, but not their blocks.
    [[nodiscard]] const std::vector<Way>& deciding(uint32_t label) const;

private:
    struct Block {
        std::vector<uint32_t> before, after;
        Instruction end;
    };
    [[nodiscard]] const Block* find(uint32_t label) const;

    std::unordered_map<uint32_t, Block> blocks_;
    std::vector<uint32_t> labels_;                    // blocks that may run, each before those it dominates
    std::unordered_map<uint32_t, uint32_t> order_;    // label -> its place in `labels_`
    std::unordered_map<uint32_t, uint32_t> parents_;  // label -> its dominator
    mutable std::unordered_map<uint32_t, std::vector<Way>> deciding_;
};

}  // namespace kp::spirv
