// Plans of Fourier transforms: the kernels that VkFFT writes for one, as data. No device is used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kp {

// What VkFFT chooses kernels by.
struct FftDevice {
    uint32_t vendor = 0;
    uint32_t shared_bytes = 0;
    uint32_t invocations = 0;
    std::array<uint32_t, 3> group_size{};
};

// Transforms along the middle axis of (batches, length, inner) complex numbers in row-major order, in place.
// The length has no prime factor above 13: VkFFT's kernels for others are new for each length, and drivers
// compile them for long.
struct FftRequest {
    uint64_t batches = 1;
    uint64_t length = 1;
    uint64_t inner = 1;
    bool inverse = false;
    bool doubles = false;
    bool from_input = false;  // reads the numbers from the second buffer of the plan
    bool normalize = false;   // divides by the length, for inverse ones
};

struct FftPlan {
    struct Buffer {
        uint64_t bytes = 0;
        std::vector<std::byte> contents;  // empty: written by dispatches
    };
    struct Dispatch {
        uint32_t program = 0;
        std::vector<uint32_t> buffers;     // by binding
        std::array<uint32_t, 3> groups{};  // any number on each axis: VkFFT 1.2 splits large grids wrongly
    };
    std::vector<Buffer> buffers;        // 0 has the numbers; 1 the input, if there is one
    std::vector<std::string> programs;  // GLSL
    std::vector<Dispatch> run;
};

}  // namespace kp
