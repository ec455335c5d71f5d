"""Work between what it waits for and what it signals: `wait=` and `signal=` of whatever submits."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import _native
from .._base.errors import InvalidArgumentError
from .fence import Fence
from .semaphore import to_signals, to_waits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from .._device.device import Device


def stream_of(manager: Device, parts: Iterable[Any]) -> _native.Stream:
    """The native operations, recorded."""
    stream = manager._native.stream(0, 0, ())
    for part in parts:
        stream.record(part)
    return stream


def submit_stream(manager: Device, stream: _native.Stream, wait: Any, signal: Any) -> Fence:
    """Submits a recording that the device's work alone keeps. `wait` and `signal` are as in
    `Sequence.eval_async`.
    """
    fences, waits = ((), ()) if type(wait) is tuple and not wait else to_waits(wait)
    signals = () if type(signal) is tuple and not signal else to_signals(signal)
    fence = _native.submit(manager._native, (stream,), fences, waits, signals)
    if manager._watch is not None:
        manager._watch()
    return Fence(fence, (manager,))


@contextmanager
def ordered(wait: Any = (), signal: Any = ()) -> Iterator[None]:
    """Work of the host, between `wait` and `signal`. If it raises, nothing is signalled.

    Raises InvalidArgumentError, before it waits, for a value that its semaphore has reached already.
    """
    fences, waits = to_waits(wait)
    signals = to_signals(signal)
    for semaphore, value in signals:
        if (now := semaphore.query()) >= value:
            raise InvalidArgumentError(
                f"signal has the value {value} for a semaphore that is at {now}, and it only goes up: give a "
                "value above that"
            )
    for fence in fences:
        fence.wait(-1.0)
    for semaphore, value in waits:
        semaphore.wait(value, -1.0)
    yield
    for semaphore, value in signals:
        semaphore.signal(value)


def called_in_order(called: Callable[..., Any], args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """The result of a call of the host whose keywords `wait` and `signal` say what it waits for and signals:
    see `ordered`."""
    rest = dict(keywords)
    with ordered(rest.pop("wait", ()), rest.pop("signal", ())):
        return called(*args, **rest)
