"""The Mandelbrot set, drawn on the device and written as a PNG.

python examples/mandelbrot.py --out mandelbrot.png
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from PIL import Image

import kompute_py as kp

# Writes how many steps a point takes to escape (the limit for those that do not), and its colour as RGBA with
# 8 bits each.
SHADER = """
#version 450

layout(local_size_x = 16, local_size_y = 16) in;

layout(set = 0, binding = 0) writeonly buffer Steps { uint steps[]; };
layout(set = 0, binding = 1) writeonly buffer Colors { uint colors[]; };

layout(push_constant) uniform View {
    uint width;
    uint height;
    vec2 corner;  // of the complex plane, at the first pixel's middle
    float pixel;  // its side
    uint limit;
};

vec3 palette(float t) {
    return 0.5 - 0.5 * cos(6.2831853 * (t * vec3(1.0, 0.9, 0.8) + vec3(0.02, 0.10, 0.22)));
}

void main() {
    const uvec2 at = gl_GlobalInvocationID.xy;
    if (at.x >= width || at.y >= height) {
        return;
    }
    const vec2 c = corner + pixel * vec2(at);
    vec2 z = vec2(0.0);
    uint count = 0;
    // A radius of 16 instead of 2: the fraction of a step below comes out smooth.
    while (count < limit && dot(z, z) < 256.0) {
        z = vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
        ++count;
    }
    vec3 color = vec3(0.0);
    if (count < limit) {
        const float smooth_count = float(count) + 1.0 - log2(0.5 * log2(dot(z, z)));
        color = palette(sqrt(max(smooth_count, 0.0)) * 0.18);
    }
    const uint index = at.y * width + at.x;
    steps[index] = count;
    colors[index] = packUnorm4x8(vec4(color, 1.0));
}
"""


def escape_steps(c: np.ndarray, limit: int) -> np.ndarray:
    """The same count in NumPy, in double precision."""
    z = np.zeros_like(c)
    steps = np.zeros(c.shape, np.uint32)
    for _ in range(limit):
        inside = z.real**2 + z.imag**2 < 256.0
        if not inside.any():
            break
        z[inside] = z[inside] ** 2 + c[inside]
        steps[inside] += 1
    return steps


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", help="a part of the device's name")
    parser.add_argument("--width", type=int, default=960)
    parser.add_argument("--height", type=int, default=640)
    parser.add_argument("--limit", type=int, default=300, help="steps after which a point counts as inside")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/mandelbrot.png"))
    options = parser.parse_args(argv)
    width, height, limit = options.width, options.height, options.limit

    pixel = 3.0 / width
    corner = (-2.1 + 0.5 * pixel, -0.5 * pixel * (height - 1))
    with kp.Manager(options.device) as mgr:
        print(f"{mgr!r}")
        steps = mgr.empty((height, width), np.uint32)
        colors = mgr.empty((height, width, 4), np.uint8)
        draw = mgr.algorithm(
            [steps, colors],
            kp.compile(SHADER),
            (-(-width // 16), -(-height // 16), 1),
            push_consts=[width, height, *corner, pixel, limit],
        )
        mgr.sequence().record(kp.OpAlgoDispatch(draw)).record(kp.OpSyncLocal([steps, colors])).eval()
        counted, picture = steps.numpy().copy(), colors.numpy().copy()

    options.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture[..., :3]).save(options.out)
    print(f"{width} x {height} pixels, at most {limit} steps: {options.out}")

    # Every 5th pixel of every 5th row against NumPy. Next to the border a rounding decides, and double rounds
    # otherwise than float: a few pixels there may differ, and only there.
    xs, ys = np.arange(0, width, 5), np.arange(0, height, 5)
    plane = (corner[0] + pixel * xs) + 1j * (corner[1] + pixel * ys)[:, np.newaxis]
    same = float(np.mean(np.abs(counted[::5, ::5].astype(int) - escape_steps(plane, limit)) <= 1))
    right = same > 0.98
    print(f"same as NumPy in {same:.2%} of {xs.size * ys.size} pixels: {'right' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
