"""The kernels that `Kernel.specialize` created from one shader, by their constants."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._device.device import Device
    from .kernel import Kernel

_MOST_RECENT = 16
Constants = frozenset[tuple[str | int, bytes]]  # names or ids with values


class Specializations:
    """Kernels by their constants: those in use, and up to 16 recently requested ones.

    Fewer are kept if the Manager's option `recent_pipelines` is less than 16. ``mgr.memory.trim()`` drops the
    unused ones.
    """

    __slots__ = ("__weakref__", "_known", "_lock", "_manager", "_most", "_recent")

    def __init__(self, manager: Device) -> None:
        self._manager = weakref.ref(manager)
        self._most: int | None = None  # set at the first specialization
        self._known: weakref.WeakValueDictionary[Constants, Kernel] = weakref.WeakValueDictionary()
        self._recent: OrderedDict[Constants, Kernel] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Constants) -> Kernel | None:
        """The kernel with these constants, which becomes the latest; None if there is none."""
        with self._lock:
            kernel = self._known.get(key)
            dropped = None if kernel is None else self._touch(key, kernel)
        del dropped  # outside of the lock: it may destroy recordings
        return kernel

    def add(self, key: Constants, made: Kernel) -> Kernel:
        """`made`, or the kernel of the same constants that another thread added first."""
        with self._lock:
            if self._most is None:
                manager = self._manager()
                self._most = 0
                if manager is not None:
                    self._most = min(_MOST_RECENT, manager.config.recent_pipelines.value)
                    manager._families.add(self)
            kernel = self._known.setdefault(key, made)
            dropped = self._touch(key, kernel)
        del dropped
        return kernel

    def _touch(self, key: Constants, kernel: Kernel) -> Kernel | None:
        """Makes it the latest; returns the evicted kernel, for the caller to drop."""
        self._recent[key] = kernel
        self._recent.move_to_end(key)
        return self._recent.popitem(last=False)[1] if len(self._recent) > (self._most or 0) else None

    kept_bytes = kept_calls = 0  # `recent` bounds the kernels

    def drop_some(self) -> None:
        """Does nothing: it has no memory."""

    def trim(self) -> None:
        """Keeps only those that are in use."""
        with self._lock:
            dropped, self._recent = self._recent, OrderedDict()
        dropped.clear()

    def recent(self) -> int:
        """The number of recent kernels to keep."""
        return len(self._recent)
