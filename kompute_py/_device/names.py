"""A device's properties, and the texts that name one device."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.errors import ArgumentTypeError, InvalidArgumentError, NotFoundError, shown
from .._base.plain_arguments import as_text


class DeviceInfo(dict[str, Any]):
    """A physical device's properties: a dict whose keys are attributes too (``info["device_name"]``, ``info.device_name``).

    Kompute's keys: ``device_name`` (str), ``max_work_group_count`` (3 ints), ``max_work_group_invocations`` (int),
    ``max_work_group_size`` (3 ints), ``timestamps_supported`` (bool). More: ``index``, ``vendor_id``, ``device_id``,
    ``vendor_name``, ``uuid`` (hex), ``driver_name``, ``driver_info``, ``driver_version``, ``api_version``, ``type``
    ("discrete", "integrated", "virtual", "cpu", "other"), ``vulkan_index`` (its place among all devices of the machine;
    ``index`` is the one among those that are visible), ``timestamp_period`` (nanoseconds a tick),
    ``subgroup_size``, ``limits`` (dict), ``features`` (dict of bool), ``extensions``,
    ``float_controls`` (dict: VkPhysicalDeviceFloatControlsProperties), ``queue_families``,
    ``memory_heaps``, ``memory_types`` (lists of dicts), ``device_local_bytes``.
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
    """One device as an entry of a list in text: its UUID, its driver's, and its place among all devices."""
    try:
        return f"{info['uuid']}:{info['driver_uuid']}:{int(info['vulkan_index'])}"
    except (KeyError, TypeError, ValueError):
        raise InvalidArgumentError(
            f"{shown(info)} does not say which device it is (uuid, driver_uuid, vulkan_index): take one from kp.list_devices()"
        ) from None


def is_number(device: Any) -> bool:
    """Whether a device is named by its index."""
    # NumPy counts spans of time as integers.
    return isinstance(device, (int, np.integer)) and not isinstance(device, (bool, np.timedelta64))


def as_device_index(device: int | np.integer[Any]) -> int:
    """`device` as an index. Raises NotFoundError if Vulkan cannot count so far."""
    if not 0 <= device < 2**32:
        raise NotFoundError(
            f"There is no device {shown(device)}; kp.list_devices() lists those there are, from 0"
        )
    return int(device)


def name_of(device: Any, source: str) -> str:
    """A device as an entry of a list in text. Raises ArgumentTypeError, naming `source`, for what is none."""
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
        f"{source} has {shown(device)} of type {type(device).__name__}; give indices, names, UUIDs or DeviceInfo"
    )
