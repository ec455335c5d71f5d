"""Discrete Fourier transforms: VkFFT writes the kernels (native/core/fft), and they run as any others.

A plan of VkFFT transforms one axis. Others, and what surrounds a transform (padding, numbers without an
imaginary part, factors), are dispatches before and after it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from .._base.errors import InvalidArgumentError, UnimplementedError
from .._builders.reduction import attribute_of
from .._builders.walks import axes_of, check_sizes, spread
from .._custom.builder import KernelBuilder, TensorValue
from .._custom.custom_op import CustomOp, Operation
from .._custom.selection import KernelSelection
from .._recording.operations import OpAlgoDispatch
from .._shaders.module import ShaderModule

if TYPE_CHECKING:
    from .._manager.manager import Manager
    from .._memory.tensor import Tensor

__all__ = [
    "fft",
    "fft2",
    "fftn",
    "ifft",
    "ifft2",
    "ifftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftn",
]

_NORMS = ("backward", "ortho", "forward")
_SMALL = (2, 3, 5, 7, 11, 13)
"""The prime factors of lengths that VkFFT transforms without a convolution."""
_LEAST = (0, 16384, 128, (128, 128, 64))
"""Vendor and limits of a device that is not known: what Vulkan guarantees."""
_MOST_GROUPS = 65535
"""Workgroups that every device takes on an axis."""
_ARRAY = re.compile(r"^(\s*(?:vec2|dvec2) (?:inputs|outputs))\[\d+\];", re.MULTILINE)
_VERSION = re.compile(r"#version.*\n(?:\s*#extension.*\n)*")


class _Geometry(NamedTuple):
    """A transform of several axes."""

    axes: tuple[int, ...]
    """The last one is transformed first, and is the one with half of the numbers."""
    given: tuple[int, ...]
    """The shape of the argument."""
    full: tuple[int, ...]
    """The shape of all complex numbers."""
    half: tuple[int, ...]
    """The same, without those that are conjugates of others."""
    factor: float


class _Transform(CustomOp):
    real_in = False
    """Takes real numbers, and leaves out the conjugates from its result."""
    real_out = False
    """Has real numbers as its result, and takes half of the complex ones."""
    inverse = False
    several = True
    """Has the arguments `s` and `axes`, not `n` and `axis`."""

    def select(self, ksel: KernelSelection) -> None:
        x = ksel.arg_tensor("x").specialize_all_dims()
        if self.several:
            lengths, axes = ksel.attr_list_int("s").v, ksel.attr_list_int("axes").v
        else:
            n, axis = ksel.attr_list_int("n").v, ksel.attr_int("axis").v
            lengths, axes = (None if n is None else [n] if isinstance(n, int) else n), [axis]
        norm = ksel.attr_str("norm").v
        shape = _geometry(ksel, self, x.shape, lengths, axes, norm)
        if self.real_in and x.dtype.kind == "c":
            raise InvalidArgumentError(
                f"{ksel._who()}: x is {x.dtype}, and {ksel._who()} transforms real numbers; call "
                f"{ksel._who().lstrip('r')}, or give x.real"
            )
        dtype = _complex_of(ksel, x.dtype)
        if self.real_out:
            dtype = np.dtype(np.float32 if dtype == np.complex64 else np.float64)
        ksel.return_new_tensor(shape.half if self.real_in else shape.full, dtype)
        check_sizes(ksel)

    def generate(self, ksel: KernelSelection, kb: KernelBuilder) -> None:
        lengths = attribute_of(ksel, "s" if self.several else "n")
        axes = attribute_of(ksel, "axes" if self.several else "axis")
        lengths = [lengths] if isinstance(lengths, int) else lengths
        axes = [axes] if isinstance(axes, int) else axes
        x, result = kb.arg_value("x"), kb.result(0)
        given = tuple(int(n) for n in x.shape)
        shape = _geometry(ksel, self, given, lengths, axes, attribute_of(ksel, "norm"))
        if 0 in shape.full:
            kb.yield_results(f"{result.type}(0)")  # it does not run
            return
        _Writer(ksel, kb, self.inverse, result.dtype).write(x, result, shape, self)


class _Writer:
    """Writes the dispatches of a transform."""

    def __init__(self, ksel: KernelSelection, kb: KernelBuilder, inverse: bool, dtype: np.dtype[Any]) -> None:
        self.kb, self.inverse = kb, inverse
        self.doubles = dtype in (np.float64, np.complex128)
        self.dtype = np.dtype(np.complex128 if self.doubles else np.complex64)
        self.vec, self.real = ("dvec2", "double") if self.doubles else ("vec2", "float")
        self.device = _LEAST if ksel.device is None else _facts(ksel.device)
        self.normalize = False
        """Each axis divides by its length."""
        self.tables = 0
        self.shared: dict[str, TensorValue] = {}
        """Scratch memory that each axis uses in its turn, by its size."""

    def write(self, x: TensorValue, result: TensorValue, shape: _Geometry, kind: _Transform) -> None:
        if kind.real_out:
            self._to_real(x, result, shape)
        elif kind.real_in:
            work = self.kb.scratch("work", math.prod(shape.full), self.dtype)
            self._load(x, work, shape.given, shape.full, shape.factor)
            self._axis(work, shape.full, shape.axes[-1])
            self._half(work, result, shape.full, shape.half)
            for axis in reversed(shape.axes[:-1]):
                self._axis(result, shape.half, axis)
        else:
            axes = [axis for axis in reversed(shape.axes) if shape.full[axis] > 1]
            inverse = 1 / math.prod(shape.full[axis] for axis in shape.axes)
            self.normalize = self.inverse and shape.factor == inverse
            straight = (
                bool(axes)
                and shape.given == shape.full
                and (shape.factor == 1 or self.normalize)
                and x.dtype == self.dtype
                and _is_smooth(math.prod(shape.full[axes[0] + 1 :]))
            )
            if straight:
                self._axis(result, shape.full, axes.pop(0), x)
            else:
                self.normalize = False
                self._load(x, result, shape.given, shape.full, shape.factor)
            for axis in axes:
                self._axis(result, shape.full, axis)

    def _to_real(self, x: TensorValue, result: TensorValue, shape: _Geometry) -> None:
        kb = self.kb
        last = shape.axes[-1]
        work = kb.scratch("work", math.prod(shape.full), self.dtype)
        source: TensorValue = x
        given, factor = shape.given, shape.factor
        if len(shape.axes) > 1:
            source = kb.scratch("part", math.prod(shape.half), self.dtype)
            self._load(x, source, given, shape.half, factor)
            for axis in reversed(shape.axes[:-1]):
                self._axis(source, shape.half, axis)
            given, factor = shape.half, 1.0
        n, h = shape.full[last], shape.half[last]
        with_conjugates = f"""
            bool kp_other = c{last} >= {h}u;
            if (kp_other) c{last} = {n}u - c{last};
            bool kp_real = c{last} == 0u || 2u * c{last} == {n}u;
        """
        change = "if (kp_real) v.y = 0; else if (kp_other) v.y = -v.y;"
        self._load(source, work, given, shape.full, factor, with_conjugates, change)
        self._axis(work, shape.full, last)
        kb.begin_dispatch("real")
        self._elements(math.prod(shape.full))
        kb.emit(f"{result}_store(i, {work}_load(i).x);")

    def _elements(self, count: int) -> None:
        """The invocation has the element ``i`` of so many."""
        self.kb.workgroup(64)
        spread(self.kb, -(-count // 64))
        self.kb.emit(f"""
            uint i = kp_group * 64u + gl_LocalInvocationID.x;
            if (i >= {count}u) return;
        """)

    def _coordinates(self, shape: Sequence[int]) -> None:
        """``c0``, ``c1``, ... of the element ``i``."""
        self.kb.emit("uint kp_rest = i;")
        for axis in reversed(range(len(shape))):
            self.kb.emit(f"uint c{axis} = kp_rest % {shape[axis]}u; kp_rest /= {shape[axis]}u;")

    def _load(
        self,
        x: TensorValue,
        target: TensorValue,
        given: Sequence[int],
        shape: Sequence[int],
        factor: float,
        before: str = "",
        after: str = "",
    ) -> None:
        """Writes `x` of shape `given` into `target` of `shape`: cut off or with zeros, times a factor."""
        kb = self.kb
        kb.begin_dispatch("load")
        self._elements(math.prod(shape))
        self._coordinates(shape)
        kb.emit(before)
        inside = " && ".join(f"c{a} < {n}u" for a, n in enumerate(given)) or "true"
        index = "0u"
        for axis, n in enumerate(given):
            index = f"({index}) * {n}u + c{axis}"
        loaded = f"{x}_load({index})"
        if x.dtype.kind == "c":
            loaded = f"{self.vec}({loaded})"
        else:
            loaded = f"{self.vec}({self.real}({loaded}), 0)"
        times = "" if factor == 1 else f" * {self.real}({_literal(factor, self.doubles)})"
        empty = 0 in given
        kb.emit(f"{self.vec} v = {self.vec}(0);")
        if not empty:
            kb.emit(f"if ({inside}) v = {loaded}{times};")
        kb.emit(after)
        kb.emit(f"{target}_store(i, v);")

    def _half(self, work: TensorValue, result: TensorValue, full: Sequence[int], half: Sequence[int]) -> None:
        kb = self.kb
        kb.begin_dispatch("half")
        self._elements(math.prod(half))
        self._coordinates(half)
        index = "0u"
        for axis, n in enumerate(full):
            index = f"({index}) * {n}u + c{axis}"
        kb.emit(f"{result}_store(i, {work}_load({index}));")

    def _turned(self, source: TensorValue, target: TensorValue, blocks: int, rows: int, columns: int) -> None:
        """Exchanges the last two axes of (blocks, rows, columns)."""
        self.kb.begin_dispatch("turn")
        self._elements(blocks * rows * columns)
        self.kb.emit(f"""
            uint kp_block = i / {rows * columns}u, kp_rest = i % {rows * columns}u;
            uint kp_from = kp_block * {rows * columns}u + kp_rest % {rows}u * {columns}u + kp_rest / {rows}u;
            {target}_store(i, {source}_load(kp_from));
        """)

    def _axis(
        self, numbers: TensorValue, shape: Sequence[int], axis: int, source: TensorValue | None = None
    ) -> None:
        """Transforms an axis in place, or from `source`, which must be complex and have no conversion."""
        length = shape[axis]
        if length == 1:
            return
        batches, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        if _is_smooth(inner):
            self._plan(numbers, batches, length, inner, source)
            return
        # VkFFT plans the inner axis, too, as if it transformed it.
        turned = self._scratch("turned", batches * length * inner)
        self._turned(numbers, turned, batches, length, inner)
        self._plan(turned, batches * inner, length, 1, None)
        self._turned(turned, numbers, batches, inner, length)

    def _scratch(self, name: str, count: int) -> TensorValue:
        key = f"{name}{count}"
        if key not in self.shared:
            self.shared[key] = self.kb.scratch(f"{name}_{len(self.shared)}", count, self.dtype)
        return self.shared[key]

    def _plan(
        self, numbers: TensorValue, batches: int, length: int, inner: int, source: TensorValue | None
    ) -> None:
        kb = self.kb
        buffers, programs, prepare, run = _native.fft_plan(
            batches,
            length,
            inner,
            self.inverse,
            self.doubles,
            source is not None,
            self.normalize,
            *self.device,
        )
        names = [numbers.name] if source is None else [numbers.name, source.name]
        prepared = {b for step in prepare for b in step[1]}
        kept = {b for step in run for b in step[1]}
        unit = np.dtype(np.float64 if self.doubles else np.float32)
        for number, (nbytes, contents) in enumerate(buffers[len(names) :], len(names)):
            count = -(-nbytes // unit.itemsize)
            if number not in kept:
                names.append("")
            elif contents:
                names.append(self._table(np.frombuffer(contents, unit)))
            elif number in prepared:
                make = _prepared(buffers, programs, prepare, number, unit)
                names.append(self._table(make, count, unit))
            else:
                names.append(self._scratch("temporary", -(-count // 2)).name)
        for program, bound, groups in run:
            text, groups = _kernel(programs[program], groups)
            kb.begin_dispatch("axis")
            kb.spirv(text, bindings=[names[b] for b in bound])
            kb.groups(*groups)

    def _table(self, contents: Any, size: int | None = None, dtype: np.dtype[Any] | None = None) -> str:
        self.tables += 1
        name = f"table_{self.tables}"
        return self.kb.constant(name, contents, size=size, dtype=dtype).name


def _prepared(
    buffers: Sequence[tuple[int, bytes]],
    programs: Sequence[str],
    dispatches: Sequence[tuple[int, list[int], tuple[int, int, int]]],
    wanted: int,
    unit: np.dtype[Any],
) -> Callable[[Manager], Tensor]:
    """A function that runs the dispatches which make a table."""

    def make(manager: Manager) -> Tensor:
        tensors: dict[int, Tensor] = {}
        sequence = manager.sequence()
        for program, bound, groups in dispatches:
            for b in bound:
                if b not in tensors:
                    nbytes, contents = buffers[b]
                    tensors[b] = manager.empty(-(-nbytes // unit.itemsize), unit, "storage")
                    if contents:
                        tensors[b].write(np.frombuffer(contents, unit))
            source, groups = _kernel(programs[program], groups)
            module = ShaderModule(source, name="fft.table")
            algorithm = manager.algorithm([tensors[b] for b in bound], module, groups)
            sequence.record(OpAlgoDispatch(algorithm))
        sequence.eval()
        return tensors[wanted]

    return make


def _kernel(source: str, groups: tuple[int, int, int]) -> tuple[str, tuple[int, int, int]]:
    """A kernel of VkFFT as it is compiled, and its workgroups: spread over two axes if there are too many."""
    # Without lengths: the compiler would give the type of such an array, with its layout, to shared memory.
    source = _ARRAY.sub(r"\1[];", source)
    if max(groups) <= _MOST_GROUPS:
        return source, groups
    x, y, z = groups
    total = x * y * z
    body = source.replace("gl_WorkGroupID", "kp_group").replace("void main()", "void kp_main()")
    global_id = "(kp_group * gl_WorkGroupSize + gl_LocalInvocationID)"
    body = body.replace("gl_GlobalInvocationID", global_id)
    head = _VERSION.match(body)
    assert head is not None
    end = f"""
