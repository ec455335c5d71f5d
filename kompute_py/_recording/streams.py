"""Streams of several sequences together: submitting them, and what tells that they are done.

Streams that are split at copies between Managers need `split_stream`, which is loaded with the first of
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _native
from .._sync.fence import Fence
from .._sync.semaphore import to_signals, to_waits

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Sequence as Seq

    from typing_extensions import TypeIs

    from .._device.device import Device
    from .split_stream import SplitStream


def is_split(stream: _native.Stream | SplitStream) -> TypeIs[SplitStream]:
    """Whether a sequence's stream is split."""
    return type(stream) is not _native.Stream


def fence_of_streams(streams: Seq[_native.Stream | SplitStream]) -> _native.Fence:
    """The completion of the last submissions of `streams`, split or not."""
    plain = [stream for stream in streams if not is_split(stream)]
    if len(plain) == len(streams):
        return _native.Fence.of(plain)
    return _native.Fence.join(
        [stream.fence() if is_split(stream) else _native.Fence.of([stream]) for stream in streams]
    )


def submit_streams(
    manager: Device,
    streams: Seq[_native.Stream | SplitStream],
    fences: list[_native.Fence],
    waits: list[Any],
    signals: list[Any],
) -> _native.Fence:
    """Submits streams in order, after `fences` and `waits` and before `signals`.

    Split streams are submitted one by one.
    """
    plain = [stream for stream in streams if not is_split(stream)]
    if len(plain) == len(streams):
        return _native.submit(manager._native, plain, fences, waits, signals)
    from .split_stream import submit_split

    submit_split(manager, streams, fences, waits, signals)
    return fence_of_streams(streams)


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


def managers_of(streams: Seq[_native.Stream | SplitStream], manager: Device) -> tuple[Device, ...]:
    """The Managers of the devices on which the streams' work ends."""
    peers = [peer for stream in streams if is_split(stream) for peer in stream._peers]
    return tuple({id(each): each for each in (manager, *peers)}.values()) if peers else (manager,)
