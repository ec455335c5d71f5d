"""What a Kernel keeps of its calls, and what it looks at to check one."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import keeps_finite, refuse_mask
from .._base.dtype_rules import conversion
from .._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from .._memory.memory import Memory
from .._memory.sampler import Bindable, SampledImage, Sampler
from .._recording.algorithm import made_by
from .._shaders.layout import check as check_layout
from .._shaders.layout import tail_of
from .._shaders.push import pack_struct
from .._shaders.signature import Parameter
from .._shaders.type_text import type_text

if TYPE_CHECKING:
    from .._manager.manager import Manager
    from .kernel import Kernel


class Call:
    """One dispatch, recorded for certain memory."""

    __slots__ = ("__weakref__", "groups", "native", "push", "references", "stream", "watchers")

    def __init__(
        self, native: Any, stream: Any, groups: tuple[int, int, int], push: bytes, references: list[Any]
    ) -> None:
        self.native = native
        self.stream = stream
        self.groups = groups
        self.push = push
        self.references = references  # native: Python's own would keep the tensors alive
        self.watchers: list[Any] = []

    def prepare(self, groups: tuple[int, int, int], push: bytes) -> None:
        """The next evaluation runs so many groups with these push constants."""
        if groups != self.groups or push != self.push:
            self.native.set(groups, push, self.references)
            self.groups, self.push = groups, push


class Forget:
    """Called when a tensor dies: drops the calls that were recorded for it. Holds its kernel weakly."""

    __slots__ = ("_kernel", "_key")

    def __init__(self, kernel: weakref.ref[Kernel], key: tuple[Any, ...]) -> None:
        self._kernel = kernel
        self._key = key

    def __call__(self, _: Any) -> None:
        """Drops the call."""
        kernel = self._kernel()
        if kernel is not None:
            kernel._drop(self._key)


def flat(bound: Iterable[Any]) -> Iterator[Any]:
    """The objects of bound arguments, of which one may be a tuple."""
    for each in bound:
        if type(each) is tuple:
            yield from each
        else:
            yield each


def _check_padding(what: str, parameter: Parameter, memory: Memory, subject: str) -> None:
    """std140 pads the elements of arrays to 16 bytes, and std430 a vec3 to the room of four: plain numbers have no such gaps."""
    stride, item = parameter.padded_stride, memory._dtype.itemsize
    if not memory._count:
        return
    rowed = len(memory._shape) > 1
    if not stride or (rowed and memory._shape[-1] * item == stride):
        return
    sole = parameter.layout["members"][0]
    if len(sole["array"]) != 1:
        return
    rows = max(1, sole["rows"])
    # A flat array of vectors may have been laid out by hand; one of scalars is taken for what it looks like.
    if rows == 1 or (rowed and memory._shape[-1] == rows):
        numbers = "numbers" if rows == 1 else f"rows of {('two', 'three')[rows == 3]}"
        raise InvalidArgumentError(
            f"{what} is {parameter.type}, whose elements are {stride} bytes apart; {subject} has {numbers} without padding. Make it with "
            f"dtype=kp.struct_dtype(kernel, {parameter.name!r}) or rows of {stride // item}, or declare the block with "
            f"{'std430' if rows < 3 else 'scalar'} layout{'' if rows < 3 else ', or as an array of numbers'}"
        )


def _check_matrices(what: str, parameter: Parameter, memory: Memory, subject: str) -> None:
    """Arrays go into buffers byte by byte. One with the rows and columns of the matrices has other bytes, if a matrix has its columns one
    after the other in memory or its lines are padded. (A square one without padding is not told from its transpose.)"""
    sole = parameter.layout["members"][0]
    if sole["columns"] <= 1 or sole["members"]:
        return
    lines, each = sole["columns"], sole["rows"]
    if sole["row_major"]:
        lines, each = each, lines
    room = sole["matrix_stride"] // memory._dtype.itemsize
    shape = memory._shape[-2:]
    if shape in ((lines, each), (each, lines)) and shape != (lines, room):
        order = "rows" if sole["row_major"] else "columns"
        padded = f", each padded to {room}" if room != each else ""
        raise InvalidArgumentError(
            f"{what} is {parameter.type}: in memory a matrix is its {lines} {order} of {each} numbers{padded}. The bytes of {subject} "
            f"are not those. Give {(*memory._shape[:-2], lines, room)}, as np.zeros(n, kp.struct_dtype(kernel, {parameter.name!r})) makes it"
        )


def is_number_for_array(parameter: Parameter, value: Any) -> bool:
    """Whether `value` is one number and `parameter` an array that the shader reads."""
    number = isinstance(value, (int, float, np.generic)) and not isinstance(value, np.void)
    return number and not parameter.written and tail_of(parameter.layout) is not None


def refuse_number(
    parameter: Parameter, value: Any, what: str, others: Iterable[tuple[Parameter, Any]]
) -> None:
    """Raises for one number in the place of an array: the shader would find one element, and zeros beyond it.

    `others` are parameters with what they are given: an array of as many elements as the first array has is what to give instead.
    """
    tail = tail_of(parameter.layout)
    assert tail is not None
    kind = type_text({**tail, "array": ()})
    array_of(parameter, value, what)  # raises for a number that is none of the array's
    number = value.item() if isinstance(value, np.generic) else value
    code = repr(number) if not isinstance(number, float) or math.isfinite(number) else f"float('{number}')"
    dtype = parameter.dtype if parameter.dtype is not None else np.dtype(type(number))
    shape = next((each for p, given in others if (each := _shape_like(parameter, p, given)) is not None), "n")
    raise InvalidArgumentError(
        f"{what} is {parameter.type}, an array, and {code} is one number: beyond it the shader would read zeros. Declare a push constant "
        f"instead (layout(push_constant) uniform P {{ {kind} {parameter.name}; }};)"
        + ("" if parameter.is_record else f", or give an array: np.full({shape}, {code}, np.{dtype})")
    )


def _shape_like(parameter: Parameter, other: Parameter, given: Any) -> tuple[int, ...] | None:
    """The shape of an array for `parameter` with as many elements as `other` is `given`; None if it has none to be counted."""
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
    """A list, a number, or what converts itself to an array, as one. Numbers of Python take the binding's dtype; they must fit."""
    refuse_mask(value, what)
    try:
        array = np.array(value, subok=True)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:  # RuntimeError: torch's
        raise ArgumentTypeError(f"{what} is no array of numbers: {error}") from None
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
            f"{what} is {parameter.type}, which holds {wanted}; {shown(value):.60} is not made of such numbers"
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
            f"{what} is {parameter.type}, which holds {wanted}; {shown(value):.60} has values that are none"
        )
    return converted


