"""New tensors: filled, ranges, diagonals.

These operations have no tensors as arguments, so their results are Tensors of the current Manager (``with
mgr:``), or of `out`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of, shown
from ..._base.types import is_small_float
from ..._builders.elementwise import elementwise, formula
from ..._builders.walks import check_sizes, group_of
from ..._custom.arguments import dtype_named
from ..._custom.selection import FunctionSelection
from ..._formulas.glsl_elements import element_of
from ..._functions.custom_op import CustomOp
from ..._manager.default import manager as default_manager
from .composed import Composed, Run, Widened

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder
    from ..._functions.function import Function


class _Making(CustomOp):
    """These operations have this in common."""

    def dtype(self, ksel: FunctionSelection, given: np.dtype[Any] | None = None) -> np.dtype[Any]:
        """The dtype of the result: the argument, or what is given for it. Raises UnimplementedError if the
        device lacks it.
        """
        found: np.dtype[Any] = ksel.attr_dtype("dtype").v if given is None else given
        if found.kind == "c":
            raise InvalidArgumentError(f"{ksel.name}: dtype is {found}; make real numbers, and kp.ops.astype")
        ksel.require(found, "dtype is", "use one of 32 bits")
        return found

    def number(self, ksel: FunctionSelection, name: str, value: float, dtype: np.dtype[Any]) -> None:
        """Declares a number of the kernel, ``kp_NAME``. Raises InvalidArgumentError if the dtype lacks it."""
        if dtype.kind == "f" or is_small_float(dtype):
            ksel.value(f"kp_{name}", value, np.float64 if dtype == np.float64 else np.float32)
            return
        if dtype.kind == "b":
            ksel.value(f"kp_{name}", int(bool(value)), np.uint32)
            return
        whole = int(value) if math.isfinite(value) else None
        if whole is None or whole != value:
            raise InvalidArgumentError(f"{ksel.name}: {name} is {value}, and dtype is {dtype}; give an int")
        limits = np.iinfo(dtype)
        if not limits.min <= value <= limits.max and name != "step":
            raise InvalidArgumentError(
                f"{ksel.name}: {name} is {whole}, and {dtype} has {limits.min} to {limits.max}"
            )
        wide = dtype.itemsize == 8
        bits = 64 if wide else 32
        # As the kernel adds them, without a sign.
        ksel.value(f"kp_{name}", int(whole) % 2**bits, np.uint64 if wide else np.uint32)

    def computing(self, dtype: np.dtype[Any]) -> str:
        """The type in which kernels compute: floats, or ints without a sign."""
        if dtype.kind == "f" or is_small_float(dtype):
            return "double" if dtype == np.float64 else "float"
        return "uint64_t" if dtype.itemsize == 8 else "uint"

    def stored(self, kb: FunctionBuilder, dtype: np.dtype[Any], value: str) -> None:
        """Yields the value, in the type of the result's elements."""
        if dtype.itemsize == 8 and dtype.kind in "iu":
            kb.extension("GL_EXT_shader_explicit_arithmetic_types_int64")
        kb.workgroup(group_of(kb.selection))
        kb.yield_results(f"{element_of(dtype).type}({value})")


class _Full(_Making):
    """A tensor of this shape with all elements `fill_value`, as ``np.full``.

    `shape` is an int or several. Raises InvalidArgumentError for a negative length and for a number that the
    dtype does not have, UnimplementedError if the device lacks the dtype. `Manager.full` and `OpFill` do the
    same without a shader.

    >>> kp.ops.full((2, 3), 7, "int32").tolist()
    [[7, 7, 7], [7, 7, 7]]

    :dtypes: all but complex
    :axes: any
    :error: one rounding
    """

    signature = "full(int[]? shape, float fill_value, dtype dtype='float32') -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        shape = _shape(ksel, ksel.attr_list_int("shape").v)
        value, dtype = ksel.arg_float("fill_value").v, self.dtype(ksel)
        self.number(ksel, "fill_value", value, dtype)
        ksel.return_new_tensor(shape, dtype)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        self.stored(kb, ksel.results[0].dtype, "kp_fill_value")


