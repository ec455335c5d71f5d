// The interface between operations and the stream that is being built: the plan, to which they declare
// their uses, and the recorder, to which they append commands.
#pragma once

#include "record/access.hpp"
#include "record/hazard.hpp"
#include "record/host_edges.hpp"
#include "record/mapped_ranges.hpp"
#include "resource/object.hpp"
#include "resource/resource.hpp"
#include "sync/freshness.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace kp {

class Image;
struct Pipeline;

// One entry for each object that a stream uses, in order of first use.
struct PlannedObject {
    Object* object = nullptr;
    bool written = false;
    bool used = false;         // the device's side is used
    bool overwritten = false;  // ... and the first use writes all of it
    bool covered = false;      // so the recording brings its contents (Recording::covers)
    bool disjoint = false;     // it needs no order with other queues (Stream's `disjoint`)
    uint32_t link = 0;         // this stream's index in the object's list of users, once registered
};

class StreamPlan {
public:
    // Starts over. `epoch` is new for the device, so that numbers that other plans gave to objects are not
    // mistaken for this plan's. `atom`: the device's nonCoherentAtomSize.
    void begin(uint64_t epoch, uint64_t atom);
    void begin_operation();

    // The device's side. `whole` as in a Use.
    void use(const ResourceRange& range, UseKind kind, std::optional<bool> whole = {});
    // Writes all of the range. If that is the whole resource and its first use, the resource needs no
    // contents before.
    void overwrite(const ResourceRange& range);
    void use_host(const ResourceRange& range, UseKind kind);  // the host copy
    void mention(Object& object);  // used by the recording, but without a memory access
    // Keeps an object that the operation may drop before the plan does.
    using Kept = std::vector<std::shared_ptr<const void>>;
    void keep(std::shared_ptr<const void> object) { kept_.push_back(std::move(object)); }
    // Takes the kept objects, for the caller to drop. begin() must not drop them, because it runs under a
    // lock, and before the stream has left these objects' lists of users.
    [[nodiscard]] Kept take_kept() noexcept { return std::exchange(kept_, {}); }
    void bring_to_device(const ResourceRange& range);  // the host wrote to the one memory
    // A sync operation moves the range, so that both sides are the same after this command.
    void note_sync(const ResourceRange& range, SyncDirection direction);
    // Calls each(slot, effect), in order, with the effects of a run on device memory and host copies of the
    // objects that have both.
    template <typename Each>
    void each_effect(const Each& each) const;
    // The same with the sync operations only.
    template <typename Each>
    void each_sync(const Each& each) const {
        for (const Synced& synced : synced_) each(synced.slot, synced.effect);
    }
    // True if the recording uses (or writes, with `writers_only`) device memory of the object in `slot`
    // from byte `begin` to `end`.
    [[nodiscard]] bool touches(uint32_t slot, uint64_t begin, uint64_t end, bool writers_only) const noexcept;
    // The operation does not declare its uses.
    void full_barrier();
    // True if there is such an operation.
    [[nodiscard]] bool undeclared() const noexcept { return undeclared_; }
    // Call it when all operations have declared their uses. Decides which bytes of host copies go through
    // slots.
    void settle_host_side();
    // Calls each(resource, begin, end) with the bytes of each resource that this use of device memory is one
    // of: several, if they are over the same memory of the process.
    template <typename Each>
    void each_used(const Use& use, const Each& each) const;

    // The bytes of device memory that a command declares to read and to write, each at most once.
    [[nodiscard]] Moved moved(const CommandUses& command) const;

