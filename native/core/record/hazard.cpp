#include "record/hazard.hpp"

#include <algorithm>
#include <bit>

namespace kp {
namespace {

// A read that crosses more runs than this fuses them.
constexpr uint32_t kMostRunsPerRead = 16;

// The stages of the uses that only read; each of these uses has exactly one stage.
constexpr std::array<VkPipelineStageFlags, 4> kReaderStages{
    VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT,
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
    VK_PIPELINE_STAGE_TRANSFER_BIT,
    VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
};

constexpr Scope kAllWrites{VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_ACCESS_MEMORY_WRITE_BIT};
constexpr Scope kAllAccesses{VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                             VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};

size_t reader_slot(VkPipelineStageFlags stage) noexcept {
    // Any other stage counts as the last one, which includes it.
    return static_cast<size_t>(std::find(kReaderStages.begin(), kReaderStages.end() - 1, stage) -
                               kReaderStages.begin());
}

// The stages that a mask includes. ALL_COMMANDS does not include the host.
VkPipelineStageFlags all_stages_in(VkPipelineStageFlags stages) noexcept {
    return (stages & VK_PIPELINE_STAGE_ALL_COMMANDS_BIT) != 0
               ? stages | ~static_cast<VkPipelineStageFlags>(VK_PIPELINE_STAGE_HOST_BIT)
               : stages;
}

VkAccessFlags all_access_in(VkAccessFlags access) noexcept {
    VkAccessFlags all = access;
    if ((access & VK_ACCESS_MEMORY_READ_BIT) != 0) all |= read_access(~0U) & ~VK_ACCESS_HOST_READ_BIT;
    if ((access & VK_ACCESS_MEMORY_WRITE_BIT) != 0) all |= write_access(~0U);
    return all;
}

// A source scope includes the logically earlier stages: a dispatch fetches its arguments before its shader
// runs.
VkPipelineStageFlags waited_for(VkPipelineStageFlags stages) noexcept {
    VkPipelineStageFlags all = all_stages_in(stages);
    if ((all & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT) != 0) all |= VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
    return all;
}

void widen(Barrier& barrier, Scope src, Scope dst) noexcept {
    barrier.src_stages |= src.stages;
    barrier.src_access |= src.access;
    barrier.dst_stages |= dst.stages;
    barrier.dst_access |= dst.access;
}

// Removes the bits that another bit of the mask includes.
VkAccessFlags tidy_access(VkAccessFlags access) noexcept {
    constexpr VkAccessFlags kept =
        VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT | VK_ACCESS_HOST_READ_BIT;
    const VkAccessFlags broad = access & (VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT);
    return broad == 0 ? access : access & (~all_access_in(broad) | kept);
}

VkPipelineStageFlags tidy_stages(VkPipelineStageFlags stages) noexcept {
    constexpr VkPipelineStageFlags kept = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT;
    return (stages & VK_PIPELINE_STAGE_ALL_COMMANDS_BIT) != 0 ? stages & kept : stages;
}

void tidy(Barrier& barrier) noexcept {
    barrier.src_stages = tidy_stages(barrier.src_stages);
    barrier.dst_stages = tidy_stages(barrier.dst_stages);
    barrier.src_access = tidy_access(barrier.src_access);
    barrier.dst_access = tidy_access(barrier.dst_access);
    // The indirect stage never makes an access available, so a wait for the shader stage is enough.
    if ((barrier.src_stages & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT) != 0)
        barrier.src_stages &= ~static_cast<VkPipelineStageFlags>(VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT);
}

}  // namespace

// ---------------------------------------------------------------- StartSet

void HazardPlanner::StartSet::reset(size_t count) {
    const size_t words = count / 64 + 1;
    words_.assign(words, 0);
    summary_.assign(words / 64 + 1, 0);
}

void HazardPlanner::StartSet::insert(uint32_t atom) noexcept {
    words_[atom / 64] |= 1ULL << (atom % 64);
    summary_[atom / 4096] |= 1ULL << (atom / 64 % 64);
}

void HazardPlanner::StartSet::erase(uint32_t atom) noexcept {
    if ((words_[atom / 64] &= ~(1ULL << (atom % 64))) == 0)
        summary_[atom / 4096] &= ~(1ULL << (atom / 64 % 64));
}

uint32_t HazardPlanner::StartSet::at_or_before(uint32_t atom) const noexcept {
    uint32_t word = atom / 64;
    uint64_t bits = words_[word] & (~0ULL >> (63 - atom % 64));
    if (bits == 0) {
        uint32_t block = word / 64;
        uint64_t full = summary_[block] & ((1ULL << (word % 64)) - 1);
        while (full == 0) full = summary_[--block];
        word = block * 64 + 63 - static_cast<uint32_t>(std::countl_zero(full));
        bits = words_[word];
    }
    return word * 64 + 63 - static_cast<uint32_t>(std::countl_zero(bits));
}

// ---------------------------------------------------------------- atoms and runs

void HazardPlanner::lay_out(std::span<const Use> uses) {
    ++stamp_;
    touched_.clear();
    bool any_cut = false;
    for (const Use& use : uses) {
        if (use.begin >= use.end) continue;
        if (use.resource >= tracks_.size()) tracks_.resize(use.resource + size_t{1});
        Track& track = tracks_[use.resource];
        if (track.stamp != stamp_) {
            track = {};
            track.stamp = stamp_;
            track.begin = use.begin;
            track.end = use.end;
            touched_.push_back(use.resource);
        } else if (track.begin != use.begin || track.end != use.end) {
            any_cut = track.cut = true;
        }
    }
    if (any_cut) cut_edges(uses);

    uint32_t atoms = 0;
    for (const uint32_t resource : touched_) {
        Track& track = tracks_[resource];
        track.atoms.first = atoms;
        atoms += track.cut ? track.edge_count - 1 : 1;
        track.atoms.last = atoms;
    }
    if (runs_.size() < atoms) runs_.resize(atoms);
    starts_.reset(atoms);
    for (const uint32_t resource : touched_) {
        const AtomSpan all = tracks_[resource].atoms;
        runs_[all.first] = Run{all.last, {}};
        starts_.insert(all.first);
    }

    spans_.resize(uses.size());
    for (size_t i = 0; i < uses.size(); ++i) {
        const Use& use = uses[i];
        if (use.begin >= use.end) {
            spans_[i] = {};
            continue;
        }
        const Track& track = tracks_[use.resource];
        if (!track.cut) {
            spans_[i] = track.atoms;
            continue;
        }
        const auto edges = std::span(edges_).subspan(track.first_edge, track.edge_count);
        const auto atom_at = [&](uint64_t at) {
            const auto edge = std::ranges::lower_bound(edges, at, {}, &Edge::at);
            return track.atoms.first + static_cast<uint32_t>(edge - edges.begin());
        };
        spans_[i] = {atom_at(use.begin), atom_at(use.end)};
    }
}

void HazardPlanner::cut_edges(std::span<const Use> uses) {
    edges_.clear();
    for (const Use& use : uses) {
        if (use.begin >= use.end || !tracks_[use.resource].cut) continue;
        edges_.push_back({use.resource, use.begin});
        edges_.push_back({use.resource, use.end});
    }
    std::ranges::sort(edges_, [](const Edge& a, const Edge& b) {
        return a.resource != b.resource ? a.resource < b.resource : a.at < b.at;
    });
    const auto same = [](const Edge& a, const Edge& b) { return a.resource == b.resource && a.at == b.at; };
    edges_.erase(std::unique(edges_.begin(), edges_.end(), same), edges_.end());
    for (uint32_t i = 0; i < edges_.size(); ++i) {
        Track& track = tracks_[edges_[i].resource];
        if (track.edge_count++ == 0) track.first_edge = i;
    }
}

void HazardPlanner::cut_run(uint32_t run, uint32_t at) {
    runs_[at] = runs_[run];
    runs_[run].end = at;
    starts_.insert(at);
}

// Makes runs begin and end at the span's ends.
void HazardPlanner::isolate(AtomSpan span) {
    if (const uint32_t run = starts_.at_or_before(span.first); run != span.first) cut_run(run, span.first);
    if (const uint32_t run = starts_.at_or_before(span.last - 1); runs_[run].end != span.last)
        cut_run(run, span.last);
}

// Fuses the runs that a command has just read into one, so that the next read that crosses them takes one
// step. All of them now have that read in the present epoch, so any write to them needs a new barrier,
// whatever else they hold. The last write of each lies behind a barrier, so no read needs one. Hence taking
// the latest writer for all of them changes neither the number of barriers nor their places; only masks may
// grow.
void HazardPlanner::fuse(AtomSpan span) {
    History& all = runs_[span.first].history;
    for (uint32_t run = runs_[span.first].end; run < span.last; run = runs_[run].end) {
        const History& one = runs_[run].history;
        if (lives(one.writer)) {
            const bool alone = !lives(all.writer);
            all.visible = alone ? one.visible : all_access_in(all.visible) & all_access_in(one.visible);
            all.writer_stages = one.writer_stages | (alone ? 0 : all.writer_stages);
            all.writer_access = one.writer_access | (alone ? 0 : all.writer_access);
            all.beside_stages = one.beside_stages | (alone ? 0 : all.beside_stages);
            all.writer = std::max(all.writer, one.writer);
        }
        for (size_t i = 0; i < all.readers.size(); ++i)
            all.readers[i] = std::max(all.readers[i], one.readers[i]);
        all.unwritten |= one.unwritten;
        starts_.erase(run);
    }
    runs_[span.first].end = span.last;
}

// ---------------------------------------------------------------- one command

void HazardPlanner::add_pair(Epoch since, Scope src, Scope dst) {
    const Pair pair{since, src, dst};
    if (pairs_.empty() || pairs_.back() != pair) pairs_.push_back(pair);
}

void HazardPlanner::collect_read(const History& history, Scope scope, BarrierPlan& out) {
    const VkAccessFlags unseen = scope.access & ~all_access_in(history.visible);
    if (lives(history.writer) && unseen != 0)
        add_pair(history.writer, {history.writer_stages, history.writer_access}, {scope.stages, unseen});
    if (history.unwritten && !full_seen_) widen(out.head, {}, scope);
}

void HazardPlanner::collect_write(const History& history, Scope scope, BarrierPlan& out) {
    bool read_since = false;
    for (size_t i = 0; i < history.readers.size(); ++i) {
        if (!lives(history.readers[i])) continue;
        read_since = true;
        add_pair(history.readers[i], {kReaderStages[i], 0}, {scope.stages, 0});
    }
    if (lives(history.writer)) {
        if (!read_since) add_pair(history.writer, {history.writer_stages, history.writer_access}, scope);
        if (history.beside_stages != 0)
            add_pair(history.writer, {history.beside_stages, 0}, {scope.stages, 0});
    } else if (!full_seen_) {
        // Also if reads came first, although they order the write already: validators before 2025 look for
        // the write itself, and in an existing barrier the bit costs nothing.
        widen(out.head, {}, scope);
    }
}

// Gathers the pairs that end at a command, before any of its uses changes a history: a command never waits
// for itself. Returns true if the command uses anything.
bool HazardPlanner::collect(uint32_t index, const CommandUses& command, std::span<const Use> uses,
                            BarrierPlan& out) {
    bool active = false;
    pairs_.clear();
    for (uint32_t i = command.first; i < command.first + command.count; ++i) {
        const AtomSpan span = spans_[i];
        if (span.first == span.last) continue;
        if (uses[i].kind == UseKind::host_read) {
            host_reads_ = true;  // it happens after the stream, so it needs no order here: see finish()
            continue;
        }
        active = true;
        if (full_pending_) {
            full_pending_ = false;
            out.barriers.push_back({.before = index});
            widen(out.barriers.back(), kAllWrites, kAllAccesses);
            floor_ = static_cast<Epoch>(out.barriers.size()) + 1;
        }
        const Scope scope = scope_of(uses[i].kind);
        const Scope read{scope.stages, read_access(scope.access)};
        const Scope write{scope.stages, write_access(scope.access)};
        for (uint32_t run = starts_.at_or_before(span.first); run < span.last; run = runs_[run].end) {
            if (read.access != 0) collect_read(runs_[run].history, read, out);
            if (write.access != 0) collect_write(runs_[run].history, write, out);
        }
    }
    return active;
}

void HazardPlanner::collect_full(uint32_t index, BarrierPlan& out) {
    if (anything_before_) {
        out.barriers.push_back({.before = index});
        widen(out.barriers.back(), kAllWrites, kAllAccesses);
    } else {
        widen(out.head, {}, kAllAccesses);
    }
    full_seen_ = full_pending_ = true;
}

void HazardPlanner::serve_pairs(uint32_t index, BarrierPlan& out) {
    const auto present = static_cast<Epoch>(out.barriers.size()) + 1;
    if (std::ranges::any_of(pairs_, [&](const Pair& pair) { return pair.since == present; }))
        out.barriers.push_back({.before = index});

    const auto missing = [](const Barrier& barrier, const Pair& pair) {
        return std::popcount(pair.src.stages & ~all_stages_in(barrier.src_stages)) +
               std::popcount(pair.src.access & ~all_access_in(barrier.src_access)) +
               std::popcount(pair.dst.stages & ~all_stages_in(barrier.dst_stages)) +
               std::popcount(pair.dst.access & ~all_access_in(barrier.dst_access));
    };
    for (const Pair& pair : pairs_) {
        Barrier& first = out.barriers[pair.since - 1];
        Barrier& last = out.barriers.back();
        // On a tie, take the later one, so that the work between the two need not wait.
        const bool later = &first == &last || missing(last, pair) <= missing(first, pair);
        widen(later ? last : first, pair.src, pair.dst);
    }
}

void HazardPlanner::apply_write(AtomSpan span, Scope scope, Epoch now) {
    isolate(span);
    const History fresh{.writer = now, .unwritten = false};
    uint32_t kept = span.first;
    for (uint32_t run = span.first; run < span.last;) {
        const uint32_t next = runs_[run].end;
        History& history = runs_[run].history;
        // A writer of the present epoch is this same command: any other writer would have led to a barrier.
        if (history.writer != now) history = fresh;
        history.writer_stages |= scope.stages;
        history.writer_access |= scope.access;
        if (run != kept && history == runs_[kept].history) {
            runs_[kept].end = next;
            starts_.erase(run);
        } else {
            kept = run;
        }
        run = next;
    }
}

void HazardPlanner::apply_read(AtomSpan span, Scope scope, Epoch now) {
    isolate(span);
    const size_t slot = reader_slot(scope.stages);
    uint32_t count = 0;
    for (uint32_t run = span.first; run < span.last; run = runs_[run].end, ++count) {
        History& history = runs_[run].history;
        if (history.writer == now) {
            history.beside_stages |= scope.stages & ~waited_for(history.writer_stages);
        } else {
            history.readers[slot] = now;
            history.visible |= scope.access;
        }
    }
    if (count <= kMostRunsPerRead) return;
    // Runs that this same command writes stay apart, because no barrier follows those writes yet.
    for (uint32_t run = span.first; run < span.last;) {
        uint32_t end = runs_[run].end;
        if (runs_[run].history.writer != now) {
            while (end < span.last && runs_[end].history.writer != now) end = runs_[end].end;
            fuse({run, end});
        }
        run = end;
    }
}

void HazardPlanner::apply(const CommandUses& command, std::span<const Use> uses, Epoch now) {
    const auto each = [&](auto&& action) {
        for (uint32_t i = command.first; i < command.first + command.count; ++i)
            if (spans_[i].first != spans_[i].last && uses[i].kind != UseKind::host_read)
                action(spans_[i], scope_of(uses[i].kind));
    };
    // Apply writes first, so that the command's own reads are kept beside them and are not taken for reads
    // of the result.
    each([&](AtomSpan span, Scope scope) {
        if (const VkAccessFlags access = write_access(scope.access); access != 0)
            apply_write(span, {scope.stages, access}, now);
    });
    each([&](AtomSpan span, Scope scope) {
        if (write_access(scope.access) == 0) apply_read(span, scope, now);
    });
}

// ---------------------------------------------------------------- the whole stream

void HazardPlanner::finish(uint32_t command_count, std::span<const Use> uses,
                           std::span<const uint8_t> host_visible, BarrierPlan& out) const {
    Scope last_writes;
    const Scope host_read = scope_of(UseKind::host_read);
    const auto add_last_writes = [&](AtomSpan span) {
        for (uint32_t run = starts_.at_or_before(span.first); run < span.last; run = runs_[run].end) {
            last_writes.stages |= runs_[run].history.writer_stages;
            last_writes.access |= runs_[run].history.writer_access;
        }
    };
    if (full_seen_) {
        last_writes = kAllWrites;  // it may have written any memory
    } else {
        for (const uint32_t resource : touched_)
            if (host_visible[resource] != 0) add_last_writes(tracks_[resource].atoms);
        for (size_t i = 0; host_reads_ && i < uses.size(); ++i) {
            if (uses[i].kind != UseKind::host_read || spans_[i].first == spans_[i].last) continue;
            add_last_writes(spans_[i]);
            // Bytes that only earlier submissions wrote.
            for (uint32_t run = starts_.at_or_before(spans_[i].first); run < spans_[i].last;
                 run = runs_[run].end)
                if (runs_[run].history.unwritten) widen(out.head, {}, host_read);
        }
    }
    if (out.head.dst_stages != 0) widen(out.head, kAllWrites, {});
    out.tail.before = command_count;
    if (last_writes.stages != 0) widen(out.tail, last_writes, host_read);

    tidy(out.head);
    tidy(out.tail);
    for (Barrier& barrier : out.barriers) tidy(barrier);
}

void HazardPlanner::plan(std::span<const CommandUses> commands, std::span<const Use> uses,
                         std::span<const uint8_t> host_visible, BarrierPlan& out) {
    out.head = out.tail = {};
    out.barriers.clear();
    lay_out(uses);
    floor_ = 1;
    anything_before_ = host_reads_ = full_seen_ = full_pending_ = false;

    for (uint32_t index = 0; index < commands.size(); ++index) {
        const CommandUses& command = commands[index];
        if (command.full_barrier) {
            collect_full(index, out);
        } else {
            if (!collect(index, command, uses, out)) continue;
            serve_pairs(index, out);
            apply(command, uses, static_cast<Epoch>(out.barriers.size()) + 1);
        }
        anything_before_ = true;
    }
    finish(static_cast<uint32_t>(commands.size()), uses, host_visible, out);
}

}  // namespace kp
