// Adds code to a shader that tells the host what its invocations do: messages of printf, accesses outside of
// an array.
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

#include "spirv/instruments.hpp"

#include <cstdint>
#include <span>
#include <string>
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
};

struct DebugSite {
    enum class Kind : uint8_t { printf, bounds };
    Kind kind = Kind::printf;
    std::string file;   // "" if the module has no lines
    uint32_t line = 0;  // 0: unknown
    std::string text;   // printf: the format; bounds: the array, as in "x[i]"
    // printf: for each argument a letter and the number of its components: "f3u1". i, u: 32 bits, l, m: 64
    // bits (signed, unsigned), f, d: float, double, b: bool, s: the next of `strings`. bounds: "r", "w" or
    // "a" (read, write, atomic), then "i" if the index is signed, else "u".
    std::string arguments;
    std::vector<std::string> strings;
};

struct Instrumented {
    std::vector<uint32_t> words;  // empty: nothing to add
    std::vector<DebugSite> sites;
    std::string problem;  // why nothing could be added; "" if there was nothing, or it was added
};

// `words` must be a valid module; its sets from `set` on are unused. Throws Error(invalid_argument) if it is
// malformed.
[[nodiscard]] Instrumented instrumented(std::span<const uint32_t> words, const Instruments& wanted,
                                        uint32_t set, uint32_t module_number);

}  // namespace kp
