// A built recording as the objects that it uses and its device see it. Streams are what there is of them.
#pragma once

#include "sync/freshness.hpp"
#include "sync/point.hpp"

#include <cstdint>

namespace kp {

class Recording {
public:
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    // Bytes of an object.
    struct Part {
        uint64_t begin = 0;
        uint64_t end = 0;
        bool writers_only = false;  // uses that only read them do not count
    };

    // The end of its last submission; no timeline before the first one.
    [[nodiscard]] virtual Point last_point() const noexcept = 0;
    [[nodiscard]] virtual bool is_running() const noexcept = 0;

    // All of these under the graph mutex. `slot` is the number that the recording gave to the object. It is
    // built anew before its next submission. When this returns, what it submitted before is known: its last
    // point.
    virtual Point make_stale() noexcept = 0;
    // It cannot be submitted until let_go(). When this returns, as above.
    virtual Point hold_back() noexcept = 0;
    virtual void let_go() noexcept = 0;
    [[nodiscard]] virtual bool writes(uint32_t slot) const noexcept = 0;
    [[nodiscard]] virtual bool touches(uint32_t slot, const Part& part) const noexcept = 0;
    // A recording *covers* an object whose contents were not on the device when it was built, and need not
    // be, since it begins by overwriting them. It brings them by being submitted, and nothing notes that at
    // the time: who wants to know asks the recordings of the object whether they were. Only what goes to its
    // queue at once covers: what is held may be cancelled.
    [[nodiscard]] virtual bool covers(uint32_t slot) const noexcept = 0;
    // Tells the objects that it covers, if it was submitted since it was built.
    virtual void settle_covers() noexcept = 0;
    // Adds what the last run of what is built did to these bytes of the object in `slot`.
    virtual void add_last_run(uint32_t slot, uint64_t begin, uint64_t end,
                              FreshnessRecord& record) const noexcept = 0;
    // What was built runs after this point from now on, if it does not say what it uses.
    virtual void come_after(Point point) = 0;

protected:
    Recording() = default;
    ~Recording() = default;
};

}  // namespace kp
