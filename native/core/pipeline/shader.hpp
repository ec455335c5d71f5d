// A SPIR-V module that was validated, reflected and checked against one device.
#pragma once

#include "adapter/device_handle.hpp"
#include "adapter/subgroup_request.hpp"
#include "base/vulkan.hpp"
#include "spirv/shader_info.hpp"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kp {

class Debugger;
class DeviceContext;

class Shader {
public:
    // One entry point of a module, as reflect() finds it by name. Throws Error(invalid_argument) if the
    // bytes are not valid SPIR-V, and Error(unimplemented) that names each capability that the device lacks,
    // so that no driver sees an unsupported module. `declared`: the module before it was optimized, which
    // has the arguments to use; "" if only `bytes` is known.
    // `subgroups` is refused if the device does not have such. `unchecked`: the module is taken as valid, and
    // as one that the device runs. `debugger`: adds its instruments to the code.
    Shader(DeviceContext& context, std::string_view bytes, const std::string& entry,
           std::string_view declared = {}, SubgroupRequest subgroups = {}, bool unchecked = false,
           Debugger* debugger = nullptr);
    Shader(const Shader&) = delete;
    Shader& operator=(const Shader&) = delete;

    [[nodiscard]] const ShaderInfo& info() const noexcept { return info_; }
    // The reflected info with these constants applied.
    [[nodiscard]] ShaderInfo specialized(std::span<const SpecValue> values) const;
    // A clause that says why so many groups cannot run and how to fix it; "" if they can run.
    [[nodiscard]] std::string refuses(const std::array<uint32_t, 3>& groups,
                                      std::span<const SpecValue> values) const;
    // True if it was made of the same arguments; a checked one is also found for a request without check.
    [[nodiscard]] bool is(std::string_view bytes, const std::string& entry, std::string_view declared,
                          SubgroupRequest subgroups, bool unchecked) const noexcept;
    [[nodiscard]] std::span<const uint32_t> words() const noexcept { return words_; }
    // Before it was optimized; empty if only words() is known.
    [[nodiscard]] std::span<const uint32_t> declared() const noexcept { return declared_; }
    // The code to run: lowered (spirv/lower); with instruments, if wanted (instruments/instrument); on a
    // robust device, with indices held within arrays (spirv/clamp).
    [[nodiscard]] std::span<const uint32_t> code() const noexcept { return code_.empty() ? words_ : code_; }
    // The set that its instruments use; nothing if it has none.
    [[nodiscard]] std::optional<uint32_t> instruments() const noexcept { return instruments_; }
    // The module's number in the debugger, if it has instruments.
    [[nodiscard]] uint32_t debug_module() const noexcept { return debug_module_; }
    [[nodiscard]] const SubgroupRequest& subgroups() const noexcept { return subgroups_; }
    [[nodiscard]] VkShaderModule handle() const noexcept { return module_.get(); }
    [[nodiscard]] bool belongs_to(const DeviceContext& context) const noexcept;
    // Unique among all shaders of this process, past ones included.
    [[nodiscard]] uint64_t number() const noexcept { return number_; }
    // Bytes of the SPIR-V that it keeps.
    [[nodiscard]] size_t code_bytes() const noexcept {
        return (words_.size() + code_.size() + declared_.size()) * sizeof(uint32_t);
    }

    // Any object that the bindings keep with it. Dropping it takes no lock.
    std::shared_ptr<void> extra;
    // Whether a function wrote it, for what records it. It runs no differently.
    bool generated = false;

private:
    DeviceContext* context_;
    std::vector<uint32_t> words_;
    std::vector<uint32_t> code_;  // empty: words_ is used
    std::vector<uint32_t> declared_;
    std::optional<uint32_t> instruments_;
    uint32_t debug_module_ = 0;
    SubgroupRequest subgroups_;
    bool unchecked_;
    std::string asked_entry_;  // "main" may stand for another entry point
    ShaderInfo info_;
    uint64_t number_;
    DeviceHandle<VkShaderModule> module_;
};

}  // namespace kp
