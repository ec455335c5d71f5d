// Recorded operations for other memory: what streaming makes a copy of a recording for each of its slots with, and how it
// decides which memory a slot must own.
#pragma once

#include "record/operation.hpp"
#include "resource/resource_range.hpp"

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kp {

class Stream;

struct Substitution {
    std::unordered_map<const Resource*, std::shared_ptr<Resource>> replaced;
    // Sync operations leave these out: whoever substitutes moves their data himself.
    std::unordered_set<const Resource*> unsynced;

    // The same bytes of what stands for the range's resource.
    [[nodiscard]] ResourceRange range(const ResourceRange& original) const;
    [[nodiscard]] std::vector<ResourceRange> ranges(const std::vector<ResourceRange>& originals) const;
    // What a sync operation of `originals` moves.
    [[nodiscard]] std::vector<ResourceRange> synced(const std::vector<ResourceRange>& originals) const;
};

// What one pass over a recording does with a resource.
struct FrameUse {
    std::shared_ptr<Resource> resource;
    bool read = false;
    bool written = false;
    // It reads bytes that nothing before it in the pass has written, and the pass writes the resource: the next pass sees them.
    bool carried = false;
    bool fixed = false;       // shaders hold its address: nothing can stand for it
    bool uploaded = false;    // by an OpSyncDevice
    bool downloaded = false;  // by an OpSyncLocal
};

// The memory that the recording uses, in order of first use. `inputs` count as written before it begins; sync operations of
// `unsynced` as not there. Throws where the stream runs.
[[nodiscard]] std::vector<FrameUse> frame_uses(Stream& stream, const std::vector<ResourceRange>& inputs,
                                               const Substitution& substitution);

// The recording with other memory. Throws where the stream runs, and for an operation that cannot be made for other memory.
[[nodiscard]] std::vector<OperationPtr> substituted(Stream& stream, const Substitution& substitution);

}  // namespace kp
