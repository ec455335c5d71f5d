"""Elements by index along an axis, and elements written at indices; padding and triangles.

Writes at indices are two or three dispatches. If several elements go to one place, atomic operations decide:
the highest number wins, so that the result is that of writing one after the other, or the elements are added.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..._base.errors import InvalidArgumentError, UnimplementedError
from ..._builders.walks import axes_of, check_sizes, group_of, one_each
from ..._custom.arg_descs import TensorArg
from ..._custom.expressions import IntOrSize
from ..._custom.selection import FunctionSelection
from ..._formulas.dtypes import castable, converted
from ..._formulas.glsl import functions_in
from ..._formulas.glsl_elements import element_of
from ..._functions.custom_op import CustomOp
from .moving import check_indices, within
from .raising import raising

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder
    from ..._functions.function import Function


class _Indexed(CustomOp):
    """Elements at indices along an axis: element j of `many` belongs to the index j of the same lines."""

    in_place = True
    takes_structs = True

    def find_axis(self, ksel: FunctionSelection, x: TensorArg, indices: TensorArg) -> int:
        """Declares the axis and what kernels need to find places. Returns the axis from 0 on."""
        (axis,) = axes_of(ksel.name, [ksel.attr_int("axis").v], x.ndim)
        check_indices(ksel, indices, x.shape[axis], f"axis {axis} of x")
        ksel.value("kp_n", x.shape[axis], "uint32")
        ksel.value("kp_step", math.prod(x.shape[axis + 1 :]), "uint32")
        return axis

    def place(self, ksel: FunctionSelection, kb: FunctionBuilder, j: str, index: str) -> str:
        """Statements that set ``place`` for the element `j`; ``index`` is the number of its index."""
        kind = kb.arg_value("indices").type
        return f"""
            uint inner = {j} % kp_step, rest = {j} / kp_step, outer = rest / kp_lines;
            {kind} k = indices_load({index});
            {within(kind, ksel.attribute("mode"))}
            uint place = (outer * kp_n + uint(k)) * kp_step + inner;"""

    def each(self, kb: FunctionBuilder, name: str, count: IntOrSize) -> None:
        """Begins a dispatch with an invocation ``i`` for each of `count` elements."""
        kb.begin_dispatch(name)
        one_each(kb, count, "i")


def _same_lines(ksel: FunctionSelection, x: TensorArg, indices: TensorArg, axis: int) -> None:
    """Raises InvalidArgumentError unless the shapes are the same but for `axis`."""
    others = [each.shape[:axis] + each.shape[axis + 1 :] for each in (x, indices)]
    if x.ndim != indices.ndim or others[0] != others[1]:
        raise InvalidArgumentError(
            f"{ksel.name}: indices has the shape {indices.shape}, and x {x.shape}; they may differ on axis "
            f"{axis} only"
        )


class _TakeAlongAxis(_Indexed):
    """The elements of `x` at `indices` along `axis`, line by line, as ``np.take_along_axis``: such as the
    indices that `argsort` gives.

    `indices` has the shape of `x` but for `axis`, and so has the result. `mode` is as for
    `kp.ops.take`.

    Raises OutOfRangeError with the mode "raise", InvalidArgumentError for other shapes, an axis that `x` does
    not have or without elements, and another mode; ArgumentTypeError for indices that are not ints.

    >>> x = mgr.tensor([[3, 1, 2], [4, 6, 5]])
    >>> kp.ops.take_along_axis(x, kp.ops.argsort(x, axis=1), axis=1, mode="clip").tolist()
    [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]

    :dtypes: all; indices ints
    :axes: one
    :error: exact
    """

    signature = "take_along_axis(Tensor x, Tensor indices, int axis, str mode='raise') -> Tensor"
    in_place = False

    def select(self, ksel: FunctionSelection) -> None:
        x, indices = ksel.arg_tensor("x"), ksel.arg_tensor("indices")
        axis = self.find_axis(ksel, x, indices)
        _same_lines(ksel, x, indices, axis)
        ksel.value("kp_lines", max(indices.shape[axis], 1), "uint32")
        ksel.return_new_tensor(indices.shape, x.dtype)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        self.each(kb, "take", kb.result(0).size)
        kb.emit(self.place(ksel, kb, "i", "i"))
        kb.emit("result_store(i, x_load(place));")


class _Put(_Indexed):
    """Elements that are replaced: the last of those that go to one place stays."""

    in_place = False  # the last dispatch reads values anywhere: a result in their place would change them

    def write(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """The place of each index."""
        raise NotImplementedError

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Notes which element comes last at each place, then writes the elements."""
        kb.scratch("last", kb.result(0).size, "uint32")
        self.each(kb, "begin", kb.result(0).size)
        kb.emit("last[i] = 0u;")
        self.each(kb, "places", kb.arg_value("indices").size)
        self.write(ksel, kb)
        kb.emit("atomicMax(last[place], i + 1u);")
        self.each(kb, "put", kb.result(0).size)
        given, wanted = kb.arg_value("values").dtype, ksel.results[0].dtype
        for extension in (*element_of(given).extensions, *element_of(wanted).extensions):
            kb.extension(extension)
        value = converted("values_load((at - 1u) % values_size)", given, wanted)
        for function in functions_in(value).values():
            kb.declare(function)
        kb.emit("uint at = last[i];")
        kb.emit("if (at == 0u) result_store(i, x_load(i));")
        kb.emit(f"else result_store(i, {value});")

    def check_values(self, ksel: FunctionSelection, x: TensorArg, values: TensorArg, count: int) -> None:
        """Raises InvalidArgumentError for values that do not become elements of `x`, or for none."""
        if not castable(values.dtype, x.dtype):
            structs = values.dtype.names or x.dtype.names
            fix = (
                "give structs of one dtype"
                if structs
                else f"convert them: kp.ops.astype(values, {x.dtype.name!r})"
            )
            raise InvalidArgumentError(f"{ksel.name}: values is of {values.dtype}, and x of {x.dtype}; {fix}")
        if count and not values.size:
            raise InvalidArgumentError(f"{ksel.name}: values has no elements, and there are {count} indices")


