#include "record/operation.hpp"

#include "base/error.hpp"
#include "base/ranked.hpp"
#include "base/succession.hpp"
#include "device/device.hpp"
#include "pipeline/debugger.hpp"
#include "pipeline/division.hpp"
#include "record/algorithm.hpp"
#include "record/stream_plan.hpp"
#include "record/substitution.hpp"
#include "resource/buffer.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

namespace kp {
namespace {

// Of dispatches whose groups the device reads, for the checks of the host.
constexpr std::array<uint32_t, 3> one_group{1, 1, 1};

// Zero groups in any direction are legal and run nothing.
bool none(const std::array<uint32_t, 3>& groups) {
    return groups[0] == 0 || groups[1] == 0 || groups[2] == 0;
}

// Returns the push constants, with defaults applied, if the device can run the dispatch; otherwise throws.
std::string checked(const Algorithm& algorithm, const std::array<uint32_t, 3>& groups,
                    std::string push_constants) {
    algorithm.require_init("dispatch");
    if (!algorithm.unbindable().empty() && !none(groups))
        throw Error(ErrorKind::unimplemented, "The shader's " + algorithm.unbindable() +
                                                  " is given an empty array of single bytes, for which "
                                                  "Vulkan has no descriptor: run no group, or give "
                                                  "an array with an element");
    if (push_constants.empty()) push_constants = algorithm.push_constants();
    const auto& push = algorithm.pipeline().layout->push;
    if (push_constants.empty() && push.size != 0)
        push_constants.assign(push.size,
                              '\0');  // a block without given values reads as zero, not as noise
    if (push_constants.size() != push.size)
        throw Error(ErrorKind::invalid_argument,
                    "Push constants of " + std::to_string(push_constants.size()) +
                        " bytes do not fit the shader's block of " + std::to_string(push.size) + " bytes");
    return push_constants;
}

void check_references(const Device& device, const std::vector<ResourceRange>& references) {
    for (const auto& range : references) {
        if (&range.resource->device() != &device)
            throw Error(ErrorKind::invalid_argument,
                        "The " + range.label() + " that a shader refers to belongs to another Manager");
        range.resource->require_init("refer to");
    }
}

// The numbers of groups, as vkCmdDispatchIndirect reads them.
constexpr uint64_t indirect_bytes = 3 * sizeof(uint32_t);

void check_memory(const Device& device, const DispatchMemory& memory) {
    check_references(device, memory.references);
    const ResourceRange& groups = memory.indirect;
    if (!groups.resource) return;
    const auto refuse = [&](const std::string& why) {
        throw Error(ErrorKind::invalid_argument,
                    "The " + groups.label() + " cannot give the numbers of groups: " + why);
    };
    if (&groups.resource->device() != &device) refuse("it belongs to another Manager");
    groups.resource->require_init("read the numbers of groups from");
    if (!dynamic_cast<const Buffer*>(groups.resource.get())) refuse("it is an image. Use a uint32 tensor");
    if (groups.size < indirect_bytes)
        refuse("it has " + std::to_string(groups.size) + " bytes; three uint32 have " +
               std::to_string(indirect_bytes));
    if (groups.offset % sizeof(uint32_t) != 0)
        refuse("it begins at byte " + std::to_string(groups.offset) +
               " of its memory; the device reads at multiples of 4");
}

class Dispatch final : public BoundDispatch {
public:
    Dispatch(std::shared_ptr<Algorithm> algorithm, std::array<uint32_t, 3> groups, Launch launch,
             std::string push_constants, DispatchMemory memory, std::optional<OwnChoice> own)
        : BoundDispatch(algorithm->shared_device(), "OpAlgoDispatch"),
          algorithm_(std::move(algorithm)),
          memory_(std::move(memory)),
          groups_(groups),
          launch_(std::move(launch)),
          push_constants_(std::move(push_constants)),
          own_(own) {}

    // An algorithm may be named after its dispatch was made.
    [[nodiscard]] std::string name() const override {
        const std::string given = algorithm()->name();
        return given.empty() ? Operation::name() : given;
    }

    void check() const override {
        std::shared_ptr<Algorithm> algorithm;
        {
            const std::lock_guard lock(changing_);
            algorithm = algorithm_;
            check_memory(device(), memory_);
        }
        algorithm->check();
    }

