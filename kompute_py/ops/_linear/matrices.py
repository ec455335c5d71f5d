"""Matrix products.

In the variant "run", for processors and thin matrices, an invocation computes up to 8 x 4 elements: the rows
are the same in a workgroup, so that a driver loads an element of the left side once for all, and no barrier
is needed. If there are few elements, the invocations of a workgroup share their sums instead. In "tile" a
workgroup computes 64 x 64 elements from tiles in shared memory, 4 x 4 in each invocation (V. Volkov and
J. Demmel, "Benchmarking GPUs to tune dense linear algebra", 2008), and in "matrix" from matrices that its
subgroups multiply together (`_cooperative`). Long sums, and those of few elements, are
computed in parts, which a second dispatch adds: loops stay short, so does the error, and all processors work.
The parts depend on the shapes and the kind of the device alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._base.errors import InvalidArgumentError
from ..._builders.elementwise import strides_of
from ..._builders.walks import ON_HOST, check_sizes, group_of, named, one_each, spread
from ..._custom.arg_descs import TensorArg
from ..._custom.selection import FunctionSelection
from ..._formulas.dtypes import promoted
from ..._formulas.glsl_elements import element_of
from ..._functions.custom_op import CustomOp
from ..._functions.function import Function
from .cooperative import cooperation_of, write_cooperative

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder

_ROWS, _COLUMNS, _LANES = 8, 4, 32
"""The most elements of an invocation in the variant "run", and the invocations of its workgroups."""
_FEW, _LONG = 16, 1024
"""Elements with sums that a workgroup shares, if these have so many products."""
_SHARED_PART = 2**13
"""Products that a workgroup adds then, at least."""
_LEAST_PART = 256
"""Products that are worth a part."""
_GROUPS = {"cpu": 64, "gpu": 1024}
"""Workgroups that keep a device busy: with fewer, sums have several parts."""
_THIN = 8
"""Rows or columns of a product for which tiles are a waste."""
_TILE = 64
"""Rows and columns of a workgroup in the variant "tile"."""
_TILE_GROUP = 256
"""Its invocations."""
_MOST_PART = 2**14
"""Products that one invocation adds."""
_IN_PARTS = (
    "Multiply in parts: matmul(a[:n], b) and matmul(a[n:], b) if a is too long, the sum of "
    f"matmul(a[:, :n], b[:n]) and matmul(a[:, n:], b[n:]) if b is, or {ON_HOST}"
)
_NARROW = ("int8", "uint8", "int16", "uint16")


class Side(NamedTuple):
    """Where the elements of an argument are: elements from one to the next."""

    rows: int
    columns: int
    batch: tuple[int, ...]


class Contraction(NamedTuple):
    """A product of matrices, over axes that both sides have."""

    rows: int
    columns: int
    n: int
    """Products that are added for each element."""
    left: Side
    right: Side
    shape: tuple[int, ...]
    """The lengths of the axes before the last two."""


class _Matmul(CustomOp):
    """The matrix product of `a` and `b`, as ``np.matmul``.

    The last two axes are matrices, (rows, n) and (n, columns); the axes before them broadcast. An argument
    with one axis is a row on the left and a column on the right, and that axis is left out of the result.
    With `transpose_a` or `transpose_b` the last two axes of that argument are exchanged, without a copy, and
    it must have two. Parts such as ``t[::2]`` are not copied either.

    The result has NumPy's dtype, or `dtype`: "int32" for products of int8 and uint8 that do not wrap,
    "float32" for unrounded sums of float16. float16 and bfloat16 are summed in float32, ints of fewer than
    32 bits in int32; then the sum is rounded, or wraps as in NumPy. The product of bools tells if any pair
    is true.

    GPUs multiply float16, int8 and uint8 by cooperative matrices if these are faster, where the device
    (``get_device_properties().cooperative_matrices``) and the compiler of GLSL have them. The sums keep their
    dtypes; the device may round those of float16 twice as much.

    Raises InvalidArgumentError for shapes that do not fit, for a scalar, for a `dtype` to which NumPy does
    not cast results by the rule "same_kind", and for memory beyond what shaders reach; UnimplementedError if
    the device has no numbers of the result's dtype.

    >>> kp.ops.matmul(np.array([[1, 2], [3, 4]]), np.array([[1, 0], [1, 1]])).tolist()
    [[3, 2], [7, 4]]
    >>> a = np.array([[100, 100]], np.int8)
    >>> kp.ops.matmul(a, a, transpose_b=True, dtype="int32").tolist()
    [[20000]]

    :dtypes: all; float16, bfloat16 and ints below 32 bits are summed with 32
    :axes: last two, the others broadcast
    :error: one rounding, n of the sum of the n absolute products (complex 4 n, matrices 2 n); ints exact
    """

    signature = (
        "matmul(Tensor a, Tensor b, *, bool transpose_a=False, bool transpose_b=False, dtype? dtype=None)"
        " -> Tensor"
    )
    reads_parts = True

    def variants(self, ksel: FunctionSelection) -> list[str]:
        """By the device's type, and the shapes."""
        return ways_of(ksel)

    def trials(self, ksel: FunctionSelection) -> list[str]:
        return trials_of(ksel)

    def select(self, ksel: FunctionSelection) -> None:
        """Finds the shapes, and the steps in memory."""
        a, b = ksel.arg_tensor("a"), ksel.arg_tensor("b")
        turned = ksel.attr_bool("transpose_a").v, ksel.attr_bool("transpose_b").v
        dtype = dtype_of(ksel, a, b, ksel.attr_dtype("dtype").v)
        self._check(ksel, a, b, turned)
        product = self._sides(ksel, a, b, turned)
        rows, columns = (product.rows,) if a.ndim > 1 else (), (product.columns,) if b.ndim > 1 else ()
        ksel.return_new_tensor((*product.shape, *rows, *columns), dtype)
        check_sizes(ksel, _IN_PARTS)
        tell_product(ksel, (a, b), product)

    def _check(self, ksel: FunctionSelection, a: TensorArg, b: TensorArg, turned: tuple[bool, bool]) -> None:
        for each, turn in ((a, turned[0]), (b, turned[1])):
            if not each.ndim:
                raise InvalidArgumentError(
                    f"{ksel.name}: {each.name} is a scalar; give one axis or more, or multiply: a * b"
                )
            if turn and each.ndim == 1:
                raise InvalidArgumentError(
                    f"{ksel.name}: {each.name} has one axis; transpose_{each.name} exchanges two"
                )

    def _sides(
        self, ksel: FunctionSelection, a: TensorArg, b: TensorArg, turned: tuple[bool, bool]
    ) -> Contraction:
        shape_a = a.shape if a.ndim > 1 else (1, *a.shape)
        shape_b = b.shape if b.ndim > 1 else (*b.shape, 1)
        steps_a = strides_of(a) if a.ndim > 1 else (0, *strides_of(a))
        steps_b = strides_of(b) if b.ndim > 1 else (*strides_of(b), 0)
        if turned[0]:
            shape_a, steps_a = _exchanged(shape_a), _exchanged(steps_a)
        if turned[1]:
            shape_b, steps_b = _exchanged(shape_b), _exchanged(steps_b)
        if shape_a[-1] != shape_b[-2]:
            raise InvalidArgumentError(
                f"{ksel.name}: a has the shape {a.shape}{', transposed' * turned[0]}, and b "
                f"{b.shape}{', transposed' * turned[1]}: {shape_a[-1]} columns and {shape_b[-2]} rows; "
                "give b as many rows as a has columns"
            )
        try:
            shape = np.broadcast_shapes(shape_a[:-2], shape_b[:-2])
        except ValueError:
            raise InvalidArgumentError(
                f"{ksel.name}: the axes before the last two do not broadcast: a {a.shape}, b {b.shape}"
            ) from None

        def side(lengths: tuple[int, ...], steps: tuple[int, ...]) -> Side:
            batch = [0 if n == 1 else step for n, step in zip(lengths[:-2], steps[:-2], strict=True)]
            return Side(steps[-2], steps[-1], (*[0] * (len(shape) - len(batch)), *batch))

        left, right = side(shape_a, steps_a), side(shape_b, steps_b)
        return Contraction(shape_a[-2], shape_b[-1], shape_a[-1], left, right, shape)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes one kernel, or two if sums have several parts."""
        Product(ksel, kb).write()


def dtype_of(
    ksel: FunctionSelection, a: TensorArg, b: TensorArg, wanted: np.dtype[Any] | None = None
) -> np.dtype[Any]:
    """The dtype of a product: NumPy's, or the wanted one. Raises InvalidArgumentError for a wanted dtype that
    does not fit, UnimplementedError if the device lacks it.
    """
    found = promoted([a.dtype, b.dtype])
    if wanted is not None:
        if not np.can_cast(found, wanted, "same_kind") or wanted.itemsize < found.itemsize:
            raise InvalidArgumentError(
                f"{ksel.name}: dtype is {wanted}, and the product of {a.dtype} and {b.dtype} is "
                f"{found}; give a dtype of that kind with as many bits or more"
            )
        found = wanted
    product = f"the product of {a.dtype} and {b.dtype} is"
    ksel.require(found, product, "convert the arguments to a dtype of 32 bits")
    return found


def tell_product(ksel: FunctionSelection, args: tuple[TensorArg, TensorArg], product: Contraction) -> None:
    """Declares the numbers of the kernels of a product, for `Product`."""
    rows, columns, n, left, right, shape = product
    a, b = args
    steps = {"result_i": columns, "result_j": 1}
    names = a.name, b.name
    if columns < rows and columns < 16:  # lanes have columns
        rows, columns, left, right = columns, rows, _turned(right), _turned(left)
        names, steps = (b.name, a.name), {"result_i": 1, "result_j": rows}
    batch = math.prod(shape)
    steps |= {"left_i": left.rows, "left_k": left.columns, "right_k": right.rows}
    steps |= {"right_j": right.columns}
    for number, length in enumerate(shape):
        steps |= {f"axis{number}": length}
        steps |= {f"left{number}": left.batch[number], f"right{number}": right.batch[number]}
    offsets = {a.name: a.offset, b.name: b.offset}
    steps |= {"left_first": offsets[names[0]], "right_first": offsets[names[1]]}
    steps |= {"rows": rows, "columns": columns, "n": n, "batch": batch, "all": batch * rows * columns}
    on_gpu = ksel.device is not None and ksel.device["type"] != "cpu"
    block = _block(rows, columns, n, batch)
    together = cooperation_of(ksel, a.dtype, b.dtype, summed(ksel.results[0].dtype))
    ways = {"run": (block.rows, block.columns * (1 if block.shared else _LANES)), "tile": (_TILE, _TILE)}
    if together:
        ways["matrix"] = together.high, together.wide
    several = {}
    for way, (high, wide) in ways.items():
        across, down = -(-columns // wide), -(-rows // high)
        groups = across * down * batch
        if block.shared and way == "run":
            part = -(-max(_SHARED_PART, -(-n // 1024)) // _LANES) * _LANES
        else:
            wanted = -(-_GROUPS["gpu" if on_gpu else "cpu"] // max(groups, 1))
            part = -(-n // max(1, min(wanted, n // _LEAST_PART)))
            part = max(1, min(_MOST_PART, -(-part // 16) * 16))
        parts = max(1, -(-n // part))
        sums = parts * (_LANES if block.shared and way == "run" else 1)
        if sums * batch * rows * columns >= 2**32:
            raise InvalidArgumentError(
                f"{ksel.name}: the sums are computed in {sums} parts of {batch * rows * columns} "
                "elements, together 2**32 or more; compute it in parts, a[:n] and a[n:]"
            )
        steps |= {f"across_{way}": across, f"down_{way}": down, f"groups_{way}": groups * parts}
        steps |= {f"part_{way}": part, f"sums_{way}": sums}
        several[way] = sums > 1
    for name, number in steps.items():
        ksel.value(f"kp_{name}", number % 2**32, "uint32")
    ksel.specialize(
        kind=(several, names, left.columns == 1, right.columns == 1, len(shape)),
        block=block,
        together=together,
        thin=min(rows, columns) <= _THIN,
    )


class Block(NamedTuple):
    """The elements that an invocation of the variant "run" computes."""

    rows: int
    columns: int
    shared: bool
    """Whether the invocations of a workgroup share the sums of these elements."""


def _block(rows: int, columns: int, n: int, batch: int) -> Block:
    """For so many elements, which are sums of `n` products."""
    if 0 < rows * columns <= _FEW and n >= _LONG and batch * rows * columns <= 1024:
        return Block(rows, columns, True)
    high = next(each for each in (1, 2, 4, _ROWS) if each >= min(rows, _ROWS))
    wide = next(each for each in (1, 2, _COLUMNS) if each * _LANES >= min(columns, _COLUMNS * _LANES))
    return Block(high, wide, False)


def ways_of(ksel: FunctionSelection) -> list[str]:
    """The variants of a product."""
    together = ["matrix"] if ksel.special["together"] else []
    if ksel.device is None or ksel.device["type"] == "cpu" or group_of(ksel) < _TILE_GROUP:
        return ["run", *together]
    return ["run", "tile"] if ksel.special["thin"] else [*together, "tile"]


def trials_of(ksel: FunctionSelection) -> list[str]:
    """The variants that a first call measures: processors emulate cooperative matrices."""
    ways = ways_of(ksel)
    return [each for each in ways if each != "matrix"] if ways[0] == "run" else ways


def summed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which the sums of a product of `dtype` are computed."""
    if dtype.name in ("float16", "bfloat16"):
        return np.dtype(np.float32)
    return np.dtype(np.int32) if dtype.name in _NARROW else dtype


