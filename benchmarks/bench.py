"""Shared by the figures of one process: Manager, device of the floor, shader, three tensors of 4 KiB."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Protocol, TypeVar

import numpy as np

import kompute_py as kp

from .figures import Make, Measured
from .floor import CopyPair, Floor
from .timing import FULL, QUICK, Plan, Side, alternate, pooled

SHADER = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Left { float left[]; };
layout(set = 0, binding = 1) readonly buffer Right { float right[]; };
layout(set = 0, binding = 2) writeonly buffer Product { float product[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < product.length()) product[i] = left[i] * right[i];
}
"""
_LOCAL_SIZE = 64
# How the system places a device's threads changes its times; see timing.
_DEVICES = 12


class _Destroyed(Protocol):
    def destroy(self) -> None: ...


_Made = TypeVar("_Made", bound=_Destroyed)


class Bench:
    """One process's benchmarks on the driver that it sees.

    Things are made when a figure first asks for them.
    """

    GROUPS = Floor.ELEMENTS // _LOCAL_SIZE

    def __init__(self, driver: str, quick: bool) -> None:
        self.driver = driver
        self.quick = quick
        self.plan: Plan = QUICK if quick else FULL
        self.ending = contextlib.ExitStack()
        """Ends with the figure that is measured."""

    @functools.cached_property
    def manager(self) -> kp.Manager:
        return kp.Manager(validation=False, pipeline_cache_dir="")

    @functools.cached_property
    def spirv(self) -> bytes:
        return kp.compile(SHADER)

    @functools.cached_property
    def floor(self) -> Floor:
        return Floor(self.spirv, self.GROUPS)

    @functools.cached_property
    def tensors(self) -> list[kp.Tensor]:
        """Left, right and product: 4 KiB each, with a host copy each."""
        left = np.arange(Floor.ELEMENTS, dtype=np.float32)
        return [self.manager.tensor(data) for data in (left, np.full_like(left, 3), np.zeros_like(left))]

    @functools.cached_property
    def algorithm(self) -> kp.Algorithm:
        return self.manager.algorithm(self.tensors, self.spirv, (self.GROUPS, 1, 1))

    def temporary(self, thing: _Made) -> _Made:
        """Destroys the thing after the figure."""
        self.ending.callback(thing.destroy)
        return thing

    def own_manager(self, **options: Any) -> kp.Manager:
        """A Manager of the figure's own."""
        return self.temporary(kp.Manager(**{"validation": False, "pipeline_cache_dir": "", **options}))

    def memcpy(self, nbytes: int) -> Side:
        """The side that copies so much."""
        return self.ending.enter_context(contextlib.closing(CopyPair(nbytes))).copy

    @property
    def threaded(self) -> bool:
        """Whether the driver does submitted work on threads of its own."""
        return self.driver != "null"

    def compare(
        self, *sides: Side, scale: float = 1.0, times: int | None = None, submits: bool = False
    ) -> Measured:
        """Measures one side, or both in turns; for the options see `Figure`."""
        threaded = submits and self.threaded
        return Measured(*alternate(self.plan.scaled(scale), *sides, times=times, threaded=threaded))

    def on_devices(self, make: Make, scale: float, times: int | None) -> Measured:
        """Measures the two sides that `make` gives: on this device, or where the driver has threads on
        several.
        """
        measured = []
        for _ in range(1 if not self.threaded else 2 if self.quick else _DEVICES):
            other = Bench(self.driver, self.quick) if self.threaded else self
            other.spirv = self.spirv
            try:
                with other.ending:
                    sides: Any = make(other)
                    measured.append(other.compare(*sides, submits=True, scale=scale, times=times))
            finally:
                if other is not self:
                    other.close()
        if not self.threaded:
            return measured[0]
        return Measured(
            pooled([each.ours for each in measured]),
            pooled([each.baseline for each in measured if each.baseline is not None]),
        )

    def close(self) -> None:
        """Destroys what was made."""
        made = self.__dict__
        if "floor" in made:
            made.pop("floor").close()
        for name in ("algorithm", "tensors"):
            made.pop(name, None)
        if "manager" in made:
            made.pop("manager").destroy()
