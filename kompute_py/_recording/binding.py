"""The rules for the memory that is bound to a shader, the same by position (Algorithm) and by name (Kernel).

An object of another kind than the binding's (a tensor for an image, a sampler, an image of other dimensions),
an object of another Manager, a destroyed object and a structured dtype that does not have the block's layout
are errors. If only the contents differ from the declaration (another dtype, elements without the shader's
padding, a block that is too small, another image format), a kernel raises. An algorithm warns, once for each
shader, binding and difference: Kompute's scripts rely on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.arrays import as_index
from .._base.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    KomputeError,
    OutOfRangeError,
    kind_of,
)
from .._base.texels import plain_format
from .._base.text import Told, told
from .._base.warn import warn
from .._memory.image import SampledImage
from .._memory.memory import Memory
from .._memory.sampler import Sampler
from .._memory.tensor import Tensor
from .._shaders.dtype_rules import conversion, difference

if TYPE_CHECKING:
    from .._device.device import Device
    from .._shaders.signature import Parameter, Signature


def made_by(parameter: Parameter) -> str:
    """The call that makes the object that the binding of `parameter` takes."""
    declared = parameter.image["format"] if parameter.image is not None else ""
    return {
        "storage image": f"mgr.image(..., format={declared!r})" if declared else "mgr.image(...)",
        "sampled image": "mgr.image(...)",
        "combined image sampler": "mgr.image(...).sampled(...)",
        "sampler": "mgr.sampler(...)",
    }.get(parameter.kind, "mgr.tensor(...)")


_NORMALIZED = {"uint8": "8", "uint16": "16", "int8": "8_snorm", "int16": "16_snorm"}


def texel_format(parameter: Parameter, tensor: Any, who: str) -> str:
    """The format of the texels of a texel buffer for which the shader declares none: the tensor's dtype, and
    its last axis if that has 2 or 4 elements. A shader of floats sees integers normalized.
    """
    dtype, shape = tensor._dtype, tensor._shape
    channels = shape[-1] if len(shape) > 1 and shape[-1] in (2, 3, 4) else 1
    prefix = {1: "r", 2: "rg", 4: "rgba"}.get(channels)
    kind = {"ii": "int", "is": "int", "ui": "uint", "us": "uint"}.get(parameter.type[:2], "float")
    found = plain_format(dtype.name, channels)
    if kind == "float" and prefix and dtype.name in _NORMALIZED:
        return prefix + _NORMALIZED[dtype.name]
    if found is None or found.scalar != kind:
        floats = "float16, float32, or integers of 8 or 16 bits"
        raise ArgumentTypeError(
            f"{who}: the texels of {parameter.name!r} ({parameter.type}) are 1, 2 or 4 numbers of "
            f"{floats if kind == 'float' else f'{kind}8, 16 or 32'}; "
            f"{tensor._describe()} has {channels if channels == 3 else dtype}"
        )
    return found.name


def check_owner(memory: Any, manager: Device, what: str) -> None:
    """Raises InvalidArgumentError if `memory` belongs to another Manager, FailedPreconditionError if it is
    destroyed.
    """
    if memory._manager is not manager:
        raise InvalidArgumentError(
            f"{what} ({memory._describe()}) belongs to {memory._manager!r}, not to {manager!r}; "
            "make both with one Manager, or copy it over with .to(mgr)"
        )
    if not memory._is_init():
        memory._require_init(f"be {what}")


def indirect_groups(given: Any, offset: Any, manager: Device, who: str) -> Tensor:
    """The three uint32 of the tensor `given` from the element `offset` on: the numbers of workgroups.

    Raises ArgumentTypeError unless it is a uint32 Tensor, InvalidArgumentError for fewer than three elements
    and for another Manager's, OutOfRangeError for an offset beyond it, FailedPreconditionError if it is
    destroyed.
    """
    if not isinstance(given, Tensor):
        raise ArgumentTypeError(
            f"{who}: indirect is {kind_of(given)}; give a uint32 Tensor with the numbers of workgroups in x, "
            "y and z. If the host knows them, give them as numbers"
        )
    if given._dtype != np.uint32:
        raise ArgumentTypeError(
            f"{who}: indirect is {given._describe()}, of {given._dtype}; the numbers of workgroups are uint32"
        )
    check_owner(given, manager, f"indirect of {who}")
    first = as_index(offset, "offset")
    if given._count < 3:
        raise InvalidArgumentError(
            f"{who}: indirect is {given._describe()}, with {given._count} elements; the numbers of "
            "workgroups in x, y and z are three"
        )
    if not 0 <= first <= given._count - 3:
        raise OutOfRangeError(
            f"{who}: offset is {first}, in elements; the three numbers of workgroups begin at 0 to "
            f"{given._count - 3} of {given._describe()}"
        )
    return given if given._count == 3 else given._part(first * 4, (3,), given._dtype)


def check_argument(
    parameter: Parameter,
    memory: Any,
    what: Told,
    subject: Told = "",
    *,
    array: np.ndarray[Any, Any] | None = None,
    lenient: Signature | None = None,
) -> None:
    """Raises, or warns, if `memory` does not fit `parameter`: see the module for the rules.

    `what` names the parameter in errors, `subject` the memory. `array` is the array that the memory holds, if
    that was given. `lenient` is the signature of an algorithm, which keeps what was warned of.
    """
    if not subject:
        subject = (
            memory._describe if array is None else lambda: f"the array of shape {array.shape}, {array.dtype}"
        )
    kind = parameter.kind
    if (
        memory._is_image is not parameter.is_image
        or isinstance(memory, Sampler) is not (kind == "sampler")
        or isinstance(memory, SampledImage) is not (kind == "combined image sampler")
    ):
        raise InvalidArgumentError(
            f"{told(what)} is a {kind} ({parameter.type}), not {told(subject)}: give {made_by(parameter)}"
        )
    if kind == "sampler":
        return
    if parameter.image is not None:
        image = memory._image if kind == "combined image sampler" else memory
        key: Any = image._format.name
        found = _format_difference(parameter, image, what, subject)
        if found is None or lenient is not None:
            _check_image(parameter, image, what, subject)
    else:
        if memory._dtype.names is not None:
            from .._shaders.layout import check as check_layout

            check_layout(
                parameter.layout,
                memory._dtype,
                memory._count,
                lambda: f"{told(what)}: {told(subject)}",
                parameter.binding,
            )
        elif (
            memory._dtype.kind in "biu" and parameter.is_record and memory._manager._tensors is not None
        ):  # its numbers say nothing about what the shader sees
            memory._manager._tensors.declared(memory, parameter.layout)
        key = memory._dtype
        found = _difference(parameter, memory, what, subject, array is not None, lenient is not None)
    if found is None:
        return
    if lenient is None:
        raise found
    if (parameter.binding, key) not in lenient.warned:
        lenient.warned.add((parameter.binding, key))
        warn(str(found))


def _difference(
    parameter: Parameter, memory: Memory, what: Told, subject: Told, array: bool, lenient: bool
) -> KomputeError | None:
    """The error for a tensor with other numbers than the shader reads."""
    dtype, wanted = memory._dtype, parameter.dtype
    # Algorithms take rows of smaller numbers that make up whole integers.
    if (
        wanted is not None
        and parameter.contradicts(dtype)
        and not (lenient and parameter.packs(dtype, memory._shape))
    ):
        return ArgumentTypeError(
            f"{told(what)} is {parameter.type}, which holds {wanted}; {told(subject)} has {dtype}: "
            f"{difference(dtype, wanted)}. "
            f"{conversion(dtype, wanted, array)}"
        )
    raw = dtype.names is not None or (parameter.is_record and dtype.itemsize == 1)
    if (
        not raw
        and memory._count
        and (why := _unpadded(parameter, memory, subject) or _transposed(parameter, memory, subject))
    ):
        return InvalidArgumentError(f"{told(what)} is {parameter.type}{why}")
    if memory.nbytes < parameter.size:
        return InvalidArgumentError(
            f"{told(what)} ({parameter.type}) has {parameter.size} bytes in the shader; {told(subject)} has "
            f"{memory.nbytes}"
        )
    return None


def _unpadded(parameter: Parameter, memory: Memory, subject: Told) -> str:
    """Why elements without the shader's padding do not fit: std140 pads the elements of arrays to 16 bytes,
    and std430 a vec3 to the room
    of four. "" if they do."""
    stride = parameter.padded_stride
    rowed = len(memory._shape) > 1
    if not stride or (rowed and memory._shape[-1] * memory._dtype.itemsize == stride):
        return ""
    sole = parameter.layout["members"][0]
    rows = max(1, sole["rows"])
    # A flat array of vectors may have been laid out by hand; one of scalars is taken for what it looks like.
    if len(sole["array"]) != 1 or (rows > 1 and not (rowed and memory._shape[-1] == rows)):
        return ""
    numbers = "numbers" if rows == 1 else f"rows of {('two', 'three')[rows == 3]}"
    return (
        f", whose elements are {stride} bytes apart; {told(subject)} has {numbers} without padding. Make it "
        f"with dtype=kp.struct_dtype(kernel, {parameter.name!r}) or rows of "
        f"{stride // memory._dtype.itemsize}, or declare the block with "
        f"{'std430' if rows < 3 else 'scalar'} layout{'' if rows < 3 else ', or as an array of numbers'}"
    )


def _transposed(parameter: Parameter, memory: Memory, subject: Told) -> str:
    """Why an array with the rows and columns of the matrices has other bytes: a matrix has its columns one
    after the other in memory, or
    its lines are padded. "" if it has not. (A square one without padding is not told from its transpose.)"""
    members = parameter.layout["members"]
    sole = members[0] if len(members) == 1 and len(memory._shape) > 1 else None
    if sole is None or sole["columns"] <= 1 or sole["members"]:
        return ""
    lines, each = sole["columns"], sole["rows"]
    if sole["row_major"]:
        lines, each = each, lines
    room = sole["matrix_stride"] // memory._dtype.itemsize
    shape = memory._shape[-2:]
    if shape not in ((lines, each), (each, lines)) or shape == (lines, room):
        return ""
    order = "rows" if sole["row_major"] else "columns"
    padded = f", each padded to {room}" if room != each else ""
    return (
        f": in memory a matrix is its {lines} {order} of {each} numbers{padded}. The bytes of "
        f"{told(subject)} are not those. Give {(*memory._shape[:-2], lines, room)}, as np.zeros(n, "
        f"kp.struct_dtype(kernel, {parameter.name!r})) makes it"
    )


def _check_image(parameter: Parameter, image: Any, what: Told, subject: Told) -> None:
    """Raises if the shader declares an image of other dimensions, or of components of another kind."""
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
        f"{told(what)} is {parameter.type}{' (multisampled)' if declared['multisampled'] else ''}; "
        f"{told(subject)} with format {image._format.name} is {seen}: {mend}, or declare it as {seen}"
    )


def _format_difference(parameter: Parameter, image: Any, what: Told, subject: Told) -> KomputeError | None:
    """The error for a storage image of another format than the shader declares."""
    assert parameter.image is not None
    declared = parameter.image["format"]
    if parameter.kind != "storage image" or not declared or image._format.name == declared:
        return None
    return InvalidArgumentError(
        f"{told(what)} ({parameter.type}) is declared layout({declared}); {told(subject)} has the format "
        f"{image._format.name}: make it with "
        f"format={declared!r}, or leave the format out of the shader"
    )
