// A user's timeline semaphore: signalled by the host or by submissions, waited for by both.
//
// A shared one has a file descriptor for other APIs and processes, if the device has such descriptors of
// timelines (VK_KHR_external_semaphore_fd). Only the same driver on the same device can import it.
#pragma once

#include "resource/object.hpp"
#include "sync/timeline.hpp"

#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace kp {

// A file descriptor of a semaphore. A plain int would be taken where a first value is meant.
struct SemaphoreFile {
    int descriptor;
};

class Semaphore final : public Object, public TimelineOwner {
public:
    Semaphore(std::shared_ptr<Device> device, uint64_t initial, bool shared = false);
    // The semaphore of a descriptor, which Vulkan owns then; after an error it is still the caller's. Throws
    // Error(unimplemented) if the device has no such descriptors, Error(invalid_argument) for another one.
    Semaphore(std::shared_ptr<Device> device, SemaphoreFile file);
    ~Semaphore() override;

    // A new descriptor of a shared semaphore; the caller owns it. Throws Error(unimplemented) if the device
    // has none.
    [[nodiscard]] int descriptor();

    [[nodiscard]] Timeline& timeline() noexcept override { return timeline_; }
    [[nodiscard]] std::string timeline_label() const override { return label(); }
    void note_use(Point end) override { leave_behind(end); }
    [[nodiscard]] VkSemaphore handle() const noexcept { return timeline_.semaphore(); }
    void set_name(const std::string& name) override;

    // The value now. Throws the error that the semaphore failed with.
    [[nodiscard]] uint64_t query();
    // The value now, the highest promised one, and why higher values will not come, if they will not. Throws
    // if the device is lost.
    [[nodiscard]] std::tuple<uint64_t, uint64_t, std::optional<std::string>> state();
    // Raises it to `value` and submits the held work that waited for that. Throws unless `value` is above
    // all promised values.
    void signal(uint64_t value);
    // Throws if `value` is further from the current value than the device allows.
    void require_near(uint64_t value);
    // Values that are not reached or promised will not come: waits for them throw `message`. The first
    // failure is kept.
    void fail(const std::string& message);
    // The host lets go of it: values that no submitted work will raise fail, as by fail(). Returns sentences
    // about the held work that this cancels.
    [[nodiscard]] std::vector<std::string> abandon();

protected:
    void release(std::vector<Point> points) override;

private:
    // The value now; if others raised it by its handle or a descriptor, submits the held work that waited.
    [[nodiscard]] uint64_t look();

    Timeline timeline_;
};

}  // namespace kp
