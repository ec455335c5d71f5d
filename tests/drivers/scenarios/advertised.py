"""Versions, features, properties, entry points: what the device says about itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import vulkan as vk

from ..control import null_control
from ..rig import COHERENT, DEVICE_ONLY, Rig, make_instance
from .registry import raises, scenario, violated


@scenario()
def device_creation() -> None:
    with Rig() as rig:
        queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, queueCount=1, pQueuePriorities=[1.0])

        def make(**options: Any) -> None:
            options.setdefault("pQueueCreateInfos", [queue])
            vk.vkCreateDevice(rig.physical, vk.VkDeviceCreateInfo(**options), None)

        live = rig.control.live()
        raises(
            vk.VkErrorFeatureNotPresent,
            lambda: make(pEnabledFeatures=vk.VkPhysicalDeviceFeatures(geometryShader=1)),
        )
        protected = vk.VkPhysicalDeviceVulkan11Features(protectedMemory=1)
        raises(vk.VkErrorFeatureNotPresent, lambda: make(pNext=protected))
        raises(vk.VkErrorExtensionNotPresent, lambda: make(ppEnabledExtensionNames=["VK_KHR_swapchain"]))
        assert not rig.control.violations()
        many = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, queueCount=5, pQueuePriorities=[1.0] * 5)
        raises(Exception, lambda: make(pQueueCreateInfos=[many]))
        violated("not to be had")
        assert rig.control.live() == live
        assert [f.queueCount for f in rig.families] == [4, 2, 1]
        assert [bool(f.queueFlags & vk.VK_QUEUE_COMPUTE_BIT) for f in rig.families] == [True, True, False]


@scenario()
def chains() -> None:
    """Feature and property structs agree with those that absorbed them;
    nothing is written beyond a struct."""
    with Rig() as rig:
        thirteen = vk.VkPhysicalDeviceVulkan13Features()
        twelve = vk.VkPhysicalDeviceVulkan12Features(pNext=thirteen)
        parts = vk.VkPhysicalDeviceTimelineSemaphoreFeatures(pNext=twelve)
        indexing = vk.VkPhysicalDeviceDescriptorIndexingFeatures(pNext=parts)
        features = vk.VkPhysicalDeviceFeatures2(pNext=indexing)
        vk.lib.vkGetPhysicalDeviceFeatures2(rig.physical, vk.ffi.addressof(features))
        assert parts.timelineSemaphore == twelve.timelineSemaphore == thirteen.synchronization2 == 1
        assert indexing.runtimeDescriptorArray == twelve.runtimeDescriptorArray == 1
        assert indexing.shaderInputAttachmentArrayDynamicIndexing == 0
        assert features.features.shaderInt64 == 1 and features.features.geometryShader == 0
        host = vk.VkPhysicalDeviceExternalMemoryHostPropertiesEXT()
        driver = vk.VkPhysicalDeviceDriverProperties(pNext=host)
        maintenance = vk.VkPhysicalDeviceMaintenance3Properties(pNext=driver)
        subgroup = vk.VkPhysicalDeviceSubgroupProperties(pNext=maintenance)
        properties = vk.VkPhysicalDeviceProperties2(pNext=subgroup)
        vk.lib.vkGetPhysicalDeviceProperties2(rig.physical, vk.ffi.addressof(properties))
        assert (
            vk.ffi.string(driver.driverName) == b"null driver"
            and host.minImportedHostPointerAlignment == 4096
        )
        assert subgroup.subgroupSize == 32 and maintenance.maxMemoryAllocationSize == 4 << 30
        budget = vk.VkPhysicalDeviceMemoryBudgetPropertiesEXT()
        memory = vk.VkPhysicalDeviceMemoryProperties2(pNext=budget)
        used = rig.allocate(1 << 20, DEVICE_ONLY)
        vk.lib.vkGetPhysicalDeviceMemoryProperties2(rig.physical, vk.ffi.addressof(memory))
        assert budget.heapUsage[0] == 1 << 20 and budget.heapBudget[0] == 8192 << 20
        used.destroy()


def _resolves(rig_device: Any, name: str) -> bool:
    return vk.lib.vkGetDeviceProcAddr(rig_device, vk.ffi.new("char[]", name.encode())) != vk.ffi.NULL


def _bare_device(physical: Any, extensions: list[str], pnext: Any = None) -> Any:
    queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, queueCount=1, pQueuePriorities=[1.0])
    info = vk.VkDeviceCreateInfo(pNext=pnext, pQueueCreateInfos=[queue], ppEnabledExtensionNames=extensions)
    return vk.vkCreateDevice(physical, info, None)


def _entry_points(api_minor: int, timelines: bool, *extensions: str) -> None:
    instance = make_instance()
    physical = vk.vkEnumeratePhysicalDevices(instance)[0]
    version = vk.vkGetPhysicalDeviceProperties(physical).apiVersion
    assert vk.VK_VERSION_MINOR(version) == api_minor
    device = _bare_device(physical, [*extensions])
    assert _resolves(device, "vkCmdDispatchBase") and not _resolves(device, "vkNoSuchThing")
    assert _resolves(device, "vkWaitSemaphores") == timelines
    assert _resolves(device, "vkGetMemoryHostPointerPropertiesEXT") == bool(extensions)
    vk.vkDestroyDevice(device, None)
    vk.vkDestroyInstance(instance, None)


@scenario("api=1.1")
def vulkan_11() -> None:
    _entry_points(1, False, "VK_EXT_external_memory_host")


@scenario("api=1.2")
def vulkan_12() -> None:
    _entry_points(2, True)


@scenario("devices=2")
def two_devices() -> None:
    instance = make_instance()
    both = [vk.vkGetPhysicalDeviceProperties(p) for p in vk.vkEnumeratePhysicalDevices(instance)]
    assert [p.deviceName for p in both] == ["Null Discrete", "Null Integrated"]
    assert bytes(both[0].pipelineCacheUUID) != bytes(both[1].pipelineCacheUUID)
    vk.vkDestroyInstance(instance, None)


@scenario("devices=0")
def no_devices() -> None:
    instance = make_instance()
    count = vk.ffi.new("uint32_t*")
    vk.lib.vkEnumeratePhysicalDevices(instance, count, vk.ffi.NULL)
    assert count[0] == 0
    vk.vkDestroyInstance(instance, None)


@scenario("int64=0,no_timeline=1,noext=VK_EXT_external_memory_host,disable=shaderFloat16")
def features_off() -> None:
    instance = make_instance()
    physical = vk.vkEnumeratePhysicalDevices(instance)[0]
    twelve = vk.VkPhysicalDeviceVulkan12Features()
    features = vk.VkPhysicalDeviceFeatures2(pNext=twelve)
    vk.lib.vkGetPhysicalDeviceFeatures2(physical, vk.ffi.addressof(features))
    assert not (features.features.shaderInt64 or twelve.timelineSemaphore or twelve.shaderFloat16)
    assert features.features.shaderFloat64 and twelve.shaderInt8
    names = {e.extensionName for e in vk.vkEnumerateDeviceExtensionProperties(physical, None)}
    assert "VK_EXT_memory_budget" in names
    assert not names & {"VK_EXT_external_memory_host", "VK_KHR_timeline_semaphore"}
    wanted = vk.VkPhysicalDeviceTimelineSemaphoreFeatures(timelineSemaphore=1)
    raises(vk.VkErrorFeatureNotPresent, lambda: _bare_device(physical, [], wanted))
    vk.vkDestroyInstance(instance, None)


def _memory_types(physical: Any) -> list[str]:
    """Each memory type as the initials of its properties: Local, Visible, Coherent, cacHed; "-" for none."""
    memory = vk.vkGetPhysicalDeviceMemoryProperties(physical)
    flags = [memory.memoryTypes[i].propertyFlags for i in range(memory.memoryTypeCount)]
    return ["".join(name for bit, name in enumerate("LVCH") if flag >> bit & 1) or "-" for flag in flags]


def _profile(types: str, storage_buffers: int, transfer_bits: int = 0) -> None:
    instance = make_instance()
    physical = vk.vkEnumeratePhysicalDevices(instance)[0]
    assert _memory_types(physical) == types.split(), _memory_types(physical)
    limits = vk.vkGetPhysicalDeviceProperties(physical).limits
    assert limits.maxPerStageDescriptorStorageBuffers == storage_buffers
    families = vk.vkGetPhysicalDeviceQueueFamilyProperties(physical)
    assert [f.timestampValidBits for f in families] == [64, 64, transfer_bits]
    vk.vkDestroyInstance(instance, None)


@scenario("profile=small_bar")
def profile_small_bar() -> None:
    _profile("L VC LVC VCH", 1 << 23, 64)


@scenario("profile=large_bar")
def profile_large_bar() -> None:
    _profile("LVC VC VCH", 1 << 23, 64)


@scenario("profile=integrated")
def profile_integrated() -> None:
    _profile("LVCH", 65536)


@scenario("profile=mobile")
def profile_mobile() -> None:
    _profile("L LVC LVH", 35)


@scenario("profile=small_limits,maxPerStageDescriptorStorageBuffers=29,transfer_timestamps=36")
def profile_small_limits() -> None:
    """Keys behind a profile change single values."""
    _profile("L LVCH", 29, 36)


@scenario("profile=geforce")
def profile_geforce() -> None:
    _profile("- L VC VCH LVC", 1 << 20, 64)


@scenario("profile=apple")
def profile_apple() -> None:
    """A device made without VK_KHR_portability_subset is a fault of the program's."""
    _profile("L LVCH", 31)
    instance = make_instance()
    queue = vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, pQueuePriorities=[1.0])
    for names in (["VK_KHR_portability_subset"], []):
        info = vk.VkDeviceCreateInfo(pQueueCreateInfos=[queue], ppEnabledExtensionNames=names)
        vk.vkDestroyDevice(vk.vkCreateDevice(vk.vkEnumeratePhysicalDevices(instance)[0], info, None), None)
        if names:
            assert not null_control().violations()
    violated("VK_KHR_portability_subset, which is not enabled")
    vk.vkDestroyInstance(instance, None)


