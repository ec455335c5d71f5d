// A copy of device contents from one VkDevice to another: of another GPU, another driver, or another Manager on the same one.
//
// No queue of one device waits for a queue of the other, so the host stands between the halves. submit() runs them: the source's
// half is submitted and waited for, then the destination's half is submitted. Each half is a stream of one copy on its own
// device, registered with what it uses like any other, so that each device's own machinery orders it: the source's half after
// pending writers of the source, the destination's half after pending users of the destination, and later work after both.
//
// Between the halves lies a pair of buffers in host memory, one for each device. Where both devices import memory of the process
// they lie over the same pages, and the host copies nothing; else it copies from one to the other. Large contents go through
// two such pairs in turns, so that one device writes while the other reads.
//
// Where the host addresses the memory of the source or of the destination itself (CPU drivers, unified memory, a resizable BAR)
// none of that is needed: the host waits for pending work and moves the bytes once.
//
// One thread at a time drives a PeerCopy; any may wait for it and ask.
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
    // Throws where the contents do not fit, the destination cannot be written, or one of them was destroyed.
    PeerCopy(ResourceRange source, ResourceRange target);

    // Throws when one of the two was destroyed.
    void check() const;
    // The ends of the work that a copy comes after, on both devices.
    [[nodiscard]] std::vector<Point> comes_after() const;
    // Copies, after what is pending on both; `await` waits for points, and may throw to break off. When it returns the source's
    // contents were read, and the copy to the destination may still run there: see fence().
    using Await = std::function<void(const std::vector<Point>&)>;
    void submit(const Await& await);
    // The end of what was submitted, on both devices.
    [[nodiscard]] std::shared_ptr<Fence> fence() const;
    [[nodiscard]] bool is_running() const;
    // Collects what has finished; whether all has. Throws what made it fail.
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
        uint64_t begin = UINT64_MAX;  // which part the streams copy
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
        LockRank::peer_streams};  // guards the lanes' streams against those who ask
};

}  // namespace kp
