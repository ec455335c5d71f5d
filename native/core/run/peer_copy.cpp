#include "run/peer_copy.hpp"

#include "base/error.hpp"
#include "base/host_span.hpp"
#include "device/device.hpp"
#include "resource/buffer.hpp"
#include "resource/image.hpp"
#include "resource/make_object.hpp"
#include "run/fence.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace kp {
namespace {

constexpr uint64_t largest_step = uint64_t{16} << 20;

bool is_image(const ResourceRange& range) { return range.resource->kind() == ObjectKind::image; }

void await_stream(const std::shared_ptr<Stream>& stream, const PeerCopy::Await& await) {
    if (!stream || !stream->is_running()) return;
    await({stream->last_point()});
    (void)stream->poll();
}

std::string with_device(const ResourceRange& range) {
    return range.label() + " of '" + range.resource->device().physical().properties.deviceName + "'";
}

}  // namespace

PeerCopy::PeerCopy(ResourceRange source, ResourceRange target)
    : source_(std::move(source)), target_(std::move(target)) {
    check();
    require_fit(source_, target_);
    target_.resource->require_writable();
}

void PeerCopy::check() const {
    source_.resource->require_init("copy");
    target_.resource->require_init("copy to");
}

std::vector<Point> PeerCopy::comes_after() const {
    std::vector<Point> points = source_.resource->pending(true);
    for (const Point& point : target_.resource->pending()) merge_point(points, point);
    return points;
}

std::string PeerCopy::what() const {
    return "Copying the " + with_device(source_) + " to the " + with_device(target_);
}

void PeerCopy::decide() {
    if (route_ != Route::undecided) return;
    if (&source_.resource->device() == &target_.resource->device()) {
        auto stream = make_object<Stream>(source_.resource->shared_device(), 0, 0);
        stream->record(make_copy({source_, target_}));
        keep(lanes_.front().in, std::move(stream));
        route_ = Route::same_device;
    } else if (!source_.resource->reads_staged() || target_.resource->host_visible()) {
        route_ = Route::direct;
    } else {
        // Images are copied in one step, because their rows need not end at a step's end.
        step_ = is_image(source_) || is_image(target_) ? source_.size : std::min(source_.size, largest_step);
        const bool shared = share(lanes_.front(), step_);
        if (!shared) prepare(lanes_.front(), step_);
        if (step_ < source_.size && (!shared || !share(lanes_.back(), step_))) prepare(lanes_.back(), step_);
        route_ = shared ? Route::shared : Route::bounced;
    }
}

bool PeerCopy::share(Lane& lane, uint64_t bytes) const {
    const auto near = source_.resource->shared_device();
    const auto far = target_.resource->shared_device();
    const uint64_t alignment =
        std::max(near->physical().host_import_alignment, far->physical().host_import_alignment);
    if (near->physical().host_import_alignment == 0 || far->physical().host_import_alignment == 0)
        return false;
    constexpr uint64_t page = 4096;
    const std::align_val_t aligned{std::max(alignment, page)};
    const uint64_t unit = static_cast<uint64_t>(aligned);
    const uint64_t padded = (bytes + unit - 1) / unit * unit;
    HostRange range;
    range.data = static_cast<std::byte*>(::operator new(padded, aligned, std::nothrow));
    if (!range.data) return false;
    range.owner =
        std::shared_ptr<void>(range.data, [aligned](void* memory) { ::operator delete(memory, aligned); });
    range.nbytes = bytes;
    range.padded = padded;
    try {
        lane.near = make_object<Buffer>(near, range);
        lane.far = make_object<Buffer>(far, range);
    } catch (const Error& error) {
        // A driver may refuse memory that the other one accepts.
        if (error.kind() == ErrorKind::device_lost) throw;
        lane.near.reset();
        lane.far.reset();
        return false;
    }
    return true;
}

void PeerCopy::prepare(Lane& lane, uint64_t bytes) {
    lane.near = make_object<Buffer>(source_.resource->shared_device(), std::nullopt, bytes, MemoryType::host);
    lane.far = make_object<Buffer>(target_.resource->shared_device(), std::nullopt, bytes, MemoryType::host);
}