    [[nodiscard]] std::vector<PlannedObject>& objects() noexcept { return objects_; }
    [[nodiscard]] const std::vector<PlannedObject>& objects() const noexcept { return objects_; }
    [[nodiscard]] const std::vector<CommandUses>& commands() const noexcept { return commands_; }
    [[nodiscard]] const std::vector<Use>& uses() const noexcept { return uses_; }
    [[nodiscard]] const std::vector<uint8_t>& host_visible() const noexcept { return host_visible_; }
    // Ranges of non-coherent memory to flush before the submission and to invalidate after it, each list
    // settled (see MappedRanges).
    [[nodiscard]] const std::vector<VkMappedMemoryRange>& flushes() const noexcept {
        return flushes_.ranges();
    }
    [[nodiscard]] const std::vector<VkMappedMemoryRange>& invalidates() const noexcept {
        return invalidates_.ranges();
    }
    // Atoms of host copies that are partly held by slots, and the bytes to copy there from the slots (see
    // record/host_edges.hpp).
    struct Landing {
        std::byte* to = nullptr;
        uint64_t slot = 0;
        uint64_t size = 0;
    };
    [[nodiscard]] uint64_t slot_bytes() const noexcept { return edges_.slot_bytes(); }
    [[nodiscard]] const std::vector<VkMappedMemoryRange>& edges() const noexcept { return edge_atoms_; }
    [[nodiscard]] const std::vector<Landing>& landings() const noexcept { return landings_; }
    // Call it while recording, operation by operation: the places to which a download of a host copy writes
    // its bytes, or from which an upload reads them.
    [[nodiscard]] std::vector<HostPiece> host_pieces(const ResourceRange& range, SyncDirection direction);
    // An operation must be made again before the plan can be made (see Operation::remade).
    void ask_remaking() noexcept { asks_remaking_ = true; }
    [[nodiscard]] bool asks_remaking() const noexcept { return asks_remaking_; }

private:
    uint32_t object_slot(Object& object);
    // The slot of what orders the resource in `slot`: that one, or another.
    uint32_t ordering_slot(Resource& resource, uint32_t slot);
    void settle_downloads();
    void add_use(uint32_t resource, UseKind kind, const ResourceRange& range, std::optional<bool> whole = {});
    static void add_range(MappedRanges& ranges, const Allocation& memory, const ResourceRange& part);

    uint64_t epoch_ = 0;
    bool asks_remaking_ = false;
    bool undeclared_ = false;
    std::vector<PlannedObject> objects_;
    Kept kept_;
    std::vector<CommandUses> commands_;
    std::vector<Use> uses_;
    std::vector<uint8_t> host_visible_;   // by resource number
    std::vector<uint32_t> device_slots_;  // by resource number: the object's slot; none for a host copy
    static constexpr uint32_t no_slot = UINT32_MAX;
    std::vector<uint32_t> device_numbers_;  // object slot -> resource number of the device's side + 1
    // Bytes of the one memory that are flushed and invalidated without a use by the device: slot, begin,
    // end.
    struct Brought {
        uint32_t slot = 0;
        uint64_t begin = 0;
        uint64_t end = 0;
    };
    std::vector<Brought> brought_;
    struct Synced {
        uint32_t slot = 0;
        uint32_t command = 0;
        Effect effect;
    };
    std::vector<Synced> synced_;  // in the order of the commands
    MappedRanges flushes_;
    MappedRanges invalidates_;
    struct HostCopyNumber {
        const Resource* resource = nullptr;
        uint32_t number = 0;
    };
    std::vector<HostCopyNumber> downloaded_;  // host copies that are not coherent; in the order of
                                              // their addresses if some bytes go through slots
    HostEdges edges_;
    std::vector<VkMappedMemoryRange> edge_atoms_;
    std::vector<Landing> landings_;
};

template <typename Each>
void StreamPlan::each_used(const Use& use, const Each& each) const {
    for (size_t slot = 0; slot < objects_.size(); ++slot) {
        if (device_numbers_[slot] != use.resource + 1 || !objects_[slot].used) continue;
        auto& resource = static_cast<Resource&>(*objects_[slot].object);
        const uint64_t first = resource.first_byte();
        const uint64_t begin = std::max(use.begin, first);
        const uint64_t end = std::min(use.end, first + resource.nbytes());
        if (begin < end) each(resource, begin - first, end - first);
    }
}

template <typename Each>
void StreamPlan::each_effect(const Each& each) const {
    auto synced = synced_.begin();
    for (uint32_t i = 0; i < commands_.size(); ++i) {
        if (synced != synced_.end() && synced->command == i) {
            // All uses of a sync operation are moves.
            for (; synced != synced_.end() && synced->command == i; ++synced)
                each(synced->slot, synced->effect);
            continue;
        }
        const CommandUses& command = commands_[i];
        for (uint32_t u = command.first; u < command.first + command.count; ++u) {
            const Use& use = uses_[u];
            if (!writes(use.kind) || device_slots_[use.resource] == no_slot) continue;
            each(device_slots_[use.resource], Effect{use.begin, use.end, Effect::Kind::write});
        }
    }
}

