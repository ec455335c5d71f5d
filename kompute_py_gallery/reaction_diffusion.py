"""Reaction and diffusion: two chemicals draw corals, after Gray and Scott.

The chemicals are the two channels of an image. A sampler that repeats the image beyond its edges reads it,
and the step writes to a second image, which the next step reads. A hundred steps are recorded once and
evaluated many times. Feed and kill change from left to right, so that one picture shows several kinds of
patterns. After the first hundred steps NumPy must have the same values.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import LightSource
from PIL import Image
from scipy.ndimage import zoom

import kompute_py as kp

STEP = """
#version 450
layout(local_size_x = 16, local_size_y = 8) in;
layout(binding = 0) uniform sampler2D before;  // the amounts of U and V
layout(binding = 1, rg32f) writeonly uniform image2D after;
layout(push_constant) uniform Rates { vec2 diffusion, feed, kill; };  // feed and kill: at both edges

void main() {
    const ivec2 size = textureSize(before, 0), at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, size))) return;
    const vec2 texel = 1.0 / vec2(size), place = (vec2(at) + 0.5) * texel;
    const vec2 x = vec2(texel.x, 0), y = vec2(0, texel.y), here = texture(before, place).rg;
    const vec2 beside = texture(before, place - x).rg + texture(before, place + x).rg;
    const vec2 around = texture(before, place - y).rg + texture(before, place + y).rg + beside;
    const float f = mix(feed.x, feed.y, place.x), k = mix(kill.x, kill.y, place.x);
    const float reaction = here.x * here.y * here.y;
    const vec2 change = vec2(f * (1.0 - here.x) - reaction, reaction - (f + k) * here.y);
    imageStore(after, at, vec4(here + diffusion * (around - 4.0 * here) + change, 0, 0));
}
"""
RATES = {"diffusion": (0.2, 0.1), "feed": (0.030, 0.058), "kill": (0.058, 0.063)}


def simulate(start: np.ndarray, stages: list[int]) -> list[np.ndarray]:
    """The amounts after so many hundreds of steps."""
    with kp.Manager() as mgr:
        a, b = mgr.image(start), mgr.image(start)
        repeat = mgr.sampler("nearest", "repeat")
        step = mgr.kernel(STEP)
        there, back = step.bind(a.sampled(repeat), b, **RATES), step.bind(b.sampled(repeat), a, **RATES)
        hundred, found = mgr.sequence().record(*[there, back] * 50), []
        for before, stage in zip([0, *stages], stages, strict=False):
            for _ in range(stage - before):
                hundred.eval()
            found.append(a.read())
    return found


def simulate_in_numpy(amounts: np.ndarray, steps: int) -> np.ndarray:
    """The same, in double precision."""
    place = (np.arange(amounts.shape[1]) + 0.5) / amounts.shape[1]
    feed, kill = (low + (high - low) * place for low, high in (RATES["feed"], RATES["kill"]))
    for _ in range(steps):
        u, v = amounts[..., 0], amounts[..., 1]
        around = sum(np.roll(amounts, shift, axis) for shift in (-1, 1) for axis in (0, 1))
        change = np.stack([feed * (1 - u) - u * v * v, u * v * v - (feed + kill) * v], axis=-1)
        amounts = amounts + np.array(RATES["diffusion"]) * (around - 4 * amounts) + change
    return amounts


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=96, help="rows of the image")
    parser.add_argument("--steps", type=int, default=4000, help="of the simulation")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/reaction_diffusion.png"))
    options = parser.parse_args(argv)

    start = np.zeros((options.size, options.size * 3 // 2, 2))
    drops = np.random.default_rng(1).random(start.shape[:2]) < 0.01
    start[...] = np.where(np.stack([drops, drops], axis=-1), (0.3, 0.9), (1.0, 0.0))
    early, late = simulate(start, [1, options.steps // 100])

    error = np.abs(early - simulate_in_numpy(start, 100)).max()
    right = bool(error < 1e-4) and late[..., 1].std() > 0.02
    print(f"largest difference to NumPy after 100 steps {error:.1e}: {'right' if right else 'WRONG'}")

    v = np.asarray(zoom(late[..., 1], 3, mode="grid-wrap"))
    shaded = LightSource(315, 50).shade(
        v, colormaps["YlGnBu_r"], vert_exag=2 * options.size, blend_mode="soft"
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((255 * shaded[..., :3]).astype(np.uint8)).save(options.out)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
