"""Every function of `kp.ops` by the module that has it, in the order of the page of all functions.

The one list of them: checkers of types read it, and so does Python when `kp.ops` is first used.
tools/ops_stub.py writes the types from the declarations of the functions, and keeps the order.
"""

# ruff: noqa
# fmt: off
# mypy: disable-error-code="overload-overlap"
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

import kompute_py

from . import _types

# .._builders.elementwise
from .._builders.elementwise import elementwise as elementwise

# .._builders.reduction
from .._builders.reduction import reduction as reduction

# .._builders.scan
from .._builders.scan import scan as scan

# ._values.elements
absolute: _types.Unary
"""The absolute value of `x`."""
add: _types.Binary
"""`x1` plus `x2`."""
angle: _types.Unary
"""The angle of `x` in radians; that of bools is float16, NumPy's float64."""
arccos: _types.Unary
"""The angle in radians with the cosine `x`."""
arccosh: _types.Unary
"""The number from 0 with the hyperbolic cosine `x`."""
arcsin: _types.Unary
"""The angle in radians with the sine `x`."""
arcsinh: _types.Unary
"""The number with the hyperbolic sine `x`."""
arctan: _types.Unary
"""The angle in radians with the tangent `x`."""
arctan2: _types.Binary
"""The angle in radians of the point (`x2`, `x1`)."""
arctanh: _types.Unary
"""The number with the hyperbolic tangent `x`."""
astype: _types.Astype
"""`x` converted to `dtype`, the name of one: ``"int8"``."""
bitwise_and: _types.Binary
"""The bits that `x1` and `x2` both have."""
bitwise_or: _types.Binary
"""The bits that `x1` or `x2` has."""
bitwise_xor: _types.Binary
"""The bits that one of `x1` and `x2` has."""
cbrt: _types.Unary
"""The cube root of `x`."""
ceil: _types.Unary
"""The smallest whole number that is not below `x`."""
clip: _types.Clip
"""`a`, but at least `a_min` and at most `a_max`, as ``np.clip``. A bound of None is left out."""
conjugate: _types.Unary
"""`x` with minus the imaginary part."""
copysign: _types.Binary
"""`x1` with the sign of `x2`."""
cos: _types.Unary
"""The cosine of `x`, in radians."""
cosh: _types.Unary
"""The hyperbolic cosine of `x`."""
degrees: _types.Unary
"""`x` radians in degrees."""
divide: _types.Binary
"""`x1` divided by `x2`; ints give floats."""
equal: _types.Binary
"""Whether `x1` is equal to `x2`, element by element."""
erf: _types.Unary
"""The error function of `x`: 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to `x`."""
exp: _types.Unary
"""e to the power of `x`."""
exp2: _types.Unary
"""2 to the power of `x`."""
expm1: _types.Unary
"""e to the power of `x`, less 1, also near 0."""
floor: _types.Unary
"""The largest whole number that is not above `x`."""
floor_divide: _types.Binary
"""The largest whole number that is not above `x1` divided by `x2`."""
fmax: _types.Binary
"""The larger of `x1` and `x2`; the other one if one is NaN."""
fmin: _types.Binary
"""The smaller of `x1` and `x2`; the other one if one is NaN."""
fmod: _types.Binary
"""The remainder of `x1` divided by `x2` toward zero, with the sign of `x1`."""
gcd: _types.Binary
"""The greatest common divisor of `x1` and `x2`."""
greater: _types.Binary
"""Whether `x1` is greater than `x2`, element by element."""
greater_equal: _types.Binary
"""Whether `x1` is greater than or equal to `x2`, element by element."""
hypot: _types.Binary
"""The root of `x1 * x1 + x2 * x2`, without overflow."""
imag: _types.Unary
"""The imaginary part of `x`; zeros for a real `x`."""
invert: _types.Unary
"""All bits of `x` inverted."""
isfinite: _types.Unary
"""Whether `x` is neither infinite nor NaN."""
isinf: _types.Unary
"""Whether `x` is infinite."""
isnan: _types.Unary
"""Whether `x` is NaN."""
left_shift: _types.Binary
"""`x1` with its bits `x2` places to the left."""
less: _types.Binary
"""Whether `x1` is less than `x2`, element by element."""
less_equal: _types.Binary
"""Whether `x1` is less than or equal to `x2`, element by element."""
log: _types.Unary
"""The natural logarithm of `x`."""
log10: _types.Unary
"""The logarithm of `x` to base 10."""
log1p: _types.Unary
"""The natural logarithm of 1 plus `x`, also near 0."""
log2: _types.Unary
"""The logarithm of `x` to base 2."""
logaddexp: _types.Binary
"""The logarithm of the sum of the exponentials of `x1` and `x2`."""
logical_and: _types.Binary
"""Whether `x1` and `x2` are both not zero."""
logical_not: _types.Unary
"""Whether `x` is zero."""
logical_or: _types.Binary
"""Whether `x1` or `x2` is not zero."""
logical_xor: _types.Binary
"""Whether one of `x1` and `x2` is zero and the other is not."""
maximum: _types.Binary
"""The larger of `x1` and `x2`; NaN if one is."""
minimum: _types.Binary
"""The smaller of `x1` and `x2`; NaN if one is."""
multiply: _types.Binary
"""`x1` times `x2`."""
negative: _types.Unary
"""Minus `x`."""
nextafter: _types.Binary
"""The next number of the dtype from `x1` towards `x2`."""
not_equal: _types.Binary
"""Whether `x1` is not equal to `x2`, element by element."""
positive: _types.Unary
"""`x` itself, copied."""
power: _types.Binary
"""`x1` to the power of `x2`. Negative powers of ints, which NumPy refuses, are cut off to ints."""
radians: _types.Unary
"""`x` degrees in radians."""
real: _types.Unary
"""The real part of `x`; a real `x` copied."""
reciprocal: _types.Unary
"""1 divided by `x`."""
remainder: _types.Binary
"""The remainder of `x1 // x2`, with the sign of `x2`."""
right_shift: _types.Binary
"""`x1` with its bits `x2` places to the right; the sign stays."""
rint: _types.Unary
"""The nearest whole number; of two, the even one."""
round: _types.Round
"""`a` rounded to `decimals`, from -10 to 10; of two nearest numbers the even one."""
sigmoid: _types.Unary
"""1 divided by 1 + exp(-`x`)."""
sign: _types.Unary
"""-1, 0 or 1: the sign of `x`; NaN of NaN. Of a complex `x`, `x` divided by its absolute value."""
signbit: _types.Unary
"""Whether the sign of `x` is minus; -0.0 has it."""
sin: _types.Unary
"""The sine of `x`, in radians."""
sinc: _types.Unary
"""The sine of pi times `x`, divided by that; 1 at 0."""
sinh: _types.Unary
"""The hyperbolic sine of `x`."""
sqrt: _types.Unary
"""The square root of `x`; NaN of negative numbers, but for complex ones."""
square: _types.Unary
"""`x` times `x`."""
subtract: _types.Binary
"""`x1` minus `x2`."""
tan: _types.Unary
"""The tangent of `x`, in radians."""
tanh: _types.Unary
"""The hyperbolic tangent of `x`."""
trunc: _types.Unary
"""`x` without its fraction."""
where: _types.Where
"""`x` where `condition` is not zero, else `y`."""

