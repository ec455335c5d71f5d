"""Shapes and dtypes without contents."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import as_shape, to_dtype

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class TensorSpec:
    """A tensor's shape and dtype, without contents: what `meta` of an operation takes and returns.

    `shape` is an int or ints, `dtype` anything that NumPy takes as one. Equal specs compare as equal.

    Raises InvalidArgumentError for a negative axis, ArgumentTypeError for an unsupported dtype.

    >>> kp.TensorSpec((2, 3)).nbytes
    24
    """

    __module__ = "kompute_py"  # public; imported when first used

    __slots__ = {
        "dtype": "The elements' dtype.",
        "shape": "The lengths of the axes.",
    }

    def __init__(self, shape: int | Iterable[int], dtype: DTypeLike = np.float32) -> None:
        self.shape: tuple[int, ...] = as_shape(shape)
        self.dtype: np.dtype[Any] = to_dtype(dtype)

    @staticmethod
    def _of(shape: tuple[int, ...], dtype: np.dtype[Any]) -> TensorSpec:
        """The spec of what has this shape and dtype, which need no check."""
        made = TensorSpec.__new__(TensorSpec)
        made.shape, made.dtype = shape, dtype
        return made

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return self.size * self.dtype.itemsize

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"kp.TensorSpec({self.shape}, {str(self.dtype)!r})"


class PartSpec(TensorSpec):
    """The spec of a part of a tensor that is not dense."""

    __slots__ = {
        "first": "The number of its first element in the tensor.",
        "reach": "The bytes of the tensor.",
        "strides": "Elements from one to the next on each axis.",
    }

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], first: int, strides: tuple[int, ...], reach: int
    ) -> None:
        super().__init__(shape, dtype)
        self.reach = reach
        self.first = first
        self.strides = strides
