"""Searches and counts with results of a fixed size: `searchsorted`, `bin_counts`, `int_counts`, and the
elements that a condition selects, with their number.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.errors import ArgumentTypeError, InvalidArgumentError
from ..._builders.elementwise import formula
from ..._builders.in_parts import InParts
from ..._builders.walks import TooLargeError, check_sizes, group_of, named, one_each, spread
from ..._custom.arg_descs import TensorArg
from ..._custom.declaration import parse
from ..._custom.selection import FunctionSelection
from ..._formulas.dtypes import converted, promoted
from ..._formulas.glsl_elements import element_of
from ..._functions.custom_op import CustomOp
from ..._functions.function import Function
from ..._memory.tensor import Tensor
from .exact_sums import WORDS, declare_count, declare_weights, find_largest, total
from .keys import key_of

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder

_RUNS = 1024
"""Runs of elements, each for an invocation."""
_LEAST = 256
"""Elements of the shortest run."""
_MOST_SHARED = 2048
"""Counters in shared memory, 8 of the 16 KiB that every device has."""
_SHARE = 64
"""Elements that an invocation of a workgroup with such counters takes."""
_FEW = 16
"""Elements that an invocation of a workgroup takes."""


def index_dtype(ksel: FunctionSelection) -> str:
    """The dtype of places and counts: NumPy's, if the device has it."""
    return "int64" if ksel.may_have("shaderInt64") else "int32"


def _index(tensor: TensorArg) -> str:
    return "int64_t" if tensor.dtype.itemsize == 8 else "int"


def require_common(ksel: FunctionSelection, a: TensorArg, b: TensorArg) -> None:
    """Raises UnimplementedError if the device does not compare elements of NumPy's common dtype."""
    dtype = promoted([a.dtype, b.dtype])
    ksel.require(dtype, f"{a.name} of {a.dtype} and {b.name} of {b.dtype} are compared in")
    key_of(ksel, dtype)


def _one_axis(ksel: FunctionSelection, x: TensorArg) -> None:
    if x.ndim != 1:
        raise InvalidArgumentError(f"{ksel.name}: {x.name} has the shape {x.shape}; give one axis")


class Keys:
    """The numbers of elements in the order, in NumPy's common dtype of the arguments."""

    def __init__(self, ksel: FunctionSelection, kb: FunctionBuilder, *names: str) -> None:
        self._dtypes = {name: kb.arg_value(name).dtype for name in names}
        self.dtype = promoted(list(self._dtypes.values()))
        element, key = element_of(self.dtype), key_of(ksel, self.dtype)
        self.type = key.type
        for extension in element.extensions:
            kb.extension(extension)
        key.declare_bits(kb)
        key.declare_order(kb)
        kb.declare(f"{key.type} kp_key({element.type} x) {{ return kp_order({key.to_raw.format('x')}); }}")

    def element(self, name: str, place: str) -> str:
        """An expression of an element."""
        return converted(f"{name}_load({place})", self._dtypes[name], self.dtype)

    def of(self, name: str, place: str) -> str:
        """An expression of the number of an element."""
        return f"kp_key({self.element(name, place)})"

    def is_number(self, name: str, place: str) -> str:
        """A condition that it is no NaN, with ``&&`` behind it."""
        each = f"{name}_load({place})"
        return f"{each} == {each} && " if element_of(self._dtypes[name]).type in ("float", "double") else ""


def bound(key: str, count: str, above: bool) -> str:
    """Statements that find the number ``low`` of sorted elements below ``own``, or not above it. `key` is
    that of the element ``middle``.
    """
    compare = "<=" if above else "<"
    return f"""
        uint low = 0u, high = {count};
        while (low < high) {{
            uint middle = low + (high - low) / 2u;
            if ({key} {compare} own) low = middle + 1u; else high = middle;
        }}"""