# ._places.making
arange: _types.Arange
"""The numbers from `start` to before `stop` in steps of `step`, as ``np.arange``; with one number, from 0 to before it."""
eye: _types.Eye
"""A matrix with ones on a diagonal and zeros elsewhere, as ``np.eye``."""
full: _types.Full
"""A tensor of this shape with all elements `fill_value`, as ``np.full``."""
geomspace: _types.Geomspace
"""`num` numbers from `start` to `stop` with equal ratios, as ``np.geomspace``; `stop` itself only with `endpoint`."""
linspace: _types.Linspace
"""`num` numbers at equal distances from `start` to `stop`, as ``np.linspace``; `stop` itself only with `endpoint`."""
logspace: _types.Logspace
"""`base` to the power of `num` numbers at equal distances from `start` to `stop`, as ``np.logspace``."""

# ._values.reductions
all: _types.Reduction
"""Whether no element over axes is zero. NaN is not zero."""
any: _types.Reduction
"""Whether an element over axes is not zero. NaN is not zero."""
argmax: _types.Argmax
"""The position of the greatest element along an axis, or among all elements."""
argmin: _types.Argmax
"""The position of the least element along an axis, or among all elements."""
count_nonzero: _types.Reduction
"""How many elements over axes are not zero: int64, or int32 on devices without."""
dot: _types.Dot
"""The sum of products of two vectors of one length."""
max: _types.Reduction
"""The greatest element over axes; NaN if there is one."""
mean: _types.Mean
"""The mean of elements over axes; NaN of no elements."""
min: _types.Reduction
"""The least element over axes; NaN if there is one."""
prod: _types.Mean
"""The product of elements over axes."""
std: _types.Std
"""The standard deviation of elements over axes; NaN of no elements."""
sum: _types.Mean
"""The sum of elements over axes."""
var: _types.Std
"""The variance of elements over axes; NaN of no elements."""
vector_norm: _types.VectorNorm
"""The norm of vectors along axes, as ``np.linalg.vector_norm``."""

# ._values.nans
nanargmax: _types.Nanargmax
"""The position of the greatest element along an axis, or among all elements, NaN left out, as ``np.nanargmax``."""
nanargmin: _types.Nanargmax
"""The position of the least element along an axis, or among all elements, NaN left out, as ``np.nanargmin``."""
nancumprod: _types.Nancumprod
"""The products of each element and all before it along `axis`, with 1 for NaN, as ``np.nancumprod``."""
nancumsum: _types.Nancumprod
"""The sums of each element and all before it along `axis`, with 0 for NaN, as ``np.nancumsum``."""
nanmax: _types.Reduction
"""The greatest element over axes that is not NaN; NaN if all are."""
nanmean: _types.Nanmean
"""The mean of the elements over axes that are not NaN, as ``np.nanmean``; NaN if there are none."""
nanmin: _types.Reduction
"""The least element over axes that is not NaN; NaN if all are."""
nanprod: _types.Mean
"""The product of the elements over axes that are not NaN; 1 if there are none."""
nanstd: _types.Nanstd
"""The square root of `nanvar`, as ``np.nanstd``. Raises its errors."""
nansum: _types.Mean
"""The sum of the elements over axes that are not NaN; 0 if there are none."""
nanvar: _types.Nanstd
"""The variance of the elements over axes that are not NaN, as ``np.nanvar``."""

