// Finds the reasons why a device would refuse a shader. Used for algorithms, and for shaders that are checked
// without opening a device. Pure.
#pragma once

#include "adapter/shader_host.hpp"
#include "spirv/shader_info.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kp {

// The number of descriptors in each array of run-time length.
struct DescriptorCounts {
    struct Runtime {
        uint32_t set = 0;
        uint32_t binding = 0;
        uint32_t count = 1;
    };
    std::vector<Runtime> runtime;

    [[nodiscard]] uint32_t of(const BindingInfo& binding) const noexcept {
        for (const Runtime& each : runtime)
            if (each.set == binding.set && each.binding == binding.binding) return each.count;
        return binding.count == 0 ? 1 : binding.count;
    }
};

// Checks the module as a whole: its version, its validity, its declared needs.
[[nodiscard]] std::vector<Finding> check_module(std::span<const uint32_t> words, const ShaderInfo& info,
                                                const ShaderHost& host);
// Checks the size of the push constants, which no specialization changes; part of check_limits.
[[nodiscard]] std::vector<Finding> check_push_constants(const ShaderInfo& info, const ShaderHost& host);
// Finds arrays that specialization constants give a length below 1.
[[nodiscard]] std::vector<Finding> check_arrays(std::span<const uint32_t> words,
                                                std::span<const SpecValue> specialization);
// Checks the memory that each invocation owns: compilers never get more than the largest that any device
// accepts.
[[nodiscard]] std::vector<Finding> check_private_memory(std::span<const uint32_t> words,
                                                        std::span<const SpecValue> specialization);
// Checks sizes and counts; `info` has the specialization applied. `counts` gives the lengths of run-time
// arrays; without it, such an array needs one descriptor. Bindings that the code does not use have no place
// in the layout and do not count.
[[nodiscard]] std::vector<Finding> check_limits(const ShaderInfo& info, const ShaderHost& host,
                                                const DescriptorCounts& counts = {});

// The name of a binding that is an array of descriptors of run-time length, and its length.
using ArrayLength = std::pair<std::string, uint32_t>;

// All checks, and errors of reflection, such as a module without this entry point.
[[nodiscard]] std::vector<Finding> check_shader(std::span<const uint32_t> words, const ShaderHost& host,
                                                const std::string& entry = "main",
                                                std::span<const SpecValue> specialization = {},
                                                std::span<const ArrayLength> lengths = {});

}  // namespace kp