class _Searchsorted(CustomOp):
    """The places at which the elements of `v` go into the sorted `a`, as ``np.searchsorted``.

    `a` has one axis and ascends; `v` has any shape. They are compared in NumPy's common dtype. With the side
    "left" the place is the number of elements below, with "right" of those not above. The result has the
    shape of `v` and the dtype int64, or int32 on a device without 64-bit ints. NaN are above all, as in
    `kp.ops.sort`. Each element takes a binary search.

    Raises InvalidArgumentError for other shapes or another side, UnimplementedError for complex numbers.

    >>> kp.ops.searchsorted(np.array([1, 3, 3, 5]), np.array([3, 0, 9])).tolist()
    [1, 0, 4]
    >>> kp.ops.searchsorted(np.array([1, 3, 3, 5]), np.array([3]), "right").tolist()
    [3]

    :dtypes: all but complex
    :axes: None
    :error: exact
    """

    signature = 'searchsorted(Tensor a, Tensor v, str side="left") -> Tensor'

    def select(self, ksel: FunctionSelection) -> None:
        a, v = ksel.arg_tensor("a"), ksel.arg_tensor("v")
        side = ksel.attr_str("side").v
        _one_axis(ksel, a)
        require_common(ksel, a, v)
        if side not in ("left", "right"):
            raise InvalidArgumentError(f"{ksel.name}: side is {side!r}; give 'left' or 'right'")
        ksel.return_new_tensor(v.shape, index_dtype(ksel))
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        keys = Keys(ksel, kb, "a", "v")
        above = next(a.v for a in ksel.arg_descs if a is not None and a.name == "side") == "right"
        one_each(kb, kb.arg_value("v").size, "kp_i")
        kb.emit(f"{keys.type} own = {keys.of('v', 'kp_i')};")
        kb.emit(bound(keys.of("a", "middle"), "a_size", above))
        kb.emit(f"result_store(kp_i, {_index(ksel.results[0])}(low));")


class _InSorted(CustomOp):
    """Whether elements of `v` are in the sorted `a`, which has no less than one; NaN are not."""

    signature = "in_sorted(Tensor a, Tensor v, bool wanted) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        a, v = ksel.arg_tensor("a"), ksel.arg_tensor("v")
        ksel.attr_bool("wanted")
        _one_axis(ksel, a)
        require_common(ksel, a, v)
        ksel.return_new_tensor(v.shape, "bool")
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        keys = Keys(ksel, kb, "a", "v")
        one_each(kb, kb.arg_value("v").size, "kp_i")
        kb.emit(f"{keys.type} own = {keys.of('v', 'kp_i')};")
        kb.emit(bound(keys.of("a", "middle"), "a_size", False))
        there = f"low < a_size && {keys.of('a', 'min(low, a_size - 1u)')} == own"
        kb.emit(f"bool found = {keys.is_number('v', 'kp_i')}{there};")
        wanted = next(each.v for each in ksel.arg_descs if each is not None and each.name == "wanted")
        kb.emit(f"result_store(kp_i, {'' if wanted else '!'}found);")


