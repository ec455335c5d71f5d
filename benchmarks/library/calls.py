"""A call of each function of `kp.ops`, on about a million elements, and NumPy's function for the same.

`_TABLE` has them: names of functions, and the arguments of a call for `n` elements, in which the names of
`_ARRAYS` stand for arrays, each time for a new one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Made = tuple[tuple[Any, ...], dict[str, Any]]

_TABLE = """
sum prod mean var std min max argmin argmax any all count_nonzero median nanargmax nanargmin nancumprod
nancumsum nanmax nanmean nanmedian nanmin nanprod nanstd nansum nanvar ptp diff vector_norm: x
gradient trapezoid: x
cov corrcoef: x[: x.size // 4 * 4].reshape(4, -1)
interp: x, np.linspace(-3, 3, min(x.size, 1000), dtype=np.float32), x[:1000]
digitize: x, np.linspace(-3, 3, 1000, dtype=np.float32)
cross: x[: n // 3 * 3].reshape(-1, 3), x[: n // 3 * 3].reshape(-1, 3)
quantile nanquantile: x, 0.3
percentile nanpercentile: x, 30
isin intersect1d setdiff1d union1d: below(1000), np.arange(0, 1000, 7, np.int32)
negative positive absolute real imag conjugate angle sign square reciprocal floor ceil trunc rint isnan isinf
isfinite signbit logical_not exp exp2 expm1 sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh
radians degrees round cbrt sinc nan_to_num unwrap: x
polyval: np.ones(8, np.float32), x
add subtract multiply divide floor_divide remainder fmod minimum maximum fmin fmax copysign hypot equal
not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logaddexp arctan2
nextafter: x, x
sqrt log log2 log10 log1p arccosh: positive
power: positive, positive
gcd bitwise_and bitwise_or bitwise_xor left_shift right_shift: ints, ints
invert: ints
where: x, x, x
clip: x, -1.0, 1.0
astype: x, 'int32'
erf sigmoid gelu gelu_tanh silu relu: x
leaky_relu: x, 0.01
fft ifft: cube(1, 'c')
fft2 ifft2: cube(2, 'c')
fftn ifftn: cube(3, 'c')
rfft: cube(1)
rfft2: cube(2)
rfftn: cube(3)
irfft: cube(1, 'c', True)
irfft2: cube(2, 'c', True)
irfftn: cube(3, 'c', True)
fftshift ifftshift: cube(2)
fftconvolve: x, rng.normal(size=n // 64 + 1).astype(np.float32)
fftfreq: n, 0.1
rfftfreq: 2 * n - 1, 0.1
matmul inner: half, half
einsum: 'ij,kj->ik', half, half
tensordot: half, half, axes=1
outer: side, side
trace diagonal transpose flip rot90 tril triu norm matrix_norm prewitt sobel: square
ascontiguousarray: x
packbits unpackbits pack_int4 unpack_int4: bytes
swapaxes moveaxis: square, 0, 1
roll: square, 5, 1
tile: square, 2
repeat: square, 2, 1
broadcast_to: x, (2, n)
concatenate stack: [x, x]
pad: square, 8
take take_along_axis: x, places, axis=0, mode='clip'
put: x, places, x, mode='clip'
put_along_axis scatter_add scatter_max scatter_min scatter_mul: x, places, x, axis=0, mode='clip'
full: n, 7.0
arange: float(n)
linspace: 0.0, 1.0, n
logspace: 0.0, 1.0, n
geomspace: 1.0, 10.0, n
eye: int(n**0.5)
average: x, weights=random
dot vdot: x, x
sort argsort cumsum cumprod cummax cummin histogram logsumexp: x
partition argpartition: x, kth=n // 2
topk: x, k=100
sort_by_key: x, x
lexsort: [x, x]
segmented_sort: x, np.arange(0, n, 100, dtype=np.int32)
searchsorted: np.linspace(-3, 3, 1000, dtype=np.float32), x
int_counts: below(1000), 1000
bin_counts: x, np.linspace(-3, 3, 101, dtype=np.float32)
nonzero_places nonzero flatnonzero argwhere: below(2)
selected compress extract: random < 0.5, x
run_starts bincount unique: below(1000)
softmax log_softmax layer_norm rms_norm: rows
convolve correlate correlate1d convolve1d: x, np.ones(9, np.float32)
hsv_to_rgb linear_to_srgb premultiply_alpha rgb_to_gray rgb_to_hsv rgb_to_ycbcr ycbcr_to_rgb srgb_to_linear:
 rng.random((n // 4, 4), np.float32)
resize: square, [int(n**0.5) // 2] * 2, 'area'
maximum_filter median_filter minimum_filter uniform_filter: square, 3
rank_filter: square, 1, 3
gaussian_filter: square, 1.0
uniform_filter1d: x, size=9
gaussian_filter1d: x, sigma=1.0
kron: rng.random((n // 100, 1), np.float32), rng.random(100, np.float32)
array_split hsplit split vsplit: square, [10]
sliding_window_view: x, 8
"""

_COUNTED = [
    "full",
    "arange",
    "linspace",
    "eye",
    "outer",
    "kron",
    "array_split",
    "hsplit",
    "split",
    "vsplit",
    "logspace",
    "geomspace",
    "sliding_window_view",
]
"""What takes as many elements as are asked for, whatever its arguments have."""

_NONE = ["astype", "broadcast_to", "put_along_axis", "resize"]
"""What NumPy has under the same name, but does not do with these arguments, or at no cost."""


def _copied(name: str) -> Callable[..., Any]:
    return lambda x, *axes: getattr(np, name)(x, *axes).copy()


_NUMPY: dict[str, Callable[..., Any]] = {
    "fftconvolve": np.convolve,
    "bin_counts": np.histogram,
    "sliding_window_view": np.lib.stride_tricks.sliding_window_view,
    "matrix_norm": np.linalg.norm,
    "norm": np.linalg.norm,
    "vector_norm": np.linalg.norm,
    "ascontiguousarray": np.copy,
    **{name: _copied(name) for name in ["transpose", "swapaxes", "flip", "diagonal", "moveaxis", "rot90"]},
    "take_along_axis": lambda x, i, axis, mode: np.take_along_axis(x, i, axis),
    "put": lambda x, *rest, **named: np.put(x.copy(), *rest, **named),
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
    "logsumexp": np.logaddexp.reduce,
}
"""NumPy's function where it has another name; copies of what would be a view."""


def _normal(rng: np.random.Generator, *shape: int) -> Any:
    return rng.normal(size=shape).astype(np.float32)


def _cube(rng: np.random.Generator, n: int, axes: int, kind: str = "f", half: bool = False) -> Any:
    """Floats or complex numbers, with sides of a power of two; `half` of the last one, and one."""
    side = 2 ** ((n.bit_length() - 1) // axes)
    shape = (*(side,) * (axes - 1), side // 2 + 1 if half else side)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape)).astype(np.complex64) if kind == "c" else x.astype(np.float32)


_ARRAYS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "x": _normal,
    "rows": lambda rng, n: _normal(rng, n // 256, 256),
    "side": lambda rng, n: _normal(rng, int(n**0.5)),
    "square": lambda rng, n: _normal(rng, int(n**0.5), int(n**0.5)),
    "half": lambda rng, n: _normal(rng, *[max(1, int(n**0.5) // 2)] * 2),
    "random": lambda rng, n: rng.random(n, np.float32),
    "positive": lambda rng, n: rng.uniform(1, 5, n).astype(np.float32),
    "ints": lambda rng, n: rng.integers(1, 31, n).astype(np.int32),
    "bytes": lambda rng, n: rng.integers(0, 256, n).astype(np.uint8),
    "places": lambda rng, n: rng.integers(0, n, n, dtype=np.int32),
}


class _Arguments(dict[str, Any]):
    """What the names in the table stand for."""

    def __init__(self, rng: np.random.Generator, n: int) -> None:
        super().__init__(
            rng=rng, n=n, np=np, below=lambda most: rng.integers(0, most, n, dtype=np.int32),
            cube=lambda *given: _cube(rng, n, *given),
        )  # fmt: skip

    def __missing__(self, name: str) -> Any:
        return _ARRAYS[name](self["rng"], self["n"])


@dataclass(frozen=True)
class Call:
    """How a function is called."""

    arguments: str
    numpy: Callable[..., Any] | None
    """NumPy's function, or None if it has none."""
    elements: int
    """How many elements count; 0: those of the largest argument."""

    def make(self, rng: np.random.Generator, elements: int) -> Made:
        """Positional arguments, arrays among them, and named ones, for a number of elements."""
        taken = {"taken": lambda *args, **named: (args, named)}
        made: Made = eval(f"taken({self.arguments})", taken, _Arguments(rng, elements))
        return made


def _call(name: str, arguments: str) -> Call:
    places = (np.fft, np.linalg, np)
    found = None if name in _NONE else next((getattr(at, name) for at in places if hasattr(at, name)), None)
    return Call(arguments, _NUMPY.get(name, found), (1 << 20) * (name in _COUNTED))


CALLS = {
    name: _call(name, arguments)
    for names, arguments in re.findall(r"([\w\s]+):\s+(.+)", _TABLE)
    for name in names.split()
}
