"""Arguments of any kind, for functions that are no operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._custom.pictures import tensor_of
from .._memory.image import Image
from .._memory.strided import StridedView
from .._memory.tensor import Tensor


def given(x: Any) -> Any:
    """Tensors and parts of them as they are, an Image as a Tensor, and anything else as an array."""
    if isinstance(x, (Tensor, StridedView)):
        return x
    return tensor_of(x) if isinstance(x, Image) else np.asarray(x)


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape, which for what is no array NumPy finds."""
    return tuple(x.shape) if isinstance(x, (Tensor, StridedView, Image)) else np.shape(x)


def host(x: Any) -> Any:
    """The contents, for the host."""
    return x.read() if isinstance(x, (Tensor, StridedView, Image)) else np.asarray(x)
