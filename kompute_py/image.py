"""Image: a two-dimensional storage image in device memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .arrays import as_float32, as_index, as_typed
from .errors import ArgumentTypeError, InvalidArgumentError
from .memory import Memory, to_memory_type

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from . import _native as core
    from .manager import Manager
    from .types import MemoryTypes

_COMPONENTS = frozenset({"uint8", "int8", "uint16", "int16", "float16", "uint32", "int32", "float32"})
_CHANNELS = {"r": 1, "rg": 2, "rgba": 4}
_FORMAT = re.compile(r"(rgba|rg|r)(8|16|32)(f|i|ui|_snorm|)")
_FORMAT_HELP = "names are GLSL's: r, rg or rgba, then 8, 16 or 32, then f, i, ui, _snorm, or nothing for unorm (rgba8, r32f)"


class ImageFormat(NamedTuple):
    """What a GLSL image format qualifier says."""

    channels: int
    component: str
    normalized: bool


def parse_format(name: str) -> ImageFormat:
    """The format that a GLSL qualifier such as "rgba8" names. Raises InvalidArgumentError for any other text."""
    if not isinstance(name, str):
        raise ArgumentTypeError(f"format is a {type(name).__name__}; give a str: {_FORMAT_HELP}")
    match = _FORMAT.fullmatch(name)
    if match is not None:
        channels, bits, suffix = match.groups()
        kind = {"f": "float", "i": "int", "ui": "uint", "_snorm": "int", "": "uint"}[suffix]
        normalized = suffix in ("", "_snorm")
        component = f"{kind}{bits}"
        if component in _COMPONENTS and not (normalized and bits == "32"):
            return ImageFormat(_CHANNELS[channels], component, normalized)
    raise InvalidArgumentError(f"There is no image format {name!r}; {_FORMAT_HELP}")


def _extent(value: Any, axis: str) -> int:
    number = as_index(value, f"Image {axis}")
    if number < 1:
        raise InvalidArgumentError(f"Image {axis} is {number}; it must be at least 1")
    return number


class Image(Memory):
    """A width x height image of 1, 2 or 4 channels, for shaders that declare ``image2D`` and the like.

    Made by ``mgr.image`` (float32) and ``mgr.image_t`` (the data's own dtype), or as
    ``kp.Image(mgr, data, width, height, num_channels, memory_type, format=...)``, which keeps the dtype.
    """

    __slots__ = ("_channels", "_height", "_width")

    _native: core.Image
    _is_image = True

    def __init__(
        self,
        manager: Manager,
        data: ArrayLike,
        width: int | None = None,
        height: int | None = None,
        num_channels: int | None = None,
        memory_type: MemoryTypes | str | None = None,
        *,
        format: str | None = None,
        as_float: bool = False,
    ) -> None:
        array = as_float32(data, "a black image") if as_float else as_typed(data, "a black image")
        where = to_memory_type(memory_type)
        fixed = None if format is None else parse_format(format)
        shape = array.shape
        if width is None and height is None and len(shape) not in (2, 3):
            raise InvalidArgumentError(
                f"An array of shape {shape} does not tell an image's size; give width and height, or an (h, w[, c]) array"
            )
        if len(shape) in (2, 3) and (width is None or height is None):
            height = shape[0] if height is None else height
            width = shape[1] if width is None else width
        if width is None or height is None:
            raise InvalidArgumentError(f"Give both width and height for data of shape {shape}")
        w, h = _extent(width, "width"), _extent(height, "height")
        if num_channels is None:
            if len(shape) == 3:
                num_channels = shape[2]
            elif fixed is not None:
                num_channels = fixed.channels
            else:
                num_channels = max(1, array.size // (w * h))
        c = _extent(num_channels, "num_channels")
        if c == 3:
            top = (
                1.0
                if array.dtype.kind == "f"
                else np.iinfo(array.dtype).max
                if array.dtype.kind in "iu"
                else 1
            )
            raise InvalidArgumentError(
                "Vulkan has no storage images of 3 channels; add a fourth: "
                f"data = np.concatenate([data.reshape({h}, {w}, 3), np.full(({h}, {w}, 1), {top}, data.dtype)], axis=2)"
            )
        if c not in (1, 2, 4):
            raise InvalidArgumentError(f"An image has 1, 2 or 4 channels, not {c}")
        if array.size != w * h * c:
            raise InvalidArgumentError(
                f"An image of {w} x {h} with {c} channels has {w * h * c} components; "
                f"the data has {array.size} (shape {shape})"
            )
        component, normalized = array.dtype.name, False
        if fixed is not None:
            if fixed.channels != c:
                raise InvalidArgumentError(f"Format {format} has {fixed.channels} channels; the data has {c}")
            if fixed.component != component:
                raise ArgumentTypeError(
                    f"Format {format} has components of {fixed.component}; the data has {component}. "
                    f"Use mgr.image_t(data.astype(np.{fixed.component}), format={format!r})"
                )
            normalized = fixed.normalized
        if component not in _COMPONENTS:
            raise ArgumentTypeError(
                f"dtype {array.dtype} is no component of an image; use one of {', '.join(sorted(_COMPONENTS))}"
            )
        manager._adopt_image(self, array, w, h, c, component, normalized, where)
        self._width, self._height, self._channels = w, h, c

    @property
    def width(self) -> int:
        """Pixels in a row."""
        return self._width

    @property
    def height(self) -> int:
        """Rows."""
        return self._height

    @property
    def num_channels(self) -> int:
        """Components of a pixel: 1, 2 or 4."""
        return self._channels

    @property
    def vk_image(self) -> int:
        """The VkImage, as an integer; in VK_IMAGE_LAYOUT_GENERAL before and after each evaluation."""
        return self._native.vk_image

    @property
    def vk_image_view(self) -> int:
        """The VkImageView, as an integer."""
        return self._native.vk_image_view

    @property
    def vk_format(self) -> int:
        """The VkFormat's number."""
        return self._native.vk_format
