"""Einstein's summation, and products that it writes.

If the sum is a product of matrices in memory as it is (the axes of each side are one axis or follow each
other), the kernels of `matmul` compute it. Any other sum is a reduction over all products: an axis that an
argument does not have has the step 0 there, and an index that stands twice has the sum of both steps, so that
nothing is moved or repeated before.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ..._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of, shown
from ..._builders.elementwise import elementwise
from ..._builders.reduction import ReductionOp, tell_runs
from ..._builders.walks import Axis, Elements, Reducer, Walk, check_sizes, merged, named, one_each
from ..._custom.arg_descs import TensorArg
from ..._custom.selection import FunctionSelection
from ..._formulas.dtypes import promoted
from ..._formulas.formula import Formula
from ..._formulas.glsl_elements import element_of
from ..._functions.custom_op import CustomOp
from .._places.composed import Composed, Run, Widened
from .._places.given import given, shape_of
from .._places.moving import diagonal
from .._values.reductions import sum as sum_of
from .matrices import Contraction, Product, Side, dtype_of, tell_product, trials_of, ways_of

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder
    from ..._functions.function import Function

    Array = Any

_SUMMED = {each: np.dtype(f"{each}32") for each in ("float", "int", "uint")}
"""The dtype of products and sums by the type of elements in kernels."""
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Labels(NamedTuple):
    """The indices of the axes of each argument, and of the result; those of "..." are ints, -1 the last."""

    args: tuple[tuple[str | int, ...], ...]
    result: tuple[str | int, ...]


class _Sum(ReductionOp):
    """A sum of products over the indices that the result does not have."""

    neutral: ClassVar[Any] = 0
    reads_parts = False

    def labels(self, ksel: FunctionSelection, args: Sequence[TensorArg]) -> Labels:
        """Declares the attributes, and gives the indices."""
        raise NotImplementedError

    def arguments(self, ksel: FunctionSelection) -> list[TensorArg]:
        """Declares the tensors."""
        return [ksel.arg_tensor("a"), ksel.arg_tensor("b")]

    def select(self, ksel: FunctionSelection) -> None:
        """Finds the lengths and steps of all indices, and the way."""
        args = self.arguments(ksel)
        labels = self.labels(ksel, args)
        dtype = dtype_of(ksel, args[0], args[-1])
        lengths = _lengths(ksel.name, args, labels)
        steps = [_steps(arg, each) for arg, each in zip(args, labels.args, strict=True)]
        ksel.return_new_tensor([lengths[each] for each in labels.result], dtype)
        check_sizes(ksel)
        summed = [each for each in lengths if each not in labels.result]
        product = _product(labels, lengths, steps, summed) if len(args) == 2 else None
        if product is not None:
            turned, found = product
            ksel.specialize(walk=None)
            tell_product(ksel, (args[1], args[0]) if turned else (args[0], args[1]), found)
            return
        every = {each: Axis(n, tuple(s.get(each, 0) for s in steps)) for each, n in lengths.items()}
        walk = Walk(
            merged(every[each] for each in labels.result),
            merged(every[each] for each in summed),
            tuple(lengths[each] for each in labels.result),
        )
        tell_runs(ksel, walk)

    def parts(self, ksel: FunctionSelection) -> tuple[Any, Reducer, np.dtype[Any]]:
        """Products and sums in float32 or int32 for smaller dtypes, as `matmul` has them."""
        args = [each for each in ksel.arg_descs if isinstance(each, TensorArg)]
        dtype = promoted([each.dtype for each in args])
        types: dict[str, Any] = {each.name: each.dtype for each in args}
        acc = _SUMMED.get(element_of(dtype).type, dtype)
        if dtype == np.bool_:
            text, reduce = " and ".join(types), "a or b"
        else:
            text, reduce = " * ".join(f"{acc.name}({each})" for each in types), "a + b"
        map_ = Formula(text).typed(types, ksel.features, acc)
        both = Formula(reduce).typed({"a": acc, "b": acc}, ksel.features, acc)
        return map_, Reducer(both, acc), acc

    def variants(self, ksel: FunctionSelection) -> list[str]:
        walk = ksel.special["walk"]
        if walk is not None and not walk.along:
            return ["run"]
        if walk is None:
            return ways_of(ksel)
        return super().variants(ksel)

    def trials(self, ksel: FunctionSelection) -> list[str]:
        return trials_of(ksel) if ksel.special["walk"] is None else super().trials(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes the kernels of a product of matrices, or of a reduction."""
        walk = ksel.special["walk"]
        if walk is None:
            Product(ksel, kb).write()
        elif walk.along or not walk.total:
            super().generate(ksel, kb)
        else:
            self._single(ksel, kb, walk)

    def _single(self, ksel: FunctionSelection, kb: FunctionBuilder, walk: Walk) -> None:
        """A kernel of products that are not summed."""
        map_, _, acc = self.parts(ksel)
        elements = Elements(ksel, map_, acc, walk)
        kb.begin_dispatch("products")
        elements.declare(kb)
        one_each(kb, named("kp_lines"), "kp_line")
        kb.emit(elements.find())
        kb.emit(f"result_store(kp_line, {elements.get('0u')});")


