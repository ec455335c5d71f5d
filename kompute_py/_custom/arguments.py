"""The arguments of an operation's call: their types, and the signature that Python shows."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._base.arrays import refuse_mask, to_dtype
from .._base.errors import ArgumentTypeError, InvalidArgumentError, instead_of, kind_of, shown
from .._formulas.dtypes import cast_dtype
from .._formulas.glsl_elements import element_of, need_of
from .._formulas.small_floats import SMALL_FLOATS
from .._memory.image import Image
from .._memory.memory import Memory
from .._memory.strided import StridedView
from .._memory.tensor import Tensor
from .._shaders.signature import MISSING
from .declaration import Declaration, Parameter
from .specs import PartSpec, TensorSpec

NUMPY_NUMBERS = (
    np.float32, np.float64, np.float16, np.int32, np.uint32, np.int64, np.uint64, np.int16, np.uint16,
    np.int8, np.uint8, np.bool_, np.complex64, np.complex128,
)  # fmt: skip
"""The types of numbers of NumPy that kernels take."""
_MOST_NUMBERS = 1 << 20
"""Numbers that a list has at most: Python looks at each."""


def checked(who: str, parameter: Parameter, value: Any, meta: bool) -> Any:
    """The value of a parameter: a Tensor, view, Image, array or spec, None, a list, a number or a text.

    With `meta`, specs count as tensors. Lists in a list of numbers count one after another. Raises
    ArgumentTypeError, naming `who`, for any other type.
    """
    kind = parameter.type
    if value is None and kind in ("Tensor?", "Tensor|Scalar?"):
        return None
    kind = "Tensor|Scalar" if kind == "Tensor|Scalar?" else kind
    if kind == "Tensor[]":
        if isinstance(value, (Tensor, np.ndarray)) and len(value.shape) > 1:
            value = [value[place] for place in range(value.shape[0])]
        if not isinstance(value, (list, tuple)):
            raise ArgumentTypeError(f"{who} is {kind_of(value)}; give a list of tensors or arrays")
        return [checked_tensor(f"{who}[{number}]", each, meta) for number, each in enumerate(value)]
    if kind == "Tensor|Scalar" and isinstance(value, np.generic):
        element_of(value.dtype)
        return value
    if kind == "Tensor|Scalar" and isinstance(value, (bool, int, float, complex)):
        return _plain(value)
    if parameter.alias and isinstance(value, (np.generic, int, float, complex, list, tuple)):
        raise ArgumentTypeError(f"{who} is {kind_of(value)}, which is not written; give a Tensor or an array")
    if parameter.is_tensor:
        return checked_tensor(who, value, meta)
    if "[]" in kind and isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if kind == "int[]?":
        if value is None:
            return None
        if isinstance(value, (int, np.integer)):
            return [_scalar(who, "int", value)]
        kind = "int[]"
    if kind in ("dtype", "dtype?"):
        return None if value is None and kind == "dtype?" else dtype_named(who, value).name
    if kind.endswith("[]"):
        if kind == "float[]" and isinstance(value, (int, float, np.integer, np.floating)):
            return [_scalar(who, "float", value)]
        if not isinstance(value, (list, tuple, np.ndarray)):
            raise ArgumentTypeError(f"{who} is {kind_of(value)}; give a list of {kind[:-2]}s")
        count = value.size if isinstance(value, np.ndarray) else len(value)
        if count > _MOST_NUMBERS:
            raise InvalidArgumentError(
                f"{who} has {count} {kind[:-2]}s, and a list of an operation at most {_MOST_NUMBERS}; give "
                "that many numbers as a tensor"
            )
        refuse_mask(value, who)
        value = [one for each in value for one in (each if isinstance(each, (list, tuple)) else (each,))]
        return [_scalar(f"{who}[{number}]", kind[:-2], each) for number, each in enumerate(value)]
    return _scalar(who, kind, value)


def dtype_named(title: str, value: Any) -> np.dtype[Any]:
    """Anything that NumPy takes as a dtype. Raises ArgumentTypeError, with the title, for all else."""
    if value is not None:
        try:
            if isinstance(value, str) and value in SMALL_FLOATS:
                return cast_dtype(value)
            return to_dtype(value)
        except ArgumentTypeError:
            pass
    raise ArgumentTypeError(
        f"{title} is {shown(value)}; give a dtype of numbers, such as np.float32"
    ) from None


def features_for(declaration: Declaration, values: Sequence[Any]) -> frozenset[str]:
    """The features without which no device has the dtypes among these arguments."""
    dtypes: list[np.dtype[Any]] = []
    for parameter, value in zip(declaration.parameters, values, strict=True):
        if parameter.type in ("dtype", "dtype?"):
            dtypes += [] if value is None else [dtype_named(parameter.name, value)]
        else:
            several = value if isinstance(value, list) else [value]
            dtypes += [np.dtype(each.dtype) for each in several if hasattr(each, "dtype")]
    return frozenset([need.feature for need in map(need_of, dtypes) if need is not None])


def plain_types(parameter: Parameter) -> frozenset[type]:
    """The types of values that `checked` returns as they are. It may refuse a Tensor or an array of them."""
    kind = parameter.type
    if kind in ("Tensor", "Tensor?"):
        return frozenset((Tensor, np.ndarray) if kind == "Tensor" else (Tensor, np.ndarray, type(None)))
    if kind in ("Tensor|Scalar", "Tensor|Scalar?"):
        nothing = (type(None),) if kind[-1] == "?" else ()
        return frozenset((Tensor, np.ndarray, bool, int, float, complex, *NUMPY_NUMBERS, *nothing))
    if kind in ("dtype?", "int[]?"):
        return frozenset((type(None),))
    return frozenset({"int": (int,), "float": (float,), "bool": (bool,), "str": (str,)}.get(kind, ()))


def checked_tensor(who: str, value: Any, meta: bool = False) -> Any:
    """A Tensor, a part of one, an Image or an array as operations take it; with `meta` also a TensorSpec.

    Raises ArgumentTypeError, naming the argument, for others, FailedPreconditionError if it is destroyed.
    """
    if isinstance(value, (Tensor, StridedView, Image)):
        value._require_init("be used")
    elif isinstance(value, np.ndarray):
        if type(value) is not np.ndarray:
            refuse_mask(value, who)
            value = np.asarray(value)
    elif meta and isinstance(value, TensorSpec):
        pass
    elif isinstance(value, (np.generic, int, float, complex, list, tuple)):
        value = _as_numpy(who, value)
    else:
        try:
            value = np.asarray(memoryview(value))
        except (TypeError, ValueError, BufferError):
            usual = "give a Tensor, an Image or an array"
            raise ArgumentTypeError(f"{who} is {kind_of(value)}; {instead_of(value, usual)}") from None
    element_of(np.dtype(value.dtype))
    return value


def _as_numpy(who: str, value: Any) -> np.ndarray[Any, Any]:
    """Numbers, or lists of them, as an array of the dtype that NumPy gives them."""
    if isinstance(value, (list, tuple)) and any(isinstance(each, (Memory, StridedView)) for each in value):
        raise ArgumentTypeError(
            f"{who} is {kind_of(value)} of tensors; give one: kp.ops.stack({who.split(': ')[-1]}) makes it"
        )
    refuse_mask(value, who)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{who} is not an array of numbers: {error}") from None
    if array.dtype.kind in "OSU":
        raise ArgumentTypeError(f"{who} is {shown(value):.60}, not numbers that a dtype holds")
    return array


def _plain(value: complex) -> Any:
    """A number of a derived type, such as a member of an enumeration, as Python's own."""
    if isinstance(value, (int, float)):
        return value if isinstance(value, bool) else int(value) if isinstance(value, int) else float(value)
    return complex(value)


