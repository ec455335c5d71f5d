#include "record/repeat_operation.hpp"

#include "base/error.hpp"
#include "device/device.hpp"
#include "record/hazard.hpp"
#include "record/stream_plan.hpp"
#include "record/substitution.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>

namespace kp {
namespace {

// Repetitions with at most so many commands together are recorded one by one.
constexpr uint64_t most_in_place = 64;
// So many handles are passed to one vkCmdExecuteCommands.
constexpr uint64_t most_handles = 1024;

Substitution exchange_of(const Swaps& swaps) {
    Substitution by;
    by.swapped = swaps;
    return by;
}

std::string name_of(const std::vector<OperationPtr>& operations, uint64_t times) {
    constexpr size_t most_named = 4;
    std::string text;
    for (size_t i = 0; i < operations.size() && i < most_named; ++i)
        text += (i ? ", " : "") + operations[i]->name();
    if (operations.size() > most_named) text += ", ...";
    if (operations.size() > 1) text = "(" + text + ")";
    return std::to_string(times) + " x " + text;
}

// Each operation as a command of its own. Under the graph mutex.
void declare_once(const std::vector<OperationPtr>& operations, StreamPlan& plan) {
    Device& device = operations.front()->device();
    plan.begin(device.next_epoch(), device.memory().atom());
    for (const auto& operation : operations) {
        plan.begin_operation();
        operation->declare(plan);
    }
}

// The barriers inside of a repetition, and the one between two.
struct RepetitionPlan {
    BarrierPlan inside;
    Barrier between;  // src_stages == 0: not needed
};

class Repeat final : public Operation {
public:
    Repeat(std::vector<OperationPtr> operations, uint64_t times, Swaps swaps)
        : Operation(operations.front()->shared_device(), name_of(operations, times)),
          operations_(std::move(operations)),
          times_(times),
          swaps_(std::move(swaps)) {
        if (swaps_.empty()) return;
        const Substitution by = exchange_of(swaps_);
        for (const auto& operation : operations_) {
            // Before its state is read: if it changes meanwhile, the copy counts as old.
            versions_.push_back(operation->version());
            exchanged_.push_back(operation->substituted(by));
        }
    }

    void check() const override {
        for (const auto& operation : operations_) operation->check();
        for (const auto& [one, other] : swaps_) {
            one.resource->require_init("exchange");
            other.resource->require_init("exchange");
        }
    }

    void declare(StreamPlan& plan) const override {
        if (is_outdated()) {
            plan.ask_remaking();
            return;
        }
        if (times_ == 0) return;
        for (const auto& operation : operations_) operation->declare(plan);
        if (times_ == 1) return;
        for (const auto& operation : exchanged_) operation->declare(plan);
    }

    void record(Recorder& to) const override {
        if (times_ == 0) return;
        const bool outer = std::exchange(to.repeated, true);
        record_all(to);
        to.repeated = outer;
    }

    void record_all(Recorder& to) const {
        const RepetitionPlan plan = planned();
        const uint64_t commands = std::max<uint64_t>(parts_once() + 1, 1);
        uint64_t left = times_;
        if (times_ > 2 && times_ * commands > most_in_place) {
            // An even number, so that each execution begins with the same memory.
            const auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(times_)));
            const uint64_t block = std::max<uint64_t>(2, root & ~uint64_t{1});
            const VkCommandBuffer commands_of_block =
                to.secondary([&](Recorder& inside) { repeat(inside, plan, block, true); });
            const std::vector<VkCommandBuffer> handles(std::min(left / block, most_handles),
                                                       commands_of_block);
            while (left >= block) {
                const uint64_t now = std::min<uint64_t>(left / block, handles.size());
                to.vk.vkCmdExecuteCommands(to.commands, static_cast<uint32_t>(now), handles.data());
                left -= now * block;
            }
            to.forget_bindings();
            if (left != 0) repeat(to, plan, left, true);
        } else {
            repeat(to, plan, left, false);
        }
    }

