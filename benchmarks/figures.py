"""What is measured: each figure with its targets, its baseline and the function that measures it.

A figure is measured on each of its drivers; its targets hold on one of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .timing import Sample

if TYPE_CHECKING:
    from .bench import Bench

DRIVERS = ("lavapipe", "swiftshader", "null")
NO_DRIVER = "none"
"""Stands for the driver of a figure that opens no device."""

TIMES = "x"
_SCALES = {"us": 1e6, "ms": 1e3}


@dataclass(frozen=True)
class Measured:
    """Seconds of our side, of the baseline where there is one, and of their ratio."""

    ours: Sample
    baseline: Sample | None = None
    ratio: Sample | None = None


@dataclass(frozen=True)
class Figure:
    """One line of the table, for each driver that it is measured on."""

    name: str
    title: str
    unit: str
    """"us" or "ms" (our time), or "x" (our time over the baseline's)."""
    measure: Callable[[Bench], Measured]
    drivers: tuple[str, ...]
    baseline: str = ""
    """What the same work is compared with, where there is something."""
    judged_on: str = ""
    """The driver whose value the targets are for."""
    must: float | None = None
    aim: float | None = None

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


@dataclass
class Registry:
    """All figures, in the order of the table."""

    figures: dict[str, Figure] = field(default_factory=dict)

    def figure(
        self,
        name: str,
        title: str,
        unit: str,
        judged_on: str = "",
        must: float | None = None,
        aim: float | None = None,
        *,
        drivers: tuple[str, ...] = DRIVERS,
        baseline: str = "",
    ) -> Callable[[Callable[[Bench], Measured]], Callable[[Bench], Measured]]:
        """Registers the decorated function as what measures a figure."""

        def register(measure: Callable[[Bench], Measured]) -> Callable[[Bench], Measured]:
            if name in self.figures:
                raise ValueError(f"there are two figures named {name!r}")
            self.figures[name] = Figure(
                name, title, unit, measure, drivers, baseline, judged_on or drivers[0], must, aim
            )
            return measure

        return register

    def chosen(self, names: list[str]) -> list[Figure]:
        """The figures whose name starts with one of `names`; all where there are none.

        Raises KeyError, listing all.
        """
        if not names:
            return list(self.figures.values())
        found = [figure for figure in self.figures.values() if figure.name.startswith(tuple(names))]
        for name in names:
            if not any(figure.name.startswith(name) for figure in found):
                raise KeyError(f"there is no figure {name!r}; there are: {', '.join(self.figures)}")
        return found


REGISTRY = Registry()
figure = REGISTRY.figure
