// What a device would refuse about a shader: the one place that knows, for algorithms and for shaders that are checked with
// no device opened. Pure.
#pragma once

#include "adapter/shader_host.hpp"
#include "spirv/shader_info.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kp {

// How many descriptors the arrays of run-time length have.
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

// The module as a whole: its version, its rules, what it declares to use.
[[nodiscard]] std::vector<Finding> check_module(std::span<const uint32_t> words, const ShaderInfo& info,
                                                const ShaderHost& host);
// The size of the push constants, which no specialization changes; part of check_limits.
[[nodiscard]] std::vector<Finding> check_push_constants(const ShaderInfo& info, const ShaderHost& host);
// Lengths of arrays that specialization constants make less than 1.
[[nodiscard]] std::vector<Finding> check_arrays(std::span<const uint32_t> words,
                                                std::span<const SpecValue> specialization);
// What each invocation has by itself: no compiler is given more than the largest that any device takes.
[[nodiscard]] std::vector<Finding> check_private_memory(std::span<const uint32_t> words,
                                                        std::span<const SpecValue> specialization);
// Sizes and counts; `info` has the specialization applied. Arrays of run-time length count as `counts` says: by itself such
// an array needs one descriptor. A binding that the code does not use has no place in the layout and counts nothing.
[[nodiscard]] std::vector<Finding> check_limits(const ShaderInfo& info, const ShaderHost& host,
                                                const DescriptorCounts& counts = {});

// The length that an array of descriptors of run-time length is to have: of the binding with this name.
using ArrayLength = std::pair<std::string, uint32_t>;

// Both, and what cannot be reflected at all, such as a module without this entry point.
[[nodiscard]] std::vector<Finding> check_shader(std::span<const uint32_t> words, const ShaderHost& host,
                                                const std::string& entry = "main",
                                                std::span<const SpecValue> specialization = {},
                                                std::span<const ArrayLength> lengths = {});

}  // namespace kp