class _PutFlat(_Put):
    """`x` with `values` at `indices` of its elements in row-major order, as ``np.put``, which changes `x`
    itself: here ``out=x`` does.

    `indices` and `values` have any shapes; values are repeated if they are fewer. If an index stands several
    times, the last one counts. `mode` is as for `kp.ops.take`.

    Raises OutOfRangeError with the mode "raise", InvalidArgumentError for values that do not convert to the
    dtype of `x`, for no values, and for another mode; ArgumentTypeError for indices that are not ints.

    >>> kp.ops.put(mgr.zeros(4), np.array([1, 3]), np.array([5, 6], np.float32), mode="clip").tolist()
    [0.0, 5.0, 0.0, 6.0]

    :dtypes: all; indices ints
    :axes: all, as one
    :error: exact
    """

    signature = "put(Tensor x, Tensor indices, Tensor values, str mode='raise') -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        x, indices, values = (ksel.arg_tensor(name) for name in ("x", "indices", "values"))
        check_indices(ksel, indices, x.size, "x")
        ksel.value("kp_n", x.size, "uint32")
        self.check_values(ksel, x, values, indices.size)
        ksel.return_new_tensor(x.shape, x.dtype)
        check_sizes(ksel)

    def write(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        kind = kb.arg_value("indices").type
        kb.emit(f"{kind} k = indices_load(i); {within(kind, ksel.attribute('mode'))} uint place = uint(k);")


class _PutAlongAxis(_Put):
    """`x` with `values` at `indices` along `axis`, line by line, as ``np.put_along_axis``, which changes `x`
    itself: here ``out=x`` does.

    `indices` has the shape of `x` but for `axis`; `values` has the shape of `indices`, or one element. If an
    index stands several times in a line, the last one counts. `mode` is as for `put`.

    Raises OutOfRangeError with the mode "raise", InvalidArgumentError for other shapes, an axis that `x` does
    not have, values that do not convert to the dtype of `x`, and another mode; ArgumentTypeError for indices
    that are not ints.

    >>> x = mgr.tensor([[3, 1, 2], [4, 6, 5]])
    >>> kp.ops.put_along_axis(x, np.array([[1], [0]]), np.array([9.0], np.float32), 1, "clip").tolist()
    [[3.0, 9.0, 2.0], [9.0, 6.0, 5.0]]

    :dtypes: all; indices ints
    :axes: one
    :error: exact
    """

    signature = (
        "put_along_axis(Tensor x, Tensor indices, Tensor values, int axis, str mode='raise') -> Tensor"
    )

    def select(self, ksel: FunctionSelection) -> None:
        x, indices, values = (ksel.arg_tensor(name) for name in ("x", "indices", "values"))
        axis = self.find_axis(ksel, x, indices)
        _same_lines(ksel, x, indices, axis)
        if values.shape != indices.shape and values.size != 1:
            raise InvalidArgumentError(
                f"{ksel.name}: values has the shape {values.shape}, and indices {indices.shape}; give as "
                "many, or one"
            )
        self.check_values(ksel, x, values, indices.size)
        ksel.value("kp_lines", max(indices.shape[axis], 1), "uint32")
        ksel.return_new_tensor(x.shape, x.dtype)
        check_sizes(ksel)

    def write(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        kb.emit(self.place(ksel, kb, "i", "i"))


_ADDED = ("float", "int", "uint", "int64_t", "uint64_t")
"""The types of elements that are added, of 64 bits by halves with a carry."""


class _ScatterAdd(_Indexed):
    """`x` with `values` added at `indices` along `axis`: what goes to one place is added up, as
    ``np.add.at(x, indices, values)`` does for the first axis and PyTorch's ``index_add``.

    `values` has the shape of ``take(x, indices, axis)``: the axes of `indices` where `axis` was. `mode`
    is as for `kp.ops.take`. With ``out=x``, `x` itself
    changes. Elements are added by atomic operations, so that the order of a sum is not fixed: floats may
    differ by roundings from run to run. float16 and bfloat16 are added in float32, ints wrap. float64 is
    sorted and scanned as for `kp.ops.scatter_max`, and so are bools: their sum tells if any is true.

    Raises OutOfRangeError with the mode "raise", InvalidArgumentError for other shapes, an axis that `x` does
    not have, values that do not convert to the dtype of `x`, and another mode; ArgumentTypeError for indices
    that are not ints; UnimplementedError for complex numbers.

    >>> rows = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    >>> kp.ops.scatter_add(mgr.zeros((2, 2)), np.array([0, 1, 0]), rows, axis=0, mode="clip").tolist()
    [[6.0, 8.0], [3.0, 4.0]]

    :dtypes: all but complex; indices ints
    :axes: one
    :error: a rounding of the sum of absolute values for each value; exact for ints
    """

    signature = "scatter_add(Tensor x, Tensor indices, Tensor values, int axis, str mode='raise') -> Tensor"
    takes_structs = False

    def select(self, ksel: FunctionSelection) -> None:
        x, indices, values = (ksel.arg_tensor(name) for name in ("x", "indices", "values"))
        axis = self.find_axis(ksel, x, indices)
        if element_of(x.dtype).type not in _ADDED:
            raise UnimplementedError(
                f"{ksel.name}: x is of {x.dtype}; it takes real numbers: kp.ops.real, kp.ops.imag"
            )
        wanted = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
        if values.shape != wanted:
            raise InvalidArgumentError(
                f"{ksel.name}: values has the shape {values.shape}; with x {x.shape}, indices "
                f"{indices.shape} and axis {axis} it is {wanted}"
            )
        if not castable(values.dtype, x.dtype):
            raise InvalidArgumentError(
                f"{ksel.name}: values is of {values.dtype}, and x of {x.dtype}; convert them: "
                f"kp.ops.astype(values, {x.dtype.name!r})"
            )
        ksel.value("kp_lines", max(indices.size, 1), "uint32")
        ksel.return_new_tensor(x.shape, x.dtype)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes the elements' bits into scratch memory, adds there, and brings them back."""
        kind = element_of(ksel.results[0].dtype).type
        wide = kind.endswith("64_t")
        kb.scratch("sums", kb.result(0).size * 2 if wide else kb.result(0).size, "uint32")
        self.each(kb, "begin", kb.result(0).size)
        if wide:
            kb.emit("uvec2 bits = unpackUint2x32(uint64_t(x_load(i)));")
            kb.emit("sums[2u * i] = bits.x; sums[2u * i + 1u] = bits.y;")
        else:
            kb.emit(f"sums[i] = {self.word(kb, kind, 'x_load(i)')};")
        self.each(kb, "add", kb.arg_value("values").size)
        kb.emit(self.place(ksel, kb, "i", "rest - outer * kp_lines"))
        if wide:
            given = ksel.arg_descs[2]
            assert isinstance(given, TensorArg)
            value = converted("values_load(i)", given.dtype, ksel.results[0].dtype)
            kb.extension("GL_EXT_shader_explicit_arithmetic_types_int64")
            kb.emit(f"""
                uvec2 add = unpackUint2x32(uint64_t({value}));
                add.y += atomicAdd(sums[2u * place], add.x) > ~add.x ? 1u : 0u;
                if (add.y != 0u) atomicAdd(sums[2u * place + 1u], add.y);""")
        else:
            self.combine(kb, kind)
        self.each(kb, "end", kb.result(0).size)
        bits = f"{kind}(packUint2x32(uvec2(sums[2u * i], sums[2u * i + 1u])))"
        kb.emit(f"result_store(i, {bits if wide else self.number(kb, kind)});")

    def word(self, kb: FunctionBuilder, kind: str, value: str) -> str:
        """A value as it lies in scratch memory."""
        return f"floatBitsToUint({value})" if kind == "float" else f"uint({value})"

    def number(self, kb: FunctionBuilder, kind: str) -> str:
        """The value of a word there, ``sums[i]``."""
        return {"float": "uintBitsToFloat(sums[i])", "int": "int(sums[i])"}.get(kind, "sums[i]")

    def combine(self, kb: FunctionBuilder, kind: str) -> None:
        """Brings the value ``values_load(i)`` to the word of its place, ``sums[place]``."""
        if kind == "float":
            kb.emit("""
                float value = float(values_load(i));
                uint before = sums[place], found;
                while (true) {
                    uint after = floatBitsToUint(uintBitsToFloat(before) + value);
                    found = atomicCompSwap(sums[place], before, after);
                    if (found == before) break;
                    before = found;
                }""")
        else:
            kb.emit(f"atomicAdd(sums[place], uint({kind}(values_load(i))));")


class _Triangle(CustomOp):
    """Matrices with zeros on one side of a diagonal."""

    kept = ""
    in_place = True

    def select(self, ksel: FunctionSelection) -> None:
        x = ksel.arg_tensor("x")
        k = ksel.arg_int("k").v
        if x.ndim < 2:
            raise InvalidArgumentError(f"{ksel.name}: x has the shape {x.shape}; a matrix has two axes")
        ksel.value("kp_rows", x.shape[-2], "uint32")
        ksel.value("kp_columns", x.shape[-1], "uint32")
        # All diagonals beyond the matrix are one, so that differences fit an int.
        ksel.value("kp_k", min(max(k, -x.shape[-2] - 1), x.shape[-1] + 1), "int32")
        ksel.return_new_tensor(x.shape, x.dtype, may_reuse="x")
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        kind = element_of(ksel.results[0].dtype).type
        zero = "false" if kind == "bool" else f"{kind}(0)"
        if kind in ("int64_t", "uint64_t"):
            kb.extension("GL_EXT_shader_explicit_arithmetic_types_int64")
        kb.workgroup(group_of(ksel))
        kb.emit("int kp_past = int(i % kp_columns) - int(i / kp_columns % kp_rows) - kp_k;")
        kb.yield_results(f"kp_past {self.kept} 0 ? x_load(i) : {zero}")


class _Tril(_Triangle):
    """Matrices with zeros above the diagonal `k`, as ``np.tril``: the last two axes of `x`. Positive `k` keep
    diagonals above the main one.

    Raises InvalidArgumentError for fewer than two axes.

    >>> kp.ops.tril(mgr.tensor([[1, 2], [3, 4]])).tolist()
    [[1.0, 0.0], [3.0, 4.0]]

    :dtypes: all
    :axes: last two
    :error: exact
    """

    signature = "tril(Tensor x, int k=0) -> Tensor"
    kept = "<="


class _Triu(_Triangle):
    """Matrices with zeros below the diagonal `k`, as ``np.triu``: the last two axes of `x`. Positive `k` drop
    diagonals from the main one on.

    Raises InvalidArgumentError for fewer than two axes.

    >>> kp.ops.triu(mgr.tensor([[1, 2], [3, 4]])).tolist()
    [[1.0, 2.0], [0.0, 4.0]]

    :dtypes: all
    :axes: last two
    :error: exact
    """

    signature = "triu(Tensor x, int k=0) -> Tensor"
    kept = ">="


_MODES = {
    "constant": "",
    "edge": "c = clamp(c, 0, n - 1);",
    "wrap": "c = c < 0 ? n - 1 - (-1 - c) % n : c % n;",
    "reflect": "int p = max(2 * n - 2, 1); c = c < 0 ? p - 1 - (-1 - c) % p : c % p; if (c >= n) c = p - c;",
    "symmetric": "int p = 2 * n; c = c < 0 ? p - 1 - (-1 - c) % p : c % p; if (c >= n) c = p - 1 - c;",
}
"""Statements that bring the coordinate c into an axis of n elements. Vulkan leaves open what % gives for
negative numbers, and GPUs differ.
"""


class _Pad(CustomOp):
    """`x` with elements added at the ends of each axis, as ``np.pad``.

    `pad_width` has for each axis the numbers of elements before and after, ``((b0, a0), (b1, a1))``; two ints
    are for all axes, and one is for all ends. `mode` says which elements: "constant" (`constant_values`),
    "edge" (those at the ends), "reflect" and "symmetric" (mirrored, without or with those at the ends),
    "wrap" (those of the other end).

    Raises InvalidArgumentError for negative or other numbers of widths, another mode, and an axis without
    elements that is to be padded by any mode but "constant".

    >>> kp.ops.pad(mgr.tensor([1, 2, 3]), [1, 2], "reflect").tolist()
    [2.0, 1.0, 2.0, 3.0, 2.0, 1.0]

    :dtypes: all
    :axes: any
    :error: exact
    """

    signature = "pad(Tensor x, int[]? pad_width, str mode='constant', float constant_values=0.0) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        x, mode = ksel.arg_tensor("x"), ksel.attr_str("mode").v
        value = ksel.arg_float("constant_values").v
        widths = self._widths(ksel, x.ndim)
        if mode not in _MODES:
            raise InvalidArgumentError(f"{ksel.name}: mode is {mode!r}; the modes are {', '.join(_MODES)}")
        if x.dtype.kind in "iub" and mode == "constant":
            limits = (0, 1) if x.dtype.kind == "b" else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
            whole = math.isfinite(value) and value == int(value)
            if not whole or not limits[0] <= value <= limits[1]:
                raise InvalidArgumentError(
                    f"{ksel.name}: constant_values is {value}, and x is of {x.dtype}; give an int that it has"
                )
        if mode == "constant":
            if x.dtype.kind in "iub":
                bits = max(32, x.dtype.itemsize * 8)
                ksel.value("kp_fill", int(value) % 2**bits, f"uint{bits}")
            else:
                doubles = x.dtype.name in ("float64", "complex128")
                ksel.value("kp_fill", float(value), "float64" if doubles else "float32")
        shape = []
        for axis, (n, (before, after)) in enumerate(zip(x.shape, widths, strict=True)):
            if mode != "constant" and not n and before + after:
                raise InvalidArgumentError(
                    f"{ksel.name}: axis {axis} of x has no elements to take; use mode='constant'"
                )
            shape.append(before + n + after)
            if max(shape[-1], before + n) >= 2**30:
                raise InvalidArgumentError(
                    f"{ksel.name}: axis {axis} gets {shape[-1]} elements, 2**30 or more"
                )
            ksel.value(f"kp_n{axis}", n, "int32")
            ksel.value(f"kp_b{axis}", before, "int32")
            ksel.value(f"kp_m{axis}", max(shape[-1], 1), "uint32")
        ksel.return_new_tensor(shape, x.dtype)
        check_sizes(ksel)

    def _widths(self, ksel: FunctionSelection, ndim: int) -> list[tuple[int, int]]:
        given = ksel.attr_list_int("pad_width").v
        widths = [given] if isinstance(given, int) else list(given or [])
        if len(widths) == 1:
            widths = widths * 2 * ndim
        elif len(widths) == 2:
            widths = widths * ndim
        if len(widths) != 2 * ndim or any(each < 0 for each in widths):
            raise InvalidArgumentError(
                f"{ksel.name}: pad_width is {given}, and x has {ndim} axes; give two ints of 0 or more for "
                "each axis, two for all, or one"
            )
        return list(zip(widths[::2], widths[1::2], strict=True))

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Each element of the result from its place in the argument."""
        mode, x = ksel.attribute("mode"), ksel.arg_descs[0]
        assert isinstance(x, TensorArg)
        kind = element_of(x.dtype).type
        if kind in ("int64_t", "uint64_t"):
            kb.extension("GL_EXT_shader_explicit_arithmetic_types_int64")
        kb.workgroup(group_of(ksel))
        kb.emit("uint kp_rest = i, kp_place = 0u, kp_scale = 1u; bool kp_inside = true; int c, n;")
        for axis in reversed(range(x.ndim)):
            kb.emit(f"""
                n = kp_n{axis}; c = int(kp_rest % kp_m{axis}) - kp_b{axis}; kp_rest /= kp_m{axis};
                {{ {_MODES[mode]} }}
                kp_inside = kp_inside && c >= 0 && c < n;
                kp_place += uint(c) * kp_scale; kp_scale *= uint(n);""")
        fill = f"{kind}(kp_fill, 0)" if kind in ("vec2", "dvec2") else f"{kind}(kp_fill)"
        fill = fill if mode == "constant" else "x_load(0u)"  # all are inside
        kb.yield_results(f"kp_inside ? x_load(kp_inside ? kp_place : 0u) : {fill}")


take_along_axis: Function = raising(_TakeAlongAxis)
put: Function = raising(_PutFlat)
put_along_axis: Function = raising(_PutAlongAxis)
tril: Function = CustomOp.register(_Tril)
triu: Function = CustomOp.register(_Triu)
pad: Function = CustomOp.register(_Pad)