def _lengths(who: str, args: Sequence[Any], labels: Labels) -> dict[str | int, int]:
    """The length of each index: 1 goes with any other. The indices are in the order of the arguments."""
    found: dict[str | int, int] = {}
    for arg, each in zip(args, labels.args, strict=True):
        for label, n in zip(each, arg.shape, strict=True):
            if found.setdefault(label, n) == n or n == 1:
                continue
            if found[label] != 1:
                what = f"the index {label!r}" if isinstance(label, str) else f"axis {label} of '...'"
                shapes = ", ".join(f"{each.name} {each.shape}" for each in args)
                raise InvalidArgumentError(f"{who}: {what} has the lengths {found[label]} and {n}: {shapes}")
            found[label] = n
    return found


def _steps(arg: TensorArg, labels: tuple[str | int, ...]) -> dict[str | int, int]:
    """Elements from one to the next along each index that the argument has."""
    found: dict[str | int, int] = {}
    step = 1
    for label, n in zip(reversed(labels), reversed(arg.shape), strict=True):
        found[label] = found.get(label, 0) + (step if n != 1 else 0)
        step *= n
    return found


def _product(
    labels: Labels,
    lengths: dict[str | int, int],
    steps: list[dict[str | int, int]],
    summed: list[str | int],
) -> tuple[bool, Contraction] | None:
    """The sum as a product of matrices, and whether its left side is the second argument; or None."""
    a, b = steps
    if not summed or any(each not in a or each not in b for each in summed):
        return None

    def group(result: tuple[str | int, ...], turned: bool) -> Contraction | None:
        left, right = (b, a) if turned else (a, b)
        batch = [each for each in result if each in left and each in right]
        rows = [each for each in result if each not in right]
        columns = [each for each in result if each not in left]
        if [*batch, *rows, *columns] != list(result):
            return None
        order = sorted(summed, key=lambda each: -left[each])
        both = merged(Axis(lengths[each], (left[each], right[each])) for each in order)
        down = merged(Axis(lengths[each], (left[each],)) for each in rows)
        across = merged(Axis(lengths[each], (right[each],)) for each in columns)
        if max(map(len, (both, down, across))) > 1:
            return None
        n = both[0] if both else Axis(1, (0, 0))
        i = down[0] if down else Axis(1, (0,))
        j = across[0] if across else Axis(1, (0,))
        return Contraction(
            i.length,
            j.length,
            n.length,
            Side(i.steps[0], n.steps[0], tuple(left[each] for each in batch)),
            Side(n.steps[1], j.steps[0], tuple(right[each] for each in batch)),
            tuple(lengths[each] for each in batch),
        )

    for turned in (False, True):
        found = group(labels.result, turned)
        if found is not None:
            return turned, found
    return None


