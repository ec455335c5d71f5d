"""The tables of docs/inside/advice.md, in its order. Each checks a result before it takes times."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

import kompute_py as kp

from ..table import duration
from . import sources
from .measuring import Measuring, Table, Way

Measure = Callable[[Measuring], Table]
TABLES: dict[str, Measure] = {}
"""By the name that marks the place in the page."""


def _table(name: str) -> Callable[[Measure], Measure]:
    def register(measure: Measure) -> Measure:
        TABLES[name] = measure
        return measure

    return register


def _equal(got: np.ndarray, wanted: np.ndarray, tolerance: float = 1e-4) -> None:
    if not np.allclose(got, wanted, rtol=tolerance):
        raise AssertionError("a kernel of the page gives wrong numbers")


def _checked(sequence: kp.Sequence, tensor: kp.Tensor, wanted: np.ndarray, tolerance: float = 1e-4) -> Way:
    """What evaluates the sequence, after the first of its results was looked at."""
    sequence.eval()
    _equal(tensor.read().reshape(wanted.shape), wanted, tolerance)
    return sequence.eval


def _recorded(mgr: kp.Manager, *operations: kp.OpBase) -> kp.Sequence:
    sequence = mgr.sequence()
    for operation in operations:
        sequence.record(operation)
    return sequence


@_table("small-kernels")
def small_kernels(measuring: Measuring) -> Table:
    mgr = kp.Manager()
    scale = mgr.kernel(sources.SCALE)
    array, tensor = np.ones(1024, np.float32), mgr.tensor(np.ones(1024))
    one = _recorded(mgr, scale.bind(tensor, factor=1.0))
    hundred = _recorded(mgr, *[scale.bind(tensor, factor=1.0)] * 100)
    _equal(scale(array, factor=3.0), np.full(1024, 3.0))
    array[:] = 1

    def repeated(work: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(100):
                work()

        return run

    def new_sequence() -> None:
        _recorded(mgr, *(scale.bind(tensor, factor=1.0) for _ in range(100))).eval()

    return measuring.table(
        "way",
        {
            "100 calls with a NumPy array, `scale(array)`": repeated(lambda: scale(array, factor=1.0)),
            "a new sequence of 100 dispatches each time": new_sequence,
            "100 calls with a tensor, `scale(t)`": repeated(lambda: scale(tensor, factor=1.0)),
            "100 evaluations of a recording of one dispatch": repeated(one.eval),
            "one evaluation of a recording of 100 dispatches": hundred.eval,
        },
    )


@_table("submissions")
def submissions(measuring: Measuring) -> Table:
    mgr = kp.Manager()
    scale, by_tensor = mgr.kernel(sources.SCALE), mgr.kernel(sources.SCALE_BY_TENSOR)
    tensor, factor = mgr.tensor(np.ones(1024)), mgr.tensor([1.0])
    ten = [_recorded(mgr, scale.bind(tensor, factor=1.0)) for _ in range(10)]
    recorded = mgr.sequence()
    fixed = _recorded(mgr, by_tensor.bind(tensor, factor))
    number, numbers = np.array([2.0], np.float32), itertools.count(1)

    def again() -> None:
        recorded.clear()
        recorded.record(scale.bind(tensor, factor=1.0 + next(numbers) * 1e-6)).eval()

    def one_by_one() -> None:
        for each in ten:
            each.eval()

    def written() -> None:
        factor.write(number)
        fixed.eval()

    written()
    _equal(tensor.read(), np.full(1024, 2.0))
    tensor.fill(0.0)
    return measuring.table(
        "way",
        {
            "10 sequences, one after the other": one_by_one,
            "10 sequences by `mgr.submit(sequences).wait()`": lambda: mgr.submit(ten).wait(),
            "record a dispatch with another push constant, eval": again,
            "write a tensor of one number that the recording reads, eval": written,
        },
    )


@_table("sizes")
def sizes(measuring: Measuring) -> Table:
    mgr = kp.Manager()
    scale, counts = mgr.kernel(sources.SCALE), (100, 1_000, 10_000, 100_000, 1_000_000)
    ways = {}
    for count in counts:
        tensor = mgr.tensor(np.ones(count))
        sequence = _recorded(mgr, scale.bind(tensor, factor=3.0))
        ways[f"{count:,}"] = _checked(sequence, tensor, np.full(count, 3.0))
        tensor.fill(0.0)
    best = measuring.least(ways)
    times = [best[name] for name in ways]
    return Table(
        ("numbers in a dispatch", *ways),
        (
            ("processor time", *map(duration, times)),
            ("for 1,000 numbers", *(duration(s / n * 1000) for s, n in zip(times, counts, strict=True))),
        ),
    )


@_table("transfers")
def transfers(measuring: Measuring) -> Table:
    mgr = kp.Manager()
    copy = mgr.kernel(sources.COPY)
    x = np.arange(1 << 20, dtype=np.float32)
    y = np.zeros_like(x)
    a, b = mgr.tensor(x), mgr.tensor(y)

    def with_tensors() -> None:
        a.write(x)
        copy(a, b)
        b.read(out=y)

    with_tensors()
    _equal(y, x)
    return measuring.table(
        "way",
        {
            "NumPy arrays as both arguments": lambda: copy(x, y),
            "`a.write(x)`, the call with tensors, `b.read(out=y)`": with_tensors,
            "tensors": lambda: copy(a, b),
        },
    )


@_table("reading")
def reading(measuring: Measuring) -> Table:
    mgr = kp.Manager()
    x = np.random.default_rng(1).random(4 << 20, np.float32)
    t, out = mgr.tensor(x), np.zeros_like(x)
    half = mgr.tensor_t(x.astype(np.float16))
    out_half = np.zeros(x.size, np.float16)
    partial, total = mgr.zeros(x.size // 4096), mgr.zeros(1)
    add = mgr.kernel(sources.SUM)
    sums = _recorded(
        mgr,
        add.bind(t, partial, count=x.size, groups=partial.size()),
        add.bind(partial, total, count=partial.size(), groups=1),
    )

    def on_device() -> float:
        sums.eval()
        return float(total.read()[0])

    _equal(np.array([on_device()]), np.array([x.sum(dtype=np.float64)]))
    return measuring.table(
        "what",
        {
            "`t.read()`": t.read,
            "`t.read(out=array)`": lambda: t.read(out=out),
            "the same as float16": lambda: half.read(out=out_half),
            "`t[10:20].read()`": lambda: t[10:20].read(),
            "`t.read(out=array)` and `array.sum()`": lambda: t.read(out=out).sum(),
            "the sum by a kernel, and one number read": on_device,
        },
    )


@_table("memory-types")
def memory_types(measuring: Measuring) -> Table:
    mgr = kp.Manager()
    ways = {}
    for kind in ("device", "deviceAndHost"):
        tensor = mgr.tensor(np.ones(1 << 20), kind)
        work = mgr.kernel(sources.SCALE).bind(tensor, factor=3.0)
        sequence = _recorded(mgr, kp.OpSyncDevice([tensor]), work, kp.OpSyncLocal([tensor]))

        def run(tensor: kp.Tensor = tensor, sequence: kp.Sequence = sequence) -> None:
            tensor.data()[:] = 2.0
            sequence.eval()

        run()
        _equal(tensor.data(), np.full(1 << 20, 6.0))
        ways[f"`{kind}`"] = run
    return measuring.table("memory type", ways)


@_table("workgroup-size")
def workgroup_size(measuring: Measuring) -> Table:
    mgr = kp.Manager()
    numbers, sized = mgr.zeros(1 << 20), mgr.kernel(sources.SIZED)
    local_sizes = ("1", "8", "32", "64", "128", "256", "1024")
    ways = {}
    for size in local_sizes:
        numbers.fill(2.0)
        sequence = _recorded(mgr, sized.specialize(SIZE=int(size)).bind(numbers))
        ways[size] = _checked(sequence, numbers, np.full(1 << 20, 4.0))
    best = measuring.least(ways)
    times = [duration(best[size]) for size in local_sizes]
    return Table(("`local_size_x`", *local_sizes), (("processor time", *times),))


@_table("order")
def order(measuring: Measuring) -> Table:
    mgr = kp.Manager()
    source = np.arange(1 << 20, dtype=np.float32).reshape(1024, 1024)
    a, b = mgr.tensor(source), mgr.zeros((1024, 1024))
    ways = {}
    for name, index, wanted in (
        ("rows: `b[y * 1024 + x] = a[y * 1024 + x]`", "y * 1024 + x", source),
        ("columns: `b[y * 1024 + x] = a[x * 1024 + y]`", "x * 1024 + y", source.T),
    ):
        kernel = mgr.kernel(sources.ORDER.replace("INDEX", index))
        ways[name] = _checked(_recorded(mgr, kernel.bind(a, b, grid=(1024, 1024))), b, wanted)
    return measuring.table("neighbouring invocations read", ways)


@_table("structs")
def structs(measuring: Measuring) -> Table:
    mgr = kp.Manager()
    count = 1 << 18
    particles, field = mgr.zeros((count, 8)), mgr.zeros(count)
    ways = {}
    for name, kernel, tensor in (
        ("one field of an array of structs of 32 B", mgr.kernel(sources.STRUCTS), particles),
        ("an array for this field", mgr.kernel(sources.FIELD), field),
    ):
        weights = tensor[..., 0] if tensor is particles else tensor
        ways[name] = _checked(_recorded(mgr, kernel.bind(tensor, grid=count)), weights, np.ones(count))
    return measuring.table("262,144 invocations change", ways)


@_table("barriers")
def barriers(measuring: Measuring) -> Table:
    mgr = kp.Manager()
    ways = {}
    for name, store, load in (
        ("arithmetic only", "", "value"),
        ("and `barrier()`", "barrier();", "value"),
        ("and storing to and loading from shared memory", "part[l] = value;", "part[l]"),
        (
            "and storing to shared memory, `barrier()`, loading, `barrier()`",
            "part[l] = value; barrier();",
            "part[l ^ 1]; barrier()",
        ),
    ):
        numbers = mgr.zeros(1 << 18)
        kernel = mgr.kernel(sources.STEPS.replace("STORE", store).replace("LOAD", load))
        ways[name] = _checked(_recorded(mgr, kernel.bind(numbers)), numbers, np.full(1 << 18, 2 - 2.0**-15))
    return measuring.table("a step", ways)


@_table("matrix-products")
def matrix_products(measuring: Measuring) -> Table:
    mgr = kp.Manager()
    n = 256
    x, y = np.random.default_rng(1).random((2, n, n), np.float32)
    a, b, c = mgr.tensor(x), mgr.tensor(y), mgr.zeros((n, n))
    ways: dict[str, Callable[[], object]] = {}
    for name, source, grid in (
        ("one element for each invocation", sources.PRODUCT, (n, n)),
        ("16 x 16 tiles in shared memory, two barriers for each tile", sources.TILED, (n, n)),
        ("4 x 4 elements for each invocation, no shared memory", sources.BLOCKS, (n // 4, n // 4)),
    ):
        c.fill(0)
        sequence = _recorded(mgr, mgr.kernel(source).bind(a=a, b=b, c=c, n=n, grid=grid))
        ways[name] = _checked(sequence, c, x @ y, 1e-3)
    ways["NumPy on the processor, `a @ b`"] = lambda: x @ y
    best = measuring.least(ways)
    rows = tuple((name, duration(s), f"{2 * n**3 / s / 1e9:.1f}") for name, s in best.items())
    return Table(("kernel", "processor time", "GFLOP for each second of a processor"), rows)


@_table("batches")
def batches(measuring: Measuring) -> Table:
    mgr = kp.Manager()
    items = mgr.tensor(np.ones((100, 1024)))
    scale = mgr.kernel(sources.SCALE)
    whole = _recorded(mgr, scale.bind(items, factor=1.0))
    each = _recorded(mgr, *(scale.bind(items[number], factor=1.0) for number in range(100)))
    _recorded(mgr, *(scale.bind(items[number], factor=2.0) for number in range(100))).eval()
    _equal(items.read(), np.full((100, 1024), 2.0))
    return measuring.table(
        "100 items of 1,024 numbers",
        {"a recording of a dispatch for each item": each.eval, "a recording of one dispatch": whole.eval},
    )


@_table("compiling")
def compiling(measuring: Measuring) -> Table:
    mgr = kp.Manager(pipeline_cache_dir="")
    tensor = mgr.tensor(np.ones(1024))
    scale, sized = mgr.kernel(sources.SCALE), mgr.kernel(sources.SIZED)
    local_sizes = itertools.cycle(range(1, 500))

    def specialized() -> None:
        sized.specialize(SIZE=next(local_sizes))(tensor)

    factors = itertools.count(1)
    return measuring.table(
        "a call with a tensor of 1,024 numbers",
        {
            "`scale(t)`, made before the loop": lambda: scale(tensor, factor=1.0),
            "`scale(t, factor=...)`, another value each time": lambda: scale(
                tensor, factor=1.0 + next(factors) * 1e-9
            ),
            "`mgr.kernel(source)(t)`": lambda: mgr.kernel(sources.SCALE)(tensor, factor=1.0),
            "`kernel.specialize(SIZE=...)(t)`, another value each time": specialized,
        },
    )


@_table("safety")
def safety(measuring: Measuring) -> Table:
    n = 256
    x, y = np.random.default_rng(1).random((2, n, n), np.float32)
    made: dict[str, dict[str, Callable[[], object]]] = {}
    keep = []
    for name, options in (("off", {"robust_access": False}), ("on", {"robust_access": True})):
        mgr = kp.Manager(**options)
        keep.append(mgr)
        a, b, c = mgr.tensor(x), mgr.tensor(y), mgr.zeros((n, n))
        for title, source, grid in (
            ("product of 256 x 256 matrices, tiles in shared memory", sources.TILED, (n, n)),
            ("product of 256 x 256 matrices, 4 x 4 elements each", sources.BLOCKS, (n // 4, n // 4)),
        ):
            sequence = _recorded(mgr, mgr.kernel(source).bind(a=a, b=b, c=c, n=n, grid=grid))
            made.setdefault(f"`robust_access=True`: {title}", {})[name] = sequence.eval
        counted, bins = mgr.tensor_t(np.arange(1 << 22, dtype=np.uint32)), mgr.zeros(256, np.uint32)
        histogram = mgr.kernel(sources.HISTOGRAM).bind(counted, bins, groups=1 << 10)
        title = "histogram of 4 Mi numbers, atomics at `s[a[i]]` in shared memory"
        way = _checked(_recorded(mgr, histogram), bins, np.full(256, 1 << 14))
        made.setdefault(f"`robust_access=True`: {title}", {})[name] = way
    for name, validation in (("off", False), ("on", True)):
        mgr = kp.Manager(validation=validation)
        keep.append(mgr)
        t = mgr.tensor(np.ones(1024))
        once = _recorded(mgr, mgr.kernel(sources.SCALE).bind(t, factor=1.0))
        made.setdefault("`validation=True`: an evaluation of one dispatch", {})[name] = once.eval
    mgr = kp.Manager()
    keep.append(mgr)
    t = mgr.tensor(np.ones(1024))
    for name, timestamps in (("off", False), ("on", True)):
        sequence = mgr.sequence(timestamps=True) if timestamps else mgr.sequence()
        for _ in range(100):
            sequence.record(mgr.kernel(sources.SCALE).bind(t, factor=1.0))
        made.setdefault("`timestamps=True`: an evaluation of 100 dispatches", {})[name] = sequence.eval
    rows = []
    for title, ways in made.items():
        best = measuring.least(ways)
        rows.append((title, duration(best["off"]), duration(best["on"])))
    return Table(("option: work", "without", "with"), tuple(rows))
