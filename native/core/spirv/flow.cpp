#include "spirv/flow.hpp"

#include "spirv/operands.hpp"

#include <algorithm>
#include <set>

namespace kp::spirv {

Flow::Flow(const Module& module, const Function& function) {
    uint32_t first = 0;
    uint32_t label = 0;
    for (const Instruction instruction : function.body) {
        if (instruction.op() == spv::OpLabel) {
            label = instruction[1];
            if (first == 0) first = label;
        }
        if (label != 0) blocks_[label].end = instruction;
    }
    const auto is_block = [&](uint32_t id) {
        return module.find(id).op() == spv::OpLabel && blocks_.contains(id);
    };
    for (auto& [from, block] : blocks_) {
        const Instruction end = block.end;
        std::vector<uint32_t> targets;
        if (end.op() == spv::OpBranch) targets = {end[1]};
        if (end.op() == spv::OpBranchConditional) targets = {end[2], end[3]};
        // Literals may have several words; a word that is a label counts, so at worst there are too many.
        if (end.op() == spv::OpSwitch)
            for (uint32_t i = 2; i < end.size(); i += i == 2 ? 2 : 1) targets.push_back(end[i]);
        for (const uint32_t target : targets)
            if (is_block(target) &&
                std::find(block.after.begin(), block.after.end(), target) == block.after.end())
                block.after.push_back(target);
    }
    if (first == 0) return;

    // Reverse postorder.
    std::vector<std::pair<uint32_t, size_t>> open{{first, 0}};
    std::set<uint32_t> seen{first};
    while (!open.empty()) {
        auto& [at, next] = open.back();
        const std::vector<uint32_t>& after = blocks_[at].after;
        if (next == after.size()) {
            labels_.push_back(at);
            open.pop_back();
        } else {
            const uint32_t target = after[next++];
            if (seen.insert(target).second) open.emplace_back(target, 0);
        }
    }
    std::reverse(labels_.begin(), labels_.end());
    for (uint32_t i = 0; i < labels_.size(); ++i) order_[labels_[i]] = i;
    for (const uint32_t from : labels_)
        for (const uint32_t to : blocks_[from].after) blocks_[to].before.push_back(from);

    // Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm.
    parents_[first] = first;
    const auto common = [&](uint32_t a, uint32_t b) {
        while (a != b) (order_[a] > order_[b] ? a : b) = parents_[order_[a] > order_[b] ? a : b];
        return a;
    };
    for (bool changed = true; changed;) {
        changed = false;
        for (const uint32_t each : labels_) {
            if (each == first) continue;
            uint32_t parent = 0;
            for (const uint32_t from : blocks_[each].before)
                if (parents_.contains(from)) parent = parent == 0 ? from : common(parent, from);
            if (parent == 0 || (parents_.contains(each) && parents_[each] == parent)) continue;
            parents_[each] = parent;
            changed = true;
        }
    }
    parents_[first] = 0;
}

const Flow::Block* Flow::find(uint32_t label) const {
    const auto found = blocks_.find(label);
    return found == blocks_.end() ? nullptr : &found->second;
}

Instruction Flow::end(uint32_t label) const {
    const Block* block = find(label);
    return block ? block->end : Instruction();
}

uint32_t Flow::dominator(uint32_t label) const {
    const auto found = parents_.find(label);
    return found == parents_.end() ? 0 : found->second;
}

bool Flow::dominates(uint32_t above, uint32_t label) const {
    while (label != 0 && label != above) label = dominator(label);
    return label != 0;
}

Way Flow::entry(uint32_t label) const {
    const Block* block = find(label);
    uint32_t from = 0;
    for (const uint32_t each : block ? block->before : std::vector<uint32_t>{}) {
        if (dominates(label, each)) continue;  // a loop's way back
        if (from != 0) return {0, 0};
        from = each;
    }
    return from == 0 ? Way{0, 0} : Way{from, label};
}

const std::vector<Way>& Flow::deciding(uint32_t label) const {
    const auto [known, added] = deciding_.try_emplace(label);
    if (!added || !runs(label)) return known->second;
    // Blocks from which the function may end without `label`.
    std::set<uint32_t> without;
    std::vector<uint32_t> open;
    for (const uint32_t each : labels_)
        if (blocks_.at(each).after.empty() && each != label) open.push_back(each);
    while (!open.empty()) {
        const uint32_t at = open.back();
        open.pop_back();
        if (!without.insert(at).second) continue;
        for (const uint32_t from : blocks_.at(at).before)
            if (from != label) open.push_back(from);
    }
    for (const uint32_t from : labels_) {
        const Block& block = blocks_.at(from);
        if (block.after.size() < 2) continue;
        const bool escapes = std::any_of(block.after.begin(), block.after.end(),
                                         [&](uint32_t to) { return to != label && without.contains(to); });
        if (!escapes) continue;
        for (const uint32_t to : block.after)
            if (to == label || !without.contains(to)) known->second.emplace_back(from, to);
    }
    return known->second;
}

}  // namespace kp::spirv
