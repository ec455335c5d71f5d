// A built recording as seen by its device and by the objects that it uses. Every Recording is a
// BuiltRecording.
#pragma once

#include "sync/freshness.hpp"
#include "sync/point.hpp"

#include <cstdint>

namespace kp {

class QueueOrder;

class Recording {
public:
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    // Bytes of an object.
    struct Part {
        uint64_t begin = 0;
        uint64_t end = 0;
        bool writers_only = false;  // ignore uses that only read them
    };

    // The end of its last submission; no timeline before the first one.
    [[nodiscard]] virtual Point last_point() const noexcept = 0;
    [[nodiscard]] virtual bool is_running() const noexcept = 0;

    // Call all of these under the graph mutex. `slot` is the number that the recording gave to the object.
    // Makes the recording rebuild before its next submission. When this returns, its previous submission is
    // known: its last point.
    virtual Point make_stale() noexcept = 0;
    // It cannot be submitted until let_go(). When this returns, its previous submission is known, as above.
    virtual Point hold_back() noexcept = 0;
    virtual void let_go() noexcept = 0;
    [[nodiscard]] virtual bool writes(uint32_t slot) const noexcept = 0;
    [[nodiscard]] virtual bool touches(uint32_t slot, const Part& part) const noexcept = 0;
    // A recording *covers* an object if the object's contents were not on the device at the time of the
    // build and need not be, because the recording begins by overwriting them. Its submission brings the
    // contents, but does not note that; a query asks the recordings of the object whether they were
    // submitted. Only a recording that goes to its queue at once covers: held work may be cancelled.
    [[nodiscard]] virtual bool covers(uint32_t slot) const noexcept = 0;
    // If it was submitted after its build, tells the objects that it covers.
    virtual void settle_covers() noexcept = 0;
    // Adds the effects of the built recording's last run on these bytes of the object in `slot`.
    virtual void add_last_run(uint32_t slot, uint64_t begin, uint64_t end,
                              FreshnessRecord& record) const noexcept = 0;
    // The host wrote these bytes of the object's device memory: if the recording sends an older host copy of
    // them, it is rebuilt and warns of that, once.
    virtual void note_host_write(uint32_t slot, uint64_t begin, uint64_t end) noexcept = 0;
    // How it is ordered with recordings of other queues.
    [[nodiscard]] virtual QueueOrder& order() noexcept = 0;
    // If it does not declare its uses, it runs after this point from now on.
    virtual void come_after(Point point) = 0;

protected:
    Recording() = default;
    ~Recording() = default;
};

}  // namespace kp
