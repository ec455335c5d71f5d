#include "run/frame_uses.hpp"

#include "device/device.hpp"
#include "record/stream_plan.hpp"
#include "run/stream.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

namespace kp {
namespace {

// The written bytes, as disjoint intervals that do not touch each other.
class Covered {
public:
    void add(uint64_t begin, uint64_t end) {
        auto next = parts_.upper_bound(begin);
        if (next != parts_.begin()) {
            const auto before = std::prev(next);
            if (before->second >= begin) {
                begin = before->first;
                end = std::max(end, before->second);
                parts_.erase(before);
            }
        }
        while (next != parts_.end() && next->first <= end) {
            end = std::max(end, next->second);
            next = parts_.erase(next);
        }
        parts_[begin] = end;
    }
    [[nodiscard]] bool contains(uint64_t begin, uint64_t end) const {
        const auto next = parts_.upper_bound(begin);
        return next != parts_.begin() && std::prev(next)->second >= end;
    }

private:
    std::map<uint64_t, uint64_t> parts_;  // begin -> end
};

class FrameUses {
public:
    FrameUse& of(Object& object) {
        const auto [at, fresh] = numbers_.try_emplace(&object, uses.size());
        if (fresh) {
            uses.push_back({std::static_pointer_cast<Resource>(object.shared_from_this())});
            covered_.emplace_back();
            open_.push_back(false);
        }
        return uses[at->second];
    }
    void read(Object& object, uint64_t begin, uint64_t end) {
        of(object).read = true;
        const size_t number = numbers_[&object];
        if (!covered_[number].contains(begin, end)) open_[number] = true;
    }
    void write(Object& object, uint64_t begin, uint64_t end, bool by_recording) {
        if (by_recording)
            of(object).written = true;
        else
            of(object);
        covered_[numbers_[&object]].add(begin, end);
    }
    void finish() {
        for (size_t i = 0; i < uses.size(); ++i) uses[i].carried = uses[i].written && open_[i];
        // One of two over the same memory of the process cannot stand for both.
        for (size_t i = 0; i < uses.size(); ++i)
            for (size_t j = 0; j < i && uses[i].resource->first_byte() != 0; ++j)
                if (ResourceRange(uses[i].resource).overlaps(uses[j].resource))
                    uses[i].carried = uses[j].carried = true;
    }

    std::vector<FrameUse> uses;

private:
    std::unordered_map<Object*, size_t> numbers_;
    std::vector<Covered> covered_;
    std::vector<bool> open_;  // read before it was written
};

bool is_memory(const Object& object) {
    return object.kind() == ObjectKind::buffer || object.kind() == ObjectKind::image;
}

}  // namespace

std::vector<FrameUse> frame_uses(Stream& stream, const std::vector<ResourceRange>& inputs,
                                 const Substitution& substitution) {
    const Turn::Taken turn = stream.drive();
    FrameUses frame;
    const std::lock_guard lock(stream.device().graph_mutex());
    for (const auto& input : inputs) frame.write(*input.resource, input.offset, input.end(), false);
    for (const auto& operation : stream.operations("stream")) {
        operation->check();
        StreamPlan plan;
        plan.begin(stream.device().next_epoch(), stream.device().memory().atom());
        plan.begin_operation();
        operation->declare(plan);
        const SyncDirection sync = operation->syncs();
        for (const auto& planned : plan.objects()) {
            if (!is_memory(*planned.object)) continue;
            FrameUse& use = frame.of(*planned.object);
            use.uploaded = use.uploaded || sync == SyncDirection::to_device;
            use.downloaded = use.downloaded || sync == SyncDirection::to_host;
        }
        for (const auto& range : operation->fixed()) frame.of(*range.resource).fixed = true;
        // A command reads before it writes. Uses on the host's side belong to no object.
        for (const bool writing : {false, true})
            for (const auto& use : plan.uses())
                plan.each_used(use, [&](Resource& resource, uint64_t begin, uint64_t end) {
                    if (sync != SyncDirection::none && substitution.unsynced.contains(&resource)) return;
                    if (!writing && reads(use.kind)) frame.read(resource, begin, end);
                    if (writing && writes(use.kind)) frame.write(resource, begin, end, true);
                });
    }
    frame.finish();
    return std::move(frame.uses);
}

std::vector<OperationPtr> substituted(Stream& stream, const Substitution& substitution) {
    const Turn::Taken turn = stream.drive();
    std::vector<OperationPtr> result;
    for (const auto& operation : stream.operations("stream"))
        if (auto other = operation->substituted(substitution)) result.push_back(std::move(other));
    return result;
}

}  // namespace kp