void main() {{
    uint k = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    if (k >= {total}u) return;
    kp_group = uvec3(k % {x}u, k / {x}u % {y}u, k / {x * y}u);
    kp_main();
}}
"""
    text = f"{head[0]}uvec3 kp_group;\n{body[head.end() :]}{end}"
    return text, (_MOST_GROUPS, -(-total // _MOST_GROUPS), 1)


def _facts(device: Any) -> tuple[Any, ...]:
    limits = device["limits"]
    return (
        device["vendor_id"],
        limits["maxComputeSharedMemorySize"],
        limits["maxComputeWorkGroupInvocations"],
        tuple(limits["maxComputeWorkGroupSize"]),
    )


def _literal(number: float, double: bool) -> str:
    text = repr(float(number))
    text = text if "." in text or "e" in text else text + ".0"
    return f"{text}lf" if double else text


def _is_smooth(number: int) -> bool:
    for prime in _SMALL:
        while number % prime == 0:
            number //= prime
    return number == 1


def _complex_of(ksel: KernelSelection, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that the transform computes in, by NumPy's rule."""
    doubles = ksel.device is None or ksel.has("shaderFloat64")
    if dtype in (np.float64, np.complex128):
        if not doubles:
            raise UnimplementedError(
                f"{ksel._who()}: x is {dtype}, and the device has no float64; convert it: "
                f"x.astype(np.{'complex64' if dtype.kind == 'c' else 'float32'})"
            )
        return np.dtype(np.complex128)
    return np.dtype(np.complex128 if doubles and dtype.kind in "iub" else np.complex64)


