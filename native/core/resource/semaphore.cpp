#include "resource/semaphore.hpp"

#include "base/error.hpp"
#include "device/device.hpp"
#include "sync/gate.hpp"

namespace kp {
namespace {

constexpr VkExternalSemaphoreHandleTypeFlagBits timeline_handle =
    VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
constexpr VkExportSemaphoreCreateInfo exported{VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO, nullptr,
                                               timeline_handle};

bool has_descriptors(const Device& device, VkExternalSemaphoreFeatureFlagBits needed) {
    if (!device.vk().vkGetSemaphoreFdKHR) return false;
    VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    VkPhysicalDeviceExternalSemaphoreInfo asked{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO};
    asked.pNext = &type;
    asked.handleType = timeline_handle;
    VkExternalSemaphoreProperties found{VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES};
    vkGetPhysicalDeviceExternalSemaphoreProperties(device.physical().handle, &asked, &found);
    return found.externalSemaphoreFeatures & needed;
}

void require_descriptors(const Device& device, VkExternalSemaphoreFeatureFlagBits needed) {
    if (has_descriptors(device, needed)) return;
    throw Error(ErrorKind::unimplemented,
                std::string("'") + device.physical().properties.deviceName +
                    "' has no file descriptors of timeline semaphores (VK_KHR_external_semaphore_fd): "
                    "between programs of kompute_py use semaphore.share(), for others fence.export_fd()");
}

}  // namespace

Semaphore::Semaphore(std::shared_ptr<Device> owner, uint64_t initial, bool shared)
    : Object(std::move(owner), ObjectKind::semaphore),
      timeline_(device().timeline_parts(), initial, "a semaphore", true,
                shared && has_descriptors(device(), VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT) ? &exported
                                                                                                  : nullptr) {
    timeline_.set_owner(*this);
}

Semaphore::Semaphore(std::shared_ptr<Device> owner, SemaphoreFile file)
    : Semaphore(std::move(owner), 0, true) {
    require_descriptors(device(), VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT);
    VkImportSemaphoreFdInfoKHR import{VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR};
    import.semaphore = handle();
    import.handleType = timeline_handle;
    import.fd = file.descriptor;
    const VkResult result = device().vk().vkImportSemaphoreFdKHR(device().handle(), &import);
    if (result == VK_ERROR_INVALID_EXTERNAL_HANDLE)
        throw Error(
            ErrorKind::invalid_argument,
            "The driver does not know this file descriptor as a timeline semaphore: it must come from "
            "the same driver and device",
            result);
    check_vk(result, "vkImportSemaphoreFdKHR", "a semaphore");
}

int Semaphore::descriptor() {
    require_init("export");
    require_descriptors(device(), VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT);
    VkSemaphoreGetFdInfoKHR info{VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR};
    info.semaphore = handle();
    info.handleType = timeline_handle;
    int fd = -1;
    check_vk(device().vk().vkGetSemaphoreFdKHR(device().handle(), &info, &fd), "vkGetSemaphoreFdKHR",
             "a semaphore");
    return fd;
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

uint64_t Semaphore::look() {
    const uint64_t now = timeline_.query();
    if (now > timeline_.promised()) {
        timeline_.promise(now);
        device().gate().release();
    }
    return now;
}

std::tuple<uint64_t, uint64_t, std::optional<std::string>> Semaphore::state() {
    const uint64_t now = look();
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
    const uint64_t now = look();
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
