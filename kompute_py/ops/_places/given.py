"""Arguments of any kind, for functions that are no operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base.errors import ArgumentTypeError, shown
from ..._custom.pictures import tensor_of
from ..._memory.image import Image
from ..._memory.strided import StridedView
from ..._memory.tensor import Tensor


def given(x: Any) -> Any:
    """Tensors and parts of them as they are, an Image as a Tensor, and anything else as an array."""
    if isinstance(x, (Tensor, StridedView)):
        return x
    if isinstance(x, Image):
        return tensor_of(x)
    try:
        return np.asarray(x)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"{shown(x)} is no array; give a Tensor, an Image or an array") from None


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape, which for what is no array NumPy finds."""
    return tuple(x.shape) if isinstance(x, (Tensor, StridedView, Image)) else given(x).shape  # type: ignore[no-any-return]


def host(x: Any) -> Any:
    """The contents, for the host."""
    return x.read() if isinstance(x, (Tensor, StridedView, Image)) else np.asarray(x)