def _geometry(
    ksel: KernelSelection,
    kind: _Transform,
    given: tuple[int, ...],
    lengths: Sequence[int] | None,
    axes: Sequence[int] | None,
    norm: str,
) -> _Geometry:
    who = ksel._who()
    if norm not in _NORMS:
        raise InvalidArgumentError(f"{who}: norm is {norm!r}; it is one of {', '.join(_NORMS)}")
    ndim = len(given)
    if axes is None:
        axes = range(ndim) if lengths is None else range(ndim - len(lengths), ndim)
    axes_of(who, axes, ndim)  # raises for axes that are not there or stand twice
    order = tuple(axis % ndim for axis in axes)
    if lengths is None:
        found = [given[axis] for axis in order]
        if kind.real_out and order:
            found[-1] = 2 * (found[-1] - 1)
    elif len(lengths) != len(order):
        raise InvalidArgumentError(f"{who}: there are {len(lengths)} lengths for {len(order)} axes")
    else:
        found = [
            given[axis] if n == -1 and kind.several else n for axis, n in zip(order, lengths, strict=True)
        ]
    if (kind.real_in or kind.real_out) and not order:
        raise InvalidArgumentError(f"{who}: there is no axis to transform")
    for axis, n in zip(order, found, strict=True):
        if n < 1:
            raise InvalidArgumentError(
                f"{who}: axis {axis} has the length {n}, and a transform has at least one number; say how "
                "many, or transform another axis"
            )
    full = list(given)
    for axis, n in zip(order, found, strict=True):
        full[axis] = n
    half = list(full)
    if kind.real_in or kind.real_out:
        half[order[-1]] = full[order[-1]] // 2 + 1
    total = math.prod(found)
    scaled = norm == ("backward" if kind.inverse else "forward")
    factor = 1 / math.sqrt(total) if norm == "ortho" else 1 / total if scaled else 1.0
    return _Geometry(order, given, tuple(full), tuple(half), factor)


