"""Work between what it waits for and what it signals: `wait=` and `signal=` of whatever submits."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _native
from .._base.errors import InvalidArgumentError
from .fence import Fence
from .semaphore import to_signals, to_waits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .._device.device import Device

_Function = TypeVar("_Function", bound=Callable[..., Any])
Order = tuple[
    list[_native.Fence],
    list[tuple[_native.Semaphore, int]],
    list[tuple[_native.Semaphore, int]],
]
"""Fences and values of semaphores to wait for, and values to signal."""
NO_ORDER: Order = [], [], []
NOTHING: tuple[()] = ()
"""An option that was not given. Compared by identity, because arrays cannot be compared with ==."""


def stream_of(manager: Device, parts: Iterable[Any]) -> _native.Stream:
    """The native operations, recorded."""
    stream = manager._native.stream(0, 0, ())
    for part in parts:
        stream.record(part)
    return stream


def order_of(wait: Any, signal: Any) -> Order | None:
    """`wait` and `signal` as in `Sequence.eval_async`, for native calls; None for neither."""
    if wait is NOTHING and signal is NOTHING:
        return None
    return *to_waits(wait), to_signals(signal)


def fence_of(submitted: Any, manager: Device, results: tuple[Any, ...] = ()) -> Fence:
    """The fence of work that was just submitted: `submitted` is a native fence, or a pair of one and of the
    memory that was made for its results.
    """
    if manager._watch is not None:
        manager._watch()
    if type(submitted) is tuple:
        submitted, results = submitted
    return Fence(submitted, (manager,), (), (), results)


def submit_stream(
    manager: Device, stream: _native.Stream, order: Order | None, results: tuple[Any, ...] = ()
) -> Fence:
    """Submits a recording that the device's work alone keeps."""
    native = _native.submit(manager._native, (stream,), *(order or NO_ORDER))
    return fence_of(native, manager, results)


def check_signals(signals: list[tuple[_native.Semaphore, int]]) -> None:
    """Raises InvalidArgumentError for a value that its semaphore has reached already."""
    for semaphore, value in signals:
        if (now := semaphore.query()) >= value:
            raise InvalidArgumentError(
                f"signal has the value {value} for a semaphore that is at {now}, and it only goes up: give a "
                "value above that"
            )


@contextmanager
def ordered(wait: Any = (), signal: Any = ()) -> Iterator[None]:
    """Work of the host, between `wait` and `signal`. If it raises, nothing is signalled.

    Raises InvalidArgumentError, before it waits, for a value that its semaphore has reached already.
    """
    fences, waits = to_waits(wait)
    signals = to_signals(signal)
    check_signals(signals)
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


def in_order(function: _Function) -> _Function:
    """`function`, which the host runs to its end, with the options `wait` and `signal`: see `ordered`.

    Its own ``**options: Unpack[Ordering]``, if any, is for checkers of types, and stays empty.
    """
    signature = with_options(inspect.signature(function), wait=(), signal=())
    known = signature.parameters.keys()

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        if not named.keys() <= known:
            unknown = next(each for each in named if each not in known)
            raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {unknown!r}")
        if "wait" in named or "signal" in named:
            return called_in_order(function, args, named)
        return function(*args, **named)

    call.__signature__ = signature  # type: ignore[attr-defined]
    # Sphinx looks for the defaults of the signature in the source of what is wrapped.
    del call.__wrapped__
    return call  # type: ignore[return-value]


def with_options(signature: inspect.Signature, **defaults: Any) -> inspect.Signature:
    """`signature` with these keywords at its end, in place of a ``**options``."""
    parameters = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    for option, default in defaults.items():
        parameters.append(inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default))
    return signature.replace(parameters=parameters)
