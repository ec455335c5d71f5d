"""Facts in place of memory, to resolve a call that does not run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import UnimplementedError
from .._memory.lending import Lending, capacity

if TYPE_CHECKING:
    from .._device.device import Device


class Imagined:
    """The facts of a Tensor that calls look at."""

    _is_image = False

    def __init__(
        self, manager: Device, shape: tuple[int, ...], dtype: np.dtype[Any], taken: int | None = None
    ) -> None:
        self._manager, self._shape, self._dtype = manager, shape, dtype
        self._count = math.prod(shape)
        self.nbytes = self._count * dtype.itemsize
        self.taken = self.nbytes if taken is None else taken
        """Bytes of the device's memory."""

    def _is_init(self) -> bool:
        return True

    def _describe(self) -> str:
        return f"Tensor of shape {self._shape}, {self._dtype}"


class Imagining(Lending):
    """Lends no memory, and makes no results."""

    def tensor(self, index: int, array: np.ndarray[Any, Any]) -> Any:
        """Facts of the memory for an array."""
        return Imagined(self._device(), array.shape, self.dtype_of(array), capacity(array.nbytes))

    def made(self, output: Any) -> Any:
        """Facts of a result. Raises UnimplementedError for an image."""
        if output.format is not None:
            raise UnimplementedError(
                "The memory of an image that the call makes is known to the driver alone: give the image"
            )
        return Imagined(self._device(), output.shape, output.dtype)


def imagined(manager: Device, value: Any) -> Any:
    """A `kp.TensorSpec` as a Tensor of its shape and dtype; other arguments as they are."""
    is_spec = hasattr(value, "shape") and hasattr(value, "dtype") and not hasattr(value, "__array__")
    if not is_spec or hasattr(value, "__dlpack__") or hasattr(value, "_manager"):
        return value
    return Imagined(manager, value.shape, value.dtype)
