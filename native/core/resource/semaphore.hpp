// A user's timeline semaphore: signalled by the host or by submissions, waited for by both.
#pragma once

#include "resource/object.hpp"
#include "sync/timeline.hpp"

#include <string>

namespace kp {

class Semaphore final : public Object, public TimelineOwner {
public:
    Semaphore(std::shared_ptr<Device> device, uint64_t initial);
    ~Semaphore() override;

    [[nodiscard]] Timeline& timeline() noexcept override { return timeline_; }
    [[nodiscard]] std::string timeline_label() const override { return label(); }
    void note_use(Point end) override { leave_behind(end); }
    [[nodiscard]] VkSemaphore handle() const noexcept { return timeline_.semaphore(); }
    void set_name(const std::string& name) override;

    // The value now. Throws what it failed with.
    [[nodiscard]] uint64_t query();
    // Raises it to `value`, and lets submissions go that waited for that. Throws unless `value` is above all that is promised.
    void signal(uint64_t value);
    // Throws for a value that the device's counter does not allow to be on the way yet.
    void require_near(uint64_t value);
    // Values not reached or on their way will not come: all who wait for one are told `message`. The first failure stays.
    void fail(const std::string& message);

protected:
    void release(std::vector<Point> points) override;

private:
    Timeline timeline_;
};

}  // namespace kp
