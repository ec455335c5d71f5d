"""The checks of a call of a Kernel."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import keeps_finite, refuse_mask
from .._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from .._memory.memory import Memory
from .._memory.sampler import Bindable
from .._recording.binding import check_owner
from .._shaders.layout import tail_of
from .._shaders.push import pack_struct
from .._shaders.signature import Parameter
from .._shaders.type_text import type_text

if TYPE_CHECKING:
    from .._device.device import Device


def flat(bound: Iterable[Any]) -> Iterator[Any]:
    """The objects of bound arguments; an argument may be a tuple."""
    for each in bound:
        if type(each) is tuple:
            yield from each
        else:
            yield each


def is_number_for_array(parameter: Parameter, value: Any) -> bool:
    """Whether `value` is one number and `parameter` an array that the shader reads."""
    number = isinstance(value, (int, float, np.generic)) and not isinstance(value, np.void)
    return number and not parameter.written and tail_of(parameter.layout) is not None


def refuse_number(
    parameter: Parameter, value: Any, what: str, others: Iterable[tuple[Parameter, Any]]
) -> None:
    """Raises for one number instead of an array: the shader would find one element, and zeros beyond it.

    `others` are parameters with what they are given: an array of as many elements as the first array has is
    what to give instead.
    """
    tail = tail_of(parameter.layout)
    assert tail is not None
    kind = type_text({**tail, "array": ()})
    array_of(parameter, value, what)  # raises if the array's dtype lacks the number
    number = value.item() if isinstance(value, np.generic) else value
    code = repr(number) if not isinstance(number, float) or math.isfinite(number) else f"float('{number}')"
    dtype = parameter.dtype if parameter.dtype is not None else np.dtype(type(number))
    shape = next((each for p, given in others if (each := _shape_like(parameter, p, given)) is not None), "n")
    raise InvalidArgumentError(
        f"{what} is {parameter.type}, an array, and {code} is one number: beyond it the shader would read "
        "zeros. Declare a push constant "
        f"instead (layout(push_constant) uniform P {{ {kind} {parameter.name}; }};)"
        + ("" if parameter.is_record else f", or give an array: np.full({shape}, {code}, np.{dtype})")
    )


def _shape_like(parameter: Parameter, other: Parameter, given: Any) -> tuple[int, ...] | None:
    """The shape of an array for `parameter` with as many elements as `other` is `given`; None if it has none
    to be counted.
    """
    tail, counted = tail_of(parameter.layout), tail_of(other.layout)
    if tail is None or counted is None or not hasattr(given, "nbytes"):
        return None
    elements = given.nbytes // counted["array_strides"][-1]
    item = 1 if parameter.dtype is None else parameter.dtype.itemsize
    numbers = tail["array_strides"][-1] // item
    if given.ndim and given.shape[-1] * given.itemsize == counted["array_strides"][-1] and numbers > 1:
        return (*given.shape[:-1], numbers)
    if given.size == elements and numbers == 1:
        return tuple(given.shape)
    return (elements,) if numbers == 1 else (elements, numbers)


def array_of(parameter: Parameter, value: Any, what: str) -> np.ndarray[Any, Any]:
    """A list, a number, or what converts itself to an array, as one.

    Numbers of Python take the binding's dtype; they must fit.
    """
    refuse_mask(value, what)
    try:
        array = np.array(value, subok=True)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:  # RuntimeError: torch's
        raise ArgumentTypeError(f"{what} is not an array of numbers: {error}") from None
    refuse_mask(array, what)  # of its own __array__
    array = np.asarray(array)
    wanted = parameter.dtype
    own = hasattr(value, "__array__") and not isinstance(value, np.generic)
    if array.size == 0 and wanted is not None and not own:
        return array.astype(wanted)  # an empty list
    if own or wanted is None:
        return array  # of a dtype that was chosen: it is compared, not converted
    kind = array.dtype.kind
    # Integers beyond 64 bits are objects.
    if kind not in "biuf" and not (kind == "O" and all(isinstance(each, int) for each in array.flat)):
        raise ArgumentTypeError(
            f"{what} is {parameter.type}, which holds {wanted}; {shown(value):.60} is not made of such "
            "numbers"
        )
    try:
        with np.errstate(invalid="ignore", over="ignore"):
            converted = array.astype(wanted)
        if wanted.kind == "f":  # rounds, and must not become infinite
            fits = bool(np.isfinite(converted).all()) if kind == "O" else keeps_finite(array, converted)
        else:
            fits = np.array_equal(converted, array)
    except OverflowError:
        fits = False
    if not fits:
        raise InvalidArgumentError(
            f"{what} is {parameter.type}, which holds {wanted}; {shown(value):.60} has other values"
        )
    return converted


def pack_block(parameter: Parameter, value: Mapping[str, Any], what: str) -> np.ndarray[Any, Any]:
    """The bytes of a block from its members by name."""
    if parameter.written or tail_of(parameter.layout) is not None:
        why = "is written by the shader" if parameter.written else "ends with an array of run-time length"
        raise ArgumentTypeError(
            f"{what} {why}: give an array, np.zeros(..., kp.struct_dtype(kernel, {parameter.name!r})), not a "
            "dict"
        )
    packed = pack_struct(parameter.layout, value, what)
    # Of a sole member the caller may as well have given its numbers: so it has their dtype.
    return np.frombuffer(packed, np.uint8 if parameter.dtype is None else parameter.dtype)


def check_references(kernel: str, manager: Device, references: Iterable[Any]) -> None:
    """Raises what is wrong with tensors that a shader reaches by their addresses."""
    for memory in references:
        if not isinstance(memory, Memory) or memory._is_image:
            raise ArgumentTypeError(
                f"{kernel}: uses= lists the Tensors whose addresses the shader finds in memory, not "
                f"{type(memory).__name__}"
            )
        check_owner(memory, manager, f"reached by {kernel}")


def several(kernel: str, parameter: Parameter, value: Any) -> tuple[Any, ...]:
    """The values for an array of bindings."""
    what = f"{kernel}: {parameter.name!r}"
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, (Memory, Bindable)) for v in value):
        raise ArgumentTypeError(
            f"{what} is {parameter.type}, an array of {parameter.kind}s: give a list of tensors or images"
        )
    if not value or (parameter.descriptors and len(value) != parameter.descriptors):
        raise InvalidArgumentError(
            f"{what} is {parameter.type}: it takes {parameter.descriptors or 'at least 1'}, not {len(value)}"
        )
    return tuple(value)
