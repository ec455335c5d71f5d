"""What each of the processes does: compiles, computes, saves and loads, and checks every number."""

from __future__ import annotations

import os
import random
import signal
import sys

import numpy as np

import kompute_py as kp

SHADERS = 12
FILES = 4
_COUNT = 1 << 12


def source(number: int) -> str:
    """One of the shaders;
    it computes ``x * (number + 1) + number``, and the include says how much is added."""
    return f"""#version 450
#include "add.glsl"
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) buffer Data {{ float data[]; }};
void main() {{
    uint i = gl_GlobalInvocationID.x;
    if (i < data.length()) data[i] = data[i] * {number + 1}.0 + ADD * {number}.0;
}}
"""


def compute(manager: kp.Manager, number: int, includes: str) -> None:
    """Runs a shader, and checks what it gave."""
    values = np.arange(100, dtype=np.float32)
    tensor = manager.tensor(values)
    manager.kernel(source(number), include_dirs=[includes])(tensor)
    np.testing.assert_array_equal(tensor.read(), values * np.float32(number + 1) + np.float32(number))


def save(manager: kp.Manager, path: str, value: int) -> None:
    """Saves a file that says in every number what is in it."""
    tensors = {name: manager.tensor(np.full(_COUNT, value, np.float32)) for name in ("a", "b")}
    kp.save_tensors(path, tensors, {"value": str(value)}, progress=False)


def load(manager: kp.Manager, path: str) -> None:
    """Loads a file, and checks that all of it is one writer's."""
    found = kp.load_tensors(path, manager, progress=False)
    value = float(found.metadata["value"])
    for tensor in found.values():
        np.testing.assert_array_equal(tensor.read(), np.full(_COUNT, value, np.float32))


def work(folder: str, seed: int, rounds: int, refusals: bool) -> None:
    """`rounds` of all of it.

    With `refusals`, files may be refused by our errors; the numbers are to be right all the same.
    """
    chance = random.Random(seed)
    allowed = (kp.KomputeError,) if refusals else (kp.NotFoundError,)
    with kp.Manager() as manager:
        for _ in range(rounds):
            compute(manager, chance.randrange(SHADERS), os.path.join(folder, "includes"))
            path = os.path.join(folder, "models", f"model-{chance.randrange(FILES)}.safetensors")
            try:
                if chance.random() < 0.5:
                    save(manager, path, chance.randrange(1 << 20))
                else:
                    load(manager, path)
            except allowed:
                pass


def everything(folder: str, refusals: bool) -> None:
    """Every shader and every file once: what a process does that nobody kills."""
    with kp.Manager() as manager:
        for number in range(SHADERS):
            compute(manager, number, os.path.join(folder, "includes"))
        for number in range(FILES):
            path = os.path.join(folder, "models", f"model-{number}.safetensors")
            try:
                save(manager, path, number)
                load(manager, path)
            except kp.KomputeError:
                if not refusals:
                    raise


def main() -> None:
    """FOLDER SEED ROUNDS REFUSALS; 0 rounds for everything once."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    folder, seed, rounds, refusals = sys.argv[1], *map(int, sys.argv[2:])
    if rounds:
        work(folder, seed, rounds, bool(refusals))
    else:
        everything(folder, bool(refusals))
    print("done")


if __name__ == "__main__":
    main()
