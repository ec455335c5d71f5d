// Makes objects: constructs them, then adds them to their device's list.
//
// The order matters: other threads that walk the list take shared ownership of the objects in it, and an
// object has no owner to share with before std::make_shared has returned.
#pragma once

#include "device/device.hpp"
#include "resource/object.hpp"

#include <memory>
#include <utility>

namespace kp {

template <typename T, typename... Arguments>
[[nodiscard]] std::shared_ptr<T> make_object(Arguments&&... arguments) {
    auto object = std::make_shared<T>(std::forward<Arguments>(arguments)...);
    object->device().adopt(*object);  // throws if the device was closed meanwhile
    return object;
}

}  // namespace kp
