// Timeline semaphores as the host sees them.
#include "entry_points.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kpnull {
namespace {

// Descriptors of semaphores are anonymous files, which say nothing outside of this process.
std::mutex g_files_mutex;
std::map<ino_t, std::weak_ptr<Payload>>& files() {
    static auto* all = new std::map<ino_t, std::weak_ptr<Payload>>;
    return *all;
}
ino_t file_of(int fd) {
    struct stat found {};
    return fstat(fd, &found) == 0 ? found.st_ino : 0;
}

}  // namespace

void signal_from_host(Device& device, Semaphore& semaphore, uint64_t value);

VKAPI_ATTR VkResult VKAPI_CALL vkCreateSemaphore(VkDevice device, const VkSemaphoreCreateInfo* info,
                                                 const VkAllocationCallbacks*, VkSemaphore* out) {
    KP_FAILABLE("vkCreateSemaphore");
    auto* semaphore = create<Semaphore>(from<Device>(device));
    const auto* type =
        find_in_chain<VkSemaphoreTypeCreateInfo>(info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
    if (type && type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE)
        semaphore->payload->value = type->initialValue;
    else
        violation("vkCreateSemaphore: the null driver has timeline semaphores alone");
    if (const auto* exported = find_in_chain<VkExportSemaphoreCreateInfo>(
            info->pNext, VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO))
        semaphore->exportable = exported->handleTypes & VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
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
    *out = from<Semaphore>(semaphore)->payload->value.load(std::memory_order_acquire);
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkWaitSemaphores(VkDevice device, const VkSemaphoreWaitInfo* info,
                                                uint64_t timeout) {
    KP_FAILABLE("vkWaitSemaphores");
    const bool any = info->flags & VK_SEMAPHORE_WAIT_ANY_BIT;
    return from<Device>(device)->wait(timeout, [=] {
        for (uint32_t i = 0; i < info->semaphoreCount; ++i) {
            const bool reached =
                from<Semaphore>(info->pSemaphores[i])->payload->value.load(std::memory_order_seq_cst) >=
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
VKAPI_ATTR VkResult VKAPI_CALL vkGetSemaphoreFdKHR(VkDevice, const VkSemaphoreGetFdInfoKHR* info, int* out) {
    KP_FAILABLE("vkGetSemaphoreFdKHR");
    Semaphore& semaphore = *from<Semaphore>(info->semaphore);
    if (!semaphore.exportable || info->handleType != VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT)
        violation("vkGetSemaphoreFdKHR: %s was not made for that", label(&semaphore));
    *out = memfd_create("semaphore", MFD_CLOEXEC);
    if (*out < 0) return VK_ERROR_TOO_MANY_OBJECTS;
    std::lock_guard lock(g_files_mutex);
    semaphore.payload->exported = true;
    files()[file_of(*out)] = semaphore.payload;
    return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL vkImportSemaphoreFdKHR(VkDevice, const VkImportSemaphoreFdInfoKHR* info) {
    KP_FAILABLE("vkImportSemaphoreFdKHR");
    std::lock_guard lock(g_files_mutex);
    const auto found = files().find(file_of(info->fd));
    const auto payload = found == files().end() ? nullptr : found->second.lock();
    if (!payload) return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    from<Semaphore>(info->semaphore)->payload = payload;
    close(info->fd);
    return VK_SUCCESS;
}

}  // namespace kpnull
