"""What a device's memory is used for: `mgr.memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .._base.arrays import as_index
from .._base.errors import InternalError, not_copyable
from .._base.text import binary_size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .. import _native
    from .._kernels.family import Specializations
    from .diagnostics import Diagnostics

__all__ = ["DeviceMemory", "MemoryHeap", "MemoryLabel", "PipelineUse"]


_Row = tuple[str, ...]


class MemoryHeap(NamedTuple):
    """One heap of the device; sizes are in bytes."""

    number: int
    """Vulkan's number of the heap."""
    size: int
    """All of it."""
    device_local: bool
    """Whether it is the device's own memory."""
    used: int
    """What tensors, images, host copies and the staging ring occupy."""
    reserved: int
    """What this Manager took from the driver: `used`, and the holes between and behind it."""
    peak: int
    """The most that `used` has been, since the start or `reset_peak()`."""
    budget: int | None
    """What this process may take, all Managers together, by the driver's estimate; None where it does not say."""
    imported: int
    """Memory of the process that the device addresses in place (`from_host`); not part of the others."""
    largest_free: int
    """The longest hole in the blocks: what still fits without asking the driver."""
    allocations: int
    """How many ranges are in use."""
    blocks: int
    """How many pieces were taken from the driver."""


class MemoryLabel(NamedTuple):
    """What the tensors or images of one name hold."""

    bytes: int
    """Of their contents, on the device and in host copies."""
    objects: int
    """How many there are."""


class PipelineUse(NamedTuple):
    """What a Manager has of shader modules and pipelines. Vulkan does not tell how many bytes a driver keeps for them."""

    modules: int
    """Shader modules; each algorithm and each kernel uses one."""
    module_bytes: int
    """Bytes of the modules' SPIR-V that the Manager keeps; a driver has copies of its own."""
    unused_modules: int
    """Those of `modules` that nothing uses any more: the most recent ones, up to the option `recent_pipelines`, and those of
    `unused_pipelines`."""
    unused_module_bytes: int
    """Bytes of the unused modules' SPIR-V."""
    pipelines: int
    """Compiled pipelines: one for each module, set of specialization constants, and length of its arrays of bindings."""
    unused_pipelines: int
    """Those of `pipelines` that nothing uses any more: the most recent ones, up to the option `recent_pipelines`."""
    layouts: int
    """Pipeline layouts; pipelines keep theirs."""
    set_layouts: int
    """Descriptor set layouts; pipeline layouts keep theirs."""
    descriptor_pools: int
    """Pools of 64 descriptor sets; one without a set is kept, others are given back."""
    samplers: int
    """Samplers of different settings that are in use."""


