"""Sorts, and what takes a part of one. Their order is that of NumPy's stable sort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._base.errors import InvalidArgumentError
from ..._custom.declaration import parse
from ..._custom.selection import FunctionSelection, refuse_structs
from ..._custom.specs import TensorSpec
from ..._functions.custom_op import CustomOp
from ..._functions.function import Function
from ..._memory.strided import StridedView
from .._places.composed import Composed, Run
from .._places.given import countable, shape_of
from .._places.indexing import take_along_axis
from .._places.moving import ascontiguousarray
from .keys import Key
from .radix import SortOp
from .segments import SegmentOp
from .selecting import SelectOp

Array = Any


def _index_dtype(ksel: FunctionSelection) -> str:
    return "int64" if ksel.may_have("shaderInt64") else "int32"


def _place(ksel: FunctionSelection, at: str, place: str) -> str:
    """The statement that stores a place."""
    kind = "int64_t" if ksel.results[0].dtype.itemsize == 8 else "int"
    return f"result_store({at}, {kind}({place}));"


class _FlatOperation(Function):
    """An operation of `x` along `axis`, None for all elements as one axis."""

    def _bind(self, args: tuple[Any, ...], named: Mapping[str, Any], meta: bool = False) -> list[Any]:
        place = self._at["axis"]
        if len(args) > place and args[place] is None:
            args = (*args[:place], -1, *args[place + 1 :])
        elif "axis" in named and named["axis"] is None:
            named = {**named, "axis": -1}
        else:
            return super()._bind(args, named, meta)
        values = super()._bind(args, named, meta)
        x = values[0]
        if isinstance(x, TensorSpec):
            values[0] = TensorSpec((x.size,), x.dtype)
        else:
            x = countable(x)
            values[0] = (ascontiguousarray(x) if isinstance(x, StridedView) else x).reshape(-1)
        return values


class _Sort(SortOp):
    """The elements of `x` in ascending order along `axis`, as ``np.sort(x, axis, stable=True)``; with None
    those of all axes, as one.

    `x` has any shape but (), and any dtype but complex ones; the result has both. NaN come last. -0.0 and 0.0
    are equal, and equal elements keep their order. With `descending` the highest come first, NaN before them,
    and equal elements keep their order, too.

    It is a radix sort (D. Merrill and A. Grimshaw, 2011) with a digit of 8 bits in each pass, and takes
    scratch memory for two copies of the keys. Axes of up to 256 elements are sorted by rank. On processors,
    many axes of up to 4,096 elements are merged, each by one invocation.

    Raises InvalidArgumentError for an axis that `x` does not have, and for more memory than shaders reach
    through one binding; UnimplementedError for complex numbers.

    >>> kp.ops.sort(np.array([3, 1, 2]))
    array([1, 2, 3])
    >>> kp.ops.sort(mgr.tensor([[3, 1], [2, 5]]), axis=0, descending=True).tolist()
    [[3.0, 5.0], [2.0, 1.0]]

    :dtypes: all but complex
    :axes: one, None for all
    :error: exact
    """

    signature = "sort(Tensor x, int axis=-1, *, bool descending=False) -> Tensor"
    moves_places = False

    def select(self, ksel: FunctionSelection) -> None:
        x, axis = self.begin(ksel, ksel.attr_int("axis").v)
        ksel.attr_bool("descending")
        ksel.return_new_tensor(x.shape, x.dtype)
        self.tell(ksel, x, axis, x.shape[axis])

    def store(self, ksel: FunctionSelection, key: Key, line: str, rank: str, place: str, raw: str) -> str:
        return f"result_store({self.at(rank, line)}, {key.from_raw.format(raw)});"


class _Argsort(SortOp):
    """The places of the elements of `x` in ascending order along `axis`, as
    ``np.argsort(x, axis, stable=True)``; with None among those of all axes, as one.

    The result has the shape of `x` and the dtype int64, or int32 on a device without 64-bit ints. The order
    is that of `kp.ops.sort`.

    Raises InvalidArgumentError and UnimplementedError as `kp.ops.sort`.

    >>> kp.ops.argsort(np.array([3, 1, 2])).tolist()
    [1, 2, 0]

    :dtypes: all but complex
    :axes: one
    :error: exact
    """

    signature = "argsort(Tensor x, int axis=-1, *, bool descending=False) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        x, axis = self.begin(ksel, ksel.attr_int("axis").v)
        ksel.attr_bool("descending")
        ksel.return_new_tensor(x.shape, _index_dtype(ksel))
        self.tell(ksel, x, axis, x.shape[axis])

    def store(self, ksel: FunctionSelection, key: Key, line: str, rank: str, place: str, raw: str) -> str:
        return _place(ksel, self.at(rank, line), place)


class _SortByKey(SortOp):
    """`keys` in ascending order along `axis`, and `values` in the order of their keys.

    Both have one shape and any dtypes, but complex keys; so have the results, ``(keys, values)``. The order
    is that of `kp.ops.sort`: values of equal keys keep their order.

    Raises InvalidArgumentError for other shapes, and what `kp.ops.sort` raises.

    >>> keys, values = kp.ops.sort_by_key(np.array([2, 1, 2]), np.array([5.0, 6.0, 7.0], np.float32))
    >>> keys.tolist(), values.tolist()
    ([1, 2, 2], [6.0, 5.0, 7.0])

    :dtypes: keys all but complex, values all, structs too
    :axes: one
    :error: exact
    """

    signature = (
        "sort_by_key(Tensor keys, Tensor values, int axis=-1, *, bool descending=False)"
        " -> (Tensor sorted_keys, Tensor sorted_values)"
    )
    keys = "keys"
    takes_structs = True  # the values are moved

    def select(self, ksel: FunctionSelection) -> None:
        x, axis = self.begin(ksel, ksel.attr_int("axis").v)
        refuse_structs(ksel.name, x)
        values = ksel.arg_tensor("values")
        if values.shape != x.shape:
            raise InvalidArgumentError(
                f"{ksel.name}: keys has the shape {x.shape}, and values {values.shape}; give one shape"
            )
        ksel.attr_bool("descending")
        ksel.return_new_tensor(x.shape, x.dtype)
        ksel.return_new_tensor(x.shape, values.dtype)
        self.tell(ksel, x, axis, x.shape[axis])

    def store(self, ksel: FunctionSelection, key: Key, line: str, rank: str, place: str, raw: str) -> str:
        """Stores the key, and the value of its place."""
        at = self.at(rank, line)
        return (
            f"sorted_keys_store({at}, {key.from_raw.format(raw)}); "
            f"sorted_values_store({at}, values_load({self.at(place, line)}));"
        )


class _SegmentedSort(SegmentOp):
    """`keys` in ascending order within each segment: one begins at element 0, and one at each of `offsets`.

    `keys` has one axis; `offsets` is a list of ints, which must ascend: else the result has the same elements
    in an undefined order. An offset of ``len(keys)`` or more does nothing, so the offsets may be those of a
    CSR matrix; one below 0 counts as 0. The order is that of `kp.ops.sort`.

    One invocation sorts each segment of up to 4,096 elements (on GPUs 64). Longer segments are sorted
    together by a radix sort.

    Raises InvalidArgumentError unless both have one axis, ArgumentTypeError for offsets that are not ints,
    and what `kp.ops.sort` raises.

    >>> kp.ops.segmented_sort(np.array([3, 1, 2, 9, 8, 7]), np.array([0, 3, 6])).tolist()
    [1, 2, 3, 7, 8, 9]

    :dtypes: keys all but complex, offsets ints
    :axes: one
    :error: exact
    """

    signature = "segmented_sort(Tensor keys, Tensor offsets, *, bool descending=False) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        self.segments(ksel)


class _Topk(SelectOp):
    """The `k` highest elements of `x` along `axis`, from the highest on, and their places, as
    ``torch.topk``; with ``largest=False`` the lowest, from the lowest on.

    The results are ``(values, indices)``, with length `k` on that axis; the indices are int64, or int32 on a
    device without 64-bit ints. NaN count as highest, and of equal elements the first comes first.

    Raises InvalidArgumentError if `k` is negative or above the length of the axis, and what `kp.ops.sort`
    raises. Of long axes it finds the element in place `k` by its digits (T. Alabi et al., "Fast k-selection
    algorithms for graphics processing units", 2012), and sorts those before it.

    >>> values, indices = kp.ops.topk(np.array([3, 9, 1, 7]), 2)
    >>> values.tolist(), indices.tolist()
    ([9, 7], [1, 3])

    :dtypes: all but complex
    :axes: one
    :error: exact
    """

    signature = "topk(Tensor x, int k, int axis=-1, *, bool largest=True) -> (Tensor values, Tensor indices)"

    def select(self, ksel: FunctionSelection) -> None:
        x, axis = self.begin(ksel, ksel.attr_int("axis").v)
        k = ksel.arg_int("k").v
        ksel.attr_bool("largest")
        if not 0 <= k <= x.shape[axis]:
            raise InvalidArgumentError(
                f"{ksel.name}: k is {k}, and the axis has {x.shape[axis]} elements; give 0 to {x.shape[axis]}"
            )
        shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
        ksel.return_new_tensor(shape, x.dtype)
        ksel.return_new_tensor(shape, _index_dtype(ksel))
        self.tell_selection(ksel, x, axis, k, k)

    def descending(self, ksel: FunctionSelection) -> bool:
        """By `largest`."""
        return bool(next(a.v for a in ksel.arg_descs if a is not None and a.name == "largest"))

    def store(self, ksel: FunctionSelection, key: Key, line: str, rank: str, place: str, raw: str) -> str:
        kind = "int64_t" if ksel.results[1].dtype.itemsize == 8 else "int"
        at = self.at(rank, line, "kp_stored")
        return f"values_store({at}, {key.from_raw.format(raw)}); indices_store({at}, {kind}({place}));"


class _Partition(SelectOp):
    """The elements of `x` along `axis` with the one that a sort puts in place `kth` there, as
    ``np.partition``: lower ones, and equal ones that come sooner, before it, the others after it.

    The result has the shape and dtype of `x`. Among the elements before it, and among those after it, lower,
    equal and higher ones each keep their order, or are sorted. NaN count as highest, and a negative `kth`
    counts from the end. `x` has any shape but ().

    It finds the element by its digits, as `kp.ops.topk`; short axes are sorted.

    Raises InvalidArgumentError if the axis has no place `kth`, and what `kp.ops.sort` raises.

    >>> kp.ops.partition(np.array([7, 1, 5, 3]), 1).tolist()[:2]
    [1, 3]

    :dtypes: all but complex
    :axes: one
    :error: exact
    """

    signature = "partition(Tensor x, int kth, int axis=-1) -> Tensor"
    sorts = False
    moves_places = False
    results_are_places = False

    def select(self, ksel: FunctionSelection) -> None:
        x, axis = self.begin(ksel, ksel.attr_int("axis").v)
        kth, n = ksel.arg_int("kth").v, x.shape[axis]
        if not -n <= kth < n:
            raise InvalidArgumentError(
                f"{ksel.name}: kth is {kth}, and the axis has {n} elements; give {-n} to {n - 1}"
                if n
                else f"{ksel.name}: kth is {kth}, and the axis has no elements"
            )
        ksel.return_new_tensor(x.shape, _index_dtype(ksel) if self.results_are_places else x.dtype)
        self.tell_selection(ksel, x, axis, kth % n + 1, n)

    def descending(self, ksel: FunctionSelection) -> bool:
        """The lowest come first."""
        return False

    def store(self, ksel: FunctionSelection, key: Key, line: str, rank: str, place: str, raw: str) -> str:
        return f"result_store({self.at(rank, line)}, {key.from_raw.format(raw)});"


class _Argpartition(_Partition):
    """The places of the elements that `kp.ops.partition` gives, as ``np.argpartition``.

    The result has the shape of `x` and the dtype int64, or int32 on a device without 64-bit ints.

    Raises what `kp.ops.partition` raises.

    >>> x = np.array([7, 1, 5, 3])
    >>> x[kp.ops.argpartition(x, 1)[:2]].tolist()
    [1, 3]

    :dtypes: all but complex
    :axes: one
    :error: exact
    """

    signature = "argpartition(Tensor x, int kth, int axis=-1) -> Tensor"
    moves_places = True
    results_are_places = True

    def store(self, ksel: FunctionSelection, key: Key, line: str, rank: str, place: str, raw: str) -> str:
        return _place(ksel, self.at(rank, line), place)


sort: Function = _FlatOperation(_Sort(), parse(_Sort.signature))
argsort: Function = _FlatOperation(_Argsort(), parse(_Argsort.signature))
sort_by_key: Function = CustomOp.register(_SortByKey)
segmented_sort: Function = CustomOp.register(_SegmentedSort)
topk: Function = CustomOp.register(_Topk)
partition: Function = CustomOp.register(_Partition)
argpartition: Function = CustomOp.register(_Argpartition)


@Composed
def lexsort(run: Run, keys: Sequence[Array] | Array, axis: int = -1) -> Array:
    """The places of elements in ascending order by several keys, the last one first, as ``np.lexsort``.

    `keys` are arrays or Tensors of one shape, or the rows of one. It runs `argsort` for each key, and
    `take_along_axis`. Raises their errors, and InvalidArgumentError if there are no keys.

    >>> kp.ops.lexsort((np.array([3, 1, 2]), np.array([0, 1, 0]))).tolist()
    [2, 0, 1]

    :dtypes: all but complex
    :axes: one
    :error: exact
    """
    rows = keys if isinstance(keys, (tuple, list)) else countable(keys)
    count = len(rows) if isinstance(rows, (tuple, list)) else (*shape_of(rows), 0)[0]
    if not count:
        raise InvalidArgumentError("lexsort: there are no keys; give one or more, as a tuple")
    order = None
    for place in range(count):
        if order is None:
            order = run(argsort, rows[place], axis)
        else:
            found = run(argsort, run(take_along_axis, rows[place], order, axis, "clip"), axis)
            order = run(take_along_axis, order, found, axis, "clip")
    return order