# ._values.spreads
average: _types.Average
"""The weighted mean over axes, as ``np.average``: the sum of `a` times `weights`, by that of `weights`."""
diff: _types.Diff
"""The differences of neighbours along `axis`, `n` times over, as ``np.diff``."""
gradient: _types.Gradient
"""The slopes of `f` along axes by the differences of neighbours, as ``np.gradient``."""
ptp: _types.Nanargmax
"""The greatest element less the least over axes, as ``np.ptp``; NaN if there is one."""
trapezoid: _types.Trapezoid
"""The area below `y` along `axis`, by trapezoids, as ``np.trapezoid``."""

# ._values.repairs
nan_to_num: _types.NanToNum
"""`x` with numbers in place of NaN and infinities, as ``np.nan_to_num``."""
polyval: _types.Polyval
"""The polynomial with the coefficients `p`, the highest power first, at `x`, as ``np.polyval``."""
unwrap: _types.Unwrap
"""`p` with whole periods added along `axis`, so that neighbours differ by half a period at most, as ``np.unwrap``: angles without leaps."""

# ._values.scans
cummax: _types.Cummax
"""The highest of each element and all before it along `axis`, as ``np.maximum.accumulate``; None goes through all elements in row-major order, and the result has one axis. From the first NaN on it is NaN."""
cummin: _types.Cummax
"""The lowest of each element and all before it along `axis`, as ``np.minimum.accumulate``; None goes through all elements in row-major order, and the result has one axis. From the first NaN on it is NaN."""
cumprod: _types.Nancumprod
"""The products of each element and all before it along `axis`, as ``np.cumprod``; None goes through all elements in row-major order, and the result has one axis."""
cumsum: _types.Nancumprod
"""The sums of each element and all before it along `axis`, as ``np.cumsum``; None goes through all elements in row-major order, and the result has one axis."""

# ._orders.searching
bin_counts: _types.BinCounts
"""How many elements of `x` are in each bin: `kp.ops.histogram` with edges that the device has, which can be recorded."""
int_counts: _types.IntCounts
"""How often each of the ints 0 to ``length - 1`` is in `x`: `kp.ops.bincount` with a result of a fixed size, which can be recorded. Other ints, also negative ones, are not counted."""
nonzero_places: _types.NonzeroPlaces
"""The places of the elements of `x` that are not zero, and their number: `kp.ops.flatnonzero` with results of a fixed size, which can be recorded."""
run_starts: _types.RunStarts
"""Whether each element of `x` differs from its neighbour before; NaN count as equal."""
searchsorted: _types.Searchsorted
"""The places at which the elements of `v` go into the sorted `a`, as ``np.searchsorted``."""
selected: _types.Selected
"""The elements of `x` at which `condition` is not zero, and their number: `kp.ops.compress` with results of a fixed size, which can be recorded."""

