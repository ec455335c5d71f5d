// Lists how one pass over a recording uses each resource, and makes the recording for other memory.
// Streaming needs both.
#pragma once

#include "record/operation.hpp"
#include "record/substitution.hpp"
#include "resource/resource.hpp"

#include <memory>
#include <vector>

namespace kp {

class Stream;

// How one pass over a recording uses a resource.
struct FrameUse {
    std::shared_ptr<Resource> resource;
    bool read = false;
    bool written = false;
    // The pass reads bytes before it writes them, and it writes the resource. The next pass then sees these
    // writes. Or the pass uses other memory, too, that overlaps this (tensors over one array).
    bool carried = false;
    bool fixed = false;       // shaders hold its address, so it cannot be substituted
    bool uploaded = false;    // by an OpSyncDevice
    bool downloaded = false;  // by an OpSyncLocal
};

// The memory that the recording uses, in order of first use. `inputs` count as written before the pass
// begins; sync operations of `unsynced` are ignored. Throws if the stream is running.
[[nodiscard]] std::vector<FrameUse> frame_uses(Stream& stream, const std::vector<ResourceRange>& inputs,
                                               const Substitution& substitution);

// The recording with other memory. Throws if the stream is running, and for an operation that cannot be
// made for other memory.
[[nodiscard]] std::vector<OperationPtr> substituted(Stream& stream, const Substitution& substitution);

}  // namespace kp
