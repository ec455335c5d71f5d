#include "resource/semaphore.hpp"

#include "base/error.hpp"
#include "device/device.hpp"
#include "sync/gate.hpp"

namespace kp {

Semaphore::Semaphore(std::shared_ptr<Device> owner, uint64_t initial)
    : Object(std::move(owner), ObjectKind::semaphore),
      timeline_(device().timeline_parts(), initial, "a semaphore", true) {
    timeline_.set_owner(*this);
}

Semaphore::~Semaphore() { finalize(); }

void Semaphore::set_name(const std::string& name) {
    Object::set_name(name);
    name_handles([this](const std::string& given) {
        device().name_handle(VK_OBJECT_TYPE_SEMAPHORE, handle_value(handle()), given);
    });
}

uint64_t Semaphore::query() {
    require_init("query");
    timeline_.require_sound(UINT64_MAX);
    return timeline_.query();
}

std::tuple<uint64_t, uint64_t, std::optional<std::string>> Semaphore::state() {
    const uint64_t now = timeline_.query();
    if (now > timeline_.promised()) {
        // Others raised it by its handle.
        timeline_.promise(now);
        device().gate().release();
    }
    const uint64_t promised = timeline_.promised();
    if (now >= promised) {
        try {
            timeline_.require_sound(now + 1);
        } catch (const Error& error) {
            return {now, promised, error.what()};
        }
    }
    return {now, promised, std::nullopt};
}

void Semaphore::require_near(uint64_t value) {
    const uint64_t most = device().physical().v12.maxTimelineSemaphoreValueDifference;
    const uint64_t now = timeline_.query();
    if (value > now && value - now > most)
        throw Error(ErrorKind::invalid_argument,
                    "The " + label() + " is at " + std::to_string(now) + "; this device lets it be at most " +
                        std::to_string(most) + " behind a value that is signalled or waited for, and " +
                        std::to_string(value) + " is further");
}

void Semaphore::signal(uint64_t value) {
    require_init("signal");
    require_near(value);
    device().gate().signal(timeline_, value);
}

void Semaphore::fail(const std::string& message) {
    require_init("fail");
    device().gate().fail(timeline_, Error(ErrorKind::aborted, message));
    device().wake_waiters();
}

std::vector<std::string> Semaphore::abandon() {
    if (!is_init()) return {};
    std::vector<std::string> told = device().gate().abandon(timeline_);
    device().wake_waiters();
    return told;
}

void Semaphore::release(std::vector<Point> points) {
    struct Payload {
        Device& device;
        VkSemaphore semaphore;
        ~Payload() { device.vk().vkDestroySemaphore(device.handle(), semaphore, nullptr); }
    };
    // When a Manager destroys its objects, all submitted work is done; the other values will not come.
    timeline_.end(
        Error(ErrorKind::failed_precondition, "The " + label() + " was destroyed with its Manager"));
    device().wake_waiters();
    const std::shared_ptr<Payload> payload(new Payload{device(), timeline_.release()});
    // Until the next submission has passed, as well: see Queue::let_finish().
    for (Point& point : points) ++point.value;
    device().retired().push(std::move(points), payload);
}

}  // namespace kp