    [[nodiscard]] size_t parts() const noexcept override {
        const auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(times_)));
        return static_cast<size_t>(parts_once() * std::max<uint64_t>(root, 1));
    }
    [[nodiscard]] bool needs_compute_queue() const noexcept override {
        return std::ranges::any_of(operations_, [](const auto& each) { return each->needs_compute_queue(); });
    }

    [[nodiscard]] Moved moved(const StreamPlan& /*plan*/, size_t /*index*/) const override {
        // Exchanged memory is as large as what it stands for, so all repetitions move the same number.
        StreamPlan once;
        declare_once(operations_, once);
        Moved all;
        for (size_t i = 0; i < operations_.size(); ++i) {
            const Moved each = operations_[i]->moved(once, i);
            all.read += each.read * times_;
            all.written += each.written * times_;
        }
        return all;
    }

    [[nodiscard]] OperationPtr renewed() const override {
        std::vector<OperationPtr> now;
        for (size_t i = 0; i < operations_.size(); ++i) {
            OperationPtr next = operations_[i]->renewed();
            if (!next) continue;
            if (now.empty()) now = operations_;
            now[i] = std::move(next);
        }
        return now.empty() ? nullptr : std::make_shared<Repeat>(std::move(now), times_, swaps_);
    }

    [[nodiscard]] bool outdated() const override {
        return std::ranges::any_of(operations_, [](const auto& each) { return each->outdated(); });
    }

    [[nodiscard]] OperationPtr remade() const override {
        return std::make_shared<Repeat>(operations_, times_, swaps_);
    }

    [[nodiscard]] OperationContent content() const override {
        OperationContent content;
        content.kind = "repeat";
        content.operations = operations_;
        content.times = times_;
        content.swaps = swaps_;
        return content;
    }

    [[nodiscard]] OperationPtr substituted(const Substitution& by) const override {
        std::vector<OperationPtr> others;
        for (const auto& operation : operations_)
            if (OperationPtr other = operation->substituted(by)) others.push_back(std::move(other));
        if (others.empty()) return nullptr;
        Swaps swaps;
        for (const auto& [one, other] : swaps_) swaps.emplace_back(by.range(one), by.range(other));
        return std::make_shared<Repeat>(std::move(others), times_, std::move(swaps));
    }

    [[nodiscard]] std::vector<ResourceRange> fixed() const override {
        std::vector<ResourceRange> all;
        for (const auto& operation : operations_)
            for (auto& range : operation->fixed()) all.push_back(std::move(range));
        return all;
    }

private:
    [[nodiscard]] bool is_outdated() const {
        for (size_t i = 0; i < versions_.size(); ++i)
            if (operations_[i]->version() != versions_[i]) return true;
        return false;
    }

    [[nodiscard]] uint64_t parts_once() const noexcept {
        uint64_t parts = 0;
        for (const auto& operation : operations_) parts += operation->parts();
        return parts;
    }

    // Under the graph mutex.
    [[nodiscard]] RepetitionPlan planned() const {
        thread_local HazardPlanner planner;
        StreamPlan plan;
        declare_once(operations_, plan);
        RepetitionPlan result;
        planner.plan(plan.commands(), plan.uses(), plan.host_visible(), result.inside);
        bool written = false;
        Barrier all;
        const auto add = [&](UseKind kind) {
            const Scope scope = scope_of(kind);
            written = written || writes(kind);
            all.src_stages |= scope.stages;
            all.src_access |= write_access(scope.access);
            all.dst_stages |= scope.stages;
            all.dst_access |= scope.access;
        };
        for (const Use& use : plan.uses()) add(use.kind);
        for (const CommandUses& command : plan.commands())
            if (command.full_barrier) add(UseKind::everything);
        if (written) result.between = all;
        return result;
    }

    // `first`: the barrier between two repetitions comes before the first one, too.
    void repeat(Recorder& to, const RepetitionPlan& plan, uint64_t count, bool first) const {
        for (uint64_t i = 0; i < count; ++i) {
            if (i != 0 || first) to.barrier(plan.between);
            const auto& operations = i % 2 != 0 && !exchanged_.empty() ? exchanged_ : operations_;
            auto barrier = plan.inside.barriers.cbegin();
            for (uint32_t j = 0; j < operations.size(); ++j) {
                for (; barrier != plan.inside.barriers.cend() && barrier->before == j; ++barrier)
                    to.barrier(*barrier);
                operations[j]->record(to);
            }
        }
    }

    const std::vector<OperationPtr> operations_;
    const uint64_t times_;
    const Swaps swaps_;
    std::vector<uint64_t> versions_;       // of the operations when their copies were made
    std::vector<OperationPtr> exchanged_;  // empty without swaps
};

