"""A device's properties, and the texts that identify one device."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np

from .._base.errors import ArgumentTypeError, InvalidArgumentError, NotFoundError, shown
from .._base.plain_arguments import as_text
from .._base.settings import to_path
from .._base.text import nearest


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
    and ``result``, whether sums are ``saturating``, and the ``scope``), ``driver_id`` (VkDriverId's name:
    "MESA_RADV"), ``conformance_version``, ``pipeline_cache_uuid`` (hex), ``luid`` (hex), ``pci_address``
    ("0000:01:00.0"), ``drm_primary`` and ``drm_render`` (major and minor number of the node), each None if
    the driver does not tell, ``limits`` (dict), ``features`` (dict of bool), ``extensions``,
    ``float_controls`` (dict: VkPhysicalDeviceFloatControlsProperties), ``queue_families``, ``memory_heaps``,
    ``memory_types`` (lists of dicts), ``device_local_bytes``.

    >>> info = mgr.get_device_properties()
    >>> info.device_name == info["device_name"]
    True
    >>> info.limits["maxComputeWorkGroupCount"][0] >= 65535
    True

    Two are equal if they describe one device, whatever else they say: the same UUIDs, and the same
    ``vulkan_index``, which tells devices with the same UUIDs apart. It can be a key of a dict.
    """

    __slots__ = ()

    @classmethod
    def load(cls, path: str | os.PathLike[str], name: str | None = None) -> DeviceInfo:
        """A device that is not here, from a file: of ``vulkaninfo --json``, of Vulkan Profiles, or of
        ``kompute-py info --json``. `name` chooses the profile or the device if the file has several.

        Serves `kp.check` and `compile_options`; no Manager opens it. A profile says which features and limits
        a device has at least: limits that it leaves out are Vulkan's least ones, and of alternatives none
        counts.

        Raises NotFoundError if there is no such file or name, UnavailableError if the system refuses to read
        it, InvalidArgumentError if it describes no device, ArgumentTypeError if `path` is not a path or
        `name` not a str.
        """
        from .described import read_description

        to_path(path, "path", "the path of a description of a device")
        return _Absent(read_description(path, None if name is None else as_text(name, "name")))

    @property
    def compile_options(self) -> dict[str, Any]:
        """Options of `kp.compile` for this device, ``kp.compile(source, **info.compile_options)``: the newest
        ``target`` that it takes, and as ``defines`` the macros KP_SUBGROUP_SIZE, KP_SHARED_MEMORY (bytes of a
        workgroup), KP_WORKGROUP_INVOCATIONS (the most), and KP_HAS_shaderFloat64 and the like, 1 for each
        feature of Vulkan that it has. Raises InvalidArgumentError for a description that lacks one of these.
        """
        try:
            version, limits = str(self["api_version"]), self["limits"]
            numbers = {
                "KP_SUBGROUP_SIZE": self.get("subgroup_size", 1),
                "KP_SHARED_MEMORY": limits["maxComputeSharedMemorySize"],
                "KP_WORKGROUP_INVOCATIONS": limits["maxComputeWorkGroupInvocations"],
            }
            features = {f"KP_HAS_{name}": 1 for name, has in self["features"].items() if has}
        except KeyError as error:
            raise InvalidArgumentError(f"The description of the device lacks {error.args[0]}") from None
        minor = int(version.split(".")[1]) if version.startswith("1.") else 3
        return {"target": f"vulkan1.{min(minor, 3)}", "defines": {**numbers, **features}}

    def _identity(self) -> tuple[Any, ...]:
        return tuple(self.get(name) for name in ("uuid", "driver_uuid", "vulkan_index"))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DeviceInfo):
            return self._identity() == other._identity()
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self._identity())

    @property
    def type_key(self) -> tuple[Any, ...]:
        """All that decides if compiled pipelines and measured choices fit: vendor, device, driver and its
        version, the pipeline cache's UUID, the version of Vulkan, the sizes of subgroups, the limits and the
        features. Equal for devices of one type with one driver, on any machine.
        """
        names = (
            "vendor_id",
            "device_id",
            "driver_id",
            "driver_version",
            "pipeline_cache_uuid",
            "api_version",
            "subgroup_size",
        )
        features = self.get("features", {})
        # As text: a description of the device that was loaded has lists where the device has tuples.
        facts = json.dumps([self.get("subgroup_sizes"), self.get("limits")], sort_keys=True, default=str)
        has = sorted(name for name, value in features.items() if value)
        return (*(self.get(name) for name in names), facts, *has)

    def digest(self, hasher: Callable[[bytes], Any] | None = None) -> str:
        """`type_key` as hexadecimal digits, for names of files and folders. `hasher` is one of hashlib's
        functions; None means ``hashlib.sha256``. Raises ArgumentTypeError if it is not one of them.
        """
        import hashlib

        try:
            return str(
                (hashlib.sha256 if hasher is None else hasher)(repr(self.type_key).encode()).hexdigest()
            )
        except (TypeError, ValueError, AttributeError):
            raise ArgumentTypeError(
                f"hasher is {shown(hasher)}; give a function of hashlib, such as hashlib.md5"
            ) from None

    @property
    def numa_node(self) -> int | None:
        """The NUMA node that the device is attached to: Linux knows it by the PCI address; else None."""
        text = _of_pci(self.get("pci_address"), "numa_node")
        return int(text) if text and text.lstrip("-").isdigit() and int(text) >= 0 else None

    @property
    def cpus(self) -> tuple[int, ...]:
        """The processors near the device, by the PCI address; all of this process if that is not known. None
        of a device that was loaded from a description.
        """
        text = _of_pci(self.get("pci_address"), "local_cpulist")
        if text:
            ends = [tuple(map(int, part.split("-"))) for part in text.split(",")]
            return tuple(cpu for each in ends for cpu in range(each[0], each[-1] + 1))
        if hasattr(os, "sched_getaffinity"):
            return tuple(sorted(os.sched_getaffinity(0)))
        return tuple(range(os.cpu_count() or 1))

    def supports(self, *names: str) -> bool:
        """True if the device has all of these features and extensions, by Vulkan's names.

        Raises NotFoundError, with near names, for a name that no feature has, and for an extension's with a
        wrong letter. Other names of extensions are just not there.
        """
        has = {name for name, value in self.get("features", {}).items() if value}
        return supported(self, names, {*has, *self.get("extensions", ())})

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


