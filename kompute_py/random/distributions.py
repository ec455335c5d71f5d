"""The distributions of `Generator` that have a shape, and their operations to record."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base.arrays import as_index, as_shape, refuse_mask, to_array, to_dtype
from .._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of, shown
from .._builders.elementwise import elementwise
from .._device.transfers import on_host
from .._functions.called import called_methods
from .._functions.op_custom import OpCustom
from .._memory.strided import StridedView
from .._memory.tensor import Tensor
from ..ops._linear.network import softmax
from ..ops._places.moving import broadcast_to
from .shaped import LEAST_CHANCE, MOST_COUNT, MOST_MEAN

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike
    from typing_extensions import Unpack

    from .._manager.manager import Manager
    from .._sync.semaphore import Ordering

    Numbers = Tensor | StridedView | np.ndarray[Any, Any]
    Parameter = Tensor | StridedView | ArrayLike
    Size = int | Iterable[int] | None

FLOATS = ("float16", "float32", "float64")
COUNTS = ("int32", "uint32", "int64", "uint64")
_MOST_COLUMNS = 2**16
_MOST_PARAMETERS = 2**28  # of an array, which the host checks

_SCALED = elementwise("n * scale if scale >= 0 else nan")
PLACED = elementwise("n * scale + loc if scale >= 0 else nan")
_EXPONENT = elementwise("exp(n * scale + loc) if scale >= 0 else nan")
_TWICE = elementwise("n * 2")
BETWEEN = elementwise(
    "_number = n * (high - low) + low; _width = high - low; _last = nextafter(high, low); "
    "maximum(_number, _last) if -inf < _width < 0 else minimum(_number, _last) if 0 <= _width < inf else nan"
)
_NARROW = elementwise("x", dtype="float16")
_HALF = elementwise("x * 0.5")
_SIGNED = elementwise(
    "(p if p >= 0 else nan) if p <= 0.5 else p - 1 if p < 1 else -1 if p == 1 else nan", dtype="float32"
)
"""A probability as kernels of counts take it."""
_PLAIN = {"normal": (0.0, 1.0), "uniform": (0.0, 1.0, 1.0)}
"""Parameters of draws that are placed afterwards."""

Rule = tuple[str, Callable[[Any], Any]]
_POSITIVE: Rule = ("above 0 and finite", lambda x: (x > 0) & np.isfinite(x))
_NOT_NEGATIVE: Rule = ("0 or more and finite", lambda x: (x >= 0) & np.isfinite(x))
_FINITE: Rule = ("finite", np.isfinite)
_ANY: Rule = ("numbers", lambda x: x == x)
_MEAN: Rule = (f"from 0 to {MOST_MEAN}", lambda x: (x >= 0) & (x <= MOST_MEAN))
_COUNT: Rule = (
    f"a whole number from 0 to {MOST_COUNT}",
    lambda x: (x >= 0) & (x <= MOST_COUNT) & (x == np.floor(x)),
)
_CHANCE: Rule = ("from 0 to 1", lambda x: (x >= 0) & (x <= 1))
_SOME_CHANCE: Rule = ("from 2**-20 to 1", lambda x: (x >= LEAST_CHANCE) & (x <= 1))


def on_device(value: Any) -> bool:
    """Whether a parameter is a Tensor or a part of one."""
    return isinstance(value, (Tensor, StridedView))


def is_array(value: Any) -> bool:
    """Whether a parameter has several elements, or may have."""
    return on_device(value) or (hasattr(value, "__len__") and getattr(value, "ndim", 1) > 0)


class Given(NamedTuple):
    """A parameter's name, what was given for it, and the rule of its numbers."""

    name: str
    value: Any
    rule: Rule


