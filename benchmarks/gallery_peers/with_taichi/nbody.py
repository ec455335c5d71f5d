"""The gallery's galaxies with Taichi: each star reads all others."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import taichi as ti
from PIL import Image
from scipy.ndimage import gaussian_filter

STEP, SOFTENING, CORE, DISC = 0.004, 0.1, 1.0, 0.2  # time, length, and the two masses of a galaxy


@ti.kernel
def gravity(before: ti.template(), after: ti.template(), velocities: ti.template(), dt: ti.f32):
    for i in before:
        here, pull = before[i], ti.Vector([0.0, 0.0, 0.0])
        for k in range(before.shape[0]):
            way = before[k].xyz - here.xyz
            nearness = ti.rsqrt(way.dot(way) + SOFTENING * SOFTENING)
            pull += before[k].w * nearness * nearness * nearness * way
        velocities[i] += dt * ti.Vector([pull.x, pull.y, pull.z, 0.0])
        after[i] = here + dt * velocities[i]  # velocities[i].w is 0


def simulate(stars: np.ndarray, velocities: np.ndarray, frames: int) -> Iterator[tuple]:
    """The positions and velocities after each frame of eight steps."""
    ti.init(arch=ti.vulkan)
    a, b, v = (ti.Vector.field(4, ti.f32, len(stars)) for _ in range(3))
    a.from_numpy(stars.astype(np.float32))
    v.from_numpy(velocities.astype(np.float32))
    for _ in range(frames):
        for _ in range(4):
            gravity(a, b, v, STEP)
            gravity(b, a, v, STEP)
        yield a.to_numpy(), v.to_numpy()


def galaxy(rng: np.random.Generator, count: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions with masses, and velocities, of a heavy core and light stars on circles around it."""
    radius, angle = np.sqrt(rng.random(count)) * (np.arange(count) > 0), rng.uniform(0, 2 * np.pi, count)
    out = np.stack([np.cos(angle), np.sin(angle), rng.normal(0, 0.05, count), 0 * angle], axis=1)
    speed = radius * np.sqrt((CORE + DISC * radius**2) / (radius**2 + SOFTENING**2) ** 1.5)
    stars = radius[:, np.newaxis] * out + [1.3 * side, -0.6 * side, 0, 0]
    stars[:, 3] = np.where(radius > 0, DISC / count, CORE)
    return stars, speed[:, np.newaxis] * out[:, [1, 0, 3, 3]] * [-1, 1, 0, 0] + [-0.6 * side, 0, 0, 0]


def totals(stars: np.ndarray, velocities: np.ndarray) -> np.ndarray:
    """The energy and the momentum of all stars."""
    x, mass, v = stars[:, :3].astype(float), stars[:, 3].astype(float), velocities[:, :3].astype(float)
    squares = (x**2).sum(1)[:, np.newaxis] + (x**2).sum(1) - 2 * x @ x.T + SOFTENING**2
    potential = 0.5 * (mass @ squares**-0.5 @ mass - (mass**2).sum() / SOFTENING)
    return np.array([0.5 * mass @ (v**2).sum(1) - potential, *(mass @ v)])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=240, help="rows of the picture")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/nbody_taichi.png"))
    options = parser.parse_args(argv)
    size, count = options.size, 2 * options.size
    galaxies = [galaxy(np.random.default_rng(3), count, side) for side in (-1, 1)]
    stars, velocities = (np.concatenate(each) for each in zip(*galaxies, strict=True))
    frames = list(simulate(stars, velocities, 80))
    before, after = totals(stars, velocities), totals(*frames[-1])
    right = np.abs(after - before).max() < 0.01 * abs(before[0])
    print(f"energy {before[0]:.4f} before and {after[0]:.4f} after: {'right' if right else 'WRONG'}")

    paths, fade = np.stack([x for x, _ in frames]), np.repeat(0.85 ** np.arange(80)[::-1], count)
    bins = {"bins": (size, size * 3 // 2), "range": [(-1.6, 1.6), (-2.4, 2.4)], "weights": fade}
    light = [
        np.histogram2d(x[..., 1].ravel(), x[..., 0].ravel(), **bins)[0] for x in np.split(paths, 2, axis=1)
    ]
    glow = gaussian_filter(light, (0, 0.6, 0.6)) + gaussian_filter(light, (0, size / 50, size / 50))
    picture = 1 - np.exp(-size / 240 * np.tensordot(glow, [(0.4, 0.7, 1.5), (1.5, 0.7, 0.35)], (0, 0)))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((255 * picture).astype(np.uint8)).save(options.out)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
