"""The gallery's heat equation with Taichi: two fields with a border of zeros."""

import argparse
from pathlib import Path

import numpy as np
import taichi as ti
from matplotlib import colormaps
from PIL import Image
from scipy.fft import dstn, idstn

RATE = 0.2  # of exchange with each neighbour in a step; the scheme is stable up to 0.25


@ti.kernel
def step(before: ti.template(), after: ti.template()):
    for y, x in ti.ndrange((1, before.shape[0] - 1), (1, before.shape[1] - 1)):
        around = before[y - 1, x] + before[y + 1, x] + before[y, x - 1] + before[y, x + 1]
        after[y, x] = before[y, x] + RATE * (around - 4 * before[y, x])


def simulate(plate: np.ndarray, stages: list[int]) -> list[np.ndarray]:
    """The plate after so many tens of steps."""
    ti.init(arch=ti.vulkan)
    height, width = plate.shape
    a, b = (ti.field(ti.f32, (height + 2, width + 2)) for _ in range(2))  # the border is at zero
    a.from_numpy(np.pad(plate, 1).astype(np.float32))
    found = []
    for before, stage in zip([0, *stages], stages, strict=False):
        for _ in range(5 * (stage - before)):
            step(a, b)
            step(b, a)
        found.append(a.to_numpy()[1:-1, 1:-1])
    return found


def exact(plate: np.ndarray, steps: int) -> np.ndarray:
    """The plate after `steps` steps, from its waves."""
    falls = [np.sin(np.pi * np.arange(1, n + 1) / (2 * n + 2)) ** 2 for n in plate.shape]
    factor = 1 - 4 * RATE * (falls[0][:, np.newaxis] + falls[1])
    return idstn(dstn(plate, type=1) * factor**steps, type=1)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=160, help="rows of the plate")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/heat_taichi.png"))
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
