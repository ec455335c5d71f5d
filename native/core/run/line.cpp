#include "run/line.hpp"

#include "record/algorithm.hpp"
#include "resource/make_object.hpp"

#include <algorithm>
#include <utility>

namespace kp {

const std::shared_ptr<Stream>& Line::prepare(std::span<const Bound> work, std::span<const Groups> groups,
                                             std::span<const std::string> push) {
    try {
        if (!stream_ || parts_.size() != work.size()) {
            reset();
            stream_ = make_object<Stream>(work.front().algorithm->shared_device(), 0, 0);
            stream_->set_name(work.front().algorithm->name());
        }
        for (size_t i = 0; i < work.size(); ++i) {
            const auto& [algorithm, memory] = work[i];
            if (i == parts_.size()) {
                auto made = make_bound_dispatch(algorithm, groups[i], push[i], memory);
                stream_->record(made);
                parts_.push_back({std::move(made), algorithm, groups[i], push[i]});
                continue;
            }
            Part& part = parts_[i];
            if (part.algorithm == algorithm && part.groups == groups[i] && part.push == push[i]) [[likely]]
                continue;
            part.dispatch->replace(algorithm, groups[i], push[i], memory);
            part.algorithm = algorithm;
            part.groups = groups[i];
            part.push = push[i];
        }
    } catch (...) {
        reset();
        throw;
    }
    return stream_;
}

void Line::reset() noexcept {
    stream_.reset();
    parts_.clear();
}

bool Line::is_busy() noexcept {
    try {
        return taken || (stream_ && stream_->is_running() && !stream_->poll());
    } catch (const std::exception&) {
        reset();
        return false;
    }
}

void Line::forget(const Algorithm& algorithm) noexcept {
    if (std::ranges::any_of(parts_, [&](const Part& part) { return part.algorithm.get() == &algorithm; }))
        reset();
}

}  // namespace kp
