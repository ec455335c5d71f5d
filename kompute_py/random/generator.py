"""Generator: draws random numbers into tensors and arrays."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import as_index, as_shape, require_manager, to_dtype, to_flag
from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    kind_of,
    shown,
)
from .._manager.default import manager as default_manager
from .._memory.tensor import Tensor
from .philox import DRAWS, RECORDED, categories_of, rows_of

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .._custom.op_custom import OpCustom
    from .._manager.manager import Manager

    Numbers = Tensor | np.ndarray[Any, Any]

_NAME = "Philox4x32-10"
_FLOATS = ("float16", "float32", "float64")
_INTEGERS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_CHILDREN = 2**20
_POSITIONS, _JUMPS = 2**64, 2**32


class Generator:
    """Random numbers from a seed, drawn on a device.

    `seed` is an int from 0, a list of ints, a ``numpy.random.SeedSequence``, or None for one from the system.
    The same seed gives the same integers and uniform numbers, bit by bit, on every device; normal numbers
    differ by a few units in the last place, because devices divide and take roots differently. The numbers do
    not depend on how a shape is split into axes, but on all draws before.

    The draws have the names and the arguments of ``numpy.random.Generator``; the numbers are others. `size`
    is the shape of a new Tensor of `manager` (by default ``kp.manager()``); without it, the result is a
    number of Python. ``out=`` takes a Tensor or an array instead, and is returned. Methods that end in
    ``_op`` return an operation to record: each evaluation draws new numbers, from a stream of its own.

    The method is Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, 2011), with a key of 64 bits from the seed.
    Any number of threads may draw from one generator.

    Raises InvalidArgumentError for a negative seed, ArgumentTypeError for anything else.

    >>> generator = kp.random.Generator(7)
    >>> generator.integers(0, 10, size=6).tolist()
    [8, 1, 2, 1, 7, 6]
    >>> generator.random(3).shape
    (3,)
    """

    __module__ = "kompute_py.random"

    def __init__(
        self,
        seed: int | Sequence[int] | np.random.SeedSequence | None = None,
        *,
        manager: Manager | None = None,
    ) -> None:
        if manager is not None:
            require_manager(manager)
        self._manager = manager
        self._seeds = seed if isinstance(seed, np.random.SeedSequence) else _seeds_of(seed)
        key = self._seeds.generate_state(2, np.uint32)
        self._key = int(key[0]), int(key[1])
        self._position = 0
        self._jump = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<kp.random.Generator {_NAME}, key {self._key[1]:08x}{self._key[0]:08x}>"

    # -- streams ---------------------------------------------------------------------------------------------

    def spawn(self, count: int) -> list[Generator]:
        """`count` generators that are independent of this one and of each other.

        They are made from the children of the seed, as NumPy does (``SeedSequence.spawn``); a second call
        makes others. Raises InvalidArgumentError for a negative count or one above 1,048,576,
        FailedPreconditionError after `state` was set: the seed is not part of it.
        """
        count = as_index(count, "count")
        if not 0 <= count <= _CHILDREN:
            raise InvalidArgumentError(f"count is {count}; spawn 0 to {_CHILDREN} at once")
        if self._seeds is None:
            raise FailedPreconditionError("The state was set, so the seed that children come from is unknown")
        with self._lock:
            return [Generator(each, manager=self._manager) for each in self._seeds.spawn(count)]

    def jumped(self, jumps: int = 1) -> Generator:
        """A generator with the same key whose numbers begin 2**64 counters later for each jump, so that those
        of the two never meet. Jumps add up: there are 2**32.

        Raises InvalidArgumentError if `jumps` is not positive, OutOfRangeError beyond the last.
        """
        jumps = as_index(jumps, "jumps")
        if jumps < 1:
            raise InvalidArgumentError(f"jumps is {jumps}; jump once or more")
        if self._jump + jumps >= _JUMPS:
            raise OutOfRangeError(f"There are {_JUMPS} jumps; {self._jump} + {jumps} were asked for")
        made = self._same()
        made._jump = self._jump + jumps
        return made

    def _same(self) -> Generator:
        made = Generator.__new__(Generator)
        made._manager, made._seeds, made._key = self._manager, self._seeds, self._key
        made._position = made._jump = 0
        made._lock = threading.Lock()
        return made

    @property
    def state(self) -> dict[str, Any]:
        """All that the next numbers depend on: the method's name, the key (two uint32), the position and the
        jump. Can be saved as JSON, and set.

        Setting raises InvalidArgumentError for anything that is no such state.
        """
        with self._lock:
            return {
                "bit_generator": _NAME,
                "key": list(self._key),
                "position": self._position,
                "jump": self._jump,
            }

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        key, position, jump = _state_of(value)
        with self._lock:
            if key != self._key:
                self._seeds = None  # type: ignore[assignment]
            self._key, self._position, self._jump = key, position, jump

    def __reduce__(self) -> Any:
        """For copies and pickles, which draw the same numbers from ``kp.manager()``."""
        return _restored, (self.state, self._seeds)

    # -- draws -----------------------------------------------------------------------------------------------

    def random(
        self,
        size: int | Iterable[int] | None = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
    ) -> Any:
        """Uniform numbers in [0, 1): multiples of 2**-24 for float32, 2**-53 for float64, 2**-11 for float16.

        Raises ArgumentTypeError for another dtype, InvalidArgumentError if `out` has another shape than
        `size`, or another dtype, UnimplementedError for float64 on a device without it.
        """
        return self._drawn("uniform", size, dtype, out, _FLOATS, 0.0, 1.0)

    def uniform(
        self,
        low: float = 0.0,
        high: float = 1.0,
        size: int | Iterable[int] | None = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
    ) -> Any:
        """Uniform numbers from `low` to `high`: low + (high - low) * ``random()``, rounded twice, so that
        `high` itself can occur.

        Raises InvalidArgumentError if a bound is not finite, and the errors of `random`.
        """
        least, width = _bounds(low, high)
        return self._drawn("uniform", size, dtype, out, _FLOATS, least, width)

    def standard_normal(
        self,
        size: int | Iterable[int] | None = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
    ) -> Any:
        """Normal numbers with mean 0 and standard deviation 1. Raises the errors of `random`."""
        return self._drawn("normal", size, dtype, out, _FLOATS, 0.0, 1.0)

    def normal(
        self,
        loc: float = 0.0,
        scale: float = 1.0,
        size: int | Iterable[int] | None = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
    ) -> Any:
        """Normal numbers with mean `loc` and standard deviation `scale`, by Box and Muller's transform.

        None lies more than 6.7 deviations from the mean (float64: 9.4), because the words of a draw are
        finite. Raises InvalidArgumentError for a negative scale or a parameter that is not finite, and the
        errors of `random`.
        """
        mean, deviation = _moments(loc, scale)
        return self._drawn("normal", size, dtype, out, _FLOATS, mean, deviation)

    def integers(
        self,
        low: int,
        high: int | None = None,
        size: int | Iterable[int] | None = None,
        dtype: DTypeLike = np.int32,
        endpoint: bool = False,
        out: Numbers | None = None,
    ) -> Any:
        """Integers from `low` to `high`, without `high` unless `endpoint` is True; from 0 to `low` if `high`
        is None. All are equally likely. The default dtype is int32, because many devices have no int64.

        Raises InvalidArgumentError for bounds out of the dtype's or in the wrong order, and the errors of
        `random`.
        """
        kind = _dtype_of(dtype, out)
        words = _span(low, high, kind, to_flag(endpoint, "endpoint"))
        return self._drawn("integers", size, dtype, out, _INTEGERS, *words)

    def permutation(self, x: int | Numbers) -> Any:
        """The numbers below `x` in random order (int32), or the rows of `x` along its first axis: a new array
        or Tensor. All orders are equally likely.

        The order is that of random keys of 64 bits, which the host sorts. Raises InvalidArgumentError for a
        negative number or an array without axes, ArgumentTypeError for other types.
        """
        if isinstance(x, (Tensor, np.ndarray)):
            if not x.shape:
                raise InvalidArgumentError("permutation shuffles along the first axis; x has none")
            order = self._order(x.shape[0])
            if isinstance(x, np.ndarray):
                return x[order]
            return rows_of(x, x.manager.tensor_t(order))
        count = as_index(x, "x")
        if count < 0:
            raise InvalidArgumentError(f"permutation takes a number from 0, not {count}")
        return self._device().tensor_t(self._order(count))

    def choice(
        self,
        a: int | Numbers,
        size: int | Iterable[int] | None = None,
        replace: bool = True,
        p: Any = None,
    ) -> Any:
        """Elements of `a` (rows, if it has several axes), or numbers below `a`.

        With `replace`, an element may be drawn several times. `p` has the probability of each; they are
        rounded to multiples of 2**-32. Raises InvalidArgumentError if `a` is empty, if `p` does not fit or
        does not sum to 1 within 1e-6, if more are asked for than there are without `replace`, and for `p`
        without `replace`.
        """
        many = isinstance(a, (Tensor, np.ndarray))
        if many and not a.shape:  # type: ignore[union-attr]
            raise InvalidArgumentError("choice takes elements along the first axis; a has no axis")
        count = a.shape[0] if many else as_index(a, "a")  # type: ignore[union-attr, arg-type]
        shape = () if size is None else as_shape(size)
        wanted = int(np.prod(shape))
        if count < 1 and wanted:
            raise InvalidArgumentError("choice has nothing to choose from")
        owner = a.manager if isinstance(a, Tensor) else self._device()
        if not to_flag(replace, "replace"):
            if p is not None:
                raise InvalidArgumentError("choice takes p with replace=True only")
            if wanted > count:
                raise InvalidArgumentError(f"choice takes {wanted} of {count} without replace; take fewer")
            rows = owner.tensor_t(self._order(count)[:wanted].reshape(shape))
        elif p is not None:
            thresholds = owner.tensor_t(_thresholds(p, count))
            words = owner.empty(shape, np.uint32)
            self._fill("words", words)
            rows = categories_of(words, thresholds).view(np.int32)
        else:
            rows = owner.empty(shape, np.int32)
            self._fill("integers", rows, *_span(0, max(count, 1), rows.dtype, False))
        if not many:
            return rows if size is not None else rows.read().item()
        if isinstance(a, np.ndarray):
            return a[rows.read()]
        return rows_of(a, rows)

    # -- recorded draws --------------------------------------------------------------------------------------

    def random_op(self, out: Tensor) -> OpCustom:
        """`random` into `out`, to record. Raises the errors of `random`, ArgumentTypeError unless `out` is a
        Tensor.

        >>> generator, x = kp.random.Generator(1), mgr.zeros(4)
        >>> sequence = mgr.sequence().record(generator.random_op(x))
        >>> first = sequence.eval() and x.read()
        >>> bool((sequence.eval() and x.read() != first).all())
        True
        """
        return self._operation("uniform", out, _FLOATS, 0.0, 1.0)

    def uniform_op(self, out: Tensor, low: float = 0.0, high: float = 1.0) -> OpCustom:
        """`uniform` into `out`, to record. Raises the errors of `uniform` and `random_op`."""
        least, width = _bounds(low, high)
        return self._operation("uniform", out, _FLOATS, least, width)

    def normal_op(self, out: Tensor, loc: float = 0.0, scale: float = 1.0) -> OpCustom:
        """`normal` into `out`, to record. Raises the errors of `normal` and `random_op`."""
        mean, deviation = _moments(loc, scale)
        return self._operation("normal", out, _FLOATS, mean, deviation)

    def integers_op(self, out: Tensor, low: int, high: int | None = None, endpoint: bool = False) -> OpCustom:
        """`integers` into `out`, to record. Raises the errors of `integers` and `random_op`."""
        words = _span(low, high, _tensor(out).dtype, to_flag(endpoint, "endpoint"))
        return self._operation("integers", out, _INTEGERS, *words)

    # -- inside ----------------------------------------------------------------------------------------------

    def _device(self) -> Manager:
        return self._manager or default_manager()

    def _drawn(
        self, kind: str, size: Any, dtype: Any, out: Any, dtypes: tuple[str, ...], *parameters: Any
    ) -> Any:
        chosen = _dtype_of(dtype, out)
        _check_dtype(chosen, dtypes)
        if out is None:
            numbers = self._device().empty(() if size is None else as_shape(size), chosen)
        else:
            numbers = out
            if size is not None and as_shape(size) != tuple(out.shape):
                raise InvalidArgumentError(f"size is {shown(size)}, but out has the shape {tuple(out.shape)}")
        self._fill(kind, numbers, *parameters)
        return numbers.read().item() if size is None and out is None else numbers

    def _fill(self, kind: str, numbers: Numbers, *parameters: Any) -> None:
        each = 2 if numbers.dtype.itemsize == 8 else 4
        blocks = -(-int(np.prod(numbers.shape)) // each)
        with self._lock:
            position = self._position
            if position + blocks > _POSITIONS:
                raise OutOfRangeError("The generator has drawn all of its numbers; go on with jumped()")
            self._position = position + blocks
        words = map(_signed, (*self._key, position & 0xFFFFFFFF, position >> 32, self._jump))
        if isinstance(numbers, Tensor):
            DRAWS[kind](numbers, *words, *parameters)
        else:
            drawn = self._device().empty(numbers.shape, numbers.dtype)
            DRAWS[kind](drawn, *words, *parameters)
            np.copyto(numbers, drawn.read())

    def _operation(self, kind: str, out: Tensor, dtypes: tuple[str, ...], *parameters: Any) -> OpCustom:
        numbers = _tensor(out)
        _check_dtype(numbers.dtype, dtypes)
        own = self.spawn(1)[0]
        state = numbers.manager.zeros(2, np.uint32)
        return RECORDED[kind].op(numbers, state, *map(_signed, (*own._key, 0)), *parameters)

    def _order(self, count: int) -> np.ndarray[Any, np.dtype[np.int32]]:
        """A random order of the numbers below `count`."""
        if count > 2**31 - 1:
            raise OutOfRangeError(f"Orders have at most {2**31 - 1} numbers, not {count}")
        words = self._device().empty((count, 2), np.uint32)
        self._fill("words", words)
        keys = words.read().astype(np.uint64)
        order = np.argsort(keys[:, 0] << np.uint64(32) | keys[:, 1], kind="stable")
        return order.astype(np.int32)


def _restored(state: Any, seeds: Any) -> Generator:
    made = Generator(0)
    made._key, made._position, made._jump = _state_of(state)
    made._seeds = seeds
    return made


def _seeds_of(seed: Any) -> np.random.SeedSequence:
    try:
        return np.random.SeedSequence(seed)
    except ValueError:
        raise InvalidArgumentError(f"A seed is not negative; {shown(seed)} was given") from None
    except TypeError:
        raise ArgumentTypeError(f"A seed is an int or a list of ints, not {kind_of(seed)}") from None


def _state_of(value: Any) -> tuple[tuple[int, int], int, int]:
    def whole(name: str, limit: int, number: Any) -> int:
        if type(number) is not int or not 0 <= number < limit:
            raise InvalidArgumentError(f"The state's {name} is {shown(number)}; it is an int below {limit}")
        return number

    if not isinstance(value, dict) or value.get("bit_generator") != _NAME:
        raise InvalidArgumentError(f"The state of a generator is a dict of {_NAME!r}, not {shown(value)}")
    key = value.get("key")
    if not isinstance(key, (list, tuple)) or len(key) != 2:
        raise InvalidArgumentError(f"The state's key is {shown(key)}; it has two ints")
    low, high = (whole("key", 2**32, each) for each in key)
    return (
        (low, high),
        whole("position", _POSITIONS + 1, value.get("position")),
        whole("jump", _JUMPS, value.get("jump")),
    )


def _signed(word: int) -> int:
    """The int of 32 bits with the bits of an unsigned one."""
    return word - 2**32 if word >= 2**31 else word


def _tensor(out: Any) -> Tensor:
    if not isinstance(out, Tensor):
        raise ArgumentTypeError(f"A recorded draw writes a Tensor, not {kind_of(out)}")
    return out


def _dtype_of(dtype: Any, out: Any) -> np.dtype[Any]:
    if out is None:
        return to_dtype(dtype)
    if not isinstance(out, (Tensor, np.ndarray)):
        raise ArgumentTypeError(f"out is a Tensor or an array, not {kind_of(out)}")
    return out.dtype


def _check_dtype(dtype: np.dtype[Any], dtypes: tuple[str, ...]) -> None:
    if dtype.name not in dtypes:
        raise ArgumentTypeError(f"These numbers are {', '.join(dtypes)}, not {dtype}")


def _number(value: Any, name: str) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        raise ArgumentTypeError(f"{name} is a number, not {kind_of(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise InvalidArgumentError(f"{name} is {shown(value)}, out of bounds for a float") from None
    if not np.isfinite(number):
        raise InvalidArgumentError(f"{name} is {number}; it must be finite")
    return number


def _bounds(low: Any, high: Any) -> tuple[float, float]:
    least, most = _number(low, "low"), _number(high, "high")
    if not np.isfinite(most - least):
        raise InvalidArgumentError(f"{least} to {most} is too wide for a float")
    return least, most - least


def _moments(loc: Any, scale: Any) -> tuple[float, float]:
    mean, deviation = _number(loc, "loc"), _number(scale, "scale")
    if deviation < 0:
        raise InvalidArgumentError(f"scale is {deviation}; it cannot be negative")
    return mean, deviation


def _span(low: Any, high: Any, dtype: np.dtype[Any], endpoint: bool) -> tuple[int, int, int, int]:
    """The words of the least number and of the distance to the greatest one."""
    _check_dtype(dtype, _INTEGERS)
    least, most = (
        (0, as_index(low, "low")) if high is None else (as_index(low, "low"), as_index(high, "high"))
    )
    most -= not endpoint
    bounds = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    if most < least:
        raise InvalidArgumentError(f"There is no integer from {least} to {most}")
    if least < bounds[0] or most > bounds[1]:
        raise InvalidArgumentError(f"{least} to {most} is out of bounds for {dtype}; give another dtype")
    start, span = least % 2**64, most - least
    words = (start & 0xFFFFFFFF, start >> 32, span & 0xFFFFFFFF, span >> 32)
    first, second, third, fourth = map(_signed, words)
    return first, second, third, fourth


def _thresholds(p: Any, count: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """For each category but the last that can occur, the first word that is beyond it."""
    try:
        chances = np.asarray(p.read() if isinstance(p, Tensor) else p, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentTypeError(f"p has a probability for each element, not {kind_of(p)}") from None
    if chances.shape != (count,):
        raise InvalidArgumentError(f"p has the shape {chances.shape}; give one number for each of {count}")
    if not (chances >= 0).all() or not abs(chances.sum() - 1) < 1e-6:
        raise InvalidArgumentError("p has probabilities: from 0, with the sum 1")
    last = int(chances.nonzero()[0][-1])
    ends = np.round(np.cumsum(chances)[:last] / chances.sum() * 2.0**32)
    return np.minimum(ends, 2.0**32 - 1).astype(np.uint32)


_default: Generator | None = None
_default_lock = threading.Lock()


def default_generator() -> Generator:
    """The process's generator, which functions without one use. Its seed is the system's.

    >>> kp.random.default_generator()
    <kp.random.Generator Philox4x32-10, key ...>
    """
    global _default
    with _default_lock:
        if _default is None:
            _default = Generator()
        return _default


def fill_randn(out: Numbers, generator: Generator | None = None) -> Numbers:
    """Fills `out` (float16, float32 or float64) with standard normal numbers, and returns it.

    Raises the errors of `Generator.standard_normal`.

    >>> kp.random.fill_randn(mgr.zeros((2, 3)), kp.random.Generator(1)).shape
    (2, 3)
    """
    return _generator(generator).standard_normal(out=_given(out))  # type: ignore[no-any-return]


def fill_uniform(
    out: Numbers, low: float = 0.0, high: float = 1.0, generator: Generator | None = None
) -> Numbers:
    """Fills `out` with uniform numbers from `low` to `high`, and returns it.

    Raises the errors of `Generator.uniform`.

    >>> kp.random.fill_uniform(mgr.zeros(3), -1, 1).shape
    (3,)
    """
    return _generator(generator).uniform(low, high, out=_given(out))  # type: ignore[no-any-return]


def fill_randint(
    out: Numbers, low: int, high: int | None = None, generator: Generator | None = None
) -> Numbers:
    """Fills `out` with integers from `low` to below `high`, and returns it.

    Raises the errors of `Generator.integers`.

    >>> kp.random.fill_randint(mgr.zeros(3, "uint8"), 256).dtype
    dtype('uint8')
    """
    return _generator(generator).integers(low, high, out=_given(out))  # type: ignore[no-any-return]


def _given(out: Any) -> Any:
    if out is None:
        raise ArgumentTypeError("out is a Tensor or an array, not None")
    return out


def _generator(given: Generator | None) -> Generator:
    if given is None:
        return default_generator()
    if not isinstance(given, Generator):
        raise ArgumentTypeError(f"generator is a kp.random.Generator, not {kind_of(given)}")
    return given
