#include "pipeline/shader.hpp"

#include "adapter/check_shader.hpp"
#include "adapter/context.hpp"
#include "base/error.hpp"
#include "base/object_kind.hpp"
#include "pipeline/debugger.hpp"
#include "spirv/clamp.hpp"
#include "spirv/fold.hpp"
#include "spirv/guard_atomics.hpp"
#include "spirv/lower.hpp"
#include "spirv/reflect.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace kp {
namespace {

uint64_t next_number() noexcept {
    static std::atomic<uint64_t> numbers{0};
    return ++numbers;
}

void free_module(const DeviceContext& context, uint64_t handle) noexcept {
    context.vk().vkDestroyShaderModule(context.handle(), handle_from<VkShaderModule>(handle), nullptr);
    context.count(ObjectKind::shader, -1);
}

constexpr uint32_t max_binding = 0xFFFF;  // the largest number that GLSL compilers take

std::vector<uint32_t> words_of(std::string_view bytes) {
    if (bytes.empty() || bytes.size() % 4 != 0)
        throw Error(ErrorKind::invalid_argument,
                    "Not SPIR-V: " + std::to_string(bytes.size()) +
                        " bytes, but a module is a non-empty whole number of 4-byte words. Compile "
                        "shader source with kp.compile() first");
    std::vector<uint32_t> words(bytes.size() / 4);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
}

bool same_bytes(std::span<const uint32_t> words, std::string_view bytes) noexcept {
    return words.size_bytes() == bytes.size() &&
           (bytes.empty() || std::memcmp(words.data(), bytes.data(), bytes.size()) == 0);
}

}  // namespace

Shader::Shader(DeviceContext& context, std::string_view bytes, const std::string& entry,
               std::string_view declared, SubgroupRequest subgroups, bool unchecked, Debugger* debugger)
    : context_(&context),
      words_(words_of(bytes)),
      declared_(declared.empty() ? std::vector<uint32_t>{} : words_of(declared)),
      subgroups_(subgroups),
      unchecked_(unchecked),
      asked_entry_(entry),
      info_(specialized({})),
      number_(next_number()) {
    std::string missing;
    std::vector<Finding> findings;
    if (!unchecked) findings = check_module(words_, info_, context.shader_host());
    for (const Finding& finding : findings) {
        const bool lacking = finding.kind == FindingKind::capability ||
                             finding.kind == FindingKind::feature || finding.kind == FindingKind::extension ||
                             finding.kind == FindingKind::mode;
        // The device's missing capabilities say more than the validator, which may not know them.
        if (!lacking && missing.empty()) throw Error(ErrorKind::invalid_argument, finding.message);
        if (!lacking) continue;
        missing += (missing.empty() ? "" : "; ") + finding.message;
    }
    if (!missing.empty())
        throw Error(ErrorKind::unimplemented,
                    "The shader uses what '" + context.shader_host().name + "' does not have: " + missing +
                        ". Use another device (kp.list_devices()) or change the shader");

    check_subgroups(subgroups_, context.shader_host());

    // Drivers have a table up to the largest number, and so has an algorithm.
    for (const BindingInfo& binding : info_.bindings)
        if (binding.binding > max_binding)
            throw Error(ErrorKind::unimplemented, "The shader declares binding number " +
                                                      std::to_string(binding.binding) + "; numbers up to " +
                                                      std::to_string(max_binding) +
                                                      " can be bound. Number bindings from 0 on");

    // The other limits depend on the specialization; the pipeline checks them.
    if (const auto found = check_push_constants(info_, context.shader_host()); !found.empty())
        throw Error(ErrorKind::invalid_argument, found.front().message);

    VkShaderModuleCreateInfo create{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    const bool swiftshader = context.physical().v12.driverID == VK_DRIVER_ID_GOOGLE_SWIFTSHADER;
    const auto rewrite = [this](std::vector<uint32_t> next) {
        if (!next.empty()) code_ = std::move(next);
    };
    // SwiftShader ends the process when it unrolls a loop around a subgroup operation under a condition.
    rewrite(lowered(code(), swiftshader));
    if (debugger) {
        uint32_t set = 0;
        for (const BindingInfo& binding : info_.bindings) set = std::max(set, binding.set + 1);
        if (auto next = debugger->instrument(code(), set, debug_module_); !next.empty()) {
            instruments_ = set;
            rewrite(std::move(next));
        }
    }
    if (context.shader_host().has("robustBufferAccess")) {
        rewrite(clamped(code()).words);
        // SwiftShader ends the process on an atomic far beyond its buffer.
        if (swiftshader) rewrite(guarded_atomics(code()));
    }
    create.codeSize = code().size_bytes();
    create.pCode = code().data();
    VkShaderModule module = VK_NULL_HANDLE;
    check_vk(context.vk().vkCreateShaderModule(context.handle(), &create, nullptr, &module),
             "vkCreateShaderModule", "a shader");
    context.count(ObjectKind::shader, 1);
    module_.own(context.handles(), module, &free_module);
}

bool Shader::belongs_to(const DeviceContext& context) const noexcept {
    return module_.list() == context.handles();
}

ShaderInfo Shader::specialized(std::span<const SpecValue> values) const {
    ShaderInfo runs = reflect(words_, asked_entry_, values);
    if (declared_.empty()) return runs;
    return as_declared(reflect(declared_, asked_entry_, values), runs);
}

std::string Shader::refuses(const std::array<uint32_t, 3>& groups, std::span<const SpecValue> values) const {
    const auto& most = context_->limits().maxComputeWorkGroupCount;
    try {
        const ShaderInfo info = specialized(values);
        if (const auto fold = fold_of(info.local_size, groups, {most[0], most[1], most[2]}))
            (void)folded(code(), info.entry, *fold, info.local_size);
        return "";
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::invalid_argument && error.kind() != ErrorKind::unimplemented) throw;
        return std::string("they cannot run in layers along another axis: ") + error.what() +
               ". Use a larger local size, or spread the axis over two, groups=(65535, n), with uint i = "
               "gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x "
               "in the code";
    }
}

bool Shader::is(std::string_view bytes, const std::string& entry, std::string_view declared,
                SubgroupRequest subgroups, bool unchecked) const noexcept {
    return subgroups_ == subgroups && (unchecked || !unchecked_) &&
           (asked_entry_ == entry || info_.entry == entry) && same_bytes(words_, bytes) &&
           same_bytes(declared_, declared);
}

}  // namespace kp
