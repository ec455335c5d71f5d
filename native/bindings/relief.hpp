// What is tried before an allocation fails for want of memory.
#pragma once

#include "base/error.hpp"

namespace kp {

class Device;

// Python keeps memory for later calls (kompute_py/_device/kept.py) and gives all of it back. Called with the
// interpreter lock and under no lock of the core, as the next. Whether there was some.
[[nodiscard]] bool relieved();

// Waits for the work in flight, after which objects are freed that were dropped while it used them. Whether
// some ran, or such objects were left.
[[nodiscard]] bool awaited(Device& device);

// What `make` returns.
template <typename Make>
auto with_relief(Device& device, const Make& make) {
    try {
        return make();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::out_of_memory || (!relieved() && !awaited(device))) throw;
    }
    try {
        return make();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::out_of_memory || !awaited(device)) throw;
    }
    return make();
}

}  // namespace kp
