"""Images as arguments and results of operations: arrays with the axes that `Image.read` gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base.errors import InvalidArgumentError
from .._base.texels import ImageFormat, ImageSize, parse_format, plain_format, size_of
from .._memory.image import Image
from .._memory.making import new_tensor
from .._memory.tensor import Tensor

if TYPE_CHECKING:
    from .._device.device import Device

_CHANNELS = {1: "r", 2: "rg", 4: "rgba"}


class Picture(NamedTuple):
    """Facts of an Image that a call makes, besides its shape, dtype and memory type."""

    size: ImageSize
    format: ImageFormat

    def made(self, manager: Device, shape: tuple[int, ...], memory_type: Any) -> Image:
        """A new image, of undefined contents."""
        image = Image._empty(manager, self.size, self.format, memory_type)
        image._shape = shape  # one channel may have an axis
        return image


def picture_like(image: Image, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Picture | None:
    """An image of `shape` and `dtype` with as many dimensions as `image`, and its kind of format; None if
    there is none.

    The first axes of `shape` are those of texels; one more is that of channels.
    """
    size = image._size
    texels = len(size.axes)
    channels = shape[-1] if len(shape) == texels + 1 else 1
    if len(shape) not in (texels, texels + 1) or channels not in _CHANNELS or 0 in shape:
        return None
    format = _format_like(image._format, dtype.name, channels)
    if format is None:
        return None
    layers = None if size.layers is None else True
    return Picture(size_of(shape[:texels], size.dims, None, None, None, layers), format)


def _format_like(given: ImageFormat, component: str, channels: int) -> ImageFormat | None:
    if given.component == component:
        if given.channels == channels:
            return given
        rest = given.name.removeprefix(_CHANNELS.get(given.channels, "-"))
        try:
            found = parse_format(_CHANNELS[channels] + rest)
        except InvalidArgumentError:
            pass
        else:
            if (found.component, found.channels) == (component, channels):
                return found
    return plain_format(component, channels)


def tensor_of(image: Image) -> Tensor:
    """A new tensor with the device's contents of an image."""
    tensor = new_tensor(image._manager, image._shape, image._dtype, image._memory_type)
    tensor.copy_from(image).wait()
    return tensor


def first_image(given: Sequence[Any]) -> Image | None:
    """The first image among arguments, lists being flat."""
    return next((each for each in given if isinstance(each, Image)), None)
