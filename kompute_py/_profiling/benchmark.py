"""How long a call takes, on the host and on the device."""

from __future__ import annotations

import itertools
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base.collector import collector_off
from .._base.errors import ArgumentTypeError, FailedPreconditionError, InvalidArgumentError, shown
from .._base.text import duration
from .._device.device import Device
from .._device.kept import devices
from .profile import Profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._base.annotations import Array

BLOCK_SECONDS = 1e-3
LEAST_BLOCKS, MOST_BLOCKS = 5, 200
_MOST_PROFILED = 1000


class Benchmark(NamedTuple):
    """How long a call takes: the result of `kp.benchmark`. As text, the medians and their spread.

    >>> t = mgr.zeros(1000)
    >>> found = kp.benchmark(mgr.sequence().record(kp.OpSyncLocal([t])).eval, seconds=0.02)
    >>> found.host_median > 0
    True
    """

    host: Array
    """Seconds of a call by the host's clock, one value for each block of calls of about a millisecond."""
    device: Array
    """Seconds of the device's work in each of up to 1,000 further calls; empty if the queues have no
    timestamps."""

    @property
    def host_median(self) -> float:
        """The median of `host`."""
        return float(np.median(self.host))

    @property
    def device_median(self) -> float:
        """The median of `device`; NaN if there is none."""
        return float(np.median(self.device)) if len(self.device) else float("nan")

    def __str__(self) -> str:
        parts = [f"host {_spread(self.host)}"]
        if len(self.device):
            parts.append(f"device {_spread(self.device)}")
        return ", ".join(parts)


def benchmark(
    call: Callable[..., object], *arguments: Any, seconds: float = 0.5, **keywords: Any
) -> Benchmark:
    """Measures ``call(*arguments, **keywords)``: a kernel, a function, ``sequence.eval``, or your own code.

    The first call does not count: it builds and compiles. The calls are timed by the host's clock for
    `seconds`, at least five times, and then again in a profile (see `kp.Profile`) by the device's. The
    garbage collector is off meanwhile.

    Raises ArgumentTypeError if `call` is not callable or `seconds` is not a number, InvalidArgumentError if
    `seconds` is not positive and finite, FailedPreconditionError inside of a profile with
    ``operations=False`` and while the values of any Manager are looked at (``debug="nans"``, `mgr.watch`),
    and what the call raises.

    >>> square = kp.ops.elementwise("x * x")
    >>> print(kp.benchmark(square, mgr.zeros(1000), seconds=0.02))
    host ... (... to ...), device ...
    """
    if not callable(call):
        raise ArgumentTypeError(
            f"benchmark measures a call; {shown(call)} is not callable. Give a function and its arguments, "
            "such as sequence.eval"
        )
    try:
        limit = float(seconds)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentTypeError(f"seconds is {shown(seconds)}; give a number") from None
    if not 0 < limit < float("inf"):
        raise InvalidArgumentError(f"seconds is {limit:g}; give a positive, finite number")

    def work() -> object:
        return call(*arguments, **keywords)

    host = np.array(seconds_of(work, limit))
    return Benchmark(host, _device_seconds(work, limit))


def seconds_of(work: Callable[[], object], limit: float) -> list[float]:
    """Seconds for one call of `work`, one value for each block of about a millisecond."""
    clock = time.perf_counter
    start = clock()
    work()  # the first call builds the recording and lets the driver compile
    times = max(1, int(BLOCK_SECONDS / max(clock() - start, 1e-8)))
    found: list[float] = []
    with collector_off():
        end = clock() + limit
        while len(found) < LEAST_BLOCKS or (len(found) < MOST_BLOCKS and clock() < end):
            start = clock()
            for _ in itertools.repeat(None, times):
                work()
            taken = clock() - start
            if taken < BLOCK_SECONDS / 4:
                times *= 2  # the first estimate was too slow
                continue
            found.append(taken / times)
            if len(found) >= 3 and taken > limit:
                break  # work that takes this long is not measured five times
    return found


def _device_seconds(work: Callable[[], object], limit: float) -> Array:
    """The device's seconds in each call, over all open devices."""
    begins: list[int] = []
    with ExitStack() as stack:
        profiles = []
        for each in list(devices):
            if isinstance(each, Device) and each.is_init():
                try:  # joins a profile around it, such as KOMPUTE_PY_PROFILE's
                    profiles.append(stack.enter_context(Profile(each)))
                except FailedPreconditionError as error:
                    raise FailedPreconditionError(
                        f"benchmark times all open Managers, and {each!r} cannot be profiled now: {error}"
                    ) from None
        work()  # recordings are built anew
        with collector_off():
            end = time.monotonic() + limit
            while len(begins) < LEAST_BLOCKS or (len(begins) < _MOST_PROFILED and time.monotonic() < end):
                begins.append(time.monotonic_ns())
                work()
    spent = np.zeros(len(begins))
    timed = False
    for profile in profiles:
        records = profile.records
        records = records[~np.isnan(records["seconds"])]
        submitted = profile._start + (records["submitted"] * 1e9).astype(np.int64)
        of = np.searchsorted(begins, submitted, side="right") - 1  # -1: the call that does not count
        np.add.at(spent, of[of >= 0], records["seconds"][of >= 0])
        timed = timed or bool((of >= 0).any())
    return spent if timed else np.empty(0)


def _spread(seconds: Array) -> str:
    low, middle, high = np.percentile(seconds, (5, 50, 95))
    return f"{duration(middle)} ({duration(low)} to {duration(high)})"