def parameter(given: Given, dtype: np.dtype[Any]) -> Any:
    """A Tensor as it is, or anything else as a checked array of float64.

    Raises ArgumentTypeError unless it has real numbers, InvalidArgumentError if one breaks the rule, or does
    so in `dtype`, or there are too many.
    """
    name, value, (words, holds) = given
    if on_device(value):
        value._require_init("be used")
        if value.dtype.kind not in "biuf":
            raise ArgumentTypeError(f"{name} is of {value.dtype}; give real numbers")
        return value
    if isinstance(value, (bool, np.bool_)):
        raise ArgumentTypeError(f"{name} is a number, not {kind_of(value)}")
    found = to_array(value, name)
    if found.dtype.kind not in "iuf":
        raise ArgumentTypeError(f"{name} is a number or an array of numbers, not {shown(value)}")
    if found.size > _MOST_PARAMETERS:
        raise InvalidArgumentError(
            f"{name} has {found.size} numbers; give more than {_MOST_PARAMETERS} as a Tensor"
        )
    found = found.astype(np.float64)
    if not np.all(holds(found)):
        wrong = found[~holds(found)].ravel()[0]
        raise InvalidArgumentError(f"{name} has {wrong:g}; give numbers that are {words}")
    with np.errstate(over="ignore"):
        fits = holds(found.astype(dtype))
    if not np.all(fits):
        wrong = found[~fits].ravel()[0]
        raise InvalidArgumentError(
            f"{name} has {wrong:g}, out of bounds for {dtype}: give numbers that are {words} in it"
        )
    return found


def common_shape(values: Iterable[Any]) -> tuple[int, ...]:
    """The shape to which parameters broadcast. Raises InvalidArgumentError if they do not."""
    shapes = [tuple(each.shape) for each in values]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise InvalidArgumentError(f"Parameters of the shapes {shapes} do not broadcast together") from None


