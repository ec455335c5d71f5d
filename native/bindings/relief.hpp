// Python keeps memory for later calls (kompute_py/_device/kept.py). Before an allocation fails for want of
// memory, it gives all of that back.
#pragma once

#include "base/error.hpp"

namespace kp {

// Called with the interpreter lock and under no lock of the core. Whether Python gave memory back.
[[nodiscard]] bool relieved();

// What `make` returns; tried once more if memory was short and Python gave some back.
template <typename Make>
auto with_relief(const Make& make) {
    try {
        return make();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::out_of_memory || !relieved()) throw;
    }
    return make();
}

}  // namespace kp
