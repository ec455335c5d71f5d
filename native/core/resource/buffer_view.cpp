#include "resource/buffer_view.hpp"

#include "base/error.hpp"

namespace kp {
namespace {

void check_inside(const ResourceRange& range, uint64_t offset, uint64_t size, const char* action) {
    if (offset <= range.size && size <= range.size - offset) return;
    throw Error(ErrorKind::out_of_range, std::string("Cannot ") + action + " bytes " +
                                             std::to_string(offset) + " to " + std::to_string(offset + size) +
                                             " of the " + range.label() + ", which has " +
                                             std::to_string(range.size) + " bytes");
}

}  // namespace

BufferView::BufferView(const ResourceRange& base, uint64_t offset, uint64_t size)
    : name_(base.resource->name()) {
    base.resource->require_init("view");
    check_inside(base, offset, size, "view");
    range_ = ResourceRange(base.resource, base.offset + offset, size);
}

const ResourceRange& BufferView::range(const char* action) const {
    if (destroyed_)
        throw Error(ErrorKind::failed_precondition, std::string("Cannot ") + action + " a view of the " +
                                                        range_.label() +
                                                        ": the view was destroyed. Make a new one");
    range_.resource->require_init(action);
    return range_;
}

uint64_t BufferView::locate(uint64_t offset, uint64_t size, const char* action) const {
    const ResourceRange& mine = range(action);
    check_inside(mine, offset, size, action);
    return mine.offset + offset;
}

void BufferView::keep_host() {
    if (!kept_) kept_ = buffer().keep_host();
}

}  // namespace kp
