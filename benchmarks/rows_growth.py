"""What must not grow with the size of a recording or with the number of sequences, tensors and threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

import kompute_py as kp

from .bench import Bench
from .figures import Measured, figure
from .timing import Sample

COPY = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer Source { float source[]; };
layout(binding = 1) writeonly buffer Target { float target[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < target.length()) target[i] = source[i];
}
"""
_ELEMENTS = 64
# Far more work than a block has to be: few blocks.
_SCALE = 0.05


def _tensor(mgr: kp.Manager) -> kp.Tensor:
    return mgr.tensor(np.zeros(_ELEMENTS, np.float32))


def _manager(**options: object) -> kp.Manager:
    return kp.Manager(validation=False, pipeline_cache_dir="", **options)  # type: ignore[arg-type]


@figure(
    "first-eval-20k", "first eval of each of 20,000 sequences on 2 queues that share a read-only tensor",
    "us", drivers=("null",), must=6, aim=4
)  # fmt: skip
def first_eval_of_many(bench: Bench) -> Measured:
    spirv = kp.compile(COPY)

    def run(times: int) -> float:
        mgr = _manager(family_queue_indices=[0, 0])
        try:
            shared = _tensor(mgr)
            algorithms = [mgr.algorithm([shared, _tensor(mgr)], spirv, (1, 1, 1)) for _ in range(times)]
            sequences = [
                mgr.sequence(i % 2).record(kp.OpAlgoDispatch(algorithm))
                for i, algorithm in enumerate(algorithms)
            ]
            start = time.perf_counter()
            for sequence in sequences:
                sequence.eval()
            return time.perf_counter() - start
        finally:
            mgr.destroy()

    return bench.compare(run, times=20_000, scale=_SCALE)


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
    drivers=("null",), must=10, aim=1
)  # fmt: skip
def build_without_the_lock(bench: Bench) -> Measured:
    algorithm = bench.algorithm
    operation = kp.OpAlgoDispatch(algorithm)
    pauses = []
    for _ in range(3 if bench.quick else 9):
        sequence = bench.manager.sequence()
        for _ in range(100_000):
            sequence.record(operation)
        pauses.append(_longest_pause(sequence.eval))
    return Measured(Sample(tuple(pauses)))


@figure(
    "eval-4-threads", "eval in 4 threads with their own sequences, for each", "us", drivers=("null",),
    baseline="one thread", must=0.5, aim=0.35
)  # fmt: skip
def eval_in_threads(bench: Bench) -> Measured:
    mgr, spirv = bench.manager, bench.spirv
    sequences = [
        mgr.sequence().record(
            kp.OpAlgoDispatch(mgr.algorithm([_tensor(mgr) for _ in range(3)], spirv, (1, 1, 1)))
        )
        for _ in range(4)
    ]
    for sequence in sequences:
        sequence.eval()

    def threads(count: int) -> Callable[[int], float]:
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

    return bench.compare(threads(4), threads(1), times=20_000, scale=0.2)
