"""What a device is and can do."""

from __future__ import annotations

from typing import Any

from . import _native


class DeviceInfo(dict[str, Any]):
    """A physical device's properties: a dict whose keys are attributes too (``info["device_name"]``, ``info.device_name``).

    Kompute's keys: ``device_name`` (str), ``max_work_group_count`` (3 ints), ``max_work_group_invocations`` (int),
    ``max_work_group_size`` (3 ints), ``timestamps_supported`` (bool). More: ``index``, ``vendor_id``, ``device_id``,
    ``vendor_name``, ``uuid`` (hex), ``driver_name``, ``driver_info``, ``driver_version``, ``api_version``, ``type``
    ("discrete", "integrated", "virtual", "cpu", "other"), ``timestamp_period`` (nanoseconds a tick),
    ``subgroup_size``, ``limits`` (dict), ``features`` (dict of bool), ``extensions``, ``queue_families``,
    ``memory_heaps``, ``memory_types`` (lists of dicts), ``device_local_bytes``.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"DeviceInfo has no {name!r}; it has: {', '.join(self)}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return (
            f"<kp.DeviceInfo {self.get('index')}: {self.get('device_name')} ({self.get('type')}, "
            f"Vulkan {self.get('api_version')}, {self.get('driver_name')})>"
        )


def list_devices() -> list[DeviceInfo]:
    """All of the machine's Vulkan devices, in Vulkan's order, with no Manager needed.

    Raises UnavailableError, saying what to install, where there is no Vulkan loader or driver.
    """
    return [DeviceInfo(info) for info in _native.enumerate_devices()]
