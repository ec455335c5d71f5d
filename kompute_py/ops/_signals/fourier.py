"""Discrete Fourier transforms, as NumPy's `np.fft`."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.errors import InvalidArgumentError, UnimplementedError
from ..._builders.walks import axes_of, check_sizes, group_of
from ..._custom.arg_descs import TensorArg
from ..._custom.selection import FunctionSelection
from ..._functions.custom_op import CustomOp
from ..._functions.function import Function
from .._places.moving import _Axis, _of, _Places
from .transforms import Geometry, Writer

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder

_NORMS = ("backward", "ortho", "forward")


class _Transform(CustomOp):
    real_in = False
    """Takes real numbers, and leaves out the conjugates from its result."""
    real_out = False
    """Has real numbers as its result, and takes half of the complex ones."""
    inverse = False
    several = True
    """Has the arguments `s` and `axes`, not `n` and `axis`."""

    def select(self, ksel: FunctionSelection) -> None:
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
                f"{ksel.name}: x is {x.dtype}, and {ksel.name} transforms real numbers; call "
                f"{ksel.name.lstrip('r')}, or give kp.ops.real(x)"
            )
        dtype = _complex_of(ksel, x.dtype)
        if self.real_out:
            dtype = np.dtype(np.float32 if dtype == np.complex64 else np.float64)
        ksel.return_new_tensor(shape.half if self.real_in else shape.full, dtype)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        lengths = ksel.attribute("s" if self.several else "n")
        axes = ksel.attribute("axes" if self.several else "axis")
        lengths = [lengths] if isinstance(lengths, int) else lengths
        axes = [axes] if isinstance(axes, int) else axes
        x, result = kb.arg_value("x"), kb.result(0)
        given = tuple(int(n) for n in x.shape)
        shape = _geometry(ksel, self, given, lengths, axes, ksel.attribute("norm"))
        if 0 in shape.full:
            kb.yield_results(f"{result.type}(0)")  # it does not run
            return
        writer = Writer(ksel, kb, self.inverse, result.dtype)
        write = writer.from_real if self.real_in else writer.to_real if self.real_out else writer.whole
        write(x, result, shape)


def _complex_of(ksel: FunctionSelection, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that the transform computes in, by NumPy's rule."""
    doubles = ksel.may_have("shaderFloat64")
    if dtype in (np.float64, np.complex128):
        if not doubles:
            raise UnimplementedError(
                f"{ksel.name}: x is {dtype}, and the device has no float64; convert it: "
                f"x.astype(np.{'complex64' if dtype.kind == 'c' else 'float32'})"
            )
        return np.dtype(np.complex128)
    return np.dtype(np.complex128 if doubles and dtype.kind in "iub" else np.complex64)


