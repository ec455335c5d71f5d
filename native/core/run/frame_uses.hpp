// What one pass over a recording does with each memory, and the recording for other memory: what streaming
// needs to know.
#pragma once

#include "record/operation.hpp"
#include "record/substitution.hpp"
#include "resource/resource.hpp"

#include <memory>
#include <vector>

namespace kp {

class Stream;

// What one pass over a recording does with a resource.
struct FrameUse {
    std::shared_ptr<Resource> resource;
    bool read = false;
    bool written = false;
    // It reads bytes that nothing before it in the pass has written, and the pass writes the resource: the
    // next pass sees them.
    bool carried = false;
    bool fixed = false;       // shaders hold its address: nothing can stand for it
    bool uploaded = false;    // by an OpSyncDevice
    bool downloaded = false;  // by an OpSyncLocal
};

// The memory that the recording uses, in order of first use. `inputs` count as written before it begins; sync
// operations of `unsynced` as not there. Throws where the stream runs.
[[nodiscard]] std::vector<FrameUse> frame_uses(Stream& stream, const std::vector<ResourceRange>& inputs,
                                               const Substitution& substitution);

// The recording with other memory. Throws where the stream runs, and for an operation that cannot be made for
// other memory.
[[nodiscard]] std::vector<OperationPtr> substituted(Stream& stream, const Substitution& substitution);

}  // namespace kp
