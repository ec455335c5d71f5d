#include "record/substitution.hpp"

namespace kp {

ResourceRange Substitution::range(const ResourceRange& original) const {
    const auto found = replaced.find(original.resource.get());
    if (found == replaced.end()) return original;
    return {found->second, original.offset, original.size};
}

std::vector<ResourceRange> Substitution::ranges(const std::vector<ResourceRange>& originals) const {
    std::vector<ResourceRange> result;
    result.reserve(originals.size());
    for (const auto& original : originals) result.push_back(range(original));
    return result;
}

std::vector<ResourceRange> Substitution::synced(const std::vector<ResourceRange>& originals) const {
    std::vector<ResourceRange> result;
    for (const auto& original : originals)
        if (!unsynced.contains(original.resource.get())) result.push_back(range(original));
    return result;
}

}  // namespace kp
