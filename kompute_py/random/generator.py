"""Generator: draws random numbers into tensors and arrays."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import as_index, as_shape, refuse_mask, to_flag
from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfMemoryError,
    OutOfRangeError,
    kind_of,
    shown,
)
from .._device.device import require_manager
from .._device.transfers import on_host
from .._functions.called import called, called_methods
from .._functions.op_custom import OpCustom
from .._manager.default import manager as default_manager
from .._memory.strided import StridedView
from .._memory.tensor import Tensor
from ..ops._places.moving import ascontiguousarray, take
from .chances import sums_of
from .distributions import (
    BETWEEN,
    FLOATS,
    PLACED,
    Distributions,
    Recorded,
    between,
    check_dtype,
    dtype_of,
    is_array,
    loc_scale,
    recorded,
)
from .orders import ORDERS, RECORDED_ORDERS
from .philox import DRAWS, RECORDED
from .shaped import RECORDED_SHAPED, SHAPED

if TYPE_CHECKING:
    from numpy.typing import DTypeLike
    from typing_extensions import Unpack

    from .._manager.manager import Manager
    from .._sync.semaphore import Ordering
    from .distributions import Parameter

    Numbers = Tensor | StridedView | np.ndarray[Any, Any]

_NAME = "Philox4x32-10"
_INTEGERS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_DRAWS = {**DRAWS, **ORDERS, **SHAPED}
_RECORDED = {**RECORDED, **RECORDED_ORDERS, **RECORDED_SHAPED}
_PER_COUNTER = {"order": 2, "race": 1, "categories": 2, **dict.fromkeys(SHAPED, 1)}
"""Elements that share a counter, where it is not 128 bits over the bits of one."""
_CHILDREN = 2**20
_POSITIONS, _JUMPS = 2**64, 2**32


@called_methods
class Generator(Distributions):
    """Random numbers from a seed, drawn on a device.

    `seed` is an int from 0, a list of ints, a ``numpy.random.SeedSequence``, or None for one from the system.
    The same seed gives the same integers and uniform numbers, bit by bit, on every device; normal numbers
    differ by a few units in the last place, because devices divide and take roots differently. The numbers do
    not depend on how a shape is split into axes, but on all draws before.

    The draws have the names and the arguments of ``numpy.random.Generator``; the numbers are others. `size`
    is the shape of a new Tensor of `manager` (by default ``kp.manager()``); without it, the result is a
    number of Python. ``out=`` takes a Tensor, a part of one or an array, and is returned. ``wait=`` and
    ``signal=`` are as in calls of a `Function`. Methods that end in ``_op`` return an operation to record:
    each evaluation draws new numbers, from a stream of its own.

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
        FailedPreconditionError after a `state` without its seed was set.
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
        jump; and the seed, from which `spawn` and recorded draws make streams. Can be saved as JSON, and set.
        The positions of recorded draws are on the device, and no part of it.

        Setting raises InvalidArgumentError for anything but such a state.
        """
        with self._lock:
            return {
                "bit_generator": _NAME,
                "key": list(self._key),
                "position": self._position,
                "jump": self._jump,
                "seed": None if self._seeds is None else _seed_state(self._seeds),
            }

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        key, position, jump = _state_of(value)
        seeds = _seeds_from(value.get("seed"), key)
        with self._lock:
            if seeds is not None or key != self._key:
                self._seeds = seeds  # type: ignore[assignment]
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
        **options: Unpack[Ordering],
    ) -> Any:
        """Uniform numbers in [0, 1): multiples of 2**-24 for float32, 2**-53 for float64, 2**-11 for float16.

        Raises ArgumentTypeError for another dtype, InvalidArgumentError if `out` has another shape than
        `size`, or another dtype, UnimplementedError for float64 on a device without it.
        """
        return self._drawn("uniform", size, dtype, out, FLOATS, 0.0, 1.0, 1.0)

    def uniform(
        self,
        low: Parameter = 0.0,
        high: Parameter = 1.0,
        size: int | Iterable[int] | None = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Uniform numbers from `low` to below `high`: low + (high - low) * ``random()``, rounded twice, and
        the next number of the dtype if that gives `high`. The bounds may be arrays or Tensors.

        Raises InvalidArgumentError if a bound or the distance between them is not finite in the dtype, or
        bounds do not broadcast, and the errors of `random`.
        """
        if is_array(low) or is_array(high):
            return self._shaped(
                "uniform", size, dtype, out, (), BETWEEN, between(low, high, dtype_of(dtype, out))
            )
        return self._drawn("uniform", size, dtype, out, FLOATS, *_bounds(low, high, dtype_of(dtype, out)))

    def standard_normal(
        self,
        size: int | Iterable[int] | None = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Normal numbers with mean 0 and standard deviation 1. Raises the errors of `random`."""
        return self._drawn("normal", size, dtype, out, FLOATS, 0.0, 1.0)

    def normal(
        self,
        loc: Parameter = 0.0,
        scale: Parameter = 1.0,
        size: int | Iterable[int] | None = None,
        dtype: DTypeLike = np.float32,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Normal numbers with mean `loc` and standard deviation `scale`, by Box and Muller's transform.

        None lies more than 6.7 deviations from the mean (float64: 9.4), because the words of a draw are
        finite. `loc` and `scale` may be arrays or Tensors that broadcast with `size`.

        Raises InvalidArgumentError for a negative scale or a parameter that is not finite, and the errors of
        `random`.
        """
        if is_array(loc) or is_array(scale):
            return self._shaped("normal", size, dtype, out, (), PLACED, loc_scale(loc, scale))
        mean, deviation = _moments(loc, scale, dtype_of(dtype, out))
        return self._drawn("normal", size, dtype, out, FLOATS, mean, deviation)

    def integers(
        self,
        low: int,
        high: int | None = None,
        size: int | Iterable[int] | None = None,
        dtype: DTypeLike = np.int32,
        endpoint: bool = False,
        out: Numbers | None = None,
        **options: Unpack[Ordering],
    ) -> Any:
        """Integers from `low` to `high`, without `high` unless `endpoint` is True; from 0 to `low` if `high`
        is None. All are equally likely. The default dtype is int32, because many devices have no int64.

        Raises InvalidArgumentError for bounds out of the dtype's or in the wrong order, and the errors of
        `random`.
        """
        kind = dtype_of(dtype, out)
        words = _span(low, high, kind, to_flag(endpoint, "endpoint"))
        return self._drawn("integers", size, dtype, out, _INTEGERS, *words)

    def permutation(self, x: int | Numbers, axis: int = 0, **options: Unpack[Ordering]) -> Any:
        """The numbers below `x` in random order (int32), or `x` with its parts along `axis` in random order:
        a new array or Tensor. All orders are equally likely.

        The order is that of random keys of 64 bits, which the device sorts; it takes scratch memory of about
        30 bytes for each part.

        Raises InvalidArgumentError for a negative number, an array without axes, an axis that it does not
        have, and more parts than shaders reach through one binding; OutOfRangeError from 2**31 parts on;
        ArgumentTypeError for other types.

        >>> generator = kp.random.Generator(7)
        >>> sorted(generator.permutation(5).tolist())
        [0, 1, 2, 3, 4]
        >>> generator.permutation(mgr.tensor([[1, 2], [3, 4]]), axis=1).shape
        (2, 2)
        """
        if isinstance(x, (Tensor, StridedView, np.ndarray)):
            axis = _axis_of(axis, x, "permutation")
            return _parts_at(x, self._order(x.shape[axis], self._owner(x)), axis)
        count = as_index(x, "x")
        as_index(axis, "axis")
        if count < 0:
            raise InvalidArgumentError(f"permutation takes a number from 0, not {count}")
        return self._order(count, self._device())

    def shuffle(self, x: Numbers, axis: int = 0, **options: Unpack[Ordering]) -> None:
        """Brings the parts of `x` along `axis` into random order, in place. All orders are equally likely.

        A Tensor stays on its device. Raises ArgumentTypeError for anything but a Tensor or an array,
        InvalidArgumentError for a read-only array, and the errors of `permutation`.

        >>> x = mgr.tensor([1, 2, 3])
        >>> kp.random.Generator(7).shuffle(x)
        >>> sorted(x.tolist())
        [1.0, 2.0, 3.0]
        """
        if not isinstance(x, (Tensor, StridedView, np.ndarray)):
            raise ArgumentTypeError(f"shuffle takes a Tensor or an array, not {kind_of(x)}")
        axis = _axis_of(axis, x, "shuffle")
        if isinstance(x, np.ndarray) and not x.flags.writeable:
            raise InvalidArgumentError("shuffle writes the array in place, and it is read-only")
        order = self._order(x.shape[axis], self._owner(x))
        if isinstance(x, np.ndarray):
            x[...] = _parts_at(x, order, axis)
        elif x.size():
            take(x, order, axis, "clip", out=x)

    def choice(
        self,
        a: int | Numbers,
        size: int | Iterable[int] | None = None,
        replace: bool = True,
        p: Any = None,
        axis: int = 0,
        shuffle: bool = True,
        **options: Unpack[Ordering],
    ) -> Any:
        """Parts of `a` along `axis`, or numbers below `a`: as many as the shape `size` has elements, which
        replaces `axis` in the result.

        With `replace`, a part may be chosen several times. `p` has the probability of each; they count as
        multiples of 2**-62. Without `replace`, parts that are chosen one after the other have the
        probabilities `p` among those that are left, rounded to 24 bits: those with the least of exponential
        numbers divided by `p` (Efraimidis and Spirakis, 2006). The order is random whatever `shuffle` is.

        Tensors stay on their device, also `p`: 16 bytes of its sums are read, to check it. The sum of
        `p` may differ from 1 by 1e-6, or by the root of the epsilon of its dtype.

        Raises InvalidArgumentError if `a` is empty or does not have the axis, if `p` has another shape,
        elements that are negative or not finite, or another sum than 1, and without `replace` if more are
        asked for than there are, or have a probability; ArgumentTypeError for other types.

        >>> generator = kp.random.Generator(7)
        >>> generator.choice(3, 4, p=[0, 1, 0]).tolist()
        [1, 1, 1, 1]
        >>> sorted(generator.choice(mgr.tensor([5, 6, 7]), 3, replace=False).tolist())
        [5.0, 6.0, 7.0]
        """
        shape = () if size is None else as_shape(size)
        count, axis = _count_of(a, axis)
        owner = self._owner(a, p)
        again = to_flag(replace, "replace")
        to_flag(shuffle, "shuffle")
        sums = _checked(count, math.prod(shape), again, p, owner)
        if again:
            rows = owner.empty(shape, np.int32)
            self._fill(*_choosing(rows, count, sums))
        else:
            order = owner.empty(count, np.int32)
            self._fill("order" if sums is None else "race", order, *(() if sums is None else (sums,)))
            rows = order[: math.prod(shape)].reshape(shape)
        if isinstance(a, (Tensor, StridedView, np.ndarray)):
            return _parts_at(a, rows, axis)
        if not again and size is not None:
            # In memory of its own, so that the rest of the order is let go of.
            rows = ascontiguousarray(rows, out=owner.empty(shape, np.int32))
        return rows if size is not None else rows.read().item()

    # -- recorded draws --------------------------------------------------------------------------------------

    def random_op(self, out: Tensor | StridedView) -> OpCustom:
        """`random` into `out`, to record. Raises the errors of `random`, ArgumentTypeError unless `out` is a
        Tensor or a part of one.

        >>> generator, x = kp.random.Generator(1), mgr.zeros(4)
        >>> sequence = mgr.sequence().record(generator.random_op(x))
        >>> first = sequence.eval() and x.read()
        >>> bool((sequence.eval() and x.read() != first).all())
        True
        """
        return self._op(out, self.random)

    def uniform_op(self, out: Tensor | StridedView, low: Parameter = 0.0, high: Parameter = 1.0) -> OpCustom:
        """`uniform` into `out`, to record. Raises the errors of `uniform` and `random_op`."""
        return self._op(out, self.uniform, low, high)

    def normal_op(self, out: Tensor | StridedView, loc: Parameter = 0.0, scale: Parameter = 1.0) -> OpCustom:
        """`normal` into `out`, to record. Raises the errors of `normal` and `random_op`."""
        return self._op(out, self.normal, loc, scale)

    def integers_op(
        self, out: Tensor | StridedView, low: int, high: int | None = None, endpoint: bool = False
    ) -> OpCustom:
        """`integers` into `out`, to record. Raises the errors of `integers` and `random_op`."""
        return self._op(out, self.integers, low, high, endpoint=endpoint)

    def permutation_op(self, out: Tensor | StridedView) -> OpCustom:
        """The numbers below the length of `out` in random order, written to `out` (int32, one axis), to
        record: each evaluation makes another order.

        Raises ArgumentTypeError unless `out` is a Tensor of int32, InvalidArgumentError unless it has one
        axis, and for more elements than shaders reach through one binding.

        >>> generator, order = kp.random.Generator(1), mgr.zeros(4, "int32")
        >>> sequence = mgr.sequence().record(generator.permutation_op(order)).eval()
        >>> sorted(order.tolist())
        [0, 1, 2, 3]
        """
        numbers = recorded(out).tensor
        if numbers.dtype != np.int32:
            raise ArgumentTypeError(f"A recorded order is of int32, not {numbers.dtype}")
        if len(numbers.shape) != 1:
            raise InvalidArgumentError(f"A recorded order has one axis; out has the shape {numbers.shape}")
        return self._recorded("order", numbers)

    def shuffle_op(self, x: Tensor, axis: int = 0) -> OpCustom:
        """`shuffle` of a Tensor, to record: each evaluation brings its parts into another order.

        Raises the errors of `shuffle` and `random_op`.
        """
        if isinstance(x, StridedView):
            raise ArgumentTypeError(f"A recorded shuffle takes a Tensor, not {kind_of(x)}")
        axis = _axis_of(axis, recorded(x).tensor, "shuffle")
        order = x.manager.empty(x.shape[axis], np.int32)
        drawn = self._recorded("order", order)
        if not x.size():
            return drawn
        return OpCustom._joined("shuffle", (drawn, take.bind(x, order, axis, "clip", out=x)), (x,))

    def choice_op(
        self, out: Tensor, a: int | Tensor, replace: bool = True, p: Any = None, axis: int = 0
    ) -> OpCustom:
        """`choice` into `out`, to record: each evaluation chooses anew. The shape of `out` says how many: for
        a number `a`, `out` is of int32; for a Tensor, it has the dtype of `a`, and any number of axes in the
        place of `axis`. `p` is read now; later changes of a Tensor do not count.

        Raises InvalidArgumentError if the shape of `out` does not fit, ArgumentTypeError for another dtype,
        and the errors of `choice` and `random_op`.

        >>> rows = mgr.zeros((2, 3))
        >>> operation = kp.random.Generator(1).choice_op(rows, mgr.tensor([[1, 1, 1], [2, 2, 2], [3, 3, 3]]))
        >>> mgr.sequence().record(operation).eval()
        <kp.Sequence ...>
        >>> set(rows.read().ravel().tolist()) <= {1, 2, 3}
        True
        """
        numbers = recorded(out).tensor
        if isinstance(a, (StridedView, np.ndarray)):
            raise ArgumentTypeError(f"A recorded choice is of a number or a Tensor, not {kind_of(a)}")
        count, axis = _count_of(a, axis)
        shape, many = tuple(numbers.shape), isinstance(a, Tensor)
        dtype = a.dtype if isinstance(a, Tensor) else np.dtype(np.int32)
        if numbers.dtype != dtype:
            raise ArgumentTypeError(f"out is of {numbers.dtype}; these elements are {dtype}")
        if isinstance(a, Tensor):
            before, after = a.shape[:axis], a.shape[axis + 1 :]
            end = len(shape) - len(after)
            if end < axis or shape[:axis] != before or shape[end:] != after:
                raise InvalidArgumentError(
                    f"out has the shape {shape}; parts of {tuple(a.shape)} along axis {axis} have "
                    f"{(*before, '...', *after)}"
                )
            shape = shape[axis:end]
        owner, again = numbers.manager, to_flag(replace, "replace")
        wanted: int = math.prod(shape)
        sums = _checked(count, wanted, again, p, owner)
        if again:
            rows = owner.empty(shape, np.int32) if many else numbers
            operations = [self._recorded(*_choosing(rows, count, sums))]
        else:
            order = owner.empty(count, np.int32)
            name = "order" if sums is None else "race"
            operations = [self._recorded(name, order, *(() if sums is None else (sums,)))]
            rows = order[:wanted].reshape(shape)
        if isinstance(a, Tensor):
            operations.append(take.bind(a, rows, axis, "clip", out=numbers))
        elif not again and wanted:
            operations.append(ascontiguousarray.bind(rows, out=numbers))
        return OpCustom._joined("choice", operations, (numbers,))

    # -- inside ----------------------------------------------------------------------------------------------

    def _device(self) -> Manager:
        return self._manager or default_manager()

    def _owner(self, *values: Any) -> Manager:
        """The Manager of the first Tensor."""
        tensors = (each for each in values if isinstance(each, (Tensor, StridedView)))
        return next((each.manager for each in tensors), None) or self._device()

    def _drawn(
        self, kind: str, size: Any, dtype: Any, out: Any, dtypes: tuple[str, ...], *parameters: Any
    ) -> Any:
        chosen = dtype_of(dtype, out)
        check_dtype(chosen, dtypes)
        if isinstance(out, Recorded):
            return self._recorded(kind, out.tensor, *parameters)
        if out is None:
            numbers = self._device().empty(() if size is None else as_shape(size), chosen)
        else:
            numbers = out
            if size is not None and as_shape(size) != tuple(out.shape):
                raise InvalidArgumentError(f"size is {shown(size)}, but out has the shape {tuple(out.shape)}")
        self._fill(kind, numbers, *parameters)
        return numbers.read().item() if size is None and out is None else numbers

    def _fill(self, kind: str, numbers: Numbers, *parameters: Any) -> None:
        each = _PER_COUNTER.get(kind, 2 if numbers.dtype.itemsize == 8 else 4)
        blocks = -(-math.prod(numbers.shape) // each)
        with self._lock:
            position = self._position
            if position + blocks > _POSITIONS:
                raise OutOfRangeError("The generator has drawn all of its numbers; go on with jumped()")
            self._position = position + blocks
        words = map(_signed, (*self._key, position & 0xFFFFFFFF, position >> 32, self._jump))
        if isinstance(numbers, (Tensor, StridedView)):
            _DRAWS[kind](numbers, *words, *parameters)
        else:
            manager = self._device()
            if manager._guard is not None:
                on_host(manager._guard, "out", numbers.nbytes)
            drawn = manager.empty(numbers.shape, numbers.dtype)
            _DRAWS[kind](drawn, *words, *parameters)
            np.copyto(numbers, drawn.read())

    def _recorded(self, kind: str, numbers: Tensor | StridedView, *parameters: Any) -> OpCustom:
        own = self.spawn(1)[0]
        state = numbers.manager.zeros(2, np.uint32)
        return _RECORDED[kind].bind(numbers, state, *map(_signed, (*own._key, 0)), *parameters)

    def _order(self, count: int, owner: Manager) -> Tensor:
        """A random order of the numbers below `count`."""
        _check_count(count)
        order = owner.empty(count, np.int32)
        self._fill("order", order)
        return order


def _restored(state: Any, seeds: Any) -> Generator:
    made = Generator(0)
    made._key, made._position, made._jump = _state_of(state)
    made._seeds = seeds
    return made


def _seeds_of(seed: Any) -> np.random.SeedSequence:
    if isinstance(seed, (list, tuple)) and any(isinstance(each, (list, tuple)) for each in seed):
        # NumPy would go through a list that is in itself until the process ends.
        raise ArgumentTypeError("seed is a list with lists in it; give an int from 0, or a list of ints")
    try:
        return np.random.SeedSequence(seed)
    except ValueError:
        raise InvalidArgumentError(f"A seed is not negative; {shown(seed)} was given") from None
    except TypeError:
        raise ArgumentTypeError(f"A seed is an int or a list of ints, not {kind_of(seed)}") from None


def _seed_state(seeds: np.random.SeedSequence) -> dict[str, Any]:
    entropy: Any = seeds.entropy
    return {
        "entropy": entropy
        if isinstance(entropy, int) or entropy is None
        else [int(each) for each in entropy],
        "spawn_key": [int(each) for each in seeds.spawn_key],
        "children": int(seeds.n_children_spawned),
    }


def _seeds_from(value: Any, key: tuple[int, int]) -> np.random.SeedSequence | None:
    """The sequence that `_seed_state` describes; None for states without it, or with another one's key."""
    if value is None:
        return None
    try:
        found = np.random.SeedSequence(
            value["entropy"],
            spawn_key=tuple(value["spawn_key"]),
            n_children_spawned=value["children"],
        )
        return found if tuple(found.generate_state(2, np.uint32).tolist()) == key else None
    except (TypeError, ValueError, KeyError, OverflowError):
        raise InvalidArgumentError(f"The state's seed is not a valid seed: {shown(value)}") from None


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


def _bounds(low: Any, high: Any, dtype: np.dtype[Any]) -> tuple[float, float, float]:
    """The least number, the width, and the number next to `high`, which is never drawn."""
    least, most = _number(low, "low"), _number(high, "high")
    check_dtype(dtype, FLOATS)
    largest = float(np.finfo(dtype).max)
    if not max(abs(least), abs(most), abs(most - least)) <= largest:
        raise InvalidArgumentError(f"{least} to {most} is too wide for {dtype}, which ends at {largest:g}")
    end = dtype.type(most)
    if float(end) != least and not (least < float(end) < most or most < float(end) < least):
        end = np.nextafter(end, dtype.type(least))
    return least, most - least, float(end)


def _moments(loc: Any, scale: Any, dtype: np.dtype[Any]) -> tuple[float, float]:
    mean, deviation = _number(loc, "loc"), _number(scale, "scale")
    if deviation < 0:
        raise InvalidArgumentError(f"scale is {deviation}; it cannot be negative")
    check_dtype(dtype, FLOATS)
    largest = float(np.finfo(dtype).max)
    if not max(abs(mean), deviation) <= largest:
        raise InvalidArgumentError(
            f"loc is {mean} and scale {deviation}; {dtype} ends at {largest:g}, so give smaller ones"
        )
    return mean, deviation


def _span(low: Any, high: Any, dtype: np.dtype[Any], endpoint: bool) -> tuple[int, int, int, int]:
    """The words of the least number and of the distance to the greatest one."""
    check_dtype(dtype, _INTEGERS)
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


def _check_count(count: int) -> None:
    if count > 2**31 - 1:
        raise OutOfRangeError(f"Orders have at most {2**31 - 1} numbers, not {count}")


def _axis_of(axis: Any, x: Any, what: str) -> int:
    """The axis from 0 on."""
    if isinstance(x, np.ndarray):
        refuse_mask(x, f"{what}: the array")
    else:
        x._require_init("be used")
    found, count = as_index(axis, "axis"), len(x.shape)
    if not count:
        raise InvalidArgumentError(f"{what} goes along an axis, by default the first axis; x has none")
    if not -count <= found < count:
        raise InvalidArgumentError(f"{what}: axis is {found}, and x has {count} axes")
    return found % count


def _count_of(a: Any, axis: Any) -> tuple[int, int]:
    """How many parts there are to choose from, and the axis from 0 on."""
    if isinstance(a, (Tensor, StridedView, np.ndarray)):
        found = _axis_of(axis, a, "choice")
        return a.shape[found], found
    count, axis = as_index(a, "a"), as_index(axis, "axis")
    if count < 0:
        raise InvalidArgumentError(f"choice takes numbers below a: {count} is negative")
    return count, axis


def _checked(count: int, wanted: int, again: bool, p: Any, owner: Manager) -> Tensor | None:
    """The sums of the probabilities. Raises for a choice that there is not."""
    if not count and wanted:
        raise InvalidArgumentError("choice has nothing to choose from")
    if not again or p is not None:
        _check_count(count)
    if not again and wanted > count:
        raise InvalidArgumentError(f"choice takes {wanted} of {count} without replace; take fewer")
    if p is None:
        return None
    sums, possible = sums_of(p, count, owner)
    if not again and wanted > possible:
        raise InvalidArgumentError(
            f"choice takes {wanted} without replace, and p has {possible} elements above 0; take fewer"
        )
    return sums


def _choosing(rows: Tensor, count: int, sums: Tensor | None) -> tuple[Any, ...]:
    """The draw of the parts that are chosen with replacement: its name and arguments."""
    if sums is None:
        return ("integers", rows, *_span(0, max(count, 1), rows.dtype, False))
    return "categories", rows, sums


def _parts_at(x: Any, rows: Tensor, axis: int) -> Any:
    """The parts of `x` along `axis` with these numbers, where `x` is."""
    if isinstance(x, np.ndarray):
        try:
            return np.take(x, np.asarray(rows), axis)
        except MemoryError as error:
            raise OutOfMemoryError(f"The parts of x in random order are too large: {error}") from None
    return take(x, rows, axis, "clip")


@called
def default_rng(seed: Any = None) -> Generator:
    """A generator, as ``numpy.random.default_rng`` gives one.

    `seed` is what `Generator` takes, or a generator, which is returned as it is.

    Raises the errors of `Generator`.

    >>> kp.random.default_rng(7).random(3).shape
    (3,)
    """
    return seed if isinstance(seed, Generator) else Generator(seed)
