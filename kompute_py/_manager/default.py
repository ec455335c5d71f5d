"""`kp.manager()`: the process's Managers, one for each device, created on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._base.errors import ArgumentTypeError, FailedPreconditionError, kind_of
from .._device.devices import found_device
from .._device.owner import owner
from .._device.uri import is_uri, split_uri
from .current import lock, present, process
from .manager import Manager

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .._device.annotations import DeviceLike
    from .._device.names import DeviceInfo


def manager(device: DeviceLike | Iterable[DeviceLike] | None = None) -> Manager:
    """The Manager of the enclosing ``with`` block, or else the process's Manager, created on first use.

    Inside ``with kp.Manager() as mgr:``, ``kp.manager()`` returns `mgr`; in nested blocks, the innermost
    Manager. Like every context variable, this is inherited by asyncio tasks, but by threads only if they run
    in a copy of the context (``asyncio.to_thread``, ``contextvars.copy_context().run``). Generators see the
    context of the code that drives them. After the block, or after that Manager is destroyed, the enclosing
    block's or the process's Manager is returned (docs/guides/threads.md lists all cases).

    With `device` (see `kp.Manager`), the call returns the process's Manager of that device, also inside
    ``with`` blocks. Without it, and outside of blocks, it returns the process's default Manager on the best
    device or the device that the environment prefers. A destroyed Manager is replaced by a new one. Different
    names of one device give the same Manager; a URI with options, ``vulkan://nvidia?queues=2``, one of its
    own for these options. Raises the errors of `kp.Manager`.

    >>> kp.manager() is kp.manager()
    True
    """
    if device is None:
        here = present()
        if here is not None:
            return owner(here)
    with lock:
        if device is None:
            if process.default is None or not process.default.is_init():
                process.default = _of(Manager)
            return owner(process.default)
        options = split_uri(device)[1] if is_uri(device) else {}
        info = found_device(device)
        key = _key(info, options)
        found = process.by_device.get(key)
        if found is not None and found.is_init():
            return owner(found)
        # Options go by the URI; other names of a device are one.
        return _of(lambda: Manager(device if options else info), key)


def set_manager(manager: Manager | None) -> None:
    """Makes `manager` the process's default Manager: what `kp.manager` returns outside of ``with`` blocks, in
    all threads. None takes the present one away, without destroying it: the next call finds or makes the
    process's Manager of the best device.

    For notebooks and programs without blocks; ``with mgr.current():`` does it for a block, and comes first.
    Raises ArgumentTypeError if `manager` is neither, FailedPreconditionError if it is destroyed.

    >>> kp.set_manager(mgr)
    >>> kp.manager() is mgr
    True
    >>> kp.set_manager(None)
    """
    if manager is not None:
        if not isinstance(manager, Manager):
            raise ArgumentTypeError(f"set_manager takes a Manager or None, not {kind_of(manager)}")
        if not manager.is_init():
            raise FailedPreconditionError(f"{manager!r} cannot be the default: make a new one")
    with lock:
        process.default = manager


def supports(*names: str) -> bool:
    """True if the Manager that `kp.manager` returns has all of these features and extensions, by Vulkan's
    names; before there is one, if the device that it would open has them. Opens no device.

    Raises NotFoundError as `DeviceInfo.supports` does, and if there is no device.

    >>> kp.supports("timelineSemaphore")
    True
    """
    return (present() or found_device(None)).supports(*names)


def _of(make: Any, key: tuple[str, ...] | None = None) -> Manager:
    made: Manager = make()
    if key is None:
        key = _key(made.get_device_properties(), {})
    known = process.by_device.setdefault(key, made)
    if known is made or not known.is_init():
        process.by_device[key] = made
        return made
    made.destroy()
    return owner(known)


def _key(info: DeviceInfo, options: Mapping[str, str]) -> tuple[str, ...]:
    # Two drivers of one device report the same device UUID.
    return (info["uuid"], info["driver_uuid"], *(f"{name}={options[name]}" for name in sorted(options)))
