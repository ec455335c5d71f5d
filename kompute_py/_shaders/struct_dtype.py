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
    """The NumPy dtype with the layout of a shader's buffer: ``np.zeros(n, kp.struct_dtype(spirv, 0))``.

    `shader` is a shader as for `kp.ShaderModule`. `binding` is the name of a storage or uniform buffer, as in
    calls of kernels, or its number (in set 0), or (set, number). If the block is one array, the result is the
    dtype of an element, as long as the array's stride; otherwise it is the dtype of the whole block. `length`
    is the number of elements of an array of run-time length that follows other members.

    Offsets, strides and padding are the shader's. Vectors and matrices are sub-arrays: ``vec3`` is ``(3,)``.
    If the stride is longer than the vector, the last axis is as long as the stride, so use ``["m"][...,
    :3]``. A column-major matrix has its columns as rows. A shader's bool is a uint32, a buffer reference a
    uint64.

    Raises NotFoundError if the shader has no such buffer; InvalidArgumentError if `length` is missing or not
    applicable, or NumPy has no dtype for the block; and the errors of `kp.ShaderModule`.

    >>> text = '''
    ... struct Body { vec3 position; float mass; };
    ... layout(binding = 0) buffer Bodies { Body bodies[]; };
    ... void main() { bodies[0].mass = 1.0; }
    ... '''
    >>> kp.struct_dtype(text, "bodies").names
    ('position', 'mass')
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
