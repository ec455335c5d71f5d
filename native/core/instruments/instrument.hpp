// Adds code to a shader that tells the host what its invocations do: messages of printf, accesses outside of
// an array, races, barriers that not all invocations reach, loops that go on for too long.
//
// The code appends records to a buffer that the host reads afterwards. A record begins with its number of
// words, the module's number, the site's number, the operation's number and the invocation's three numbers;
// the words of the site follow. Records are appended atomically, so their order between invocations is
// arbitrary; those that do not fit are counted.
//
// Nothing is added to the flow of the shader's own functions: an access that needs a check becomes a call of
// a new function, which checks, and then accesses the variable itself or reports. So no block is split, and
// each loop keeps its form. Drivers inline these functions.
//
// Not covered: accesses through pointers that are no variables (buffer references, variable pointers), arrays
// of descriptors, OpCopyMemory, and the texels of images, which drivers check.
#pragma once

#include "instruments/instruments.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kp {

// The buffer, in words of 32 bits. The host sets `operation` before each dispatch.
struct DebugBuffer {
    static constexpr uint32_t used = 0;             // words of records that were asked for
    static constexpr uint32_t dropped = 1;          // records that did not fit
    static constexpr uint32_t operation = 2;        // number of the operation that runs
    static constexpr uint32_t records = 16;         // they begin here
    static constexpr uint32_t capacity = 1u << 20;  // words of records
    static constexpr uint32_t words = records + capacity;
    static constexpr uint32_t head = 7;  // words of a record before those of the site
    // llvmpipe ends all loops of an invocation after so many turns.
    static constexpr uint32_t most_turns = 65535;
};

// The buffer that races are found with, in words of 32 bits. The host writes the first ones before each
// dispatch, and zeroes the slots.
struct DebugShadow {
    static constexpr uint32_t groups_x = 0, groups_y = 1;             // numbers of workgroups
    static constexpr uint32_t local_x = 2, local_y = 3, local_z = 4;  // their size
    static constexpr uint32_t shared = 5;  // the first slot of shared memory; the number of groups with slots
    static constexpr uint32_t buffers = 7;  // for each buffer its first slot and their number
    static constexpr uint32_t most_buffers = 60;
    static constexpr uint32_t slots = 128;  // they begin here
    // A slot: the last writer's group and site, what else is known of it, a value that it wrote; the same of
    // the last reader, without a value.
    static constexpr uint32_t writer_group = 0, writer = 1, value = 2, reader_group = 3, reader = 4;
    static constexpr uint32_t slot_words = 5;
    static constexpr uint32_t most_slots = 3'300'000;  // 66 MB
    // In the words of groups: the site plus 1 (0: unknown), and above it the number of the group plus 1, cut.
    static constexpr uint32_t site_bits = 12, site_mask = 0xFFF;
    // In the others: the number of the invocation in its group, the number of barriers that it had passed.
    static constexpr uint32_t local_bits = 11, local_mask = 0x7FF;
    static constexpr uint32_t epoch_mask = 0x1FFFFu << local_bits, most_epochs = 0x1FFFF;
    static constexpr uint32_t plain = 1u << 28;  // of writers: a write of its phase is not atomic
    static constexpr uint32_t groups =
        1u << 29;  // other groups made such accesses before; in reports: only they
    static constexpr uint32_t several = 1u << 30;  // so did others of the group, since the same barrier
    static constexpr uint32_t was_read = several;  // in reports: the earlier access is a read
    static constexpr uint32_t valid = 1u << 31;
    static constexpr uint32_t words = slots + most_slots * slot_words;
};

struct DebugSite {
    enum class Kind : uint8_t { printf, bounds, races, barriers, loops };
    Kind kind = Kind::printf;
    std::string file;   // "" if the module has no lines
    uint32_t line = 0;  // 0: unknown
    std::string text;   // printf: the format; bounds, races: the array, as in "x[]"
    // printf: for each argument a letter and the number of its components: "f3u1". i, u: 32 bits, l, m: 64
    // bits (signed, unsigned), f, d: float, double, b: bool, s: the next of `strings`. bounds: "r", "w" or
    // "a" (read, write, atomic), then "i" if the index is signed, else "u". races: the same, then "s" for
    // shared memory, else "b".
    std::string arguments;
    std::vector<std::string> strings;
};

// The memory that slots of the shadow buffer stand for.
struct Shadowed {
    std::vector<std::pair<uint32_t, uint32_t>> buffers;  // set and binding
    bool any = false;
    uint32_t granule = 4;   // bytes of buffers for each slot
    uint32_t smallest = 4;  // bytes of shared memory for each slot, at least
};

struct Instrumented {
    std::vector<uint32_t> words;  // empty: nothing to add
    std::vector<DebugSite> sites;
    Shadowed shadowed;
    std::string problem;  // why nothing could be added; "" if there was nothing, or it was added
};

// `words` must be a valid module; its sets from `set` on are unused. Throws Error(invalid_argument) if it is
// malformed.
[[nodiscard]] Instrumented instrumented(std::span<const uint32_t> words, const Instruments& wanted,
                                        uint32_t set, uint32_t module_number);

}  // namespace kp
