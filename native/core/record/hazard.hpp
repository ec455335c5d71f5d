// Computes, from the uses of a recorded stream, the fewest barriers that order them. Uses no device handle
// and is tested without one.
//
// The model
//
// Commands i < j conflict if they use the same byte and one of them writes it. Such a pair needs a barrier
// somewhere in (i, j] ("barrier p" stands immediately before command p). All barriers are global, so one
// barrier can serve any number of pairs. Finding the positions is then the stabbing of intervals by the
// fewest points, and the greedy answer is a minimum: walk the commands, and put a barrier before j only if
// some pair that ends at j has none yet.
//
// Only these pairs need to be considered, per byte; all others follow, because the commands between them
// are ordered:
//   read after write    the last writer w -> j. Execution and memory: w is made available, and visible
//                       to j's reads.
//   write after read    each read since the last write -> j. Execution only. The last writer itself is then
//                       ordered too: it was made available before that read, and Vulkan's memory model
//                       requires no more of two writes.
//   write after write   the last writer -> j, if nothing read in between. Execution and memory.
// A pair is served directly: one barrier has i's scope in its source and j's in its destination. If there
// are several barriers in (i, j], the one that needs the fewest new bits is widened.
//
// An *epoch* is the number of barriers so far, plus one. Commands of one epoch have no barrier between
// them, so the epoch is all that is kept of a command's position: a conflict with the present epoch needs a
// new barrier, and a conflict with an older epoch e may use any of barriers[e - 1 ...]. Of the reads since
// a write, only the last epoch per stage matters: a barrier that orders that read also orders the earlier
// ones of that stage.
//
// Bytes are cut at every begin and end of a use into *atoms*, and neighbouring atoms with one history form
// a *run*. A write leaves one run behind; a read that crosses many runs fuses them. Fusing may make masks
// wider than necessary, but never adds a barrier (see fuse). So the cost of a plan stays near n log n in
// the number of uses.
//
// A custom operation without declarations has a full barrier before it and one before the next command with
// uses; the latter orders everything older than itself (epochs below floor_).
//
// The stream is submitted many times, after work that it does not know, including custom operations in any
// stage. The head barrier therefore waits for everything and makes every write available. Its destination
// is the uses that no earlier use in the stream leads to. The host reads once the stream is done: the tail
// makes the last writes to host-visible memory visible to it. (A read by the host declared inside the
// stream also means "once the stream is done".)
#pragma once

#include "record/access.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kp {

// One access of one command to a byte range [begin, end) of one resource. `resource` is a small dense
// number that the stream assigns (0..n-1). An image is one range [0, 1). The same command may use a
// resource several times. An empty range is ignored.
struct Use {
    uint32_t resource = 0;
    UseKind kind = UseKind::everything;
    uint64_t begin = 0;
    uint64_t end = UINT64_MAX;
    // Whether the operation, after those before it of the same call, leaves no byte of the range as it was;
    // none if that is not known. It orders nothing.
    std::optional<bool> whole;
};

// A custom operation without declarations conflicts with every use before and after it.
struct CommandUses {
    uint32_t first = 0;  // index into the flat list of uses
    uint32_t count = 0;
    bool full_barrier = false;
};

// A global memory barrier, to be recorded immediately before command `before`.
struct Barrier {
    uint32_t before = 0;
    VkPipelineStageFlags src_stages = 0;
    VkPipelineStageFlags dst_stages = 0;
    VkAccessFlags src_access = 0;
    VkAccessFlags dst_access = 0;

    friend bool operator==(const Barrier&, const Barrier&) = default;
};

struct BarrierPlan {
    // Orders the stream after earlier submissions on this queue; recorded first. src_stages == 0: not
    // needed (no uses).
    Barrier head;
    std::vector<Barrier> barriers;  // ascending `before`
    // Makes host-visible writes visible to the host; recorded last (before == number of commands).
    // src_stages == 0: not needed.
    Barrier tail;
};