def _scalar(who: str, kind: str, value: Any) -> Any:
    if kind == "str" and isinstance(value, str):
        return str.__str__(value)  # of an enum's member its text
    if kind == "bool" and isinstance(value, (bool, np.bool_)):
        return bool(value)
    if kind == "int" and isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    if (
        kind == "float"
        and isinstance(value, (int, float, np.integer, np.floating))
        and not isinstance(value, bool)
    ):
        try:
            number = float(value)
        except OverflowError:
            raise InvalidArgumentError(f"{who} is {shown(value)}, beyond all floats") from None
        # An int that no float has stays one: operations that make ints need it as it is.
        return int(value) if isinstance(value, (int, np.integer)) and int(number) != value else number
    raise ArgumentTypeError(f"{who} is {kind_of(value)}; give {'an' if kind[0] in 'aeiou' else 'a'} {kind}")


def python_signature(declaration: Declaration) -> inspect.Signature:
    """The signature for ``inspect.signature`` and help()."""
    parameters = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY if each.by_name else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if each.left_out is MISSING else each.left_out,
            annotation="DTypeLike" if each.type == "dtype" else each.type,
        )
        for each in declaration.parameters
    ]
    for name, default in (("out", None), ("donate", ()), ("wait", ()), ("signal", ())):
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
    results = declaration.text.partition("->")[2].strip()
    return inspect.Signature(parameters, return_annotation=results or inspect.Signature.empty)


