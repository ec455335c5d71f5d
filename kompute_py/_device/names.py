"""A device's properties, and the texts that identify one device."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.errors import ArgumentTypeError, InvalidArgumentError, NotFoundError, shown
from .._base.plain_arguments import as_text


class DeviceInfo(dict[str, Any]):
    """A physical device's properties: a dict with its keys as attributes too.

    ``info["device_name"]`` and ``info.device_name`` are the same.

    Kompute's keys: ``device_name`` (str), ``max_work_group_count`` (3 ints), ``max_work_group_invocations``
    (int), ``max_work_group_size`` (3 ints), ``timestamps_supported`` (bool). More: ``index`` (among the
    visible devices), ``vendor_id``, ``device_id``, ``vendor_name``, ``uuid`` (hex), ``driver_name``,
    ``driver_info``, ``driver_version``, ``api_version``, ``type`` ("discrete", "integrated", "virtual",
    "cpu", "other"), ``vulkan_index`` (among all devices of the machine), ``timestamp_period`` (nanoseconds
    per tick), ``subgroup_size``, ``subgroup_sizes`` (the least and the largest that a shader may ask for),
    ``subgroup_operations`` (names), ``cooperative_matrices`` (dicts: the products of ``rows`` x ``depth`` and
    ``depth`` x ``columns`` that GL_KHR_cooperative_matrix has, with the dtypes ``left``, ``right``, ``added``
    and ``result``, whether sums are ``saturating``, and the ``scope``), ``limits`` (dict), ``features`` (dict
    of bool), ``extensions``, ``float_controls`` (dict: VkPhysicalDeviceFloatControlsProperties),
    ``queue_families``, ``memory_heaps``, ``memory_types`` (lists of dicts), ``device_local_bytes``.

    >>> info = mgr.get_device_properties()
    >>> info.device_name == info["device_name"]
    True
    >>> info.limits["maxComputeWorkGroupCount"][0] >= 65535
    True
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"DeviceInfo has no {shown(name)}; it has: {', '.join(self)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return (
            f"<kp.DeviceInfo {self.get('index')}: {self.get('device_name')} ({self.get('type')}, "
            f"Vulkan {self.get('api_version')}, {self.get('driver_name')})>"
        )


def identity(info: DeviceInfo) -> str:
    """A list entry, as text, for one device: its UUID, its driver's UUID, and its index among all devices."""
    try:
        return f"{info['uuid']}:{info['driver_uuid']}:{int(info['vulkan_index'])}"
    except (KeyError, TypeError, ValueError):
        raise InvalidArgumentError(
            f"{shown(info)} does not identify a device (uuid, driver_uuid, vulkan_index): take one from "
            "kp.list_devices()"
        ) from None


def is_number(device: Any) -> bool:
    """True if `device` is an index."""
    # NumPy treats time spans as integers.
    return isinstance(device, (int, np.integer)) and not isinstance(device, (bool, np.timedelta64))


def as_device_index(device: int | np.integer[Any]) -> int:
    """Converts `device` to an index. Raises NotFoundError if it is beyond Vulkan's range."""
    if not 0 <= device < 2**32:
        raise NotFoundError(
            f"There is no device {shown(device)}; kp.list_devices() lists the devices, from 0"
        )
    return int(device)


def name_of(device: Any, source: str) -> str:
    """A list entry, as text, for a device.

    Raises ArgumentTypeError, naming `source`, if `device` cannot be one.
    """
    from uuid import UUID

    if isinstance(device, DeviceInfo):
        return identity(device)
    if isinstance(device, UUID):
        return device.hex
    if isinstance(device, str):
        return as_text(device, source)
    if is_number(device):
        return str(as_device_index(device))
    raise ArgumentTypeError(
        f"{source} has {shown(device)} of type {type(device).__name__}; "
        "give indices, names, UUIDs or DeviceInfo"
    )
