"""``kompute-py info``: the machine as kompute_py sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from .._base.text import binary_size
from .._device.report import facts


class Page(Protocol):
    """Prints `info`: with colours (`RichPage`), or as plain text if rich is not installed (`PlainPage`)."""

    def line(self, label: str, text: str, style: str = "") -> None:
        """One line; `style` is the label's."""

    def device(self, title: str, is_default: bool, note: str, rows: Sequence[tuple[str, str]]) -> None:
        """A device, and its properties with their names; one without a name continues the one above."""


# The limits that scripts are most likely to reach.
_SHOWN_LIMITS = (
    ("maxStorageBufferRange", "largest buffer a shader sees", True),
    ("maxComputeSharedMemorySize", "shared memory of a group", True),
    ("maxPushConstantsSize", "push constants", True),
    ("maxPerStageDescriptorStorageBuffers", "tensors of one algorithm", False),
    ("maxImageDimension2D", "largest image side", False),
)

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


def collect() -> dict[str, Any]:
    """All results of `info`, ready for JSON."""
    found = facts()
    for device in found["devices"]:
        device["missing"] = missing(device, found["loader"]["layers"])
    return found


def print_info(found: dict[str, Any], page: Page) -> None:
    """Prints the results of `collect` as text."""
    loader = found["loader"]
    page.line(
        f"kompute_py {found['kompute_py']}",
        f", Python {found['python']}, NumPy {found['numpy']}, {found['platform']}",
        "bold",
    )
    if loader["available"]:
        version = ".".join(str(part) for part in loader["version"])
        page.line("", f"Vulkan loader {version}; layers: {', '.join(loader['layers']) or 'none'}")
        validation = loader["layer_versions"].get(VALIDATION)
        if validation is not None and (advice := validation_advice(validation)):
            page.line("Note:", f" {advice}", "yellow")
    else:
        page.line("No Vulkan loader:", f" {loader['error']}", "yellow")
    compilers = found["shader_compilers"]
    page.line("", f"HLSL: {compilers['hlsl']}")
    page.line("", f"Slang: {compilers['slang']}")
    for option in found["options"]:
        if option["source"] != "default":
            page.line("", f"{option['name']} = {option['value']!r}, from {option['source']}")
    if found["error"]:
        page.line("No device can be used:", f" {found['error']}", "bold yellow")
    reasons = {entry["index"]: entry["reason"] for entry in found["passed_over"]}
    for device in found["devices"]:
        number = device["index"]
        is_default = number == found["default_device"]
        note = f"not the default: {reasons[number]}" if reasons.get(number) else ""
        page.device(f"{number}  {device['device_name']}", is_default, note, _rows(device))


def _rows(device: dict[str, Any]) -> list[tuple[str, str]]:
    """The names and texts of a device's properties."""
    details = f" ({device['driver_info']})" if device["driver_info"] else ""
    groups, local = device["max_work_group_count"], device["max_work_group_size"]
    limits = device["limits"]
    rows = [
        (
            "type",
            f"{device['type']}, {device['vendor_name']} "
            f"({device['vendor_id']:#06x}:{device['device_id']:#06x})",
        ),
        ("driver", f"{device['driver_name']} {device['driver_version']}{details}"),
        ("Vulkan", device["api_version"]),
        ("UUID", device["uuid"]),
        ("queues", "; ".join(_queue_text(family) for family in device["queue_families"])),
        ("memory", "; ".join(_heap_text(i, device) for i in range(len(device["memory_heaps"])))),
        ("groups", f"at most {' × '.join(map(str, groups))}"),
        (
            "local size",
            f"at most {' × '.join(map(str, local))}, {device['max_work_group_invocations']} invocations; "
            f"subgroups of {device['subgroup_size']}",
        ),
        (
            "limits",
            "; ".join(
                f"{meaning} {binary_size(limits[name]) if is_size else limits[name]}"
                for name, meaning, is_size in _SHOWN_LIMITS
                if name in limits
            ),
        ),
        (
            "timestamps",
            f"{device['timestamp_period']:g} ns a tick" if device["timestamps_supported"] else "none",
        ),
        ("features", ", ".join(name for name, has in device["features"].items() if has)),
        ("extensions", f"{len(device['extensions'])} (--json lists them)"),
    ]
    rows += [("" if number else "missing", text) for number, text in enumerate(device["missing"])]
    return rows


def _queue_text(family: dict[str, Any]) -> str:
    kinds = [kind for kind in ("compute", "transfer", "graphics") if family[kind]]
    bits = family["timestamp_valid_bits"]
    return (
        f"family {family['index']}: {family['count']} of {', '.join(kinds) or 'other work'}"
        f"{f', timestamps of {bits} bits' if bits else ', no timestamps'}"
    )


def _heap_text(number: int, device: dict[str, Any]) -> str:
    heap = device["memory_heaps"][number]
    types = [kind for kind in device["memory_types"] if kind["heap"] == number]
    seen = " seen by the host" if any(kind["host_visible"] for kind in types) else ""
    where = "of the device" if heap["device_local"] else "of the host"
    return f"{binary_size(heap['size'])} {where}{seen if heap['device_local'] else ''}"


def validation_advice(version: tuple[int, int, int]) -> str:
    """The known fault of a validation layer of this version; "" if it has none."""
    if version >= _SOUND_VALIDATION:
        return ""
    return (
        f"the validation layer {_dotted(version)} has a fault that stops programs for 10 s if one thread "
        "raises a timeline semaphore while another one waits for it, and reports VkSemaphore-state-timeout: "
        "results are right. Most waits avoid it (docs/reference/ends_and_waits.md). "
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