def _shape(ksel: FunctionSelection, given: Any) -> tuple[int, ...]:
    shape = (given,) if isinstance(given, int) else tuple(given or ())
    for n in shape:
        if n < 0:
            raise InvalidArgumentError(f"{ksel.name}: the shape {shape} has a negative length")
    return shape


class _Arange(_Making):
    """The numbers from `start` to before `stop` in steps of `step`, as ``np.arange``; with one number, from 0
    to before it.

    The dtype is float32 by default, also for ints, not NumPy's int64. Element i is ``start + i * step``;
    `step` is rounded to the dtype. Raises InvalidArgumentError for a step of 0, for numbers that are not
    finite, for a dtype of ints and numbers that are not ints or beyond its range, and without `dtype` for
    ints that float32 does not have (beyond 2**24); UnimplementedError if the device lacks the dtype.

    >>> kp.ops.arange(2, 9, 3, "int32").tolist()
    [2, 5, 8]
    >>> kp.ops.arange(3).tolist()
    [0.0, 1.0, 2.0]

    :dtypes: all but complex and bool
    :axes: one
    :error: i roundings of the step and one of the result; exact for ints
    """

    signature = "arange(float start, float stop=nan, float step=1.0, dtype? dtype=None) -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        """The number of elements, and their steps."""
        start, stop, step = (ksel.arg_float(name).v for name in ("start", "stop", "step"))
        asked = ksel.attr_dtype("dtype").v
        dtype = self.dtype(ksel, np.dtype(np.float32) if asked is None else asked)
        if math.isnan(stop):
            start, stop = 0.0, start
        if dtype.kind == "b" or step == 0 or not all(map(math.isfinite, (start, stop, step))):
            raise InvalidArgumentError(
                f"{ksel.name}: start is {start}, stop {stop}, step {step}, dtype {dtype}; give finite "
                "numbers, a step that is not 0, and a dtype of numbers"
            )
        if start == int(start) and stop == int(stop) and step == int(step):
            start, stop, step = int(start), int(stop), int(step)  # which count exactly
            count = max(0, -((start - stop) // step))
        else:
            count = max(0, math.ceil((stop - start) / step))
        if count >= 2**32:
            raise InvalidArgumentError(f"{ksel.name}: {count} elements; generated kernels count with 32 bits")
        last = start + max(count - 1, 0) * step
        if asked is None and isinstance(last, int) and max(abs(start), abs(last)) > 2**24:
            raise InvalidArgumentError(
                f"{ksel.name}: the numbers are {start} to {last}, and float32, the default, has all ints "
                "only up to 2**24: give dtype='int32', or dtype='float32' to round them"
            )
        self.number(ksel, "start", start, dtype)
        self.number(ksel, "step", step, dtype)
        if dtype.kind in "iu" and count:
            limits = np.iinfo(dtype)
            if not limits.min <= last <= limits.max:
                raise InvalidArgumentError(
                    f"{ksel.name}: the last number is {last:.0f}, and {dtype} has {limits.min} to "
                    f"{limits.max}"
                )
        ksel.return_new_tensor(count, dtype)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        dtype = ksel.results[0].dtype
        self.stored(kb, dtype, f"kp_start + {self.computing(dtype)}(i) * kp_step")


class _Linspace(_Making):
    """`num` numbers at equal distances from `start` to `stop`, as ``np.linspace``; `stop` itself only with
    `endpoint`.

    The dtype is float32 by default, not NumPy's float64. If `start` or `stop` is complex, or `dtype`, the
    numbers are, by default complex64: their real and imaginary parts are such numbers, and it runs four
    operations.

    Raises InvalidArgumentError for a negative `num`, for numbers that are not finite and for other dtypes
    than floats and complex ones; UnimplementedError if the device lacks the dtype.

    >>> kp.ops.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> kp.ops.linspace(0, 1 + 2j, 3).tolist()
    [0j, (0.5+1j), (1+2j)]

    :dtypes: floats, complex
    :axes: one
    :error: 4 roundings of the larger of `start` and `stop`; the ends are exact
    """

    signature = (
        "linspace(float start, float stop, int num=50, bool endpoint=True, dtype dtype='float32') -> Tensor"
    )

    def select(self, ksel: FunctionSelection) -> None:
        start, stop = ksel.arg_float("start").v, ksel.arg_float("stop").v
        num, endpoint = ksel.arg_int("num").v, ksel.attr_bool("endpoint").v
        dtype = self.dtype(ksel)
        if dtype.kind in "iub":
            raise InvalidArgumentError(
                f"{ksel.name}: dtype is {dtype}; it gives floats: use kp.ops.astype after"
            )
        if num < 0 or not math.isfinite(start) or not math.isfinite(stop):
            raise InvalidArgumentError(
                f"{ksel.name}: start is {start}, stop {stop} and num {num}; give finite numbers, and a num "
                "of 0 or more"
            )
        self.number(ksel, "start", start, dtype)
        self.number(ksel, "stop", stop, dtype)
        # By halves, because the whole distance may be infinite; here, because compilers may take
        # stop * 0.5 - start * 0.5 for (stop - start) * 0.5.
        self.number(ksel, "half", stop * 0.5 - start * 0.5, dtype)
        ksel.value("kp_parts", max(num - 1 if endpoint else num, 1), np.uint32)
        ksel.return_new_tensor(num, dtype)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Each element from the nearer end, so that both ends are exact."""
        dtype = ksel.results[0].dtype
        kind = self.computing(dtype)
        near = f"kp_start + kp_half * ({kind}(2u * i) / {kind}(kp_parts))"
        far = f"kp_stop - kp_half * ({kind}(2u * (kp_parts - i)) / {kind}(kp_parts))"
        self.stored(kb, dtype, f"(i <= kp_parts / 2u ? {near} : {far})")


