// What every native object has in common: a device, a name, an end, and the recorded streams that use it.
//
// Lifetime. A recording owns references to all that it uses, so an object that nobody holds is not in use by
// the GPU: its destructor frees at once. destroy() is the other way out: it frees what the object holds while
// recordings still refer to it. Those recordings go stale (their next eval raises and names the object), and
// what is in flight delays the release through the retire list. Work with an operation that does not say what
// it uses (a custom one, or a shader that follows addresses) counts as a user of every object, both ways out.
#pragma once

#include "device/member.hpp"
#include "device/recording.hpp"
#include "sync/freshness.hpp"
#include "sync/point.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kp {

class Device;
class Stream;

class Object : public Member {
public:
    Object(std::shared_ptr<Device> device, ObjectKind kind);
    ~Object() override;

    // Frees what the object holds once the GPU is done with it. Safe at any moment, in any order, twice.
    void destroy();

    [[nodiscard]] Device& device() const noexcept { return *device_; }
    [[nodiscard]] const std::shared_ptr<Device>& shared_device() const noexcept { return device_; }
    [[nodiscard]] std::string name() const final;
    virtual void set_name(const std::string& name);
    // "tensor 'weights'" or "tensor": how messages call it.
    [[nodiscard]] std::string label() const;
    // What tells an object with no name from others: "" or " of 12 bytes".
    [[nodiscard]] virtual std::string detail() const { return {}; }
    // Throws Error(failed_precondition) that names the object when it was destroyed.
    void require_init(const char* action) const;

    // Ends of all submitted work that uses the object, or only that writes it, and may still run.
    [[nodiscard]] std::vector<Point> pending(bool writers_only = false);
    // What recordings of this object contain has changed: each is built anew at its next submission. Under
    // the graph mutex.
    void outdate_recordings() noexcept;
    // Recordings that use these bytes of the object, or only those that write them, cannot be evaluated until
    // let_go. Adds the ends of what of them is pending. Under the graph mutex, both.
    using Held = Recording::Part;
    void hold_back(const Held& held, std::vector<Point>& points);
    void let_go(const Held& held) noexcept;
    // Where the work ends that the object began with, after handing it to its queue; no timeline: there was
    // none.
    [[nodiscard]] virtual Point initial_end() { return {}; }

protected:
    // Recordings that cover the object (see Recording::covers) and were submitted say so to it. `outdate`:
    // the others are built anew before they can be. Under the graph mutex.
    void settle_covers(bool outdate) noexcept;
    // Adds what the last runs of the recordings that use these bytes did to them. Under the graph mutex.
    void add_last_runs(uint64_t begin, uint64_t end, FreshnessRecord& record) const;
    // Gives every GPU handle to the retire list (or frees it, when `points` is empty). Called once.
    virtual void release(std::vector<Point> points) = 0;
    // Work that uses the object was submitted apart from any stream.
    void leave_behind(Point point);
    // Calls `each` with the name, under the graph mutex and not once the object was destroyed: to tell the
    // driver of it.
    void name_handles(const std::function<void(const std::string&)>& each);
    void close() override { destroy(); }
    // For destructors of derived classes: nothing uses the object any more.
    void finalize() noexcept;

private:
    friend class Stream;
    friend class StreamPlan;

    struct User {
        Recording* recording = nullptr;
        uint32_t slot = 0;  // where the recording keeps its side of the link
    };

    std::shared_ptr<Device> device_;
    std::string name_;  // guarded by the device's names mutex
    // Guarded by the device's graph mutex.
    std::vector<User> users_;
    std::vector<Point> left_behind_;  // ends of work by streams that are gone
    // A stream that plans its recording numbers the objects it meets; valid while epoch_ is the plan's.
    uint64_t epoch_ = 0;
    uint32_t slot_ = 0;
};

}  // namespace kp