    void declare(StreamPlan& plan) const override {
        plan.mention(*algorithm_);
        // replace() drops these while recordings made with them live on.
        plan.keep(algorithm_);
        plan.keep(launch_.pipeline);
        // Also mention buffers of which the shader reads only the length. That is not an access, but they
        // must not be destroyed while a dispatch runs.
        for (const auto& argument : algorithm_->arguments())
            if (argument.range.resource) plan.mention(*argument.range.resource);
        for (const auto& use : algorithm_->uses()) plan.use(use.range, use.use, use.whole);
        const ShaderInfo& info = algorithm_->shader()->info();
        for (const auto& range : memory_.references) {
            plan.mention(*range.resource);
            plan.keep(range.resource);
            if (info.physical_storage_buffer)
                plan.use(range,
                         info.physical_storage_writes ? UseKind::shader_read_write : UseKind::shader_read);
        }
        if (memory_.indirect.resource) {
            plan.keep(memory_.indirect.resource);
            plan.use(memory_.indirect, UseKind::indirect_read);
        }
        // The shader reaches memory without a binding, possibly beyond its declared references.
        if (info.physical_storage_buffer) plan.full_barrier();
    }

    [[nodiscard]] std::array<uint32_t, 3> groups() const noexcept override {
        return memory_.indirect.resource ? std::array<uint32_t, 3>{} : groups_;
    }

    void record(Recorder& to) const override {
        if (none(groups_)) return;
        const auto& [pipeline_made, first, base, rest] = launch_;
        const Pipeline& pipeline = *pipeline_made;
        Debugger* const debugger =
            pipeline.layout->instruments != VK_NULL_HANDLE ? device().debugger() : nullptr;
        const Debugger::Dispatch facts = debugger ? debug_facts(*debugger, pipeline) : Debugger::Dispatch{};
        const Debugger::Operation debugged(debugger, to.commands, to.operation, name(), &facts);
        bind(to);
        if (const ResourceRange& from = memory_.indirect; from.resource) {
            to.vk.vkCmdDispatchIndirect(to.commands, static_cast<const Buffer&>(*from.resource).handle(),
                                        from.offset);
            return;
        }
        if (to.allowed > 0 && !debugger) [[unlikely]] {
            record_parts(to);
            return;
        }
        if (first[0] != 0) to.vk.vkCmdDispatch(to.commands, first[0], first[1], first[2]);
        if (rest[0] == 0) [[likely]]
            return;
        order_parts(to);
        to.vk.vkCmdDispatchBase(to.commands, base[0], base[1], base[2], rest[0], rest[1], rest[2]);
    }

