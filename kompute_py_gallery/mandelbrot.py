"""The Mandelbrot set: a valley of spirals, each pixel the mean of four points.

Each invocation walks z = z² + c for four points of its pixel until they escape. The view comes in push
constants, the most steps in a specialization constant. The colours go to a picture of four bytes a pixel,
the steps to a second tensor; NumPy counts the steps of some pixels in double precision.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

import kompute_py as kp

CENTER, SPAN = (-0.74364, 0.13183), 0.004  # of the complex plane; the span is the height
DRAW = """
#version 450
layout(local_size_x = 16, local_size_y = 8) in;
layout(constant_id = 0) const uint MOST = 100;
layout(binding = 0) writeonly buffer Picture { uint picture[]; };
layout(binding = 1) writeonly buffer Steps { uint steps[]; };  // of the pixel's first point
layout(push_constant) uniform View { uint width, height; vec2 corner; float pixel; };

uint escape(vec2 c, out float exact) {
    vec2 z = vec2(0);
    uint count = 0;
    for (; count < MOST && dot(z, z) < 256.0; ++count) z = vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
    exact = float(count) + 1.0 - log2(0.5 * log2(max(dot(z, z), 4.0)));
    return count;
}

void main() {
    const uint x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y;
    if (x >= width || y >= height) return;
    vec3 color = vec3(0);
    for (uint i = 4; i-- > 0;) {  // the first point comes last
        float exact;
        const vec2 point = vec2(x, y) + 0.5 * vec2(i % 2, i / 2);
        const uint count = escape(corner + pixel * point * vec2(1, -1), exact);
        const vec3 phase = sqrt(exact) * vec3(0.8, 0.88, 1.0) + vec3(0.2, 0.5, 0.9);
        if (count < MOST) color += 0.5 - 0.5 * cos(phase);
        if (i == 0) steps[y * width + x] = count;
    }
    picture[y * width + x] = packUnorm4x8(vec4(color / 4.0, 1));
}
"""


def steps_in_numpy(c: np.ndarray, most: int) -> np.ndarray:
    """How many steps each point takes to escape."""
    z, steps = np.zeros_like(c), np.zeros(c.shape, np.uint32)
    for _ in range(most):
        inside = np.real(z) ** 2 + np.imag(z) ** 2 < 256.0
        z[inside] = z[inside] ** 2 + c[inside]
        steps += inside
    return steps


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=240, help="rows of the picture")
    parser.add_argument("--most", type=int, default=1000, help="steps after which a point counts as inside")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/mandelbrot.png"))
    options = parser.parse_args(argv)
    height, width = options.size, options.size * 3 // 2
    pixel = SPAN / height
    corner = CENTER[0] - 0.5 * width * pixel, CENTER[1] + 0.5 * height * pixel

    with kp.Manager() as mgr:
        drawn, counted = mgr.empty((height, width, 4), np.uint8), mgr.empty((height, width), np.uint32)
        view = {"width": width, "height": height, "corner": corner, "pixel": pixel}
        draw = mgr.kernel(DRAW).specialize(MOST=options.most)
        draw(drawn.view(np.uint32), counted, grid=(width, height), **view)
        picture, steps = drawn.read(), counted.read()

    x, y = np.arange(0, width, 5), np.arange(0, height, 5)[:, np.newaxis]
    points = corner[0] + pixel * x + 1j * (corner[1] - pixel * y)
    expected, in_float = (steps_in_numpy(points.astype(kind), options.most) for kind in "DF")
    certain = expected == in_float  # near the border, rounding decides
    same = np.mean(np.abs(steps[::5, ::5].astype(int) - expected)[certain] <= 1)
    right = certain.mean() > 0.5 and same > 0.98
    print(f"{same:.1%} of NumPy's points take as many steps: {'right' if right else 'WRONG'}")

    options.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture[..., :3]).save(options.out)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
