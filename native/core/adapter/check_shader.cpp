#include "adapter/check_shader.hpp"

#include "adapter/shader_needs.hpp"
#include "base/error.hpp"
#include "base/vulkan.hpp"
#include "compiler/compile.hpp"
#include "spirv/interface.hpp"
#include "spirv/pointers.hpp"
#include "spirv/reflect.hpp"

#include <spirv/unified1/spirv.hpp>

#include <algorithm>

namespace kp {
namespace {

std::string dotted(uint32_t major, uint32_t minor) {
    return std::to_string(major) + "." + std::to_string(minor);
}

// The newest Vulkan 1.x rules that both the validator and the host have.
uint32_t rules_of(const ShaderHost& host) {
    return VK_API_VERSION_MAJOR(host.vulkan) > 1 ? 3 : std::min(VK_API_VERSION_MINOR(host.vulkan), 3u);
}

std::string times(const std::array<uint32_t, 3>& size) {
    return std::to_string(size[0]) + " x " + std::to_string(size[1]) + " x " + std::to_string(size[2]);
}

class LimitCheck {
public:
    explicit LimitCheck(const ShaderHost& host) : host_(host) {}

    void at_most(const char* limit, uint64_t allowed, uint64_t uses, const std::string& of_what,
                 const char* fix = "") {
        if (uses <= allowed) return;
        add(limit, uses, allowed,
            "The shader uses " + std::to_string(uses) + " " + of_what + ", but '" + host_.name + "' allows " +
                std::to_string(allowed) + " (" + limit + ")" + fix);
    }
    void add(const char* limit, uint64_t needed, uint64_t has, std::string message) {
        found_.push_back({FindingKind::limit, limit, needed, has, std::move(message)});
    }
    void add(Finding finding) { found_.push_back(std::move(finding)); }
    [[nodiscard]] std::vector<Finding> take() { return std::move(found_); }

private:
    const ShaderHost& host_;
    std::vector<Finding> found_;
};

// The descriptors of one kind, over all bindings, and the largest array among them.
struct DescriptorCount {
    uint64_t total = 0;
    uint32_t most = 1;
    const BindingInfo* array = nullptr;

