#include "run/plan_values.hpp"

#include "record/access.hpp"
#include "resource/buffer.hpp"
#include "resource/image.hpp"

#include <algorithm>
#include <utility>

namespace kp {
namespace {

class Planning {
public:
    void plan(const StreamPlan& plan) {
        for (const CommandUses& command : plan.commands()) add(plan, command);
        for (const PlannedObject& planned : plan.objects())
            if (planned.disjoint && planned.used && planned.object->kind() != ObjectKind::host_pages)
                values.disjoint.push_back(planned.object->shared_from_this());
    }

    ValueCopies values;

private:
    struct Range {
        Resource* resource;
        uint64_t begin;
        uint64_t end;
        bool reads;
        bool writes;
        std::optional<bool> whole;
    };

    void add(const StreamPlan& plan, const CommandUses& command) {
        const auto position = static_cast<uint32_t>(values.operations.size());
        std::vector<Range> ranges;
        for (uint32_t i = command.first; i < command.first + command.count; ++i) {
            const Use& use = plan.uses()[i];
            plan.each_used(use, [&](Resource& resource, uint64_t begin, uint64_t end) {
                if (resource.kind() == ObjectKind::image) {
                    begin = 0;
                    end = resource.nbytes();
                }
                const auto same = std::ranges::find_if(ranges, [&](const Range& each) {
                    return each.resource == &resource && each.begin == begin && each.end == end;
                });
                if (same == ranges.end())
                    ranges.push_back({&resource, begin, end, reads(use.kind), writes(use.kind), use.whole});
                else
                    *same = {&resource,
                             begin,
                             end,
                             same->reads || reads(use.kind),
                             same->writes || writes(use.kind),
                             std::max(same->whole, use.whole)};
            });
        }
        std::vector<ValueCopies::Use> uses;
        for (const Range& range : ranges) {
            const uint32_t before = known(range, position);
            uses.push_back({before, before, range.reads, range.whole});
        }
        for (const Range& range : ranges)
            if (range.writes)
                std::erase_if(known_, [&](uint32_t number) {
                    const auto& part = values.parts[number];
                    return part.memory.get() == range.resource && part.begin < range.end &&
                           range.begin < part.end;
                });
        for (size_t i = 0; i < ranges.size(); ++i)
            if (ranges[i].writes) uses[i].after = copy(ranges[i], position + 1);
        values.operations.push_back(std::move(uses));
    }

    // The part that holds what the range is before the operation.
    uint32_t known(const Range& range, uint32_t position) {
        const auto found = std::ranges::find_if(known_, [&](uint32_t number) {
            const auto& part = values.parts[number];
            return part.memory.get() == range.resource && part.begin == range.begin && part.end == range.end;
        });
        return found != known_.end() ? *found : copy(range, position);
    }

    uint32_t copy(const Range& range, uint32_t position) {
        ValueCopies::Part part{.memory = range.resource->shared_from_this(),
                               .begin = range.begin,
                               .end = range.end,
                               .at = values.size,
                               .position = position};
        if (range.resource->kind() == ObjectKind::image) {
            const auto& image = static_cast<const Image&>(*range.resource);
            part.image = image.handle();
            part.texels = image.whole(values.size);
        } else {
            part.buffer = static_cast<const Buffer&>(*range.resource).handle();
        }
        values.parts.push_back(std::move(part));
        values.size += (range.end - range.begin + 15) & ~uint64_t{15};
        known_.push_back(static_cast<uint32_t>(values.parts.size() - 1));
        return known_.back();
    }

    std::vector<uint32_t> known_;  // parts that are what their ranges are now
};

}  // namespace

std::shared_ptr<const ValueCopies> plan_values(const StreamPlan& plan, MemoryAllocator& memory) {
    Planning planning;
    planning.plan(plan);
    planning.values.allocate(memory);
    return std::make_shared<const ValueCopies>(std::move(planning.values));
}

}  // namespace kp