def pack_block(parameter: Parameter, value: Mapping[str, Any], what: str) -> np.ndarray[Any, Any]:
    """The bytes of a block from its members by name."""
    if parameter.written or tail_of(parameter.layout) is not None:
        why = "is written by the shader" if parameter.written else "ends with an array of run-time length"
        raise ArgumentTypeError(
            f"{what} {why}: give an array, np.zeros(..., kp.struct_dtype(kernel, {parameter.name!r})), not a dict"
        )
    packed = pack_struct(parameter.layout, value, what)
    # Of a sole member the caller may as well have given its numbers: so it has their dtype.
    return np.frombuffer(packed, np.uint8 if parameter.dtype is None else parameter.dtype)


def check_references(kernel: str, manager: Manager, references: Iterable[Any]) -> None:
    """Raises what is wrong with tensors that a shader reaches by their addresses."""
    for memory in references:
        if not isinstance(memory, Memory) or memory._is_image:
            raise ArgumentTypeError(
                f"{kernel}: uses= lists the Tensors whose addresses the shader finds in memory, not {type(memory).__name__}"
            )
        if memory._manager is not manager:
            raise InvalidArgumentError(
                f"{kernel}: {memory._describe()} belongs to {memory._manager!r}, the kernel to {manager!r}"
            )
        if not memory._is_init():
            memory._require_init(f"be referred to by {kernel}")