class _Counts(CustomOp):
    """Counts, or sums of weights, by atomic additions to ints, which give the same result in any order.

    In the variant "group" a workgroup counts in its shared memory first, if there are few bins: additions to
    one address of the device's memory wait for each other.
    """

    def variants(self, ksel: FunctionSelection) -> list[str]:
        """In shared memory but on processors."""
        return ["run" if ksel.device is not None and ksel.device["type"] == "cpu" else "group"]

    def bin(self, ksel: FunctionSelection, kb: FunctionBuilder) -> str:
        """Statements that call ``kp_count`` with a bin for the element ``kp_i``, and ``kp_i``."""
        raise NotImplementedError

    def finish(self, ksel: FunctionSelection, length: int, dtype: np.dtype[Any] | None = None) -> None:
        """Declares the weights and the result; `dtype` is that of sums of weights, None for the weights'."""
        x = ksel.arg_descs[0]
        assert isinstance(x, TensorArg)
        weights = declare_weights(ksel, x)
        if weights is None:
            ksel.return_new_tensor((length,), index_dtype(ksel))
            ksel.value("kp_groups", -(-x.size // (group_of(ksel) * _SHARE)), "uint32")
        else:
            if weights.shape != x.shape:
                raise InvalidArgumentError(
                    f"{ksel.name}: weights has the shape {weights.shape}, and x {x.shape}; give a weight "
                    "for each element"
                )
            ksel.return_new_tensor((length,), weights.dtype if dtype is None else dtype)
        ksel.specialize(shared=weights is None and length <= _MOST_SHARED)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes kernels for zeros, the largest weight, counts, and the result in its dtype."""
        result = kb.result(0)
        weights = next((a for a in ksel.arg_descs if isinstance(a, TensorArg) and a.name == "weights"), None)
        count = kb.largest(result.size, 1) if weights is None else result.size * WORDS + 1
        kb.scratch("counts", count, "uint32")
        kb.begin_dispatch("zeros")
        one_each(kb, count, "kp_i")
        kb.emit("counts_store(kp_i, 0u);")
        if weights is not None:
            find_largest(kb, weights)
        kb.begin_dispatch("counts")
        if ksel.variant == "group" and ksel.special["shared"]:
            self._in_shared_memory(ksel, kb)
        else:
            if weights is None:
                kb.declare("void kp_count(uint n, uint i) { atomicAdd(counts[n], 1u); }")
            else:
                declare_count(kb, weights)
            one_each(kb, kb.arg_value("x").size, "kp_i")
            kb.emit(self.bin(ksel, kb))
        kb.begin_dispatch("result")
        found = f"{_index(ksel.results[0])}(counts_load(kp_i))"
        if weights is not None:
            found = total(kb, weights, ksel.results[0].dtype)
        one_each(kb, result.size, "kp_i")
        kb.emit(f"result_store(kp_i, {found});")

    def _in_shared_memory(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Each workgroup counts some elements. Few bins are there several times, for neighbours."""
        group = group_of(ksel)
        kb.workgroup(group)
        spread(kb, named("kp_groups"))
        kb.declare(f"""
            shared uint kp_bins[{_MOST_SHARED}];
            uint kp_own;
            void kp_count(uint n, uint i) {{ atomicAdd(kp_bins[kp_own + n], 1u); }}
        """)
        kb.emit(f"""
            if (kp_group >= kp_groups) return;
            uint kp_l = gl_LocalInvocationID.x, kp_copies = min(8u, {_MOST_SHARED}u / max(result_size, 1u));
            uint kp_all = kp_copies * result_size;
            kp_own = kp_l % kp_copies * result_size;
            for (uint n = kp_l; n < kp_all; n += {group}u) kp_bins[n] = 0u;
            barrier();
            uint kp_i = kp_group * {group * _SHARE}u + kp_l;
            for (uint turn = 0u; turn < {_SHARE}u && kp_i < x_size; ++turn, kp_i += {group}u) {{
                {self.bin(ksel, kb)}
            }}
            barrier();
            for (uint n = kp_l; n < result_size; n += {group}u) {{
                uint sum = 0u;
                for (uint at = n; at < kp_all; at += result_size) sum += kp_bins[at];
                if (sum != 0u) atomicAdd(counts[n], sum);
            }}
        """)


class _CountsInParts(InParts):
    """Counts of parts add up, and sums of weights, which are rounded once more for each part."""

    def _in_parts(self, values: list[Any], outs: tuple[Any, ...], error: TooLargeError) -> Any:
        x, other, weights = values
        size = math.prod(x.shape)
        given = [x] if weights is None else [x, weights]
        widest = max(each.dtype.itemsize for each in given)
        rows = error.most // widest // 256 * 256  # parts begin where shaders can bind them
        if any(not isinstance(each, (Tensor, np.ndarray)) for each in given) or not 0 < rows < size:
            raise error
        flat, found = [each.reshape(-1) for each in given], None
        for start in range(0, size, rows):
            part, *weighed = (each[start : start + rows] for each in flat)
            more = self(part, other, *weighed)
            found = more if found is None else formula("x + y")(found, more)
        return formula("x")(found, out=outs[0]) if outs else found


_WEIGHED = """With `weights`, of the shape of `x`, each element counts as much as its weight. Sums do not
    depend on the order: each weight is added as a multiple of a power of two that is at most 2^-93 of the
    largest weight times the number of elements."""
_WEIGHED_ERROR = (
    "2 ulp, and 2^-94 of the largest weight times the square of the number of elements; beyond one "
    "binding for each part"
)


class _IntCounts(_Counts):
    __doc__ = f"""How often each of the ints 0 to ``length - 1`` is in `x`: `kp.ops.bincount` with a result of
    a fixed size, which can be recorded. Other ints, also negative ones, are not counted.

    `x` has any shape. The result has `length` elements of dtype int64, or int32 on a device without 64-bit
    ints. {_WEIGHED} They are float64, or float32 on a device without it.

    Raises ArgumentTypeError unless `x` has ints or bools and `weights` real numbers, InvalidArgumentError for
    a negative length and weights of another shape.

    >>> kp.ops.int_counts(np.array([0, 2, 2, 7, -1]), 4).tolist()
    [1, 0, 2, 0]
    >>> kp.ops.int_counts(np.array([0, 2, 2]), 3, np.float32([0.5, 1, 2])).tolist()
    [0.5, 0.0, 3.0]

    :dtypes: ints and bool; weights all but complex
    :axes: None
    :error: exact; with weights {_WEIGHED_ERROR}
    """

    signature = "int_counts(Tensor x, int length, Tensor? weights=None) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        x = ksel.arg_tensor("x")
        length = ksel.arg_int("length").v
        if x.dtype.kind not in "biu":
            raise ArgumentTypeError(f"{ksel.name}: x is of {x.dtype}; give ints")
        if length < 0:
            raise InvalidArgumentError(f"{ksel.name}: length is {length}; give 0 or more")
        wide = ksel.may_have("shaderFloat64")
        self.finish(ksel, length, np.dtype(np.float64 if wide else np.float32))

    def bin(self, ksel: FunctionSelection, kb: FunctionBuilder) -> str:
        """By the int itself."""
        kind = kb.arg_value("x").type
        if kind == "bool":
            return "uint n = x_load(kp_i) ? 1u : 0u; if (n < result_size) kp_count(n, kp_i);"
        low = "" if kind.startswith("u") else f"n >= {kind}(0) && "
        wide = "uint64_t" if kind.endswith("64_t") else "uint"
        return f"{kind} n = x_load(kp_i); if ({low}{wide}(n) < {wide}(result_size)) kp_count(uint(n), kp_i);"


class _BinCounts(_Counts):
    __doc__ = f"""How many elements of `x` are in each bin: `kp.ops.histogram` with edges that the device has,
    which can be recorded.

    `edges` has one axis and ascends; `x` has any shape. They are compared in NumPy's common dtype. Bin `i`
    has the elements from ``edges[i]`` to below ``edges[i + 1]``, and the last bin ``edges[-1]``, too. Others
    and NaN are not counted. The result has the dtype int64, or int32 on a device without 64-bit ints.

    {_WEIGHED} They have the dtype of the weights; ints wrap.

    Raises InvalidArgumentError for fewer than two edges or another shape, ArgumentTypeError for complex or
    bool weights, UnimplementedError for complex numbers.

    >>> kp.ops.bin_counts(np.float32([0, 1, 2, 2.5, 4]), np.float32([0, 2, 4])).tolist()
    [2, 3]

    :dtypes: all but complex; weights all but complex and bool
    :axes: None
    :error: exact; with weights {_WEIGHED_ERROR}
    """

    signature = "bin_counts(Tensor x, Tensor edges, Tensor? weights=None) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        x, edges = ksel.arg_tensor("x"), ksel.arg_tensor("edges")
        _one_axis(ksel, edges)
        require_common(ksel, x, edges)
        if edges.size < 2:
            raise InvalidArgumentError(f"{ksel.name}: edges has {edges.size} elements; give two or more")
        self.finish(ksel, edges.size - 1)
        weights = ksel.arg_descs[2]
        if isinstance(weights, TensorArg) and weights.dtype == np.bool_:
            raise ArgumentTypeError(f"{ksel.name}: weights is of bool; convert it: weights.astype(np.int32)")

    def bin(self, ksel: FunctionSelection, kb: FunctionBuilder) -> str:
        """By a binary search."""
        keys = Keys(ksel, kb, "x", "edges")
        in_bins = f"low > 0u && own <= {keys.of('edges', 'result_size')}"
        return f"""
            {keys.type} own = {keys.of("x", "kp_i")};
            {bound(keys.of("edges", "middle"), "result_size", True)}
            if ({keys.is_number("x", "kp_i")}{in_bins}) kp_count(low - 1u, kp_i);
        """


class _Selection(CustomOp):
    """The elements that a condition selects, in their order, at the beginning of a result.

    Runs of elements are counted, the counts added up, and each run moves its elements. In the variant "run"
    an invocation has a long run; in "group" a workgroup has one, and each of its invocations a few elements.
    """

    condition = "x"

    def variants(self, ksel: FunctionSelection) -> list[str]:
        """Long runs on processors, workgroups elsewhere."""
        return ["run" if ksel.device is not None and ksel.device["type"] == "cpu" else "group"]

    def begin(self, ksel: FunctionSelection) -> TensorArg:
        """Declares the condition, and the numbers of the kernels."""
        x = ksel.arg_tensor(self.condition)
        if x.dtype.kind == "c":
            raise ArgumentTypeError(
                f"{ksel.name}: {x.name} is of {x.dtype}; compare it: kp.ops.not_equal({x.name}, 0)"
            )
        for way, each in (("run", max(_LEAST, -(-x.size // _RUNS))), ("group", group_of(ksel) * _FEW)):
            ksel.value(f"kp_each_{way}", each, "uint32")
            ksel.value(f"kp_runs_{way}", max(-(-x.size // each), 1), "uint32")
        return x

    def taken(self, ksel: FunctionSelection, kb: FunctionBuilder) -> str:
        """The expression that is stored for the element ``kp_k``."""
        raise NotImplementedError

    def rest(self, ksel: FunctionSelection, kb: FunctionBuilder) -> str:
        """The expression that is stored behind those elements."""
        raise NotImplementedError

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes four kernels: how many each run has, how many stand before it, the elements, the rest."""
        c, group = self.condition, ksel.variant == "group"
        result = ksel.results[0].name
        runs = f"kp_runs_{ksel.variant or 'run'}"
        chosen = f"{c}_load(kp_k)"
        if kb.arg_value(c).type != "bool":
            chosen = f"({chosen} != {kb.arg_value(c).type}(0))"
        count = _turns(f"if ({chosen}) ++kp_t;")
        kb.scratch("sums", named(runs), "uint32")
        self.begin_runs(ksel, kb, "count", runs)
        kb.emit(count)
        if group:
            _add_before(kb)
        kb.emit(f"{'if (kp_l + 1u == gl_WorkGroupSize.x) ' * group}sums_store(kp_run, kp_t);")
        kb.begin_dispatch("carry")
        kb.workgroup(group_of(ksel))
        kb.groups(1)
        kb.emit(f"""
            uint kp_l = gl_LocalInvocationID.x, each = ({runs} - 1u) / gl_WorkGroupSize.x + 1u, kp_t = 0u;
            uint first = min(kp_l * each, {runs}), last = min(first + each, {runs});
            for (uint run = first; run < last; ++run) kp_t += sums_load(run);
        """)
        _add_before(kb)
        kb.emit(f"""
            if (kp_l + 1u == gl_WorkGroupSize.x) count_store(0u, {_index(ksel.results[1])}(kp_t));
            kp_t -= kp_own;
            for (uint run = first; run < last; ++run) {{
                uint own = sums_load(run);
                sums_store(run, kp_t);
                kp_t += own;
            }}
        """)
        self.begin_runs(ksel, kb, "move", runs)
        if group:
            kb.emit(f"uint kp_first = kp_k; {count} kp_k = kp_first;")
            _add_before(kb)
            kb.emit("kp_t -= kp_own;")
        kb.emit("kp_t += sums_load(kp_run);")
        kb.emit(_turns(f"if ({chosen}) {{ {result}_store(kp_t, {self.taken(ksel, kb)}); ++kp_t; }}"))
        kb.begin_dispatch("rest")
        one_each(kb, kb.result(0).size, "kp_i")
        kb.emit("if (kp_i < uint(count_load(0u))) return;")
        kb.emit(f"{result}_store(kp_i, {self.rest(ksel, kb)});")

    def begin_runs(self, ksel: FunctionSelection, kb: FunctionBuilder, name: str, runs: str) -> None:
        """A dispatch over all runs, with the bounds ``kp_k`` and ``kp_e`` of each invocation."""
        kb.begin_dispatch(name)
        if ksel.variant == "group":
            kb.workgroup(group_of(ksel))
            spread(kb, named(runs))
            kb.emit(f"""
                uint kp_run = kp_group, kp_l = gl_LocalInvocationID.x;
                if (kp_run >= {runs}) return;
                uint kp_k = kp_run * kp_each_group + kp_l * {_FEW}u, kp_each = {_FEW}u;
            """)
        else:
            kb.workgroup(64)
            spread(kb, kb.ceil_div(named(runs), 64))
            kb.emit(f"""
                uint kp_run = kp_group * 64u + gl_LocalInvocationID.x;
                if (kp_run >= {runs}) return;
                uint kp_k = kp_run * kp_each_run, kp_each = kp_each_run;
            """)
        kb.emit(f"""
            kp_k = min(kp_k, {self.condition}_size);
            uint kp_e = min(kp_k + kp_each, {self.condition}_size), kp_t = 0u;
        """)


def _turns(one: str) -> str:
    """Loops that do this for the elements from ``kp_k`` to ``kp_e``."""
    one = f"{{ {one} ++kp_k; }}"
    return f"while (kp_e - kp_k >= 4u) {{ {one * 4} }} while (kp_k < kp_e) {one}"


def _add_before(kb: FunctionBuilder) -> None:
    """Adds to ``kp_t`` of invocation ``kp_l`` those of the invocations before it, and keeps ``kp_own``."""
    kb.declare(f"shared uint kp_ts[{group_of(kb.selection)}];")
    kb.emit("""
        uint kp_own = kp_t;
        for (uint step = 1u; step < gl_WorkGroupSize.x; step *= 2u) {
            kp_ts[kp_l] = kp_t;
            barrier();
            if (kp_l >= step) kp_t += kp_ts[kp_l - step];
            barrier();
        }
    """)


class _NonzeroPlaces(_Selection):
    """The places of the elements of `x` that are not zero, and their number: `kp.ops.flatnonzero` with
    results of a fixed size, which can be recorded.

    The results are ``(places, count)``: `places` has ``x.size`` elements, and those from `count` on are -1.
    Places count in row-major order. Both are int64, or int32 on a device without 64-bit ints. NaN is not
    zero.

    Raises ArgumentTypeError for complex numbers.

    >>> places, count = kp.ops.nonzero_places(np.array([0, 5, 0, 7]))
    >>> places.tolist(), int(count)
    ([1, 3, -1, -1], 2)

    :dtypes: all but complex
    :axes: None
    :error: exact
    """

    signature = "nonzero_places(Tensor x) -> (Tensor places, Tensor count)"

    def select(self, ksel: FunctionSelection) -> None:
        x = self.begin(ksel)
        ksel.return_new_tensor((x.size,), index_dtype(ksel))
        ksel.return_new_tensor((), index_dtype(ksel))
        check_sizes(ksel)

    def taken(self, ksel: FunctionSelection, kb: FunctionBuilder) -> str:
        """The place."""
        return f"{_index(ksel.results[0])}(kp_k)"

    def rest(self, ksel: FunctionSelection, kb: FunctionBuilder) -> str:
        """That there is none."""
        return f"{_index(ksel.results[0])}(-1)"


class _Selected(_Selection):
    """The elements of `x` at which `condition` is not zero, and their number: `kp.ops.compress` with results
    of a fixed size, which can be recorded.

    `condition` has no more elements than `x`; both are taken in row-major order. The results are
    ``(values, count)``: `values` has ``condition.size`` elements of the dtype of `x`, and those from `count`
    on are zeros. The count is int64, or int32 on a device without 64-bit ints.

    Raises InvalidArgumentError for a longer condition, ArgumentTypeError for a complex one.

    >>> values, count = kp.ops.selected(np.array([True, False, True]), np.array([5, 6, 7]))
    >>> values.tolist(), int(count)
    ([5, 7, 0], 2)

    :dtypes: all, the condition all but complex
    :axes: None
    :error: exact
    """

    signature = "selected(Tensor condition, Tensor x) -> (Tensor values, Tensor count)"
    condition = "condition"

    def select(self, ksel: FunctionSelection) -> None:
        condition = self.begin(ksel)
        x = ksel.arg_tensor("x")
        if condition.size > x.size:
            raise InvalidArgumentError(
                f"{ksel.name}: condition has {condition.size} elements, and x only {x.size}"
            )
        ksel.return_new_tensor((condition.size,), x.dtype)
        ksel.return_new_tensor((), index_dtype(ksel))
        check_sizes(ksel)

    def taken(self, ksel: FunctionSelection, kb: FunctionBuilder) -> str:
        """The element."""
        return "x_load(kp_k)"

    def rest(self, ksel: FunctionSelection, kb: FunctionBuilder) -> str:
        """Zero."""
        return f"{kb.arg_value('x').type}(0)"


class _RunStarts(CustomOp):
    """Whether each element of `x` differs from its neighbour before; NaN count as equal.

    `x` has one axis, in any order; the result is of bools. The first element begins a run. Of a run-length
    encoding, ``at = kp.ops.flatnonzero(kp.ops.run_starts(x))`` has the places, ``kp.ops.take(x, at)`` the
    values, and ``kp.ops.diff(at, append=len(x))`` the lengths.

    Raises InvalidArgumentError for other shapes, UnimplementedError for complex numbers.

    >>> kp.ops.run_starts(np.array([1, 1, 2])).tolist()
    [True, False, True]

    :dtypes: all but complex
    :axes: None
    :error: exact
    """

    signature = "run_starts(Tensor x) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        x = ksel.arg_tensor("x")
        _one_axis(ksel, x)
        key_of(ksel, x.dtype)
        ksel.return_new_tensor(x.shape, np.bool_)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        keys = Keys(ksel, kb, "x")
        one_each(kb, kb.arg_value("x").size, "kp_i")
        before = keys.of("x", "max(kp_i, 1u) - 1u")
        kb.emit(f"bool first = kp_i == 0u || {keys.of('x', 'kp_i')} != {before};")
        kb.emit("result_store(kp_i, first);")


searchsorted: Function = CustomOp.register(_Searchsorted)
in_sorted: Function = CustomOp.register(_InSorted)
int_counts: Function = _CountsInParts(_IntCounts(), parse(_IntCounts.signature))
bin_counts: Function = _CountsInParts(_BinCounts(), parse(_BinCounts.signature))
nonzero_places: Function = CustomOp.register(_NonzeroPlaces)
selected: Function = CustomOp.register(_Selected)
run_starts: Function = CustomOp.register(_RunStarts)
