// Kinds of code that may be added to shaders, with which they report to the host: see spirv/instrument.hpp.
#pragma once

namespace kp {

struct Instruments {
    bool printf = false;  // turn NonSemantic.DebugPrintf into records
    bool bounds = false;  // check indices: writes outside are skipped, reads give 0

    [[nodiscard]] bool any() const noexcept { return printf || bounds; }
};

}  // namespace kp
