"""OpRepeat: operations that run many times in one submission."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import _native
from .._base.arrays import as_index
from .._base.errors import ArgumentTypeError, InvalidArgumentError, UnimplementedError, kind_of, shown
from .._memory.image import Image
from .._memory.memory import Memory
from .._memory.peer import HostSteps
from .._memory.tensor import Tensor
from .operations import OpBase

_MOST_TIMES = 2**32 - 1


class OpRepeat(OpBase):
    """Runs operations `times` times, one after another, in one submission: an iteration without the host.

    ``OpRepeat([a, b], 3)`` runs a, b, a, b, a, b, with the barriers between them. Recording it takes a time
    and an amount of memory that grow with the root of `times`, so a million repetitions work.

    `swap` is a list of pairs of tensors, views of them, or images. Every second repetition uses the second
    one instead of the first, and the first instead of the second. With ``swap=[(a, b)]``, an
    operation that reads `a` and writes `b` writes `a` from `b` in the second repetition. So `b` holds the
    result after an odd number of repetitions and `a` after an even one, also after 0; with an operation that
    writes `a`, from both or from `b`, it is the other way round. `results` has the one that holds it, for
    each pair. The next evaluation begins with `a` again: record an OpCopy of `b` to `a` after an odd number,
    or give an even one. `disjoint` views of one tensor may be exchanged.

    `operations` is an operation or a list of them: dispatches of algorithms and kernels, custom operations,
    copies and fills on the device. Changes of their push constants and grids take effect at the next
    evaluation, in all repetitions. A sequence with timestamps has one time for the whole.

    Raises InvalidArgumentError for an empty list, `times` below 0 or above 2**32 - 1, pairs that differ in
    size, dtype or format, memory that is in two pairs, and operations that sync host copies;
    UnimplementedError for operations with Python code of their own, OpHostCall, copies between Managers, and
    another OpRepeat; ArgumentTypeError if an argument is of another type; FailedPreconditionError for
    destroyed objects.

    >>> spirv = kp.compile('''
    ... layout(local_size_x = 1) in;
    ... layout(binding = 0) readonly buffer A { float a[]; };
    ... layout(binding = 1) writeonly buffer B { float b[]; };
    ... void main() { b[gl_GlobalInvocationID.x] = 2.0 * a[gl_GlobalInvocationID.x]; }
    ... ''')
    >>> a, b = mgr.tensor([1, 2, 3]), mgr.zeros(3)
    >>> double = kp.OpAlgoDispatch(mgr.algorithm([a, b], spirv))
    >>> ten = kp.OpRepeat(double, 10, swap=[(a, b)])
    >>> mgr.sequence().record(ten).eval()
    <kp.Sequence ...>
    >>> ten.results[0] is a, a.read().tolist()
    (True, [1024.0, 2048.0, 3072.0])
    """

    __module__ = "kompute_py"  # public; imported when first used

    __slots__ = {
        "_kept": "",
        "_native": "",
        "operations": "The operations of a repetition.",
        "results": "For each pair of `swap`, the one that the last repetition wrote.",
        "swap": "The pairs.",
        "times": "The number of repetitions.",
    }

    def __init__(
        self,
        operations: OpBase | Iterable[OpBase],
        times: int,
        *,
        swap: Iterable[tuple[Memory, Memory]] = (),
    ) -> None:
        listed = (operations,) if isinstance(operations, OpBase) else _items(operations, "operations")
        count = as_index(times, "times")
        if not 0 <= count <= _MOST_TIMES:
            raise InvalidArgumentError(f"OpRepeat: times is {shown(times)}; it is 0 to {_MOST_TIMES}")
        parts = [part for operation in listed for part in _parts_of(operation)]
        pairs = tuple([_pair(each) for each in _items(swap, "swap")])
        natives = [(one._native, other._native) for one, other in pairs]
        try:
            self._native = _native.op_repeat(parts, count, natives)
        except InvalidArgumentError:
            # Shaders bind one of a pair where it is, and cannot bind the other there.
            others = [_over_any_memory(each) for each in listed]
            if all(one is other for one, other in zip(listed, others, strict=True)):
                raise
            parts = [part for operation in others for part in _parts_of(operation)]
            self._native = _native.op_repeat(parts, count, natives)
            self._kept = others
        self.operations: tuple[OpBase, ...] = tuple(listed)
        self.times: int = count
        self.swap: tuple[tuple[Memory, Memory], ...] = pairs
        # With operations that write the first of a pair, the second is what the next repetition reads.
        writes_first = [last == 0 for last in _native.written_last(parts, natives)]
        self.results: tuple[Memory, ...] = tuple(
            [pair[(count + first) % 2] for pair, first in zip(pairs, writes_first, strict=True)]
        )

    @property
    def _plain(self) -> bool:  # type: ignore[override]
        return all(operation._plain for operation in self.operations)

    def __repr__(self) -> str:
        return f"<kp.OpRepeat {self._native.name}>"


def _items(given: Any, what: str) -> list[Any]:
    if isinstance(given, (str, bytes, dict, Memory, np.ndarray)) or not isinstance(given, Iterable):
        wanted = "an operation or a list of them" if what == "operations" else "a list of pairs [(a, b), ...]"
        raise ArgumentTypeError(f"OpRepeat: {what} is {kind_of(given)}; give {wanted}")
    try:
        return list(given)
    except (TypeError, MemoryError):
        raise ArgumentTypeError(f"OpRepeat: {what} is {kind_of(given)}, not a list") from None


def _parts_of(operation: Any) -> list[Any]:
    """The native operations."""
    if not isinstance(operation, OpBase):
        hint = ""
        if hasattr(type(operation), "bind"):
            hint = f"; make one: {getattr(operation, '__name__', 'kernel')}.bind(...)"
        raise ArgumentTypeError(f"OpRepeat repeats operations (kp.OpBase), not {kind_of(operation)}{hint}")
    parts = getattr(operation, "_parts", None)
    if parts is not None:
        for part in parts:
            _require_device(part)
        return list(parts)
    name = type(operation).__name__
    if operation._hooked:
        raise UnimplementedError(
            f"OpRepeat: {name} runs Python code (record, pre_eval or post_eval), which happens once for an "
            "evaluation and not for each repetition: record it outside"
        )
    native = getattr(operation, "_native", None)
    _require_device(native)
    if native is None:
        operation._bind(None)  # type: ignore[arg-type]  # raises an error that names the missing part
    return [native]


def _require_device(native: Any) -> None:
    """Raises UnimplementedError for a step of the host."""
    if isinstance(native, HostSteps):
        raise UnimplementedError(
            f"OpRepeat: {native.what} is done by the host, so it cannot be repeated in one submission. "
            "Record each repetition: for _ in range(times): sequence.record(...)"
        )


def _over_any_memory(operation: OpBase) -> OpBase:
    """A custom operation over copies of its tensors; others as they are."""
    again = getattr(operation, "_over_any_memory", None)
    return operation if again is None else again()  # type: ignore[no-any-return]


def _pair(given: Any) -> tuple[Memory, Memory]:
    if isinstance(given, (Memory, str, bytes)) or not isinstance(given, Iterable):
        raise ArgumentTypeError(f"OpRepeat: swap has {kind_of(given)}; give pairs: swap=[(a, b)]")
    both = list(given)
    if len(both) != 2:
        raise InvalidArgumentError(
            f"OpRepeat: swap has a group of {len(both)}; give pairs: swap=[(a, b)]. Where three take "
            "turns, write the turns out: OpRepeat([f.bind(a, b, c), f.bind(b, c, a), f.bind(c, a, b)], times)"
        )
    one, other = both
    for each in both:
        if not isinstance(each, Memory):
            raise ArgumentTypeError(
                f"OpRepeat: swap has {kind_of(each)}; tensors and images can be exchanged"
            )
        each._require_init("be exchanged")
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        fit = one._dtype == other._dtype and one.nbytes == other.nbytes
    elif isinstance(one, Image) and isinstance(other, Image):
        fit = one._format == other._format and one._shape == other._shape
    else:
        fit = False
    if not fit:
        raise InvalidArgumentError(
            f"OpRepeat: {one._describe()} and {other._describe()} cannot be exchanged: give two tensors of "
            "one size and dtype, or two images of one shape and format"
        )
    return one, other