class _Einsum(_Sum):
    """The sum of products that `subscripts` writes, as ``np.einsum``, of one, two or more arguments.

    Each argument has a letter for each axis: ``"ij,jk->ik"`` is the product of two matrices, ``"ii->i"`` a
    diagonal, ``"ij->ji"`` a transposed matrix, ``"bij,bj->bi"`` a batch of products. An index that the result
    does not have is summed over. Without ``->``, the result has the indices that stand once, in the order of
    the alphabet. ``...`` stands for any axes, which broadcast. An axis of the length 1 goes with any other.

    The result has NumPy's dtype. float16 and bfloat16 are multiplied and summed in float32, ints of fewer
    than 32 bits in 32; ints wrap as in NumPy. The sum of bools tells if any product is true.

    Products of matrices take as long as `matmul` if the indices of rows, of columns and of the sum stand
    together, in the same order, in the arguments and in the result (``"abc,bcd->ad"``); others take longer.

    More arguments than two are converted to the result's dtype, and multiplied in pairs: first the
    pair that takes the fewest products. It runs an operation for each pair, and float16 and bfloat16 stay
    float32 until the end.

    Raises InvalidArgumentError for subscripts that do not fit the shapes and for memory beyond what shaders
    reach; UnimplementedError if the device has no numbers of the result's dtype.

    >>> a = np.array([[1, 2], [3, 4]])
    >>> kp.ops.einsum("ij,kj->ik", a, a).tolist()
    [[5, 11], [11, 25]]
    >>> kp.ops.einsum("ii", a)
    array(5)

    :dtypes: all; float16, bfloat16 and small ints are summed with 32
    :axes: by subscripts
    :error: one rounding, and n of the sum of the n absolute products (complex: 4 n); ints exact
    """

    signature = "einsum(str subscripts, Tensor a, Tensor? b=None) -> Tensor"

    def arguments(self, ksel: FunctionSelection) -> list[TensorArg]:
        a, b = ksel.arg_tensor("a"), ksel.arg_optional_tensor("b")
        return [a] if b is None else [a, b]

    def labels(self, ksel: FunctionSelection, args: Sequence[TensorArg]) -> Labels:
        text = ksel.attr_str("subscripts").v
        return _read(ksel.name, text, args)


def _read(who: str, text: str, args: Sequence[Any]) -> Labels:
    given = re.sub(r"\s", "", text)
    left, arrow, right = given.partition("->")
    terms = left.split(",")
    part = r"[a-zA-Z]*(?:\.\.\.)?[a-zA-Z]*"
    for term in [*terms, right]:
        if not re.fullmatch(part, term):
            raise InvalidArgumentError(
                f"{who}: subscripts is {text!r}, and {term!r} is not a list of indices: letters, and '...' "
                "at most once"
            )
    if len(terms) != len(args):
        raise InvalidArgumentError(
            f"{who}: subscripts is {text!r}, with {len(terms)} lists of indices, and "
            f"{len(args)} arguments were given"
        )
    found = []
    for term, arg in zip(terms, args, strict=True):
        letters = term.replace("...", "")
        free = arg.ndim - len(letters)
        if free < 0 or (free and "..." not in term):
            raise InvalidArgumentError(
                f"{who}: subscripts is {text!r}; {term!r} has {len(letters)} indices, and {arg.name} has the "
                f"shape {arg.shape}"
            )
        before, _, after = term.partition("...")
        found.append((*before, *range(-free, 0), *after))
    every = [each for labels in found for each in labels]
    dots = sorted({each for each in every if isinstance(each, int)})
    if not arrow:
        once = sorted(each for each in set(every) if isinstance(each, str) and every.count(each) == 1)
        return Labels(tuple(found), (*dots, *once))
    before, middle, after = right.partition("...")
    result = (*before, *(dots if middle else ()), *after)
    if dots and not middle:
        raise InvalidArgumentError(
            f"{who}: subscripts is {text!r}; arguments have axes for '...', so the result needs '...', too"
        )
    for each in result:
        if result.count(each) > 1:
            raise InvalidArgumentError(
                f"{who}: subscripts is {text!r}; the index {each!r} stands twice in the result"
            )
        if each not in every:
            raise InvalidArgumentError(
                f"{who}: subscripts is {text!r}; the index {each!r} of the result is in no argument"
            )
    return Labels(tuple(found), result)


class _Outer(_Sum):
    """The product of each element of `a` with each of `b`, as ``np.outer``: shape (a.size, b.size).

    Raises UnimplementedError if the device has no numbers of the result's dtype, InvalidArgumentError for
    memory beyond what shaders reach.

    >>> kp.ops.outer(np.array([1, 2]), np.array([3, 4, 5])).tolist()
    [[3, 4, 5], [6, 8, 10]]

    :dtypes: all
    :axes: all, as one
    :error: one rounding; ints exact
    """

    signature = "outer(Tensor a, Tensor b) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        a, b = self.arguments(ksel)
        dtype = dtype_of(ksel, a, b)
        ksel.return_new_tensor((a.size, b.size), dtype)
        check_sizes(ksel)
        kept = merged([Axis(a.size, (1, 0)), Axis(b.size, (0, 1))])
        tell_runs(ksel, Walk(kept, (), (a.size, b.size)))


