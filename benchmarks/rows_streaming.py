"""Streaming: frames of 8 MiB with three in flight, against the same frames one by one.

On lavapipe with one thread for shaders (LP_NUM_THREADS=1), so that the host's copies have a processor of
their own.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

import numpy as np

import kompute_py as kp

from .bench import Bench
from .figures import TIMES, Measured, figure

FRAME = 2 << 20  # float32s: 8 MiB
COUNT, QUICK_COUNT = 200, 24

SHADER = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Source { float source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { float target[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    target[i] = sqrt(source[i]) * 2.0 + 1.0;
}
"""


@figure(
    "stream", "200 frames of 8 MiB: three in flight", TIMES, "lavapipe", 1.0, 0.8, drivers=("lavapipe",),
    baseline="the same frames one by one"
)  # fmt: skip
def stream(bench: Bench) -> Measured:
    return _measured(bench, {})


@figure(
    "staged-stream", "the same, copied to and from the device's own memory", TIMES, drivers=("lavapipe",),
    baseline="the same frames one by one"
)  # fmt: skip
def staged_stream(bench: Bench) -> Measured:
    # The one queue copies and computes in turns: what overlaps is the host's part, a copy of each frame. That
    # is a tenth of the frame's time and about what three frames' traces in the caches cost, so that no figure
    # is asked for.
    return _measured(bench, {"KOMPUTE_PY_FORCE_STAGING": "1"})


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _measured(bench: Bench, options: dict[str, str]) -> Measured:
    # lavapipe reads its number of threads when its device is opened.
    with _environment({"LP_NUM_THREADS": "1", **options}):
        other = Bench(bench.driver, bench.quick)
        manager = other.manager
    count = QUICK_COUNT if bench.quick else COUNT
    frames = [np.full(FRAME, i, np.float32) for i in range(8)]
    source, target = manager.zeros(FRAME), manager.zeros(FRAME)
    sequence = (
        manager.sequence()
        .record(kp.OpSyncDevice([source]))
        .record(manager.kernel(SHADER).bind(source, target, grid=FRAME))
        .record(kp.OpSyncLocal([target]))
    )

    def items() -> Iterator[np.ndarray]:
        for i in range(count):
            yield frames[i % len(frames)]

    def one_by_one() -> Iterator[np.ndarray]:
        for item in items():
            source.data()[:] = item
            sequence.eval()
            yield target.data()

    def timed(results: Iterator[np.ndarray]) -> float:
        start = time.perf_counter()
        for i, result in enumerate(results):
            if abs(result[-1] - (np.sqrt(np.float32(i % len(frames))) * 2 + 1)) > 1e-4:
                raise AssertionError(f"frame {i} is wrong")
        return time.perf_counter() - start

    def ours(times: int) -> float:
        return sum(
            timed(iter(sequence.stream(items(), inputs=[source], outputs=[target], depth=3)))
            for _ in range(times)
        )

    def theirs(times: int) -> float:
        return sum(timed(one_by_one()) for _ in range(times))

    try:
        return bench.compare(ours, theirs, times=1, submits=True, scale=0.01)
    finally:
        other.close()
