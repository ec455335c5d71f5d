"""What a shader's optimized code tells: each access to an array or an image, its index, and its guards."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from .._base.errors import KomputeError

if TYPE_CHECKING:
    from .._base.arrays import Counts
    from .._memory.memory import Memory
    from .._memory.tensor import Tensor
    from .._shaders.constants import Specialization
    from .._shaders.module import ShaderModule
    from .._shaders.signature import Signature

_ANY = 0xFFFFFFFF
_DEEPEST = 8
"""Sums in sums: longer ones are not followed."""
_OF_TWO = frozenset(("add", "subtract", "multiply", "minimum", "maximum", "divide", "modulo"))
_NUMBERS = frozenset(("invocation", "group", "local"))

Guards = tuple[tuple[int, int], ...]


class Launch(NamedTuple):
    """How many invocations run, and what they get besides the bound memory."""

    extent: Counts | None
    """Invocations, not rounded up to whole groups; None if groups were given."""
    groups: Counts
    local_size: Counts
    push: bytes
    push_offset: int
    """Byte of the push-constant space at which `push` begins."""
    by_default: bool
    """Whether the caller gave neither grid nor groups."""
    indirect: Tensor | None = None
    """Where the device reads the groups. `groups` are (1, 1, 1) then."""
    members: Mapping[str, Any] = MappingProxyType({})
    """The push constants by name, as they were given."""
    uses: tuple[Memory, ...] = ()
    """The tensors whose addresses the caller says that the shader finds in memory."""
    references: tuple[Memory, ...] = ()
    """All tensors that the shader reaches by their addresses."""

    @property
    def run(self) -> Counts:
        """The invocations that run, with those that fill up the last groups."""
        x, y, z = (groups * size for groups, size in zip(self.groups, self.local_size, strict=True))
        return x, y, z

    @property
    def invocations(self) -> Counts:
        """The invocations that were asked for."""
        return self.run if self.extent is None else self.extent


class Access(NamedTuple):
    """An element of an array, or a texel of an image, that invocations use."""

    position: int
    """Of the parameter."""
    offset: int
    stride: int
    """Bytes from one element to the next; 0 for an image."""
    length: int
    """The declared number of elements; 0 if there is none."""
    indices: tuple[int, ...]
    """The numbers of the expressions: one, or one for each axis of an image, x first."""
    guards: Guards
    """Pairs of expressions: if the access happens, the first is less than the second."""
    written: bool
    certain: bool
    """Whether every invocation that passes the guards makes the access."""

    def lengths(self, bound: tuple[Any, ...]) -> tuple[int, ...] | None:
        """The argument's number of elements, or the texels of an image's axes, x first; of the longest of
        several arguments. None if the access is not followed.
        """
        memory = bound[self.position]
        if type(memory) is tuple:
            each = [self._replace(position=0).lengths((one,)) or () for one in memory]
            return tuple(map(max, zip(*each, strict=False))) or None
        if memory._is_image:
            return axes_of(memory)[::-1]
        if not self.stride:
            return None
        return (self.length or (memory.nbytes - self.offset) // self.stride,)

    def elements(self, bound: tuple[Any, ...]) -> int:
        """The argument's number of elements; 0 if the access is not followed."""
        lengths = self.lengths(bound)
        return 0 if lengths is None else math.prod(lengths)


def axes_of(image: Any) -> tuple[int, ...]:
    """The lengths of an image's axes, x last."""
    axes: tuple[int, ...] = getattr(image, "_image", image)._size.axes  # also of a sampled image
    return axes


class Code:
    """The accesses of a shader."""

    __slots__ = (
        "_axes",
        "_terms",
        "accesses",
        "expressions",
        "places",
        "push",
        "signature",
        "spirv",
        "stray",
    )

    def __init__(self, signature: Signature, module: ShaderModule, special: Specialization) -> None:
        self.signature = signature
        self.spirv = _optimized(module)
        self.expressions, found = _native.reach_spirv(self.spirv, module.entry, special.data, special.entries)
        """(term, value, a, b): see native/core/spirv/reach.hpp."""
        self._axes: list[frozenset[int]] = []  # by number of the expression, as `_terms`
        self._terms: list[frozenset[str]] = []
        for term, value, a, b in self.expressions:  # operands come first
            pair = term in _OF_TWO
            own = {value} if term in _NUMBERS else {0, 1, 2} if term == "derived" else ()
            self._axes.append(self._axes[a] | self._axes[b] if pair else frozenset(own))
            self._terms.append(self._terms[a] | self._terms[b] if pair else frozenset((term,)))
        self.places = {(p.set, p.binding): i for i, p in enumerate(signature.parameters)}
        self.accesses = [
            Access(self.places[group, binding], offset, stride, length, tuple(indices), tuple(guards), *how)
            for group, binding, offset, stride, length, indices, guards, *how in found
            if (group, binding) in self.places
        ]
        self.stray = any(each[0] == _ANY for each in found)
        """Whether it writes where it is not known, so perhaps to any argument."""
        self.push = sorted({value for term, value, _, _ in self.expressions if term == "push_constant"})
        """Offsets in the push-constant space of numbers that influence an index or guard."""

    @property
    def names(self) -> list[str]:
        """The names of the parameters, by position."""
        return [parameter.name for parameter in self.signature.parameters]

    def writes(self, position: int) -> list[Access]:
        """The writes of one parameter."""
        return [each for each in self.accesses if each.position == position and each.written]

    def axes(self, index: int) -> frozenset[int]:
        """The axes of the invocation's number that an expression is made of; all if that is not followed."""
        return self._axes[index]

    def has(self, index: int, wanted: str) -> bool:
        """Whether an expression has a term of this kind."""
        return wanted in self._terms[index]

    def counts_groups(self, position: int) -> bool:
        """Whether a parameter is written at the number of the workgroup."""
        return any(
            self.has(index, "group") and not self.has(index, "local") and not self.has(index, "invocation")
            for access in self.writes(position)
            for index in access.indices
        )

    def grows(self, index: int, depth: int = 0) -> bool:
        """Whether an expression is never less than the invocation's number, whatever the call's values."""
        term, _, a, b = self.expressions[index]
        if term not in ("add", "multiply") or depth > _DEEPEST:
            return term == "invocation"
        least = 0 if term == "add" else 1
        return any(
            self.grows(one, depth + 1) and self._counts(other, least, depth + 1)
            for one, other in ((a, b), (b, a))
        )

    def _counts(self, index: int, least: int, depth: int) -> bool:
        term, value, a, b = self.expressions[index]
        if term == "constant":
            return value >= least
        if term in ("add", "multiply"):
            return depth <= _DEEPEST and all(self._counts(each, least, depth + 1) for each in (a, b))
        return least == 0 and (
            term in ("invocation", "group", "local", "length") or (term == "unknown" and not b)
        )


def _optimized(module: ShaderModule) -> bytes:
    if module._declared:
        return module.to_spirv()  # it is optimized already
    try:
        made: bytes = _native.finish_spirv(module.to_spirv(), "", "performance", "vulkan1.3")[0]
    except KomputeError:
        return module.to_spirv()
    return made
