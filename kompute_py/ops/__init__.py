"""Operations, and the builders that make them from a line of text.

``kp.ops.NAME`` is the library that `kp.op_library` made with that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._custom.library import libraries

if TYPE_CHECKING:
    from .._builders.elementwise import Elementwise
    from .._builders.elementwise import elementwise as elementwise
    from .._builders.reduction import reduction as reduction
    from .._builders.scan import scan as scan
    from .._custom.custom_op import Operation
    from ._linear.einsum import *  # noqa: F403
    from ._linear.matrices import *  # noqa: F403
    from ._linear.network import *  # noqa: F403
    from ._linear.products import *  # noqa: F403
    from ._orders.counted import *  # noqa: F403
    from ._orders.quantiles import *  # noqa: F403
    from ._orders.scattering import *  # noqa: F403
    from ._orders.searching import *  # noqa: F403
    from ._orders.sets import *  # noqa: F403
    from ._orders.sorting import *  # noqa: F403
    from ._places.indexing import *  # noqa: F403
    from ._places.making import *  # noqa: F403
    from ._places.moving import *  # noqa: F403
    from ._places.packing import *  # noqa: F403
    from ._places.repeating import *  # noqa: F403
    from ._places.splitting import *  # noqa: F403
    from ._signals.filters import *  # noqa: F403
    from ._signals.fourier import *  # noqa: F403
    from ._signals.pictures import *  # noqa: F403
    from ._signals.resizing import *  # noqa: F403
    from ._signals.windows import *  # noqa: F403
    from ._values.nans import *  # noqa: F403
    from ._values.reductions import *  # noqa: F403
    from ._values.scans import *  # noqa: F403
    from ._values.spreads import *  # noqa: F403

    absolute: Elementwise
    add: Elementwise
    angle: Elementwise
    arccos: Elementwise
    arccosh: Elementwise
    arcsin: Elementwise
    arcsinh: Elementwise
    arctan: Elementwise
    arctan2: Elementwise
    arctanh: Elementwise
    astype: Operation
    bitwise_and: Elementwise
    bitwise_or: Elementwise
    bitwise_xor: Elementwise
    ceil: Elementwise
    clip: Elementwise
    conjugate: Elementwise
    copysign: Elementwise
    cos: Elementwise
    cosh: Elementwise
    degrees: Elementwise
    divide: Elementwise
    equal: Elementwise
    erf: Elementwise
    exp: Elementwise
    exp2: Elementwise
    expm1: Elementwise
    floor: Elementwise
    floor_divide: Elementwise
    fmax: Elementwise
    fmin: Elementwise
    fmod: Elementwise
    gcd: Elementwise
    greater: Elementwise
    greater_equal: Elementwise
    hypot: Elementwise
    imag: Elementwise
    invert: Elementwise
    isfinite: Elementwise
    isinf: Elementwise
    isnan: Elementwise
    left_shift: Elementwise
    less: Elementwise
    less_equal: Elementwise
    log: Elementwise
    log10: Elementwise
    log1p: Elementwise
    log2: Elementwise
    logaddexp: Elementwise
    logical_and: Elementwise
    logical_not: Elementwise
    logical_or: Elementwise
    logical_xor: Elementwise
    maximum: Elementwise
    minimum: Elementwise
    multiply: Elementwise
    negative: Elementwise
    nextafter: Elementwise
    not_equal: Elementwise
    positive: Elementwise
    power: Elementwise
    radians: Elementwise
    real: Elementwise
    reciprocal: Elementwise
    remainder: Elementwise
    right_shift: Elementwise
    rint: Elementwise
    round: Operation
    sigmoid: Elementwise
    sign: Elementwise
    signbit: Elementwise
    sin: Elementwise
    sinh: Elementwise
    sqrt: Elementwise
    square: Elementwise
    subtract: Elementwise
    tan: Elementwise
    tanh: Elementwise
    trunc: Elementwise
    where: Elementwise

_MODULES: dict[str, Sequence[str]] = {
    ".._builders.elementwise": ("elementwise",),
    ".._builders.reduction": ("reduction",),
    ".._builders.scan": ("scan",),
    "._values.elements": [
        "absolute",
        "add",
        "angle",
        "arccos",
        "arccosh",
        "arcsin",
        "arcsinh",
        "arctan",
        "arctan2",
        "arctanh",
        "astype",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "ceil",
        "clip",
        "conjugate",
        "copysign",
        "cos",
        "cosh",
        "degrees",
        "divide",
        "equal",
        "erf",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "floor_divide",
        "fmax",
        "fmin",
        "fmod",
        "gcd",
        "greater",
        "greater_equal",
        "hypot",
        "imag",
        "invert",
        "isfinite",
        "isinf",
        "isnan",
        "left_shift",
        "less",
        "less_equal",
        "log",
        "log10",
        "log1p",
        "log2",
        "logaddexp",
        "logical_and",
        "logical_not",
        "logical_or",
        "logical_xor",
        "maximum",
        "minimum",
        "multiply",
        "negative",
        "nextafter",
        "not_equal",
        "positive",
        "power",
        "radians",
        "real",
        "reciprocal",
        "remainder",
        "right_shift",
        "rint",
        "round",
        "sigmoid",
        "sign",
        "signbit",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "subtract",
        "tan",
        "tanh",
        "trunc",
        "where",
    ],
    "._places.making": ("arange", "eye", "full", "linspace"),
    "._values.reductions": [
        "all",
        "any",
        "argmax",
        "argmin",
        "count_nonzero",
        "dot",
        "max",
        "mean",
        "min",
        "norm",
        "prod",
        "std",
        "sum",
        "var",
    ],
    "._values.nans": (
        "nanargmax",
        "nanargmin",
        "nancumprod",
        "nancumsum",
        "nanmax",
        "nanmean",
        "nanmin",
        "nanprod",
        "nanstd",
        "nansum",
        "nanvar",
    ),
    "._values.spreads": ("average", "diff", "ptp"),
    "._values.scans": ("cummax", "cummin", "cumprod", "cumsum"),
    "._orders.searching": [
        "bin_counts",
        "int_counts",
        "nonzero_places",
        "run_starts",
        "searchsorted",
        "selected",
    ],
    "._orders.counted": ["bincount", "compress", "extract", "flatnonzero", "histogram", "nonzero", "unique"],
    "._orders.quantiles": (
        "median",
        "nanmedian",
        "nanpercentile",
        "nanquantile",
        "percentile",
        "quantile",
    ),
    "._orders.sets": ("isin",),
    "._orders.scattering": ("scatter_max", "scatter_min", "scatter_mul"),
    "._orders.sorting": (
        "argpartition",
        "argsort",
        "partition",
        "segmented_sort",
        "sort",
        "sort_by_key",
        "topk",
    ),
    "._places.packing": ["pack_int4", "packbits", "unpack_int4", "unpackbits"],
    "._places.moving": [
        "ascontiguousarray",
        "broadcast_to",
        "concatenate",
        "diagonal",
        "flip",
        "moveaxis",
        "roll",
        "rot90",
        "stack",
        "swapaxes",
        "take",
        "tile",
        "transpose",
    ],
    "._places.repeating": ("repeat",),
    "._places.splitting": ("array_split", "hsplit", "split", "vsplit"),
    "._linear.einsum": ("einsum", "inner", "outer", "tensordot", "trace"),
    "._linear.products": ("kron", "matrix_norm", "vdot"),
    "._places.indexing": [
        "pad",
        "put",
        "put_along_axis",
        "scatter_add",
        "take_along_axis",
        "tril",
        "triu",
    ],
    "._linear.matrices": ("matmul",),
    "._linear.network": [
        "gelu",
        "gelu_tanh",
        "layer_norm",
        "leaky_relu",
        "log_softmax",
        "logsumexp",
        "relu",
        "rms_norm",
        "silu",
        "softmax",
    ],
    "._signals.filters": [
        "convolve",
        "convolve1d",
        "correlate",
        "correlate1d",
        "gaussian_filter1d",
        "uniform_filter1d",
    ],
    "._signals.windows": [
        "gaussian_filter",
        "maximum_filter",
        "median_filter",
        "minimum_filter",
        "prewitt",
        "rank_filter",
        "sobel",
        "uniform_filter",
    ],
    "._signals.resizing": ("resize",),
    "._signals.pictures": [
        "hsv_to_rgb",
        "linear_to_srgb",
        "premultiply_alpha",
        "rgb_to_gray",
        "rgb_to_hsv",
        "rgb_to_ycbcr",
        "srgb_to_linear",
        "ycbcr_to_rgb",
    ],
    "._signals.fourier": [
        "fft",
        "fft2",
        "fftconvolve",
        "fftfreq",
        "fftn",
        "fftshift",
        "ifft",
        "ifft2",
        "ifftn",
        "ifftshift",
        "irfft",
        "irfft2",
        "irfftn",
        "rfft",
        "rfft2",
        "rfftfreq",
        "rfftn",
    ],
}
"""The public names by the module that has them, in the order of the page of all functions. Each module is
imported when one of its names is first used; ``__all__`` of it names the same."""

_HOMES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = globals()[name] = getattr(import_module(_HOMES[name], __name__), name)
        return found
    found = libraries.get(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}, and no library has that name")
    return found


def _indexing() -> Any:
    """The module that ``t[key]`` of tensors uses for arrays in the key."""
    return import_module("._orders.picking", __name__)


def __dir__() -> list[str]:
    return sorted({*__all__, *libraries})
