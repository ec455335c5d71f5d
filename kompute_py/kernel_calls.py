"""What a Kernel keeps of its calls, and what it looks at to check one."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .algorithm import made_by
from .errors import ArgumentTypeError, InvalidArgumentError
from .memory import DEVICE, Memory
from .push_members import pack_struct
from .sampler import Bindable, SampledImage, Sampler
from .signature import Parameter
from .struct_layout import check as check_layout
from .struct_layout import tail_of

if TYPE_CHECKING:
    from .kernel import Kernel
    from .manager import Manager


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


def upload(memories: Iterable[Any]) -> None:
    """Uploads the host copies of those that were never on the device. What has no host copy yet needs none for that."""
    for memory in flat(memories):
        if not isinstance(memory, Memory) or memory._memory_type is not DEVICE or memory._native.on_device:
            continue
        # All of what a view is a part of: "on the device" is known of whole tensors only.
        while (base := getattr(memory, "base", None)) is not None:
            memory = base
        if not memory._native.host_copy_made:
            continue
        memory._native.write(memory.data())


def _check_rows_of_three(what: str, parameter: Parameter, memory: Memory) -> None:
    """A vec3 in an array takes the room of four by std140 and std430, which rows of three numbers do not have."""
    members = parameter.layout["members"]
    sole = members[0] if len(members) == 1 else None
    if sole is None or not sole["array"] or sole["rows"] != 3 or sole["columns"] > 1:
        return
    if sole["array_strides"][-1] > 3 * memory._dtype.itemsize:
        raise InvalidArgumentError(
            f"{what} is {parameter.type}, whose elements are {sole['array_strides'][-1]} bytes apart; {memory._describe()} has rows of "
            f"three without padding. Make it with dtype=kp.struct_dtype(kernel, {parameter.name!r}) or rows of four, or "
            "declare the block with scalar layout, or as an array of numbers"
        )


def pack_block(parameter: Parameter, value: Mapping[str, Any], what: str) -> np.ndarray[Any, Any]:
    """The bytes of a block from its members by name."""
    if parameter.written or tail_of(parameter.layout) is not None:
        why = "is written by the shader" if parameter.written else "ends with an array of run-time length"
        raise ArgumentTypeError(
            f"{what} {why}: give an array, np.zeros(..., kp.struct_dtype(kernel, {parameter.name!r})), not a dict"
        )
    packed = bytearray(parameter.layout["size"])
    pack_struct(packed, parameter.layout, 0, value, what)
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


def check_argument(kernel: str, manager: Manager, parameter: Parameter, memory: Any) -> None:
    """Raises what is wrong with `memory` as `parameter` of a kernel."""
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
        return
    if is_sampler:
        return
    dtype = memory._dtype
    raw = parameter.is_record and dtype.itemsize == 1
    if parameter.dtype is not None and dtype != parameter.dtype and dtype.names is None and not raw:
        raise ArgumentTypeError(
            f"{what} is {parameter.type}, which holds {parameter.dtype}; {memory._describe()} does not. Convert the "
            f"data with astype(np.{parameter.dtype}), or reinterpret its bytes: tensor.view(np.{parameter.dtype})"
        )
    if dtype.names is not None:
        check_layout(
            parameter.layout, dtype, memory._count, f"{what} ({memory._describe()})", parameter.binding
        )
    if dtype.names is None and memory._shape[-1:] == (3,) and len(memory._shape) > 1:
        _check_rows_of_three(what, parameter, memory)
    if memory.nbytes < parameter.size:
        raise InvalidArgumentError(
            f"{what} ({parameter.type}) has {parameter.size} bytes in the shader; {memory._describe()} has {memory.nbytes}"
        )