class DeviceMemory:
    """A Manager's view of its device's memory. Always current: it keeps no numbers of its own.

    ``print(mgr.memory)`` shows a table. Works until `mgr.destroy()`, and after it shows what arrays of `data()` keep alive.
    """

    __slots__ = ("_diagnostics", "_families", "_native")

    def __init__(
        self, native: _native.Context, diagnostics: Diagnostics, families: Iterable[Specializations]
    ) -> None:
        self._native = native
        self._diagnostics = diagnostics
        self._families = families

    @property
    def heaps(self) -> list[MemoryHeap]:
        """The device's heaps, in Vulkan's order."""
        return [MemoryHeap(**heap) for heap in self._native.memory_statistics()]

    @property
    def used(self) -> int:
        """Bytes in use, over all heaps."""
        return sum(heap.used for heap in self.heaps)

    @property
    def reserved(self) -> int:
        """Bytes taken from the driver, over all heaps: what `memory_limit` limits."""
        return sum(heap.reserved for heap in self.heaps)

    @property
    def peak(self) -> int:
        """The heaps' peaks added up; the heaps need not have had them at the same time."""
        return sum(heap.peak for heap in self.heaps)

    def labels(self) -> dict[str, MemoryLabel]:
        """Bytes and counts by the names of tensors and images, the largest first.

        Those without a name are under "(unnamed tensor)" and "(unnamed image)".
        """
        found: dict[str, MemoryLabel] = {}
        for name, kind, size in self._native.memory_holders():
            label = name or f"(unnamed {kind})"
            before = found.get(label, MemoryLabel(0, 0))
            found[label] = MemoryLabel(before.bytes + size, before.objects + 1)
        return dict(sorted(found.items(), key=lambda item: (-item[1].bytes, item[0])))

    def largest(self, n: int = 10) -> list[tuple[str, int]]:
        """(name, bytes) of the `n` tensors and images that hold most, the largest first."""
        count = as_index(n, "n")
        holders = [(name or f"(unnamed {kind})", size) for name, kind, size in self._native.memory_holders()]
        return sorted(holders, key=lambda holder: (-holder[1], holder[0]))[: max(0, count)]

    @property
    def pipelines(self) -> PipelineUse:
        """How many shader modules and pipelines there are, and how many of them nothing uses.

        Those in use are kept: by algorithms, kernels, and recordings that run. Of the others, the most recently used modules and pipelines
        are kept, up to the option `recent_pipelines` of each (default 128); `trim` drops them. All fields are 0 after `mgr.destroy()`.
        """
        return PipelineUse(**self._native.pipeline_counts())

    def trim(self) -> int:
        """Gives the memory that nothing uses back to the driver: empty blocks, the staging ring. Returns the bytes.

        Shader modules and pipelines that nothing uses go, too, with the kernels that `Kernel.specialize` keeps for them. Their bytes are
        unknown, and not counted.
        """
        for family in list(self._families):
            family.trim()
        return self._native.memory_trim()

    def reset_peak(self) -> None:
        """Lets `peak` begin again from what is used now."""
        self._native.memory_reset_peak()

    def check(self) -> None:
        """Looks at the guard bytes of ``Manager(memory_debug=True)``; without that option there are none.

        Raises InternalError, naming each tensor or image, where something wrote before or behind its memory. Each break is
        reported once: here, or in the log when the memory is released.
        """
        reports = self._native.memory_check()
        if reports:
            raise InternalError("; ".join(reports))

    def _rows(self) -> list[_Row]:
        head = ("heap", "kind", "size", "budget", "reserved", "used", "peak", "allocations", "largest free")
        rows: list[_Row] = [head]
        for heap in self.heaps:
            budget = "-" if heap.budget is None else binary_size(heap.budget)
            sizes = (binary_size(n) for n in (heap.reserved, heap.used, heap.peak))
            count = f"{heap.allocations} in {heap.blocks}"
            kind = "device" if heap.device_local else "host"
            free = binary_size(heap.largest_free)
            rows.append((str(heap.number), kind, binary_size(heap.size), budget, *sizes, count, free))
        return rows

    def _label_rows(self) -> list[_Row]:
        labels = list(self.labels().items())
        rows: list[_Row] = [("name", "bytes", "count")]
        rows += [(name, binary_size(label.bytes), str(label.objects)) for name, label in labels[:10]]
        if len(labels) > 10:
            rest = sum(label.bytes for _, label in labels[10:])
            count = sum(label.objects for _, label in labels[10:])
            rows.append((f"({len(labels) - 10} more names)", binary_size(rest), str(count)))
        return rows

    def _pipeline_rows(self) -> list[_Row]:
        use = self.pipelines
        modules = (str(use.modules), str(use.unused_modules), binary_size(use.module_bytes))
        return [
            ("kept", "count", "unused", "SPIR-V"),
            ("shader modules", *modules),
            ("pipelines", str(use.pipelines), str(use.unused_pipelines), "-"),
        ]

    def _tables(self) -> tuple[list[_Row], ...]:
        return self._rows(), self._label_rows(), self._pipeline_rows()

    def __str__(self) -> str:
        return "\n\n".join(_as_text(rows) for rows in self._tables())

    def __reduce_ex__(self, protocol: object) -> Any:
        """Copying and pickling are refused: ArgumentTypeError (a TypeError) that says what to do instead."""
        raise not_copyable(
            self, "keep str(mgr.memory), or the numbers of mgr.memory.heaps", "looks at a device"
        )

    def __repr__(self) -> str:
        return f"<kp.DeviceMemory: {binary_size(self.used)} used, {binary_size(self.reserved)} reserved>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        return "".join(_as_html(rows) for rows in self._tables())


def _as_text(rows: list[_Row]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _as_html(rows: list[_Row]) -> str:
    import html

    def line(cells: _Row, tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return f"<table>{line(rows[0], 'th')}{''.join(line(row, 'td') for row in rows[1:])}</table>"