// Secondary command buffers of one recording. They live as long as its commands.
class Secondaries {
public:
    [[nodiscard]] virtual VkCommandBuffer make() = 0;
    // Ends the primary command buffer, and begins another one that runs after it.
    [[nodiscard]] virtual VkCommandBuffer next() = 0;

protected:
    ~Secondaries() = default;
};

// The open command buffer and its bound state.
class Recorder {
public:
    // `slots`, from the byte `first_slot` on: the buffer for the bytes that the plan puts into slots.
    Recorder(const VolkDeviceTable& table, VkCommandBuffer buffer, StreamPlan& of, VkBuffer slots,
             uint64_t first_slot, Secondaries& secondaries)
        : vk(table),
          commands(buffer),
          plan_(of),
          slots_(slots),
          first_slot_(first_slot),
          secondaries_(secondaries) {}

    const VolkDeviceTable& vk;
    VkCommandBuffer commands;
    uint32_t operation = 0;  // the number, within the recording, of the one that is recorded
    // With a watchdog: the seconds that a command buffer may take; 0: there is none.
    double allowed = 0;
    bool repeated = false;  // the commands are those of a repetition
    // Dispatches with a time that is measured, and the parts that they were recorded in.
    struct Timed {
        uint32_t operation = 0;
        std::shared_ptr<Pipeline> pipeline;
        uint64_t groups = 0;
        uint64_t parts = 0;
    };
    std::vector<Timed> timed;
    // Call it before commands that take so many seconds. True if a command buffer begins with them, in which
    // nothing is bound.
    bool spend(double seconds) {
        spent_ += seconds;
        if (spent_ <= allowed || spent_ == seconds || is_secondary_) return false;
        commands = secondaries_.next();
        forget_bindings();
        spent_ = seconds;
        return true;
    }

    // Copies between a buffer and its host copy.
    void sync(const ResourceRange& range, VkBuffer buffer, SyncDirection direction);

    // `sets` by set number, null for none. They must stay in place as long as the recording.
    void bind(VkPipeline pipeline, VkPipelineLayout layout, const std::vector<VkDescriptorSet>& sets) {
        if (pipeline_ != pipeline) {
            vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
            pipeline_ = pipeline;
        }
        if (sets_ == &sets && layout_ == layout) return;
        sets_ = &sets;
        layout_ = layout;
        const auto count = static_cast<uint32_t>(sets.size());
        for (uint32_t first = 0, end = 0; first < count; first = end + 1) {
            for (end = first; end < count && sets[end] != VK_NULL_HANDLE;) ++end;
            if (end != first)
                vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, first,
                                           end - first, &sets[first], 0, nullptr);
        }
    }
    void barrier(const Barrier& barrier) const;
    // A secondary command buffer that this recording may execute any number of times, and that `record`
    // fills.
    template <typename Record>
    [[nodiscard]] VkCommandBuffer secondary(const Record& record) {
        const VkCommandBuffer made = begin_secondary();
        Recorder inside(vk, made, plan_, slots_, first_slot_, secondaries_);
        inside.operation = operation;
        inside.allowed = allowed;
        inside.repeated = repeated;
        inside.is_secondary_ = true;
        record(inside);
        end_secondary(made);
        return made;
    }
    void forget_bindings() noexcept {
        pipeline_ = VK_NULL_HANDLE;
        sets_ = nullptr;
        layout_ = VK_NULL_HANDLE;
    }

private:
    [[nodiscard]] VkCommandBuffer begin_secondary();
    void end_secondary(VkCommandBuffer made) const;

    StreamPlan& plan_;
    VkBuffer slots_ = VK_NULL_HANDLE;
    uint64_t first_slot_ = 0;
    double spent_ = 0;  // of the command buffer
    bool is_secondary_ = false;
    Secondaries& secondaries_;
    VkPipeline pipeline_ = VK_NULL_HANDLE;
    VkPipelineLayout layout_ = VK_NULL_HANDLE;
    const std::vector<VkDescriptorSet>* sets_ = nullptr;
};

}  // namespace kp
