"""Profile: what a Manager's device ran between two moments, and what the host did meanwhile.

The core notes each submission (native/core/device/profiler.hpp); this room makes arrays, a table, a trace
and a picture of the notes. Nothing below this room knows it.
"""

from __future__ import annotations

import html
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from .._base.arrays import to_flag
from .._base.errors import FailedPreconditionError, not_copyable
from .._base.settings import to_path
from .._base.text import duration
from .._device.device import require_manager
from .._display.cards import card
from .records import Notes, operations_of, spans_of
from .table import OperationTotal, columns, summary, totals_of

if TYPE_CHECKING:
    from .._base.annotations import Array
    from .._device.device import Device


_DEAR = (
    "the time of each dispatch includes some 25 µs that llvmpipe takes for its timestamp: "
    "mgr.profile(operations=False) times whole sequences"
)


@not_copyable("keep its records, or write them with to_trace()")
class Profile:
    """The work of a Manager's device inside of a ``with`` block. Made by ``mgr.profile()``.

    ``print(p)`` shows a table, the longest total first; ``p.to_trace("trace.json")`` writes a file for
    ui.perfetto.dev.

    >>> t = mgr.zeros(1000)
    >>> sequence = mgr.sequence().record(kp.OpSyncDevice([t]), kp.OpSyncLocal([t]))
    >>> with mgr.profile() as p:
    ...     _ = sequence.eval()
    >>> p.records["name"].tolist(), p.records["bytes_written"].tolist()
    (['OpSyncDevice', 'OpSyncLocal'], [4000, 0])

    It notes every submission of the Manager: of sequences, kernels, functions, streams and transfers, on all
    queues and from all threads. The end of the block waits for the submitted work. The records are there from
    then on.

    With ``operations=True`` the device notes the time after each operation. Recordings are built anew for
    that at their next evaluation, and once more after the block; their barriers stay what they were. The time
    of an operation counts from the end of the one before, so operations that overlap share their time by
    their ends. With ``operations=False`` whole sequences are timed: each run is one record, by the sequence's
    name.

    The bytes of an operation are those that it declares to use: all of a binding's tensor, at most once. A
    shader that reads an element several times, or not at all, moves another number of bytes. An OpRepeat has
    the bytes of all its turns. OpSyncDevice and OpSyncLocal have the bytes that they hand over, also where
    the host and the device share the memory, and nothing is copied. Held work that
    was built before the block is one record, "submission".

    Without a profile, an evaluation executes no instruction more. Each run in a profile keeps about 200 bytes
    and 8 for each operation until the end of the block.
    """

    __slots__ = (
        "_dear",
        "_device_name",
        "_first_span",
        "_native",
        "_notes",
        "_operations",
        "_queues",
        "_reader",
        "_start",
    )

    def __init__(self, manager: Device, operations: bool = True) -> None:
        require_manager(manager)
        # Not the Manager: it may end while it is profiled.
        self._native: _native.Context | None = manager._open()  # until its end
        self._operations = to_flag(operations, "operations")
        self._device_name = str(manager._info["device_name"])
        self._dear = self._operations and manager._info["driver_name"] == "llvmpipe"
        self._queues = {
            (queue["family"], queue["index"]): number
            for number, queue in reversed(list(enumerate(manager._native.queues)))
        }
        self._notes: Notes | None = None  # until its end
        self._start = 0
        self._reader: _native.ProfileReader | None = None  # while it runs
        self._first_span = 0

    def __enter__(self) -> Profile:
        """Begins. Raises FailedPreconditionError if this profile was used before, if the Manager is
        destroyed, or if the Manager is being profiled with another `operations`.
        """
        if self._start or self._native is None:
            raise FailedPreconditionError("This profile was used before: make a new one with mgr.profile()")
        self._reader = _native.ProfileReader(self._native, self._operations)
        self._first_span = _native.begin_spans()
        self._start = time.monotonic_ns()
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._finish()
        except Exception:
            if error[:1] in ((), (None,)):  # else the block's own error says what went wrong
                raise

    def _finish(self) -> None:
        """Waits for the submitted work and takes the records. If the wait fails or is interrupted, the
        records are there, without the times of what has not ended.
        """
        reader, self._reader = self._reader, None
        if reader is None:
            return
        end = time.monotonic_ns()
        noted = _native.end_spans(self._first_span)
        try:
            reader.settle()
        finally:
            self._note(end, noted, reader.end())
            self._native = None

    def _note(self, end: int, noted: list[Any], ended: tuple[list[dict[str, Any]], int, bool]) -> None:
        runs, uncertainty, calibrated = ended
        records = operations_of(runs, self._start, self._queues)
        spans = spans_of(noted, runs, self._start)
        threads = {each.ident: each.name for each in threading.enumerate() if each.ident is not None}
        for thread in np.unique(np.concatenate([records["thread"], spans["thread"]])).tolist():
            # Threads of the core, and those that have ended.
            threads.setdefault(thread, f"thread {len(threads) + 1}")
        self._notes = Notes(
            self._device_name, self._start, end, records, spans, threads, uncertainty * 1e-9, calibrated
        )

    @property
    def records(self) -> Array:
        """A structured array with a record for each operation that ran, in the order of submission.

        Fields: `name`; `sequence`, what was submitted, as error messages call it ("sequence 'blur'");
        `queue`, the number of the device's queue (queues of the Manager that share one, because the device
        has no more, have one number); `submission`, the number of the submission; `begin` and `seconds` on
        the device, in seconds since the beginning of the profile, NaN if the queue has no timestamps;
        `bytes_read` and `bytes_written`; `groups` (3 numbers of workgroups; 0 if it is not a dispatch, or if
        the device reads them); `submitted`, `thread` and `line` of the submission on the host ("file.py:12",
        empty if it was made without Python's lock, as in transfers); `recorded`, the line that recorded the
        operation (that of the submission if the call itself recorded it, or if that was before the profile);
        `memory`, the bytes of device memory in use then.

        Raises FailedPreconditionError inside of the block.
        """
        return self._ended().records

    @property
    def spans(self) -> Array:
        """A structured array of what the host spent time on, ordered by the beginning: `kind` ("build",
        "submit", "wait", "read", "write", "copy", "pipeline", "compile"), `text`, `begin`, `seconds`,
        `bytes`, `thread`.

        "copy" copies between Managers, by the way that the devices allow: where the host moves the bytes of a
        "read", "write" or "copy" itself, `records` has nothing of it. "build" turns a recording into a
        command buffer, "pipeline" is the driver's compilation. Spans may lie in each other: a "read" waits.
        They are those of the whole process.
        """
        return self._ended().spans

    def totals(self) -> list[OperationTotal]:
        """A total for each name of operations, the longest first."""
        return totals_of(self.records)

    @property
    def device_name(self) -> str:
        """The name of the device."""
        return self._device_name

    @property
    def seconds(self) -> float:
        """How long the block took on the host, without the wait at its end."""
        notes = self._ended()
        return (notes.end - notes.start) * 1e-9

    @property
    def device_seconds(self) -> float:
        """The sum of the operations' times on the device."""
        return float(np.nansum(self.records["seconds"]))

    @property
    def submissions(self) -> int:
        """The number of submissions."""
        return len(np.unique(self.records["submission"]))

    @property
    def clock_uncertainty(self) -> float:
        """By how many seconds the device's times may be off on the host's clock. Differences between times of
        the device are exact."""
        return self._ended().clock_uncertainty

    @property
    def clock_calibrated(self) -> bool:
        """Whether the driver related the two clocks (VK_EXT_calibrated_timestamps); else tiny submissions
        measured it at the end of the block."""
        return self._ended().clock_calibrated

    def to_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes a trace in Chrome's format, for ui.perfetto.dev and chrome://tracing. Raises OSError if the
        file cannot be written, ArgumentTypeError if `path` is not a path.
        """
        from .trace import write_trace

        notes = self._ended()
        with open(to_path(path, "path", "a file for the trace"), "w", encoding="utf-8") as file:
            write_trace(file, [notes])

    def plot(self, axes: Any = None) -> Any:
        """Draws the timeline into a matplotlib Axes (default: that of a new figure) and returns the Axes.

        Raises FailedPreconditionError if matplotlib is missing (the extra ``plot``), ArgumentTypeError if
        `axes` are not Axes.
        """
        from .timeline import draw

        return draw(self._ended(), axes)

    def _ended(self) -> Notes:
        if self._start == 0:
            raise FailedPreconditionError("This profile has not begun: use it in a with block")
        if self._notes is None:
            raise FailedPreconditionError("This profile has not ended: look at it after its with block")
        return self._notes

    def _title(self) -> str:
        return (
            f"{self._device_name}: {duration(self.seconds)} on the host, {duration(self.device_seconds)} of "
            f"work on the device, {self.submissions} submission{'' if self.submissions == 1 else 's'}"
        )

    def __str__(self) -> str:
        if self._notes is None:
            return repr(self)
        text = summary(self._title(), self._notes.records, self._notes.spans)
        return f"{text}\n{_DEAR}" if self._dear and self._notes.records["groups"].any() else text

    def __repr__(self) -> str:
        if self._notes is None:
            return f"<kp.Profile of {self._device_name}, {'running' if self._start else 'not begun'}>"
        return f"<kp.Profile of {self._title()}>"

    def _repr_html_(self) -> str:
        if self._notes is None:
            return card(repr(self), [])
        head, rows = columns(self.totals())
        cells = "".join(f"<th>{html.escape(name)}</th>" for name in head)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        return card(f"Profile of {self._title()}", [], body=f"<table><tr>{cells}</tr>{body}</table>")
