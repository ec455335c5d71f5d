"""N-body: two galaxies pass each other, and gravity draws their arms out.

Every star attracts every other one. A workgroup loads 64 stars into shared memory for all its invocations,
then the next 64. Eight steps are recorded once and evaluated for each frame. Energy and momentum must stay.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter

import kompute_py as kp

STEP, SOFTENING, CORE, DISC = 0.004, 0.1, 1.0, 0.2  # time, length, and the two masses of a galaxy
GRAVITY = """
#version 450
layout(local_size_x = 64) in;
layout(constant_id = 0) const float SOFTENING = 0.0;
layout(binding = 0) readonly buffer Before { vec4 before[]; };  // positions and masses
layout(binding = 1) writeonly buffer After { vec4 after[]; };
layout(binding = 2) buffer Velocities { vec4 velocities[]; };
layout(push_constant) uniform Time { float dt; };
shared vec4 tile[64];

void main() {
    const uint i = gl_GlobalInvocationID.x, local = gl_LocalInvocationID.x, count = before.length();
    const vec4 here = i < count ? before[i] : vec4(0);
    vec3 pull = vec3(0);
    for (uint first = 0; first < count; first += 64) {
        tile[local] = first + local < count ? before[first + local] : vec4(0);  // no mass, no pull
        barrier();
        for (uint k = 0; k < 64; ++k) {
            const vec3 way = tile[k].xyz - here.xyz;
            const float nearness = inversesqrt(dot(way, way) + SOFTENING * SOFTENING);
            pull += tile[k].w * nearness * nearness * nearness * way;
        }
        barrier();
    }
    if (i >= count) return;
    velocities[i].xyz += dt * pull;
    after[i] = here + dt * velocities[i];  // velocities[i].w is 0
}
"""


def simulate(stars: np.ndarray, velocities: np.ndarray, frames: int) -> Iterator[tuple]:
    """The positions and velocities after each frame of eight steps."""
    with kp.Manager() as mgr:
        a, b, v = mgr.tensor(stars), mgr.empty(stars.shape), mgr.tensor(velocities)
        gravity = mgr.kernel(GRAVITY).specialize(SOFTENING=SOFTENING)
        frame = mgr.sequence().record(*[gravity.bind(a, b, v, dt=STEP), gravity.bind(b, a, v, dt=STEP)] * 4)
        for _ in range(frames):
            frame.eval()
            yield a.read(), v.read()


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
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=240, help="rows of the picture")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/nbody.png"))
    options = parser.parse_args(argv)
    size, count = options.size, 2 * options.size
    galaxies = [galaxy(np.random.default_rng(3), count, side) for side in (-1, 1)]
    stars, velocities = (np.concatenate(each) for each in zip(*galaxies, strict=True))
    frames = list(simulate(stars, velocities, 80))
    before, after = totals(stars, velocities), totals(*frames[-1])
    right = np.abs(after - before).max() < 0.01 * abs(before[0])
    print(f"energy {before[0]:.4f} before and {after[0]:.4f} after: {'right' if right else 'WRONG'}")

    paths, fade = np.stack([x for x, _ in frames]), np.repeat(0.85 ** np.arange(80)[::-1], count)
    bins: dict[str, Any] = {
        "bins": (size, size * 3 // 2),
        "range": [(-1.6, 1.6), (-2.4, 2.4)],
        "weights": fade,
    }
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
