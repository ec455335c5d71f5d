"""What is done again and again.

A phase is a function of (Manager, folder, turns) that gives the function of one turn.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import kompute_py as kp
from kompute_py._device import kept

Turn = Callable[[int], None]

SCALE = """#version 450
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint N = 1;
layout(set = 0, binding = 0) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1) buffer Y { uint y[]; };
layout(push_constant) uniform P { uint more; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = x[i] * N + more; }
"""


def evals(mgr: kp.Manager, folder: Path, turns: int) -> Turn:
    """Evaluations of one recording, of a kernel with changing numbers, and recordings made anew."""
    x, y = mgr.tensor_t(np.arange(64, dtype=np.uint32)), mgr.zeros(64, np.uint32)
    kernel = mgr.kernel(SCALE)
    operation = kernel.bind(x, y, more=1)
    sequence = mgr.sequence().record(kp.OpSyncDevice([x]), operation, kp.OpSyncLocal([y]))

    def turn(n: int) -> None:
        sequence.eval()
        if n % 10 == 0:
            kernel(x, y, more=n & 0xFFFF)
        if n % 100 == 0:
            operation.set(more=n & 0xFFFF)
        if n % 1000 == 0:
            mgr.sequence(total_timestamps=4).record(operation).eval_async().eval_await()
            kernel.submit(x, y, more=3).wait()

    return turn


def specializations(mgr: kp.Manager, folder: Path, turns: int) -> Turn:
    """Kernels and algorithms of one module with ever other constants, dropped after one use."""
    x, y = mgr.tensor_t(np.arange(64, dtype=np.uint32)), mgr.zeros(64, np.uint32)
    kernel = mgr.kernel(SCALE)
    spirv = kernel.to_spirv()

    def turn(n: int) -> None:
        if n % 2:
            kernel.specialize(N=n)(x, y, more=0)
            return
        algorithm = mgr.algorithm([x, y], spirv, (1, 1, 1), [n], [0])
        mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()

    return turn


def modules(mgr: kp.Manager, folder: Path, turns: int) -> Turn:
    """Ever other sources, compiled, used once as a kernel or an algorithm, and dropped."""
    x, y = mgr.tensor_t(np.arange(64, dtype=np.uint32)), mgr.zeros(64, np.uint32)

    def turn(n: int) -> None:
        source = SCALE.replace("* N", f"* N + {n}u")
        if n % 2:
            mgr.kernel(source)(x, y, more=0)
            return
        algorithm = mgr.algorithm([x, y], kp.compile(source), (1, 1, 1), [], [0])
        mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()

    return turn


def reloads(mgr: kp.Manager, folder: Path, turns: int) -> Turn:
    """Edits of a watched shader, in use by a call, a specialization and a recording."""
    x, y = mgr.tensor_t(np.arange(64, dtype=np.uint32)), mgr.zeros(64, np.uint32)
    path = folder / "watched.comp"
    path.write_text(SCALE)
    kernel = mgr.kernel(path, watch=True)
    special = kernel.specialize(N=3)
    sequence = mgr.sequence().record(kernel.bind(x, y, more=1))

    def turn(n: int) -> None:
        # Beside it and renamed over it, so that no half of it is read.
        fresh = folder / "fresh.comp"
        fresh.write_text(SCALE.replace("* N", f"* N + {n}u"))
        os.replace(fresh, path)
        sequence.eval()
        kernel(x, y, more=2)
        special(x, y, more=2)

    return turn


def tensors(mgr: kp.Manager, folder: Path, turns: int) -> Turn:
    """Tensors, views, images and samplers of many sizes and memory types, up to a thousand of them alive at a
    time.
    """
    kinds = ["device", "host", "storage", "deviceAndHost"]
    alive: list[object] = [None] * min(1000, turns // 40 + 1)

    def turn(n: int) -> None:
        size = 1 + (n * 7919) % 4096
        made: object
        if n % 50 == 0:
            modes = ["repeat", "clamp_to_edge", "mirrored_repeat"]
            made = mgr.image(np.full((8, 1 + n % 8), n, np.float32)).sampled("linear", modes[n % 3])
        elif n % 3 == 0:
            made = mgr.tensor(np.full(size, n, np.float32), kinds[n // 3 % 4])
        else:
            made = mgr.zeros(size, np.float32)[: size // 2 + 1]
        alive[n % len(alive)] = made

    return turn


def shapes(mgr: kp.Manager, folder: Path, turns: int) -> Turn:
    """Operations and a kernel on arrays and tensors, of another shape in each turn."""
    kernel = mgr.kernel(SCALE.replace("uint x[]", "float x[]").replace("uint y[]", "float y[]"))

    def turn(n: int) -> None:
        number = n * 7919 % 32768  # each shape once, small and large ones mixed
        shape = [1 + (number >> bits) % 8 for bits in range(0, 15, 3)]
        x = np.full(shape, n % 7, np.float32)
        if n % 3 == 0:
            kernel(x.reshape(-1), more=0)
        else:
            kp.ops.square(x if n % 3 == 1 else mgr.tensor(x))

    # As much as is kept by intention, and less of it in a part of the whole.
    kept.MOST_CALLS = min(kept.MOST_CALLS, max(32, turns // 15))
    # Until so many calls are prepared, and buffers of all sizes are there.
    for n in range(max(4000, 2 * kept.MOST_CALLS)):
        turn(turns + n)
    return turn


def limited(mgr: kp.Manager, folder: Path, turns: int) -> Turn:
    """Operations on arrays and tensors of random sizes, of which a few of the largest fill the memory."""
    own = kp.Manager(memory_limit="80 MiB", pipeline_cache_dir=str(folder)).__enter__()
    rng = np.random.default_rng(turns)
    computes = "null" not in own.get_device_properties()["device_name"].lower()

    def turn(n: int) -> None:
        x = np.full(int(2 ** rng.uniform(4, 21)), n % 5, np.float32)
        call = (kp.ops.square, lambda x: kp.ops.add(x, 1), kp.ops.cumsum, kp.ops.negative)[n % 4]
        found = call(own.tensor(x) if n % 3 == 0 else x)
        last = np.asarray(found)[-1]
        right = (n % 5) ** 2, n % 5 + 1, (n % 5) * x.size, -(n % 5)
        assert not computes or abs(last - right[n % 4]) <= 1e-3 * abs(right[n % 4]), (n, x.size, last)
        assert own.memory.reserved <= 80 << 20

    return turn


class Phase(NamedTuple):
    """One of them, how many turns the whole run takes, and how much the resident memory may grow."""

    begin: Callable[[kp.Manager, Path, int], Turn]
    turns: int
    growth: float = 1.10
    """The most that the resident memory at the end may be of that after the first tenth."""


PHASES = {
    "evals": Phase(evals, 1_000_000),
    "specializations": Phase(specializations, 20_000),
    "modules": Phase(modules, 5_000),
    "reloads": Phase(reloads, 1_000),
    "tensors": Phase(tensors, 200_000),
    "shapes": Phase(shapes, 30_000),
    "limited": Phase(limited, 30_000, float("inf")),  # the limit is what counts
}
