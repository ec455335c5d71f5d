"""A call of each function of `kp.ops`, on about a million elements, and NumPy's function for the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Made = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Call:
    """How a function is called."""

    make: Callable[[np.random.Generator, int], Made]
    """Positional arguments, arrays among them, and named ones, for a number of elements."""
    numpy: Callable[..., Any] | None = None
    """NumPy's function, or None if it has none."""
    same_names: bool = True
    """Whether NumPy's takes the named arguments too."""
    elements: int = 0
    """How many elements count; 0: those of the largest argument."""


def _floats(count: int, **named: Any) -> Callable[[np.random.Generator, int], Made]:
    """A maker of vectors of normal numbers."""

    def make(rng: np.random.Generator, elements: int) -> Made:
        return tuple(rng.normal(size=elements).astype(np.float32) for _ in range(count)), named

    return make


def _segments(rng: np.random.Generator, elements: int) -> Made:
    """Keys in segments of 100, and where these begin."""
    keys = rng.normal(size=elements).astype(np.float32)
    return (keys, np.arange(0, elements, 100, dtype=np.int32)), {}


def _whole(most: int, *rest: Any) -> Callable[[np.random.Generator, int], Made]:
    """A maker of a vector of ints from 0 to below `most`."""

    def make(rng: np.random.Generator, elements: int) -> Made:
        return (rng.integers(0, most, elements, dtype=np.int32), *rest), {}

    return make


def _chosen(rng: np.random.Generator, elements: int) -> Made:
    """A condition that holds for half of the elements, and these."""
    return (rng.random(elements) < 0.5, rng.normal(size=elements).astype(np.float32)), {}


