"""Streams of several sequences together: submitting them, and what tells that they are done.

Streams that are split at steps of the host need `split_stream`, which is loaded with the first of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _native

if TYPE_CHECKING:
    from collections.abc import Sequence as Seq

    from typing_extensions import TypeIs

    from .._device.device import Device
    from .._sync.fence import Failure
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


def failures_of(streams: Seq[_native.Stream | SplitStream]) -> tuple[Failure, ...]:
    """The errors of host steps in the streams' last submissions."""
    split = [stream for stream in streams if is_split(stream)]
    return tuple([stream.failure for stream in split if stream.failure is not None])


def managers_of(streams: Seq[_native.Stream | SplitStream], manager: Device) -> tuple[Device, ...]:
    """The Managers of the devices on which the streams' work ends."""
    peers = [peer for stream in streams if is_split(stream) for peer in stream._peers]
    return tuple({id(each): each for each in (manager, *peers)}.values()) if peers else (manager,)
