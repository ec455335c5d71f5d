// Fences, semaphores and events as the host sees them.
#include "entry_points.hpp"

#include <algorithm>

namespace kpnull {

void signal_from_host(Device& device, Semaphore& semaphore, uint64_t value);

VKAPI_ATTR VkResult VKAPI_CALL vkCreateFence(VkDevice device, const VkFenceCreateInfo* info,
                                             const VkAllocationCallbacks*, VkFence* out) {
    KP_FAILABLE("vkCreateFence");
    auto* fence = create<Fence>(from<Device>(device));
    fence->signaled = (info->flags & VK_FENCE_CREATE_SIGNALED_BIT) != 0;
    *out = to(fence);
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyFence(VkDevice, VkFence fence, const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyFence");
    destroy<Fence>(fence);
}
VKAPI_ATTR VkResult VKAPI_CALL vkResetFences(VkDevice, uint32_t count, const VkFence* fences) {
    KP_FAILABLE("vkResetFences");
    for (uint32_t i = 0; i < count; ++i) {
        Fence& fence = *from<Fence>(fences[i]);
        if (fence.pending)
            violation("VkFence (%s) is reset while a pending submission uses it", label(&fence));
        fence.signaled = false;
    }
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkGetFenceStatus(VkDevice device, VkFence fence) {
    KP_FAILABLE("vkGetFenceStatus");
    if (from<Fence>(fence)->signaled.load()) return VK_SUCCESS;
    return from<Device>(device)->lost ? VK_ERROR_DEVICE_LOST : VK_NOT_READY;
}
VKAPI_ATTR VkResult VKAPI_CALL vkWaitForFences(VkDevice device, uint32_t count, const VkFence* fences,
                                               VkBool32 all, uint64_t timeout) {
    KP_FAILABLE("vkWaitForFences");
    return from<Device>(device)->wait(timeout, [=] {
        uint32_t done = 0;
        for (uint32_t i = 0; i < count; ++i) done += from<Fence>(fences[i])->signaled.load();
        return all ? done == count : done > 0;
    });
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreateSemaphore(VkDevice device, const VkSemaphoreCreateInfo* info,
                                                 const VkAllocationCallbacks*, VkSemaphore* out) {
    KP_FAILABLE("vkCreateSemaphore");
    auto* semaphore = create<Semaphore>(from<Device>(device));
    if (const auto* type = find_in_chain<VkSemaphoreTypeCreateInfo>(
            info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO)) {
        semaphore->timeline = type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE;
        if (semaphore->timeline) semaphore->value = type->initialValue;
    }
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
    if (!semaphore.timeline) violation("vkSignalSemaphore: VkSemaphore (%s) is binary", label(&semaphore));
    signal_from_host(*from<Device>(device), semaphore, info->value);
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreateEvent(VkDevice device, const VkEventCreateInfo*,
                                             const VkAllocationCallbacks*, VkEvent* out) {
    KP_FAILABLE("vkCreateEvent");
    *out = to(create<Event>(from<Device>(device)));
    return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL vkDestroyEvent(VkDevice, VkEvent event, const VkAllocationCallbacks*) {
    KP_COUNTED("vkDestroyEvent");
    destroy<Event>(event);
}
VKAPI_ATTR VkResult VKAPI_CALL vkGetEventStatus(VkDevice device, VkEvent event) {
    KP_FAILABLE("vkGetEventStatus");
    if (from<Device>(device)->lost) return VK_ERROR_DEVICE_LOST;
    return from<Event>(event)->set ? VK_EVENT_SET : VK_EVENT_RESET;
}
VKAPI_ATTR VkResult VKAPI_CALL vkSetEvent(VkDevice, VkEvent event) {
    KP_FAILABLE("vkSetEvent");
    from<Event>(event)->set = true;
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkResetEvent(VkDevice, VkEvent event) {
    KP_FAILABLE("vkResetEvent");
    from<Event>(event)->set = false;
    return VK_SUCCESS;
}

}  // namespace kpnull
