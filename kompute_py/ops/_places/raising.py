"""Operations at indices with the mode "raise": the host looks at the indices before a call runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base.errors import OutOfRangeError
from ..._builders.reduction import reduction
from ..._custom.declaration import parse
from ..._functions.custom_op import CustomOp
from ..._functions.function import Function
from ..._memory.image import Image
from ..._memory.strided import StridedView
from ..._memory.tensor import Tensor
from .given import known

_least = reduction("x", "min")
_most = reduction("x", "max")


class RaisingOperation(Function):
    """An operation with the parameters `x`, `indices`, `mode` and maybe `axis`. With the mode "raise" a call
    refuses indices beyond the axis, and takes negative ones from the end, as NumPy. Kernels cannot raise
    errors, so the call waits for the least and the greatest index; what is recorded has no such mode."""

    def _general(
        self, exactly: Any, args: tuple[Any, ...], /, out: Any = None, donate: Any = (), **named: Any
    ) -> Any:
        place = self._at["mode"]
        mode = args[place] if len(args) > place else named.get("mode", self._defaults[place])
        if not isinstance(mode, str) or mode != "raise":
            return super()._general(exactly, args, out, donate, **named)
        values = self._bind(args, named)
        self._refuse(values)
        values[place] = "wrap"  # only -n to n - 1 are left
        return super()._general(None, tuple(values), out, donate)

    def _refuse(self, values: list[Any]) -> None:
        x, indices = values[self._at["x"]], values[self._at["indices"]]
        given = values[self._at["axis"]] if "axis" in self._at else None
        if isinstance(given, list) and len(given) != 1:
            return  # `select` refuses it
        axis: Any = given[0] if isinstance(given, list) else given
        shape = tuple(x.shape)
        if np.dtype(indices.dtype).kind not in "iu" or not int(np.prod(indices.shape)):
            return
        if axis is not None and not -len(shape) <= axis < len(shape):
            return
        n = int(np.prod(shape)) if axis is None else shape[axis]
        if isinstance(indices, (Tensor, StridedView, Image)):
            ends = [int(known(each(indices), 0)) for each in (_least, _most)]
        else:
            # If broadcasting made an axis, its elements are one in memory, and one is enough.
            once = indices[tuple(slice(None if step else 1) for step in indices.strides)]
            ends = [int(once.min()), int(once.max())]
        for index in ends:
            if not -n <= index < n:
                where = "x" if axis is None else f"axis {axis} of x"
                raise OutOfRangeError(
                    f"{self.__name__}: index {index} is out of bounds for {where} with {n} elements; give "
                    'mode="clip" or "wrap" to take others for it'
                )


def raising(op: type[CustomOp]) -> RaisingOperation:
    """The operation of a class."""
    return RaisingOperation(op(), parse(op.signature))