    static void order_parts(Recorder& to) {
        // Groups of one dispatch are not ordered either, but validation layers do not know that these two
        // dispatches are one.
        constexpr VkMemoryBarrier between{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr,
                                          VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
                                          VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
        to.vk.vkCmdPipelineBarrier(to.commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                   VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &between, 0, nullptr, 0,
                                   nullptr);
    }

    void bind(Recorder& to) const {
        const PipelineLayout& layout = *launch_.pipeline->layout;
        to.bind(launch_.pipeline->handle(), layout.handle(), algorithm_->sets());
        if (layout.push.size != 0)
            to.vk.vkCmdPushConstants(to.commands, layout.handle(), VK_SHADER_STAGE_COMPUTE_BIT,
                                     layout.push.offset, layout.push.size, push_constants_.data());
    }

    // So that a watchdog lets each part end; in the order of the groups.
    void record_parts(Recorder& to) const {
        const auto& [pipeline, first, base, rest] = launch_;
        const uint64_t groups = uint64_t{groups_[0]} * groups_[1] * groups_[2];
        const double seconds = pipeline->seconds_of_group;
        const bool whole = !pipeline->divisible || (seconds == 0 && to.repeated);
        const uint64_t parts = whole ? 1 : parts_of(groups, seconds, to.allowed);
        bool later = false;
        for (const Box& all : {Box{{}, first}, Box{base, rest}}) {
            if (all.groups[0] == 0) continue;
            for (const Box& box : divided(all, parts)) {
                if (std::exchange(later, true)) order_parts(to);
                const auto count = static_cast<double>(box.groups[0]) * box.groups[1] * box.groups[2];
                if (to.spend(seconds > 0 ? seconds * count : to.allowed)) bind(to);
                if (pipeline->divisible)
                    to.vk.vkCmdDispatchBase(to.commands, box.base[0], box.base[1], box.base[2], box.groups[0],
                                            box.groups[1], box.groups[2]);
                else
                    to.vk.vkCmdDispatch(to.commands, box.groups[0], box.groups[1], box.groups[2]);
            }
        }
        to.timed.push_back({to.operation, pipeline, groups, parts});
    }

    [[nodiscard]] Debugger::Dispatch debug_facts(Debugger& debugger, const Pipeline& pipeline) const {
        Debugger::Dispatch facts;
        facts.module = pipeline.shader->debug_module();
        if (!debugger.shadows(facts.module)) return facts;
        facts.groups = groups_;
        if (const ResourceRange& from = memory_.indirect; from.resource) {
            facts.counts = static_cast<const Buffer&>(*from.resource).handle();
            facts.counts_offset = from.offset;
        }
        facts.local_size = pipeline.local_size;
        facts.shared_bytes = pipeline.shared_bytes;
        for (const Argument& each : algorithm_->arguments()) {
            if (!each.range.resource || each.element != 0) continue;
            const auto [memory, begin, end] = each.range.place();
            facts.memory.push_back({each.set, each.binding, memory, begin, end});
        }
        return facts;
    }

    [[nodiscard]] OperationPtr renewed() const override {
        if (own_) return renewed_for(algorithm_->successor());
        if (!superseded_.load(std::memory_order_acquire)) return nullptr;
        const std::lock_guard lock(device().graph_mutex());
        return succession_.latest();
    }

    [[nodiscard]] bool outdated() const override {
        return own_ ? algorithm_->successor() != nullptr : superseded_.load(std::memory_order_acquire);
    }

    void supersede(const std::shared_ptr<BoundDispatch>& next) override {
        std::shared_ptr<BoundDispatch> before;  // freed after the lock
        const std::lock_guard lock(device().graph_mutex());
        before = succession_.pass_on(next, dynamic_cast<Dispatch&>(*next).succession_);
        superseded_.store(true, std::memory_order_release);
    }

    [[nodiscard]] OperationContent content() const override {
        OperationContent content;
        content.kind = "dispatch";
        const std::lock_guard lock(device().graph_mutex());
        content.algorithm = algorithm_;
        content.groups = groups_;
        content.push_constants = push_constants_;
        content.memory = memory_;
        return content;
    }

    [[nodiscard]] OperationPtr substituted(const Substitution& by) const override {
        OperationContent now = content();
        if (now.memory.indirect.resource) now.memory.indirect = by.range(now.memory.indirect);
        return make_bound_dispatch(now.algorithm->substituted(by), now.groups, std::move(now.push_constants),
                                   std::move(now.memory));
    }

    [[nodiscard]] std::vector<ResourceRange> fixed() const override { return memory_.references; }
    [[nodiscard]] bool needs_compute_queue() const noexcept override { return true; }
    [[nodiscard]] uint64_t version() const noexcept override {
        return version_.load(std::memory_order_acquire);
    }

    [[nodiscard]] std::shared_ptr<Algorithm> algorithm() const override {
        const std::lock_guard lock(changing_);
        return algorithm_;
    }

    [[nodiscard]] DispatchMemory memory() const override {
        const std::lock_guard lock(changing_);
        return memory_;
    }

    void set(std::array<uint32_t, 3> groups, std::string push_constants,
             std::vector<ResourceRange> references) override {
        replace(algorithm(), groups, std::move(push_constants), {std::move(references), memory().indirect});
    }

    void replace(std::shared_ptr<Algorithm> algorithm, std::array<uint32_t, 3> groups,
                 std::string push_constants, DispatchMemory memory) override {
        if (&algorithm->device() != &device())
            throw Error(ErrorKind::invalid_argument, "The algorithm belongs to another Manager");
        push_constants = checked(*algorithm, groups, std::move(push_constants));
        check_memory(device(), memory);
        Launch launch = algorithm->launch(groups);
        // Commands are recorded under the same lock.
        const std::lock_guard lock(device().graph_mutex());
        groups_ = groups;
        launch_ = std::move(launch);
        push_constants_ = std::move(push_constants);
        version_.fetch_add(1, std::memory_order_acq_rel);
        algorithm_->outdate_recordings();
        const std::lock_guard change(changing_);
        // The old ones are freed with their last recording, or with the arguments, after the locks.
        algorithm_.swap(algorithm);
        std::swap(memory_, memory);
    }

private:
    [[nodiscard]] OperationPtr renewed_for(std::shared_ptr<Algorithm> algorithm) const {
        if (!algorithm) return nullptr;
        std::array<uint32_t, 3> groups = memory_.indirect.resource ? one_group : algorithm->workgroup();
        if (own_->invocations) {
            const auto& local_size = algorithm->pipeline().local_size;
            for (size_t axis = 0; axis < 3; ++axis) {
                const uint64_t size = std::max(local_size[axis], 1u);
                const uint64_t count = ((*own_->invocations)[axis] + size - 1) / size;
                groups[axis] = static_cast<uint32_t>(std::min<uint64_t>(count, UINT32_MAX));
            }
        }
        return make_dispatch(std::move(algorithm), groups,
                             own_->push_constants ? push_constants_ : std::string(), *own_, memory_.indirect);
    }

    // The algorithm and the memory change under this lock and the graph mutex, so either lock is enough
    // to read them: check() is called with and without the graph mutex.
    mutable RankedMutex changing_{LockRank::bound_dispatch};
    std::shared_ptr<Algorithm> algorithm_;
    DispatchMemory memory_;
    std::array<uint32_t, 3> groups_;  // as requested
    Launch launch_;
    std::string push_constants_;
    std::optional<OwnChoice>
        own_;  // for a dispatch that follows its algorithm; set() and replace() are not for those
    Succession<BoundDispatch> succession_;  // under the graph mutex
    std::atomic<bool> superseded_{false};
    std::atomic<uint64_t> version_{0};
};

class Custom final : public Operation {
public:
    Custom(std::shared_ptr<Device> device, std::string name, std::function<void(VkCommandBuffer)> record,
           CustomUses uses)
        : Operation(std::move(device), std::move(name)), record_(std::move(record)), uses_(std::move(uses)) {}

