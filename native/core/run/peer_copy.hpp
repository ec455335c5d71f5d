// A copy of device contents from one VkDevice to another: of another GPU, another driver, or another
// Manager on the same driver.
//
// No queue of one device waits for a queue of the other, so the host runs the two halves. submit() submits
// the source's half, waits for it, then submits the destination's half. Each half is a stream of one copy
// on its own device and registers its uses as any stream does. So each device orders its half itself: the
// source's half after pending writers of the source, the destination's half after pending users of the
// destination, and later work after both.
//
// A pair of buffers in host memory lies between the halves, one for each device. If both devices import
// memory of the process, the two buffers lie over the same pages and the host copies nothing; otherwise it
// copies from one to the other. Large contents use two such pairs in turns, so that one device writes while
// the other reads.
//
// If the host addresses the memory of the source or of the destination itself (CPU drivers, unified memory,
// a resizable BAR), it waits for pending work and moves the bytes once, without such buffers.
//
// Only one thread at a time drives a PeerCopy; any thread may wait for it and query it.
#pragma once

#include "base/ranked.hpp"
#include "resource/resource.hpp"
#include "run/stream.hpp"

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kp {

class Buffer;
class Fence;

class PeerCopy {
public:
    // Throws if the contents do not fit, the destination cannot be written, or one of them was destroyed.
    PeerCopy(ResourceRange source, ResourceRange target);

    // Throws if one of the two was destroyed.
    void check() const;
    // The ends of the work that the copy runs after, on both devices.
    [[nodiscard]] std::vector<Point> comes_after() const;
    // Copies after pending work on both devices. `await` waits for points and may throw to interrupt the
    // copy. When submit() returns, the source's contents have been read, and the copy to the destination
    // may still be running: see fence().
    using Await = std::function<void(const std::vector<Point>&)>;
    void submit(const Await& await);
    // The end of the submitted work, on both devices.
    [[nodiscard]] std::shared_ptr<Fence> fence() const;
    [[nodiscard]] bool is_running() const;
    // Collects finished work; true if all of it has finished. Throws the error that made it fail.
    [[nodiscard]] bool poll();

    enum class Route : uint8_t {
        undecided,
        same_device,  // a stream of one copy
        direct,       // the host moves the bytes
        shared,       // buffers over the same host memory
        bounced,      // buffers in host memory of each
    };
    [[nodiscard]] Route route() const noexcept { return route_; }
    [[nodiscard]] const ResourceRange& source() const noexcept { return source_; }
    [[nodiscard]] const ResourceRange& target() const noexcept { return target_; }

private:
    struct Lane {
        std::shared_ptr<Buffer> near;  // on the source's device
        std::shared_ptr<Buffer> far;   // on the destination's
        std::shared_ptr<Stream> out;
        std::shared_ptr<Stream> in;
        uint64_t begin = UINT64_MAX;  // the part that the streams copy
    };

    void decide();
    void prepare(Lane& lane, uint64_t bytes);
    [[nodiscard]] bool share(Lane& lane, uint64_t bytes) const;
    void start(Lane& lane, uint64_t begin, const Await& await);
    void finish(Lane& lane, const Await& await) const;
    void move_directly(const Await& await) const;
    void keep(std::shared_ptr<Stream>& place, std::shared_ptr<Stream> stream);
    [[nodiscard]] std::vector<std::shared_ptr<Stream>> streams() const;
    [[nodiscard]] std::string what() const;

    ResourceRange source_;
    ResourceRange target_;
    Route route_ = Route::undecided;
    uint64_t step_ = 0;
    std::array<Lane, 2> lanes_;
    mutable RankedMutex streams_mutex_{
        LockRank::peer_streams};  // guards the lanes' streams against other threads' queries
};

}  // namespace kp
