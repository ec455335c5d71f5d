"""Colours of pictures: tensors with red, green and blue, and perhaps alpha, on the last axis. An invocation
computes each pixel."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..._base.errors import ArgumentTypeError, InvalidArgumentError
from ..._builders.elementwise import elementwise
from ..._builders.walks import check_sizes, named, one_each
from ..._custom.selection import FunctionSelection
from ..._formulas.glsl_elements import element_of
from ..._functions.custom_op import CustomOp
from ..._functions.function import Function

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder

_power = elementwise("x ** y")
_LUMA = {"601": (0.299, 0.587, 0.114), "709": (0.2126, 0.7152, 0.0722)}


class PixelOp(CustomOp):
    """Operations by pixels have this in common."""

    makes_images = True
    channels: ClassVar[tuple[int, ...]] = (3, 4)
    one: ClassVar[bool] = False
    """Whether a pixel of the result is one number, without an axis for it."""

    def select(self, ksel: FunctionSelection) -> None:
        x = ksel.arg_tensor("x")
        if not x.ndim or x.shape[-1] not in self.channels:
            raise InvalidArgumentError(
                f"{ksel.name}: x has the shape {x.shape}; its last axis has the channels: give "
                f"{' or '.join(map(str, self.channels))} of them"
            )
        if element_of(x.dtype, ksel.features).type != "float" and x.dtype != np.uint8:
            raise ArgumentTypeError(
                f"{ksel.name}: x is of {x.dtype}; give float32, uint8 or smaller floats: x.astype(np.float32)"
            )
        x.specialize_dims(-1)
        ksel.value("kp_pixels", x.size // x.shape[-1], "uint32")
        ksel.return_new_tensor(x.shape[:-1] if self.one else x.shape, x.dtype)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        x = kb.arg_value("x")
        whole, count = x.dtype == np.uint8, x.shape[-1]
        load = "float(x_load({})) / 255.0" if whole else "x_load({})"
        store = "uint(clamp({}, 0.0, 1.0) * 255.0 + 0.5)" if whole else "{}"
        one_each(kb, named("kp_pixels"), "pixel")
        loads = ", ".join(load.format(f"at + {n}u") for n in range(3))
        kb.emit(f"""
            uint at = pixel * {count}u;
            vec3 c = vec3({loads});
            float alpha = {load.format("at + 3u") if count == 4 else "1.0"};
        """)
        self.pixel(ksel, kb)
        if self.one:
            kb.emit(f"result_store(pixel, {store.format('c.x')});")
            return
        for n in range(3):
            kb.emit(f"result_store(at + {n}u, {store.format(f'c[{n}]')});")
        if count == 4:
            kb.emit("result_store(at + 3u, x_load(at + 3u));")

    def pixel(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes the statements that change the colour ``c``."""
        raise NotImplementedError


