"""Host work beside evaluations, in an interpreter of its own: `python -m benchmarks.overlap ROUNDS`.

Prints a line a round: seconds of the evaluations alone, of the host work alone, and of both with
`eval_async`. The driver for the CPU is to run with one thread of its own (LP_NUM_THREADS=1), so that another
core is left for the host.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import kompute_py as kp

EVALUATIONS = 20
_DEVICE_SECONDS = 5e-3
SHADER = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Values { float values[]; };
layout(push_constant) uniform Parameters { uint rounds; };
void main() {
    float value = values[gl_GlobalInvocationID.x];
    for (uint i = 0; i < rounds; ++i) value = fma(value, 0.999, 0.5);
    values[gl_GlobalInvocationID.x] = value;
}
"""


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main(rounds: int) -> None:
    """Measures and prints."""
    manager = kp.Manager(validation=False)
    kernel = manager.kernel(SHADER)
    values = manager.tensor(np.ones(16384, np.float32))
    manager.sequence().eval(kp.OpSyncDevice([values]))

    def sequence_of(length: int) -> kp.Sequence:
        return manager.sequence().record(kernel.bind(values, rounds=length))

    length = 1000
    while (took := min(seconds(sequence_of(length).eval) for _ in range(3))) < _DEVICE_SECONDS / 2:
        length *= 2
    sequence = sequence_of(max(1, round(length * _DEVICE_SECONDS / took)))

    # In the processor's own caches: memory that both sides share is not what is measured.
    data = np.linspace(0.0, 1.0, 2048)
    out = np.empty_like(data)

    def sines(times: int) -> None:
        for _ in range(times):
            np.sin(data, out=out)

    per_call = min(seconds(lambda: sines(100)) for _ in range(5)) / 100
    calls = max(1, round(_DEVICE_SECONDS / per_call))

    def device() -> None:
        for _ in range(EVALUATIONS):
            sequence.eval()

    def host() -> None:
        for _ in range(EVALUATIONS):
            sines(calls)

    def both() -> None:
        for _ in range(EVALUATIONS):
            sequence.eval_async()
            sines(calls)
            sequence.eval_await()

    both()
    for _ in range(rounds):
        print(seconds(device), seconds(host), seconds(both), flush=True)
    manager.destroy()


if __name__ == "__main__":
    main(int(sys.argv[1]))