class _Eye(_Making):
    """A matrix with ones on a diagonal and zeros elsewhere, as ``np.eye``.

    It has `N` rows and `M` columns, by default as many. The diagonal begins in column `k`; negative ones
    begin in later rows.

    Raises InvalidArgumentError for a negative length, UnimplementedError if the device lacks the dtype.

    >>> kp.ops.eye(2, 3, k=1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]

    :dtypes: all but complex
    :axes: two
    :error: exact
    """

    signature = "eye(int N, int[]? M=None, int k=0, dtype dtype='float32') -> Tensor"

    def select(self, ksel: FunctionSelection) -> None:
        rows, given = ksel.arg_int("N").v, ksel.attr_list_int("M").v
        ksel.arg_int("k")
        dtype = self.dtype(ksel)
        if given is not None and len(given) != 1:
            raise InvalidArgumentError(f"{ksel.name}: M is {given}; give one int, the number of columns")
        columns = rows if given is None else given[0]
        ksel.value("kp_columns", max(columns, 0), np.uint32)
        ksel.return_new_tensor(_shape(ksel, (rows, columns)), dtype)
        check_sizes(ksel)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """One if the column is the row's."""
        one = "int(i / kp_columns) + k == int(i % kp_columns)"
        kb.workgroup(group_of(ksel))
        kb.yield_results(one if ksel.results[0].dtype.kind == "b" else f"{one} ? 1 : 0")


full: Function = CustomOp.register(_Full)
arange: Function = CustomOp.register(_Arange)
_linspace: Function = CustomOp.register(_Linspace)
_complex = elementwise("re + im * 1j")


def _of_complex(args: tuple[Any, ...], given: dict[str, Any]) -> bool:
    """Whether complex numbers are asked for."""
    if any(isinstance(given.get(end), (complex, np.complexfloating)) for end in ("start", "stop")):
        return True
    return "dtype" in given and dtype_named("linspace: dtype", given["dtype"]).kind == "c"


