#include "record/visibility_model.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace kp::model {
namespace {

// Stages and accesses by the model's own numbers. `other` stands for all stages that only custom operations
// use.
enum Stage : unsigned { indirect, compute, transfer, other, host, stage_count };
constexpr unsigned bit(unsigned number) { return 1U << number; }
constexpr unsigned kDeviceStages = bit(indirect) | bit(compute) | bit(transfer) | bit(other);

enum Access : unsigned {
    indirect_fetch,
    shader_load,
    shader_store,
    uniform_load,
    transfer_load,
    transfer_store,
    other_load,
    other_store,
    host_load,
};
constexpr unsigned kDeviceReads =
    bit(indirect_fetch) | bit(shader_load) | bit(uniform_load) | bit(transfer_load) | bit(other_load);
constexpr unsigned kWrites = bit(shader_store) | bit(transfer_store) | bit(other_store);

unsigned stages_in(VkPipelineStageFlags mask) {
    unsigned stages = 0;
    if (mask & VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT) stages |= bit(indirect);
    if (mask & VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT) stages |= bit(compute);
    if (mask & VK_PIPELINE_STAGE_TRANSFER_BIT) stages |= bit(transfer);
    if (mask & VK_PIPELINE_STAGE_HOST_BIT) stages |= bit(host);
    if (mask & VK_PIPELINE_STAGE_ALL_COMMANDS_BIT) stages |= kDeviceStages;
    return stages;
}

unsigned accesses_in(VkAccessFlags mask) {
    unsigned accesses = 0;
    if (mask & VK_ACCESS_INDIRECT_COMMAND_READ_BIT) accesses |= bit(indirect_fetch);
    if (mask & VK_ACCESS_SHADER_READ_BIT) accesses |= bit(shader_load);
    if (mask & VK_ACCESS_SHADER_WRITE_BIT) accesses |= bit(shader_store);
    if (mask & VK_ACCESS_UNIFORM_READ_BIT) accesses |= bit(uniform_load);
    if (mask & VK_ACCESS_TRANSFER_READ_BIT) accesses |= bit(transfer_load);
    if (mask & VK_ACCESS_TRANSFER_WRITE_BIT) accesses |= bit(transfer_store);
    if (mask & VK_ACCESS_HOST_READ_BIT) accesses |= bit(host_load);
    if (mask & VK_ACCESS_MEMORY_READ_BIT) accesses |= kDeviceReads;
    if (mask & VK_ACCESS_MEMORY_WRITE_BIT) accesses |= kWrites;
    return accesses;
}

// What one command does in one stage.
struct Operation {
    unsigned stage = 0;
    unsigned accesses = 0;
};

std::vector<Operation> operations_of(UseKind kind) {
    switch (kind) {
    case UseKind::shader_read:
    case UseKind::sampled_read: return {{compute, bit(shader_load)}};
    case UseKind::shader_write: return {{compute, bit(shader_store)}};
    case UseKind::shader_read_write: return {{compute, bit(shader_load) | bit(shader_store)}};
    case UseKind::uniform_read: return {{compute, bit(uniform_load)}};
    case UseKind::transfer_read: return {{transfer, bit(transfer_load)}};
    case UseKind::transfer_write: return {{transfer, bit(transfer_store)}};
    case UseKind::indirect_read: return {{indirect, bit(indirect_fetch)}};
    case UseKind::host_read: return {};  // after the stream: see Machine::host_looks
    case UseKind::any_read:
        return {{indirect, bit(indirect_fetch)},
                {compute, bit(shader_load) | bit(uniform_load)},
                {transfer, bit(transfer_load)},
                {other, bit(other_load)}};
    case UseKind::everything: break;
    }
    return {{indirect, bit(indirect_fetch)},
            {compute, bit(shader_load) | bit(shader_store) | bit(uniform_load)},
            {transfer, bit(transfer_load) | bit(transfer_store)},
            {other, bit(other_load) | bit(other_store)}};
}

constexpr int kEarlierWork = -1;

struct Record {
    int command = 0;
    Operation operation;
    // Stages at which later commands happen after this access, and those of them in which a command has
    // executed.
    unsigned after = 0;
    unsigned met = 0;
    // The same for "after it was made available".
    unsigned after_available = 0;
    unsigned met_available = 0;
    std::array<unsigned, stage_count> visible{};

