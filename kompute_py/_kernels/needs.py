"""The memory that a call of a kernel will need."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.texels import size_of
from .._memory.lending import Lending, capacity
from .._memory.needs import Imagined, Plan
from .call import Call, flat

if TYPE_CHECKING:
    from .version import Version


class _Planning(Lending):
    """Lends no memory, and makes no results, but tells a plan of them."""

    __slots__ = ("_plan", "_version")

    def __init__(self, plan: Plan, version: Version) -> None:
        super().__init__(version.manager)
        self._plan, self._version = plan, version

    def tensor(self, index: int, array: np.ndarray[Any, Any]) -> Any:
        return self.dense(index, array.shape, self.dtype_of(array))

    def dense(self, index: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        self._plan.lends(self._version, index, math.prod(shape) * dtype.itemsize)
        return Imagined.of(self._device(), shape, dtype, is_lent=True)

    def made(self, output: Any) -> Any:
        if output.format is None:
            return self._plan.makes(output.shape, output.dtype, None)
        axes = len(output.shape) - (output.format.channels > 1)
        # Of one texel: the format's facts are the driver's.
        made: Any = output._replace(shape=(1,) * axes + output.shape[axes:]).made(self._device())
        size = made._size
        made._size = size_of(output.shape[:axes], size.dims, None, None, None, size.layers and True)
        made._shape, made._count = output.shape, math.prod(output.shape)
        self._plan.counts(made)
        self._plan.takes(2 * made.nbytes)  # the zeros that it begins with, and their way to the device
        return made


def plan_call(plan: Plan, version: Version, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """Tells the plan what a call takes. Returns its results. Raises what the call would raise."""
    call = Call(version, args, dict(keywords), _Planning(plan, version))
    for place, (parameter, bound) in enumerate(zip(version.signature.parameters, call.bound, strict=True)):
        array = call.arrays.get(place)
        if array is not None:
            plan.gives(array, capacity(array.nbytes), True)
        if parameter.written:
            for each in flat((bound,)) if array is None else (array,):
                plan.writes(each)
    plan.runs(version.module.to_spirv())
    return call.result
