"""Host representation of the elements of a binding; fits arrays and pictures to them. Uses no device.

An array for a binding has the axes (elements...)(components). `Element.inner` is the second part: () for
scalars, (4,) for a vec4 or a texel with four channels. Vectors may be longer in memory than in the shader (a
vec3 takes four floats). Arrays in files have the shader's components; this module adds and removes the
padding.

Pictures: white is 1.0 if the shader reads floats, and 255 if it reads integers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._base.arrays import keeps_finite
from .._base.errors import ArgumentTypeError, InvalidArgumentError
from .._base.texels import ImageFormat, full_scale, parse_format, plain_format, with_alpha
from .._shaders.layout import element_dtype
from .._shaders.signature import Parameter
from .array_files import Array, dtype_of, with_channels

PACKED = "rgba8"
"""For a buffer of uint: four bytes in each uint, red the lowest, as unpackUnorm4x8 reads them."""


class Element(NamedTuple):
    """An element of a binding."""

    base: np.dtype[Any]
    """A scalar, or a struct."""
    inner: tuple[int, ...] = ()
    used: int = 1
    """The number of components in the last axis of `inner` that the shader reads."""
    fixed: tuple[int, ...] | None = None
    """The shape of the elements, if the shader declares it."""
    format: ImageFormat | None = None
    axes: int = 0
    """For images: the number of axes of elements."""
    packed: bool = False


def buffer_element(parameter: Parameter, wanted: str | None) -> Element:
    """The element of a buffer.

    `wanted` is the name of a dtype for a buffer without a single type, or `PACKED`.
    """
    what = f"{parameter.name} ({parameter.type})"
    members = parameter.layout["members"]
    sole = members[0] if len(members) == 1 else None
    made = element_dtype(parameter.layout)
    if wanted == PACKED:
        if made != np.dtype(np.uint32):
            raise InvalidArgumentError(f"{what}: {PACKED} pixels are packed into uint elements")
        return Element(np.dtype(np.uint32), packed=True)
    if sole is None and wanted is None and parameter.dtype is not None:
        return Element(parameter.dtype)  # several members with scalars of one kind
    if made is None or (made.names is not None and sole is None and wanted is not None):
        if wanted is None:
            raise InvalidArgumentError(
                f"{what} has no single type; choose the dtype of its memory, "
                f"with --dtype {parameter.name}=uint8 for bytes"
            )
        return Element(dtype_of(wanted, parameter.name))
    if wanted is not None and made.base != dtype_of(wanted, parameter.name):
        raise ArgumentTypeError(f"{what} holds {made.base}, not {wanted}")
    fixed: tuple[int, ...] | None = None
    if sole is None:
        fixed = ()
    elif not sole["array"]:
        fixed = ()
        if made.names is not None and sole["kind"] != "struct":
            made = made.fields[made.names[0]][0]  # type: ignore[index]
    elif sole["array"][0]:
        fixed = (sole["array"][0],)
    used = max(1, sole["rows"]) if sole is not None and sole["columns"] <= 1 else 0
    return Element(made.base, made.shape, used or (made.shape[-1] if made.shape else 1), fixed)


def image_element(parameter: Parameter, wanted: str | None, like: Array | None, picture: bool) -> Element:
    """The element of an image.

    Its format is the `wanted` one, else the shader's, else one that fits the array `like`.
    """
    image = parameter.image
    assert image is not None
    dims = {"1D": 1, "2D": 2, "3D": 3}.get(image["dim"])
    if dims is None or image["multisampled"]:
        raise InvalidArgumentError(
            f"{parameter.name} is {parameter.type}; run takes images of 1 to 3 dimensions"
        )
    axes = dims + bool(image["arrayed"])
    name = wanted or image["format"]
    if name:
        chosen = parse_format(name)
    else:
        component, channels = _like(image["component"], like, picture, axes)
        plain = plain_format(component, channels)
        if picture and image["component"].startswith("float"):
            chosen = parse_format({"uint8": "rgba8", "uint16": "rgba16"}.get(component, "rgba32f"))
        elif plain is None:
            raise InvalidArgumentError(
                f"{parameter.name}: there is no image format of {channels} channels of {component}; "
                f"choose one with --dtype {parameter.name}=rgba8"
            )
        else:
            chosen = plain
    inner = (chosen.channels,) if chosen.channels > 1 else ()
    return Element(np.dtype(chosen.component), inner, chosen.channels, None, chosen, axes)


def _like(component: str, like: Array | None, picture: bool, axes: int) -> tuple[str, int]:
    """(component, channels) of a format for an array, if the shader only declares float, int or uint."""
    if like is None:
        return component, 4
    if picture:
        return (like.dtype.name if component.startswith("float") else component), 4
    kinds = {"float32": "f", "int32": "i", "uint32": "u"}
    own = like.dtype.name if like.dtype.kind == kinds.get(component) else component
    own = {"float64": "float32", "int64": "int32", "uint64": "uint32"}.get(own, own)
    channels = like.shape[-1] if like.ndim == axes + 1 else 1
    return own, 4 if channels == 3 else channels


# -- arrays to elements ----------------------------------------------------------------------------


class Fitted(NamedTuple):
    """An array for a binding."""

    array: Array
    """Shape (elements...)(inner)."""
    shape: tuple[int, ...]
    """The shape of the elements."""
    pixels: tuple[int, ...]
    """The shape for bindings that take whole pixels: `shape` without the channels of a picture."""


def fit_picture(pixels: Array, element: Element, what: str) -> Fitted:
    """A picture as elements. Raises InvalidArgumentError if pixels cannot become such elements."""
    size = pixels.shape[:2]
    if element.packed:
        bytes_ = _as_bytes(with_channels(pixels, 4))
        return Fitted(np.ascontiguousarray(bytes_).view(np.uint32)[..., 0], size, size)
    base, chosen = element.base, element.format
    if base.kind not in "iuf" or len(element.inner) > 1 or element.used > 4:
        raise InvalidArgumentError(f"{what}: a picture is not an array of such elements; give an .npy")
    if chosen is not None:
        if element.axes != 2:
            raise InvalidArgumentError(f"{what}: a picture has two dimensions; give an .npy")
        if not chosen.plain and chosen.component == "uint32":
            raise InvalidArgumentError(
                f"{what}: a picture is not packed into {chosen.name}; give an .npy of texels"
            )
        planes = with_channels(pixels, chosen.channels)
        return Fitted(_to_texels(planes, chosen), size, size)
    planes = pixels if element.used == 1 else with_channels(pixels, element.used)
    values = _to_unit(planes).astype(base) if base.kind == "f" else _to_integers(planes, base, what)
    shape = size if element.inner else values.shape
    return Fitted(_padded(values, element), shape, size)


def fit_array(array: Array, element: Element, what: str) -> Fitted:
    """An array as elements.

    Raises ArgumentTypeError if values would change, InvalidArgumentError for a wrong shape.
    """
    array = np.asarray(array)
    base, chosen = element.base, element.format
    if base.names is not None or array.dtype.names is not None:
        return Fitted(array, array.shape, array.shape)  # the kernel compares the layouts
    if chosen is not None:
        return _fit_texels(array, element, chosen, what)
    values = cast(array, base, what)
    inner = element.inner
    if not inner:
        return Fitted(np.ascontiguousarray(values), values.shape, values.shape)
    if values.shape[-len(inner) :] == inner:
        shape = values.shape[: -len(inner)]
    elif len(inner) == 1 and element.used == 1:
        shape, values = values.shape, _padded(values[..., np.newaxis], element)
    elif len(inner) == 1 and values.ndim and values.shape[-1] == element.used:
        shape, values = values.shape[:-1], _padded(values, element)
    elif values.ndim == 1 and values.size % math.prod(inner) == 0:
        values = values.reshape(-1, *inner)
        shape = values.shape[:1]
    else:
        wanted = (*inner[:-1], element.used)
        raise InvalidArgumentError(
            f"{what}: an array of shape {values.shape} does not end with the axes {wanted} of an element"
        )
    return Fitted(np.ascontiguousarray(values), shape, shape)


def _fit_texels(array: Array, element: Element, chosen: ImageFormat, what: str) -> Fitted:
    channels, axes = chosen.channels, element.axes
    if channels == 1 and array.ndim == axes + 1 and array.shape[-1] == 1:
        array = array[..., 0]
    if array.ndim != axes + (channels > 1) or (
        channels > 1 and array.shape[-1] not in (channels, channels - 1)
    ):
        letters = {1: "w", 2: "h, w", 3: "d, h, w"}[axes]
        raise InvalidArgumentError(
            f"{what} of format {chosen.name} takes an array of shape "
            f"({letters}{f', {channels}' if channels > 1 else ''}); this one has {array.shape}"
        )
    if array.dtype.kind == "f" and not chosen.plain:
        texels = _to_texels(array.astype(np.float32), chosen)
    else:
        texels = cast(array, element.base, what)
    if channels == 4 and texels.shape[-1] == 3:
        texels = with_alpha(texels)
    shape = texels.shape[:axes]
    return Fitted(np.ascontiguousarray(texels), shape, shape)


def cast(array: Array, base: np.dtype[Any], what: str) -> Array:
    """`array` as `base`. Floats are rounded; any other change of a value raises ArgumentTypeError."""
    kind, wanted = array.dtype.kind, base.kind
    if array.dtype == base:
        return array
    if not (
        (kind in "biuf" and wanted == "f") or (kind in "biu" and wanted in "iu") or (kind == wanted == "c")
    ):
        raise ArgumentTypeError(
            f"{what} holds {base}; the array is {array.dtype}: convert it with astype first"
        )
    if array.size and wanted in "iu" and kind != "b":
        info = np.iinfo(base)
        if int(array.min()) < info.min or int(array.max()) > info.max:
            raise ArgumentTypeError(
                f"{what} holds {base}; the array has values from {array.min()} to {array.max()}"
            )
    with np.errstate(over="ignore"):
        converted = array.astype(base)
    if kind in "iu" and wanted == "f":
        exact = 2 ** (np.finfo(base).nmant + 1)
        for value in array[(array > exact) | (array < -exact)].flat:
            if not np.isfinite(base.type(value)) or int(base.type(value)) != int(value):
                raise ArgumentTypeError(
                    f"{what} holds {base}, which has no {value}; the array is {array.dtype}: "
                    "convert it with astype first"
                )
    elif not keeps_finite(array, converted):
        raise ArgumentTypeError(f"{what} holds {base}; the array has values beyond its range")
    return converted


def _padded(values: Array, element: Element) -> Array:
    """`values` with padding appended to the last axis, which has the components that the shader reads."""
    if not element.inner or values.shape[-1] == element.inner[-1]:
        return np.ascontiguousarray(values)
    wide = np.zeros((*values.shape[:-1], element.inner[-1]), values.dtype)
    wide[..., : values.shape[-1]] = values
    return wide


# -- the values of pixels ---------------------------------------------------------------------------


def _to_unit(pixels: Array) -> Array:
    return pixels if pixels.dtype.kind == "f" else (pixels / full_scale(pixels.dtype)).astype(np.float32)


def _as_bytes(pixels: Array) -> Array:
    if pixels.dtype == np.uint8:
        return pixels
    return np.rint(np.clip(_to_unit(pixels), 0, 1) * 255).astype(np.uint8)


def _to_integers(pixels: Array, base: np.dtype[Any], what: str) -> Array:
    values = _as_bytes(pixels)
    if values.max() > np.iinfo(base).max:
        raise ArgumentTypeError(
            f"{what} holds {base}, and pixels from 0 to 255 do not fit into it; give an .npy"
        )
    return values.astype(base)


def _to_texels(values: Array, chosen: ImageFormat) -> Array:
    base = np.dtype(chosen.component)
    if chosen.scalar != "float":
        return _to_integers(values, base, f"an image of format {chosen.name}")
    if base.kind == "f":
        return _to_unit(values).astype(base)
    if values.dtype == base:
        return values
    if base.kind == "i":
        return np.rint(np.clip(_to_unit(values), -1, 1) * np.iinfo(base).max).astype(base)
    return np.rint(np.clip(_to_unit(values), 0, 1).astype(np.float64) * np.iinfo(base).max).astype(base)


# -- elements to arrays -----------------------------------------------------------------------------


def plain_array(array: Array, element: Element) -> Array:
    """The array without the padding, for .npy files and printing."""
    if element.base.names is None and len(element.inner) == 1 and element.used < element.inner[0]:
        array = array[..., : element.used]
        return np.ascontiguousarray(array[..., 0] if element.used == 1 else array)
    return array


def picture_values(array: Array, element: Element) -> Array:
    """The values for a picture: floats from 0 to 1, or integers from 0 to 255."""
    if element.packed:
        return np.ascontiguousarray(array)[..., np.newaxis].view(np.uint8)
    values = plain_array(array, element)
    chosen = element.format
    if chosen is not None and chosen.scalar == "float" and values.dtype.kind in "iu":
        if not chosen.plain and chosen.component == "uint32":
            raise InvalidArgumentError(f"an image of format {chosen.name} has packed texels: write an .npy")
        return (values / np.iinfo(values.dtype).max).astype(np.float32)
    return values


def unit_text(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    """A text such as "512 x 512 float32"."""
    kind = "struct" if dtype.names is not None else dtype.name
    return f"{' x '.join(map(str, shape)) or 'one'} {kind}"