class _Fft(_Transform):
    """The discrete Fourier transform of `x` along an axis: the sums of x[j] exp(-2 pi i j k / n).

    `n` is the number of elements of `axis` to transform: others are left out, missing ones are zeros. `norm`
    is "backward" (no factor), "ortho" (divides by the square root of n) or "forward" (divides by n). `x` may
    be real or complex; the result is complex. float64, complex128 and integers are computed in float64, other
    dtypes in float32; integers, too, on a device without float64.

    Raises InvalidArgumentError for axes that `x` does not have or that are given twice, a length below 1 and
    an unknown `norm`; UnimplementedError for float64 and complex128 on a device without float64.

    The kernels are VkFFT's (D. Tolmachev, 2023): Stockham's algorithm for lengths with prime factors up to
    13, Bluestein's for others.

    >>> kp.ops.fft(np.complex64([1, 2, 3, 4])).tolist()
    [(10+0j), (-2+2j), (-2+0j), (-2-2j)]

    :dtypes: all
    :axes: one
    :error: (2 + log2 n) eps of the result's norm
    """

    signature = "fft(Tensor x, int[]? n=None, int axis=-1, str norm='backward') -> Tensor"
    several = False


class _Ifft(_Transform):
    """The inverse of `fft`: the sums of x[j] exp(2 pi i j k / n) along an axis, divided by n.

    `n` is the number of elements of `axis` to transform: others are left out, missing ones are zeros. `norm`
    is "backward" (divides by n), "ortho" (divides by the square root of n) or "forward" (no factor). `x` may
    be real or complex; the result is complex. float64, complex128 and integers are computed in float64, other
    dtypes in float32; integers, too, on a device without float64.

    Raises InvalidArgumentError for axes that `x` does not have or that are given twice, a length below 1 and
    an unknown `norm`; UnimplementedError for float64 and complex128 on a device without float64.

    The kernels are VkFFT's (D. Tolmachev, 2023): Stockham's algorithm for lengths with prime factors up to
    13, Bluestein's for others.

    >>> kp.ops.ifft(np.complex64([10, -2 + 2j, -2, -2 - 2j])).tolist()
    [(1+0j), (2+0j), (3+0j), (4+0j)]

    :dtypes: all
    :axes: one
    :error: (2 + log2 n) eps of the result's norm
    """

    signature = "ifft(Tensor x, int[]? n=None, int axis=-1, str norm='backward') -> Tensor"
    several = False
    inverse = True