    void add(const BindingInfo& binding, uint32_t count) {
        total += count;
        if (count <= most) return;
        most = count;
        array = &binding;
    }
    [[nodiscard]] std::string largest() const {
        if (!array) return "";
        const std::string& name = array->instance_name.empty() ? array->block_name : array->instance_name;
        return " (" + std::to_string(most) + " of them the array " + (name.empty() ? "" : "'" + name + "' ") +
               "of binding " + std::to_string(array->binding) + ")";
    }
};

void check_local_size(const ShaderInfo& info, const ShaderHost& host, LimitCheck& check) {
    const auto& most = host.limits.maxComputeWorkGroupSize;
    uint64_t invocations = 1;
    for (size_t axis = 0; axis < 3; ++axis) {
        const uint32_t size = info.local_size[axis];
        // A product of three 32-bit factors could wrap around; no device allows more than this.
        invocations = std::min<uint64_t>(invocations * size, UINT32_MAX);
        if (size == 0 || size > most[axis])
            check.add("maxComputeWorkGroupSize", size, most[axis],
                      "Local size " + times(info.local_size) + ": axis " + "xyz"[axis] + " must be 1 to " +
                          std::to_string(most[axis]) + " on '" + host.name + "' (maxComputeWorkGroupSize)");
    }
    const uint32_t allowed = host.limits.maxComputeWorkGroupInvocations;
    if (invocations > allowed)
        check.add("maxComputeWorkGroupInvocations", invocations, allowed,
                  "Local size " + times(info.local_size) + " is " + std::to_string(invocations) +
                      " invocations, but '" + host.name + "' allows " + std::to_string(allowed) +
                      " in a workgroup (maxComputeWorkGroupInvocations)");
}

}  // namespace

std::vector<Finding> check_module(std::span<const uint32_t> words, const ShaderInfo& info,
                                  const ShaderHost& host) {
    // First, because SPIRV-Tools may be older than a used feature and then only reports an invalid number.
    std::vector<Finding> found = unmet_needs(words, info, host);
    static constexpr std::array<uint32_t, 4> newest_minor{0, 3, 5, 6};  // of SPIR-V 1.x, by Vulkan's
    uint32_t rules = rules_of(host);
    const uint32_t minor = info.version >> 8 & 0xFF;
    if (minor > newest_minor[rules]) {
        const std::string has = "SPIR-V " + dotted(1, newest_minor[rules]);
        const std::string needed = "SPIR-V " + dotted(1, minor);
        const std::string vulkan = dotted(1, rules);
        found.push_back({FindingKind::version, "SPIR-V", needed, has,
                         "The module is " + needed + ", but '" + host.name + "' has Vulkan " + vulkan +
                             ", which takes up to " + has + ": compile it with target=\"vulkan" + vulkan +
                             "\""});
        rules = 3;  // for further findings
    }
    ValidationOptions options;
    options.vulkan_minor = rules;
    options.scalar_block_layout = host.has("scalarBlockLayout");
    options.uniform_buffer_standard_layout = host.has("uniformBufferStandardLayout");
    options.workgroup_scalar_block_layout = host.has("workgroupMemoryExplicitLayoutScalarBlockLayout");
    if (const std::string problem = validate_spirv(words, options); !problem.empty()) {
        ValidationOptions scalar = options;
        scalar.scalar_block_layout = true;
        ValidationOptions workgroup = scalar;
        workgroup.workgroup_scalar_block_layout = true;
        if (!options.scalar_block_layout && validate_spirv(words, scalar).empty())
            found.push_back({FindingKind::feature,
                             "scalarBlockLayout",
                             "the device feature 'scalarBlockLayout'",
                             {},
                             "A block laid out with layout(scalar) needs the device feature "
                             "'scalarBlockLayout' (or use std430)"});
        else if (validate_spirv(words, workgroup).empty())
            found.push_back({FindingKind::feature,
                             "workgroupMemoryExplicitLayoutScalarBlockLayout",
                             "the device feature 'workgroupMemoryExplicitLayoutScalarBlockLayout'",
                             {},
                             "A shared block laid out with layout(scalar) needs the device feature "
                             "'workgroupMemoryExplicitLayoutScalarBlockLayout' (or use std430)"});
        else if (const std::string newer = unknown_capability(problem); found.empty() && !newer.empty())
            found.push_back(
                {FindingKind::validation,
                 "SPIR-V",
                 {},
                 {},
                 newer + " is newer than this kompute_py's validator (SPIRV-Tools), which cannot "
                         "check the module: give kp.ShaderModule(..., unchecked=True) if it is valid"});
        else if (newer.empty())
            found.push_back({FindingKind::validation,
                             "Vulkan " + dotted(1, rules),
                             {},
                             {},
                             "The SPIR-V is not valid for Vulkan " + dotted(1, rules) + ": " + problem});
    }
    if (const std::string problem = interface_problem(words, info.entry); !problem.empty())
        found.push_back({FindingKind::validation, "SPIR-V", {}, {}, problem});
    if (const std::string problem = pointer_problem(words); !problem.empty())
        found.push_back({FindingKind::validation, "SPIR-V", {}, {}, problem});
    return found;
}

std::vector<Finding> check_push_constants(const ShaderInfo& info, const ShaderHost& host) {
    if (!info.push_constants) return {};
    const PushConstantInfo& push = *info.push_constants;
    const uint64_t needed = uint64_t{push.offset} + push.size;
    const uint64_t allowed = host.limits.maxPushConstantsSize;
    if (needed <= allowed) return {};
    const std::string& name = push.instance_name.empty() ? push.block_name : push.instance_name;
    return {{FindingKind::limit, "maxPushConstantsSize", needed, allowed,
             "The shader's push constants " + (name.empty() ? "" : name + " ") + "have " +
                 std::to_string(needed) + " bytes, but '" + host.name + "' allows " +
                 std::to_string(allowed) + " (maxPushConstantsSize): put them into a tensor"}};
}

std::vector<Finding> check_arrays(std::span<const uint32_t> words,
                                  std::span<const SpecValue> specialization) {
    std::string problem = specialization.empty() ? "" : empty_array(words, specialization);
    if (problem.empty()) return {};
    return {{FindingKind::validation, "SPIR-V", {}, {}, std::move(problem)}};
}

std::vector<Finding> check_private_memory(std::span<const uint32_t> words,
                                          std::span<const SpecValue> specialization) {
    constexpr uint64_t allowed = 512 << 10;
    const uint64_t needed = private_bytes(words, specialization);
    if (needed <= allowed) return {};
    return {{FindingKind::limit, "private memory", needed, allowed,
             "The shader's local variables take " + std::to_string(needed) +
                 " bytes for each invocation; compilers are given up to " + std::to_string(allowed) +
                 ": put large arrays into a tensor"}};
}

std::vector<Finding> check_limits(const ShaderInfo& info, const ShaderHost& host,
                                  const DescriptorCounts& lengths) {
    DescriptorCount storage_buffers, uniform_buffers, storage_images, sampled, samplers, resources;
    uint64_t sets = 0;
    for (const BindingInfo& binding : info.bindings) {
        if (!binding.used) continue;
        sets = std::max(sets, uint64_t{binding.set} + 1);
        const uint32_t count = lengths.of(binding);
        if (binding.kind != DescriptorKind::sampler) resources.add(binding, count);
        switch (binding.kind) {
        case DescriptorKind::storage_buffer: storage_buffers.add(binding, count); break;
        case DescriptorKind::uniform_buffer: uniform_buffers.add(binding, count); break;
        case DescriptorKind::storage_image:
        case DescriptorKind::storage_texel_buffer: storage_images.add(binding, count); break;
        case DescriptorKind::sampler: samplers.add(binding, count); break;
        case DescriptorKind::combined_image_sampler:
            sampled.add(binding, count);
            samplers.add(binding, count);
            break;
        case DescriptorKind::sampled_image:
        case DescriptorKind::uniform_texel_buffer: sampled.add(binding, count); break;
        case DescriptorKind::acceleration_structure: break;
        }
    }
    const ShaderLimits& limits = host.limits;
    LimitCheck check(host);
    constexpr const char* buffers =
        ": put them into one tensor, or reach them through their buffer addresses";
    constexpr const char* images = ": use an image with layers";
    constexpr const char* same = ": let images share samplers";
#define KP_COUNT(limit, uses, of_what, fix)                                                                  \
    check.at_most(#limit, limits.limit, (uses).total, of_what + (uses).largest(), fix)
    const std::string storage_text = "storage buffers", uniform_text = "uniform buffers",
                      image_text = "storage images", sampled_text = "sampled images",
                      sampler_text = "samplers";
    KP_COUNT(maxPerStageDescriptorStorageBuffers, storage_buffers, storage_text, buffers);
    KP_COUNT(maxPerStageDescriptorUniformBuffers, uniform_buffers, uniform_text, buffers);
    KP_COUNT(maxPerStageDescriptorStorageImages, storage_images, image_text, images);
    KP_COUNT(maxPerStageDescriptorSampledImages, sampled, sampled_text, images);
    KP_COUNT(maxPerStageDescriptorSamplers, samplers, sampler_text, same);
    // Limits of one pipeline layout, so of all sets together.
    KP_COUNT(maxDescriptorSetStorageBuffers, storage_buffers, storage_text, buffers);
    KP_COUNT(maxDescriptorSetUniformBuffers, uniform_buffers, uniform_text, buffers);
    KP_COUNT(maxDescriptorSetStorageImages, storage_images, image_text, images);
    KP_COUNT(maxDescriptorSetSampledImages, sampled, sampled_text, images);
    KP_COUNT(maxDescriptorSetSamplers, samplers, sampler_text, same);
    KP_COUNT(maxPerStageResources, resources, std::string("buffers and images"), "");
#undef KP_COUNT
    check.at_most("maxBoundDescriptorSets", limits.maxBoundDescriptorSets, sets, "descriptor sets");
    check.at_most("maxComputeSharedMemorySize", limits.maxComputeSharedMemorySize, info.shared_bytes,
                  "bytes of shared memory");
    for (Finding& finding : check_push_constants(info, host)) check.add(std::move(finding));
    check_local_size(info, host, check);
    return check.take();
}

namespace {

DescriptorCounts counts_of(const ShaderInfo& info, std::span<const ArrayLength> lengths) {
    DescriptorCounts counts;
    for (const auto& [name, length] : lengths) {
        const auto named = [&name = name](const BindingInfo& binding) {
            return binding.count == 0 && (binding.instance_name == name || binding.block_name == name);
        };
        const auto found = std::find_if(info.bindings.begin(), info.bindings.end(), named);
        if (found == info.bindings.end()) {
            std::string there;
            for (const BindingInfo& binding : info.bindings)
                if (binding.count == 0)
                    there += (there.empty() ? "'" : ", '") +
                             (binding.instance_name.empty() ? binding.block_name : binding.instance_name) +
                             "'";
            throw Error(ErrorKind::invalid_argument,
                        "The shader has no array of bindings of run-time length called '" + name + "'; " +
                            (there.empty() ? "it has none at all" : "it has " + there));
        }
        counts.runtime.push_back({found->set, found->binding, std::max(length, 1u)});
    }
    return counts;
}

}  // namespace

std::vector<Finding> check_shader(std::span<const uint32_t> words, const ShaderHost& host,
                                  const std::string& entry, std::span<const SpecValue> specialization,
                                  std::span<const ArrayLength> lengths) {
    std::vector<Finding> found;
    if (host.vulkan < VK_API_VERSION_1_2)
        found.push_back({FindingKind::device, "Vulkan", std::string("1.2"),
                         dotted(VK_API_VERSION_MAJOR(host.vulkan), VK_API_VERSION_MINOR(host.vulkan)),
                         "'" + host.name + "' has Vulkan " +
                             dotted(VK_API_VERSION_MAJOR(host.vulkan), VK_API_VERSION_MINOR(host.vulkan)) +
                             ", and 1.2 is needed: no Manager can be made on it"});
    ShaderInfo info;
    try {
        info = reflect(words, entry, specialization);
    } catch (const Error& error) {
        found.push_back({FindingKind::validation, "SPIR-V", {}, {}, error.what()});
        return found;
    }
    for (Finding& finding : check_module(words, info, host)) found.push_back(std::move(finding));
    for (Finding& finding : check_arrays(words, specialization)) found.push_back(std::move(finding));
    for (Finding& finding : check_private_memory(words, specialization)) found.push_back(std::move(finding));
    for (Finding& finding : check_limits(info, host, counts_of(info, lengths)))
        found.push_back(std::move(finding));
    return found;
}

}  // namespace kp