def _geometry(
    ksel: FunctionSelection,
    kind: _Transform,
    given: tuple[int, ...],
    lengths: Sequence[int] | None,
    axes: Sequence[int] | None,
    norm: str,
) -> Geometry:
    who = ksel.name
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
            has = f"axis {axis} has the length {given[axis]}"
            if lengths is not None:
                has = f"the length {n} was given for axis {axis}"
            elif kind.real_out and given[axis]:
                has += f", and its result would have 2 * ({given[axis]} - 1) = {n}"
            raise InvalidArgumentError(
                f"{who}: {has}, and a transform has at least one number; give "
                f"{'s' if kind.several else 'n'}=, or transform another axis"
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
    return Geometry(order, given, tuple(full), tuple(half), factor)


_SUMMARIES = {
    "fft": "The discrete Fourier transform of `x` along an axis: the sums of x[j] exp(-2 pi i j k / n).",
    "ifft": "The inverse of `fft`: the sums of x[j] exp(2 pi i j k / n) along an axis, divided by n.",
    "rfft": "The half of `fft` of real numbers that the other half follows from.",
    "irfft": "The inverse of `rfft`: real numbers from half of their transform.",
    "fft2": "The discrete Fourier transform of `x` along two axes.",
    "ifft2": "The inverse of `fft2`.",
    "rfft2": "The half of `fft2` of real numbers that the other half follows from.",
    "irfft2": "The inverse of `rfft2`: real numbers from half of their transform.",
    "fftn": "The discrete Fourier transform of `x` along several axes.",
    "ifftn": "The inverse of `fftn`.",
    "rfftn": "The half of `fftn` of real numbers that the other half follows from.",
    "irfftn": "The inverse of `rfftn`: real numbers from half of their transform.",
}
_LENGTHS = {
    (False, False): "`n` is the number of elements of `axis` to transform: others are left out, missing ones "
    "are zeros.",
    (
        False,
        True,
    ): "`n` is the length of `axis` in the result, 2 (m - 1) by default for m numbers in `x`: give "
    "it for odd lengths. Of `x`, the first n // 2 + 1 are used; missing ones are zeros.",
    (True, False): "`s` has for each the number of elements to transform: others are left out, missing ones "
    "are zeros, and -1 is all.",
    (
        True,
        True,
    ): "`s` has for each its length in the result; that of the last is 2 (m - 1) by default, for m "
    "numbers in `x`: give it for odd lengths.",
}
"""What the argument for lengths is, by (several axes, a real result)."""
_AXES = {
    "": "",
    "2": "`axes` are the axes, the last two by default. ",
    "n": "`axes` are the axes, all by default, or the last ones if `s` is given. ",
}
_DOC = """{summary}

{about}

Raises InvalidArgumentError for axes that `x` does not have or that are given twice, a length below 1,
{and_complex}and an unknown `norm`; UnimplementedError for float64 and complex128 on a device without float64.

Lengths with prime factors up to 13 are transformed by Stockham's algorithm, others by Bluestein's.{pairs}

>>> kp.ops.{name}({example}
{shown}

:dtypes: {dtypes}
:axes: {axes}
:error: (2 + log2 n) eps of the result's norm
"""


def _transform(name: str, example: str, shown: str) -> Function:
    """The transform of this name."""
    before, after = name.split("fft")
    inverse, real_in, real_out = "i" in before, before == "r", before == "ir"
    divided = ["divides by n", "no factor"] if inverse else ["no factor", "divides by n"]
    values = "`x` may be real or complex; the result is complex."
    if real_in:
        where = "the last of the axes" if after else "`axis`"
        values = (
            f"`x` has real numbers. The result has n // 2 + 1 complex ones on {where}: the others are "
            "conjugates of these."
        )
    elif real_out:
        values = (
            "The result is real: float32 or float64. Numbers that are their own conjugates in a transform of "
            "real numbers, such as the first, count without their imaginary parts, as in NumPy."
        )
    about = (
        f"{_AXES[after]}{_LENGTHS[bool(after), real_out]} "
        f'`norm` is "backward" ({divided[0]}), "ortho" (divides by the square root of n) or "forward" '
        f"({divided[1]}){', where n is the number of elements in a transform' if after else ''}. {values} "
        "float64, complex128 and integers are computed in float64, other dtypes in float32. A device without "
        "float64 computes integers in float32."
    )
    doc = _DOC.format(
        name=name,
        summary=_SUMMARIES[name],
        about=textwrap.fill(about, 100),
        and_complex="complex `x` " if real_in else "",
        pairs=" An even n costs half of a complex transform, an odd one a whole one."
        if "r" in before
        else "",
        example=example,
        shown=shown,
        dtypes="all but complex" if real_in else "all",
        axes="several" if after else "one",
    )
    named = {
        "": "int[]? n=None, int axis=-1",
        "2": "int[]? s=None, int[]? axes=[-2, -1]",
        "n": "int[]? s=None, int[]? axes=None",
    }[after]
    members = {
        "__doc__": doc,
        "signature": f"{name}(Tensor x, {named}, str norm='backward') -> Tensor",
        "real_in": real_in,
        "real_out": real_out,
        "inverse": inverse,
        "several": bool(after),
    }
    return CustomOp.register(type(f"_{name.capitalize()}", (_Transform,), members))


class _Fftconvolve(CustomOp):
    """The convolution of `in1` with `in2` along `axes`, all by default, as ``scipy.signal.fftconvolve``.

    Both have as many axes; those that are not in `axes` broadcast. `mode` is "full" (n + m - 1
    numbers for n and m), "same" (the middle of these, as many as `in1` has) or "valid" (those that take no
    number beyond the ends; one array must be as long as the other on each of the axes). The result is real if
    both are. float64, complex128 and integers are computed in float64, other dtypes in float32. A device
    without float64 computes integers in float32.

    It takes the product of the Fourier transforms of both, padded with zeros to lengths of 2**k or 3 * 2**k
    (T. G. Stockham, 1966): `kp.ops.convolve` is the faster one for a few weights. Along one axis, an array
    that is much longer than the other is taken in blocks. A large number makes the error of all results of
    its block larger, and a NaN makes them NaN.

    Raises InvalidArgumentError for shapes that do not fit, for an axis without elements, that is not there or
    that is given twice, and for another `mode`; UnimplementedError for float64 and complex128 on a device
    without float64.

    >>> kp.ops.fftconvolve(np.float32([1, 2, 3]), np.float32([1, 1])).round(5).tolist()
    [1.0, 3.0, 5.0, 3.0]

    :dtypes: all
    :axes: several, None
    :error: 4 (2 + log2 n) eps of the product of both norms
    """

    signature = "fftconvolve(Tensor in1, Tensor in2, str mode='full', int[]? axes=None) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        a, b = (ksel.arg_tensor(name).specialize_all_dims() for name in ("in1", "in2"))
        who, mode = ksel.name, ksel.attr_str("mode").v
        if a.ndim != b.ndim:
            raise InvalidArgumentError(f"{who}: in1 has {a.ndim} axes, and in2 {b.ndim}; give as many")
        axes = axes_of(who, ksel.attr_list_int("axes").v, a.ndim)
        if not axes:
            raise InvalidArgumentError(f"{who}: there is no axis to convolve along")
        if mode not in ("full", "same", "valid"):
            raise InvalidArgumentError(f"{who}: mode is {mode!r}; it is one of full, same, valid")
        for axis, (n, m) in enumerate(zip(a.shape, b.shape, strict=True)):
            if not (n and m) if axis in axes else n != m and 1 not in (n, m):
                raise InvalidArgumentError(
                    f"{who}: in1 and in2 have the lengths {n} and {m} on axis {axis}; "
                    + ("give elements" if axis in axes else "give the same, or 1 to repeat an array along it")
                )
        longer = {a.shape[axis] > b.shape[axis] for axis in axes if a.shape[axis] != b.shape[axis]}
        if mode == "valid" and len(longer) > 1:
            raise InvalidArgumentError(f"{who}: neither of {a.shape} and {b.shape} has room for the other")
        full = [m if n == 1 else n for n, m in zip(a.shape, b.shape, strict=True)]
        kept, first = list(full), [0] * a.ndim
        for axis in axes:
            n, m = a.shape[axis], b.shape[axis]
            full[axis] = _fast(n + m - 1)
            kept[axis] = {"full": n + m - 1, "same": n, "valid": abs(n - m) + 1}[mode]
            first[axis] = {"full": 0, "same": (m - 1) // 2, "valid": min(n, m) - 1}[mode]
        half = list(full)
        half[axes[-1]] = full[axes[-1]] // 2 + 1
        block = _block(a.shape[axes[0]], b.shape[axes[0]]) if len(axes) == 1 else 0
        ksel.specialize(lengths=(axes, tuple(full), tuple(half), tuple(first), block))
        dtype = max((_complex_of(ksel, each.dtype) for each in (a, b)), key=lambda kind: kind.itemsize)
        if "c" not in (a.dtype.kind, b.dtype.kind):
            dtype = np.dtype(np.float32 if dtype == np.complex64 else np.float64)
        ksel.return_new_tensor(kept, dtype).specialize_all_dims()
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes three transforms, with a product before the last."""
        axes, full, half, start, block = ksel.special["lengths"]
        result = kb.result(0)
        kept = tuple(int(n) for n in ksel.results[0].shape)
        if 0 in kept:
            kb.yield_results(f"{result.type}(0)")  # it does not run
            return
        real = result.dtype.kind != "c"
        writer = Writer(ksel, kb, False, result.dtype)
        if block:
            self._in_blocks(kb, writer, axes[0], start[axes[0]], block)
            return
        parts = []
        for name in ("in1", "in2"):
            x = kb.arg_value(name)
            shape = tuple(int(n) for n in x.shape)
            every, stored = (
                tuple(m if axis in axes else n for axis, (n, m) in enumerate(zip(shape, each, strict=True)))
                for each in (full, half)
            )
            stored = stored if real else every
            part = writer.scratch(name, math.prod(stored))
            (writer.from_real if real else writer.whole)(x, part, Geometry(axes, shape, every, stored, 1.0))
            parts.append((part, stored))
        product, shape = writer.product(*parts)
        writer.inverse = True
        factor = 1 / math.prod(full[axis] for axis in axes)
        spare = [part for part, stored in parts if part is not product and stored == full and not real]
        back = (
            spare[0]
            if spare
            else kb.scratch("back", math.prod(full), writer.real_dtype if real else writer.dtype)
        )
        given = Geometry(axes, shape, full, half, factor)
        (writer.to_real if real else writer.whole)(product, back, given)
        writer.cut(back, full, result, kept, start)

    @staticmethod
    def _in_blocks(kb: FunctionBuilder, writer: Writer, axis: int, first: int, block: int) -> None:
        """Transforms blocks of the longer array, each with the end of the one before (overlap-save)."""
        result = kb.result(0)
        real = result.dtype.kind != "c"
        transform = writer.from_real if real else writer.whole
        given = [
            (kb.arg_value(name), tuple(int(n) for n in kb.arg_value(name).shape)) for name in ("in1", "in2")
        ]
        (x, long), (weights, short) = sorted(given, key=lambda each: -each[1][axis])
        overlap = short[axis] - 1
        blocks = -(-(long[axis] + overlap) // (block - overlap))
        full = (*long[:axis], blocks, block, *long[axis + 1 :])
        half = (*long[:axis], blocks, block // 2 + 1, *long[axis + 1 :])
        stored = half if real else full
        pieces = kb.scratch("pieces", math.prod(full), writer.real_dtype if real else writer.dtype)
        writer.split(x, pieces, long, full, axis, overlap)
        numbers = writer.scratch("in1", math.prod(stored))
        transform(pieces, numbers, Geometry((axis + 1,), full, full, half, 1.0))
        one, one_half = ((*short[:axis], each[axis + 1], *short[axis + 1 :]) for each in (full, half))
        others = writer.scratch("in2", math.prod(one_half if real else one))
        transform(weights, others, Geometry((axis,), short, one, one_half, 1.0))
        once = one_half if real else one
        product, stored = writer.product((numbers, stored), (others, (*once[:axis], 1, *once[axis:])))
        writer.inverse = True
        full, half = ((*stored[: axis + 1], each[axis + 1], *stored[axis + 2 :]) for each in (full, half))
        if math.prod(full) != pieces.size:
            pieces = kb.scratch("back", math.prod(full), pieces.dtype)
        shape = Geometry((axis + 1,), stored, full, half, 1 / block)
        (writer.to_real if real else writer.whole)(product, pieces, shape)
        writer.join(pieces, full, result, tuple(int(n) for n in result.shape), axis, first, overlap)


_MOST_IN_GROUP = 4096
"""Real numbers of a block that every device transforms in the memory of a workgroup."""


def _block(n: int, m: int) -> int:
    """The length of blocks, if a convolution of so many numbers is less work in them; else 0.

    The work is counted in passes over the numbers: one of a transform that fits into a workgroup, three of
    others, and four around it.
    """
    n, m = max(n, m), min(n, m)
    whole = 1.5 * _fast(n + m - 1) * (7 if n > _MOST_IN_GROUP else 5)
    best, least = 0, 0.75 * whole
    block = max(2 ** (2 * m - 1).bit_length(), 64)
    while block < n:
        blocks = -(-(n + m - 1) // (block - m + 1))
        work = blocks * block * (7 if block > _MOST_IN_GROUP else 5)
        if work < least:
            best, least = block, work
        block *= 2
    return best


def _fast(length: int) -> int:
    """The least length of 2**k or 3 * 2**k, and even, that has room for so many numbers."""
    power = 2 ** max((length - 1).bit_length(), 1)
    return power * 3 // 4 if power >= 8 and power * 3 // 4 >= length else power


class _Frequencies(CustomOp):
    half = False
    """Those from 0 on only."""

    def select(self, ksel: FunctionSelection) -> None:
        n, d, dtype = ksel.arg_int("n").v, ksel.arg_float("d").v, ksel.attr_dtype("dtype").v
        if n < 1:
            raise InvalidArgumentError(f"{ksel.name}: n is {n}; a transform has at least one number")
        if not math.isfinite(d) or d == 0:
            raise InvalidArgumentError(f"{ksel.name}: d is {d}; give the time between two numbers")
        if dtype not in (np.float32, np.float64):
            raise InvalidArgumentError(f"{ksel.name}: dtype is {dtype}; it is float32 or float64")
        if dtype == np.float64 and ksel.device is not None and not ksel.has("shaderFloat64"):
            raise UnimplementedError(f"{ksel.name}: the device has no float64; use float32")
        ksel.value("kp_step", 1 / (n * d), dtype)
        ksel.return_new_tensor(n // 2 + 1 if self.half else n, dtype)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        turn = "" if self.half else " - (i < (result_size + 1) / 2 ? 0 : int(result_size))"
        kb.workgroup(group_of(ksel))
        kb.yield_results(f"kp_step * {kb.result(0).type}(int(i){turn})")


class _Fftfreq(_Frequencies):
    """The frequencies of the numbers of `fft`, as ``np.fft.fftfreq``: 0, 1, ..., -2, -1, divided by `n` `d`.

    `n` is the length of the transform, and `d` the time from one number to the next. The result is a Tensor
    of the current Manager, of float32 unless `dtype` says float64, or `out`.

    Raises InvalidArgumentError for `n` below 1 or beyond the memory that shaders reach, for `d` that is 0 or
    not finite and for other dtypes than float32 and float64; UnimplementedError for float64 on a device
    without it.

    >>> kp.ops.fftfreq(5, d=0.1).tolist()
    [0.0, 2.0, 4.0, -4.0, -2.0]

    :dtypes: float32 and float64
    :axes: one
    :error: 1 ulp
    """

    signature = "fftfreq(int n, float d=1.0, dtype dtype='float32') -> Tensor"


class _Rfftfreq(_Frequencies):
    """The frequencies of the numbers of `rfft`, as ``np.fft.rfftfreq``: those of `fftfreq` from 0 on, to the
    half of `n`.

    `n` is the length of the transform, and `d` the time from one number to the next. The dtype and the errors
    are those of `fftfreq`.

    >>> kp.ops.rfftfreq(5, d=0.1).tolist()
    [0.0, 2.0, 4.0]

    :dtypes: float32 and float64
    :axes: one
    :error: 1 ulp
    """

    signature = "rfftfreq(int n, float d=1.0, dtype dtype='float32') -> Tensor"
    half = True


class _Shift(_Places):
    """Moves the first elements of axes to their middle."""

    back = False

    def find(self, ksel: FunctionSelection, x: TensorArg) -> tuple[tuple[int, ...], list[_Axis], int]:
        places = _of(x)
        for each in axes_of(ksel.name, ksel.attr_list_int("axes").v, x.ndim):
            n, step, _ = places[each]
            places[each] = _Axis(n, step, (n + 1) // 2 % max(n, 1) if self.back else n // 2)
        return x.shape, places, 0


class _Fftshift(_Shift):
    """`x` with the frequency 0 in the middle of `axes`, as ``np.fft.fftshift``: all axes by default.

    Raises InvalidArgumentError for an axis that `x` does not have or that is given twice.

    >>> kp.ops.fftshift(mgr.tensor([0, 1, 2, -2, -1])).tolist()
    [-2.0, -1.0, 0.0, 1.0, 2.0]

    :dtypes: all
    :axes: any, several, None
    :error: exact
    """

    signature = "fftshift(Tensor x, int[]? axes=None) -> Tensor"


class _Ifftshift(_Shift):
    """The inverse of `fftshift`, as ``np.fft.ifftshift``: they differ for odd lengths.

    Raises InvalidArgumentError for an axis that `x` does not have or that is given twice.

    >>> kp.ops.ifftshift(mgr.tensor([-2, -1, 0, 1, 2])).tolist()
    [0.0, 1.0, 2.0, -2.0, -1.0]

    :dtypes: all
    :axes: any, several, None
    :error: exact
    """

    signature = "ifftshift(Tensor x, int[]? axes=None) -> Tensor"
    back = True


fft: Function = _transform(
    "fft", "np.complex64([1, 2, 3, 4])).tolist()", "[(10+0j), (-2+2j), (-2+0j), (-2-2j)]"
)
ifft: Function = _transform(
    "ifft", "np.complex64([10, -2 + 2j, -2, -2 - 2j])).tolist()", "[(1+0j), (2+0j), (3+0j), (4+0j)]"
)
rfft: Function = _transform("rfft", "np.float32([1, 2, 3, 4])).tolist()", "[(10+0j), (-2+2j), (-2+0j)]")
irfft: Function = _transform("irfft", "np.complex64([10, -2 + 2j, -2])).tolist()", "[1.0, 2.0, 3.0, 4.0]")
fft2: Function = _transform(
    "fft2", "np.complex64([[1, 2], [3, 4]])).tolist()", "[[(10+0j), (-2+0j)], [(-4+0j), 0j]]"
)
ifft2: Function = _transform(
    "ifft2", "np.complex64([[10, -2], [-4, 0]])).tolist()", "[[(1+0j), (2+0j)], [(3+0j), (4+0j)]]"
)
rfft2: Function = _transform("rfft2", "np.ones((4, 6), np.float32)).shape", "(4, 4)")
irfft2: Function = _transform("irfft2", "np.ones((4, 4), np.complex64)).shape", "(4, 6)")
fftn: Function = _transform("fftn", "np.ones((2, 4, 8), np.complex64))[0, 0, 0].item()", "(64+0j)")
ifftn: Function = _transform("ifftn", "np.ones((2, 4, 8), np.complex64))[0, 0, 0].item()", "(1+0j)")
rfftn: Function = _transform("rfftn", "np.ones((2, 4, 8), np.float32)).shape", "(2, 4, 5)")
irfftn: Function = _transform("irfftn", "np.ones((2, 4, 5), np.complex64)).shape", "(2, 4, 8)")
fftshift: Function = CustomOp.register(_Fftshift)
ifftshift: Function = CustomOp.register(_Ifftshift)
fftfreq: Function = CustomOp.register(_Fftfreq)
rfftfreq: Function = CustomOp.register(_Rfftfreq)
fftconvolve: Function = CustomOp.register(_Fftconvolve)