def spec_of(value: Any, parts: bool) -> TensorSpec:
    """The spec of a tensor, view, array or spec; with `parts`, of views their strides, too."""
    if type(value) is Tensor:
        return TensorSpec._of(value._shape, value._dtype)
    if parts and isinstance(value, StridedView):
        return PartSpec(value.shape, value.dtype, value._first, value._strides, value._base.nbytes)
    return value if isinstance(value, TensorSpec) else TensorSpec(tuple(value.shape), value.dtype)


def outs_of(declaration: Declaration, out: Any) -> tuple[Any, ...]:
    """The memory that ``out=`` gives for results; () if it is None.

    Raises InvalidArgumentError for another number of results, ArgumentTypeError if `out` is not memory.
    """
    if out is None:
        return ()
    fresh = [result for result in declaration.results if not result.alias]
    outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    if len(outs) != len(fresh) or len(fresh) != len(declaration.results):
        raise InvalidArgumentError(
            f"{declaration.name} makes {len(fresh)} results; out gives {len(outs)}: {declaration.text}"
        )
    for each in outs:
        if not isinstance(each, (Tensor, StridedView, Image, np.ndarray)):
            raise ArgumentTypeError(
                f"{declaration.name}: out is {kind_of(each)}; give a Tensor, a part of one, an Image or an "
                "array"
            )
        if isinstance(each, np.ndarray):
            refuse_mask(each, f"{declaration.name}: out")
        else:
            each._require_init("be written")
    return outs


def _other_dtype(declaration: Declaration, result: Any, given: Any) -> str:
    """Advice for memory of another dtype than the result's."""
    if given.dtype == result.dtype:
        return ""
    if any(each.name == "dtype" for each in declaration.parameters):
        return f": give dtype={str(given.dtype)!r}, too"
    call = f"kp.ops.astype({declaration.name}(...), {str(given.dtype)!r}, out=out)"
    return f": give memory of {result.dtype}, or convert the result: {call}"


def check_outs(declaration: Declaration, results: Sequence[Any], outs: Sequence[Any]) -> None:
    """Raises InvalidArgumentError for memory that does not fit its result."""
    who = declaration.name
    for result, given in zip(results, outs, strict=False):
        if tuple(given.shape) != result.shape or given.dtype != result.dtype:
            advice = _other_dtype(declaration, result, given)
            raise InvalidArgumentError(
                f"{who}: the result {result.name!r} has shape {result.shape} and dtype {result.dtype}; out "
                f"has shape {tuple(given.shape)} and dtype {given.dtype}{advice}"
            )
        if isinstance(given, np.ndarray) and not given.flags.writeable:
            raise InvalidArgumentError(f"{who}: out for {result.name!r} is a read-only array")


def answered(declaration: Declaration, answer: Any, outs: Sequence[Any]) -> Any:
    """The results of a call for the answer of ``eager_execute``, which goes into `outs` if there are any.

    Raises InvalidArgumentError for another number of results, and for another shape than that of `outs`,
    ArgumentTypeError for a dtype that NumPy does not convert to theirs.
    """
    count = len(declaration.results)
    if not declaration.single and (not isinstance(answer, (tuple, list)) or len(answer) != count):
        raise InvalidArgumentError(
            f"{declaration.name}: eager_execute returned {shown(answer)}, not a tuple of {count} results"
        )
    if not outs:
        return answer
    answers = (answer,) if declaration.single else tuple(answer)
    for given, each in zip(outs, answers, strict=True):
        if np.shape(each) != tuple(given.shape):
            raise InvalidArgumentError(
                f"{declaration.name}: eager_execute returned a result of shape {np.shape(each)}; out has "
                f"shape {tuple(given.shape)}"
            )
        own = each.dtype if hasattr(each, "dtype") else np.asarray(each).dtype
        if not np.can_cast(own, given.dtype, "same_kind"):
            raise ArgumentTypeError(
                f"{declaration.name}: eager_execute returned a result of {own}; out is of {given.dtype}"
            )
        if isinstance(given, Memory) and isinstance(each, Memory) and given.dtype == each.dtype:
            given.copy_from(each).wait()
        elif isinstance(given, (Tensor, StridedView, Image)):
            given.write(np.asarray(each))
        else:
            np.copyto(given, np.asarray(each))
    return outs[0] if declaration.single else tuple(outs)
