#include "run/built_recording.hpp"

#include "base/error.hpp"
#include "base/long_call.hpp"
#include "device/device.hpp"
#include "resource/resource.hpp"

#include <algorithm>
#include <utility>

namespace kp {
namespace {

// The planner's working memory; all streams of a thread share it.
HazardPlanner& planner() {
    thread_local HazardPlanner instance;
    return instance;
}

}  // namespace

std::vector<std::shared_ptr<Resource>> BuiltRecording::make(const std::vector<OperationPtr>& operations,
                                                            StreamPlan::Kept& outdated) {
    const std::lock_guard lock(device().graph_mutex());
    // destroy() waits for this lock, so objects that exist now stay while the plan is made.
    for (size_t i = 0; i < operations.size(); ++i) {
        try {
            operations[i]->check();
        } catch (const Error& error) {
            throw Error(error.kind(),
                        operations[i]->name() + ", operation " + std::to_string(i + 1) + " of the " +
                            stream_.label() + ": " + error.what(),
                        error.vk_result());
        }
    }
    stale_.store(false, std::memory_order_seq_cst);
    unregister();
    if (outdated.empty())
        outdated = plan_.take_kept();
    else
        for (auto& object : plan_.take_kept()) outdated.push_back(std::move(object));
    plan_.begin(device().next_epoch(), device().memory().atom());
    for (const auto& operation : operations) {
        plan_.begin_operation();
        operation->declare(plan_);
    }
    if (plan_.asks_remaking()) [[unlikely]] {
        plan_.objects().clear();
        return {};
    }
    if (auto missing = absent(); !missing.empty()) {
        plan_.objects().clear();
        return missing;
    }
    plan_.settle_host_side();
    planner().plan(plan_.commands(), plan_.uses(), plan_.host_visible(), barriers_);
    check_mappings();
    enlist();
    return {};
}

std::vector<std::shared_ptr<Resource>> BuiltRecording::absent() {
    std::vector<std::shared_ptr<Resource>> missing;
    for (auto& planned : plan_.objects()) {
        if (!planned.used) continue;  // else it is memory
        auto& used = static_cast<Resource&>(*planned.object);
        const bool overwritten = planned.overwritten && may_cover_;
        if (used.must_be_brought(overwritten))
            missing.push_back(std::static_pointer_cast<Resource>(used.shared_from_this()));
        else
            planned.covered = overwritten && !used.on_device();
    }
    return missing;
}

void BuiltRecording::check_mappings() {
    for (uint32_t slot = 0; slot < plan_.objects().size(); ++slot) {
        const ObjectKind kind = plan_.objects()[slot].object->kind();
        if (kind == ObjectKind::buffer || kind == ObjectKind::image)
            resource(slot).require_unmapped([&](const Object::Held& held) { return touches(slot, held); });
    }
}

void BuiltRecording::enlist() {
    order_.enter(*this);
    built_after_ = run_.number();
    for (uint32_t slot = 0; slot < plan_.objects().size(); ++slot) {
        auto& planned = plan_.objects()[slot];
        Object& object = *planned.object;
        covers_ = covers_ || planned.covered;
        if (!object.is_init())
            stale_.store(true, std::memory_order_seq_cst);  // destroyed since check(); a submission finds out
        order_.enter(planned);
        planned.link = static_cast<uint32_t>(object.users_.size());
        object.users_.push_back({this, slot});
    }
    registered_ = true;
    order_.note();
}

void BuiltRecording::unregister() noexcept {
    if (!registered_) return;
    note_effects();
    registered_ = false;
    settle_covers();
    covers_ = false;
    order_.leave();
    for (const auto& planned : plan_.objects()) {
        auto& users = planned.object->users_;
        const uint32_t link = planned.link;
        if (link + 1 != users.size()) {
            users[link] = users.back();
            of(*users[link].recording).plan_.objects()[users[link].slot].link = link;
        }
        users.pop_back();
        order_.leave(planned);
    }
    plan_.objects().clear();
    order_.forget_crossed();
    // The mappings no longer know this recording.
    held_back_.store(0, std::memory_order_release);
}

void BuiltRecording::leave() {
    if (!registered_) return;
    const std::lock_guard lock(device().graph_mutex());
    order_.forget_inherited();
    unregister();
}

Point BuiltRecording::make_stale() noexcept {
    stale_.store(true, std::memory_order_seq_cst);
    return run_.settled_end();
}

Point BuiltRecording::hold_back() noexcept {
    held_back_.fetch_add(1, std::memory_order_seq_cst);
    return run_.settled_end();
}

// -- what runs did to the objects ---------------------------------------------------------------------------

void BuiltRecording::settle_covers() noexcept {
    if (!covers_ || !run_.any_since(built_after_)) return;
    covers_ = false;
    for (auto& planned : plan_.objects())
        if (std::exchange(planned.covered, false)) static_cast<Resource&>(*planned.object).note_brought();
}

bool BuiltRecording::uncover() noexcept {
    settle_covers();
    if (covers_) may_cover_ = false;
    return covers_;
}

bool BuiltRecording::covered_by_caller(Resource& resource) {
    if (resource.on_device()) return false;
    const std::lock_guard lock(resource.device().graph_mutex());
    return std::ranges::any_of(static_cast<Object&>(resource).users_, [](const Object::User& user) {
        const BuiltRecording& recording = of(*user.recording);
        return recording.covers(user.slot) && recording.turn_.is_calling_out_here();
    });
}

void BuiltRecording::add_last_run(uint32_t slot, uint64_t begin, uint64_t end,
                                  FreshnessRecord& record) const noexcept {
    const FreshnessRecord::Run run = run_.since(built_after_);
    if (!run.end.timeline) return;
    plan_.each_effect([&](uint32_t of, const Effect& effect) {
        if (of == slot && effect.begin < end && begin < effect.end) record.note_run(effect, run);
    });
}

void BuiltRecording::note_effects() noexcept {
    if (!registered_) return;
    const FreshnessRecord::Run run = run_.since(built_after_);
    if (!run.end.timeline) return;
    plan_.each_effect([&](uint32_t slot, const Effect& effect) { resource(slot).note_run(effect, run); });
}

void BuiltRecording::note_host_write(uint32_t slot, uint64_t begin, uint64_t end) noexcept {
    if (warned_of_old_copies_) return;
    bool sends = false;
    plan_.each_sync([&](uint32_t of, const Effect& effect) {
        sends = sends || (of == slot && effect.kind == Effect::Kind::upload && effect.begin < end &&
                          begin < effect.end);
    });
    if (sends) (void)make_stale();
}

void BuiltRecording::warn_of_old_copies() {
    std::string older;
    {
        const std::lock_guard lock(device().graph_mutex());
        if (warned_of_old_copies_) return;
        std::vector<uint32_t> refreshed;  // by a download of the same recording
        plan_.each_sync([&](uint32_t slot, const Effect& effect) {
            if (effect.kind == Effect::Kind::download)
                refreshed.push_back(slot);
            else if (older.empty() && std::ranges::find(refreshed, slot) == refreshed.end() &&
                     resource(slot).left_behind(effect.begin, effect.end))
                older = resource(slot).label();
        });
        if (older.empty()) return;
        warned_of_old_copies_ = true;
    }
    warn_user(
        "The " + stream_.label() + " sends the host copy of the " + older +
        " over what write() or an item assignment put there: those change the device's contents and not "
        "the host copy. Edit data() instead, or leave the OpSyncDevice out; if data() has been edited since, "
        "all is well");
}

}  // namespace kp
