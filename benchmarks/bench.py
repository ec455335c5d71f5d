"""Shared by the figures of one process: Manager, device of the floor, shader, three tensors of 4 KiB."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

import kompute_py as kp

from .figures import Measured
from .floor import Floor
from .timing import FULL, QUICK, Plan, Side, alternate, pooled, ratio

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


class Bench:
    """One process's benchmarks on the driver that it sees.

    Things are made when a figure first asks for them.
    """

    GROUPS = Floor.ELEMENTS // _LOCAL_SIZE

    def __init__(self, driver: str, quick: bool) -> None:
        self.driver = driver
        self.quick = quick
        self.plan: Plan = QUICK if quick else FULL

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

    @property
    def threaded(self) -> bool:
        """Whether the driver does submitted work on threads of its own."""
        return self.driver != "null"

    def compare(
        self,
        ours: Side,
        baseline: Side | None = None,
        *,
        scale: float = 1.0,
        times: int | None = None,
        submits: bool = False,
    ) -> Measured:
        """Measures both sides in turns; `scale` times as many blocks as usual.

        `submits`: the work goes to the driver.
        """
        plan = self.plan.scaled(scale)
        threaded = submits and self.threaded
        if baseline is None:
            return Measured(*alternate(plan, ours, times=times, threaded=threaded))
        mine, theirs = alternate(plan, ours, baseline, times=times, threaded=threaded)
        return Measured(mine, theirs, ratio(mine, theirs))

    def compare_submissions(
        self, make: Callable[[Bench], tuple[Side, Side]], *, scale: float = 1.0, times: int | None = None
    ) -> Measured:
        """Measures the two sides that `make` gives: on this device, or where the driver has threads on
        several.
        """
        if not self.threaded:
            return self.compare(*make(self), scale=scale, times=times)
        measured = []
        for _ in range(2 if self.quick else _DEVICES):
            other = Bench(self.driver, self.quick)
            other.spirv = self.spirv
            try:
                measured.append(other.compare(*make(other), submits=True, scale=scale, times=times))
            finally:
                other.close()
        mine = pooled([each.ours for each in measured])
        theirs = pooled([each.baseline for each in measured if each.baseline is not None])
        return Measured(mine, theirs, ratio(mine, theirs))

    def close(self) -> None:
        """Destroys what was made."""
        made = self.__dict__
        if "floor" in made:
            made.pop("floor").close()
        for name in ("algorithm", "tensors"):
            made.pop(name, None)
        if "manager" in made:
            made.pop("manager").destroy()
