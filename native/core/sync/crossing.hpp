// Orders recordings of several queues that use one thing: an object, or the memory that operations use
// without declaring it.
//
// Submissions of one queue follow each other. Those of different queues need an order only if they use the
// thing and one of them writes it; the thing is then *contested*. While it is, each submission that uses it
// notes its end here and waits for the noted ends of others: a reader for those of writers, a writer for all.
// So a submission looks at the things that it uses, not at all other recordings that use them.
//
// This class only counts and remembers. Stream finds out who uses what, and when. Guarded by the graph mutex.
#pragma once

#include "sync/point.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kp {

class Queue;

class Crossing {
public:
    // A built recording of `queue` uses the thing from now on. Throws std::bad_alloc.
    void add(const Queue& queue, bool writes);
    // ... no longer uses it.
    void remove(const Queue& queue, bool writes) noexcept;
    // True if recordings of two queues use it, and one of them writes it.
    [[nodiscard]] bool contested() const noexcept { return queues_ > 1 && writers_ != 0; }
    [[nodiscard]] bool written() const noexcept { return writers_ != 0; }

    // Makes room for the next `count` calls of note(). Throws std::bad_alloc.
    void reserve(size_t count);
    // A submission that uses the thing ends at `end`.
    void note(Point end, bool writes) noexcept;
    // Adds the ends to wait for before a submission to `queue`. Leaves out what is known to have ended.
    void collect(const Queue& queue, bool writes, std::vector<Point>& points);
    // Forgets all ends: the thing is no longer contested.
    void forget() noexcept;

private:
    struct Users {
        const Queue* queue = nullptr;
        uint32_t count = 0;
    };
    std::vector<Users> users_;
    uint32_t queues_ = 0;   // that have users
    uint32_t writers_ = 0;  // of all queues
    std::vector<Point> reads_;
    std::vector<Point> writes_;
};

}  // namespace kp