class _Rfft(_Transform):
    """The half of `fft` of real numbers that the other half follows from.

    `n` is the number of elements of `axis` to transform: others are left out, missing ones are zeros. `norm`
    is "backward" (no factor), "ortho" (divides by the square root of n) or "forward" (divides by n). `x` has
    real numbers. The result has n // 2 + 1 complex ones on the last of the axes: the others are conjugates of
    these. float64, complex128 and integers are computed in float64, other dtypes in float32; integers, too,
    on a device without float64.

    Raises InvalidArgumentError for axes that `x` does not have or that are given twice, a length below 1,
    complex `x` and an unknown `norm`; UnimplementedError for float64 and complex128 on a device without
    float64.

    The kernels are VkFFT's (D. Tolmachev, 2023): Stockham's algorithm for lengths with prime factors up to
    13, Bluestein's for others.

    >>> kp.ops.rfft(np.float32([1, 2, 3, 4])).tolist()
    [(10+0j), (-2+2j), (-2+0j)]

    :dtypes: all but complex
    :axes: one
    :error: (2 + log2 n) eps of the result's norm
    """

    signature = "rfft(Tensor x, int[]? n=None, int axis=-1, str norm='backward') -> Tensor"
    several = False
    real_in = True


class _Irfft(_Transform):
    """The inverse of `rfft`: real numbers from half of their transform.

    `n` is the length of `axis` in the result, 2 (m - 1) by default for m numbers in `x`: give it for odd
    lengths. Of `x`, the first n // 2 + 1 are used; missing ones are zeros. `norm` is "backward" (divides by
    n), "ortho" (divides by the square root of n) or "forward" (no factor). The result is real: float32 or
    float64. float64, complex128 and integers are computed in float64, other dtypes in float32; integers, too,
    on a device without float64.

    Raises InvalidArgumentError for axes that `x` does not have or that are given twice, a length below 1 and
    an unknown `norm`; UnimplementedError for float64 and complex128 on a device without float64.

    The kernels are VkFFT's (D. Tolmachev, 2023): Stockham's algorithm for lengths with prime factors up to
    13, Bluestein's for others.

    >>> kp.ops.irfft(np.complex64([10, -2 + 2j, -2])).tolist()
    [1.0, 2.0, 3.0, 4.0]

    :dtypes: all
    :axes: one
    :error: (2 + log2 n) eps of the result's norm
    """

    signature = "irfft(Tensor x, int[]? n=None, int axis=-1, str norm='backward') -> Tensor"
    several = False
    real_out = True
    inverse = True


