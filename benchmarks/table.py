"""The table: one row for each figure and driver, as aligned text or as Markdown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .figures import NO_DRIVER, TIMES, Figure, Measured

HEADER = ("figure", "driver", "ours", "least", "±", "baseline", "", "ratio", "must be", "aim", "met")
_RIGHT = {2, 3, 4, 5, 7, 8, 9}


@dataclass(frozen=True)
class Row:
    """The numbers of one figure on one driver. Times are in seconds."""

    figure: str
    driver: str
    ours: float
    least: float
    spread: float
    """Of what the figure judges: half of the middle half's width over the median."""
    value: float
    """What the figure judges, in its unit; what is typical of the blocks."""
    baseline: float | None = None
    ratio: float | None = None
    disturbed: bool = False
    """Whether blocks count that other processes interrupted."""

    @staticmethod
    def of(figure: Figure, driver: str, measured: Measured) -> Row:
        """The row of what was measured."""
        value = figure.value(measured)
        return Row(
            figure.name,
            driver,
            measured.ours.typical,
            measured.ours.least,
            # A ratio of quartiles is one number and has no spread of its own.
            value.spread if len(value.values) > 1 else measured.ours.spread,
            value.typical,
            measured.baseline.typical if measured.baseline is not None else None,
            measured.ratio.typical if measured.ratio is not None else None,
            value.disturbed,
        )


def met(figure: Figure, row: Row) -> str:
    """ "aim", "yes" or "NO" on the driver that the figure is judged on; elsewhere empty."""
    if figure.must is None or row.driver != figure.judged_on:
        return ""
    if figure.aim is not None and row.value <= figure.aim:
        return "aim"
    return "yes" if row.value <= figure.must else "NO"


def duration(seconds: float) -> str:
    """Three digits with the unit that fits; below a microsecond as its fraction."""
    unit, scale = "us", 1e6
    if seconds >= 1:
        unit, scale = "s", 1.0
    elif seconds >= 1e-3:
        unit, scale = "ms", 1e3
    number = seconds * scale
    digits = 0 if number >= 100 else 1 if number >= 10 else 2 if number >= 0.1 else 3
    return f"{number:.{digits}f} {unit}"


def target(figure: Figure, driver: str, value: float | None) -> str:
    """A limit of the figure as the table has it; empty on a driver that it is not judged on."""
    if value is None or driver != figure.judged_on:
        return ""
    return f"≤ {value:.2f} x" if figure.unit == TIMES else f"≤ {value:g} {figure.unit}"


def _cells(figure: Figure, row: Row) -> tuple[str, ...]:
    return (
        figure.title, "" if row.driver == NO_DRIVER else row.driver, duration(row.ours), duration(row.least),
        f"{'!' if row.disturbed else ''}{row.spread * 100:.0f}%",
        duration(row.baseline) if row.baseline is not None else "",
        figure.baseline if row.baseline is not None else "",
        f"{row.ratio:.2f} x" if row.ratio is not None else "", target(figure, row.driver, figure.must),
        target(figure, row.driver, figure.aim), met(figure, row),
    )  # fmt: skip


def aligned(cells: Sequence[Sequence[str]], as_markdown: bool, right: Collection[int] | None = None) -> str:
    """Rows, the header first, as text or as Markdown; `right` are the columns of numbers, by default all but
    the first.
    """
    columns = range(len(cells[0]))
    right = columns[1:] if right is None else right
    widths = [max(len(row[i]) for row in cells) for i in columns]
    rows = [
        [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, cell, width in zip(columns, row, widths, strict=True)
        ]
        for row in cells
    ]
    if not as_markdown:
        return "\n".join("  ".join(row).rstrip() for row in rows)
    rule = ["-" * (width - 1) + ":" if i in right else "-" * width for i, width in enumerate(widths)]
    return "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], rule, *rows[1:]])


def table(figures: list[Figure], rows: list[Row], as_markdown: bool = False) -> str:
    """The table, in the figures' order; the title of each stands once."""
    lines: list[tuple[str, ...]] = [HEADER]
    for figure in figures:
        for number, row in enumerate(row for row in rows if row.figure == figure.name):
            title, *cells = _cells(figure, row)
            lines.append(("" if number else title, *cells))
    text = aligned(lines, as_markdown, _RIGHT)
    if as_markdown:
        return text
    head, *others = text.splitlines()
    return "\n".join([head, "-" * max(map(len, [head, *others])), *others])


LEGEND = """\
Medians over blocks that alternate with the baseline's in one process (import and Manager: in fresh
processes); where a driver's threads take part in small submissions, lower quartiles over blocks of several
devices. `least` is the fastest block, ± half of the middle half's width. `ratio` is ours over the baseline.
Targets hold on the driver of their row. A figure that misses its target is measured once more, and the better
measurement stands."""

BUSY = "! The machine was too busy: nearly all blocks were interrupted, so interrupted ones count."


def legend(rows: list[Row]) -> str:
    """What the columns mean, and a warning where it is due."""
    return "\n".join([LEGEND, *([BUSY] if any(row.disturbed for row in rows) else [])])
