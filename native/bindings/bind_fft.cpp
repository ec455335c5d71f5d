// fft_plan: the kernels of a Fourier transform, as data.
#include "bindings.hpp"
#include "fft/make_plan.hpp"

namespace kp {
namespace {

using namespace py::literals;

py::list to_python(const std::vector<FftPlan::Dispatch>& dispatches) {
    py::list list;
    for (const FftPlan::Dispatch& each : dispatches)
        list.append(py::make_tuple(each.program, each.buffers, each.groups));
    return list;
}

}  // namespace

void bind_fft(py::module_& m) {
    m.def(
        "fft_plan",
        [](uint64_t batches, uint64_t length, uint64_t inner, bool inverse, bool doubles, bool from_input,
           bool normalize, uint32_t vendor, uint32_t shared_bytes, uint32_t invocations,
           const std::array<uint32_t, 3>& group_size) {
            const FftDevice device{vendor, shared_bytes, invocations, group_size};
            const FftRequest request{batches, length, inner, inverse, doubles, from_input, normalize};
            const FftPlan plan = interruptibly([device, request] { return plan_fft(device, request); });
            py::list buffers;
            for (const FftPlan::Buffer& each : plan.buffers)
                buffers.append(
                    py::make_tuple(each.bytes, py::bytes(reinterpret_cast<const char*>(each.contents.data()),
                                                         each.contents.size())));
            return py::make_tuple(buffers, plan.programs, to_python(plan.run));
        },
        "batches"_a, "length"_a, "inner"_a, "inverse"_a, "doubles"_a, "from_input"_a, "normalize"_a,
        "vendor"_a, "shared_bytes"_a, "invocations"_a, "group_size"_a);
}

}  // namespace kp
