#include "pipeline/sampler.hpp"

#include "adapter/context.hpp"
#include "base/error.hpp"

namespace kp {

Sampler::Sampler(std::shared_ptr<DeviceContext> context, const SamplerInfo& info)
    : context_(std::move(context)), info_(info) {
    VkSamplerCreateInfo create{VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
    create.magFilter = create.minFilter = info.linear ? VK_FILTER_LINEAR : VK_FILTER_NEAREST;
    create.mipmapMode = VK_SAMPLER_MIPMAP_MODE_NEAREST;
    create.addressModeU = info.address[0];
    create.addressModeV = info.address[1];
    create.addressModeW = info.address[2];
    create.borderColor = info.border;
    create.unnormalizedCoordinates = info.unnormalized ? VK_TRUE : VK_FALSE;
    VkSampler handle = VK_NULL_HANDLE;
    check_vk(context_->vk().vkCreateSampler(context_->handle(), &create, nullptr, &handle), "vkCreateSampler",
             "a sampler");
    handle_.own(context_->handles(), handle, [](const DeviceContext& of, uint64_t freed) noexcept {
        of.vk().vkDestroySampler(of.handle(), handle_from<VkSampler>(freed), nullptr);
    });
}

std::shared_ptr<Sampler> SamplerStore::sampler(const SamplerInfo& info) {
    context_.require_open("make a sampler");
    if (info.unnormalized)
        for (size_t axis = 0; axis < 2; ++axis)
            if (info.address[axis] != VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE &&
                info.address[axis] != VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER)
                throw Error(ErrorKind::invalid_argument,
                            "A sampler with unnormalized coordinates clamps: use address clamp_to_edge or "
                            "clamp_to_border");
    const std::lock_guard lock(mutex_);
    std::erase_if(samplers_, [](const auto& each) { return each.second.expired(); });
    for (const auto& [known, sampler] : samplers_)
        if (known == info)
            if (auto found = sampler.lock()) return found;
    if (const uint32_t most = context_.limits().maxSamplerAllocationCount; samplers_.size() >= most)
        throw Error(
            ErrorKind::out_of_memory,
            "This Manager has " + std::to_string(samplers_.size()) + " different samplers, and '" +
                context_.physical().properties.deviceName + "' allows " + std::to_string(most) +
                " (maxSamplerAllocationCount). Use one of those: samplers of the same settings are one");
    auto made = std::make_shared<Sampler>(context_.shared_from_this(), info);
    samplers_.emplace_back(info, made);
    return made;
}

size_t SamplerStore::count() {
    const std::lock_guard lock(mutex_);
    std::erase_if(samplers_, [](const auto& each) { return each.second.expired(); });
    return samplers_.size();
}

}  // namespace kp
