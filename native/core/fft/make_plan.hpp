// The plan of a transform, made by VkFFT.
#pragma once

#include "fft/plan.hpp"

namespace kp {

// Throws Error (unimplemented) if VkFFT has no kernels for the request, (internal) if it does what a plan
// cannot have: it runs kernels beforehand for lengths with larger prime factors.
FftPlan plan_fft(const FftDevice& device, const FftRequest& request);

}  // namespace kp
