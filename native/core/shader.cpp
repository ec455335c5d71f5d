#include "shader.hpp"

#include "device.hpp"
#include "error.hpp"
#include "shader_compile.hpp"

#include <cstring>

namespace kp {

Shader::Shader(Device& device, std::string bytes) : device_(&device) {
    if (bytes.empty() || bytes.size() % 4 != 0)
        throw Error(ErrorKind::invalid_argument,
                    "Not SPIR-V: " + std::to_string(bytes.size()) +
                        " bytes, but a module is a non-empty whole number of 4-byte words. Compile "
                        "shader source with kp.compile() first");
    words_.resize(bytes.size() / 4);
    std::memcpy(words_.data(), bytes.data(), bytes.size());
    info_ = reflect(words_);

    ValidationOptions options;
    options.vulkan_minor = VK_API_VERSION_MINOR(device.physical().properties.apiVersion);
    if (options.vulkan_minor > 3) options.vulkan_minor = 3;
    options.scalar_block_layout = device.enabled().v12.scalarBlockLayout;
    options.uniform_buffer_standard_layout = device.enabled().v12.uniformBufferStandardLayout;
    if (const std::string message = validate_spirv(words_, options); !message.empty())
        throw Error(ErrorKind::invalid_argument, "The SPIR-V is not valid for Vulkan 1." +
                                                     std::to_string(options.vulkan_minor) + ": " + message);

    std::string missing;
    for (const uint32_t capability : info_.capabilities) {
        const std::string need = missing_for_capability(capability, device.enabled(), device.physical());
        if (!need.empty())
            missing += (missing.empty() ? "" : "; ") + capability_name(capability) + " needs " + need;
    }
    if (!missing.empty())
        throw Error(ErrorKind::unimplemented,
                    std::string("The shader uses what '") + device.physical().properties.deviceName +
                        "' does not have: " + missing +
                        ". Use another device (kp.list_devices()) or change the shader");

    VkShaderModuleCreateInfo create{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
    create.codeSize = words_.size() * 4;
    create.pCode = words_.data();
    check_vk(device.vk().vkCreateShaderModule(device.handle(), &create, nullptr, &module_),
             "vkCreateShaderModule", "a shader");
    alive_count(ObjectKind::shader).fetch_add(1, std::memory_order_relaxed);
}

Shader::~Shader() { close(); }

void Shader::close() noexcept {
    if (module_ == VK_NULL_HANDLE) return;
    device_->vk().vkDestroyShaderModule(device_->handle(), module_, nullptr);
    module_ = VK_NULL_HANDLE;
    alive_count(ObjectKind::shader).fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace kp
