"""The process's Managers: one for each device, made on first use, for code that has none handed to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _native
from .._base.errors import NotFoundError
from .._device.devices import list_devices, selection, visible_list
from .current import entered, lock, process
from .manager import Manager

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from .._device.names import DeviceInfo


def manager(
    device: int | str | UUID | DeviceInfo | Iterable[int | str | UUID | DeviceInfo] | None = None,
) -> Manager:
    """The Manager of the ``with`` block that the call is in, or the process's Manager of a device, made on first use.

    Inside ``with kp.Manager() as mgr:``, ``kp.manager()`` is `mgr`; of nested blocks, the innermost. Asyncio's tasks take this over
    from the code that makes them, as any context variable; threads do not, unless they run in a copy of the context
    (``asyncio.to_thread``, ``contextvars.copy_context().run``). Generators share it with the code that drives them. After the block, or
    once that Manager was destroyed, it is the one around, or the process's (docs/threads.md has all cases).

    `device` is what ``kp.Manager(device)`` takes; with it, the process's Manager of that device, inside of blocks, too. Without,
    and outside of blocks, the process's default Manager, on the best device or what the environment prefers; a new one
    if it was destroyed. Whatever names the same device gives the same Manager. Raises what `kp.Manager` raises.
    """
    if device is None and (around := entered()) is not None:
        return around
    with lock:
        if device is None:
            if process.default is None or not process.default.is_init():
                process.default = _of(Manager)
            return process.default
        index, preferences = selection(device)
        choice = _native.select_device(index, preferences, visible_list())
        if choice["index"] is None:
            raise NotFoundError(choice["error"])
        info = next(each for each in list_devices() if each["index"] == choice["index"])
        found = process.by_device.get(_key(info))
        if found is not None and found.is_init():
            return found
        return _of(lambda: Manager(info))


def _of(make: Any) -> Manager:
    made: Manager = make()
    known = process.by_device.setdefault(_key(made.get_device_properties()), made)
    if known is made or not known.is_init():
        process.by_device[_key(made.get_device_properties())] = made
        return made
    made.destroy()
    return known


def _key(info: DeviceInfo) -> tuple[str, str]:
    # Two drivers of one device give it the same UUID.
    return info["uuid"], info["driver_uuid"]
