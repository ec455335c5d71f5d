"""`struct_dtype`: the NumPy dtype of a shader's buffer."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.arrays import as_index
from .._base.errors import ArgumentTypeError, InvalidArgumentError, NotFoundError, shown
from .layout import BUFFERS, block_dtype
from .module import ShaderModule


def struct_dtype(
    shader: Any, binding: int | str | tuple[int, int], *, length: int | None = None
) -> np.dtype[Any]:
    """The NumPy dtype that has the layout of a shader's buffer: ``np.zeros(n, kp.struct_dtype(spirv, 0))``.

    `shader` is what `kp.ShaderModule` takes; `binding` is the name of a storage or uniform buffer, as calls of kernels have
    it, or its number (in set 0), or (set, number).
    Where the block is one array, it is the dtype of an element, as long as the array's stride; else it is that of the whole
    block. `length` gives the elements of an array of run-time length that follows other members.

    Offsets, strides and padding are the shader's. Vectors and matrices are sub-arrays, ``vec3`` is ``(3,)``; where the stride
    leaves room behind them, the last axis is as long as the stride, so take ``["m"][..., :3]``. A column-major matrix has
    columns as rows. A shader's bool is a uint32, a buffer reference a uint64.

    Raises NotFoundError where the shader has no such buffer, InvalidArgumentError where `length` is missing or of no use, or
    where NumPy has no dtype for it, and what `kp.ShaderModule` raises.
    """
    module = ShaderModule(shader)
    buffers = [p for p in module.signature.parameters if p.kind in BUFFERS]
    if not isinstance(binding, (int, str)) and not (
        isinstance(binding, tuple) and len(binding) == 2 and all(isinstance(n, int) for n in binding)
    ):
        raise ArgumentTypeError(f"binding is {shown(binding)}; give a name, a number, or (set, number)")
    place = (0, binding) if isinstance(binding, int) else binding
    for p in buffers:
        if place in ((p.set, p.binding), p.name) or (
            isinstance(place, str) and place == p.layout["type_name"]
        ):
            if length is not None:
                length = as_index(length, "length")
                if length < 0:
                    raise InvalidArgumentError(f"length is {length}; an array has 0 elements or more")
            where = f"{p.set}.{p.binding}" if p.set else p.binding
            return block_dtype(p.layout, length, f"The {p.kind} {p.name!r} at binding {where}")
    known = ", ".join(f"{(p.set, p.binding) if p.set else p.binding} ({p.name!r})" for p in buffers) or "none"
    raise NotFoundError(f"{module.name} has no buffer at binding {shown(binding)}; it has {known}")
