#include "record/substitution.hpp"

#include "base/error.hpp"

namespace kp {

bool Substitution::changes(const ResourceRange& original) const {
    return original.resource && range(original) != original;
}

ResourceRange Substitution::range(const ResourceRange& original) const {
    const auto exchanged = [&](const ResourceRange& from, const ResourceRange& to) {
        return ResourceRange(to.resource, to.offset + (original.place().begin - from.place().begin),
                             original.size);
    };
    for (const auto& [one, other] : swapped) {
        for (const bool back : {false, true}) {
            const ResourceRange& from = back ? other : one;
            if (from.contains(original)) return exchanged(from, back ? one : other);
            if (from.overlaps(original))
                throw Error(ErrorKind::invalid_argument,
                            "The " + original.label() + " is used, and only a part of it is exchanged, the " +
                                from.label() + ": exchange all of it, or use the parts as arguments");
        }
    }
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
