#include "adapter/device_handle.hpp"

namespace kp {

void DeviceHandles::add(detail::HandleEntry& entry) noexcept {
    const std::lock_guard lock(mutex_);
    entry.next = first_;
    if (first_) first_->previous = &entry;
    first_ = &entry;
    entry.listed = true;
}

void DeviceHandles::unlink(detail::HandleEntry& entry) noexcept {
    if (entry.previous)
        entry.previous->next = entry.next;
    else
        first_ = entry.next;
    if (entry.next) entry.next->previous = entry.previous;
    entry.previous = entry.next = nullptr;
    entry.listed = false;
}

void DeviceHandles::remove(detail::HandleEntry& entry) noexcept {
    // Another thread may have held the mutex itself when the process forked.
    if (forgotten_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    if (!entry.listed) return;
    unlink(entry);
    entry.free(context_, entry.handle);
}

void DeviceHandles::close() noexcept {
    const std::lock_guard lock(mutex_);
    while (first_) {
        detail::HandleEntry& entry = *first_;
        unlink(entry);
        entry.free(context_, entry.handle);
    }
}

}  // namespace kp
