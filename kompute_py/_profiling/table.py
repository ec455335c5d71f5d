"""A profile as text: a row for each operation by its name, the longest total first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._base.text import binary_size, duration

if TYPE_CHECKING:
    from .._base.annotations import Array

_MOST_ROWS = 40


class OperationTotal(NamedTuple):
    """All runs of the operations of one name (see `Profile.totals`).

    >>> t = mgr.zeros(1000)
    >>> with mgr.profile() as p:
    ...     _ = mgr.sequence().record(kp.OpSyncLocal([t]), kp.OpSyncLocal([t])).eval()
    >>> total = p.totals()[0]
    >>> total.name, total.calls, total.moved
    ('OpSyncLocal', 2, 8000)
    """

    name: str
    """The name of the operations."""
    calls: int
    """How often they ran."""
    seconds: float
    """The sum of their times on the device; NaN if none was timed."""
    shortest: float
    """The shortest time, in seconds."""
    median: float
    """The median of the times, in seconds."""
    longest: float
    """The longest time, in seconds."""
    moved: int
    """Bytes of device memory that they declared to read or to write."""
    bytes_per_second: float
    """`moved` by `seconds`."""
    line: str
    """The line that recorded the first of them, as "file.py:12"; empty if unknown (see `Profile.records`)."""


def totals_of(records: Array) -> list[OperationTotal]:
    """A total for each name, the longest first."""
    names: dict[str, list[int]] = {}
    for index, name in enumerate(records["name"]):
        names.setdefault(name, []).append(index)
    totals = [_total(name, records[indices]) for name, indices in names.items()]
    totals.sort(key=lambda total: (-np.nan_to_num(total.seconds), total.name))
    return totals


def _total(name: str, records: Array) -> OperationTotal:
    timed = records["seconds"][~np.isnan(records["seconds"])]
    moved = int(records["bytes_read"].sum() + records["bytes_written"].sum())
    if not len(timed):
        nan = float("nan")
        return OperationTotal(name, len(records), nan, nan, nan, nan, moved, nan, records["recorded"][0])
    seconds = float(timed.sum())
    return OperationTotal(
        name,
        len(records),
        seconds,
        float(timed.min()),
        float(np.median(timed)),
        float(timed.max()),
        moved,
        moved / seconds if seconds > 0 else float("nan"),
        records["recorded"][0],
    )


def host_totals(spans: Array) -> list[tuple[str, int, float, int]]:
    """(kind, number, seconds, bytes) of the host's spans, the longest first."""
    kinds: dict[str, tuple[int, float, int]] = {}
    for kind, seconds, bytes_moved in zip(spans["kind"], spans["seconds"], spans["bytes"], strict=True):
        count, total, moved = kinds.get(kind, (0, 0.0, 0))
        kinds[kind] = (count + 1, total + float(seconds), moved + int(bytes_moved))
    return sorted(((kind, *each) for kind, each in kinds.items()), key=lambda row: -row[2])


def columns(totals: list[OperationTotal]) -> tuple[list[str], list[list[str]]]:
    """The head and the rows of the table, as text."""
    whole = sum(np.nan_to_num(total.seconds) for total in totals)
    head = ["operation", "calls", "total", "share", "median", "shortest", "longest", "moved", "GB/s", "line"]
    rows = []
    for total in totals[:_MOST_ROWS]:
        share = total.seconds / whole if whole else float("nan")
        rows.append(
            [
                total.name,
                str(total.calls),
                time_text(total.seconds),
                "-" if np.isnan(share) else f"{share:.1%}",
                time_text(total.median),
                time_text(total.shortest),
                time_text(total.longest),
                binary_size(total.moved),
                "-" if np.isnan(total.bytes_per_second) else f"{total.bytes_per_second / 1e9:.3g}",
                total.line.replace("\\", "/").rsplit("/", 1)[-1],
            ]
        )
    return head, rows


def aligned(head: list[str], rows: list[list[str]]) -> list[str]:
    """The lines of a table: names to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    left = (0, len(head) - 1)
    return [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]


def time_text(seconds: float) -> str:
    """A duration as text; "-" for NaN."""
    return "-" if np.isnan(seconds) else duration(seconds)


def summary(title: str, records: Array, spans: Array) -> str:
    """A profile as text: the table, what the host did, and the memory in use."""
    totals = totals_of(records)
    head, rows = columns(totals)
    lines = [title, *(aligned(head, rows) if rows else ())]
    if len(totals) > len(rows):
        lines.append(f"and {len(totals) - len(rows)} more names")
    host = host_totals(spans)
    if host:
        lines.append(
            "host: "
            + ", ".join(
                f"{kind} {duration(total)} ({count}{f', {binary_size(moved)}' if moved else ''})"
                for kind, count, total, moved in host
            )
        )
    if len(records):
        lines.append(f"device memory in use: at most {binary_size(int(records['memory'].max()))}")
        if np.isnan(records["seconds"]).all():
            lines.append("no times: the queues have no timestamps")
    return "\n".join(lines)