// `host_visible[r]` is 1 if the host can see the memory of resource r. Reuses the storage of `plan` and of
// the planner: once both have grown to the size of the streams, nothing is allocated.
class HazardPlanner {
public:
    void plan(std::span<const CommandUses> commands, std::span<const Use> uses,
              std::span<const uint8_t> host_visible, BarrierPlan& out);

private:
    using Epoch = uint32_t;  // 0: never

    // The history of a run's bytes so far.
    struct History {
        Epoch writer = 0;
        VkPipelineStageFlags writer_stages = 0;
        VkAccessFlags writer_access = 0;
        VkPipelineStageFlags beside_stages =
            0;                           // other stages in which the writing command also reads these bytes
        VkAccessFlags visible = 0;       // reads to which the last write has been made visible
        std::array<Epoch, 4> readers{};  // the last read since that write, by kReaderStages
        bool unwritten = true;           // some of these bytes hold data of earlier submissions

        friend bool operator==(const History&, const History&) = default;
    };
    struct Run {
        uint32_t end = 0;  // the atom after its last one
        History history;
    };
    struct AtomSpan {
        uint32_t first = 0;
        uint32_t last = 0;  // exclusive
    };
    struct Track {  // one resource
        uint64_t stamp = 0;
        uint64_t begin = 0;
        uint64_t end = 0;
        uint32_t first_edge = 0;
        uint32_t edge_count = 0;
        AtomSpan atoms;
        bool cut = false;  // its uses have more than one range
    };
    struct Edge {
        uint32_t resource = 0;
        uint64_t at = 0;
    };
    struct Pair {
        Epoch since = 0;
        Scope src;
        Scope dst;

        friend bool operator==(const Pair&, const Pair&) = default;
    };
    // The atoms at which runs begin: a bit set with a summary, for "the last one at or before".
    class StartSet {
    public:
        void reset(size_t count);
        void insert(uint32_t atom) noexcept;
        void erase(uint32_t atom) noexcept;
        [[nodiscard]] uint32_t at_or_before(uint32_t atom) const noexcept;  // there must be one

    private:
        std::vector<uint64_t> words_;
        std::vector<uint64_t> summary_;
    };

    void lay_out(std::span<const Use> uses);
    void cut_edges(std::span<const Use> uses);
    void collect_full(uint32_t index, BarrierPlan& out);
    [[nodiscard]] bool collect(uint32_t index, const CommandUses& command, std::span<const Use> uses,
                               BarrierPlan& out);
    void collect_read(const History& history, Scope scope, BarrierPlan& out);
    void collect_write(const History& history, Scope scope, BarrierPlan& out);
    void add_pair(Epoch since, Scope src, Scope dst);
    void serve_pairs(uint32_t index, BarrierPlan& out);
    void apply(const CommandUses& command, std::span<const Use> uses, Epoch now);
    void apply_write(AtomSpan span, Scope scope, Epoch now);
    void apply_read(AtomSpan span, Scope scope, Epoch now);
    void isolate(AtomSpan span);
    void cut_run(uint32_t run, uint32_t at);
    void fuse(AtomSpan span);
    void finish(uint32_t command_count, std::span<const Use> uses, std::span<const uint8_t> host_visible,
                BarrierPlan& out) const;
    [[nodiscard]] bool lives(Epoch epoch) const noexcept { return epoch >= floor_; }

    // Kept between calls only to reuse the memory.
    std::vector<Track> tracks_;
    std::vector<uint32_t> touched_;
    std::vector<Edge> edges_;
    std::vector<AtomSpan> spans_;  // one per use
    std::vector<Run> runs_;        // valid at the atoms in starts_
    std::vector<Pair> pairs_;
    StartSet starts_;
    uint64_t stamp_ = 0;

    // The state of the present call.
    Epoch floor_ = 1;
    bool anything_before_ = false;
    bool host_reads_ = false;
    bool full_seen_ = false;
    bool full_pending_ = false;  // the last command with uses was a custom operation without declarations
};

}  // namespace kp
