// A SPIR-V module that was validated, reflected and checked against one device.
#pragma once

#include "spirv_reflect.hpp"
#include "vulkan.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kp {

class Device;

class Shader {
public:
    // One entry point of a module, as reflect() finds it by name.
    // Throws Error(invalid_argument) for bytes that are not valid SPIR-V, Error(unavailable) that names each capability
    // the device lacks: no driver sees a module that it could not take.
    Shader(Device& device, std::string bytes, const std::string& entry);
    Shader(const Shader&) = delete;
    Shader& operator=(const Shader&) = delete;
    ~Shader();

    [[nodiscard]] const ShaderInfo& info() const noexcept { return info_; }
    // The name that it was asked for by: "main" may mean another.
    [[nodiscard]] const std::string& asked_entry() const noexcept { return asked_entry_; }
    [[nodiscard]] std::span<const uint32_t> words() const noexcept { return words_; }
    [[nodiscard]] VkShaderModule handle() const noexcept { return module_; }
    [[nodiscard]] bool belongs_to(const Device& device) const noexcept { return device_ == &device; }
    // Destroys the module; the device is going away.
    void close() noexcept;

    // Whatever the bindings keep with it.
    std::shared_ptr<void> extra;

private:
    Device* device_;
    std::vector<uint32_t> words_;
    std::string asked_entry_;
    ShaderInfo info_;
    VkShaderModule module_ = VK_NULL_HANDLE;
};

}  // namespace kp
