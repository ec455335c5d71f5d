// Timeline semaphores as the host sees them.
#include "entry_points.hpp"

namespace kpnull {

void signal_from_host(Device& device, Semaphore& semaphore, uint64_t value);

VKAPI_ATTR VkResult VKAPI_CALL vkCreateSemaphore(VkDevice device, const VkSemaphoreCreateInfo* info,
                                                 const VkAllocationCallbacks*, VkSemaphore* out) {
    KP_FAILABLE("vkCreateSemaphore");
    auto* semaphore = create<Semaphore>(from<Device>(device));
    const auto* type =
        find_in_chain<VkSemaphoreTypeCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
    if (type && type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE)
        semaphore->value = type->initialValue;
    else
        violation("vkCreateSemaphore: the null driver has timeline semaphores alone");
    *out = to(semaphore);
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroySemaphore(VkDevice, VkSemaphore semaphore, const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroySemaphore");
    destroy<Semaphore>(semaphore);
}
VKAPI_ATTR VkResult VKAPI_CALL vkGetSemaphoreCounterValue(VkDevice device, VkSemaphore semaphore,
                                                          uint64_t* out) {
    KP_FAILABLE("vkGetSemaphoreCounterValue");
    if (from<Device>(device)->lost.load(std::memory_order_relaxed)) [[unlikely]]
        return VK_ERROR_DEVICE_LOST;
    *out = from<Semaphore>(semaphore)->value.load(std::memory_order_acquire);
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkWaitSemaphores(VkDevice device, const VkSemaphoreWaitInfo* info,
                                                uint64_t timeout) {
    KP_FAILABLE("vkWaitSemaphores");
    const bool any = info->flags & VK_SEMAPHORE_WAIT_ANY_BIT;
    return from<Device>(device)->wait(timeout, [=] {
        for (uint32_t i = 0; i < info->semaphoreCount; ++i) {
            const bool reached =
                from<Semaphore>(info->pSemaphores[i])->value.load(std::memory_order_seq_cst) >=
                info->pValues[i];
            if (reached == any) return any;
        }
        return !any;
    });
}
VKAPI_ATTR VkResult VKAPI_CALL vkSignalSemaphore(VkDevice device, const VkSemaphoreSignalInfo* info) {
    KP_FAILABLE("vkSignalSemaphore");
    Semaphore& semaphore = *from<Semaphore>(info->semaphore);
    signal_from_host(*from<Device>(device), semaphore, info->value);
    return VK_SUCCESS;
}

}  // namespace kpnull