class _RgbToGray(PixelOp):
    """The brightness of each pixel of `x`, with the weights of Rec. 601 or 709.

    `x` has the shape (..., 3), or (..., 4) with alpha, which does not count; the result has the shape (...)
    and the dtype of `x`. The weights are 0.299, 0.587, 0.114 with ``standard="601"`` and 0.2126, 0.7152,
    0.0722 with "709". uint8 is rounded to the nearest.

    Raises InvalidArgumentError for another last axis and an unknown standard, ArgumentTypeError for other
    dtypes.

    >>> kp.ops.rgb_to_gray(np.uint8([[255, 0, 0], [0, 255, 0]])).tolist()
    [76, 150]

    :dtypes: uint8, floats of up to 32 bits
    :axes: the last one
    :error: 4 roundings of the sum of absolute values
    """

    signature = "rgb_to_gray(Tensor x, str standard='601') -> Tensor"
    one = True

    def select(self, ksel: FunctionSelection) -> None:
        standard = ksel.attr_str("standard").v
        if standard not in _LUMA:
            raise InvalidArgumentError(f'{ksel.name}: standard is {standard!r}; give "601" or "709"')
        super().select(ksel)

    def pixel(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        r, g, b = _LUMA[next(a.v for a in ksel.arg_descs if a is not None and a.name == "standard")]
        kb.emit(f"c.x = c.x * {r} + c.y * {g} + c.z * {b};")


class _RgbToHsv(PixelOp):
    """Hue, saturation and value of each pixel of `x`, each from 0 to 1, as ``colorsys.rgb_to_hsv``.

    `x` has the shape (..., 3), or (..., 4) with alpha, which stays. The result has its shape and dtype. In
    uint8, 255 is 1, and results are rounded to the nearest.

    Raises InvalidArgumentError for another last axis, ArgumentTypeError for other dtypes.

    >>> kp.ops.rgb_to_hsv(np.float32([0, 0.5, 0])).round(3).tolist()
    [0.3330000042915344, 1.0, 0.5]

    :dtypes: uint8, floats of up to 32 bits
    :axes: the last one
    :error: 1e-6, for numbers from 0 to 1
    """

    signature = "rgb_to_hsv(Tensor x) -> Tensor"

    def pixel(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """The sector of the hue, and the place in it."""
        kb.emit("""
            float high = max(c.x, max(c.y, c.z)), low = min(c.x, min(c.y, c.z)), range = high - low;
            float hue = 0.0, saturation = 0.0;
            if (range != 0.0) {
                saturation = range / high;
                if (c.x == high) hue = (c.y - c.z) / range;
                else if (c.y == high) hue = 2.0 + (c.z - c.x) / range;
                else hue = 4.0 + (c.x - c.y) / range;
                hue /= 6.0;
                if (hue < 0.0) hue += 1.0;
            }
            c = vec3(hue, saturation, high);
        """)


class _HsvToRgb(PixelOp):
    """Red, green and blue of pixels with hue, saturation and value, each from 0 to 1, as
    ``colorsys.hsv_to_rgb``.

    `x` has the shape (..., 3), or (..., 4) with alpha, which stays. The result has its shape and dtype. In
    uint8, 255 is 1, and results are rounded to the nearest. Of the hue, only the fraction counts.

    Raises InvalidArgumentError for another last axis, ArgumentTypeError for other dtypes.

    >>> kp.ops.hsv_to_rgb(np.float32([0.5, 1, 1])).tolist()
    [0.0, 1.0, 1.0]

    :dtypes: uint8, floats of up to 32 bits
    :axes: the last one
    :error: 2e-6, for numbers from 0 to 1
    """

    signature = "hsv_to_rgb(Tensor x) -> Tensor"

    def pixel(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        kb.emit("""
            float sector = (c.x - floor(c.x)) * 6.0, f = sector - floor(sector), v = c.z;
            int n = int(sector) % 6;
            float p = v * (1.0 - c.y), q = v * (1.0 - c.y * f), t = v * (1.0 - c.y * (1.0 - f));
            c = n == 0 ? vec3(v, t, p) : n == 1 ? vec3(q, v, p) : n == 2 ? vec3(p, v, t)
                : n == 3 ? vec3(p, q, v) : n == 4 ? vec3(t, p, v) : vec3(v, p, q);
        """)


class _SrgbToLinear(PixelOp):
    """Linear light of pixels in sRGB, by the curve of IEC 61966-2-1.

    `x` has the shape (..., 3), or (..., 4) with alpha, which stays. The result has its shape and dtype. In
    uint8, 255 is 1, and results are rounded to the nearest: convert to float32 first to keep dark colours
    apart.

    Raises InvalidArgumentError for another last axis, ArgumentTypeError for other dtypes.

    >>> kp.ops.srgb_to_linear(np.float32([0, 0.5, 1])).round(3).tolist()
    [0.0, 0.21400000154972076, 1.0]

    :dtypes: uint8, floats of up to 32 bits
    :axes: the last one
    :error: 2e-5, for numbers from 0 to 1
    """

    signature = "srgb_to_linear(Tensor x) -> Tensor"

    def pixel(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        power = kb.call(_power, x=("(v + 0.055) / 1.055", "float32"), y=("2.4", "float32"))
        kb.declare(f"float kp_curve(float v) {{ return v <= 0.04045 ? v / 12.92 : {power}; }}")
        kb.emit("c = vec3(kp_curve(c.x), kp_curve(c.y), kp_curve(c.z));")


class _LinearToSrgb(PixelOp):
    """sRGB of pixels in linear light, by the curve of IEC 61966-2-1.

    `x` has the shape (..., 3), or (..., 4) with alpha, which stays. The result has its shape and dtype. In
    uint8, 255 is 1, and results are rounded to the nearest.

    Raises InvalidArgumentError for another last axis, ArgumentTypeError for other dtypes.

    >>> kp.ops.linear_to_srgb(np.float32([0, 0.5, 1])).round(3).tolist()
    [0.0, 0.7350000143051147, 1.0]

    :dtypes: uint8, floats of up to 32 bits
    :axes: the last one
    :error: 2e-5, for numbers from 0 to 1
    """

    signature = "linear_to_srgb(Tensor x) -> Tensor"

    def pixel(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        power = kb.call(_power, x=("v", "float32"), y=("1.0 / 2.4", "float32"))
        kb.declare(
            f"float kp_curve(float v) {{ return v <= 0.0031308 ? v * 12.92 : 1.055 * {power} - 0.055; }}"
        )
        kb.emit("c = vec3(kp_curve(c.x), kp_curve(c.y), kp_curve(c.z));")


_Y = "0.299 * c.x + 0.587 * c.y + 0.114 * c.z"


class _RgbToYcbcr(PixelOp):
    """Brightness and colour differences of pixels, the YCbCr of JPEG: Rec. 601 with the full range.

    `x` has the shape (..., 3), or (..., 4) with alpha, which stays. The result has its shape and dtype.
    Without colour, Cb and Cr are 0.5, in uint8 128. In uint8, 255 is 1, and results are rounded to the
    nearest.

    Raises InvalidArgumentError for another last axis, ArgumentTypeError for other dtypes.

    >>> kp.ops.rgb_to_ycbcr(np.uint8([255, 0, 0])).tolist()
    [76, 85, 255]

    :dtypes: uint8, floats of up to 32 bits
    :axes: the last one
    :error: 1e-6, for numbers from 0 to 1
    """

    signature = "rgb_to_ycbcr(Tensor x) -> Tensor"

    def pixel(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        middle = _middle(ksel)
        kb.emit(f"float y = {_Y}; c = vec3(y, {middle} + (c.z - y) / 1.772, {middle} + (c.x - y) / 1.402);")


class _YcbcrToRgb(PixelOp):
    """Red, green and blue of pixels in the YCbCr of JPEG: Rec. 601 with the full range.

    `x` has the shape (..., 3), or (..., 4) with alpha, which stays. The result has its shape and dtype. In
    uint8, 255 is 1, and results are rounded to the nearest and held within 0 to 255.

    Raises InvalidArgumentError for another last axis, ArgumentTypeError for other dtypes.

    >>> kp.ops.ycbcr_to_rgb(np.uint8([76, 85, 255])).tolist()
    [254, 0, 0]

    :dtypes: uint8, floats of up to 32 bits
    :axes: the last one
    :error: 2e-6, for numbers from 0 to 1
    """

    signature = "ycbcr_to_rgb(Tensor x) -> Tensor"

    def pixel(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        kb.emit(f"""
            float b = c.y - {_middle(ksel)}, r = c.z - {_middle(ksel)};
            c = vec3(c.x + 1.402 * r, c.x - (0.114 * 1.772 * b + 0.299 * 1.402 * r) / 0.587, c.x + 1.772 * b);
        """)


def _middle(ksel: FunctionSelection) -> str:
    """The colour difference of gray."""
    return "(128.0 / 255.0)" if ksel.results[0].dtype == np.uint8 else "0.5"


class _PremultiplyAlpha(PixelOp):
    """The colours of `x` times its alpha, which stays.

    `x` has the shape (..., 4). The result has its shape and dtype. In uint8, 255 is 1, and results are
    rounded to the nearest.

    Raises InvalidArgumentError for another last axis, ArgumentTypeError for other dtypes.

    >>> kp.ops.premultiply_alpha(np.uint8([255, 100, 0, 51])).tolist()
    [51, 20, 0, 51]

    :dtypes: uint8, floats of up to 32 bits
    :axes: the last one
    :error: 1 rounding
    """

    signature = "premultiply_alpha(Tensor x) -> Tensor"
    channels = (4,)

    def pixel(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        kb.emit("c *= alpha;")


rgb_to_gray: Function = CustomOp.register(_RgbToGray)
rgb_to_hsv: Function = CustomOp.register(_RgbToHsv)
hsv_to_rgb: Function = CustomOp.register(_HsvToRgb)
srgb_to_linear: Function = CustomOp.register(_SrgbToLinear)
linear_to_srgb: Function = CustomOp.register(_LinearToSrgb)
rgb_to_ycbcr: Function = CustomOp.register(_RgbToYcbcr)
ycbcr_to_rgb: Function = CustomOp.register(_YcbcrToRgb)
premultiply_alpha: Function = CustomOp.register(_PremultiplyAlpha)