class _Inner(_Sum):
    """The sum of products over the last axis of both, as ``np.inner``: shape a.shape[:-1] + b.shape[:-1].

    With a scalar, it is the product. Raises InvalidArgumentError if the last axes differ and for memory
    beyond what shaders reach, UnimplementedError if the device has no numbers of the result's dtype.

    >>> kp.ops.inner(np.array([1, 2]), np.array([[3, 4], [5, 6]])).tolist()
    [11, 17]

    :dtypes: all; float16, bfloat16 and small ints are summed with 32
    :axes: last
    :error: one rounding, and n of the sum of the n absolute products (complex: 4 n); ints exact
    """

    signature = "inner(Tensor a, Tensor b) -> Tensor"

    def labels(self, ksel: FunctionSelection, args: Sequence[TensorArg]) -> Labels:
        """All axes but the last ones have indices of their own."""
        a, b = args
        if a.ndim and b.ndim and a.shape[-1] != b.shape[-1]:
            raise InvalidArgumentError(
                f"{ksel.name}: the last axes have the lengths {a.shape[-1]} and {b.shape[-1]}: a "
                f"{a.shape}, b {b.shape}"
            )
        shared = 1 if a.ndim and b.ndim else 0
        left, right = tuple(range(a.ndim - shared)), tuple(range(100, 100 + b.ndim - shared))
        last: tuple[str, ...] = ("n",) * shared
        return Labels(((*left, *last), (*right, *last)), (*left, *right))


class _Operand(NamedTuple):
    """An argument as `_read` takes it."""

    name: str
    shape: tuple[int, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)


def _has_several(args: tuple[Any, ...], given: dict[str, Any]) -> bool:
    """Whether there are more than two arguments."""
    return len(args) > 3


def _in_pairs(run: Run, subscripts: str, *operands: Any) -> Any:
    """The pairs one after the other, by the work that each takes."""
    if not isinstance(subscripts, str):
        raise ArgumentTypeError(f"einsum: subscripts is {kind_of(subscripts)}; give a str")
    left = [given(each) for each in operands]
    args = [_Operand(f"argument {number}", shape_of(each)) for number, each in enumerate(left)]
    read = _read("einsum", subscripts, args)
    lengths = _lengths("einsum", args, read)
    if len(lengths) > len(_LETTERS):
        raise InvalidArgumentError(f"einsum: there are {len(lengths)} indices; the most are {len(_LETTERS)}")
    letters = dict(zip(lengths, _LETTERS, strict=False))
    labels = [tuple(each) for each in read.args]
    for each in left:
        element_of(np.dtype(each.dtype))  # raises an error for others than those of kernels
    dtype = promoted([np.dtype(each.dtype) for each in left])
    wide = np.dtype(np.float32) if dtype.itemsize < 4 and element_of(dtype).type == "float" else dtype
    left = [each if np.dtype(each.dtype) == wide else run(_cast(wide.name), each) for each in left]

    def work(pair: tuple[int, int]) -> int:
        return math.prod(lengths[label] for label in {*labels[pair[0]], *labels[pair[1]]})

    while len(left) > 1:
        first, second = min(itertools.combinations(range(len(left)), 2), key=work)
        a, b, own, other = left[first], left[second], labels[first], labels[second]
        for each in (left, labels):
            del each[second], each[first]  # type: ignore[attr-defined]
        wanted = {*read.result, *(label for each in labels for label in each)}
        result = (
            tuple(label for label in dict.fromkeys((*own, *other)) if label in wanted)
            if left
            else read.result
        )
        text = ["".join(letters[label] for label in each) for each in (own, other, result)]
        left.append(run(einsum, f"{text[0]},{text[1]}->{text[2]}", a, b))
        labels.append(result)
    return left[0] if wide == dtype else run(_cast(dtype.name), left[0])


@functools.cache
def _cast(dtype: str) -> Function:
    return elementwise("x", dtype=dtype)


einsum: Function = Widened(_Einsum, _has_several, _in_pairs)
outer: Function = CustomOp.register(_Outer)
inner: Function = CustomOp.register(_Inner)