class _Fft2(_Transform):
    """The discrete Fourier transform of `x` along two axes.

    `axes` are the axes, the last two by default. `s` has for each the number of elements to transform: others
    are left out, missing ones are zeros, and -1 is all. `norm` is "backward" (no factor), "ortho" (divides by
    the square root of n) or "forward" (divides by n), where n is the number of elements in a transform. `x`
    may be real or complex; the result is complex. float64, complex128 and integers are computed in float64,
    other dtypes in float32; integers, too, on a device without float64.

    Raises InvalidArgumentError for axes that `x` does not have or that are given twice, a length below 1 and
    an unknown `norm`; UnimplementedError for float64 and complex128 on a device without float64.

    The kernels are VkFFT's (D. Tolmachev, 2023): Stockham's algorithm for lengths with prime factors up to
    13, Bluestein's for others.

    >>> kp.ops.fft2(np.complex64([[1, 2], [3, 4]])).tolist()
    [[(10+0j), (-2+0j)], [(-4+0j), 0j]]

    :dtypes: all
    :axes: several
    :error: (2 + log2 n) eps of the result's norm
    """

    signature = "fft2(Tensor x, int[]? s=None, int[]? axes=[-2, -1], str norm='backward') -> Tensor"


class _Ifft2(_Transform):
    """The inverse of `fft2`.

    `axes` are the axes, the last two by default. `s` has for each the number of elements to transform: others
    are left out, missing ones are zeros, and -1 is all. `norm` is "backward" (divides by n), "ortho" (divides
    by the square root of n) or "forward" (no factor), where n is the number of elements in a transform. `x`
    may be real or complex; the result is complex. float64, complex128 and integers are computed in float64,
    other dtypes in float32; integers, too, on a device without float64.

    Raises InvalidArgumentError for axes that `x` does not have or that are given twice, a length below 1 and
    an unknown `norm`; UnimplementedError for float64 and complex128 on a device without float64.

    The kernels are VkFFT's (D. Tolmachev, 2023): Stockham's algorithm for lengths with prime factors up to
    13, Bluestein's for others.

    >>> kp.ops.ifft2(np.complex64([[10, -2], [-4, 0]])).tolist()
    [[(1+0j), (2+0j)], [(3+0j), (4+0j)]]

    :dtypes: all
    :axes: several
    :error: (2 + log2 n) eps of the result's norm
    """

    signature = "ifft2(Tensor x, int[]? s=None, int[]? axes=[-2, -1], str norm='backward') -> Tensor"
    inverse = True


