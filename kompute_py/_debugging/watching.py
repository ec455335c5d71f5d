"""Looking at values: ``mgr.watch`` and the option ``debug`` of Managers."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from .._base.errors import ArgumentTypeError, FailedPreconditionError, kind_of
from .._base.settings import to_path
from .._memory.memory import memory_list
from .disjoint import DisjointLooker
from .nans import NanLooker
from .record import Recorder
from .values import Values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .._device.device import Device
    from .._memory.tensor import Tensor
    from .values import Looker, OperationValues, RunLooker


_OF_VALUES = ("nans", "disjoint", "values", "record")


def begin_debugging(manager: Device, words: tuple[str, ...], capture: RunLooker | None = None) -> None:
    """Does as `words`, the option `debug`, say, and hands submissions to `capture`, until the end."""
    keys = [word.partition("=") for word in words]
    if capture is None and not any(key in _OF_VALUES for key, _, _ in keys):
        return
    values = Values(manager)
    if capture is not None:
        values.look_at_runs(capture, contents=True)
    for key, _, rest in keys:
        if key == "nans":
            values.add(NanLooker())
        elif key == "disjoint":
            values.look_at_runs(DisjointLooker())
        elif key == "record":
            values.add(Recorder(rest))


class _Called:
    """Calls `sink` with the values of operations that use one of `tensors`; None: all."""

    def __init__(self, sink: Callable[[OperationValues], object], tensors: list[Any] | None) -> None:
        self._sink = sink
        self._tensors = tensors

    def look(self, values: OperationValues) -> None:
        if self._tensors is None or any(
            each.tensor is wanted or _base(each.tensor) is wanted or _base(wanted) is each.tensor
            for each in values.snapshots
            if each.tensor is not None
            for wanted in self._tensors
        ):
            self._sink(values)


def _base(memory: Any) -> Any:
    """The tensor that a view shows; None for others, Images among them."""
    return getattr(memory, "base", None)


@contextlib.contextmanager
def _looking(values: Values, looker: Looker) -> Iterator[None]:
    values.report()  # what came before is not the block's
    values.add(looker)
    try:
        yield
    finally:
        values.remove(looker)
    values.report()


def watching(
    manager: Device,
    sink: Callable[[OperationValues], object] | str | os.PathLike[str],
    tensors: Iterable[Tensor] | None,
) -> contextlib.AbstractContextManager[None]:
    """The block of ``mgr.watch``."""
    manager._open()
    wanted = (
        None if tensors is None else list(memory_list(tensors, "watch(tensors)", manager=manager, empty=True))
    )
    if callable(sink):
        call = sink
    elif isinstance(sink, (str, os.PathLike)):
        call = Recorder(to_path(sink, "sink", "a folder")).look
    else:
        raise ArgumentTypeError(
            f"watch takes what to call with an operation's values, or a folder; not {kind_of(sink)}"
        )
    values = getattr(manager._diagnostics.more, "__self__", None)
    if not isinstance(values, Values):
        raise FailedPreconditionError(
            'watch needs a Manager that looks at values: open it with kp.Manager(debug="values")'
        )
    return _looking(values, _Called(call, wanted))
