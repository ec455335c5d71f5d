// Recorded operations for other memory: what streaming makes a copy of a recording for each of its slots with, and how it
// decides which memory a slot must own.
#pragma once

#include "resource/resource.hpp"

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace kp {

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

}  // namespace kp