def _check_broadcast(shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Raises InvalidArgumentError unless parameters of this shape broadcast to the one that is wanted."""
    ends = wanted[len(wanted) - len(shape) :]
    if len(shape) > len(wanted) or any(n not in (1, m) for n, m in zip(shape, ends, strict=True)):
        raise InvalidArgumentError(f"Parameters of shape {shape} do not broadcast to {wanted}")


def spread(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any], owner: Manager) -> Tensor:
    """A parameter as a Tensor of `owner` with one element, or with as many as `shape`.

    Raises InvalidArgumentError if it does not broadcast to `shape`.
    """
    count = math.prod(value.shape)
    _check_broadcast(tuple(value.shape), shape)
    if on_device(value):
        found = value if value.dtype == dtype else elementwise("x", dtype=dtype.name)(value)
        return found if count == 1 or tuple(found.shape) == shape else broadcast_to(found, shape)
    made = value.astype(dtype)
    if count != 1 and math.prod(shape):
        made = np.ascontiguousarray(np.broadcast_to(made, shape))
    return owner.tensor_t(made if made.size else np.zeros(1, dtype))


class Recorded(NamedTuple):
    """Given for ``out``, a method returns the operation that writes the tensor, to record."""

    tensor: Any


def recorded(out: Any) -> Any:
    """A `Recorded`. Raises ArgumentTypeError unless `out` is a Tensor or a part of one."""
    if not on_device(out):
        raise ArgumentTypeError(f"A recorded draw writes a Tensor, not {kind_of(out)}")
    return Recorded(out)


@called_methods
class Distributions:
    """Base of `Generator`: distributions with a shape.

    Their parameters are numbers, or arrays and Tensors that broadcast with each other and with `size`. The
    elements of Tensors are not checked: outside of what a distribution allows, floats are NaN or infinite and
    counts are -1.
    """

    if TYPE_CHECKING:

        def _device(self) -> Manager: ...

        def _owner(self, *values: Any) -> Manager: ...

        def _fill(self, kind: str, numbers: Any, *parameters: Any) -> None: ...

        def _recorded(self, kind: str, numbers: Any, *parameters: Any) -> OpCustom: ...

    def _shaped(
        self,
        name: str,
        size: Any,
        dtype: Any,
        out: Any,
        shapes: tuple[Given, ...] = (),
        after: Any = None,
        places: tuple[Given, ...] = (),
        *,
        kind: str = "",
        given: tuple[Any, ...] | None = None,
    ) -> Any:
        """Draws numbers of a `kind`, by default `name`, with the parameters `shapes`, or with those that are
        `given` as they are, then applies the function `after` to the numbers and `places`. For a `Recorded`
        it is the operation that does so.
        """
        chosen, kind = dtype_of(dtype, out), kind or name
        check_dtype(chosen, COUNTS if kind in ("poisson", "binomial", "geometric", "multinomial") else FLOATS)
        # Kernels compute float16 with float32, and counts too.
        wide = np.dtype(np.float64 if chosen == np.float64 else np.float32)
        checked = [parameter(each, wide) for each in shapes]
        placed = [parameter(each, chosen) for each in places]
        records = isinstance(out, Recorded)
        out = out.tensor if records else out
        shape = common_shape([*checked, *placed])
        wanted = shape if size is None else as_shape(size)
        if out is not None:
            if size is not None and wanted != tuple(out.shape):
                raise InvalidArgumentError(f"size is {shown(size)}, but out has the shape {tuple(out.shape)}")
            wanted = tuple(out.shape)
        _check_broadcast(shape, wanted)
        owner = self._owner(out, *checked, *placed)
        numbers = out if on_device(out) else owner.empty(wanted, chosen)
        if given is None:
            given = (*_PLAIN.get(kind, ()), *(spread(each, wanted, wide, owner) for each in checked))
        draw: Callable[..., Any] = self._recorded if records else self._fill
        # Before `after`, numbers may be beyond float16. Uniform ones of float16 have digits of their own.
        drawn = numbers if after is None or chosen == wide or kind == "uniform" else owner.empty(wanted, wide)
        operations = [draw(kind, drawn, *given)]
        if after is not None:
            spread_out = (spread(each, wanted, drawn.dtype, owner) for each in placed)
            operations.append((after.op if records else after)(drawn, *spread_out, out=drawn))
        if drawn is not numbers:
            operations.append((_NARROW.op if records else _NARROW)(drawn, out=numbers))
        if records:
            return operations[0] if len(operations) == 1 else OpCustom._joined(name, operations, (out,))
        if isinstance(out, np.ndarray):
            if owner._guard is not None:
                on_host(owner._guard, f"{name}: out", out.nbytes)
            np.copyto(out, numbers.read())
            return out
        single = out is None and size is None and not wanted and not any(map(on_device, (*checked, *placed)))
        return numbers.read().item() if single else numbers

    def _op(self, out: Any, draw: Callable[..., OpCustom], *args: Any, **named: Any) -> OpCustom:
        """The operation of a draw into `out`, to record."""
        return draw(*args, **named, out=recorded(out))

    # -- floats ----------------------------------------------------------------------------------------------

    def standard_exponential(
        self,
        size: Size = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Exponential numbers with mean 1: minus the logarithm of a uniform one. None is above 22.2 (float64:
        44.4). Raises the errors of `random`.
        """
        return self._shaped("exponential", size, dtype, out)

    def exponential(
        self,
        scale: Parameter = 1.0,
        size: Size = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Exponential numbers with the mean `scale`, which may be an array or a Tensor.

        Raises InvalidArgumentError for a scale that is negative or not finite, or does not broadcast, and the
        errors of `random`.

        >>> kp.random.Generator(7).exponential([1, 10], (3, 2)).shape
        (3, 2)
        """
        places = (Given("scale", scale, _NOT_NEGATIVE),)
        return self._shaped("exponential", size, dtype, out, (), _SCALED, places)

    def exponential_op(self, out: Tensor | StridedView, scale: Parameter = 1.0) -> OpCustom:
        """`exponential` into `out`, to record. Raises the errors of `exponential` and `random_op`."""
        return self._op(out, self.exponential, scale)

    def laplace(
        self,
        loc: Parameter = 0.0,
        scale: Parameter = 1.0,
        size: Size = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Laplace's double exponential numbers around `loc`. Raises the errors of `exponential`."""
        return self._shaped("laplace", size, dtype, out, (), PLACED, loc_scale(loc, scale))

    def laplace_op(self, out: Tensor | StridedView, loc: Parameter = 0.0, scale: Parameter = 1.0) -> OpCustom:
        """`laplace` into `out`, to record. Raises the errors of `laplace` and `random_op`."""
        return self._op(out, self.laplace, loc, scale)

    def standard_cauchy(
        self,
        size: Size = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Cauchy's numbers around 0: the quotient of two normal ones. Raises the errors of `random`."""
        return self._shaped("cauchy", size, dtype, out)

    def cauchy(
        self,
        loc: Parameter = 0.0,
        scale: Parameter = 1.0,
        size: Size = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Cauchy's numbers with the median `loc` and the half width `scale`. Raises the errors of
        `exponential`.
        """
        return self._shaped("cauchy", size, dtype, out, (), PLACED, loc_scale(loc, scale))

    def cauchy_op(self, out: Tensor | StridedView, loc: Parameter = 0.0, scale: Parameter = 1.0) -> OpCustom:
        """`cauchy` into `out`, to record. Raises the errors of `cauchy` and `random_op`."""
        return self._op(out, self.cauchy, loc, scale)

    def lognormal(
        self,
        mean: Parameter = 0.0,
        sigma: Parameter = 1.0,
        size: Size = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Numbers with normal logarithms, of the mean `mean` and the deviation `sigma`. Raises the
        errors of `exponential`.
        """
        places = Given("sigma", sigma, _NOT_NEGATIVE), Given("mean", mean, _FINITE)
        return self._shaped("lognormal", size, dtype, out, (), _EXPONENT, places, kind="normal")

    def lognormal_op(
        self, out: Tensor | StridedView, mean: Parameter = 0.0, sigma: Parameter = 1.0
    ) -> OpCustom:
        """`lognormal` into `out`, to record. Raises the errors of `lognormal` and `random_op`."""
        return self._op(out, self.lognormal, mean, sigma)

    def standard_gamma(
        self,
        shape: Parameter,
        size: Size = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Gamma numbers with the scale 1. Raises the errors of `gamma`."""
        return self._shaped("gamma", size, dtype, out, (Given("shape", shape, _POSITIVE),))

    def gamma(
        self,
        shape: Parameter,
        scale: Parameter = 1.0,
        size: Size = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Gamma numbers of a `shape` above 0 and a `scale`, by Marsaglia and Tsang's method (2000).

        Raises InvalidArgumentError for a shape that is not above 0 or not finite, and the errors of
        `exponential`.

        >>> kp.random.Generator(7).gamma(2.5, size=4).shape
        (4,)
        """
        shapes, places = (Given("shape", shape, _POSITIVE),), (Given("scale", scale, _NOT_NEGATIVE),)
        return self._shaped("gamma", size, dtype, out, shapes, _SCALED, places)

    def gamma_op(self, out: Tensor | StridedView, shape: Parameter, scale: Parameter = 1.0) -> OpCustom:
        """`gamma` into `out`, to record. Raises the errors of `gamma` and `random_op`."""
        return self._op(out, self.gamma, shape, scale)

    def chisquare(
        self,
        df: Parameter,
        size: Size = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Sums of the squares of `df` normal numbers: twice a gamma number of shape df / 2. Raises the errors
        of `gamma`.
        """
        found = parameter(Given("df", df, _POSITIVE), np.dtype(np.float64))
        half = Given("df / 2", _HALF(found) if on_device(found) else found / 2, _POSITIVE)
        return self._shaped("chisquare", size, dtype, out, (half,), _TWICE, kind="gamma")

    def chisquare_op(self, out: Tensor | StridedView, df: Parameter) -> OpCustom:
        """`chisquare` into `out`, to record. Raises the errors of `chisquare` and `random_op`."""
        return self._op(out, self.chisquare, df)

    def beta(
        self,
        a: Parameter,
        b: Parameter,
        size: Size = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Beta numbers of `a` and `b` above 0: x / (x + y) of two gamma numbers, by their logarithms if `a`
        or `b` is below 1. Raises the errors of `gamma`.
        """
        shapes = Given("a", a, _POSITIVE), Given("b", b, _POSITIVE)
        return self._shaped("beta", size, dtype, out, shapes)

    def beta_op(self, out: Tensor | StridedView, a: Parameter, b: Parameter) -> OpCustom:
        """`beta` into `out`, to record. Raises the errors of `beta` and `random_op`."""
        return self._op(out, self.beta, a, b)

    def dirichlet(
        self,
        alpha: Parameter,
        size: Size = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Dirichlet's rows of positive numbers with the sum 1: gamma numbers of the shapes `alpha`, divided
        by their sum. The result has the axes of `size`, and one for the elements of `alpha`.

        Raises InvalidArgumentError unless `alpha` has one axis with an element or more, and the errors of
        `gamma`.
        """
        rows = Given("alpha", alpha, _POSITIVE)
        rows = rows._replace(value=_rows(rows))
        wanted = None if size is None else (*as_shape(size), *rows.value.shape)
        return self._shaped("dirichlet", wanted, dtype, out, (rows,), softmax, kind="log_gamma")

    def dirichlet_op(self, out: Tensor, alpha: Parameter) -> OpCustom:
        """`dirichlet` into `out`, to record. Raises the errors of `dirichlet` and `random_op`."""
        return self._op(out, self.dirichlet, alpha)

    # -- counts ----------------------------------------------------------------------------------------------

    def poisson(
        self,
        lam: Parameter = 1.0,
        size: Size = None,
        dtype: DTypeLike = np.int32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """How often something happens that happens `lam` times on average, by Hörmann's PTRS (1993).

        Raises InvalidArgumentError for a `lam` outside 0 to 16,000,000, or that does not broadcast;
        ArgumentTypeError for another dtype than int32, uint32, int64 and uint64.

        >>> kp.random.Generator(7).poisson([1, 1000], (4, 2)).shape
        (4, 2)
        """
        return self._shaped("poisson", size, dtype, out, (Given("lam", lam, _MEAN),))

    def poisson_op(self, out: Tensor | StridedView, lam: Parameter = 1.0) -> OpCustom:
        """`poisson` into `out`, to record. Raises the errors of `poisson` and `random_op`."""
        return self._op(out, self.poisson, lam)

    def binomial(
        self,
        n: Parameter,
        p: Parameter,
        size: Size = None,
        dtype: DTypeLike = np.int32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """How many of `n` tries succeed that each succeed with the probability `p`, by Hörmann's BTRS (1993).

        Raises InvalidArgumentError for an `n` that is not whole or outside 0 to 2**24, a `p` outside 0 to 1,
        and the errors of `poisson`.
        """
        chances = parameter(Given("p", p, _CHANCE), np.dtype(np.float64))
        signed = _SIGNED(chances) if on_device(chances) else _signed(chances, 1 - chances)
        shapes = Given("n", n, _COUNT), Given("p", signed, _ANY)
        return self._shaped("binomial", size, dtype, out, shapes)

    def binomial_op(self, out: Tensor | StridedView, n: Parameter, p: Parameter) -> OpCustom:
        """`binomial` into `out`, to record. Raises the errors of `binomial` and `random_op`."""
        return self._op(out, self.binomial, n, p)

    def geometric(
        self,
        p: Parameter,
        size: Size = None,
        dtype: DTypeLike = np.int32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """How many tries it takes until one succeeds, each with the probability `p`: 1 or more.

        Raises InvalidArgumentError for a `p` outside 2**-20 to 1, and the errors of `poisson`.
        """
        return self._shaped("geometric", size, dtype, out, (Given("p", p, _SOME_CHANCE),))

    def geometric_op(self, out: Tensor | StridedView, p: Parameter) -> OpCustom:
        """`geometric` into `out`, to record. Raises the errors of `geometric` and `random_op`."""
        return self._op(out, self.geometric, p)

    def multinomial(
        self,
        n: int,
        pvals: ArrayLike,
        size: Size = None,
        dtype: DTypeLike = np.int32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Rows that tell how often each outcome occurs in `n` tries, with the probabilities `pvals`: for each
        a binomial number of what is left. The result has the axes of `size`, and one for the outcomes.

        Raises InvalidArgumentError for an `n` outside 0 to 2**24, unless `pvals` has one axis of 1 to 65,536
        numbers from 0 on with the sum 1 (as in NumPy, a last one may be less), and the errors of `poisson`.
        """
        count, chances = _tries(n), _conditional(pvals)
        wanted = None if size is None else (*as_shape(size), *chances.shape)
        target: Any = out.tensor if isinstance(out, Recorded) else out
        if hasattr(target, "shape") and tuple(target.shape)[-1:] != chances.shape:
            raise InvalidArgumentError(
                f"out has the shape {tuple(target.shape)}; its last axis is {chances.size}"
            )
        given = self._owner(target).tensor_t(chances), count
        shapes = (Given("pvals", given[0], _ANY),)
        return self._shaped("multinomial", wanted, dtype, out, shapes, given=given)

    def multinomial_op(self, out: Tensor, n: int, pvals: ArrayLike) -> OpCustom:
        """`multinomial` into `out`, to record. Raises the errors of `multinomial` and `random_op`."""
        return self._op(out, self.multinomial, n, pvals)


def dtype_of(dtype: Any, out: Any) -> np.dtype[Any]:
    """The dtype of a draw into `out`, or of `dtype`. Raises an error if `out` cannot be written."""
    out = out.tensor if isinstance(out, Recorded) else out
    if out is None:
        return to_dtype(dtype)
    if not isinstance(out, (Tensor, StridedView, np.ndarray)):
        raise ArgumentTypeError(f"out is a Tensor or an array, not {kind_of(out)}")
    refuse_mask(out, "out")
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise InvalidArgumentError("out is a read-only array; give one that can be written")
    return out.dtype


def check_dtype(dtype: np.dtype[Any], dtypes: tuple[str, ...]) -> None:
    """Raises ArgumentTypeError unless `dtype` is one of those that a distribution has."""
    if dtype.name not in dtypes:
        raise ArgumentTypeError(f"These numbers are {', '.join(dtypes)}, not {dtype}")


def loc_scale(loc: Any, scale: Any) -> tuple[Given, Given]:
    """Scale and loc, in the order of the formula."""
    return Given("scale", scale, _NOT_NEGATIVE), Given("loc", loc, _FINITE)


def between(low: Any, high: Any, dtype: np.dtype[Any]) -> tuple[Given, Given]:
    """High and low, in the order of the formula. Raises InvalidArgumentError if they are too far apart."""
    check_dtype(dtype, FLOATS)
    given = Given("high", high, _FINITE), Given("low", low, _FINITE)
    ends = [parameter(each, dtype) for each in given]
    if not any(map(on_device, ends)):
        common_shape(ends)
        most = np.finfo(dtype).max
        if not np.all(np.abs(ends[0] / 2 - ends[1] / 2) <= most / 2):
            raise InvalidArgumentError(f"low and high are further apart than {most:g}, where {dtype} ends")
    return given


def _rows(given: Given) -> Any:
    """One axis of numbers."""
    value = parameter(given, np.dtype(np.float64))
    if len(value.shape) != 1 or not value.shape[0]:
        raise InvalidArgumentError(
            f"{given.name} has the shape {tuple(value.shape)}; give one axis of numbers"
        )
    return value


def _signed(chances: Any, opposite: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Probabilities as kernels of counts take them, from those and their opposites."""
    return np.where(chances > 0.5, np.where(opposite > 0, -opposite, -1.0), chances)


def _tries(n: Any) -> int:
    count = as_index(n, "n")
    if not 0 <= count <= MOST_COUNT:
        raise InvalidArgumentError(f"n is {count}; give 0 to {MOST_COUNT}")
    return count


def _conditional(pvals: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The probability of each outcome among those that follow it."""
    if on_device(pvals):
        pvals = np.asarray(pvals)
    found = _rows(Given("pvals", pvals, _CHANCE))
    if found.size > _MOST_COLUMNS:
        raise InvalidArgumentError(f"pvals has {found.size} numbers; {_MOST_COLUMNS} at most")
    if found[:-1].sum() > 1 + 1e-6:
        raise InvalidArgumentError(f"pvals has the sum {found.sum():g}; probabilities have 1")
    left = np.maximum(1 - np.concatenate([[0.0], np.cumsum(found)]), 0.0)
    before, after = left[:-1], left[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        chances = np.where(before > 1e-12, np.minimum(found / before, 1), 1.0)
        return _signed(chances, np.where(before > 1e-12, after / before, 0.0)).astype(np.float32)
