"""The parts of a shader: the mix of its instructions, and the memory that a workgroup needs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from .._base.text import binary_size
from .._compilers.spirv_words import EXTENDED, Module

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .constants import Specialization

# Ranges of SPIR-V's opcodes. Labels, merges, declarations and debug information are left out: they are not
# executed.
_KINDS = (
    ("loads and stores", (61, 62, 63, 64)),
    ("addresses", (60, 65, 66, 67, 68, 70)),
    ("arithmetic", (84, *range(126, 153), 4450)),
    ("functions", (EXTENDED,)),
    ("conversions", tuple(range(109, 125))),
    ("comparisons and choices", tuple(range(154, 192))),
    ("bits", tuple(range(194, 206))),
    ("parts of vectors", tuple(range(77, 84))),
    ("images", tuple(range(86, 108))),
    ("atomics", (*range(227, 243), 5614, 5615, 6035)),
    ("barriers", (224, 225)),
    ("subgroups", (*range(333, 367), 4421, 4422, 4428, 4429, 4430, 4432)),
    ("loops", (246,)),
    ("branches", (57, 249, 250, 251)),
)
_KIND_OF = {opcode: kind for kind, opcodes in _KINDS for opcode in opcodes}
_UNCOUNTED = {0, 8, 54, 55, 56, 59, 245, 247, 248, 252, 253, 254, 255, 317}
_IMPORT = 11


class PipelineExecutable(NamedTuple):
    """A driver's words about the code that it has made: one of `ShaderStatistics.executables`."""

    name: str
    """The driver's name for it."""
    description: str
    """More of it in words."""
    subgroup_size: int | None
    """Invocations of a subgroup; None if the driver does not tell."""
    statistics: dict[str, bool | int | float]
    """Numbers by the driver's names, such as registers, spilled ones, occupancy and bytes of code."""
    representations: dict[str, str]
    """Texts by the driver's names: its intermediate code, and its assembly."""


class ShaderStatistics(NamedTuple):
    """The parts of a shader, and the driver's words about its code: the result of `Kernel.statistics`. Its
    text is a table.

    >>> k = mgr.kernel("layout(local_size_x = 8) in; shared float s[8]; void main() { s[0] = 1; barrier(); }")
    >>> found = k.statistics()
    >>> found.instructions["barriers"], found.local_size
    (1, (8, 1, 1))
    """

    instructions: dict[str, int]
    """The number of SPIR-V instructions of each kind, the most first: how often they stand in the module, not
    how often they run. The body of a loop counts once."""
    spirv_bytes: int
    """The size of the module."""
    local_size: tuple[int, int, int]
    """Invocations of a workgroup in x, y, z."""
    shared_bytes: int
    """The memory that the invocations of a workgroup share. The more it is, the fewer workgroups run on a
    multiprocessor at once."""
    push_bytes: int
    """The size of the push constants."""
    bindings: int
    """The number of buffers and images."""
    executables: tuple[PipelineExecutable, ...] = ()
    """The driver's words about it; empty if the device lacks VK_KHR_pipeline_executable_properties."""

    def __str__(self) -> str:
        x, y, z = self.local_size
        total = sum(self.instructions.values())
        lines = [
            f"local size    {x} x {y} x {z}",
            f"shared        {binary_size(self.shared_bytes)}",
            f"push          {self.push_bytes} bytes",
            f"bindings      {self.bindings}",
            f"SPIR-V        {binary_size(self.spirv_bytes)}, {total:,} instructions",
        ]
        lines += [f"  {count:7,} {kind}" for kind, count in self.instructions.items()]
        for each in self.executables:
            lines.append(f"{each.name}: {each.description}" if each.description else each.name)
            lines += [f"  {name}: {number}" for name, number in each.statistics.items()]
        return "\n".join(lines)


for _public in (PipelineExecutable, ShaderStatistics):
    _public.__module__ = "kompute_py"  # imported when first used


def statistics_of(
    spirv: bytes, entry: str, special: Specialization, executables: Iterable[tuple[Any, ...]]
) -> ShaderStatistics:
    """The statistics of a module, with its sizes as these constants make them. `executables` are those of
    `Context.pipeline_executables`.
    """
    reflected = _native.reflect_spirv(spirv, entry, special.data, special.entries)
    push = reflected["push_constants"]
    return ShaderStatistics(
        _mix(spirv),
        len(spirv),
        reflected["local_size"],
        reflected["shared_bytes"],
        0 if push is None else push["size"],
        len(reflected["bindings"]),
        tuple(
            PipelineExecutable(name, description, size or None, dict(numbers), dict(texts))
            for name, description, size, numbers, texts in executables
        ),
    )


def _mix(spirv: bytes) -> dict[str, int]:
    module = Module(spirv)
    words = module.words
    # Debug information can be instructions of an imported set; only GLSL's is executed.
    debug = {
        words[at + 1]
        for opcode, at, length in module.head
        if opcode == _IMPORT and not module.text(at + 2, at + length).startswith("GLSL.std")
    }
    found: Counter[str] = Counter()
    for opcode, at, _ in module.body:
        if opcode in _UNCOUNTED or (opcode == EXTENDED and words[at + 3] in debug):
            continue
        found[_KIND_OF.get(opcode, "others")] += 1
    return dict(found.most_common())
