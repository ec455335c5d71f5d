// Whether the host copy of a resource is as new as its device memory.
//
// Nothing is noted while work runs. Somebody who asks gets the answer from two sources: the recordings that use the resource (what
// each does to which bytes, and where its last run ended), and a record of what is over: the last runs of recordings that have
// forgotten the resource, and what the host itself did to device memory.
//
// A run *writes* bytes of device memory, or moves them by a sync operation: an *upload* or a *download* makes both sides the same.
// For each range of bytes the record keeps the last of these on each timeline. Submissions of one queue follow each other in the
// order of their values, so an earlier one no longer matters. Those of several queues are not told apart in time: if the last events
// of two queues disagree, the answer is "unknown". What the host does comes after all work on the resource, since the host waits for
// it: the record drops what came before and keeps how far each queue was (the *base*).
//
// Work that is held ends on a timeline of its own. When it goes to its queue, that timeline knows the queue's value, and the event
// takes its place among the queue's. Work that was cancelled counts for nothing.
#pragma once

#include "sync/timeline.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace kp {

enum class Freshness : uint8_t {
    unsent,   // the contents have not been brought to the device
    matches,  // both sides are the same, but for what the host changed in its copy since
    behind,   // device memory is newer
    unknown,  // ... or may be
};

// What a run leaves in a range of bytes of a resource.
struct Effect {
    enum class Kind : uint8_t { write, upload, download };
    uint64_t begin = 0;
    uint64_t end = 0;
    Kind kind = Kind::write;
};

class FreshnessRecord {
public:
    struct Run {
        Point end;          // of the submission: Timeline::place() of it
        uint32_t rank = 0;  // the recording's place among those of one submission
    };
    // Recordings are made and dropped in loops, so the usual case, the same bytes as before, is to cost little.
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
    // The host did this to device memory: afterwards the bytes match the host copy, are newer (behind), or are not known to be.
    // `now`: what each queue has been given. All work on the resource is done.
    void note_host(uint64_t begin, uint64_t end, Freshness left, std::span<const Point> now) noexcept;
    // Somebody else may write device memory at any time.
    void note_shared() noexcept { shared_ = true; }
    // There was no memory to note something in.
    void note_lost() noexcept { shared_ = true; }

    // Of these bytes. `undeclared`: the ends of work that may have written anything.
    [[nodiscard]] Freshness freshness(uint64_t begin, uint64_t end,
                                      const std::vector<Point>& undeclared) const;

private:
    enum class Last : uint8_t { write, upload, download, unknown };
    struct Event {
        Point at;
        uint32_t rank = 0;
        Last last = Last::write;
        bool wrote = false;  // the submission wrote the bytes before it downloaded them
    };
    // Bytes with the same history. What is in no segment was never touched: both sides are the same.
    struct Segment {
        uint64_t begin = 0;
        uint64_t end = 0;
        Freshness left = Freshness::matches;  // by the host, at the base
        std::vector<Point> base;
        std::vector<Event> events;  // after the base: the last on each timeline
    };

    void note_run_anywhere(const Effect& effect, const Run& run) noexcept;
    // The segments that cover exactly these bytes.
    [[nodiscard]] std::span<Segment> cover(uint64_t begin, uint64_t end);
    void split(uint64_t at);
    void merge_all();
    static void add(std::vector<Event>& events, const Event& event);
    // The later of two events on one timeline stays.
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

    std::vector<Segment> segments_;  // in order, apart from each other
    bool shared_ = false;
};

}  // namespace kp
