"""The machine's devices, and how a Manager chooses one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .. import _native
from .._base.arrays import as_index, as_indices, to_flag
from .._base.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    kind_of,
    shown,
)
from .._base.plain_arguments import as_list, as_text
from .._base.settings import PREFIX
from .._base.warn import warn_once
from .drivers import manifest_named
from .names import DeviceInfo, as_device_index, identity, is_number, name_of
from .options import preferred_devices, settings, string_tuple
from .uri import with_options, without_uris

if TYPE_CHECKING:
    from .annotations import DeviceLike


def list_devices(
    visible_devices: str | Iterable[DeviceLike] | None = None, *, driver: str | os.PathLike[str] | None = None
) -> list[DeviceInfo]:
    """Lists the machine's Vulkan devices, in Vulkan's order. Needs no Manager.

    `visible_devices`, else the environment variable KOMPUTE_PY_VISIBLE_DEVICES, selects and orders the
    devices: a list, or text separated by ";". Each entry is an index, a part of a name, a type ("gpu": all
    that are not a CPU), a vendor, a UUID or a PCI address ("0000:01:00.0"), and selects all devices that
    match; an entry that stands there several times selects one device each time. An empty list selects none.
    `index`, here and in ``kp.Manager(device=index)``, is an index into the visible devices. `driver`, else
    KOMPUTE_PY_DRIVER, is the only driver to ask, as in `kp.Manager`.

    Raises UnavailableError, with the package to install, if there is no Vulkan loader or driver, or no
    device of that driver; NotFoundError if a visible device or the driver is missing;
    OutOfRangeError if an entry stands there more often than there are such devices; ArgumentTypeError if
    `visible_devices` is not a list or text.

    >>> kp.list_devices()[0]
    <kp.DeviceInfo 0: ...>
    """
    found, repeated = _native.enumerate_devices(*machine(visible_devices, driver))
    warn_of(repeated)
    return [DeviceInfo(info) for info in found]


def warn_of(repeated: Iterable[str]) -> None:
    """Warns, once for each, of entries without effect in the environment or in a list of visible devices."""
    late = _native.late_loader()
    if late:
        warn_once(late)
    for entry in repeated:
        warn_once(
            f"The visible devices (visible_devices=, KOMPUTE_PY_VISIBLE_DEVICES) name a device twice: "
            f"{entry} adds nothing to the entries before it. Each device counts once, at its first place"
        )


def machine(visible_devices: Any = None, driver: Any = None) -> tuple[str | None, bytes]:
    """The visible devices in the core's form (None: all), and the only driver's manifest (b"": all)."""
    found = settings({"visible_devices": visible_devices, "driver": driver})
    return found.visible_devices.value, manifest_named(found.driver.value)


def chosen_device(
    index: int | None, preferences: str, visible_devices: Any = None, driver: Any = None
) -> DeviceInfo:
    """The device that the core's ranking chooses. Raises NotFoundError, with reasons, if there is none."""
    return _only(*_choose(index, preferences, visible_devices, driver))


def _choose(
    index: int | None, preferences: str, visible_devices: Any, driver: Any
) -> tuple[dict[str, Any], list[DeviceInfo]]:
    where = machine(visible_devices, driver)
    choice = _native.select_device(index, preferences, *where)
    found, repeated = _native.enumerate_devices(*where)
    warn_of(repeated)
    return choice, [DeviceInfo(each) for each in found]


def _only(choice: Mapping[str, Any], devices: Iterable[DeviceInfo]) -> DeviceInfo:
    if choice["index"] is None:
        raise NotFoundError(choice["error"])
    return next(each for each in devices if each["index"] == choice["index"])


def choose(device: Any) -> tuple[dict[str, Any], list[DeviceInfo]]:
    """The choice that a Manager would make for `device` (the core's `select_device`), and the devices that it
    would see: a URI's options may name the driver and hide devices. Raises the errors of `kp.Manager` for
    these arguments, but none for a device that is not there.
    """
    named, options, _ = with_options(preferred_devices(PREFIX).value if device is None else device, {})
    asked = settings(options)
    return _choose(*selection(named), asked.visible_devices.value, asked.driver.value)


