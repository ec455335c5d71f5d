"""Operations, and the builders that make them from a line of text.

``kp.ops.NAME`` is the library that `kp.op_library` made with that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._custom.library import libraries

if TYPE_CHECKING:
    from .._builders.elementwise import elementwise as elementwise
    from .._builders.reduction import reduction as reduction
    from .._builders.scan import scan as scan
    from ._counted import *  # noqa: F403
    from ._einsum import *  # noqa: F403
    from ._elements import (
        absolute as absolute,
    )
    from ._elements import (
        add as add,
    )
    from ._elements import (
        arccos as arccos,
    )
    from ._elements import (
        arccosh as arccosh,
    )
    from ._elements import (
        arcsin as arcsin,
    )
    from ._elements import (
        arcsinh as arcsinh,
    )
    from ._elements import (
        arctan as arctan,
    )
    from ._elements import (
        arctan2 as arctan2,
    )
    from ._elements import (
        arctanh as arctanh,
    )
    from ._elements import (
        astype as astype,
    )
    from ._elements import (
        bitwise_and as bitwise_and,
    )
    from ._elements import (
        bitwise_or as bitwise_or,
    )
    from ._elements import (
        bitwise_xor as bitwise_xor,
    )
    from ._elements import (
        ceil as ceil,
    )
    from ._elements import (
        clip as clip,
    )
    from ._elements import (
        copysign as copysign,
    )
    from ._elements import (
        cos as cos,
    )
    from ._elements import (
        cosh as cosh,
    )
    from ._elements import (
        degrees as degrees,
    )
    from ._elements import (
        divide as divide,
    )
    from ._elements import (
        equal as equal,
    )
    from ._elements import (
        erf as erf,
    )
    from ._elements import (
        exp as exp,
    )
    from ._elements import (
        exp2 as exp2,
    )
    from ._elements import (
        expm1 as expm1,
    )
    from ._elements import (
        floor as floor,
    )
    from ._elements import (
        floor_divide as floor_divide,
    )
    from ._elements import (
        fmax as fmax,
    )
    from ._elements import (
        fmin as fmin,
    )
    from ._elements import (
        fmod as fmod,
    )
    from ._elements import (
        gcd as gcd,
    )
    from ._elements import (
        greater as greater,
    )
    from ._elements import (
        greater_equal as greater_equal,
    )
    from ._elements import (
        hypot as hypot,
    )
    from ._elements import (
        invert as invert,
    )
    from ._elements import (
        isfinite as isfinite,
    )
    from ._elements import (
        isinf as isinf,
    )
    from ._elements import (
        isnan as isnan,
    )
    from ._elements import (
        left_shift as left_shift,
    )
    from ._elements import (
        less as less,
    )
    from ._elements import (
        less_equal as less_equal,
    )
    from ._elements import (
        log as log,
    )
    from ._elements import (
        log1p as log1p,
    )
    from ._elements import (
        log2 as log2,
    )
    from ._elements import (
        log10 as log10,
    )
    from ._elements import (
        logaddexp as logaddexp,
    )
    from ._elements import (
        logical_and as logical_and,
    )
    from ._elements import (
        logical_not as logical_not,
    )
    from ._elements import (
        logical_or as logical_or,
    )
    from ._elements import (
        logical_xor as logical_xor,
    )
    from ._elements import (
        maximum as maximum,
    )
    from ._elements import (
        minimum as minimum,
    )
    from ._elements import (
        multiply as multiply,
    )
    from ._elements import (
        negative as negative,
    )
    from ._elements import (
        not_equal as not_equal,
    )
    from ._elements import (
        positive as positive,
    )
    from ._elements import (
        power as power,
    )
    from ._elements import (
        radians as radians,
    )
    from ._elements import (
        reciprocal as reciprocal,
    )
    from ._elements import (
        remainder as remainder,
    )
    from ._elements import (
        right_shift as right_shift,
    )
    from ._elements import (
        rint as rint,
    )
    from ._elements import (
        round as round,
    )
    from ._elements import (
        sigmoid as sigmoid,
    )
    from ._elements import (
        sign as sign,
    )
    from ._elements import (
        signbit as signbit,
    )
    from ._elements import (
        sin as sin,
    )
    from ._elements import (
        sinh as sinh,
    )
    from ._elements import (
        sqrt as sqrt,
    )
    from ._elements import (
        square as square,
    )
    from ._elements import (
        subtract as subtract,
    )
    from ._elements import (
        tan as tan,
    )
    from ._elements import (
        tanh as tanh,
    )
    from ._elements import (
        trunc as trunc,
    )
    from ._elements import (
        where as where,
    )
    from ._filters import *  # noqa: F403
    from ._fourier import *  # noqa: F403
    from ._indexing import *  # noqa: F403
    from ._making import *  # noqa: F403
    from ._matrices import *  # noqa: F403
    from ._moving import *  # noqa: F403
    from ._network import *  # noqa: F403
    from ._packing import *  # noqa: F403
    from ._pictures import *  # noqa: F403
    from ._products import *  # noqa: F403
    from ._reductions import *  # noqa: F403
    from ._resizing import *  # noqa: F403
    from ._scans import *  # noqa: F403
    from ._searching import *  # noqa: F403
    from ._sorting import *  # noqa: F403
    from ._splitting import *  # noqa: F403
    from ._spreads import *  # noqa: F403
    from ._windows import *  # noqa: F403

_MODULES: dict[str, Sequence[str]] = {
    ".._builders.elementwise": ("elementwise",),
    ".._builders.reduction": ("reduction",),
    ".._builders.scan": ("scan",),
    "._elements": [
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
    "._making": ("arange", "eye", "full", "linspace"),
    "._reductions": [
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
    "._spreads": ("average", "diff", "ptp"),
    "._scans": ("cummax", "cummin", "cumprod", "cumsum"),
    "._searching": ["bin_counts", "int_counts", "nonzero_places", "run_starts", "searchsorted", "selected"],
    "._counted": ["bincount", "compress", "extract", "flatnonzero", "histogram", "nonzero", "unique"],
    "._sorting": (
        "argpartition",
        "argsort",
        "partition",
        "segmented_sort",
        "sort",
        "sort_by_key",
        "topk",
    ),
    "._packing": ["pack_int4", "packbits", "unpack_int4", "unpackbits"],
    "._moving": [
        "ascontiguousarray",
        "broadcast_to",
        "concatenate",
        "diagonal",
        "flip",
        "moveaxis",
        "repeat",
        "roll",
        "rot90",
        "stack",
        "swapaxes",
        "take",
        "tile",
        "transpose",
    ],
    "._splitting": ("array_split", "hsplit", "split", "vsplit"),
    "._einsum": ("einsum", "inner", "outer", "tensordot", "trace"),
    "._products": ("kron", "matrix_norm", "vdot"),
    "._indexing": [
        "pad",
        "put",
        "put_along_axis",
        "scatter_add",
        "take_along_axis",
        "tril",
        "triu",
    ],
    "._matrices": ("matmul",),
    "._network": [
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
    "._filters": [
        "convolve",
        "convolve1d",
        "correlate",
        "correlate1d",
        "gaussian_filter1d",
        "uniform_filter1d",
    ],
    "._windows": [
        "gaussian_filter",
        "maximum_filter",
        "median_filter",
        "minimum_filter",
        "prewitt",
        "rank_filter",
        "sobel",
        "uniform_filter",
    ],
    "._resizing": ("resize",),
    "._pictures": [
        "hsv_to_rgb",
        "linear_to_srgb",
        "premultiply_alpha",
        "rgb_to_gray",
        "rgb_to_hsv",
        "rgb_to_ycbcr",
        "srgb_to_linear",
        "ycbcr_to_rgb",
    ],
    "._fourier": [
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


def __dir__() -> list[str]:
    return sorted({*__all__, *libraries})
