// Samplers: how a shader reads between texels and beyond the edge. Found by content; they live while they are used.
#pragma once

#include "adapter/device_handle.hpp"
#include "base/vulkan.hpp"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kp {

class Device;

struct SamplerInfo {
    bool linear = false;
    VkSamplerAddressMode address[3] = {VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                                       VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                                       VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE};  // u, v, w
    VkBorderColor border = VK_BORDER_COLOR_FLOAT_TRANSPARENT_BLACK;
    bool unnormalized = false;  // coordinates count texels

    friend bool operator==(const SamplerInfo&, const SamplerInfo&) = default;
};

class Sampler {
public:
    Sampler(std::shared_ptr<Device> device, const SamplerInfo& info);

    [[nodiscard]] VkSampler handle() const noexcept { return handle_.get(); }
    [[nodiscard]] const SamplerInfo& info() const noexcept { return info_; }
    [[nodiscard]] const Device* device() const noexcept { return device_.get(); }

private:
    std::shared_ptr<Device> device_;
    SamplerInfo info_;
    DeviceHandle<VkSampler> handle_;
};

class SamplerStore {
public:
    explicit SamplerStore(Device& device) : device_(device) {}

    // Throws Error(invalid_argument) for what Vulkan does not allow together.
    [[nodiscard]] std::shared_ptr<Sampler> sampler(const SamplerInfo& info);
    [[nodiscard]] size_t count();

private:
    Device& device_;
    std::mutex mutex_;
    std::vector<std::pair<SamplerInfo, std::weak_ptr<Sampler>>> samplers_;
};

}  // namespace kp
