"""Work beside other work, what must not grow with sizes and numbers, and starting up."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np

import kompute_py as kp

from .bench import Bench
from .figures import DRIVERS, NO_DRIVER, TIMES, Measured, figure
from .paths import ROOT, cache_directory
from .timing import Sample, Side, gather, side

_NULL = ("null",)
_HEAD = """#version 450
layout(local_size_x = 64) in;
"""

# --------------------------------------------------------------------------------- beside the host's own work

_EVALUATIONS = 20
_DEVICE_SECONDS = 5e-3
ROUNDS = """
layout(binding = 0) buffer Values { float values[]; };
layout(push_constant) uniform Parameters { uint rounds; };
void main() {
    float value = values[gl_GlobalInvocationID.x];
    for (uint i = 0; i < rounds; ++i) value = fma(value, 0.999, 0.5);
    values[gl_GlobalInvocationID.x] = value;
}
"""


@figure(
    "overlap", "20 x eval_async beside as much host work", TIMES, "lavapipe", 1.1, drivers=("lavapipe",),
    baseline="the longer of the two alone", one_thread=True
)  # fmt: skip
def overlap(bench: Bench) -> Measured:
    manager = bench.manager
    kernel = manager.kernel(_HEAD + ROUNDS)
    values = manager.tensor(np.ones(16384, np.float32))
    manager.sequence().eval(kp.OpSyncDevice([values]))

    def sequence_of(length: int) -> kp.Sequence:
        return manager.sequence().record(kernel.bind(values, rounds=length))

    length = 1000
    while (took := _least(sequence_of(length).eval, 3)) < _DEVICE_SECONDS / 2:
        length *= 2
    sequence = sequence_of(max(1, round(length * _DEVICE_SECONDS / took)))

    # In the processor's own caches: memory that both sides share is not what is measured.
    data = np.linspace(0.0, 1.0, 2048)
    out = np.empty_like(data)

    def sines(times: int) -> None:
        for _ in range(times):
            np.sin(data, out=out)

    calls = max(1, round(_DEVICE_SECONDS / (_least(lambda: sines(100), 5) / 100)))

    def both() -> None:
        sequence.eval_async()
        sines(calls)
        sequence.eval_await()

    ways = [side(work) for work in (sequence.eval, lambda: sines(calls), both)]
    ways[2](_EVALUATIONS)
    rounds = [[way(_EVALUATIONS) for way in ways] for _ in range(3 if bench.quick else 21)]
    longer = Sample(tuple(max(device, host) for device, host, _ in rounds))
    return Measured(Sample(tuple(both for _, _, both in rounds)), longer)


def _least(work: Callable[[], object], tries: int) -> float:
    return min(side(work)(1) for _ in range(tries))


FRAME = 2 << 20  # float32s: 8 MiB
COUNT, QUICK_COUNT = 200, 24
ROOTS = """
layout(binding = 0) readonly buffer Source { float source[]; };
layout(binding = 1) writeonly buffer Target { float target[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    target[i] = sqrt(source[i]) * 2.0 + 1.0;
}
"""


@figure(
    "stream", "200 frames of 8 MiB: three in flight", TIMES, "lavapipe", 1.0, 0.8, drivers=("lavapipe",),
    baseline="the same frames one by one", one_thread=True, times=1, submits=True, scale=0.01
)  # fmt: skip
def stream(bench: Bench, **options: bool) -> tuple[Side, Side]:
    manager = bench.own_manager(**options)
    count = QUICK_COUNT if bench.quick else COUNT
    frames = [np.full(FRAME, i, np.float32) for i in range(8)]
    source, target = manager.zeros(FRAME), manager.zeros(FRAME)
    sequence = manager.sequence().record(kp.OpSyncDevice([source]))
    sequence.record(manager.kernel(_HEAD + ROOTS).bind(source, target, grid=FRAME))
    sequence.record(kp.OpSyncLocal([target]))

    def items() -> Iterator[np.ndarray]:
        for i in range(count):
            yield frames[i % len(frames)]

    def one_by_one() -> Iterator[np.ndarray]:
        for item in items():
            source.data()[:] = item
            sequence.eval()
            yield target.data()

    def timed(results: Callable[[], Iterator[np.ndarray]]) -> Side:
        def work() -> None:
            for i, result in enumerate(results()):
                if abs(result[-1] - (np.sqrt(np.float32(i % len(frames))) * 2 + 1)) > 1e-4:
                    raise AssertionError(f"frame {i} is wrong")

        return side(work)

    streamed = timed(lambda: iter(sequence.stream(items(), inputs=[source], outputs=[target], depth=3)))
    return streamed, timed(one_by_one)


# The one queue copies and computes in turns: what overlaps is the host's part, a copy of each frame. That is
# a tenth of the frame's time and about what three frames' traces in the caches cost, so that no figure is
# asked for.
figure(
    "staged-stream", "the same, copied to and from the device's own memory", TIMES, drivers=("lavapipe",),
    baseline="the same frames one by one", one_thread=True, times=1, submits=True, scale=0.01
)(lambda bench: stream(bench, force_staging=True))  # fmt: skip


# ----------------------------------------------------------------------------------------- what must not grow


def _tensor(mgr: kp.Manager) -> kp.Tensor:
    return mgr.tensor(np.zeros(64, np.float32))


@figure(
    "first-eval-20k", "first eval of each of 20,000 sequences on 2 queues that share a read-only tensor",
    "us", drivers=_NULL, must=6, aim=4, times=20_000, scale=0.05
)  # fmt: skip
def first_eval_of_many(bench: Bench) -> Side:
    spirv = kp.compile(_HEAD + ROOTS)

    def run(times: int) -> float:
        with kp.Manager(validation=False, pipeline_cache_dir="", family_queue_indices=[0, 0]) as mgr:
            shared = _tensor(mgr)
            algorithms = [mgr.algorithm([shared, _tensor(mgr)], spirv, (1, 1, 1)) for _ in range(times)]
            sequences = [
                mgr.sequence(i % 2).record(kp.OpAlgoDispatch(each)) for i, each in enumerate(algorithms)
            ]
            start = time.perf_counter()
            for sequence in sequences:
                sequence.eval()
            return time.perf_counter() - start

    return run


def _longest_pause(work: Callable[[], object]) -> float:
    """The longest time for which another thread got no turn during `work`."""
    longest, stop = 0.0, threading.Event()

    def tick() -> None:
        nonlocal longest
        last = time.perf_counter()
        while not stop.is_set():
            time.sleep(0.0003)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        time.sleep(0.005)
        longest = 0.0
        work()
        time.sleep(0.002)
    finally:
        stop.set()
        thread.join()
    return longest


@figure(
    "build-100k-lock", "longest pause of another thread while 100,000 operations are built", "ms",
    drivers=_NULL, must=10, aim=1
)  # fmt: skip
def build_without_the_lock(bench: Bench) -> Measured:
    operation = kp.OpAlgoDispatch(bench.algorithm)
    pauses = []
    for _ in range(3 if bench.quick else 9):
        sequence = bench.manager.sequence()
        for _ in range(100_000):
            sequence.record(operation)
        pauses.append(_longest_pause(sequence.eval))
    return Measured(Sample(tuple(pauses)))


@figure(
    "eval-4-threads", "eval in 4 threads with their own sequences, for each", "us", drivers=_NULL,
    baseline="one thread", must=0.5, aim=0.35, times=20_000, scale=0.2
)  # fmt: skip
def eval_in_threads(bench: Bench) -> tuple[Side, Side]:
    mgr, sequences = bench.manager, []
    for _ in range(4):
        algorithm = mgr.algorithm([_tensor(mgr) for _ in range(3)], bench.spirv, (1, 1, 1))
        sequences.append(mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval())

    def threads(count: int) -> Side:
        def run(times: int) -> float:
            ready = threading.Barrier(count + 1)

            def work(sequence: kp.Sequence) -> None:
                evaluate = sequence.eval
                ready.wait()
                for _ in range(times // count):
                    evaluate()

            started = [threading.Thread(target=work, args=(sequence,)) for sequence in sequences[:count]]
            for thread in started:
                thread.start()
            ready.wait()
            start = time.perf_counter()
            for thread in started:
                thread.join()
            return time.perf_counter() - start

        return run

    return threads(4), threads(1)


# ------------------------------------------------------------------------------------------------ starting up


def fresh(what: str) -> tuple[float, bool]:
    """Seconds that benchmarks.fresh measured in an interpreter of its own, and whether it was interrupted."""
    # As after an installation: bytecode is on disk. A user's setting or a read-only source tree must not
    # decide that. The pipeline cache is part of what a Manager opens by default, but not the user's own one.
    environment = {
        **os.environ,
        "PYTHONPYCACHEPREFIX": str(cache_directory() / "bytecode"),
        "KOMPUTE_PY_PIPELINE_CACHE_DIR": str(cache_directory() / "pipelines"),
        "KOMPUTE_PY_VALIDATION": "0",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "benchmarks.fresh", what]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{what!r} in a fresh interpreter failed:\n{done.stderr.strip()}")
    seconds, interruptions = done.stdout.split()
    return float(seconds), interruptions != "0"


def _fresh(bench: Bench, *kinds: str, threaded: bool) -> Measured:
    for what in kinds:
        fresh(what)  # writes bytecode, warms the caches

    def measure_round(reverse: bool) -> tuple[list[float], bool]:
        measured = {what: fresh(what) for what in (reversed(kinds) if reverse else kinds)}
        return [measured[what][0] for what in kinds], any(taken for _, taken in measured.values())

    return Measured(*gather(bench.plan.scaled(0.15), measure_round, threaded=threaded))


@figure(
    "import", "import kompute_py, after NumPy", "ms", drivers=(NO_DRIVER,), baseline="import numpy",
    must=25, aim=15
)  # fmt: skip
def import_package(bench: Bench) -> Measured:
    return _fresh(bench, "import", "numpy", threaded=False)


@figure(
    "manager", "make a Manager in a fresh process", TIMES, "lavapipe", 1.3, 1.1, drivers=DRIVERS,
    baseline="instance and device in C"
)  # fmt: skip
def make_manager(bench: Bench) -> Measured:
    return _fresh(bench, "manager", "floor", threaded=bench.threaded)


@figure(
    "first-use", "import after NumPy, Manager, kernel compiled before, one call", "ms", "lavapipe", 120, 80,
    drivers=DRIVERS
)  # fmt: skip
def first_use(bench: Bench) -> Measured:
    return _fresh(bench, "first", threaded=bench.threaded)