# ._orders.counted
@overload
def argwhere(a: _types.Host | _types.Numbers, **options: _types.Unpack[_types.Ordering]) -> _types.Array: ...
@overload
def argwhere(a: _types.Given | _types.Numbers, **options: _types.Unpack[_types.Ordering]) -> kompute_py.Tensor[Any]: ...
@overload
def bincount(x: _types.Host | _types.Numbers, weights: _types.Host | _types.Numbers | None = ..., minlength: int = ..., **options: _types.Unpack[_types.Ordering]) -> _types.Array: ...
@overload
def bincount(x: _types.Given | _types.Numbers, weights: _types.Given | _types.Numbers | None = ..., minlength: int = ..., **options: _types.Unpack[_types.Ordering]) -> kompute_py.Tensor[Any]: ...
@overload
def compress(condition: _types.Host | _types.Numbers, x: _types.Host | _types.Numbers, axis: int | None = ..., **options: _types.Unpack[_types.Ordering]) -> _types.Array: ...
@overload
def compress(condition: _types.Given | _types.Numbers, x: _types.Given | _types.Numbers, axis: int | None = ..., **options: _types.Unpack[_types.Ordering]) -> kompute_py.Tensor[Any]: ...
@overload
def extract(condition: _types.Host | _types.Numbers, x: _types.Host | _types.Numbers, **options: _types.Unpack[_types.Ordering]) -> _types.Array: ...
@overload
def extract(condition: _types.Given | _types.Numbers, x: _types.Given | _types.Numbers, **options: _types.Unpack[_types.Ordering]) -> kompute_py.Tensor[Any]: ...
@overload
def flatnonzero(x: _types.Host | _types.Numbers, **options: _types.Unpack[_types.Ordering]) -> _types.Array: ...
@overload
def flatnonzero(x: _types.Given | _types.Numbers, **options: _types.Unpack[_types.Ordering]) -> kompute_py.Tensor[Any]: ...
@overload
def histogram(x: _types.Host | _types.Numbers, bins: _types.Int | str | Sequence[_types.Float] | _types.Array = ..., range: tuple[float, float] | None = ..., density: bool | None = ..., weights: _types.Host | _types.Numbers | None = ..., **options: _types.Unpack[_types.Ordering]) -> tuple[_types.Array, np.ndarray[Any, Any]]: ...
@overload
def histogram(x: _types.Given | _types.Numbers, bins: _types.Int | str | Sequence[_types.Float] | _types.Array = ..., range: tuple[float, float] | None = ..., density: bool | None = ..., weights: _types.Given | _types.Numbers | None = ..., **options: _types.Unpack[_types.Ordering]) -> tuple[kompute_py.Tensor[Any], np.ndarray[Any, Any]]: ...
@overload
def nonzero(x: _types.Host | _types.Numbers, **options: _types.Unpack[_types.Ordering]) -> tuple[_types.Array, ...]: ...
@overload
def nonzero(x: _types.Given | _types.Numbers, **options: _types.Unpack[_types.Ordering]) -> tuple[kompute_py.Tensor[Any], ...]: ...
@overload
def unique(x: _types.Host | _types.Numbers, *, return_index: Literal[False] = ..., return_inverse: Literal[False] = ..., return_counts: Literal[False] = ..., **options: _types.Unpack[_types.Ordering]) -> _types.Array: ...
@overload
def unique(x: _types.Host | _types.Numbers, *, return_index: Literal[False] = ..., return_inverse: Literal[False] = ..., return_counts: Literal[True], **options: _types.Unpack[_types.Ordering]) -> tuple[_types.Array, _types.Array]: ...
@overload
def unique(x: _types.Host | _types.Numbers, *, return_index: Literal[False] = ..., return_counts: Literal[False] = ..., return_inverse: Literal[True], **options: _types.Unpack[_types.Ordering]) -> tuple[_types.Array, _types.Array]: ...
@overload
def unique(x: _types.Host | _types.Numbers, *, return_index: Literal[False] = ..., return_inverse: Literal[True], return_counts: Literal[True], **options: _types.Unpack[_types.Ordering]) -> tuple[_types.Array, _types.Array, _types.Array]: ...
@overload
def unique(x: _types.Host | _types.Numbers, *, return_inverse: Literal[False] = ..., return_counts: Literal[False] = ..., return_index: Literal[True], **options: _types.Unpack[_types.Ordering]) -> tuple[_types.Array, _types.Array]: ...
@overload
def unique(x: _types.Host | _types.Numbers, *, return_inverse: Literal[False] = ..., return_index: Literal[True], return_counts: Literal[True], **options: _types.Unpack[_types.Ordering]) -> tuple[_types.Array, _types.Array, _types.Array]: ...
@overload
def unique(x: _types.Host | _types.Numbers, *, return_counts: Literal[False] = ..., return_index: Literal[True], return_inverse: Literal[True], **options: _types.Unpack[_types.Ordering]) -> tuple[_types.Array, _types.Array, _types.Array]: ...
@overload
def unique(x: _types.Host | _types.Numbers, *, return_index: Literal[True], return_inverse: Literal[True], return_counts: Literal[True], **options: _types.Unpack[_types.Ordering]) -> tuple[_types.Array, _types.Array, _types.Array, _types.Array]: ...
@overload
def unique(x: _types.Host | _types.Numbers, *, return_index: bool = ..., return_inverse: bool = ..., return_counts: bool = ..., **options: _types.Unpack[_types.Ordering]) -> _types.Array | tuple[_types.Array, ...]: ...
@overload
def unique(x: _types.Given | _types.Numbers, *, return_index: Literal[False] = ..., return_inverse: Literal[False] = ..., return_counts: Literal[False] = ..., **options: _types.Unpack[_types.Ordering]) -> kompute_py.Tensor[Any]: ...
@overload
def unique(x: _types.Given | _types.Numbers, *, return_index: Literal[False] = ..., return_inverse: Literal[False] = ..., return_counts: Literal[True], **options: _types.Unpack[_types.Ordering]) -> tuple[kompute_py.Tensor[Any], kompute_py.Tensor[Any]]: ...
@overload
def unique(x: _types.Given | _types.Numbers, *, return_index: Literal[False] = ..., return_counts: Literal[False] = ..., return_inverse: Literal[True], **options: _types.Unpack[_types.Ordering]) -> tuple[kompute_py.Tensor[Any], kompute_py.Tensor[Any]]: ...
@overload
def unique(x: _types.Given | _types.Numbers, *, return_index: Literal[False] = ..., return_inverse: Literal[True], return_counts: Literal[True], **options: _types.Unpack[_types.Ordering]) -> tuple[kompute_py.Tensor[Any], kompute_py.Tensor[Any], kompute_py.Tensor[Any]]: ...
@overload
def unique(x: _types.Given | _types.Numbers, *, return_inverse: Literal[False] = ..., return_counts: Literal[False] = ..., return_index: Literal[True], **options: _types.Unpack[_types.Ordering]) -> tuple[kompute_py.Tensor[Any], kompute_py.Tensor[Any]]: ...
@overload
def unique(x: _types.Given | _types.Numbers, *, return_inverse: Literal[False] = ..., return_index: Literal[True], return_counts: Literal[True], **options: _types.Unpack[_types.Ordering]) -> tuple[kompute_py.Tensor[Any], kompute_py.Tensor[Any], kompute_py.Tensor[Any]]: ...
@overload
def unique(x: _types.Given | _types.Numbers, *, return_counts: Literal[False] = ..., return_index: Literal[True], return_inverse: Literal[True], **options: _types.Unpack[_types.Ordering]) -> tuple[kompute_py.Tensor[Any], kompute_py.Tensor[Any], kompute_py.Tensor[Any]]: ...
@overload
def unique(x: _types.Given | _types.Numbers, *, return_index: Literal[True], return_inverse: Literal[True], return_counts: Literal[True], **options: _types.Unpack[_types.Ordering]) -> tuple[kompute_py.Tensor[Any], kompute_py.Tensor[Any], kompute_py.Tensor[Any], kompute_py.Tensor[Any]]: ...
@overload
def unique(x: _types.Given | _types.Numbers, *, return_index: bool = ..., return_inverse: bool = ..., return_counts: bool = ..., **options: _types.Unpack[_types.Ordering]) -> kompute_py.Tensor[Any] | tuple[kompute_py.Tensor[Any], ...]: ...

