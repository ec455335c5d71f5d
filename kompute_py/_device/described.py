"""Descriptions of devices that are not here: files of vulkaninfo, of Vulkan Profiles, and of ``info --json``.

vulkaninfo writes a device as a profile, so both are read alike: structs of features and properties by their
names. What a profile does not state has the least value that Vulkan allows (its "Required Limits").
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from .._base.errors import InvalidArgumentError, NotFoundError, UnavailableError, shown
from .._base.file_access import read_regular

_MOST_BYTES = 2**26
_LEAST: dict[str, Any] = {
    "maxImageDimension1D": 4096,
    "maxImageDimension2D": 4096,
    "maxImageDimension3D": 256,
    "maxImageArrayLayers": 256,
    "maxTexelBufferElements": 65536,
    "maxUniformBufferRange": 16384,
    "maxStorageBufferRange": 2**27,
    "maxPushConstantsSize": 128,
    "maxBoundDescriptorSets": 4,
    "maxPerStageDescriptorSamplers": 16,
    "maxPerStageDescriptorUniformBuffers": 12,
    "maxPerStageDescriptorStorageBuffers": 4,
    "maxPerStageDescriptorSampledImages": 16,
    "maxPerStageDescriptorStorageImages": 4,
    "maxPerStageResources": 128,
    "maxDescriptorSetSamplers": 96,
    "maxDescriptorSetUniformBuffers": 72,
    "maxDescriptorSetStorageBuffers": 24,
    "maxDescriptorSetSampledImages": 96,
    "maxDescriptorSetStorageImages": 24,
    "maxComputeSharedMemorySize": 16384,
    "maxComputeWorkGroupInvocations": 128,
    "maxComputeWorkGroupCount": (65535, 65535, 65535),
    "maxComputeWorkGroupSize": (128, 128, 64),
    "maxPerSetDescriptors": 1024,
    "maxMemoryAllocationSize": 2**30,
}
_TYPES = {"DISCRETE_GPU": "discrete", "INTEGRATED_GPU": "integrated", "VIRTUAL_GPU": "virtual", "CPU": "cpu"}
_INDEPENDENCE = {"32_BIT_ONLY": "32 bits only", "ALL": "all", "NONE": "none"}


def read_description(path: str | os.PathLike[str], name: str | None) -> dict[str, Any]:
    """The properties of the device, or of the profile, `name` in a file; None: of the only one.

    Raises NotFoundError if there is no such name, InvalidArgumentError if there are several and None was
    given, and the errors of `descriptions`.
    """
    named, where = _readers(path), os.fspath(path)
    if name is None and len(named) == 1:
        return next(iter(named.values()))()
    if name is not None and name in named:
        return named[name]()
    there = ", ".join(map(repr, named)) or "none"
    if name is None:
        raise InvalidArgumentError(f"The file {where!r} has several: give name=, one of {there}")
    raise NotFoundError(f"The file {where!r} has no device or profile {shown(name)}; it has {there}")


def descriptions(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """The properties of the devices, or of the profiles, in a file, by name.

    Raises NotFoundError if there is no such file, UnavailableError if it cannot be read, and
    InvalidArgumentError if it does not describe a device.
    """
    return {name: read() for name, read in _readers(path).items()}


def _readers(path: str | os.PathLike[str]) -> dict[str, Callable[[], dict[str, Any]]]:
    where = os.fspath(path)
    try:
        found = json.loads(read_regular(where, _MOST_BYTES))
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {where!r} with a description of a device") from None
    except OSError as error:
        raise UnavailableError(f"The file {where!r} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"The file {where!r} is not JSON: {str(error)[:200]}") from None
    if isinstance(found, dict) and "capabilities" in found:
        profiles = _part(found, "profiles", where)
        return {name: partial(_of_profile, found, where, profile) for name, profile in profiles.items()}
    listed = found.get("devices") if isinstance(found, dict) and "devices" in found else [found]
    if not isinstance(listed, list) or not all(_is_ours(each) for each in listed):
        raise InvalidArgumentError(
            f"The file {where!r} describes no device: give one of vulkaninfo --json, Vulkan Profiles or "
            "kompute-py info --json"
        )
    return {str(each["device_name"]): partial(dict, each, index=None) for each in listed}


def _is_ours(device: Any) -> bool:
    return isinstance(device, dict) and all(
        isinstance(device.get(key), kind)
        for key, kind in (("device_name", str), ("api_version", str), ("limits", dict), ("features", dict))
    )


def _of_profile(found: dict[str, Any], where: str, profile: Any) -> dict[str, Any]:
    if not isinstance(profile, dict):
        raise InvalidArgumentError(f"The file {where!r} has a profile that is not an object")
    blocks = _part(found, "capabilities", where)
    features: dict[str, bool] = {}
    properties: dict[str, Any] = {}
    extensions: dict[str, None] = {}
    families: list[Any] = []
    for each in profile.get("capabilities") or ():
        # A list is of alternatives: the device has one of them, and nobody knows which.
        block = blocks.get(each) if isinstance(each, str) else {}
        if not isinstance(block, dict):
            raise InvalidArgumentError(f"The file {where!r} lacks the capabilities {shown(each)}")
        extensions.update(dict.fromkeys(_part(block, "extensions", where)))
        for struct in _part(block, "features", where).values():
            features.update({key: has is True for key, has in _object(struct, where).items()})
        for title, struct in _part(block, "properties", where).items():
            properties.update(_object(struct, where))
            if title == "VkPhysicalDeviceLimits":
                properties.setdefault("limits", {}).update(_object(struct, where))
        given = block.get("queueFamiliesProperties")
        families += given if isinstance(given, list) else []
    return _as_info(profile, features, properties, list(extensions), families, where)


def _part(given: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    return _object(given.get(name, {}), where)


def _object(given: Any, where: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InvalidArgumentError(f"The file {where!r} has {shown(given):.80} where an object belongs")
    return given


def _as_info(
    profile: Mapping[str, Any],
    features: dict[str, bool],
    given: dict[str, Any],
    extensions: list[str],
    families: Iterable[Any],
    where: str,
) -> dict[str, Any]:
    limits = {**_LEAST, **_limits(_object(given.get("limits", {}), where))}
    limits.update(
        _limits(
            {
                key: given[key]
                for key in ("maxComputeWorkgroupSubgroups", "maxPerSetDescriptors", "maxMemoryAllocationSize")
                if key in given
            }
        )
    )
    version = _version(given.get("apiVersion", profile.get("api-version")), where)
    size = _count(given.get("subgroupSize")) or 1
    sizes = _count(given.get("minSubgroupSize")) or size, _count(given.get("maxSubgroupSize")) or size
    asks = "VK_SHADER_STAGE_COMPUTE_BIT" in _names(given.get("requiredSubgroupSizeStages"))
    shared = "VK_SHADER_STAGE_COMPUTE_BIT" in _names(given.get("subgroupSupportedStages"))
    operations = [
        _short(each, "VK_SUBGROUP_FEATURE_").lower()
        for each in _names(given.get("subgroupSupportedOperations"))
    ]
    vendor = _count(given.get("vendorID")) or 0
    driver = _names([given.get("driverID", "")])
    tests = given.get("conformanceVersion")
    tests = tests if isinstance(tests, dict) else {}
    controls: dict[str, Any] = {
        key: has is True
        for key, has in given.items()
        if re.match(r"shader(SignedZeroInfNanPreserve|Denorm\w+|RoundingModeRT[EZ])Float(16|32|64)$", key)
    }
    for key in ("denormBehaviorIndependence", "roundingModeIndependence"):
        word = _short(str(given.get(key, "NONE")), "VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_")
        controls[key] = _INDEPENDENCE.get(word, "none")
    queues = [_family(number, each) for number, each in enumerate(families)]
    return {
        "index": None,
        "vulkan_index": None,
        "device_name": str(given.get("deviceName") or profile.get("label") or "a profile"),
        "max_work_group_count": limits["maxComputeWorkGroupCount"],
        "max_work_group_invocations": limits["maxComputeWorkGroupInvocations"],
        "max_work_group_size": limits["maxComputeWorkGroupSize"],
        "timestamps_supported": any(each["timestamp_valid_bits"] for each in queues),
        "timestamp_period": limits.get("timestampPeriod", 1.0),
        "vendor_id": vendor,
        "vendor_name": "unknown",
        "device_id": _count(given.get("deviceID")) or 0,
        "uuid": _hex(given.get("deviceUUID")),
        "driver_uuid": _hex(given.get("driverUUID")),
        "pipeline_cache_uuid": _hex(given.get("pipelineCacheUUID")),
        "luid": _hex(given.get("deviceLUID")) if given.get("deviceLUIDValid") is True else None,
        "pci_address": None,
        "driver_id": _short(driver[0], "VK_DRIVER_ID_") if driver else "",
        "conformance_version": ".".join(
            str(_count(tests.get(key)) or 0) for key in ("major", "minor", "subminor", "patch")
        ),
        "driver_name": str(given.get("driverName", "")),
        "driver_info": str(given.get("driverInfo", "")),
        "driver_version": _dotted(_count(given.get("driverVersion")) or 0),
        "api_version": version,
        "type": _TYPES.get(_short(str(given.get("deviceType", "")), "VK_PHYSICAL_DEVICE_TYPE_"), "other"),
        "subgroup_size": size,
        "subgroup_sizes": sizes if asks else (size, size),
        "subgroup_operations": operations if shared else [],
        "cooperative_matrices": [],
        "float_controls": controls,
        "limits": limits,
        "features": features,
        "extensions": extensions,
        "queue_families": queues,
        "memory_heaps": [],
        "memory_types": [],
        "device_local_bytes": 0,
    }


def _limits(given: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers, and triples of numbers, of those limits that are any."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, list) and len(value) == 3 and all(_count(each) is not None for each in value):
            found[key] = tuple(value)
        elif _count(value) is not None or isinstance(value, float):
            found[key] = value
    return found


def _family(number: int, given: Any) -> dict[str, Any]:
    family = given.get("VkQueueFamilyProperties", given) if isinstance(given, dict) else {}
    family = family if isinstance(family, dict) else {}
    flags = _names(family.get("queueFlags"))
    compute, graphics = "VK_QUEUE_COMPUTE_BIT" in flags, "VK_QUEUE_GRAPHICS_BIT" in flags
    return {
        "index": number,
        "count": _count(family.get("queueCount")) or 0,
        "compute": compute,
        "transfer": compute or graphics or "VK_QUEUE_TRANSFER_BIT" in flags,
        "graphics": graphics,
        "timestamp_valid_bits": _count(family.get("timestampValidBits")) or 0,
    }


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64 else None


def _names(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _short(name: str, beginning: str) -> str:
    return re.sub(r"(_BIT)?(_KHR|_EXT)?$", "", name.removeprefix(beginning))


def _hex(value: Any) -> str:
    fits = isinstance(value, list) and all(_count(each) is not None and each < 256 for each in value)
    return bytes(value).hex() if fits else ""


def _dotted(number: int) -> str:
    return f"{number >> 22 & 0x7F}.{number >> 12 & 0x3FF}.{number & 0xFFF}"


def _version(value: Any, where: str) -> str:
    if isinstance(value, str) and re.fullmatch(r"\d{1,3}\.\d{1,3}(\.\d{1,6})?", value):
        return value
    number = _count(value)
    if not number:
        raise InvalidArgumentError(
            f"The file {where!r} states no version of Vulkan (api-version, apiVersion)"
        )
    return _dotted(number)