def _turned(side: Side) -> Side:
    return Side(side.columns, side.rows, side.batch)


def _exchanged(axes: tuple[int, ...]) -> tuple[int, ...]:
    return (*axes[:-2], axes[-1], axes[-2])


class Product:
    """The kernels of a product."""

    def __init__(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        self.kb = kb
        self.way = ksel.variant or "run"
        several, self.names, self.left_in_line, self.right_in_line, self.axes = ksel.special["kind"]
        self.block: Block = ksel.special["block"]
        self.shared = self.block.shared and self.way == "run"
        self.several = several[self.way]
        result = ksel.results[0].dtype
        acc = self.acc = summed(result)
        self.together = ksel.special["together"]
        self.type = element_of(acc).type
        self.result = result
        self.dtypes = {a.name: a.dtype for a in ksel.arg_descs if isinstance(a, TensorArg)}
        self.zero = {"bool": "false", "vec2": "vec2(0)", "dvec2": "dvec2(0)"}.get(
            self.type, f"{self.type}(0)"
        )
        if result.kind != "b" and result.name.startswith("uint") and result.name in _NARROW:
            self.final = "uint({})"
        else:
            self.final = "{}"

    def load(self, side: int, index: str) -> str:
        """An element of the left or right side, as it is summed."""
        name = self.names[side]
        if self.type in ("vec2", "dvec2") and self.dtypes[name].kind != "c":
            return f"{self.type}({name}_load({index}), 0)"
        return f"{self.type}({name}_load({index}))"

    def add(self, sum_: str, x: str, y: str) -> str:
        """The statement that adds a product."""
        if self.type == "bool":
            return f"{sum_} = {sum_} || ({x} && {y});"
        if self.type in ("vec2", "dvec2"):
            return f"{sum_} += {self.type}({x}.x * {y}.x - {x}.y * {y}.y, {x}.x * {y}.y + {x}.y * {y}.x);"
        return f"{sum_} += {x} * {y};"

    def write(self) -> None:
        """All dispatches."""
        kb = self.kb
        if self.several:
            kb.scratch("sums", named("kp_all") * named(f"kp_sums_{self.way}"), self.acc)
        kb.begin_dispatch("products")
        if self.acc.itemsize == 8 and self.acc.kind in "iu":
            kb.extension("GL_EXT_shader_explicit_arithmetic_types_int64")
        if self.way == "tile":
            self.tile()
        elif self.way == "matrix":
            self.begin(self.together.size)
            write_cooperative(
                kb,
                self.together,
                (self.left_in_line, self.right_in_line),
                self.load,
                lambda value: self.store("i", "j", f"{self.type}({value})"),
            )
        elif self.shared:
            self.share()
        else:
            self.run()
        if self.shared:
            self.add_shared()
        elif self.several:
            self.add_parts()

    @property
    def plus(self) -> str:
        """The statement that adds the sum ``t`` to ``s``."""
        return "s = s || t;" if self.type == "bool" else "s += t;"

    def add_parts(self) -> None:
        """Adds the parts of each sum."""
        kb = self.kb
        kb.begin_dispatch("add")
        one_each(kb, named("kp_all"), "kp_e")
        kb.emit(f"""
            {self.type} s = {self.zero};
            for (uint k = 0u; k < kp_sums_{self.way}; ++k) {{
                {self.type} t = sums_load(k * kp_all + kp_e);
                {self.plus}
            }}
            result_store(kp_e, {self.final.format("s")});
        """)

    def add_shared(self) -> None:
        """Adds the parts of each sum, by a workgroup."""
        kb = self.kb
        kb.begin_dispatch("add")
        kb.workgroup(_LANES)
        spread(kb, named("kp_all"))
        kb.declare(f"shared {self.type} kp_s[{_LANES}];")
        kb.emit(f"""
            if (kp_group >= kp_all) return;
            uint lane = gl_LocalInvocationID.x;
            {self.type} s = {self.zero};
            for (uint k = lane; k < kp_sums_{self.way}; k += {_LANES}u) {{
                {self.type} t = sums_load(k * kp_all + kp_group);
                {self.plus}
            }}
            kp_s[lane] = s;
            barrier();
            if (lane != 0u) return;
            for (uint k = 1u; k < {_LANES}u; ++k) {{ {self.type} t = kp_s[k]; {self.plus} }}
            result_store(kp_group, {self.final.format("s")});
        """)

    def begin(self, size: int) -> None:
        """The workgroup's place: ``row`` and ``column`` of its first element, and where the sides begin."""
        kb = self.kb
        kb.workgroup(size)
        spread(kb, named(f"kp_groups_{self.way}"))
        kb.emit(f"""
            if (kp_group >= kp_groups_{self.way}) return;
            uint rest = kp_group, lane = gl_LocalInvocationID.x;
            uint column = rest % kp_across_{self.way}; rest /= kp_across_{self.way};
            uint row = rest % kp_down_{self.way}; rest /= kp_down_{self.way};
            uint batch = rest % kp_batch, part = rest / kp_batch;
            uint first = part * kp_part_{self.way}, end = min(kp_n, first + kp_part_{self.way});
            uint left = kp_left_first, right = kp_right_first, at = batch;
        """)
        for axis in reversed(range(self.axes)):
            place = f"at % kp_axis{axis}" if axis else "at"
            kb.emit(f"left += {place} * kp_left{axis}; right += {place} * kp_right{axis};")
            if axis:
                kb.emit(f"at /= kp_axis{axis};")

    def store(self, i: str, j: str, value: str) -> str:
        """The statement that stores a sum."""
        if self.several:
            at = f"part * kp_all + batch * kp_rows * kp_columns + ({i}) * kp_result_i + ({j}) * kp_result_j"
            return f"sums_store({at}, {value});"
        at = f"batch * kp_rows * kp_columns + ({i}) * kp_result_i + ({j}) * kp_result_j"
        return f"result_store({at}, {self.final.format(value)});"

    def run(self) -> None:
        """An invocation computes its elements alone. Places beyond the edges read those at the edges."""
        kb = self.kb
        high, wide, _ = self.block
        self.begin(_LANES)
        lines = [f"row *= {high}u; column = column * {_LANES * wide}u + lane;"]
        lines.append("if (column >= kp_columns) return;")
        for i in range(high):
            lines.append(f"uint l{i} = left + min(row + {i}u, kp_rows - 1u) * kp_left_i + first * kp_left_k;")
        for j in range(wide):
            place = f"min(column + {j * _LANES}u, kp_columns - 1u)"
            lines.append(f"uint r{j} = right + {place} * kp_right_j + first * kp_right_k;")
        for i in range(high):
            for j in range(wide):
                lines.append(f"{self.type} s{i}_{j} = {self.zero};")
        lines.append("for (uint k = first; k < end; ++k) {")
        for j in range(wide):
            lines.append(f"{self.type} y{j} = {self.load(1, f'r{j}')}; r{j} += kp_right_k;")
        for i in range(high):
            lines.append(f"{{ {self.type} x = {self.load(0, f'l{i}')}; l{i} += kp_left_k;")
            lines += [self.add(f"s{i}_{j}", "x", f"y{j}") for j in range(wide)]
            lines.append("}")
        lines.append("}")
        for i in range(high):
            lines.append(f"if (row + {i}u < kp_rows) {{")
            for j in range(wide):
                store = self.store(f"row + {i}u", f"column + {j * _LANES}u", f"s{i}_{j}")
                lines.append(f"if (column + {j * _LANES}u < kp_columns) {store}")
            lines.append("}")
        kb.emit("\n".join(lines))

    def share(self) -> None:
        """The invocations of a workgroup take the products of all elements in turns."""
        rows, columns, _ = self.block
        self.begin(_LANES)
        places = [(i, j) for i in range(rows) for j in range(columns)]
        lines = [f"{self.type} s{i}_{j} = {self.zero};" for i, j in places]
        turn = ["{"]
        turn += [
            f"{self.type} x{i} = {self.load(0, f'left + {i}u * kp_left_i + k * kp_left_k')};"
            for i in range(rows)
        ]
        turn += [
            f"{self.type} y{j} = {self.load(1, f'right + {j}u * kp_right_j + k * kp_right_k')};"
            for j in range(columns)
        ]
        turn += [self.add(f"s{i}_{j}", f"x{i}", f"y{j}") for i, j in places]
        turn.append(f"k += {_LANES}u; }}")
        lines.append("uint k = first + lane;")
        lines += [f"while (k < end && end - k > {3 * _LANES}u) {{", *turn * 4, "}"]
        lines += ["while (k < end)", *turn]
        at = f"(part * {_LANES}u + lane) * kp_all + batch * kp_rows * kp_columns"
        for i, j in places:
            lines.append(f"sums_store({at} + {i}u * kp_result_i + {j}u * kp_result_j, s{i}_{j});")
        self.kb.emit("\n".join(lines))

    def tile(self) -> None:
        """A workgroup computes a tile. Places beyond the edges are zeros."""
        kb = self.kb
        depth = 8 if self.acc.itemsize == 8 else 16
        self.begin(_TILE_GROUP)
        kb.declare(f"shared {self.type} kp_x[{depth * _TILE}];\nshared {self.type} kp_y[{depth * _TILE}];")
        in_line = f"uint k = n % {depth}u, m = n / {depth}u;"
        across = f"uint m = n % {_TILE}u, k = n / {_TILE}u;"
        add = "\n".join(self.add(f"s[{i * 4 + j}]", f"x[{i}]", f"y[{j}]") for i in range(4) for j in range(4))
        left = self.load(0, "left + (row + m) * kp_left_i + (first + k) * kp_left_k")
        right = self.load(1, "right + (column + m) * kp_right_j + (first + k) * kp_right_k")
        kb.emit(f"""
            row *= {_TILE}u; column *= {_TILE}u;
            uint u = lane / 16u, v = lane % 16u;
            {self.type} s[16], x[4], y[4];
            for (uint n = 0u; n < 16u; ++n) s[n] = {self.zero};
            for (; first < end; first += {depth}u) {{
                for (uint n = lane; n < {depth * _TILE}u; n += 256u) {{
                    {in_line if self.left_in_line else across}
                    {self.type} e = {self.zero};
                    if (row + m < kp_rows && first + k < end) e = {left};
                    kp_x[k * {_TILE}u + m] = e;
                }}
                for (uint n = lane; n < {depth * _TILE}u; n += 256u) {{
                    {across if self.right_in_line else in_line}
                    {self.type} e = {self.zero};
                    if (column + m < kp_columns && first + k < end) e = {right};
                    kp_y[k * {_TILE}u + m] = e;
                }}
                barrier();
                for (uint k = 0u; k < {depth}u; ++k) {{
                    for (uint n = 0u; n < 4u; ++n) {{
                        x[n] = kp_x[k * {_TILE}u + u + n * 16u];
                        y[n] = kp_y[k * {_TILE}u + v + n * 16u];
                    }}
                    {add}
                }}
                barrier();
            }}
            for (uint i = 0u; i < 4u; ++i)
                for (uint j = 0u; j < 4u; ++j)
                    if (row + u + i * 16u < kp_rows && column + v + j * 16u < kp_columns)
                        {self.store("row + u + i * 16u", "column + v + j * 16u", "s[i * 4u + j]")}
        """)


matmul: Function = CustomOp.register(_Matmul)