def _rows(rng: np.random.Generator, elements: int) -> Made:
    """Rows of 256 normal numbers."""
    return (rng.normal(size=(elements // 256, 256)).astype(np.float32),), {}


def _edges(rng: np.random.Generator, elements: int) -> Made:
    """Numbers, and the edges of 100 bins."""
    return (rng.normal(size=elements).astype(np.float32), np.linspace(-3, 3, 101, dtype=np.float32)), {}


def _places(rng: np.random.Generator, elements: int) -> Made:
    """A thousand sorted numbers, and numbers to find."""
    return tuple(reversed([*_floats(1)(rng, elements)[0], np.linspace(-3, 3, 1000, dtype=np.float32)])), {}


def _cube(axes: int, kind: type[Any], half: bool) -> Callable[[np.random.Generator, int], Made]:
    """A maker of an array with sides of a power of two; `half` of the last one, and one."""

    def make(rng: np.random.Generator, elements: int) -> Made:
        side = 2 ** ((elements.bit_length() - 1) // axes)
        shape = (*(side,) * (axes - 1), side // 2 + 1 if half else side)
        x = rng.normal(size=shape)
        return ((x + 1j * rng.normal(size=shape) if kind is np.complex64 else x).astype(kind),), {}

    return make


def _positive(count: int) -> Callable[[np.random.Generator, int], Made]:
    """A maker of vectors of numbers from 1 to 5."""

    def make(rng: np.random.Generator, elements: int) -> Made:
        return tuple(rng.uniform(1, 5, elements).astype(np.float32) for _ in range(count)), {}

    return make


def _bits(rng: np.random.Generator, elements: int) -> Made:
    """A vector of bytes."""
    return (rng.integers(0, 256, elements).astype(np.uint8),), {}


def _ints(count: int) -> Callable[[np.random.Generator, int], Made]:
    """A maker of vectors of ints from 1 to 30."""

    def make(rng: np.random.Generator, elements: int) -> Made:
        return tuple(rng.integers(1, 31, elements).astype(np.int32) for _ in range(count)), {}

    return make


def _matrices(rng: np.random.Generator, elements: int) -> Made:
    """Two square matrices with a quarter of the elements."""
    n = max(1, int(elements**0.5) // 2)
    return tuple(rng.normal(size=(n, n)).astype(np.float32) for _ in range(2)), {}


def _square(*rest: Any, **named: Any) -> Callable[[np.random.Generator, int], Made]:
    """A maker of a square matrix, and other arguments."""

    def make(rng: np.random.Generator, elements: int) -> Made:
        n = int(elements**0.5)
        return (rng.normal(size=(n, n)).astype(np.float32), *rest), named

    return make


def _two(rng: np.random.Generator, elements: int) -> Made:
    """A list of two vectors."""
    return (list(rng.normal(size=(2, elements)).astype(np.float32)),), {}


def _taken(rng: np.random.Generator, elements: int) -> Made:
    """A vector, and places in it."""
    x = rng.normal(size=elements).astype(np.float32)
    return (x, rng.integers(0, elements, elements, dtype=np.int32)), {"axis": 0, "mode": "clip"}


def _written(rng: np.random.Generator, elements: int) -> Made:
    """A vector, places in it, and a number for each."""
    x, values = rng.normal(size=(2, elements)).astype(np.float32)
    return (x, rng.integers(0, elements, elements, dtype=np.int32), values), {"mode": "clip"}


CALLS: dict[str, Call] = {
    **{
        name: Call(_floats(1), getattr(np, name))
        for name in [
            "sum",
            "prod",
            "mean",
            "var",
            "std",
            "min",
            "max",
            "argmin",
            "argmax",
            "any",
            "all",
            "count_nonzero",
            "median",
            "nanargmax",
            "nanargmin",
            "nancumprod",
            "nancumsum",
            "nanmax",
            "nanmean",
            "nanmedian",
            "nanmin",
            "nanprod",
            "nanstd",
            "nansum",
            "nanvar",
        ]
    },
    **{
        name: Call(lambda rng, n, q=q: (_floats(1)(rng, n)[0] + (q,), {}), getattr(np, name))
        for name, q in (("quantile", 0.3), ("nanquantile", 0.3), ("percentile", 30), ("nanpercentile", 30))
    },
    "isin": Call(_whole(1000, np.arange(0, 1000, 7, np.int32)), np.isin),
    **{
        f"{before}fft{after}": Call(
            _cube(axes, np.float32 if before == "r" else np.complex64, before == "ir"),
            getattr(np.fft, f"{before}fft{after}"),
        )
        for before in ("", "i", "r", "ir")
        for after, axes in (("", 1), ("2", 2), ("n", 3))
    },
    "fftshift": Call(_cube(2, np.float32, False), np.fft.fftshift),
    "fftconvolve": Call(
        lambda rng, n: (_floats(1)(rng, n)[0] + _floats(1)(rng, n // 64 + 1)[0], {}), np.convolve
    ),
    "fftfreq": Call(lambda rng, n: ((n, 0.1), {}), np.fft.fftfreq),
    "rfftfreq": Call(lambda rng, n: ((2 * n - 1, 0.1), {}), np.fft.rfftfreq),
    "ifftshift": Call(_cube(2, np.float32, False), np.fft.ifftshift),
    **{
        name: Call(_floats(count), numpy)
        for names, count in (
            (
                """negative positive absolute real imag conjugate angle sign square reciprocal floor ceil
                trunc rint isnan isinf isfinite signbit logical_not exp exp2 expm1 sin cos tan arcsin arccos
                arctan sinh cosh tanh arcsinh arctanh radians degrees round""",
                1,
            ),
            (
                """add subtract multiply divide floor_divide remainder fmod minimum maximum fmin fmax copysign
                hypot equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor
                logaddexp arctan2 nextafter""",
                2,
            ),
        )
        for name in names.split()
        for numpy in (getattr(np, name),)
    },
    **{
        name: Call(_positive(1), getattr(np, name))
        for name in ["sqrt", "log", "log2", "log10", "log1p", "arccosh"]
    },
    "power": Call(_positive(2), np.power),
    **{
        name: Call(_ints(2), getattr(np, name))
        for name in ["gcd", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]
    },
    "invert": Call(_ints(1), np.invert),
    "where": Call(_floats(3), np.where),
    "clip": Call(lambda rng, n: ((rng.normal(size=n).astype(np.float32), -1.0, 1.0), {}), np.clip),
    "astype": Call(lambda rng, n: ((rng.normal(size=n).astype(np.float32), "int32"), {})),
    "erf": Call(_floats(1)),
    "sigmoid": Call(_floats(1)),
    "matmul": Call(_matrices, np.matmul),
    "einsum": Call(lambda rng, n: (("ij,kj->ik", *_matrices(rng, n)[0]), {}), np.einsum),
    "tensordot": Call(lambda rng, n: (_matrices(rng, n)[0], {"axes": 1}), np.tensordot),
    "inner": Call(_matrices, np.inner),
    "outer": Call(
        lambda rng, n: (tuple(rng.normal(size=(2, int(n**0.5))).astype(np.float32)), {}),
        np.outer,
        elements=1 << 20,
    ),
    "trace": Call(_square(), np.trace),
    "ascontiguousarray": Call(_floats(1), np.copy),
    "packbits": Call(_bits, np.packbits),
    "unpackbits": Call(_bits, np.unpackbits),
    "pack_int4": Call(_bits),
    "unpack_int4": Call(_bits),
    "transpose": Call(_square(), lambda x: x.T.copy()),
    "swapaxes": Call(_square(0, 1), lambda x, *axes: np.swapaxes(x, *axes).copy()),
    "flip": Call(_square(), lambda x: np.flip(x).copy()),
    "roll": Call(_square(5, 1), np.roll),
    "tile": Call(_square(2), np.tile),
    "repeat": Call(_square(2, 1), np.repeat),
    "broadcast_to": Call(lambda rng, n: ((rng.normal(size=n).astype(np.float32), (2, n)), {})),
    "diagonal": Call(_square(), lambda x: np.diagonal(x).copy()),
    "concatenate": Call(_two, np.concatenate),
    "stack": Call(_two, np.stack),
    "moveaxis": Call(_square(0, 1), lambda x, *axes: np.moveaxis(x, *axes).copy()),
    "rot90": Call(_square(), lambda x: np.rot90(x).copy()),
    "pad": Call(_square(8), np.pad),
    "tril": Call(_square(), np.tril),
    "triu": Call(_square(), np.triu),
    "take_along_axis": Call(_taken, lambda x, i, axis, mode: np.take_along_axis(x, i, axis)),
    "put": Call(_written, lambda x, *rest, **named: np.put(x.copy(), *rest, **named)),
    "put_along_axis": Call(lambda rng, n: (_written(rng, n)[0], {"axis": 0, "mode": "clip"})),
    **{
        name: Call(lambda rng, n: (_written(rng, n)[0], {"axis": 0, "mode": "clip"}))
        for name in ["scatter_add", "scatter_max", "scatter_min", "scatter_mul"]
    },
    "take": Call(_taken, np.take),
    "full": Call(lambda rng, n: ((n, 7.0), {}), np.full, elements=1 << 20),
    "arange": Call(lambda rng, n: ((float(n),), {}), np.arange, elements=1 << 20),
    "linspace": Call(lambda rng, n: ((0.0, 1.0, n), {}), np.linspace, elements=1 << 20),
    "eye": Call(lambda rng, n: ((int(n**0.5),), {}), np.eye, elements=1 << 20),
    "ptp": Call(_floats(1), np.ptp),
    "diff": Call(_floats(1), np.diff),
    "average": Call(
        lambda rng, n: ((rng.normal(size=n).astype(np.float32),), {"weights": rng.random(n, np.float32)}),
        np.average,
    ),
    "norm": Call(_floats(1), np.linalg.norm),
    "dot": Call(_floats(2), np.dot),
    "sort": Call(_floats(1), np.sort),
    "argsort": Call(_floats(1), np.argsort),
    "partition": Call(lambda rng, n: (_floats(1)(rng, n)[0], {"kth": n // 2}), np.partition),
    "argpartition": Call(lambda rng, n: (_floats(1)(rng, n)[0], {"kth": n // 2}), np.argpartition),
    "topk": Call(_floats(1, k=100)),
    "sort_by_key": Call(_floats(2)),
    "segmented_sort": Call(_segments),
    "cumsum": Call(_floats(1), np.cumsum),
    "cumprod": Call(_floats(1), np.cumprod),
    "cummax": Call(_floats(1), np.maximum.accumulate),
    "cummin": Call(_floats(1), np.minimum.accumulate),
    "searchsorted": Call(_places, np.searchsorted),
    "int_counts": Call(_whole(1000, 1000)),
    "bin_counts": Call(_edges, np.histogram),
    "nonzero_places": Call(_whole(2)),
    "selected": Call(_chosen),
    "run_starts": Call(_whole(1000)),
    "bincount": Call(_whole(1000), np.bincount),
    "histogram": Call(_floats(1), np.histogram),
    "nonzero": Call(_whole(2), np.nonzero),
    "flatnonzero": Call(_whole(2), np.flatnonzero),
    "compress": Call(_chosen, np.compress),
    "extract": Call(_chosen, np.extract),
    "unique": Call(_whole(1000), np.unique),
    **{name: Call(_rows) for name in ["softmax", "log_softmax", "layer_norm", "rms_norm"]},
    "logsumexp": Call(_floats(1), np.logaddexp.reduce),
    **{name: Call(_floats(1)) for name in ["gelu", "gelu_tanh", "silu", "relu"]},
    **{
        name: Call(lambda rng, n: (_floats(1)(rng, n)[0] + (np.ones(9, np.float32),), {}))
        for name in ["correlate1d", "convolve1d"]
    },
    **{
        name: Call(lambda rng, n: ((rng.random((n // 4, 4), np.float32),), {}))
        for name in [
            "hsv_to_rgb",
            "linear_to_srgb",
            "premultiply_alpha",
            "rgb_to_gray",
            "rgb_to_hsv",
            "rgb_to_ycbcr",
            "ycbcr_to_rgb",
            "srgb_to_linear",
        ]
    },
    "resize": Call(lambda rng, n: (_square()(rng, n)[0] + ([int(n**0.5) // 2] * 2, "area"), {})),
    **{
        name: Call(_square(3))
        for name in ["maximum_filter", "median_filter", "minimum_filter", "uniform_filter"]
    },
    **{name: Call(_square()) for name in ["prewitt", "sobel"]},
    "kron": Call(
        lambda rng, n: ((rng.random((n // 100, 1), np.float32), rng.random(100, np.float32)), {}),
        np.kron,
        elements=2**20,
    ),
    "vdot": Call(_floats(2), np.vdot),
    "matrix_norm": Call(_square(), np.linalg.norm),
    **{
        name: Call(_square([10]), getattr(np, name), elements=2**20)  # square matrices of odd sides, too
        for name in ["array_split", "hsplit", "split", "vsplit"]
    },
    "rank_filter": Call(_square(1, 3)),
    "gaussian_filter": Call(_square(1.0)),
    "uniform_filter1d": Call(_floats(1, size=9)),
    "gaussian_filter1d": Call(_floats(1, sigma=1.0)),
    "convolve": Call(lambda rng, n: (_floats(1)(rng, n)[0] + (np.ones(9, np.float32),), {}), np.convolve),
    "correlate": Call(lambda rng, n: (_floats(1)(rng, n)[0] + (np.ones(9, np.float32),), {}), np.correlate),
    "leaky_relu": Call(lambda rng, elements: (_floats(1)(rng, elements)[0] + (0.01,), {})),
}
