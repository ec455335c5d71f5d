// Kinds of code that may be added to shaders, with which they report to the host: see
// instruments/instrument.hpp.
#pragma once

namespace kp {

struct Instruments {
    bool printf = false;    // turn NonSemantic.DebugPrintf into records
    bool bounds = false;    // check indices: writes outside are skipped, reads give 0
    bool races = false;     // compare each access with earlier ones of other invocations
    bool barriers = false;  // count the invocations that reach each barrier
    bool loops = false;     // count the turns of loops

    [[nodiscard]] bool any() const noexcept { return printf || bounds || races || barriers || loops; }
};

}  // namespace kp
