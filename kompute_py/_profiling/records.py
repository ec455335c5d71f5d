"""The notes of the core as NumPy arrays: a record for each operation that ran, and for each span of the host.

Times are seconds since the beginning of the profile, on the host's clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .._base.annotations import Array

RECORD: np.dtype[Any] = np.dtype(
    [
        ("name", "O"),
        ("sequence", "O"),
        ("queue", "i4"),
        ("submission", "i4"),
        ("begin", "f8"),
        ("seconds", "f8"),
        ("bytes_read", "u8"),
        ("bytes_written", "u8"),
        ("groups", "u4", (3,)),
        ("submitted", "f8"),
        ("thread", "u8"),
        ("line", "O"),
        ("recorded", "O"),
        ("memory", "u8"),
    ]
)
SPAN: np.dtype[Any] = np.dtype(
    [("kind", "O"), ("text", "O"), ("begin", "f8"), ("seconds", "f8"), ("bytes", "u8"), ("thread", "u8")]
)
_NANO = 1e-9


class Notes(NamedTuple):
    """All that was noted between two moments."""

    device_name: str
    start: int
    """Nanoseconds by time.monotonic_ns()."""
    end: int
    records: Array
    spans: Array
    threads: dict[int, str]
    """The names of the threads in both arrays."""
    clock_uncertainty: float
    clock_calibrated: bool


def operations_of(runs: Iterable[Mapping[str, Any]], start: int, queues: Mapping[Any, int]) -> Array:
    """A record for each operation of each run, in the order of submission. `start` is the beginning of the
    profile in nanoseconds, `queues` the number of each queue by its family and index.

    An operation without times (its queue has no timestamps, or it did not run to its end) has NaN in `begin`
    and `seconds`.
    """
    rows = []
    for run in runs:
        times = run["times"]
        submitted = _since(run["submit_begin"], start)
        queue = queues[run["family"], run["queue"]]
        for index, (name, groups, read, written, line) in enumerate(run["operations"]):
            begin, seconds = np.nan, np.nan
            if times:
                begin = _since(times[index], start)
                seconds = (times[index + 1] - times[index]) * _NANO
            where = (name, run["label"], queue, run["submission"])
            lines = (run["line"], line or run["line"])
            rows.append(
                (
                    *where,
                    begin,
                    seconds,
                    read,
                    written,
                    groups,
                    submitted,
                    run["thread"],
                    *lines,
                    run["memory"],
                )
            )
    return np.array(rows, dtype=RECORD)


def spans_of(
    notes: Iterable[tuple[str, str, int, int, int, int]], runs: Iterable[Mapping[str, Any]], start: int
) -> Array:
    """A record for each span of the host, ordered by its beginning; one for each submission is among them."""
    rows = [
        (kind, text, _since(begin, start), (end - begin) * _NANO, moved, thread)
        for kind, text, begin, end, thread, moved in notes
    ]
    submitted = {run["submission"]: run for run in runs}
    for run in submitted.values():
        begin, end = run["submit_begin"], run["submit_end"]
        rows.append(("submit", run["label"], _since(begin, start), (end - begin) * _NANO, 0, run["thread"]))
    rows.sort(key=lambda row: row[2])
    return np.array(rows, dtype=SPAN)


def _since(moment: int, start: int) -> float:
    return (moment - start) * _NANO
