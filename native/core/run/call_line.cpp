#include "run/call_line.hpp"

#include "record/algorithm.hpp"
#include "resource/make_object.hpp"

#include <utility>

namespace kp {

const std::shared_ptr<Stream>& CallLine::prepare(const std::shared_ptr<Algorithm>& algorithm,
                                                 const std::array<uint32_t, 3>& groups,
                                                 std::string_view push_constants,
                                                 const DispatchMemory& memory) {
    if (algorithm_ == algorithm && groups_ == groups && push_constants_ == push_constants) [[likely]]
        return stream_;
    std::string push(push_constants);
    if (dispatch_) {
        dispatch_->replace(algorithm, groups, push, memory);
    } else {
        if (!stream_) {
            auto made = make_object<Stream>(algorithm->shared_device(), 0, 0);
            made->set_name(algorithm->name());
            stream_ = std::move(made);
        }
        auto made = make_bound_dispatch(algorithm, groups, push, memory);
        stream_->record(made);
        dispatch_ = std::move(made);
    }
    algorithm_ = algorithm;
    groups_ = groups;
    push_constants_ = std::move(push);
    return stream_;
}

bool CallLine::is_busy() noexcept {
    try {
        return stream_ && stream_->is_running() && !stream_->poll();
    } catch (const std::exception&) {
        *this = CallLine();
        return false;
    }
}

void CallLine::forget(const Algorithm& algorithm) noexcept {
    if (algorithm_.get() == &algorithm) *this = CallLine();
}

}  // namespace kp