    [[nodiscard]] unsigned written() const { return operation.accesses & kWrites; }
    [[nodiscard]] unsigned read() const { return operation.accesses & ~kWrites; }
};

struct Atom {
    uint32_t resource = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    bool host_visible = false;
    bool host_reads = false;
    int last_writer = kEarlierWork;
    bool read_since = false;
    std::vector<Record> records;
};

class Machine {
public:
    Machine(const Program& program, const Rules& rules, bool first_only)
        : program_(program), rules_(rules), first_only_(first_only) {
        std::map<uint32_t, std::set<uint64_t>> edges;
        for (uint32_t r = 0; r < program.host_visible.size(); ++r) edges[r] = {0, UINT64_MAX};
        for (const Use& use : program.uses)
            if (use.begin < use.end) edges[use.resource].insert({0, UINT64_MAX, use.begin, use.end});
        for (const auto& [resource, at] : edges)
            for (auto from = at.begin(), to = std::next(from); to != at.end(); from = to++)
                add_atom(resource, *from, *to);
        // A read and a write are kept apart, because no access mask makes a read available.
        for (Atom& atom : atoms_) add_records(atom, kEarlierWork, operations_of(UseKind::everything));
    }

    [[nodiscard]] bool done() const { return first_only_ && !found_.empty(); }
    std::vector<std::string> take() { return std::move(found_); }

    void barrier(const Barrier& barrier) {
        const unsigned src = stages_in(barrier.src_stages);
        const unsigned dst = stages_in(barrier.dst_stages);
        const unsigned src_access = accesses_in(barrier.src_access);
        const unsigned dst_access = accesses_in(barrier.dst_access);
        // The synchronization scopes include logically earlier and later stages; the access scopes do not.
        const unsigned src_scope = src & bit(compute) ? src | bit(indirect) : src;
        const unsigned dst_scope = dst & bit(indirect) ? dst | bit(compute) : dst;
        for (Atom& atom : atoms_) {
            for (Record& record : atom.records) {
                const unsigned stage = bit(record.operation.stage);
                const bool waits =
                    (stage & src_scope) || ((chains() ? record.met : record.after) & src_scope);
                const bool makes_available = (stage & src) && (record.written() & src_access);
                const bool was_available =
                    (chains() ? record.met_available : record.after_available) & src_scope;
                if (waits) record.after |= dst_scope;
                if (makes_available || was_available) {
                    record.after_available |= dst_scope;
                    for (unsigned s = 0; s < stage_count; ++s)
                        if (dst & bit(s)) record.visible[s] |= dst_access;
                }
            }
        }
    }

    void command(int number, const CommandUses& command) {
        unsigned stages = 0;
        std::vector<std::vector<Operation>> work(atoms_.size());
        const auto add = [&](size_t atom, UseKind kind) {
            for (const Operation& operation : operations_of(kind)) {
                work[atom].push_back(operation);
                stages |= bit(operation.stage);
            }
            if (kind == UseKind::host_read) atoms_[atom].host_reads = true;
        };
        for (size_t i = 0; i < atoms_.size(); ++i) {
            if (command.full_barrier) add(i, UseKind::everything);
            for (uint32_t u = command.first; u < command.first + command.count; ++u) {
                const Use& use = program_.uses[u];
                // Atoms lie wholly inside a use or wholly outside; an empty use contains none.
                if (use.resource == atoms_[i].resource && use.begin <= atoms_[i].begin &&
                    atoms_[i].end <= use.end)
                    add(i, use.kind);
            }
        }
        for (size_t i = 0; i < atoms_.size(); ++i)
            for (const Operation& operation : work[i]) check(atoms_[i], number, operation);
        for (Atom& atom : atoms_) {
            for (Record& record : atom.records) {
                record.met |= record.after & stages;
                record.met_available |= record.after_available & stages;
            }
        }
        for (size_t i = 0; i < atoms_.size(); ++i) add_records(atoms_[i], number, work[i]);
    }

