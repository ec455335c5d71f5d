"""The missing capabilities of a device, described by their consequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Keys: the device's features, under Vulkan's names.
_FEATURES: tuple[tuple[str, str], ...] = (
    ("robustBufferAccess", "a shader that reads or writes out of bounds can end the process"),
    ("shaderInt64", "64-bit integer shaders are refused"),
    ("shaderFloat64", "double precision shaders are refused"),
    ("shaderInt16", "16-bit integer arithmetic in shaders is refused"),
    ("shaderInt8", "8-bit integer arithmetic in shaders is refused"),
    ("shaderFloat16", "half precision arithmetic in shaders is refused"),
    ("storageBuffer16BitAccess", "shaders with 16-bit buffer elements are refused: pack two into a uint"),
    ("storageBuffer8BitAccess", "shaders with 8-bit buffer elements are refused: pack four into a uint"),
    ("shaderBufferInt64Atomics", "64-bit atomics on buffers are refused"),
    ("shaderBufferFloat32AtomicAdd", "atomicAdd on floats in buffers is refused"),
    ("shaderSharedFloat32AtomicAdd", "atomicAdd on floats in shared memory is refused"),
    ("scalarBlockLayout", "shaders with layout(scalar) are refused: use std430"),
    ("bufferDeviceAddress", "shaders with buffer references (pointers) are refused"),
    (
        "shaderStorageImageExtendedFormats",
        "image formats beyond the common ones (rg16f, r8, ...) are refused in shaders",
    ),
    ("shaderStorageImageReadWithoutFormat", "images that a shader reads need a format in its layout"),
    ("shaderStorageImageWriteWithoutFormat", "images that a shader writes need a format in its layout"),
    ("subgroupSizeControl", "a kernel cannot ask for a subgroup size"),
    ("shaderIntegerDotProduct", "integer dot products in shaders are refused"),
    ("vulkanMemoryModel", "shaders that declare the Vulkan memory model are refused"),
)

_FLOOR = (1, 2)  # of Vulkan's version


VALIDATION = "VK_LAYER_KHRONOS_validation"
_SOUND_VALIDATION = (1, 3, 296)


def validation_advice(version: tuple[int, int, int]) -> str:
    """The known fault of a validation layer of this version; "" if it has none."""
    if version >= _SOUND_VALIDATION:
        return ""
    return (
        f"the validation layer {_dotted(version)} has a fault that stops programs for 10 s if one thread "
        "raises a timeline semaphore while another one waits for it, and reports VkSemaphore-state-timeout: "
        "results are right. Most waits avoid it (docs/guides/asynchronous.md). "
        f"Layers from {_dotted(_SOUND_VALIDATION)} on are free of it; "
        "give the folder of a newer one's manifest in VK_LAYER_PATH"
    )


def _dotted(version: tuple[int, int, int]) -> str:
    return ".".join(map(str, version))


def missing(device: Mapping[str, Any], layers: Sequence[str]) -> list[str]:
    """Sentences on the capabilities that `device` (a DeviceInfo) lacks, most important first.

    Each says what is impossible without the capability. `layers` are the loader's layers.
    """
    features = device["features"]
    found = []
    version = tuple(int(part) for part in device["api_version"].split(".")[:2])
    if version < _FLOOR:
        found.append(
            f"Vulkan {device['api_version']}, and 1.2 is needed: no Manager can be made; update its driver"
        )
    elif not features.get("timelineSemaphore", False):
        found.append("no timelineSemaphore: no Manager can be made; update its driver")
    if not any(family["compute"] for family in device["queue_families"]):
        found.append("no queue for compute: no Manager can be made")
    if not device["timestamps_supported"]:
        found.append("no timestamps: sequences cannot be timed on the device")
    queues = sum(family["count"] for family in device["queue_families"] if family["compute"])
    if queues == 1:
        found.append("one compute queue only: sequences run one after another")
    found += [f"no {name}: {consequence}" for name, consequence in _FEATURES if not features.get(name, False)]
    if "VK_EXT_memory_budget" not in device["extensions"]:
        found.append("no VK_EXT_memory_budget: how much memory is free is not known")
    if VALIDATION not in layers:
        found.append(
            "no validation layer: Manager(validation=True) is refused "
            "(Debian, Ubuntu: apt-get install vulkan-validationlayers; others: the Vulkan SDK)"
        )
    return found
