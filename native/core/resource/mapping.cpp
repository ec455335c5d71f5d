#include "resource/mapping.hpp"

#include "base/error.hpp"
#include "device/device.hpp"

namespace kp {

Mapping::Mapping(const ResourceRange& range, bool writes, bool in_place) : range_(range), writes_(writes) {
    Resource& resource = *range_.resource;
    resource.require_init("map");
    (void)resource.initial_end();
    const std::lock_guard lock(resource.device().graph_mutex());
    resource.require_init("map");
    if (writes_) resource.require_writable();
    resource.begin_mapping(range_, writes_, pending_);
    data_ = in_place && resource.host_visible() ? resource.mapped() + range_.offset : nullptr;
    // An array over the memory may be in use when the tensor is destroyed.
    kept_ = resource.keep_device_side();
}

Mapping::~Mapping() {
    try {
        close();
    } catch (const Error&) {
        return;  // a destructor cannot report an error; close() does
    }
}

void Mapping::begin(bool reads) {
    // read() and write() do all this themselves for staged memory.
    if (data_ && !reads && range_.whole())
        (void)range_.resource->bring_by([] {});  // all of it is overwritten
    else if (data_)
        range_.resource->bring();
    if (data_ && reads)
        range_.resource->invalidate_range(range_.offset, range_.size);
    else if (data_ && writes_)
        range_.resource->invalidate_ends(range_.offset, range_.size);
}

void Mapping::read(void* out) { range_.resource->read_mapped(out, range_.offset, range_.size); }

void Mapping::write(const void* data) { range_.resource->write_mapped(data, range_.offset, range_.size); }

void Mapping::close() {
    if (!std::exchange(open_, false)) return;
    Resource& resource = *range_.resource;
    struct Unblock {
        Resource& resource;
        const ResourceRange& range;
        bool writes;
        ~Unblock() {
            const std::lock_guard lock(resource.device().graph_mutex());
            resource.end_mapping(range, writes);
        }
    };
    const std::shared_ptr<void> kept = std::move(kept_);  // dropped last, with no lock held
    const Unblock unblock{resource, range_, writes_};
    if (data_ && writes_ && resource.is_init()) {
        resource.flush_range(range_.offset, range_.size);
        resource.note_host_write(range_.offset, range_.size);
    }
    data_ = nullptr;
}

}  // namespace kp
