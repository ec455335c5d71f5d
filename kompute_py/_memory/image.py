"""Image: texels in device memory, in one to three dimensions or as an array of layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import (
    as_float32,
    as_index,
    as_typed,
    check_out,
    matching,
    to_array,
    to_flag,
)
from .._base.errors import ArgumentTypeError, FailedPreconditionError, InvalidArgumentError, not_copyable
from .._base.misplaced import KEPT_BY_IMAGES
from .._base.texels import (
    ImageFormat,
    ImageSize,
    component_names,
    extent,
    parse_format,
    plain_format,
    refuse_palette,
    region_of,
    size_of,
    with_alpha,
)
from .._base.types import to_memory_type
from .._base.warn import warn
from .._device.device import require_manager
from .._sync.ordered import in_order
from .array_habits import OnlyOfArrays
from .memory import SINGLE, Memory
from .sampler import Bindable, Sampler

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from PIL.Image import Image as PillowImage
    from typing_extensions import Unpack

    from .. import _native as core
    from .._base.annotations import AddressMode, FilterName, FormatName, MemoryTypeLike, SamplerOptions
    from .._base.types import MemoryTypes
    from .._device.device import Device
    from .._sync.semaphore import Ordering


class Image(Memory[Any]):
    """An image with 1, 2 or 4 channels, for shaders that declare ``image2D``, ``sampler2D`` and the like.

    Create one with ``mgr.image`` (float32), ``mgr.image_t`` (keeps the data's dtype) or ``mgr.image_empty``,
    or as ``kp.Image(mgr, data, width, height, num_channels, memory_type, ...)``, which keeps the dtype.

    The host's array has the axes (layers,) (depth,) (height,) width and, with more than one channel,
    channels.

    Data of three channels, such as an RGB photograph of shape (h, w, 3), becomes an image of four, because
    Vulkan has no storage images of three. The alpha is opaque: 1.0 for floats, the largest value of the dtype
    for integers (255 for uint8). So `num_channels` is 4, and `read` and `data` give four channels. `write`
    takes three channels too. The same holds for flat data with ``num_channels=3``.

    Raises InvalidArgumentError if the sizes do not fit the data or the format is unknown, ArgumentTypeError
    for a dtype that no format has, UnimplementedError if the device lacks the format, OutOfMemoryError if it
    has too little memory.

    >>> image = mgr.image_empty((4, 6), "rgba8")
    >>> image.width, image.height, image.num_channels
    (6, 4, 4)
    """

    __slots__ = ("_channels", "_format", "_size")

    if not TYPE_CHECKING:  # Pillow asks for it: the error names `read`
        __array_interface__ = OnlyOfArrays("__array_interface__")

    _native: core.Image
    _is_image = True

    def __init__(
        self,
        manager: Device,
        data: ArrayLike,
        width: int | None = None,
        height: int | None = None,
        num_channels: int | None = None,
        memory_type: MemoryTypeLike | None = None,
        *,
        depth: int | None = None,
        layers: int | bool | None = None,
        dims: int = 2,
        format: FormatName | None = None,
        as_float: bool = False,
    ) -> None:
        require_manager(manager)
        refuse_palette(data)
        array = as_float32(data) if to_flag(as_float, "as_float") else as_typed(data)
        where = to_memory_type(memory_type, None, KEPT_BY_IMAGES)
        fixed = None if format is None else parse_format(format)
        dims = as_index(dims, "dims")
        if (
            dims == 2
            and layers is None
            and depth is None
            and width is None
            and height is None
            and array.ndim not in (2, 3)
        ):
            raise InvalidArgumentError(
                f"An array of shape {array.shape} does not determine an image's size; give width and height, "
                "or an (h, w[, c]) array (with dims=1, dims=3 or layers=True: an array with their axes)"
            )
        size = size_of(array.shape, dims, width, height, depth, layers)
        axes = size.axes
        if num_channels is not None:
            channels = extent(num_channels, "num_channels")
        elif array.ndim == len(axes) + 1:
            channels = array.shape[-1]
        elif fixed is not None:
            channels = fixed.channels
        else:
            channels = max(1, array.size // size.texels)
        if channels in (3, 4) and (fixed is None or fixed.channels == 4):
            # Data of three channels gets a fourth, also if `num_channels` says so.
            rgb = array.size == size.texels * 3 and (channels == 3 or array.shape[-1:] == (3,))
            if rgb:
                array, channels = with_alpha(array.reshape(*axes, 3)), 4
        if fixed is not None and num_channels is None and channels > 1 and array.shape == axes:
            raise InvalidArgumentError(
                f"Format {format} has {channels} channels; the data has one (shape {array.shape}). "
                "Give a format of one channel, such as r8 or r32f, or "
                f"np.stack([data] * {min(channels, 3)}, axis=-1)"
            )
        if array.size != size.texels * channels:
            raise InvalidArgumentError(
                f"An image of {' x '.join(map(str, reversed(axes)))} with {channels} channels has "
                f"{size.texels * channels} components; the data has {array.size} (shape {array.shape})"
            )
        _check_channels(channels, fixed)
        chosen = _format_of(array, channels, fixed, format)
        shape = axes if channels == 1 and array.ndim != len(axes) + 1 else (*axes, channels)
        native = manager._native.image(
            array, size.dims, size.layers is not None, _lengths(size), chosen.name, where
        )
        self._take(manager, native, shape, array.dtype, array.size, where, size, channels, chosen)

    @classmethod
    def _empty(cls, manager: Device, size: ImageSize, format: ImageFormat, where: MemoryTypes) -> Image:
        native = manager._native.image(
            None, size.dims, size.layers is not None, _lengths(size), format.name, where
        )
        shape = size.axes if format.channels == 1 else (*size.axes, format.channels)
        image = cls.__new__(cls)
        count = size.texels * format.channels
        image._take(
            manager, native, shape, np.dtype(format.component), count, where, size, format.channels, format
        )
        return image

    def _take(
        self,
        manager: Device,
        native: core.Image,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        count: int,
        where: MemoryTypes,
        size: ImageSize,
        channels: int,
        format: ImageFormat,
    ) -> None:
        self._size, self._channels, self._format = size, channels, format
        self._adopt(native, manager, shape, dtype, count, where)
        manager._after(where)

    def _like(self, manager: Device, where: MemoryTypes) -> Image:
        made = Image._empty(manager, self._size, self._format, where)
        made._shape = self._shape  # self may have been created from an array with an axis of one channel
        return made

    # -- what it is ------------------------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """The number of texels in a row."""
        return self._size.width

    @property
    def height(self) -> int:
        """The number of rows; 1 for a one-dimensional image."""
        return self._size.height

    @property
    def depth(self) -> int:
        """The number of planes of a three-dimensional image; 1 for other images."""
        return self._size.depth

    @property
    def layers(self) -> int | None:
        """The number of layers; None if the image is not an array of images."""
        return self._size.layers

    @property
    def dims(self) -> int:
        """The number of dimensions: 1, 2 or 3."""
        return self._size.dims

    @property
    def num_channels(self) -> int:
        """The number of components of a texel: 1, 2 or 4. A packed texel counts as one."""
        return self._channels

    @property
    def format(self) -> FormatName:
        """The format's name: GLSL's qualifier, or a name in the same style."""
        return self._format.name

    @property
    def storable(self) -> bool:
        """True if shaders of this device can load and store the image (``image2D``)."""
        return self._native.storable

    @property
    def sampleable(self) -> bool:
        """True if shaders of this device can sample the image (``sampler2D``)."""
        return self._native.sampleable

    @property
    def filterable(self) -> bool:
        """True if this device can filter the image linearly."""
        return self._native.filterable

    # -- access ----------------------------------------------------------------------------------------------

    def sampled(
        self,
        sampler: Sampler | FilterName = "nearest",
        address: AddressMode | Sequence[AddressMode] = "clamp_to_edge",
        **options: Unpack[SamplerOptions],
    ) -> SampledImage:
        """Combines the image with a sampler, to be bound to a ``sampler2D``.

        Accepts a Sampler, or the arguments of ``mgr.sampler``: ``image.sampled("linear", "repeat")``.

        Raises InvalidArgumentError for unknown names or a sampler of another Manager, ArgumentTypeError for
        arguments of other types.
        """
        if isinstance(sampler, Sampler):
            return SampledImage(self, sampler)
        return SampledImage(self, Sampler(self._manager, sampler, address, **options))

    @in_order
    def read(
        self, out: np.ndarray[Any, Any] | None = None, region: Any = None, **options: Unpack[Ordering]
    ) -> np.ndarray[Any, Any]:
        """Like ``Tensor.read``. `region` is a box of texels.

        A region is an index of ints and slices over all axes but the channels. Only the region is copied.
        Raises OutOfRangeError beyond an axis, UnimplementedError for a step.
        """
        if region is None:
            return super().read(out)
        self._require_init("be read")
        box, shape = self._box(region)
        if out is not None:
            out = check_out(out, self._dtype, shape, lambda: f"this region of {self._describe()}")
        array = np.empty(shape, self._dtype)
        self._native.read_region(array, box)
        self._report()
        if out is None:
            return array
        out[...] = array
        return out

    @in_order
    def write(self, data: ArrayLike, region: Any = None, **options: Unpack[Ordering]) -> None:
        """Like ``Tensor.write``. `region` is a box of texels, as for `read`; only the region is copied.

        Data of three channels for an image of four gets an opaque alpha, as when an image is made.

        Raises InvalidArgumentError for another size or values out of range, ArgumentTypeError for a dtype
        that does not convert without loss and for Pillow's pictures with a palette, OutOfRangeError for a
        region beyond an axis, UnimplementedError for a step, FailedPreconditionError if the image is
        destroyed.
        """
        refuse_palette(data)
        if region is None:
            super().write(self._texels(data, self._size.axes))
            return
        self._require_init("be written")
        box, shape = self._box(region)
        data = self._texels(data, shape[: len(shape) - (len(self._shape) - len(self._size.axes))])
        count = int(np.prod(shape))
        array = matching(data, self._dtype, count, lambda: f"The region of {self._describe()}")
        same = self._native.freshness in ("matches", "unsent")
        self._native.write_region(array, box)
        if self._memory_type in SINGLE and not self._native.host_visible:
            # As in Memory.write: write the data to both sides of an image that was to have one memory.
            x, y, z, layer, width, height, depth, layers = box
            all_of_it = self.data().reshape(
                self._size.layers or 1, self._size.depth, self._size.height, self._size.width, -1
            )
            part = all_of_it[layer : layer + layers, z : z + depth, y : y + height, x : x + width]
            part[...] = array.reshape(part.shape)
            if same:
                self._native.note_match()
        self._report()

    def _texels(self, data: ArrayLike, axes: tuple[int, ...]) -> ArrayLike:
        """`data`, with an opaque alpha if it has the shape (*axes, 3) and the image has four channels."""
        if self._channels != 4:
            return data
        array = to_array(data)
        if array.shape != (*axes, 3):
            return array
        return with_alpha(matching(array, self._dtype, array.size, self._describe).reshape(array.shape))

    def _box(self, region: Any) -> tuple[Any, tuple[int, ...]]:
        box, axes = region_of(self._size, region, self._describe)
        channels = self._shape[len(self._size.axes) :]
        return box, (*axes, *channels)

    def _pattern(self, value: Any) -> bytes:
        if isinstance(value, (bytes, bytearray, memoryview, int, float)) or to_array(value).ndim != 1:
            return super()._pattern(value)
        what = f"OpFill of {self._describe()}"
        return matching(self._texels(value, ()), self._dtype, self._channels, what).tobytes()

    def to_pil(self) -> PillowImage:
        """The device's contents as a Pillow image.

        Supports 8-bit images of two dimensions, with 1, 2 (LA) or 4 (RGBA) channels. Floats are taken as
        values from 0 to 1, with a KomputeWarning if there are values above 32. Raises InvalidArgumentError
        for other images, FailedPreconditionError if Pillow is missing.
        """
        try:
            from PIL import Image as pillow
        except ImportError:
            raise FailedPreconditionError("to_pil needs Pillow: pip install pillow") from None
        if self._size.dims != 2 or self._size.layers is not None:
            raise InvalidArgumentError(
                f"{self._describe()} is not a single picture: read(region=...) a part of it"
            )
        array = self.read().reshape(self.height, self.width, self._channels)
        if array.dtype.kind == "f":
            if array.max(initial=0) > 32:  # a filter of a photograph gives floats up to 255
                warn(
                    f"{self._describe()} has values up to {array.max():.3g}, and to_pil takes floats from 0 "
                    "to 1: more is white. Of a photograph, give kp.ops.astype(kp.ops.rint(image), np.uint8)"
                )
            array = (np.clip(array, 0, 1) * 255 + 0.5).astype(np.uint8)
        elif array.dtype != np.uint8:
            raise InvalidArgumentError(
                f"Pillow shows 8 bits per channel; {self._describe()} has {array.dtype}"
            )
        if self._format.vulkan.startswith("B8G8R8A8"):
            array = array[..., [2, 1, 0, 3]]
        return pillow.fromarray(array[..., 0] if self._channels == 1 else np.ascontiguousarray(array))

    # -- raw Vulkan ------------------------------------------------------------------------------------------

    @property
    def vk_image(self) -> int:
        """The VkImage, as an integer; in VK_IMAGE_LAYOUT_GENERAL before and after each evaluation."""
        return self._alive().vk_image

    @property
    def vk_image_view(self) -> int:
        """The VkImageView, as an integer."""
        return self._alive().vk_image_view

    @property
    def vk_format(self) -> int:
        """The number of the VkFormat."""
        return self._alive().vk_format


def _lengths(size: ImageSize) -> tuple[int, int, int, int]:
    return size.width, size.height, size.depth, size.layers or 1


def _check_channels(channels: int, fixed: ImageFormat | None) -> None:
    if channels not in (1, 2, 4) and (fixed is None or channels != 3):
        raise InvalidArgumentError(f"An image has 1, 2 or 4 channels (3 become 4), not {channels}")


def _format_of(
    array: np.ndarray[Any, Any], channels: int, fixed: ImageFormat | None, name: str | None
) -> ImageFormat:
    component = array.dtype.name
    if fixed is not None:
        if fixed.channels != channels:
            raise InvalidArgumentError(
                f"Format {name} has {fixed.channels} channels; the data has {channels}"
            )
        if fixed.component != component:
            advice = f"mgr.image_t(data.astype(np.{fixed.component}), format={name!r})"
            if (
                array.dtype.kind in "fb"
                and fixed.scalar == "float"
                and fixed.component in ("uint8", "uint16")
            ):
                # astype alone turns a photograph of floats from 0 to 1, or a mask, black.
                largest = np.iinfo(fixed.component).max
                advice += f", or (data * {largest}).astype(np.{fixed.component}) if the data is from 0 to 1"
            raise ArgumentTypeError(
                f"Format {name} has components of {fixed.component}; the data has {component}. Use {advice}"
            )
        return fixed
    found = plain_format(component, channels)
    if found is None:
        raise ArgumentTypeError(
            f"dtype {array.dtype} cannot be the component type of an image of {channels} channels; "
            f"use one of {', '.join(component_names())}"
        )
    return found


@not_copyable("make a new one with image.sampled")
class SampledImage(Bindable):
    """An image and the sampler that a shader reads it through. Created by ``image.sampled(...)``.

    Raises ArgumentTypeError unless it is given an Image and a Sampler, InvalidArgumentError if they belong to
    different Managers.

    >>> image = mgr.image_empty((4, 6), "rgba8")
    >>> image.sampled("nearest").image is image
    True
    """

    __slots__ = ("_image", "_manager", "_native", "_sampler")

    _is_image = True

    def __init__(self, image: Image, sampler: Sampler) -> None:
        if not isinstance(sampler, Sampler) or not isinstance(image, Image):
            raise ArgumentTypeError(
                "A SampledImage has an Image and a Sampler, "
                f"not {type(image).__name__} and {type(sampler).__name__}"
            )
        if sampler._manager is not image._manager:
            raise InvalidArgumentError(
                f"{image._describe()} belongs to {image._manager!r}, the sampler to {sampler._manager!r}"
            )
        self._manager = image._manager
        self._native = (image._native, sampler._native)
        self._image = image
        self._sampler = sampler

    def _is_init(self) -> bool:
        return self._image._is_init()

    def _require_init(self, action: str) -> None:
        self._image._require_init(action)

    def size(self) -> int:
        """The number of elements of the image."""
        return self._image.size()

    @property
    def image(self) -> Image:
        """The image."""
        return self._image

    @property
    def sampler(self) -> Sampler:
        """The sampler."""
        return self._sampler

    def __repr__(self) -> str:
        return f"<kp.SampledImage {self._image!r} {self._sampler._text}>"
