"""The use of a device's memory: `mgr.memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .._base.arrays import as_index
from .._base.errors import InternalError, not_copyable
from .._base.text import binary_size
from .kept import keepers_of

if TYPE_CHECKING:
    from .. import _native
    from .diagnostics import Diagnostics
    from .kept import Keeping

__all__ = ["DeviceMemory", "MemoryHeap", "MemoryLabel", "PipelineUse"]


_Row = tuple[str, ...]


class MemoryHeap(NamedTuple):
    """One heap of the device; sizes are in bytes.

    >>> all(heap.used <= heap.reserved for heap in mgr.memory.heaps)
    True
    """

    number: int
    """Vulkan's index of the heap."""
    size: int
    """The size of the heap."""
    device_local: bool
    """True if it is the device's own memory."""
    used: int
    """The size of tensors, images, host copies and the staging ring."""
    reserved: int
    """The size that this Manager took from the driver: `used`, and the holes between and behind it."""
    peak: int
    """The largest value of `used` since the start or `reset_peak()`."""
    budget: int | None
    """The driver's estimate of the limit for this process, over all Managers; None if it gives none."""
    imported: int
    """Memory of the process that the device uses in place (`from_host`); not part of the other fields."""
    largest_free: int
    """The longest hole in the blocks: the largest size that still fits without asking the driver."""
    allocations: int
    """The number of ranges in use."""
    blocks: int
    """The number of blocks taken from the driver."""


class MemoryLabel(NamedTuple):
    """The memory of the tensors or images of one name.

    >>> t = mgr.zeros(1000)
    >>> t.name = "weights"
    >>> mgr.memory.labels()["weights"].objects
    1
    """

    bytes: int
    """The size of their contents, on the device and in host copies."""
    objects: int
    """The number of tensors or images."""


class PipelineUse(NamedTuple):
    """A Manager's shader modules and pipelines.

    Vulkan does not report how many bytes a driver keeps for them.

    >>> k = mgr.kernel("layout(local_size_x = 8) in; void main() {}")
    >>> mgr.memory.pipelines.modules
    1
    """

    modules: int
    """The number of shader modules; each algorithm and each kernel uses one."""
    module_bytes: int
    """Bytes of the modules' SPIR-V that the Manager keeps; a driver has its own copies."""
    unused_modules: int
    """The number of unused `modules`: the most recent ones, up to the option `recent_pipelines`, and those of
    `unused_pipelines`."""
    unused_module_bytes: int
    """Bytes of the unused modules' SPIR-V."""
    pipelines: int
    """Compiled pipelines: one for each module, set of specialization constants, and binding array length."""
    unused_pipelines: int
    """The number of unused `pipelines`: the most recent ones, up to the option `recent_pipelines`."""
    layouts: int
    """Pipeline layouts; pipelines keep their layouts."""
    set_layouts: int
    """Descriptor set layouts; pipeline layouts keep their set layouts."""
    descriptor_pools: int
    """Pools of 64 descriptor sets; one empty pool is kept, others are freed."""
    samplers: int
    """The number of samplers with different settings that are in use."""


for _public in (MemoryHeap, MemoryLabel, PipelineUse):
    _public.__module__ = "kompute_py"  # imported when first used


