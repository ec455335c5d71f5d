// Parts of the bindings of algorithms, operations and streams that the calls of kernels use, too.
#pragma once

#include "bindings.hpp"
#include "resource/semaphore.hpp"
#include "run/fence.hpp"

namespace kp {

// Item i is binding i of set 0: a Memory, a BufferView, a Sampler, (memory, sampler), or None. A tuple of
// five gives the place: (set, binding, element, memory or None, sampler or None).
[[nodiscard]] std::vector<Argument> arguments_of(const py::sequence& arguments);
[[nodiscard]] std::array<uint32_t, 3> groups_of(const std::array<int64_t, 3>& groups);
// Compiles the pipeline that runs `groups` in layers, if layers are needed. Hears Ctrl-C meanwhile; the
// dispatch then finds it.
std::shared_ptr<Algorithm> prepared(std::shared_ptr<Algorithm> algorithm,
                                    const std::array<uint32_t, 3>& groups);
// Submits, after `first` if that is not null, and waits. Ctrl-C leaves the stream running.
void evaluate(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Stream>& first = nullptr);

using SemaphoreValue = std::pair<std::shared_ptr<Semaphore>, uint64_t>;
// Fences and values to wait for, and values to signal.
using WaitsAndSignals =
    std::tuple<std::vector<std::shared_ptr<Fence>>, std::vector<SemaphoreValue>, std::vector<SemaphoreValue>>;
// Submits the streams in order, after what `order` waits for; what it signals follows them.
[[nodiscard]] std::shared_ptr<Fence> submit_in_order(const std::shared_ptr<Device>& device,
                                                     const std::vector<std::shared_ptr<Stream>>& streams,
                                                     const WaitsAndSignals& order);

}  // namespace kp