    void check() const override {
        for (const auto* list : {&uses_.reads, &uses_.writes})
            for (const auto& range : *list) range.resource->require_init("use");
    }

    void declare(StreamPlan& plan) const override {
        if (!uses_.declared) {
            plan.full_barrier();
            return;
        }
        for (const auto& range : uses_.reads) plan.use(range, UseKind::any_read);
        for (const auto& range : uses_.writes) plan.use(range, UseKind::everything);
    }

    void record(Recorder& to) const override {
        // Its dispatches may be of shaders with instruments.
        const Debugger::Operation debugged(device().debugger(), to.commands, to.operation, name(), nullptr);
        record_(to.commands);
        to.forget_bindings();
    }

    [[nodiscard]] bool calls_out() const noexcept override { return true; }

private:
    std::function<void(VkCommandBuffer)> record_;
    CustomUses uses_;
};

}  // namespace

OperationPtr Operation::substituted(const Substitution&) const {
    throw Error(
        ErrorKind::unimplemented,
        name_ +
            " holds the memory that it was made for and cannot run on copies of it, which streaming needs. "
            "Evaluate the sequence for each frame instead");
}

OperationContent Operation::content() const { return {}; }

OperationPtr make_dispatch(std::shared_ptr<Algorithm> algorithm, std::array<uint32_t, 3> groups,
                           std::string push_constants, OwnChoice own, ResourceRange indirect) {
    push_constants = checked(*algorithm, groups, std::move(push_constants));
    DispatchMemory memory{{}, std::move(indirect)};
    check_memory(algorithm->device(), memory);
    Launch launch = algorithm->launch(groups);
    return std::make_shared<Dispatch>(std::move(algorithm), groups, std::move(launch),
                                      std::move(push_constants), std::move(memory), own);
}

std::shared_ptr<BoundDispatch> make_bound_dispatch(std::shared_ptr<Algorithm> algorithm,
                                                   std::array<uint32_t, 3> groups, std::string push_constants,
                                                   DispatchMemory memory) {
    push_constants = checked(*algorithm, groups, std::move(push_constants));
    check_memory(algorithm->device(), memory);
    Launch launch = algorithm->launch(groups);
    return std::make_shared<Dispatch>(std::move(algorithm), groups, std::move(launch),
                                      std::move(push_constants), std::move(memory), std::nullopt);
}

Moved Operation::moved(const StreamPlan& plan, size_t index) const {
    return plan.moved(plan.commands()[index]);
}

OperationPtr make_custom(std::shared_ptr<Device> device, std::string name,
                         std::function<void(VkCommandBuffer)> record, CustomUses uses) {
    for (const auto* list : {&uses.reads, &uses.writes})
        for (const auto& range : *list)
            if (&range.resource->device() != device.get())
                throw Error(ErrorKind::invalid_argument,
                            "The " + range.label() + " that " + name +
                                " declares belongs to another Manager. Copy it over with .to(mgr)");
    return std::make_shared<Custom>(std::move(device), std::move(name), std::move(record), std::move(uses));
}

}  // namespace kp
