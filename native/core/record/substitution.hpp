// Recorded operations for other memory. Streaming uses this to copy a recording for each of its slots, and
// to decide which memory a slot must own.
#pragma once

#include "resource/resource.hpp"

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace kp {

struct Substitution {
    std::unordered_map<const Resource*, std::shared_ptr<Resource>> replaced;
    // Ranges of one size that are exchanged for each other, in both directions.
    std::vector<std::pair<ResourceRange, ResourceRange>> swapped;
    // Sync operations leave these out: the caller moves their data itself.
    std::unordered_set<const Resource*> unsynced;

    // True if range() gives another one.
    [[nodiscard]] bool changes(const ResourceRange& original) const;
    // The same bytes of the resource that replaces the range's resource, or of the range that it is exchanged
    // for. Throws Error(invalid_argument) if only a part of it is exchanged.
    [[nodiscard]] ResourceRange range(const ResourceRange& original) const;
    [[nodiscard]] std::vector<ResourceRange> ranges(const std::vector<ResourceRange>& originals) const;
    // The ranges of `originals` that a sync operation moves.
    [[nodiscard]] std::vector<ResourceRange> synced(const std::vector<ResourceRange>& originals) const;
};

}  // namespace kp
