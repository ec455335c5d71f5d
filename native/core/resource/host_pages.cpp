#include "resource/host_pages.hpp"

#include "device/device.hpp"

#include <algorithm>
#include <mutex>

namespace kp {
namespace {

// Those that an import may join. Under the graph mutex; the caller may become the last owner of one.
std::vector<std::shared_ptr<HostPages>> living(Device& device) {
    std::vector<std::shared_ptr<HostPages>> found;
    std::erase_if(device.host_pages(), [&](const std::weak_ptr<Member>& each) {
        auto pages = std::static_pointer_cast<HostPages>(each.lock());
        if (!pages || &pages->joined() != pages.get()) return true;
        found.push_back(std::move(pages));
        return false;
    });
    return found;
}

}  // namespace

std::shared_ptr<HostPages> HostPages::over(const std::shared_ptr<Device>& device, uint64_t begin,
                                           uint64_t end) {
    auto made = std::make_shared<HostPages>(device);
    const std::lock_guard lock(device->graph_mutex());
    std::shared_ptr<HostPages> all;
    for (const auto& each : living(*device)) {
        if (!each->overlaps(begin, end)) continue;
        if (all)
            all->take_in(*each);
        else
            all = each;
    }
    if (!all) {
        device->host_pages().push_back(made);
        all = std::move(made);
        all->begin_ = begin;
        all->end_ = end;
    }
    all->begin_ = std::min(all->begin_, begin);
    all->end_ = std::max(all->end_, end);
    return all;
}

std::vector<Point> HostPages::writers(Device& device, uint64_t begin, uint64_t end) {
    std::vector<std::shared_ptr<HostPages>> pages;
    {
        const std::lock_guard lock(device.graph_mutex());
        pages = living(device);
        std::erase_if(pages, [&](const auto& each) { return !each->overlaps(begin, end); });
    }
    std::vector<Point> points;
    for (const auto& each : pages)
        for (const Point& point : each->pending(true)) merge_point(points, point);
    return points;
}

HostPages& HostPages::joined() noexcept {
    HostPages* pages = this;
    while (pages->part_of_) pages = pages->part_of_.get();
    return *pages;
}

// The recordings of both were planned as if the two had nothing in common.
void HostPages::take_in(HostPages& other) {
    for (HostPages* each : {this, &other})
        for (const User& user : each->users_)
            if (const Point end = user.recording->make_stale(); end.timeline) merge_point(left_behind_, end);
    for (const Point& point : other.left_behind_) merge_point(left_behind_, point);
    mappings_.insert(mappings_.end(), other.mappings_.begin(), other.mappings_.end());
    begin_ = std::min(begin_, other.begin_);
    end_ = std::max(end_, other.end_);
    other.part_of_ = std::static_pointer_cast<HostPages>(shared_from_this());
}

}  // namespace kp