def _complex_linspace(
    run: Run, start: complex, stop: complex, num: int = 50, endpoint: bool = True, dtype: Any = "complex64"
) -> Any:
    """The real and the imaginary parts, each by `_Linspace`."""
    wanted = dtype_named("linspace: dtype", dtype)
    kind = {"complex64": "float32", "complex128": "float64"}.get(wanted.name)
    if kind is None:
        raise InvalidArgumentError(f"linspace: dtype is {wanted}, and the numbers are complex")
    _check_numbers("linspace", start, stop, complex, np.complexfloating)
    ends = complex(start), complex(stop)
    re, im = (
        run(_linspace, *(getattr(each, part) for each in ends), num, endpoint, kind)
        for part in ("real", "imag")
    )
    return run(_complex, re, im)


def _check_numbers(name: str, start: Any, stop: Any, *more: type) -> None:
    kinds = (int, float, np.integer, np.floating, *more)
    for end in (start, stop):
        if isinstance(end, bool) or not isinstance(end, kinds):
            raise ArgumentTypeError(f"{name} goes from number to number, not {kind_of(end)}")


linspace: Function = Widened(_Linspace, _of_complex, _complex_linspace)
eye: Function = CustomOp.register(_Eye)


_power = elementwise("power(base, x)", name="logspace")
_between = elementwise("sign_ * power(a, 1 - t) * power(b, t)", name="geomspace")


@Composed
def logspace(
    run: Run,
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = "float32",
) -> Any:
    """`base` to the power of `num` numbers at equal distances from `start` to `stop`, as ``np.logspace``.

    The dtype is float32 by default, not NumPy's float64. It runs `linspace` in float64 if the device has it.
    Raises the errors of `linspace`, and InvalidArgumentError for a base that is not above 0.

    >>> kp.ops.round(kp.ops.logspace(0, 3, 4)).tolist()
    [1.0, 10.0, 100.0, 1000.0]

    :dtypes: floats
    :axes: one
    :error: 4 ulp; for float64, and on devices without it, 16 and 4 for each unit of the logarithm
    """
    dtype, wide = _spaced("logspace", start, stop, dtype)
    if not isinstance(base, (int, float, np.integer, np.floating)) or not 0 < base < math.inf:
        raise InvalidArgumentError(f"logspace: base is {shown(base)}; give a finite number above 0")
    return _narrowed(run, run(_power, base=base, x=run(linspace, start, stop, num, endpoint, wide)), dtype)


@Composed
def geomspace(
    run: Run, start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = "float32"
) -> Any:
    """`num` numbers from `start` to `stop` with equal ratios, as ``np.geomspace``; `stop` itself only with
    `endpoint`.

    The dtype is float32 by default, not NumPy's float64. It runs `linspace` in float64 if the device has it.
    Raises the errors of `linspace`, and InvalidArgumentError if `start` or `stop` is 0, or one of them alone
    is negative.

    >>> kp.ops.round(kp.ops.geomspace(1, 1000, 4)).tolist()
    [1.0, 10.0, 100.0, 1000.0]

    :dtypes: floats
    :axes: one
    :error: that of `kp.ops.logspace`
    """
    dtype, wide = _spaced("geomspace", start, stop, dtype)
    if not (start < 0 and stop < 0) and not (start > 0 and stop > 0):
        raise InvalidArgumentError(
            f"geomspace: start is {start} and stop {stop}; give numbers of one sign, neither of them 0"
        )
    t = run(linspace, 0, 1, num, endpoint, wide)
    return _narrowed(
        run, run(_between, sign_=1.0 if start > 0 else -1.0, a=abs(start), b=abs(stop), t=t), dtype
    )


def _spaced(name: str, start: Any, stop: Any, dtype: Any) -> tuple[np.dtype[Any], str]:
    """The dtype of the result, and the one to compute in."""
    _check_numbers(name, start, stop)
    dtype = dtype_named(f"{name}: dtype", dtype)
    if dtype.kind in "biuc":
        raise InvalidArgumentError(f"{name}: dtype is {dtype}; it gives floats: use kp.ops.astype after")
    wide = dtype == np.float64 or "shaderFloat64" in default_manager().enabled_features
    return dtype, "float64" if wide else "float32"


def _narrowed(run: Run, x: Any, dtype: np.dtype[Any]) -> Any:
    return x if x.dtype == dtype else run(formula("x", dtype.name), x)
