// Tracks whether the host copy of a resource is as new as its device memory.
//
// Running work notes nothing. A query combines two sources. The first is the recordings that use the
// resource: their effects on bytes, and the ends of their last runs. The second is a record of the past:
// the last runs of recordings that have forgotten the resource, and the host's own changes of device
// memory.
//
// A run *writes* bytes of device memory, or moves them by a sync operation: an *upload* or a *download*
// makes both sides the same. For each range of bytes, the record keeps the last of these events on each
// timeline. Submissions of one queue follow each other in the order of their values, so an earlier one no
// longer matters. The record does not order submissions of several queues in time: if the last events of
// two queues disagree, the answer is "unknown". The host waits for all work on the resource before it acts,
// so its action comes after that work: the record drops earlier events and keeps how far each queue was
// (the *base*).
//
// Held work ends on a timeline of its own. Once the work is submitted, that timeline knows the queue's
// value, and the event takes its place among the queue's events. Cancelled work is ignored.
#pragma once

#include "sync/timeline.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kp {

enum class Freshness : uint8_t {
    unsent,   // the contents have not been brought to the device
    matches,  // both sides are the same, except for the host's later changes of its copy
    behind,   // device memory is newer
    partly,   // ... in some of the bytes, and nobody knows in which
    unknown,  // ... or may be
};

// The effect of a run on a range of bytes of a resource.
struct Effect {
    enum class Kind : uint8_t { write, upload, download };
    uint64_t begin = 0;
    uint64_t end = 0;
    Kind kind = Kind::write;
};

class FreshnessRecord {
public:
    struct Run {
        Point end;          // of the submission, as given by Timeline::place()
        uint32_t rank = 0;  // the recording's index among those of one submission
    };
    // Loops make and drop recordings, so the usual case, the same bytes as before, must be cheap.
    void note_run(const Effect& effect, const Run& run) noexcept {
        if (segments_.size() == 1) [[likely]] {
            Segment& segment = segments_.front();
            if (segment.begin == effect.begin && segment.end == effect.end && segment.events.size() == 1 &&
                segment.base.empty()) {
                Event& last = segment.events.front();
                if (last.at.timeline == run.end.timeline && !run.end.timeline->has_places()) {
                    replace(last, {run.end, run.rank, static_cast<Last>(effect.kind)});
                    return;
                }
            }
        }
        note_run_anywhere(effect, run);
    }
    // Notes the host's change of device memory. Afterwards the bytes match the host copy, are newer
    // (behind, partly), or are unknown. `now`: the values that each queue has been given. All work on the
    // resource is done. `wrote`: some of the bytes are newer than the host copy now.
    void note_host(uint64_t begin, uint64_t end, Freshness left, std::span<const Point> now,
                   bool wrote) noexcept;
    // Other code may write device memory at any time.
    void note_shared() noexcept { shared_ = true; }
    // There was not enough memory to note an event.
    void note_lost() noexcept { shared_ = true; }

    // The freshness of these bytes. `undeclared`: the ends of work that may have written any bytes.
    [[nodiscard]] Freshness freshness(uint64_t begin, uint64_t end,
                                      const std::vector<Point>& undeclared) const;

    // True if a write by the host was the last event on some of these bytes.
    [[nodiscard]] bool left_behind(uint64_t begin, uint64_t end) const noexcept;

private:
    enum class Last : uint8_t { write, upload, download, unknown };
    struct Event {
        Point at;
        uint32_t rank = 0;
        Last last = Last::write;
        bool wrote = false;  // the submission wrote the bytes before it downloaded them
    };
    // Bytes with the same history. Bytes outside all segments were never touched: both sides are the same.
    struct Segment {
        uint64_t begin = 0;
        uint64_t end = 0;
        Freshness left = Freshness::matches;  // by the host, at the base
        std::vector<Point> base;
        std::vector<Event> events;  // after the base: the last event on each timeline
        bool wrote = false;         // see note_host()
    };

    void note_run_anywhere(const Effect& effect, const Run& run) noexcept;
    // The segments that cover exactly these bytes.
    [[nodiscard]] std::span<Segment> cover(uint64_t begin, uint64_t end);
    void split(uint64_t at);
    void merge_all();
    static void add(std::vector<Event>& events, const Event& event);
    // Keeps the later of two events on one timeline.
    static void replace(Event& known, const Event& event) noexcept {
        bool wrote = false;
        if (known.at.value >= event.at.value) {
            if (known.at.value > event.at.value || known.rank > event.rank) return;
            wrote = event.last == Last::download && (known.wrote || known.last == Last::write);
        }
        known = event;
        known.wrote = wrote;
    }
    [[nodiscard]] static Freshness state(const Segment& segment, const std::vector<Point>& undeclared);

    std::vector<Segment> segments_;  // in order, disjoint
    bool shared_ = false;
};

}  // namespace kp