void require_repeatable(const Operation& operation) {
    if (dynamic_cast<const Repeat*>(&operation))
        throw Error(ErrorKind::unimplemented,
                    operation.name() + " is repeated already: give its operations to the outer OpRepeat, as "
                                       "often as they run, or evaluate the sequence several times");
    if (operation.syncs() != SyncDirection::none)
        throw Error(ErrorKind::invalid_argument,
                    operation.name() +
                        " moves data between host and device, which is of use only once in a submission: "
                        "record it before or after the OpRepeat");
    if (operation.calls_out())
        throw Error(ErrorKind::unimplemented,
                    operation.name() + " records its own commands, which cannot be repeated: record "
                                       "it as often as it is to run");
}

void require_swaps(const std::vector<OperationPtr>& operations, const Swaps& swaps) {
    std::vector<const ResourceRange*> all;
    for (const auto& [one, other] : swaps) {
        for (const ResourceRange* range : {&one, &other}) {
            range->resource->require_init("exchange");
            if (&range->resource->device() != &operations.front()->device())
                throw Error(ErrorKind::invalid_argument,
                            "The " + range->label() + " to exchange belongs to another Manager");
            for (const ResourceRange* before : all)
                if (*range == *before)
                    throw Error(ErrorKind::invalid_argument,
                                "The " + range->label() +
                                    " is in swap twice, and it can be exchanged with one other only. "
                                    "Where three take turns, give the operation once for each turn");
                else if (range->overlaps(*before))
                    throw Error(ErrorKind::invalid_argument,
                                "The " + range->label() + " overlaps the " + before->label() +
                                    ", and both are in swap: what is exchanged lies apart");
            all.push_back(range);
        }
        require_fit(one, other);
    }
    for (const auto& operation : operations)
        for (const ResourceRange& fixed : operation->fixed())
            for (const ResourceRange* range : all)
                if (fixed.overlaps(*range))
                    throw Error(ErrorKind::unimplemented,
                                operation->name() + " reaches the " + fixed.label() +
                                    " by its address, so it cannot be exchanged: bind it as an argument");
}

}  // namespace

OperationPtr make_repeat(std::vector<OperationPtr> operations, uint64_t times, Swaps swaps) {
    if (operations.empty()) throw Error(ErrorKind::invalid_argument, "OpRepeat has no operation to repeat");
    for (const auto& operation : operations) {
        if (&operation->device() != &operations.front()->device())
            throw Error(ErrorKind::invalid_argument,
                        "OpRepeat got operations of different Managers: " + operation->name() +
                            " belongs to another one than " + operations.front()->name());
        require_repeatable(*operation);
    }
    require_swaps(operations, swaps);
    return std::make_shared<Repeat>(std::move(operations), times, std::move(swaps));
}

std::vector<std::optional<int>> written_last(const std::vector<OperationPtr>& operations,
                                             const Swaps& swaps) {
    std::vector<std::optional<int>> last(swaps.size());
    if (swaps.empty()) return last;
    for (const auto& operation : operations) operation->check();
    const std::lock_guard lock(operations.front()->device().graph_mutex());
    StreamPlan plan;
    declare_once(operations, plan);
    for (size_t i = 0; i < swaps.size(); ++i) {
        const auto writes_to = [&](const CommandUses& command, const ResourceRange& range) {
            bool found = false;
            for (uint32_t u = command.first; u < command.first + command.count; ++u)
                if (writes(plan.uses()[u].kind))
                    plan.each_used(plan.uses()[u], [&](Resource& resource, uint64_t begin, uint64_t end) {
                        found = found || (range.resource.get() == &resource && range.offset < end &&
                                          begin < range.end());
                    });
            return found;
        };
        for (const CommandUses& command : plan.commands()) {
            if (writes_to(command, swaps[i].second))
                last[i] = 1;
            else if (writes_to(command, swaps[i].first))
                last[i] = 0;
        }
    }
    return last;
}

}  // namespace kp
