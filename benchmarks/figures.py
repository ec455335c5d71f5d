"""What is measured: each figure with its targets, its baseline and the function that makes its sides.

A figure is measured on each of its drivers; its targets hold on one of them.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .timing import Sample, Side, ratio

if TYPE_CHECKING:
    from .bench import Bench

DRIVERS = ("lavapipe", "swiftshader", "null")
CPU_DRIVERS = DRIVERS[:2]
"""The null driver keeps a second copy of memory to show a missing flush: its transfers are no measure."""
NO_DRIVER = "none"
"""Stands for the driver of a figure that opens no device."""

TIMES = "x"
_SCALES = {"us": 1e6, "ms": 1e3}


@dataclass(frozen=True)
class Measured:
    """Seconds of our side, and of the baseline where there is one."""

    ours: Sample
    baseline: Sample | None = None

    @property
    def ratio(self) -> Sample | None:
        """Our time over the baseline's."""
        return None if self.baseline is None else ratio(self.ours, self.baseline)


Make = Callable[["Bench"], "Side | tuple[Side, Side] | Measured"]
"""Makes our side and the baseline's, or measures in a way of its own."""


@dataclass(frozen=True)
class Figure:
    """One line of the table, for each driver that it is measured on."""

    name: str
    title: str
    unit: str
    """"us" or "ms" (our time), or "x" (our time over the baseline's)."""
    make: Make
    drivers: tuple[str, ...] = DRIVERS
    baseline: str = ""
    """What the same work is compared with, where there is something."""
    judged_on: str = ""
    """The driver whose value the targets are for."""
    must: float | None = None
    aim: float | None = None
    scale: float = 1.0
    """How many times as many blocks as usual."""
    times: int | None = None
    """How often the work is done in a block; by default as often as there is time for."""
    submits: bool = False
    """Whether the work goes to the driver, whose threads then take part in it."""
    devices: bool = False
    """Whether a driver with threads is measured on several devices, each made anew for both sides."""
    one_thread: bool = False
    """Whether a driver for the CPU gets one thread, so that a processor is left for the host."""

    def measure(self, bench: Bench) -> Measured:
        """Measures it on the driver that the process sees."""
        if self.devices:
            return bench.on_devices(self.make, self.scale, self.times)
        with contextlib.ExitStack() as bench.ending:
            made = self.make(bench)
            if isinstance(made, Measured):
                return made
            sides = made if isinstance(made, tuple) else (made,)
            return bench.compare(*sides, scale=self.scale, times=self.times, submits=self.submits)

    def value(self, measured: Measured) -> Sample:
        """What the targets speak of, in this figure's unit."""
        if self.unit == TIMES:
            if measured.ratio is None:
                raise ValueError(f"{self.name} is a ratio but was measured without a baseline")
            return measured.ratio
        ours = measured.ours
        return dataclasses.replace(
            ours, values=tuple(seconds * _SCALES[self.unit] for seconds in ours.values)
        )


FIGURES: dict[str, Figure] = {}
"""All figures by name, in the order of the table."""


def figure(
    name: str, title: str, unit: str, judged_on: str = "", must: float | None = None,
    aim: float | None = None, *, drivers: tuple[str, ...] = DRIVERS, **how: object,
) -> Callable[[Make], Make]:  # fmt: skip
    """Registers the decorated function as what makes the sides of a figure; `how`: other fields of it."""

    def register(make: Make) -> Make:
        if name in FIGURES:
            raise ValueError(f"there are two figures named {name!r}")
        targets = {"judged_on": judged_on or drivers[0], "must": must, "aim": aim}
        FIGURES[name] = Figure(name, title, unit, make, drivers, **targets, **how)  # type: ignore[arg-type]
        return make

    return register


def chosen_figures(names: list[str]) -> list[Figure]:
    """The figures whose name starts with one of `names`; all where there are none.

    Raises KeyError, listing all.
    """
    for name in names:
        if not any(each.startswith(name) for each in FIGURES):
            raise KeyError(f"there is no figure {name!r}; there are: {', '.join(FIGURES)}")
    return [each for each in FIGURES.values() if not names or each.name.startswith(tuple(names))]