void PeerCopy::start(Lane& lane, uint64_t begin, const Await& await) {
    // The last turn, or a copy that was interrupted, may still use the pair.
    await_stream(lane.out, await);
    await_stream(lane.in, await);
    if (lane.begin != begin || !lane.out || !lane.in) {
        const uint64_t bytes = std::min(step_, source_.size - begin);
        const auto part = [&](const ResourceRange& range) {
            return is_image(range) ? range : ResourceRange(range.resource, range.offset + begin, bytes);
        };
        const auto half = [this](std::shared_ptr<Stream>& stream, const ResourceRange& from,
                                 const ResourceRange& to) {
            if (!stream) keep(stream, make_object<Stream>(from.resource->shared_device(), 0, 0));
            stream->clear();
            stream->record(make_copy({from, to}));
        };
        lane.begin = UINT64_MAX;
        half(lane.out, part(source_), ResourceRange(lane.near, 0, bytes));
        half(lane.in, ResourceRange(lane.far, 0, bytes), part(target_));
        lane.begin = begin;
    }
    lane.out->submit();
}

void PeerCopy::finish(Lane& lane, const Await& await) const {
    await_stream(lane.out, await);
    if (lane.near->host_data() != lane.far->host_data())
        std::memcpy(lane.far->host_data(), lane.near->host_data(),
                    std::min(step_, source_.size - lane.begin));
    lane.in->submit();
}

void PeerCopy::move_directly(const Await& await) const {
    source_.resource->require_unmapped(false, source_.offset, source_.size);
    target_.resource->require_unmapped(true, target_.offset, target_.size);
    // Wait before the transfer, because the transfer's own waits cannot be interrupted.
    await(source_.resource->pending(true));
    await(target_.resource->pending());
    target_.resource->receive(*source_.resource, source_.offset, target_.offset, source_.size);
}

void PeerCopy::submit(const Await& await) {
    check();
    if (source_.size == 0) return;
    const HostSpan span("copy", source_.size);
    try {
        decide();
        if (route_ == Route::direct) return move_directly(await);
        if (route_ == Route::same_device) {
            await_stream(lanes_.front().in, await);
            lanes_.front().in->submit();
            return;
        }
        Lane* before = nullptr;
        size_t turn = 0;
        for (uint64_t begin = 0; begin < source_.size; begin += step_) {
            Lane& lane = lanes_[turn++ % lanes_.size()];
            start(lane, begin, await);
            if (before) finish(*before, await);
            before = &lane;
        }
        finish(*before, await);
    } catch (const Error& error) {
        throw Error(error.kind(), what() + ": " + error.what(), error.vk_result());
    }
}

void PeerCopy::keep(std::shared_ptr<Stream>& place, std::shared_ptr<Stream> stream) {
    const std::lock_guard lock(streams_mutex_);
    place.swap(stream);  // the old stream is freed with the argument, after the lock
}

std::vector<std::shared_ptr<Stream>> PeerCopy::streams() const {
    const std::lock_guard lock(streams_mutex_);
    std::vector<std::shared_ptr<Stream>> all;
    for (const Lane& lane : lanes_)
        for (const auto& stream : {lane.out, lane.in})
            if (stream) all.push_back(stream);
    return all;
}

std::shared_ptr<Fence> PeerCopy::fence() const {
    const auto of = [](const ResourceRange& range) {
        return std::make_shared<Fence>(range.resource->shared_device(), std::vector<Point>{});
    };
    return Fence::join({Fence::of(streams()), of(source_), of(target_)});
}

bool PeerCopy::is_running() const {
    const auto all = streams();
    return std::any_of(all.begin(), all.end(), [](const auto& stream) { return stream->is_working(); });
}

bool PeerCopy::poll() {
    bool done = true;
    try {
        for (const auto& stream : streams()) done = stream->poll() && done;
    } catch (const Error& error) {
        throw Error(error.kind(), what() + ": " + error.what(), error.vk_result());
    }
    return done;
}

}  // namespace kp
