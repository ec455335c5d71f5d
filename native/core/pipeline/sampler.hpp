// Samplers: how a shader reads between texels and beyond the edge. Found by content; they live while they
// are used.
#pragma once

#include "adapter/device_handle.hpp"
#include "base/ranked.hpp"
#include "base/vulkan.hpp"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kp {

class DeviceContext;

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
    Sampler(std::shared_ptr<DeviceContext> context, const SamplerInfo& info);

    [[nodiscard]] VkSampler handle() const noexcept { return handle_.get(); }
    [[nodiscard]] const SamplerInfo& info() const noexcept { return info_; }
    [[nodiscard]] const DeviceContext* context() const noexcept { return context_.get(); }

private:
    std::shared_ptr<DeviceContext> context_;
    SamplerInfo info_;
    DeviceHandle<VkSampler> handle_;
};

class SamplerStore {
public:
    explicit SamplerStore(DeviceContext& context) : context_(context) {}

    // Throws Error(invalid_argument) for a combination that Vulkan does not allow.
    [[nodiscard]] std::shared_ptr<Sampler> sampler(const SamplerInfo& info);
    [[nodiscard]] size_t count();

private:
    DeviceContext& context_;
    RankedMutex mutex_{LockRank::samplers};
    std::vector<std::pair<SamplerInfo, std::weak_ptr<Sampler>>> samplers_;
};

}  // namespace kp
