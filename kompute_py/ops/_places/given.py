"""Arguments of any kind, for functions that are not operations themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._base.arrays import to_array
from ..._base.errors import InvalidArgumentError
from ..._functions.pictures import tensor_of
from ..._memory.image import Image
from ..._memory.needs import Imagined
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


def countable(x: Any) -> Any:
    """As `given`, for functions that bring an array into another shape, which copies what broadcasting made.

    Raises InvalidArgumentError for more elements than kernels count, before anything walks them.
    """
    x = given(x)
    if isinstance(x, np.ndarray) and x.size >= 2**32:
        raise InvalidArgumentError(
            f"An array of shape {x.shape} has {x.size} elements; kernels count with 32 bits: "
            "compute it in parts"
        )
    return x


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape; NumPy finds it for lists and other sequences."""
    return tuple(x.shape) if isinstance(x, (Tensor, StridedView, Image)) else given(x).shape  # type: ignore[no-any-return]


def host(x: Any) -> Any:
    """The contents of an argument, for the host: an implicit copy if it is on the device."""
    return np.asarray(x) if isinstance(x, (Tensor, StridedView, Image)) else to_array(x, "The argument")


def beside(x: Any, array: np.ndarray[Any, Any]) -> Any:
    """An array that a function has computed, where `x` is: on its device, or on the host."""
    manager = x.manager if isinstance(x, (Tensor, StridedView)) else None
    return array if manager is None else manager.tensor_t(array)


def known(x: Any, planned: int | None = None) -> Any:
    """Numbers that a function has computed and must know to go on: the host reads them in any case.
    `planned` stands for them in a call that does not run, if the memory does not depend on them.
    """
    if planned is not None and isinstance(x, Imagined):
        return np.full(x.shape, planned, x.dtype)
    return x.read() if isinstance(x, (Tensor, StridedView, Image)) else x