# ._orders.quantiles
median: _types.Nanargmax
"""The element in the middle of the sorted elements over axes, or the mean of both, as ``np.median``."""
nanmedian: _types.Nanargmax
"""`median` of the elements that are not NaN, as ``np.nanmedian``; NaN if there are none."""
nanpercentile: _types.Nanpercentile
"""`percentile` of the elements that are not NaN, as ``np.nanpercentile``; NaN if there are none."""
nanquantile: _types.Nanpercentile
"""`quantile` of the elements that are not NaN, as ``np.nanquantile``; NaN if there are none."""
percentile: _types.Nanpercentile
"""The element below which `q` of a hundred elements over axes lie, as ``np.percentile``."""
quantile: _types.Nanpercentile
"""The element below which the fraction `q` of the elements over axes lies, as ``np.quantile``."""

# ._orders.interpolating
digitize: _types.Digitize
"""The numbers of the bins that the elements of `x` lie in, as ``np.digitize``."""
interp: _types.Interp
"""The piecewise linear function through the points (`xp`, `fp`) at `x`, as ``np.interp``."""

# ._orders.sets
def intersect1d(ar1: _types.Given | _types.Numbers, ar2: _types.Given | _types.Numbers, assume_unique: bool = ..., return_indices: bool = ..., **options: _types.Unpack[_types.Ordering]) -> Any: ...
isin: _types.Isin
"""Whether each of `element` is equal to one of `test_elements`, as ``np.isin``; with `invert`, to none."""
@overload
def setdiff1d(ar1: _types.Host | _types.Numbers, ar2: _types.Host | _types.Numbers, assume_unique: bool = ..., **options: _types.Unpack[_types.Ordering]) -> _types.Array: ...
@overload
def setdiff1d(ar1: _types.Given | _types.Numbers, ar2: _types.Given | _types.Numbers, assume_unique: bool = ..., **options: _types.Unpack[_types.Ordering]) -> kompute_py.Tensor[Any]: ...
@overload
def union1d(ar1: _types.Host | _types.Numbers, ar2: _types.Host | _types.Numbers, **options: _types.Unpack[_types.Ordering]) -> _types.Array: ...
@overload
def union1d(ar1: _types.Given | _types.Numbers, ar2: _types.Given | _types.Numbers, **options: _types.Unpack[_types.Ordering]) -> kompute_py.Tensor[Any]: ...

# ._orders.scattering
scatter_add: _types.ScatterAdd
"""`x` with `values` added at `indices` along `axis`: what goes to one place is added up, as ``np.add.at(x, indices, values)`` does for the first axis and PyTorch's ``index_add``."""
scatter_max: _types.ScatterAdd
"""`x` with the greatest of each element and the `values` at its `indices` along `axis`, as ``np.maximum.at(x, indices, values)`` for the first axis."""
scatter_min: _types.ScatterAdd
"""`x` with the least of each element and the `values` at its `indices` along `axis`, as ``np.minimum.at(x, indices, values)`` for the first axis."""
scatter_mul: _types.ScatterMul
"""`x` times the product of the `values` at the `indices` of each element along `axis`, as ``np.multiply.at(x, indices, values)`` for the first axis."""

# ._orders.sorting
argpartition: _types.Argpartition
"""The places of the elements that `kp.ops.partition` gives, as ``np.argpartition``."""
argsort: _types.Argsort
"""The places of the elements of `x` in ascending order along `axis`, as ``np.argsort(x, axis, stable=True)``; with None among those of all axes, as one."""
lexsort: _types.Lexsort
"""The places of elements in ascending order by several keys, the last one first, as ``np.lexsort``."""
partition: _types.Argpartition
"""The elements of `x` along `axis` with the one that a sort puts in place `kth` there, as ``np.partition``: lower ones, and equal ones that come sooner, before it, the others after it."""
segmented_sort: _types.SegmentedSort
"""`keys` in ascending order within each segment: one begins at element 0, and one at each of `offsets`."""
sort: _types.Argsort
"""The elements of `x` in ascending order along `axis`, as ``np.sort(x, axis, stable=True)``; with None those of all axes, as one."""
sort_by_key: _types.SortByKey
"""`keys` in ascending order along `axis`, and `values` in the order of their keys."""
topk: _types.Topk
"""The `k` highest elements of `x` along `axis`, from the highest on, and their places, as ``torch.topk``; with ``largest=False`` the lowest, from the lowest on."""

