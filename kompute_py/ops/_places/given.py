"""Arguments of any kind, for functions that are not operations themselves."""

from __future__ import annotations

from typing import Any

from ..._base.arrays import to_array
from ..._custom.pictures import tensor_of
from ..._memory.image import Image
from ..._memory.strided import StridedView
from ..._memory.tensor import Tensor


def given(x: Any) -> Any:
    """Tensors and parts of them as they are, an Image as a Tensor, and anything else as an array.

    Raises the errors of `to_array`, and FailedPreconditionError for a tensor that is destroyed.
    """
    if isinstance(x, (Tensor, StridedView, Image)):
        x._require_init("be used")
        return tensor_of(x) if isinstance(x, Image) else x
    return to_array(x, "The argument")


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape; NumPy finds it for lists and other sequences."""
    return tuple(x.shape) if isinstance(x, (Tensor, StridedView, Image)) else given(x).shape  # type: ignore[no-any-return]


def host(x: Any) -> Any:
    """The contents, for the host."""
    return x.read() if isinstance(x, (Tensor, StridedView, Image)) else to_array(x, "The argument")
