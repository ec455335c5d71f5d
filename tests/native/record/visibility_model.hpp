// An availability-and-visibility machine after Vulkan's memory model, to judge barrier plans. It is
// deliberately slow and shares no code with the planner: what each kind of use does, and what each mask
// means, is written down a second time.
//
// Every access of every command to every byte range is kept for ever, with
//   the stages at which later commands happen after it, through chains of execution dependencies,
//   for a write also the stages at which later commands happen after it was made available, and
//   the (stage, access) combinations to which it has been made visible.
// Each new access is compared with all earlier ones to the same bytes, not only with the last ones, by
// "location-ordered" of the specification's memory model:
//   read, then write:   an execution dependency
//   write, then write:  made available, and that happens before the second write
//   write, then read:   made available, then made visible to the stage and access of the read
// Before the first command, an unknown earlier submission has read and written all memory in every stage.
#pragma once

#include "record/hazard.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace kp::model {

struct Program {
    std::vector<CommandUses> commands;
    std::vector<Use> uses;
    std::vector<uint8_t> host_visible;
};

struct Rules {
    // Two execution dependencies chain only if a command really executed in the stage where they meet, as the
    // specification's sets of operations say. Without it the stage alone is enough, as most implementations
    // (and synchronization validation) have it. A plan has to hold with it; a barrier is superfluous only if
    // it is so without.
    bool chain_needs_command = true;
    // Two writes with no read in between also need visibility to the second. The memory model asks only for
    // availability, but the chapter on synchronization calls for a memory dependency, and validators check
    // its destination.
    bool overwrite_needs_visibility = true;
    // How often the stream is submitted, one after another without a wait.
    int submissions = 1;
};

// What is wrong with the plan, one line for each pair of accesses; empty if nothing. With `first_only` at
// most one.
std::vector<std::string> violations(const Program& program, const BarrierPlan& plan, const Rules& rules,
                                    bool first_only = true);

}  // namespace kp::model