def found_device(device: Any) -> DeviceInfo:
    """The device that a Manager would open for `device`. Raises the errors of `kp.Manager`."""
    return _only(*choose(device))


def info_of(device: Any) -> Mapping[str, Any]:
    """The properties of `device`: one that is here, as `kp.Manager` names it, or a description, which may be
    the path of a file as `DeviceInfo.load` takes it (as text, it ends in ".json").
    """
    if isinstance(device, Mapping):
        return device
    if isinstance(device, os.PathLike) or (isinstance(device, str) and device.lower().endswith(".json")):
        return DeviceInfo.load(device)
    return found_device(device)


def compute_family(info: DeviceInfo) -> int:
    """The queue family that a Manager takes if none is named: the first that computes."""
    return next((family["index"] for family in info["queue_families"] if family["compute"]), 0)


def selection(device: Any) -> tuple[int | None, str]:
    """Converts `device`, whose URI's options are taken away, to (index, preferences) for the core's ranking.

    None stands for the best device. Raises InvalidArgumentError for a URI with options in a list.
    """
    if device is None:
        return None, ""
    if isinstance(device, DeviceInfo):
        return None, identity(device)
    if isinstance(device, str):
        if not device.strip():
            raise InvalidArgumentError(
                "device is an empty str; give a part of a device's name, or None for the best device"
            )
        return None, without_uris(as_text(device, "device"), "device", ",")
    if is_number(device):
        return as_device_index(device), ""
    from uuid import UUID

    if isinstance(device, UUID):
        return None, device.hex
    if isinstance(device, Iterable) and not isinstance(device, (bytes, bytearray, Mapping)):
        given = as_list(device, "device", "an index, a name, a UUID, a DeviceInfo, or a list of these")
        wanted = [name_of(each, "device") for each in given]
        if not any(each.strip() for each in wanted):
            raise InvalidArgumentError(
                "device is an empty list; give preferences, or None for the best device"
            )
        return None, without_uris(",".join(wanted), "device", ",")
    raise ArgumentTypeError(
        f"device is {kind_of(device)}; give an index, a part of a name, a UUID, a DeviceInfo, "
        "a list of these, or None"
    )


def family_indices(indices: Any) -> list[int]:
    """Checks the value of Manager(family_queue_indices=...)."""
    if not isinstance(indices, Iterable) or isinstance(indices, str):
        raise ArgumentTypeError(f"family_queue_indices is {shown(indices)}; give a list of ints")
    made = list(as_indices(indices, "family_queue_indices"))
    if any(index < 0 for index in made):
        raise InvalidArgumentError(f"family_queue_indices is {made}; queue families are numbered from 0")
    if any(index >= 2**32 for index in made):
        raise OutOfRangeError(f"family_queue_indices is {made}; no device has that many queue families")
    return made


_MOST_FEATURES = 60  # more than any struct of Vulkan has


def desired(extensions: Any) -> tuple[tuple[str, ...], list[tuple[str, int, list[bool]]]]:
    """The value of Manager(desired_extensions=...): the names, and (name, number of a feature struct, its
    features) of those that come with one.
    """
    if not isinstance(extensions, Mapping):
        return string_tuple(extensions, "desired_extensions"), []
    names = string_tuple(list(extensions), "desired_extensions")
    made: list[tuple[str, int, list[bool]]] = []
    for name, given in zip(names, extensions.values(), strict=True):
        if given is None:
            continue
        what = f"desired_extensions[{name!r}]"
        takes = (
            "(sType, [bool, ...]): the number of the extension's feature struct, and its features in order"
        )
        pair = as_list(given, what, takes)
        if len(pair) != 2:
            raise InvalidArgumentError(f"{what} is {shown(given)}; give {takes}")
        number = as_index(pair[0], f"{what}[0]")
        wanted = [to_flag(each, f"{what}[1]") for each in as_list(pair[1], f"{what}[1]", takes)]
        if not (0 <= number < 2**32 and 1 <= len(wanted) <= _MOST_FEATURES):
            raise InvalidArgumentError(f"{what} is {shown(given)}; give {takes}")
        made.append((name, number, wanted))
    return names, made
