// Vulkan objects with shared ownership: freed with the last owner, and at the latest when the device closes.
//
// The last owner may be destroyed on any thread, at the same time as the device, or after it (Python may keep
// a shader longer than the Manager). So the device keeps a list of all such objects, and the first of the two
// frees the object: the last owner, or the device.
#pragma once

#include "base/ranked.hpp"
#include "base/vulkan.hpp"

#include <atomic>
#include <memory>
#include <mutex>

namespace kp {

class DeviceContext;
class DeviceHandles;

namespace detail {

// One object in the list.
struct HandleEntry {
    using Free = void (*)(const DeviceContext&, uint64_t) noexcept;

    std::shared_ptr<DeviceHandles> list;
    uint64_t handle = 0;
    Free free = nullptr;
    // Guarded by the list's mutex.
    bool listed = false;
    HandleEntry* previous = nullptr;
    HandleEntry* next = nullptr;
};

}  // namespace detail

class DeviceHandles {
public:
    explicit DeviceHandles(const DeviceContext& context) : context_(context) {}
    DeviceHandles(const DeviceHandles&) = delete;
    DeviceHandles& operator=(const DeviceHandles&) = delete;

    // Frees all remaining objects. The device must be idle, and nothing may be added any more.
    void close() noexcept;
    // For a child process after fork(): the objects belong to the parent, so the child never frees them.
    void forget() noexcept { forgotten_.store(true, std::memory_order_release); }

private:
    template <class Handle>
    friend class DeviceHandle;

    void add(detail::HandleEntry& entry) noexcept;
    void remove(detail::HandleEntry& entry) noexcept;  // frees it unless close() did
    void unlink(detail::HandleEntry& entry) noexcept;

    const DeviceContext& context_;  // used only while entries are listed, so before the device is destroyed
    std::atomic<bool> forgotten_{false};
    RankedMutex mutex_{LockRank::handles};
    detail::HandleEntry* first_ = nullptr;
};

// Owns one Vulkan object of type `Handle`, or none.
template <class Handle>
class DeviceHandle {
public:
    DeviceHandle() = default;
    DeviceHandle(const DeviceHandle&) = delete;
    DeviceHandle& operator=(const DeviceHandle&) = delete;
    ~DeviceHandle() {
        if (entry_.list) entry_.list->remove(entry_);
    }

    // Call it once. `free` destroys the object and takes no lock.
    void own(std::shared_ptr<DeviceHandles> list, Handle handle, detail::HandleEntry::Free free) noexcept {
        handle_ = handle;
        entry_.handle = handle_value(handle);
        entry_.free = free;
        entry_.list = std::move(list);
        entry_.list->add(entry_);
    }
    // The owned object; do not use it after the device has closed.
    [[nodiscard]] Handle get() const noexcept { return handle_; }
    [[nodiscard]] const std::shared_ptr<DeviceHandles>& list() const noexcept { return entry_.list; }

private:
    Handle handle_ = VK_NULL_HANDLE;
    detail::HandleEntry entry_;
};

}  // namespace kp
