"""Sizes of images from arrays and arguments, formats, and regions from indices. Uses no device."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from . import misplaced
from .arrays import as_index
from .errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    OutOfRangeError,
    UnimplementedError,
    kind_of,
    shown,
)
from .text import Told, told

if TYPE_CHECKING:
    from .annotations import FormatName

_HELP = (
    "Names are GLSL's (rgba8 is unorm, then rgba8_snorm, rgba8ui, rgba8i, r32f, ...) "
    "or Vulkan's (R8G8B8A8_UNORM)"
)


class ImageFormat(NamedTuple):
    """An image format: its names, and the representation of a texel on the host and in a shader."""

    name: FormatName
    """GLSL's qualifier, or a name in the same style."""
    vulkan: str
    """Vulkan's name without VK_FORMAT_."""
    component: str
    """The NumPy dtype of a texel's components on the host."""
    channels: int
    """The number of components; a packed texel has one."""
    texel_bytes: int
    scalar: str
    """The type in a shader: "float", "int" or "uint"."""
    plain: bool
    """Whether a shader reads the components unchanged: neither normalized nor packed."""


@functools.cache
def _formats() -> tuple[dict[str, ImageFormat], dict[tuple[str, int], ImageFormat]]:
    by_name: dict[str, ImageFormat] = {}
    plain: dict[tuple[str, int], ImageFormat] = {}
    for f in _native.image_formats():
        made = ImageFormat(
            f["name"], f["vulkan"], f["component"], f["channels"], f["texel_bytes"], f["scalar"], f["plain"]
        )
        by_name[made.name] = made
        if made.plain:
            plain[made.component, made.channels] = made
    return by_name, plain


def parse_format(name: str) -> ImageFormat:
    """The format with a GLSL or Vulkan name.

    Raises InvalidArgumentError for an unknown name, ArgumentTypeError if `name` is not a str.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"format is {kind_of(name)}; give a str. {misplaced.as_format(name)}{_HELP}")
    by_name = _formats()[0]
    found = by_name.get(name)
    if found is None:
        vulkan = name.removeprefix("VK_FORMAT_")
        found = next((f for f in by_name.values() if f.vulkan == vulkan), None)
    if found is None:
        raise InvalidArgumentError(
            f"There is no image format {shown(name)}. {misplaced.as_format(name)}{_HELP}"
        )
    return found


def plain_format(component: str, channels: int) -> ImageFormat | None:
    """The format with `channels` unchanged components of a dtype; None if there is none."""
    return _formats()[1].get((component, channels))


def component_names() -> list[str]:
    """The dtypes that texels can consist of."""
    return sorted({component for component, _ in _formats()[1]})


def full_scale(dtype: np.dtype[Any]) -> float:
    """The value of white and of an opaque alpha: 1.0 for floats, the largest value for integers."""
    return 1.0 if dtype.kind not in "iu" else float(np.iinfo(dtype).max)


def refuse_palette(picture: Any) -> None:
    """Raises ArgumentTypeError for a picture of Pillow with a palette.

    Its numbers, as NumPy sees them, are indices of colours.
    """
    if type(picture) is np.ndarray or not type(picture).__module__.startswith("PIL."):
        return
    mode = getattr(picture, "mode", None)
    if mode in ("P", "PA"):
        raise ArgumentTypeError(
            f"The picture has mode {mode!r}: its numbers are indices of a palette, not colours. "
            'Convert it: picture.convert("RGBA")'
        )


def with_alpha(pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`pixels`, of three channels in the last axis, with a fourth that is opaque.

    Vulkan has no storage images of three channels.
    """
    made = np.empty((*pixels.shape[:-1], 4), pixels.dtype)
    made[..., :3] = pixels
    made[..., 3] = np.iinfo(pixels.dtype).max if pixels.dtype.kind in "iu" else 1
    return made


class ImageSize(NamedTuple):
    """The extent of an image."""

    dims: int
    width: int
    height: int
    depth: int
    layers: int | None
    """None if the image is not an array of layers."""

    @property
    def axes(self) -> tuple[int, ...]:
        """The lengths of the host's axes before the channels: layers, depth, height, width."""
        lengths = (self.width, self.height, self.depth)[: self.dims]
        return (*(() if self.layers is None else (self.layers,)), *reversed(lengths))

    @property
    def texels(self) -> int:
        """The number of texels."""
        return self.width * self.height * self.depth * (self.layers or 1)


def extent(value: Any, axis: str) -> int:
    """`value` as a length of an image.

    Raises InvalidArgumentError if it is below 1, ArgumentTypeError if it is not an int.
    """
    try:
        number = as_index(value, f"Image {axis}")
    except ArgumentTypeError as error:
        raise misplaced.in_image(axis, value, error) from None
    if number < 1:
        raise InvalidArgumentError(f"Image {axis} is {number}; it must be at least 1")
    return number