# ._places.packing
pack_int4: _types.PackInt4
"""Two elements of `x` in each byte along `axis`: the lowest four bits of each. The first of two has the lower half; in an odd last byte the upper half is 0. Ints of four bits are so stored in files of weights, and a device has no dtype for them. -8 to 7 come back from `unpack_int4`, 0 to 15 with ``signed=False``."""
packbits: _types.PackInt4
"""Eight elements of `x` in each byte along `axis`, a bit each, as ``np.packbits``: 0 for zero, else 1. None packs all elements as one line. The last byte is filled up with zeros. With the bit order "big" the first element is the highest bit."""
unpack_int4: _types.UnpackInt4
"""The ints of four bits in the bytes of `x` along `axis`, as `pack_int4` makes them: int8 from -8 to 7, or uint8 from 0 to 15 with ``signed=False``. `count` is as for `unpackbits`; give it for an odd number."""
unpackbits: _types.Unpackbits
"""The bits of `x` along `axis` as elements of uint8, as ``np.unpackbits``. None unpacks all bytes as one line. `count` elements: the first ones, zeros behind the last; a negative number leaves out so many at the end."""

# ._places.moving
ascontiguousarray: _types.RunStarts
"""A dense copy of `x`, such as ``t[:, 0]``, as ``np.ascontiguousarray``: a scalar gets one axis."""
broadcast_to: _types.BroadcastTo
"""`x` broadcast to `shape`, as ``np.broadcast_to``. The result is a copy."""
diagonal: _types.Diagonal
"""The diagonals of `x` over two axes, as ``np.diagonal``, as the last axis. `offset` is above 0 for those above the main diagonal. The result is a copy."""
flip: _types.Flip
"""`x` with the order of elements reversed along `axis`, as ``np.flip``: an int, several, or None for all."""
moveaxis: _types.Moveaxis
"""`x` with some axes moved to other places, as ``np.moveaxis``; the others keep their order. The result is a copy."""
roll: _types.Roll
"""`x` with its elements moved by `shift` places along `axis`, as ``np.roll``: those that leave at the end come back at the start. Several axes take one shift, or one for each. Without an axis all elements are rolled as one line, and the shape stays."""
rot90: _types.Rot90
"""`x` turned by 90 degrees `k` times in the plane of two axes, from the first to the second, as ``np.rot90``."""
swapaxes: _types.Swapaxes
"""`x` with two axes exchanged, as ``np.swapaxes``. The result is a copy."""
take: _types.Take
"""The elements of `x` at `indices` along `axis`, as ``np.take``; with None `x` is taken as one axis."""
tile: _types.Tile
"""`x` again and again along each axis, as ``np.tile``: `reps` has a number for each of the last axes."""
transpose: _types.Transpose
"""`x` with its axes in the order `axes`, or reversed, as ``np.transpose``. The result is a copy."""

# ._places.joining
concatenate: _types.Concatenate
"""Tensors behind each other along `axis`, as ``np.concatenate``. All take NumPy's common dtype."""
stack: _types.Concatenate
"""Tensors of one shape behind each other on a new axis, `axis` of the result, as ``np.stack``. All take NumPy's common dtype."""

# ._places.repeating
repeat: _types.Repeat
"""Each element of `x` `repeats` times in a row along `axis`, as ``np.repeat``. Without an axis the result has one: that of all elements as one line."""

# ._places.splitting
@overload
def array_split(x: _types.Host | _types.Numbers, indices_or_sections: int | Sequence[int], axis: int = ..., **options: _types.Unpack[_types.Ordering]) -> list[_types.Array]: ...
@overload
def array_split(x: _types.Given | _types.Numbers, indices_or_sections: int | Sequence[int], axis: int = ..., **options: _types.Unpack[_types.Ordering]) -> list[kompute_py.Tensor[Any]]: ...
@overload
def hsplit(x: _types.Host | _types.Numbers, indices_or_sections: int | Sequence[int], **options: _types.Unpack[_types.Ordering]) -> list[_types.Array]: ...
@overload
def hsplit(x: _types.Given | _types.Numbers, indices_or_sections: int | Sequence[int], **options: _types.Unpack[_types.Ordering]) -> list[kompute_py.Tensor[Any]]: ...
@overload
def sliding_window_view(x: _types.Host | _types.Numbers, window_shape: int | Sequence[int], axis: int | Sequence[int] | None = ..., **options: _types.Unpack[_types.Ordering]) -> _types.Array: ...
@overload
def sliding_window_view(x: _types.Given | _types.Numbers, window_shape: int | Sequence[int], axis: int | Sequence[int] | None = ..., **options: _types.Unpack[_types.Ordering]) -> kompute_py.StridedView: ...
@overload
def split(x: _types.Host | _types.Numbers, indices_or_sections: int | Sequence[int], axis: int = ..., **options: _types.Unpack[_types.Ordering]) -> list[_types.Array]: ...
@overload
def split(x: _types.Given | _types.Numbers, indices_or_sections: int | Sequence[int], axis: int = ..., **options: _types.Unpack[_types.Ordering]) -> list[kompute_py.Tensor[Any]]: ...
@overload
def vsplit(x: _types.Host | _types.Numbers, indices_or_sections: int | Sequence[int], **options: _types.Unpack[_types.Ordering]) -> list[_types.Array]: ...
@overload
def vsplit(x: _types.Given | _types.Numbers, indices_or_sections: int | Sequence[int], **options: _types.Unpack[_types.Ordering]) -> list[kompute_py.Tensor[Any]]: ...

