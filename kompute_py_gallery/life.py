"""Game of Life: cells live and die in an image, and dead ones glow for a while.

A cell holds 255 while it lives; when it dies, its value fades a little with each generation. Two images
take turns: a step reads one and writes the other, with imageLoad and imageStore. Twenty generations are
recorded once and evaluated many times. NumPy plays the same game, and every cell must agree.
"""

import argparse
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from PIL import Image
from scipy.ndimage import convolve

import kompute_py as kp

STEP = """
#version 450
layout(local_size_x = 16, local_size_y = 8) in;
layout(constant_id = 0) const uint FADE = 8;
layout(binding = 0, r8ui) readonly uniform uimage2D before;
layout(binding = 1, r8ui) writeonly uniform uimage2D after;

void main() {
    const ivec2 size = imageSize(before), here = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(here, size))) return;
    uint neighbours = 0;
    for (int y = -1; y <= 1; ++y)
        for (int x = -1; x <= 1; ++x) {
            const ivec2 there = (here + ivec2(x, y) + size) % size;  // the world is a torus
            if (ivec2(x, y) != ivec2(0) && imageLoad(before, there).r == 255) ++neighbours;
        }
    const uint value = imageLoad(before, here).r;
    const bool alive = neighbours == 3 || (neighbours == 2 && value == 255);
    imageStore(after, here, uvec4(alive ? 255 : value - min(value, FADE)));
}
"""


def play(world: np.ndarray, fade: int, evaluations: int) -> np.ndarray:
    """The world after so many times twenty generations."""
    with kp.Manager() as mgr:
        a, b = mgr.image(world), mgr.image(np.zeros_like(world))
        step = mgr.kernel(STEP).specialize(FADE=fade)
        generations = mgr.sequence().record(*[step.bind(a, b), step.bind(b, a)] * 10)
        for _ in range(evaluations):
            generations.eval()
        return a.read()


def play_in_numpy(world: np.ndarray, fade: int, generations: int) -> np.ndarray:
    """The same game."""
    around = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]])
    for _ in range(generations):
        living = (world == 255).astype(int)
        neighbours = convolve(living, around, mode="wrap")
        alive = (neighbours == 3) | ((neighbours == 2) & (living == 1))
        world = np.where(alive, 255, np.maximum(world.astype(int) - fade, 0)).astype(np.uint8)
    return world


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=160, help="rows of the world")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/life.png"))
    options = parser.parse_args(argv)
    size, fade, evaluations = options.size, 4, 10

    y, x = np.mgrid[-1 : 1 : size * 1j, -1.5 : 1.5 : size * 3 // 2 * 1j]
    random = np.random.default_rng(5).random(x.shape)
    soup = random < 0.4 * (np.hypot(x, y) < 1.1)
    world = np.where(soup, 255, 0).astype(np.uint8)
    got = play(world, fade, evaluations)

    wrong = int((got != play_in_numpy(world, fade, 20 * evaluations)).sum())
    print(f"{20 * evaluations} generations, {(got == 255).sum()} cells live; {wrong} differ from NumPy")
    print("WRONG" if wrong else "right")

    colors = colormaps["magma"](np.where(got == 255, 1.0, got / 255 * 0.7))[..., :3]
    picture = Image.fromarray((255 * colors).astype(np.uint8))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    picture.resize((picture.width * 3, picture.height * 3), Image.Resampling.NEAREST).save(options.out)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