@not_copyable("keep str(mgr.memory), or the numbers of mgr.memory.heaps", "looks at a device")
class DeviceMemory:
    """A Manager's view of its device's memory. Always current: it stores no numbers itself.

    ``print(mgr.memory)`` shows a table. After `mgr.destroy()`, it shows the memory that arrays of `data()`
    keep alive.

    >>> t = mgr.zeros(1000)
    >>> t.name = "weights"
    >>> mgr.memory.largest(1)[0][0]
    'weights'
    """

    __module__ = "kompute_py"  # public; imported when first used

    __slots__ = ("_device", "_diagnostics", "_native")

    def __init__(self, device: Keeping, native: _native.Context, diagnostics: Diagnostics) -> None:
        self._device = device
        self._native = native
        self._diagnostics = diagnostics

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
        """Bytes taken from the driver, over all heaps. The option `memory_limit` limits this number."""
        return sum(heap.reserved for heap in self.heaps)

    @property
    def peak(self) -> int:
        """The sum of the heaps' peaks, which need not have occurred at the same time."""
        return sum(heap.peak for heap in self.heaps)

    @property
    def kept(self) -> int:
        """Bytes that calls keep for later ones: memory of operations and kernels that stands for arrays, with
        its host copies, tables, and scratch memory.

        They are at most 512 MiB, with the option `memory_limit` at most a quarter of it, and belong to at
        most 2,048 prepared calls of operations. They are given back before an allocation fails, and by
        `trim`.

        >>> mgr.memory.trim() >= 0, mgr.memory.kept
        (True, 0)
        """
        return sum(each.kept_bytes for each in keepers_of(self._device))

    def labels(self) -> dict[str, MemoryLabel]:
        """Bytes and counts by the names of tensors and images, the largest first.

        Tensors and images without a name are under "(unnamed tensor)" and "(unnamed image)".
        """
        found: dict[str, MemoryLabel] = {}
        for name, kind, size in self._native.memory_holders():
            label = name or f"(unnamed {kind})"
            before = found.get(label, MemoryLabel(0, 0))
            found[label] = MemoryLabel(before.bytes + size, before.objects + 1)
        return dict(sorted(found.items(), key=lambda item: (-item[1].bytes, item[0])))

    def largest(self, n: int = 10) -> list[tuple[str, int]]:
        """(name, bytes) of the `n` largest tensors and images, the largest first.

        Raises ArgumentTypeError if `n` is not an int.
        """
        count = as_index(n, "n")
        holders = [(name or f"(unnamed {kind})", size) for name, kind, size in self._native.memory_holders()]
        return sorted(holders, key=lambda holder: (-holder[1], holder[0]))[: max(0, count)]

    @property
    def pipelines(self) -> PipelineUse:
        """The numbers of shader modules and pipelines, and how many of them nothing uses.

        Algorithms, kernels and running recordings keep the ones that they use. Of the others, the most
        recently used modules and pipelines are kept, up to the option `recent_pipelines` of each (default
        128); `trim` drops them. All fields are 0 after `mgr.destroy()`.
        """
        return PipelineUse(**self._native.pipeline_counts())

    def trim(self) -> int:
        """Returns unused memory to the driver: empty blocks, the staging ring. Returns the number of bytes.

        Unused shader modules and pipelines are dropped too, with the kernels that `Kernel.specialize` keeps
        for them. Their size is unknown and not counted. So is memory that custom operations keep for later
        calls, and scratch memory that no recording uses.
        """
        for each in keepers_of(self._device):
            each.trim()
        return self._native.memory_trim()

    def reset_peak(self) -> None:
        """Restarts `peak` from the current use."""
        self._native.memory_reset_peak()

    def check(self) -> None:
        """Checks the guard bytes of ``Manager(memory_debug=True)``; without that option there are none.

        Raises InternalError, naming each tensor or image, if anything wrote before or behind its memory. Each
        break is reported once: here, or in the log when the memory is released.
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
            ("kept", "count", "unused", "bytes"),
            ("shader modules", *modules),
            ("pipelines", str(use.pipelines), str(use.unused_pipelines), "-"),
            ("for later calls", "-", "-", binary_size(self.kept)),
        ]

    def _tables(self) -> tuple[list[_Row], ...]:
        return self._rows(), self._label_rows(), self._pipeline_rows()

    def __str__(self) -> str:
        return "\n\n".join(_as_text(rows) for rows in self._tables())

    def __repr__(self) -> str:
        return f"<kp.DeviceMemory: {binary_size(self.used)} used, {binary_size(self.reserved)} reserved>"

    def _repr_html_(self) -> str:
        """For notebooks: shows a table."""
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