# ._linear.einsum
einsum: _types.Einsum
"""The sum of products that `subscripts` writes, as ``np.einsum``, of one, two or more arguments."""
inner: _types.Inner
"""The sum of products over the last axis of both, as ``np.inner``: shape a.shape[:-1] + b.shape[:-1]."""
outer: _types.Inner
"""The product of each element of `a` with each of `b`, as ``np.outer``: shape (a.size, b.size)."""
tensordot: _types.Tensordot
"""The sum of products over some axes of both, as ``np.tensordot``."""
trace: _types.Trace
"""The sum of a diagonal of `a`, as ``np.trace``: of each matrix along `axis1` and `axis2`."""

# ._linear.products
corrcoef: _types.Corrcoef
"""The correlations of variables, as ``np.corrcoef``: `cov`, by the roots of the variances."""
cov: _types.Cov
"""The covariances of variables, as ``np.cov``: rows of `m` and of `y`, or columns without `rowvar`."""
cross: _types.Cross
"""The cross products of vectors of three elements, as ``np.cross``."""
kron: _types.Kron
"""Blocks of `b`, each times an element of `a`, as ``np.kron``."""
matrix_norm: _types.MatrixNorm
"""The norm of matrices, which are two axes of `x`, as ``np.linalg.norm`` with two axes."""
norm: _types.Norm
"""The norm of vectors or matrices, as ``np.linalg.norm``."""
vdot: _types.Kron
"""The sum of products of all elements of `a`, conjugated, with those of `b`, as ``np.vdot``."""

# ._places.indexing
pad: _types.Pad
"""`x` with elements added at the ends of each axis, as ``np.pad``."""
put: _types.Put
"""`x` with `values` at `indices` of its elements in row-major order, as ``np.put``, which changes `x` itself: here ``out=x`` does."""
put_along_axis: _types.ScatterAdd
"""`x` with `values` at `indices` along `axis`, line by line, as ``np.put_along_axis``, which changes `x` itself: here ``out=x`` does."""
take_along_axis: _types.TakeAlongAxis
"""The elements of `x` at `indices` along `axis`, line by line, as ``np.take_along_axis``: such as the indices that `argsort` gives."""
tril: _types.Tril
"""Matrices with zeros above the diagonal `k`, as ``np.tril``: the last two axes of `x`. Positive `k` keep diagonals above the main one."""
triu: _types.Tril
"""Matrices with zeros below the diagonal `k`, as ``np.triu``: the last two axes of `x`. Positive `k` drop diagonals from the main one on."""

# ._linear.matrices
matmul: _types.Matmul
"""The matrix product of `a` and `b`, as ``np.matmul``."""

# ._linear.network
gelu: _types.RunStarts
"""`x` times the normal distribution's share below it, ``x / 2 * (1 + erf(x / sqrt(2)))``, as PyTorch's ``gelu``."""
gelu_tanh: _types.RunStarts
"""The approximation of `gelu` by tanh, as PyTorch's ``gelu(x, approximate="tanh")``::"""
layer_norm: _types.LayerNorm
"""`x` less its mean, over its standard deviation, along the last axes, as PyTorch's ``layer_norm``::"""
leaky_relu: _types.LeakyRelu
"""`x` where it is above 0, else ``x * slope``, as PyTorch's ``leaky_relu``."""
log_softmax: _types.LogSoftmax
"""The logarithm of the softmax of `x` along `axis`, as ``scipy.special.log_softmax``."""
logsumexp: _types.Logsumexp
"""The logarithm of the sum of exp of the elements along `axis`, as ``scipy.special.logsumexp``."""
relu: _types.Unary
"""`x` where it is above 0, else 0: ``np.maximum(x, 0)``. NaN stays."""
rms_norm: _types.RmsNorm
"""`x` over the root of the mean of its squares along the last axes, as PyTorch's ``rms_norm``::"""
silu: _types.RunStarts
"""`x` times its logistic function, ``x / (1 + exp(-x))``, as PyTorch's ``silu``."""
softmax: _types.LogSoftmax
"""exp of each element of `x`, over their sum along `axis`, as ``scipy.special.softmax``."""

# ._signals.filters
convolve: _types.Convolve
"""The convolution of two arrays with as many axes: of vectors as ``np.convolve``, of others as ``scipy.signal.convolve``."""
convolve1d: _types.Convolve1d
"""The convolution of `x` along `axis` with `weights`, as ``scipy.ndimage.convolve1d``: as `kp.ops.correlate1d` with the weights in the opposite order."""
correlate: _types.Convolve
"""The cross-correlation of two arrays with as many axes: of vectors as ``np.correlate``, of others as ``scipy.signal.correlate``, or with a border as ``scipy.ndimage.correlate``."""
correlate1d: _types.Convolve1d
"""The sums of the elements of `x` along `axis` times `weights`, as ``scipy.ndimage.correlate1d``: element i is the sum of ``weights[j] * x[i + j - len(weights) // 2]``."""
gaussian_filter1d: _types.GaussianFilter1d
"""The mean of the elements of `x` near each along `axis`, weighted by a normal curve with the standard deviation `sigma`, as ``scipy.ndimage.gaussian_filter1d``. Elements count up to a distance of ``truncate * sigma``, rounded. With `order`, it is the derivative of that order of the smoothed `x`."""

