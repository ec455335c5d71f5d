// A point in time of a device: a value that a timeline reaches.
#pragma once

#include <cstdint>
#include <vector>

namespace kp {

class Timeline;

// "When `timeline` has reached `value`."
struct Point {
    Timeline* timeline = nullptr;
    uint64_t value = 0;
};

// Keeps the later point for each timeline.
void merge_point(std::vector<Point>& points, Point point);

}  // namespace kp
