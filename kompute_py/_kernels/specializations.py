"""The kernels or functions that `specialize` has made of one, by their constants."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from .._device.device import Device

_MOST_RECENT = 16
_Made = TypeVar("_Made")
Constants = frozenset[Any]  # names or ids with values


class Specializations(Generic[_Made]):
    """Kernels or functions by their constants: those in use, and up to 16 recently requested ones.

    Fewer are kept if the option `recent_pipelines` of a kernel's Manager is less than 16.
    ``mgr.memory.trim()`` drops the unused kernels.
    """

    __slots__ = ("__weakref__", "_known", "_lock", "_manager", "_most", "_recent")

    def __init__(self, manager: Device | None) -> None:
        """`manager` is a kernel's."""
        self._manager = (lambda: None) if manager is None else weakref.ref(manager)
        self._most = _MOST_RECENT if manager is None else None  # set at the first specialization
        self._known: weakref.WeakValueDictionary[Constants, _Made] = weakref.WeakValueDictionary()
        self._recent: OrderedDict[Constants, _Made] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Constants) -> _Made | None:
        """What has these constants, which becomes the latest; None if there is none."""
        with self._lock:
            kernel = self._known.get(key)
            dropped = None if kernel is None else self._touch(key, kernel)
        del dropped  # outside of the lock: it may destroy recordings
        return kernel

    def add(self, key: Constants, made: _Made) -> _Made:
        """`made`, or that of the same constants that another thread added first."""
        with self._lock:
            if self._most is None:
                manager = self._manager()
                self._most = 0
                if manager is not None:
                    self._most = min(_MOST_RECENT, manager.config.recent_pipelines.value)
                    manager._keepers.add(self)
            kernel = self._known.setdefault(key, made)
            dropped = self._touch(key, kernel)
        del dropped
        return kernel

    def _touch(self, key: Constants, kernel: _Made) -> _Made | None:
        """Makes it the latest; returns the evicted one, for the caller to drop."""
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