@Composed
def tensordot(run: Run, a: Array, b: Array, axes: Any = 2) -> Array:
    """The sum of products over some axes of both, as ``np.tensordot``.

    `axes` is the number of last axes of `a` and first axes of `b`, or a pair: the axes of `a` and the axes of
    `b`, each an int or several. The result has the other axes of `a`, then those of `b`. `a` and `b` are
    arrays, or Tensors, and the result is of the same kind. It is one `einsum`.

    Raises InvalidArgumentError for axes that do not fit, ArgumentTypeError for anything but axes;
    and what `einsum` raises.

    >>> a = np.arange(6).reshape(2, 3)
    >>> kp.ops.tensordot(a, a, axes=([0], [0])).tolist()
    [[9, 12, 15], [12, 17, 22], [15, 22, 29]]

    :dtypes: all; float16, bfloat16 and small ints are summed with 32
    :axes: several
    :error: one rounding, and n of the sum of the n absolute products (complex: 4 n); ints exact
    """
    left, right = _ndim("tensordot", "a", a), _ndim("tensordot", "b", b)
    ours, theirs = _pairs(axes, left, right)
    if left + right - len(ours) > len(_LETTERS):
        raise InvalidArgumentError(f"tensordot: {left} and {right} axes are more than there are letters")
    first = list(_LETTERS[:left])
    second = list(_LETTERS[left : left + right])
    for mine, other in zip(ours, theirs, strict=True):
        if a.shape[mine] != b.shape[other]:
            raise InvalidArgumentError(
                f"tensordot: axis {mine} of a has the length {a.shape[mine]}, and axis {other} of b "
                f"{b.shape[other]}"
            )
        second[other] = first[mine]
    kept = [each for n, each in enumerate(first) if n not in ours]
    kept += [each for n, each in enumerate(second) if n not in theirs]
    return run(einsum, f"{''.join(first)},{''.join(second)}->{''.join(kept)}", a, b)


def _ndim(who: str, name: str, value: Any) -> int:
    ndim = getattr(value, "ndim", None)
    if not isinstance(ndim, int):
        raise ArgumentTypeError(f"{who}: {name} is {shown(value)}; give a Tensor or an array")
    return ndim


def _pairs(axes: Any, left: int, right: int) -> tuple[list[int], list[int]]:
    """The summed axes of both sides, from 0 on."""
    if isinstance(axes, (int, np.integer)):
        n = int(axes)
        if not 0 <= n <= min(left, right):
            raise InvalidArgumentError(
                f"tensordot: axes is {n}; a has {left} axes and b {right}, so it is 0 to {min(left, right)}"
            )
        return list(range(left - n, left)), list(range(n))
    if isinstance(axes, np.ndarray) and axes.size > 2 * (left + right):
        raise InvalidArgumentError(
            f"tensordot: axes has {axes.size} numbers; a has {left} axes and b {right}, each given once"
        )
    try:
        given = [[each] if isinstance(each, (int, np.integer)) else list(each) for each in axes]
        ours, theirs = ([index(each) for each in side] for side in given)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"tensordot: axes is {shown(axes)}; give a number of axes, or a pair: axes of a, axes of b"
        ) from None
    for name, side, ndim in (("a", ours, left), ("b", theirs, right)):
        for each in side:
            if not -ndim <= each < ndim:
                raise InvalidArgumentError(f"tensordot: axes has {each} for {name}, which has {ndim} axes")
    ours, theirs = [each % left for each in ours], [each % right for each in theirs]
    if len(ours) != len(theirs) or len(set(ours)) < len(ours) or len(set(theirs)) < len(theirs):
        raise InvalidArgumentError(
            f"tensordot: axes is {shown(axes)}; give as many axes of a as of b, each once"
        )
    return ours, theirs


@Composed
def trace(run: Run, a: Array, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The sum of a diagonal of `a`, as ``np.trace``: of each matrix along `axis1` and `axis2`.

    `offset` is the column in which the diagonal begins; negative ones begin in later rows. `a` is an array or
    a Tensor, and the result is of the same kind: the shape without the two axes, and the dtype of
    `kp.ops.sum`. It is `diagonal` and `sum`.

    Raises what these raise.

    >>> kp.ops.trace(np.array([[1, 2], [3, 4]]))
    array(5)

    :dtypes: all
    :axes: two
    :error: 800 roundings of the sum of absolute values
    """
    return run(sum_of, run(diagonal, a, offset, axis1, axis2), axis=-1)