@scenario("profile=bare")
def profile_bare() -> None:
    _profile("LVC", 30)
    instance = make_instance()
    physical = vk.vkEnumeratePhysicalDevices(instance)[0]
    assert list(vk.vkEnumerateDeviceExtensionProperties(physical, None)) == []
    assert vk.vkGetPhysicalDeviceFeatures(physical).shaderInt16 == 0
    vk.vkDestroyInstance(instance, None)


@scenario("memory=imaginary")
def bad_configuration() -> None:
    raises(Exception, make_instance)


@scenario()
def host_import() -> None:
    with Rig(extensions=["VK_EXT_external_memory_host"]) as rig:
        raw = np.zeros(3 * 4096, np.uint8)
        start = -raw.ctypes.data % 4096
        page = raw[start : start + 4096]
        page[:] = 7
        address = page.ctypes.data
        kind = vk.VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT

        def allocate(pointer: int) -> Any:
            imported = vk.VkImportMemoryHostPointerInfoEXT(
                handleType=kind, pHostPointer=vk.ffi.cast("void*", pointer)
            )
            info = vk.VkMemoryAllocateInfo(pNext=imported, allocationSize=4096, memoryTypeIndex=COHERENT)
            return vk.vkAllocateMemory(rig.device, info, None)

        external = vk.VkExternalMemoryBufferCreateInfo(handleTypes=kind)
        buffer = vk.vkCreateBuffer(
            rig.device, vk.VkBufferCreateInfo(pNext=external, size=4096, usage=3), None
        )
        memory = allocate(address)
        vk.vkBindBufferMemory(rig.device, buffer, memory, 0)
        with rig.record() as commands:
            vk.vkCmdFillBuffer(commands, buffer, 0, 8, 0x01010101)
        rig.run(commands)
        assert (page[:8] == 1).all() and (page[8:] == 7).all()
        assert not rig.control.violations()
        raises(Exception, lambda: allocate(address + 64))
        violated("is not aligned to 4096")
        again = allocate(address)
        violated("overlap a living import of 4096")
        vk.vkFreeMemory(rig.device, again, None)
        vk.vkDestroyBuffer(rig.device, buffer, None)
        vk.vkFreeMemory(rig.device, memory, None)
        assert (page[:8] == 1).all()
