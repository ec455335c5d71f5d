#include "sync/point.hpp"

namespace kp {

void merge_point(std::vector<Point>& points, Point point) {
    for (auto& known : points) {
        if (known.timeline == point.timeline) {
            known.value = known.value > point.value ? known.value : point.value;
            return;
        }
    }
    points.push_back(point);
}

}  // namespace kp
