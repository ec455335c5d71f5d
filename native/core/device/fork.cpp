#include "device/fork.hpp"

#include "device/device.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#ifndef _WIN32
#include <pthread.h>
#endif

namespace kp {
namespace {

// Never destroyed: objects may go after static destructors have run.
struct Registry {
    std::mutex mutex;
    std::vector<Device*> devices;
};

Registry& registry() {
    static auto* all = new Registry();
    return *all;
}

}  // namespace

namespace {
std::atomic<bool> with_drivers{false};
}

bool forked_with_drivers() noexcept { return with_drivers.load(std::memory_order_relaxed); }

// What the handlers of pthread_atfork do; a friend of Device.
struct ForkHandlers {
    // The lists must be whole in the child, whatever other threads are doing.
    static void prepare() {
        Instance::before_fork();
        registry().mutex.lock();
        for (Device* device : registry().devices) {
            device->objects_mutex_.lock();
            device->names_mutex_.lock();
        }
    }
    static void parent() {
        for (Device* device : registry().devices) {
            device->names_mutex_.unlock();
            device->objects_mutex_.unlock();
        }
        registry().mutex.unlock();
        Instance::after_fork();
    }
    static void child() {
        // Owned here for ever, so that no destructor of theirs runs.
        static auto* kept = new std::vector<std::shared_ptr<void>>();
        for (Device* device : registry().devices) {
            device->foreign_.store(true, std::memory_order_release);
            device->closed_.store(true, std::memory_order_release);
            device->handles_->forget();
            if (auto owned = device->weak_from_this().lock()) kept->push_back(std::move(owned));
            for (Object* object = device->objects_; object; object = object->next_) {
                object->destroyed_.store(true, std::memory_order_release);
                if (auto owned = object->weak_from_this().lock()) kept->push_back(std::move(owned));
            }
            device->names_mutex_.unlock();
            device->objects_mutex_.unlock();
        }
        for (size_t kind = 0; kind < object_kinds; ++kind)
            alive_count(static_cast<ObjectKind>(kind)).store(0);
        registry().devices.clear();
        registry().mutex.unlock();
        if (Instance::forget_all()) with_drivers.store(true, std::memory_order_relaxed);
        Instance::after_fork();
    }
};

void enlist_for_fork(Device& device) {
#ifndef _WIN32
    static const int registered =
        pthread_atfork(&ForkHandlers::prepare, &ForkHandlers::parent, &ForkHandlers::child);
    (void)registered;
#endif
    const std::lock_guard lock(registry().mutex);
    registry().devices.push_back(&device);
}

void delist_for_fork(Device& device) noexcept {
    const std::lock_guard lock(registry().mutex);
    std::erase(registry().devices, &device);
}

}  // namespace kp