    // The stream is done: what it wrote to memory that the host sees, and what the host said it would read,
    // is visible.
    void host_looks(size_t command_count) {
        for (Atom& atom : atoms_) {
            for (const Record& record : atom.records) {
                if (!record.written() || record.visible[host] & bit(host_load)) continue;
                if (atom.host_reads || (atom.host_visible && record.command != kEarlierWork))
                    report(atom, record, static_cast<int>(command_count), "is not visible to the host");
            }
        }
    }

private:
    void add_atom(uint32_t resource, uint64_t begin, uint64_t end) {
        Atom atom;
        atom.resource = resource;
        atom.begin = begin;
        atom.end = end;
        atom.host_visible = resource < program_.host_visible.size() && program_.host_visible[resource] != 0;
        atoms_.push_back(atom);
    }

    [[nodiscard]] bool chains() const { return rules_.chain_needs_command; }

    void check(const Atom& atom, int number, const Operation& now) {
        const unsigned reads = now.accesses & ~kWrites;
        const unsigned writes = now.accesses & kWrites;
        for (const Record& then : atom.records) {
            if (then.written() && (reads & ~then.visible[now.stage])) report(atom, then, number, "RAW");
            if (then.written() && writes) {
                const bool overwrites = then.command == atom.last_writer && !atom.read_since;
                const bool unseen = rules_.overwrite_needs_visibility && (writes & ~then.visible[now.stage]);
                if (!(then.after_available & bit(now.stage)) || (overwrites && unseen))
                    report(atom, then, number, "WAW");
            }
            if (then.read() && writes && !(then.after & bit(now.stage))) report(atom, then, number, "WAR");
        }
    }

    static void add_records(Atom& atom, int number, const std::vector<Operation>& work) {
        bool reads = false;
        bool writes = false;
        for (const Operation& operation : work) {
            for (const unsigned part : {operation.accesses & kWrites, operation.accesses & ~kWrites}) {
                if (!part) continue;
                (part & kWrites ? writes : reads) = true;
                Record record;
                record.command = number;
                record.operation = {operation.stage, part};
                atom.records.push_back(record);
            }
        }
        if (writes) {
            atom.last_writer = number;
            atom.read_since = false;
        } else if (reads) {
            atom.read_since = true;
        }
    }

    void report(const Atom& atom, const Record& then, int number, const char* what) {
        if (done()) return;
        found_.push_back(std::string(what) + ": command " + std::to_string(then.command) + " -> " +
                         std::to_string(number) + ", resource " + std::to_string(atom.resource) + " [" +
                         std::to_string(atom.begin) + ", " + std::to_string(atom.end) + ")");
    }

    const Program& program_;
    Rules rules_;
    bool first_only_;
    std::vector<Atom> atoms_;
    std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> violations(const Program& program, const BarrierPlan& plan, const Rules& rules,
                                    bool first_only) {
    Machine machine(program, rules, first_only);
    const int count = static_cast<int>(program.commands.size());
    for (int submission = 0; submission < rules.submissions && !machine.done(); ++submission) {
        machine.barrier(plan.head);
        size_t next = 0;
        for (int i = 0; i < count && !machine.done(); ++i) {
            for (; next < plan.barriers.size() && plan.barriers[next].before <= static_cast<uint32_t>(i);
                 ++next)
                machine.barrier(plan.barriers[next]);
            machine.command(submission * count + i, program.commands[static_cast<size_t>(i)]);
        }
        machine.barrier(plan.tail);
        machine.host_looks(static_cast<size_t>((submission + 1) * count));
    }
    return machine.take();
}

}  // namespace kp::model