def size_of(
    shape: tuple[int, ...],
    dims: int,
    width: Any,
    height: Any,
    depth: Any,
    layers: Any,
) -> ImageSize:
    """The size of an image for data of `shape`: (layers,) (depth,) (height,) width (, channels).

    The other arguments override the shape. Raises InvalidArgumentError if neither gives a length, or if the
    two contradict each other.
    """
    if as_index(dims, "dims") not in (1, 2, 3):
        raise InvalidArgumentError(f"dims is {shown(dims)}; an image has 1, 2 or 3 dimensions")
    if dims == 3 and layers is not None:
        raise InvalidArgumentError(
            "An image of three dimensions has no layers: Vulkan has no arrays of such images"
        )
    names = [*(["layers"] if layers is not None and layers is not False else []), "depth", "height", "width"]
    if dims < 3:
        names.remove("depth")
    if dims < 2:
        names.remove("height")
    given = {"width": width, "height": height, "depth": depth, "layers": None if layers is True else layers}
    for name, value in given.items():
        if name not in names and value is not None and value is not False:
            raise InvalidArgumentError(
                f"An image of {dims} dimension{'s' if dims > 1 else ''} has no {name}: leave it out"
            )
    lengths: dict[str, int] = {}
    # A shape with one entry for each name gives all lengths; one more axis is the channels.
    told = dict(zip(names, shape, strict=False)) if len(shape) in (len(names), len(names) + 1) else {}
    for name in names:
        value = given[name]
        if value is not None:
            lengths[name] = extent(value, name)
        elif name in told:
            lengths[name] = told[name]
        else:
            example = f"({', '.join(name[0] for name in names)}[, c])"
            raise InvalidArgumentError(
                f"An array of shape {shape} does not determine an image's {name}; "
                f"give {' and '.join(names)}, or an array of shape {example}"
            )
    extents = [lengths[name] for name in names]
    if 0 in (*extents, *shape):
        raise InvalidArgumentError(
            f"An image has at least 1 texel on each axis; the shape {shape} is empty, "
            "and Vulkan has no such image. A tensor may be empty: mgr.tensor_t(data)"
        )
    per_texel, odd = divmod(math.prod(shape), math.prod(extents))
    # (h, w) data with swapped axes has the right number of elements in the wrong order.
    contradicts = len(shape) == len(names) + 1 or (not odd and not _is_merged(shape, [*extents, per_texel]))
    if told and contradicts and any(lengths[name] != told[name] for name in names):
        raise InvalidArgumentError(
            f"The data has shape {shape}, "
            f"which is {', '.join(f'{name} {told[name]}' for name in names)}; "
            f"{', '.join(f'{name} {lengths[name]}' for name in names if lengths[name] != told[name])} "
            "contradicts it"
        )
    for name, length in lengths.items():
        if length >= 2**32:  # larger numbers would be truncated before a device checks them
            raise InvalidArgumentError(f"Image {name} is {length}; no image has 2**32 or more")
    return ImageSize(
        dims,
        lengths["width"],
        lengths.get("height", 1),
        lengths.get("depth", 1),
        lengths.get("layers"),
    )


def _is_merged(shape: Sequence[int], full: Sequence[int]) -> bool:
    """Whether `shape` is `full` with adjacent axes merged: row-major data then has the same texel order."""
    rest = [n for n in full if n != 1]
    for length in (n for n in shape if n != 1):
        product = 1
        while product < length and rest:
            product *= rest.pop(0)
        if product != length:
            return False
    return not rest


Region = tuple[int, int, int, int, int, int, int, int]


def region_of(size: ImageSize, key: Any, what: Told) -> tuple[Region, tuple[int, ...]]:
    """((x, y, z, layer, width, height, depth, layers), lengths of the remaining axes) of ``image[key]``.

    `key` is an int, a slice, Ellipsis, or a tuple of these, over the host's axes without the channels. Raises
    OutOfRangeError beyond an axis, InvalidArgumentError for an empty region, UnimplementedError for a step,
    and ArgumentTypeError for anything else.
    """
    axes = size.axes
    keys = list(key) if isinstance(key, tuple) else [key]
    if sum(each is Ellipsis for each in keys) > 1:
        raise OutOfRangeError(f"{told(what)}: an index has at most one Ellipsis")
    if any(each is Ellipsis for each in keys):
        at = next(i for i, each in enumerate(keys) if each is Ellipsis)
        keys[at : at + 1] = [slice(None)] * (len(axes) - len(keys) + 1)
    if len(keys) > len(axes):
        raise OutOfRangeError(f"{told(what)} has {len(axes)} axes of texels; the region names {len(keys)}")
    keys += [slice(None)] * (len(axes) - len(keys))
    begins, lengths, shape = [], [], []
    for each, length in zip(keys, axes, strict=True):
        begin, count, keeps = _axis(each, length, what)
        begins.append(begin)
        lengths.append(count)
        if keeps:
            shape.append(count)
    first = 0 if size.layers is None else 1
    x, y, z = [*reversed(begins[first:]), 0, 0][:3]
    w, h, d = [*reversed(lengths[first:]), 1, 1][:3]
    layer, layers = (begins[0], lengths[0]) if first else (0, 1)
    return (x, y, z, layer, w, h, d, layers), tuple(shape)


def _axis(key: int | slice | EllipsisType, length: int, what: Told) -> tuple[int, int, bool]:
    if isinstance(key, slice):
        try:
            start, stop, step = key.indices(length)
        except ValueError:
            raise InvalidArgumentError(f"{told(what)}: the step of a slice cannot be 0") from None
        except Exception:  # from the objects' own __index__
            raise ArgumentTypeError(f"{told(what)}: a slice consists of ints, not {shown(key)}") from None
        if step != 1:
            raise UnimplementedError(f"{told(what)}: a region is a box of texels; it has no step ({step})")
        if start >= stop:
            raise InvalidArgumentError(f"{told(what)}: the region has no texel")
        return start, stop - start, True
    if isinstance(key, bool):
        raise ArgumentTypeError(f"{told(what)}: a region consists of ints and slices, not {shown(key)}")
    try:
        index = operator.index(key)  # type: ignore[arg-type]
    except Exception:  # from the object's own __index__
        raise ArgumentTypeError(
            f"{told(what)}: a region consists of ints and slices, not {shown(key)}"
        ) from None
    if not -length <= index < length:
        raise OutOfRangeError(f"{told(what)}: index {shown(index)} is beyond an axis of {length}")
    return index % length, 1, False
