"""The heat equation: hot coils on a metal plate cool down from its edges.

One step reads one tensor and writes the other, and the next step goes back ("ping-pong"). Ten steps are
recorded once; each evaluation of the recording moves the plate ten steps on. kompute_py puts the barriers
between the steps. The result is compared with the exact solution of the scheme: a discrete sine transform
splits the plate into waves, and each step multiplies a wave by a known factor.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from PIL import Image
from scipy.fft import dstn, idstn

import kompute_py as kp

RATE = 0.2  # of exchange with each neighbour in a step; the scheme is stable up to 0.25
STEP = """
#version 450
layout(local_size_x = 16, local_size_y = 8) in;
layout(constant_id = 0) const float RATE = 0.25;
layout(binding = 0) readonly buffer Before { float before[]; };
layout(binding = 1) writeonly buffer After { float after[]; };
layout(push_constant) uniform Plate { int width, height; };

float at(int x, int y) {  // the surroundings are at zero
    return x < 0 || y < 0 || x >= width || y >= height ? 0.0 : before[y * width + x];
}

void main() {
    const int x = int(gl_GlobalInvocationID.x), y = int(gl_GlobalInvocationID.y);
    if (x >= width || y >= height) return;
    const float around = at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1);
    after[y * width + x] = at(x, y) + RATE * (around - 4.0 * at(x, y));
}
"""


def simulate(plate: np.ndarray, stages: list[int]) -> list[np.ndarray]:
    """The plate after so many tens of steps."""
    height, width = plate.shape
    with kp.Manager() as mgr:
        a, b = mgr.tensor(plate), mgr.empty(plate.shape)
        step = mgr.kernel(STEP).specialize(RATE=RATE)
        there, back = (step.bind(*pair, width=width, height=height) for pair in ((a, b), (b, a)))
        ten_steps = mgr.sequence().record(*[there, back] * 5)
        found = []
        for before, stage in zip([0, *stages], stages, strict=False):
            for _ in range(stage - before):
                ten_steps.eval()
            found.append(a.read())
    return found


def exact(plate: np.ndarray, steps: int) -> np.ndarray:
    """The plate after `steps` steps, from its waves."""
    falls = [np.sin(np.pi * np.arange(1, n + 1) / (2 * n + 2)) ** 2 for n in plate.shape]
    factor = 1 - 4 * RATE * (falls[0][:, np.newaxis] + falls[1])
    return np.asarray(idstn(np.asarray(dstn(plate, type=1)) * factor**steps, type=1))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=160, help="rows of the plate")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/heat.png"))
    options = parser.parse_args(argv)

    y, x = np.mgrid[-1 : 1 : options.size * 1j, -1.5 : 1.5 : options.size * 3 // 2 * 1j]
    radius, angle = np.hypot(np.abs(x) - 0.7, y), np.arctan2(y, np.abs(x) - 0.7)
    coils = (radius < 0.6) & ((radius / 0.2 + angle / (2 * np.pi)) % 1 < 0.45)
    plate = coils.astype(np.float64)
    stages = [0, 5, 25, 125]
    pictures = simulate(plate, stages)

    errors = [
        np.abs(got - exact(plate, 10 * stage)).max() for got, stage in zip(pictures, stages, strict=True)
    ]
    right = max(errors) < 1e-5
    print(f"{plate.shape} cells, {10 * stages[-1]} steps, largest difference to the exact plate", max(errors))
    print("right" if right else "WRONG")

    rows = [np.hstack(pictures[:2]), np.hstack(pictures[2:])]
    colors = colormaps["inferno"](np.sqrt(np.clip(np.vstack(rows), 0, 1)))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((255 * colors[..., :3]).astype(np.uint8)).save(options.out)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