class _Rfft2(_Transform):
    """The half of `fft2` of real numbers that the other half follows from.

    `axes` are the axes, the last two by default. `s` has for each the number of elements to transform: others
    are left out, missing ones are zeros, and -1 is all. `norm` is "backward" (no factor), "ortho" (divides by
    the square root of n) or "forward" (divides by n), where n is the number of elements in a transform. `x`
    has real numbers. The result has n // 2 + 1 complex ones on the last of the axes: the others are
    conjugates of these. float64, complex128 and integers are computed in float64, other dtypes in float32;
    integers, too, on a device without float64.

    Raises InvalidArgumentError for axes that `x` does not have or that are given twice, a length below 1,
    complex `x` and an unknown `norm`; UnimplementedError for float64 and complex128 on a device without
    float64.

    The kernels are VkFFT's (D. Tolmachev, 2023): Stockham's algorithm for lengths with prime factors up to
    13, Bluestein's for others.

    >>> kp.ops.rfft2(np.ones((4, 6), np.float32)).shape
    (4, 4)

    :dtypes: all but complex
    :axes: several
    :error: (2 + log2 n) eps of the result's norm
    """

    signature = "rfft2(Tensor x, int[]? s=None, int[]? axes=[-2, -1], str norm='backward') -> Tensor"
    real_in = True


class _Irfft2(_Transform):
    """The inverse of `rfft2`: real numbers from half of their transform.

    `axes` are the axes, the last two by default. `s` has for each its length in the result; that of the last
    is 2 (m - 1) by default, for m numbers in `x`: give it for odd lengths. `norm` is "backward" (divides by
    n), "ortho" (divides by the square root of n) or "forward" (no factor), where n is the number of elements
    in a transform. The result is real: float32 or float64. float64, complex128 and integers are computed in
    float64, other dtypes in float32; integers, too, on a device without float64.

    Raises InvalidArgumentError for axes that `x` does not have or that are given twice, a length below 1 and
    an unknown `norm`; UnimplementedError for float64 and complex128 on a device without float64.

    The kernels are VkFFT's (D. Tolmachev, 2023): Stockham's algorithm for lengths with prime factors up to
    13, Bluestein's for others.

    >>> kp.ops.irfft2(np.ones((4, 4), np.complex64)).shape
    (4, 6)

    :dtypes: all
    :axes: several
    :error: (2 + log2 n) eps of the result's norm
    """

    signature = "irfft2(Tensor x, int[]? s=None, int[]? axes=[-2, -1], str norm='backward') -> Tensor"
    real_out = True
    inverse = True


class _Fftn(_Transform):
    """The discrete Fourier transform of `x` along several axes.

    `axes` are the axes, all by default, or the last ones if `s` is given. `s` has for each the number of
    elements to transform: others are left out, missing ones are zeros, and -1 is all. `norm` is "backward"
    (no factor), "ortho" (divides by the square root of n) or "forward" (divides by n), where n is the number
    of elements in a transform. `x` may be real or complex; the result is complex. float64, complex128 and
    integers are computed in float64, other dtypes in float32; integers, too, on a device without float64.

    Raises InvalidArgumentError for axes that `x` does not have or that are given twice, a length below 1 and
    an unknown `norm`; UnimplementedError for float64 and complex128 on a device without float64.

    The kernels are VkFFT's (D. Tolmachev, 2023): Stockham's algorithm for lengths with prime factors up to
    13, Bluestein's for others.

    >>> kp.ops.fftn(np.ones((2, 4, 8), np.complex64))[0, 0, 0].item()
    (64+0j)

    :dtypes: all
    :axes: several
    :error: (2 + log2 n) eps of the result's norm
    """

    signature = "fftn(Tensor x, int[]? s=None, int[]? axes=None, str norm='backward') -> Tensor"


