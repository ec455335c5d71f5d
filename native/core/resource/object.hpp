// The common part of all native objects: a device, a name, an end, and the recorded streams that use the
// object.
//
// Lifetime. A recording owns references to all objects that it uses, so the GPU does not use an object
// without owners: its destructor frees at once. destroy() ends an object earlier: it frees the object's
// memory and handles while recordings still refer to it. Those recordings go stale (their next eval raises
// and names the object), and work in flight delays the release through the retire list. Work with an
// operation that does not declare its uses (a custom one, or a shader that follows addresses) counts as a
// user of every object in both cases.
#pragma once

#include "device/member.hpp"
#include "device/recording.hpp"
#include "sync/crossing.hpp"
#include "sync/freshness.hpp"
#include "sync/point.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kp {

class Device;

class Object : public Member {
public:
    Object(std::shared_ptr<Device> device, ObjectKind kind);
    ~Object() override;

    // Frees the object's resources once the GPU is done with them. Safe at any moment, in any order, twice.
    void destroy();
    // The same for memory that an operation took: errors of later uses name it.
    void donate(const std::string& taker);
    // The operation that took it; empty if none did.
    [[nodiscard]] std::string taker() const;

    [[nodiscard]] Device& device() const noexcept { return *device_; }
    [[nodiscard]] const std::shared_ptr<Device>& shared_device() const noexcept { return device_; }
    [[nodiscard]] std::string name() const final;
    virtual void set_name(const std::string& name);
    // The name in messages: "tensor 'weights'" or "tensor".
    [[nodiscard]] std::string label() const;
    // Distinguishes an unnamed object from others: "" or " of 12 bytes".
    [[nodiscard]] virtual std::string detail() const { return {}; }
    // Throws Error(failed_precondition) that names the object if it was destroyed, Error(donated) if an
    // operation took it.
    void require_init(const char* action) const;

    // Ends of all submitted work that uses the object (or, with `writers_only`, writes it) and may still
    // run.
    [[nodiscard]] std::vector<Point> pending(bool writers_only = false);
    // The contents of the recordings of this object have changed: each is rebuilt at its next submission.
    // Under the graph mutex.
    void outdate_recordings() noexcept;
    // Recordings that use these bytes of the object (or write them, with `writers_only`) cannot be
    // evaluated until let_go(). Adds the ends of their pending work. Call both under the graph mutex.
    using Held = Recording::Part;
    void hold_back(const Held& held, std::vector<Point>& points);
    void let_go(const Held& held) noexcept;
    // The object whose users and mappings order the work on this one's memory: itself, or what all tensors
    // over the same memory of the process share. Under the graph mutex.
    [[nodiscard]] virtual Object& ordered_by() noexcept { return *this; }
    // Hands the object's initial work to its queue and returns the end of that work; no timeline if there
    // was none.
    [[nodiscard]] virtual Point initial_end() { return {}; }

protected:
    // Bytes that the host has mapped, and the bytes that are held back for that. Under the graph mutex.
    struct Mapped {
        uint64_t offset = 0;
        uint64_t size = 0;
        bool writes = false;
        Held held;
    };
    std::vector<Mapped> mappings_;
    // Recordings that cover the object (see Recording::covers) and were submitted report that to it.
    // `outdate`: the others are marked to be rebuilt before they can be submitted. Under the graph mutex.
    void settle_covers(bool outdate) noexcept;
    // Adds the effects of the last runs of the recordings that use these bytes. Under the graph mutex.
    void add_last_runs(uint64_t begin, uint64_t end, FreshnessRecord& record) const;
    // Tells the recordings of the object of the host's write to these bytes. Under the graph mutex.
    void tell_host_write(uint64_t begin, uint64_t end) const noexcept;
    // Gives every GPU handle to the retire list (or frees it, if `points` is empty). Called once.
    virtual void release(std::vector<Point> points) = 0;
    // Call it after submitting work that uses the object without a stream.
    void leave_behind(Point point);
    // Calls `each` with the name, so that the driver gets it: under the graph mutex, and not after the
    // object was destroyed.
    void name_handles(const std::function<void(const std::string&)>& each);
    void close() override { destroy(); }
    // For destructors of derived classes: nothing uses the object any more.
    void finalize() noexcept;

private:
    friend class BuiltRecording;
    friend class HostPages;
    friend class QueueOrder;
    friend class Resource;
    friend class StreamPlan;

    struct User {
        Recording* recording = nullptr;
        uint32_t slot = 0;  // the object's number in the recording's plan
    };

    std::shared_ptr<Device> device_;
    // Guarded by the device's names mutex.
    std::string name_;
    std::string taker_;
    // Guarded by the device's graph mutex.
    std::vector<User> users_;
    // Null as long as all users are of one queue.
    std::unique_ptr<Crossing> crossing_;
    std::vector<Point> left_behind_;  // ends of work by destroyed streams
    // A stream numbers the objects of its plan; the number is valid while epoch_ is the plan's.
    uint64_t epoch_ = 0;
    uint32_t slot_ = 0;
};

}  // namespace kp