def fast_key(args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """What tells an exactly repeated call: the identities of tensors by position, the values of numbers by name.

    None where a call is more than that. (0.0 and -0.0 are equal, and differ in their bits.)
    """
    if not keywords:
        return tuple(map(id, args))
    for value in keywords.values():
        kind = type(value)
        if (kind is not float and kind is not int) or value == 0:
            return None
    return (*map(id, args), *keywords.items())


def several(kernel: str, parameter: Parameter, value: Any) -> tuple[Any, ...]:
    """What an array of bindings is given."""
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


def _check_image(what: str, parameter: Parameter, image: Any) -> None:
    """Raises where the shader declares an image of other dimensions, or of components of another kind."""
    declared, size = parameter.image, image._size
    assert declared is not None
    scalar = declared["component"].rstrip("0123456789")
    arrayed = size.layers is not None
    same = (f"{size.dims}D", arrayed) == (declared["dim"], declared["arrayed"])
    if same and scalar == image._format.scalar and not declared["multisampled"]:
        return
    # As the shader would have to declare it: uimage2DArray.
    kind = {"storage image": "image", "sampled image": "texture"}.get(parameter.kind, "sampler")
    prefix = {"int": "i", "uint": "u"}.get(image._format.scalar, "")
    seen = f"{prefix}{kind}{size.dims}D{'Array' if arrayed else ''}"
    if same and not declared["multisampled"]:
        mend = f"make it with a format of {scalar} components"
    elif not declared["multisampled"] and declared["dim"] in ("1D", "2D", "3D"):
        layers = f", layers={declared['arrayed']}" if declared["arrayed"] or arrayed else ""
        mend = f"make it with dims={declared['dim'][0]}{layers}"
    else:
        mend = "kompute_py makes no image of that kind"
    raise InvalidArgumentError(
        f"{what} is {parameter.type}{' (multisampled)' if declared['multisampled'] else ''}; {image._describe()} with format "
        f"{image._format.name} is {seen}: {mend}, or declare it as {seen}"
    )


def check_argument(
    kernel: str,
    manager: Manager,
    parameter: Parameter,
    memory: Any,
    given: np.ndarray[Any, Any] | None = None,
) -> None:
    """Raises what is wrong with `memory` as `parameter` of a kernel. `given` is the array that it holds, where that was given."""
    what = f"{kernel}: {parameter.name!r}"
    if memory._manager is not manager:
        raise InvalidArgumentError(
            f"{what} ({memory._describe()}) belongs to {memory._manager!r}, the kernel to {manager!r}"
        )
    if not memory._is_init():
        memory._require_init(f"be {parameter.name!r} of {kernel}")
    is_sampler = parameter.kind == "sampler"
    is_combined = parameter.kind == "combined image sampler"
    if (
        memory._is_image is not parameter.is_image
        or isinstance(memory, Sampler) is not is_sampler
        or (isinstance(memory, SampledImage) and not is_combined)
        or (is_combined and not isinstance(memory, SampledImage))
    ):
        raise InvalidArgumentError(
            f"{what} is a {parameter.kind} ({parameter.type}); {memory._describe()} is none: give "
            f"{made_by(parameter.kind)}"
        )
    if parameter.image is not None:
        declared = parameter.image["format"]
        if parameter.kind == "storage image" and declared and memory._format.name != declared:
            raise InvalidArgumentError(
                f"{what} ({parameter.type}) is declared layout({declared}); {memory._describe()} has the format "
                f"{memory._format.name}: make it with format={declared!r}, or leave the format out of the shader"
            )
        _check_image(what, parameter, memory._image if is_combined else memory)
        return
    if is_sampler:
        return
    dtype = memory._dtype
    subject = memory._describe() if given is None else f"the array of shape {given.shape}, {given.dtype}"
    raw = parameter.is_record and dtype.itemsize == 1
    if parameter.dtype is not None and dtype != parameter.dtype and dtype.names is None and not raw:
        raise ArgumentTypeError(
            f"{what} is {parameter.type}, which holds {parameter.dtype}; {subject} does not. "
            f"{conversion(dtype, parameter.dtype, given is not None)}"
        )
    if dtype.names is not None:
        check_layout(parameter.layout, dtype, memory._count, f"{what} ({subject})", parameter.binding)
    if dtype.names is None and not raw:
        _check_padding(what, parameter, memory, subject)
        if memory._count and len(memory._shape) > 1 and len(parameter.layout["members"]) == 1:
            _check_matrices(what, parameter, memory, subject)
    if memory.nbytes < parameter.size:
        raise InvalidArgumentError(
            f"{what} ({parameter.type}) has {parameter.size} bytes in the shader; {subject} has {memory.nbytes}"
        )