class _Ifftn(_Transform):
    """The inverse of `fftn`.

    `axes` are the axes, all by default, or the last ones if `s` is given. `s` has for each the number of
    elements to transform: others are left out, missing ones are zeros, and -1 is all. `norm` is "backward"
    (divides by n), "ortho" (divides by the square root of n) or "forward" (no factor), where n is the number
    of elements in a transform. `x` may be real or complex; the result is complex. float64, complex128 and
    integers are computed in float64, other dtypes in float32; integers, too, on a device without float64.

    Raises InvalidArgumentError for axes that `x` does not have or that are given twice, a length below 1 and
    an unknown `norm`; UnimplementedError for float64 and complex128 on a device without float64.

    The kernels are VkFFT's (D. Tolmachev, 2023): Stockham's algorithm for lengths with prime factors up to
    13, Bluestein's for others.

    >>> kp.ops.ifftn(np.ones((2, 4, 8), np.complex64))[0, 0, 0].item()
    (1+0j)

    :dtypes: all
    :axes: several
    :error: (2 + log2 n) eps of the result's norm
    """

    signature = "ifftn(Tensor x, int[]? s=None, int[]? axes=None, str norm='backward') -> Tensor"
    inverse = True


class _Rfftn(_Transform):
    """The half of `fftn` of real numbers that the other half follows from.

    `axes` are the axes, all by default, or the last ones if `s` is given. `s` has for each the number of
    elements to transform: others are left out, missing ones are zeros, and -1 is all. `norm` is "backward"
    (no factor), "ortho" (divides by the square root of n) or "forward" (divides by n), where n is the number
    of elements in a transform. `x` has real numbers. The result has n // 2 + 1 complex ones on the last of
    the axes: the others are conjugates of these. float64, complex128 and integers are computed in float64,
    other dtypes in float32; integers, too, on a device without float64.

    Raises InvalidArgumentError for axes that `x` does not have or that are given twice, a length below 1,
    complex `x` and an unknown `norm`; UnimplementedError for float64 and complex128 on a device without
    float64.

    The kernels are VkFFT's (D. Tolmachev, 2023): Stockham's algorithm for lengths with prime factors up to
    13, Bluestein's for others.

    >>> kp.ops.rfftn(np.ones((2, 4, 8), np.float32)).shape
    (2, 4, 5)

    :dtypes: all but complex
    :axes: several
    :error: (2 + log2 n) eps of the result's norm
    """

    signature = "rfftn(Tensor x, int[]? s=None, int[]? axes=None, str norm='backward') -> Tensor"
    real_in = True


class _Irfftn(_Transform):
    """The inverse of `rfftn`: real numbers from half of their transform.

    `axes` are the axes, all by default, or the last ones if `s` is given. `s` has for each its length in the
    result; that of the last is 2 (m - 1) by default, for m numbers in `x`: give it for odd lengths. `norm` is
    "backward" (divides by n), "ortho" (divides by the square root of n) or "forward" (no factor), where n is
    the number of elements in a transform. The result is real: float32 or float64. float64, complex128 and
    integers are computed in float64, other dtypes in float32; integers, too, on a device without float64.

    Raises InvalidArgumentError for axes that `x` does not have or that are given twice, a length below 1 and
    an unknown `norm`; UnimplementedError for float64 and complex128 on a device without float64.

    The kernels are VkFFT's (D. Tolmachev, 2023): Stockham's algorithm for lengths with prime factors up to
    13, Bluestein's for others.

    >>> kp.ops.irfftn(np.ones((2, 4, 5), np.complex64)).shape
    (2, 4, 8)

    :dtypes: all
    :axes: several
    :error: (2 + log2 n) eps of the result's norm
    """

    signature = "irfftn(Tensor x, int[]? s=None, int[]? axes=None, str norm='backward') -> Tensor"
    real_out = True
    inverse = True


fft: Operation = CustomOp.register(_Fft)
ifft: Operation = CustomOp.register(_Ifft)
rfft: Operation = CustomOp.register(_Rfft)
irfft: Operation = CustomOp.register(_Irfft)
fft2: Operation = CustomOp.register(_Fft2)
ifft2: Operation = CustomOp.register(_Ifft2)
rfft2: Operation = CustomOp.register(_Rfft2)
irfft2: Operation = CustomOp.register(_Irfft2)
fftn: Operation = CustomOp.register(_Fftn)
ifftn: Operation = CustomOp.register(_Ifftn)
rfftn: Operation = CustomOp.register(_Rfftn)
irfftn: Operation = CustomOp.register(_Irfftn)
