"""A recording step by step, and how far its results on two drivers are apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from .._memory.image import Image
from .._recording.sequence import Sequence
from . import content as c
from .running import Loaded, OpProgram, Recorded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def traced(
    entry: Recorded, arguments: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, np.ndarray[Any, Any]]]]:
    """Runs an entry one step at a time: the name of each step, and the memory that it wrote, by name. The
    last one is "" with the results and the state.
    """
    form, given = entry.form((), arguments)
    loaded = entry.loaded
    for value, each in zip(form.inputs, given, strict=True):
        loaded.memory_of(value).write(each)
    dtypes = _dtypes(loaded, form.recording.steps)
    for step in form.recording.steps:
        operation = OpProgram(step.name, tuple(loaded.parts([step])))
        sequence = Sequence(loaded.manager).record(operation)
        written = {value.block for value in step.writes}
        if isinstance(sequence._native, _native.Stream):
            uses = {
                id(each["memory"]) for each in _native.frame_uses(sequence._native, [], []) if each["written"]
            }
            written |= {n for n in c.blocks_of((step,)) if id(loaded.block(n)._native) in uses}
        sequence.eval()
        yield (
            step.name,
            {loaded.name_of(n) or f"block {n}": _contents(loaded, dtypes, n) for n in sorted(written)},
        )
    state = [value for value in loaded.part.values if value.role == c.STATE and value.name]
    yield "", {value.name: loaded.memory_of(value).read() for value in (*form.outputs, *state)}


def _dtypes(loaded: Loaded, steps: Iterable[c.Step]) -> dict[int, Any]:
    """The types of blocks: that which the program gives one, else that of the first shader which has one."""
    found: dict[int, Any] = {}
    for step in (each for outer in steps for each in (outer, *outer.steps)):
        new = {
            each.range.block: (each.set, each.binding)
            for each in step.arguments
            if each.range is not None and each.range.block not in found
        }
        if step.shader is not None and new:
            parameters = loaded.module(step.shader).signature.parameters
            types = {(p.set, p.binding): p.dtype for p in parameters}
            found |= {block: types.get(place) for block, place in new.items()}
    return found | {number: c.dtype_of(value.dtype) for number, value in loaded.first.items()}


def _contents(loaded: Loaded, dtypes: Mapping[int, Any], block: int) -> np.ndarray[Any, Any]:
    """A block after a step."""
    memory = loaded.block(block)
    data: np.ndarray[Any, Any] = memory.read()
    dtype = None if isinstance(memory, Image) else dtypes.get(block)
    return data if dtype is None or data.nbytes % dtype.itemsize else data.view(dtype)


class Difference(NamedTuple):
    """The worst differences of two arrays."""

    elements: int
    """The number of elements that are not equal, bit by bit or as numbers."""
    absolute: float
    relative: float
    ulp: int
    """In steps between neighbouring floats; 0 for other dtypes."""

    def exceeds(self, rtol: float, atol: float) -> bool:
        """Whether both bounds are exceeded; without bounds, whether anything differs."""
        return self.elements > 0 and not (self.absolute <= atol or self.relative <= rtol)

    def __str__(self) -> str:
        if not self.elements:
            return "equal"
        ulp = f", {self.ulp} ulp" if self.ulp else ""
        return f"{self.elements} differ: at most {self.absolute:.3g}, relative {self.relative:.3g}{ulp}"


def difference(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> Difference:
    """How far two arrays of one shape and dtype are apart. NaNs are equal to each other, and zeros of both
    signs; of structs, the worst of their fields.
    """
    if one.dtype.names is not None:
        parts = [difference(one[name], other[name]) for name in one.dtype.names]
        return Difference(*map(max, zip(*parts, strict=True)))
    if one.dtype.kind == "c":
        one, other = (np.ascontiguousarray(each).view(f"f{each.itemsize // 2}") for each in (one, other))
    floats = one.dtype.kind not in "biu"
    differ = one != other
    if floats:
        differ &= ~((one != one) & (other != other))
    if not differ.any():
        return Difference(0, 0.0, 0.0, 0)
    a, b = one[differ], other[differ]
    with np.errstate(all="ignore"):
        if floats:
            absolute = np.abs(a.astype(np.float64) - b.astype(np.float64))
            absolute = np.nan_to_num(absolute, nan=np.inf, posinf=np.inf)
        else:  # float64 does not hold all of 64 bits
            low, high = (each.astype(np.uint64) for each in (np.minimum(a, b), np.maximum(a, b)))
            absolute = (high - low).astype(np.float64)
        scale = np.maximum(np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64)))
        relative = np.where(np.isfinite(absolute) & (scale > 0), absolute / scale, np.inf)
    ulp = int(_steps_apart(a, b).max()) if floats else 0
    return Difference(int(differ.sum()), float(absolute.max()), float(relative.max()), ulp)


def _steps_apart(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The steps between neighbouring floats from one to the other: bits in the order of the numbers count."""
    least = -(1 << (8 * a.itemsize - 1))
    one, other = (
        np.where(bits < 0, least - bits, bits)
        for bits in (np.ascontiguousarray(each).view(f"i{each.itemsize}").astype(np.int64) for each in (a, b))
    )
    with np.errstate(over="ignore"):
        return (np.maximum(one, other) - np.minimum(one, other)).view(np.uint64)
