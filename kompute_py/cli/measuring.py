"""Measurements of ``kompute-py bench``: the cost of evaluations, dispatches, calls and transfers.

Each figure is the median over blocks of about a millisecond, measured for a quarter of a second; the best
block is shown beside it. Needs only the library itself. (The repository's `benchmarks` compare with C and
other libraries.)
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.collector import collector_off
from .._profiling.benchmark import LEAST_BLOCKS, seconds_of
from .._recording.operations import OpAlgoDispatch, OpCopy
from .arguments import Prepared

if TYPE_CHECKING:
    from .._manager.manager import Manager

_FIGURE_SECONDS = 0.25
_TRANSFER_BYTES = 64 << 20
_DISPATCHES = 256

_EMPTY = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer Out { float result[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < result.length()) result[i] = a[i] + b[i];
}
"""

FIGURES = 7
"""The most figures that `measure_device` yields."""


@dataclass(frozen=True)
class Figure:
    """One measured figure."""

    name: str
    what: str
    """The unit of `typical`: "s", "B/s" or "1/s"."""
    typical: float
    best: float
    blocks: int
    note: str = ""


def _measured(work: Callable[[], object]) -> list[float]:
    return seconds_of(work, _FIGURE_SECONDS)


def _times(name: str, seconds: list[float], note: str = "") -> Figure:
    return Figure(name, "s", statistics.median(seconds), min(seconds), len(seconds), note)


def _rates(name: str, unit: str, amount: float, seconds: list[float], note: str = "") -> Figure:
    typical = amount / max(statistics.median(seconds), 1e-12)
    return Figure(name, unit, typical, amount / max(min(seconds), 1e-12), len(seconds), note)


def measure_device(manager: Manager) -> Iterator[Figure]:
    """Yields the figures of a device."""
    kernel = manager.kernel(_EMPTY, name="add")
    a, b, out = (manager.zeros(64) for _ in range(3))
    algorithm = manager.algorithm([a, b, out], kernel.to_spirv(), (1, 1, 1))
    one = manager.sequence().record(OpAlgoDispatch(algorithm))
    yield _times("eval", _measured(one.eval), "submit a recorded dispatch of one workgroup and wait for it")
    yield _times(
        "kernel call",
        _measured(lambda: kernel(a, b, out)),
        "k(a, b, out) on tensors: the same, and its arguments",
    )
    arrays = [np.zeros(64, np.float32) for _ in range(3)]
    yield _times(
        "call with arrays",
        _measured(lambda: kernel(*arrays)),
        "the same on NumPy arrays of 64 floats, copied in and back",
    )
    # Each has its own memory, so that only the device orders them.
    many = manager.sequence()
    for _ in range(_DISPATCHES):
        many.record(
            OpAlgoDispatch(manager.algorithm([a, b, manager.zeros(64)], kernel.to_spirv(), (1, 1, 1)))
        )
    yield _rates(
        "dispatches",
        "1/s",
        _DISPATCHES,
        _measured(many.eval),
        f"independent ones, {_DISPATCHES} in a recording",
    )
    del many
    yield from _transfers(manager)


def _transfers(manager: Manager) -> Iterator[Figure]:
    size = _transfer_bytes(manager)
    there = manager.empty(size // 4, np.float32, "storage")
    array = np.ones(size // 4, np.float32)
    mib = f"{size / (1 << 20):g} MiB"
    yield _rates("upload", "B/s", size, _measured(lambda: there.write(array)), f"tensor.write of {mib}")
    yield _rates(
        "download", "B/s", size, _measured(lambda: there.read(array)), f"tensor.read of {mib} into an array"
    )
    other = manager.empty(size // 4, np.float32, "storage")
    copy = manager.sequence().record(OpCopy([there, other]))
    yield _rates(
        "copy on the device", "B/s", size, _measured(copy.eval), f"tensor to tensor, {mib}, read and written"
    )


def _transfer_bytes(manager: Manager) -> int:
    """64 MiB, or less if the device has little memory."""
    free = min(
        heap["size"] for heap in manager.get_device_properties()["memory_heaps"] if heap["device_local"]
    )
    size = _TRANSFER_BYTES
    while size > (1 << 20) and size > free // 8:
        size //= 2
    return size


@dataclass(frozen=True)
class KernelTimes:
    """The times of a kernel's runs."""

    device: list[float]
    """Seconds of each run by the device's timestamps; empty if it has none."""
    host: list[float]
    """Seconds of each evaluation by the host's clock."""
    groups: tuple[int, int, int]
    invocations: int
    argument_bytes: int
    """The bytes of all bound memory."""


def measure_kernel(manager: Manager, prepared: Prepared, limit: float) -> KernelTimes:
    """Runs a kernel for `limit` seconds, at least five times, after one run that does not count."""
    has_timestamps = manager.get_device_properties()["timestamps_supported"]
    sequence = manager.sequence(timestamps=has_timestamps).record(prepared.operation)
    sequence.eval()
    device: list[float] = []
    host: list[float] = []
    clock = time.perf_counter
    with collector_off():
        end = clock() + limit
        while len(host) < LEAST_BLOCKS or clock() < end:
            start = clock()
            sequence.eval()
            host.append(clock() - start)
            if has_timestamps:
                device.append(sequence.timings()[0][1])
    groups = prepared.operation.groups
    assert groups is not None  # the command line has no indirect
    invocations = 1
    for count, local in zip(groups, prepared.kernel.local_size, strict=True):
        invocations *= count * local
    return KernelTimes(
        device, host, groups, invocations, sum(_bytes(a.memory) for a in prepared.arguments.values())
    )


def _bytes(memory: Any) -> int:
    return int(getattr(memory, "image", memory).nbytes)