class _Absent(DeviceInfo):
    """One that was loaded from a description."""

    __slots__ = ()

    @property
    def cpus(self) -> tuple[int, ...]:
        """None are near."""
        return ()


def supported(info: Mapping[str, Any], names: Iterable[str], present: Collection[str]) -> bool:
    """Whether all of `names` are in `present`: features and extensions of a device, or those enabled on it.

    Raises NotFoundError for features that this version does not know, and for the names of extensions (they
    begin with "VK_") that are an extension's of the device but for a letter.
    """
    known, extensions = info.get("features", {}), info.get("extensions", ())
    for name in names:
        as_text(name, "The name of a feature or an extension")
        if name.startswith("VK_"):
            # Other extensions than these, new ones among them, are just not there. Names of Vulkan's own that
            # are as near to each other differ in their numbers.
            near = "." if name in extensions else nearest(name, extensions, 0.95)
            if near != "." and _digits(near) == _digits(name):
                raise NotFoundError(f"kompute_py knows no extension {shown(name)}{near}")
        elif name not in known:
            raise NotFoundError(
                f"kompute_py knows no feature {shown(name)}{nearest(name, known, 0.5)} Names are Vulkan's, "
                "such as 'shaderFloat16', and those of extensions begin with 'VK_'"
            )
    return all(name in present for name in names)


def _digits(name: str) -> str:
    return re.sub(r"\D", "", name)


def _of_pci(address: Any, name: str) -> str:
    """A fact of Linux about a PCI device; "" if there is none."""
    if not isinstance(address, str) or not re.fullmatch(
        r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", address
    ):
        return ""
    try:
        with open(f"/sys/bus/pci/devices/{address}/{name}", encoding="ascii") as file:
            return file.read(4096).strip()
    except (OSError, ValueError):
        return ""


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


def one_or_several(devices: Any) -> list[Any]:
    """A list of devices or Managers, for one of them or several."""
    is_one = isinstance(devices, (str, Mapping)) or not isinstance(devices, Iterable)
    return [devices] if is_one else list(devices)


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