# ._signals.windows
gaussian_filter: _types.GaussianFilter
"""The mean of the elements of `x` near each, weighted by a normal curve, as ``scipy.ndimage.gaussian_filter``: a filter of `kp.ops.gaussian_filter1d` along each axis."""
maximum_filter: _types.MaximumFilter
"""The greatest of the elements of `x` in a window around each, as ``scipy.ndimage.maximum_filter``; NaN if one is."""
median_filter: _types.MaximumFilter
"""The median of the elements of `x` in a window around each, as ``scipy.ndimage.median_filter``; of an even number of elements the higher of the two. NaN count as above all."""
minimum_filter: _types.MaximumFilter
"""The least of the elements of `x` in a window around each, as ``scipy.ndimage.minimum_filter``; NaN if one is."""
prewitt: _types.Prewitt
"""How `x` changes along `axis`, as ``scipy.ndimage.prewitt``: the weights -1, 0, 1 along it, and 1, 1, 1 along the others."""
rank_filter: _types.RankFilter
"""The element with the rank `rank` of those of `x` in a window around each, as ``scipy.ndimage.rank_filter``: 0 is the least, -1 the greatest. NaN count as above all."""
sobel: _types.Prewitt
"""How `x` changes along `axis`, as ``scipy.ndimage.sobel``: the weights -1, 0, 1 along it, and 1, 2, 1 along the others."""
uniform_filter: _types.UniformFilter
"""The mean of the elements of `x` near each, as ``scipy.ndimage.uniform_filter``: a filter of `kp.ops.uniform_filter1d` along each axis."""
uniform_filter1d: _types.UniformFilter1d
"""The mean of `size` elements of `x` along `axis`, as ``scipy.ndimage.uniform_filter1d``: element i is that of ``x[i - size // 2]`` and those after it."""

# ._signals.resizing
resize: _types.Resize
"""`x` with another shape: each axis with another length is resampled."""

# ._signals.pictures
hsv_to_rgb: _types.HsvToRgb
"""Red, green and blue of pixels with hue, saturation and value, each from 0 to 1, as ``colorsys.hsv_to_rgb``."""
linear_to_srgb: _types.HsvToRgb
"""sRGB of pixels in linear light, by the curve of IEC 61966-2-1."""
premultiply_alpha: _types.HsvToRgb
"""The colours of `x` times its alpha, which stays."""
rgb_to_gray: _types.RgbToGray
"""The brightness of each pixel of `x`, with the weights of Rec. 601 or 709."""
rgb_to_hsv: _types.HsvToRgb
"""Hue, saturation and value of each pixel of `x`, each from 0 to 1, as ``colorsys.rgb_to_hsv``."""
rgb_to_ycbcr: _types.HsvToRgb
"""Brightness and colour differences of pixels, the YCbCr of JPEG: Rec. 601 with the full range."""
srgb_to_linear: _types.HsvToRgb
"""Linear light of pixels in sRGB, by the curve of IEC 61966-2-1."""
ycbcr_to_rgb: _types.HsvToRgb
"""Red, green and blue of pixels in the YCbCr of JPEG: Rec. 601 with the full range."""

# ._signals.fourier
fft: _types.Fft
"""The discrete Fourier transform of `x` along an axis: the sums of x[j] exp(-2 pi i j k / n)."""
fft2: _types.Fft2
"""The discrete Fourier transform of `x` along two axes."""
fftconvolve: _types.Fftconvolve
"""The convolution of `in1` with `in2` along `axes`, all by default, as ``scipy.signal.fftconvolve``."""
fftfreq: _types.Fftfreq
"""The frequencies of the numbers of `fft`, as ``np.fft.fftfreq``: 0, 1, ..., -2, -1, divided by `n` `d`."""
fftn: _types.Fft2
"""The discrete Fourier transform of `x` along several axes."""
fftshift: _types.Transpose
"""`x` with the frequency 0 in the middle of `axes`, as ``np.fft.fftshift``: all axes by default."""
ifft: _types.Fft
"""The inverse of `fft`: the sums of x[j] exp(2 pi i j k / n) along an axis, divided by n."""
ifft2: _types.Fft2
"""The inverse of `fft2`."""
ifftn: _types.Fft2
"""The inverse of `fftn`."""
ifftshift: _types.Transpose
"""The inverse of `fftshift`, as ``np.fft.ifftshift``: they differ for odd lengths."""
irfft: _types.Fft
"""The inverse of `rfft`: real numbers from half of their transform."""
irfft2: _types.Fft2
"""The inverse of `rfft2`: real numbers from half of their transform."""
irfftn: _types.Fft2
"""The inverse of `rfftn`: real numbers from half of their transform."""
rfft: _types.Fft
"""The half of `fft` of real numbers that the other half follows from."""
rfft2: _types.Fft2
"""The half of `fft2` of real numbers that the other half follows from."""
rfftfreq: _types.Fftfreq
"""The frequencies of the numbers of `rfft`, as ``np.fft.rfftfreq``: those of `fftfreq` from 0 on, to the half of `n`."""
rfftn: _types.Fft2
"""The half of `fftn` of real numbers that the other half follows from."""

def __getattr__(name: str) -> kompute_py.OpLibrary: ...  # the library of that name

# NumPy's other names.
abs = absolute
acos = arccos
acosh = arccosh
amax = max
amin = min
asin = arcsin
asinh = arcsinh
atan = arctan
atan2 = arctan2
atanh = arctanh
bitwise_invert = invert
bitwise_left_shift = left_shift
bitwise_not = invert
bitwise_right_shift = right_shift
concat = concatenate
conj = conjugate
mod = remainder
permute_dims = transpose
pow = power
true_divide = divide
