"""A path tracer: light bounces between balls, and a picture gathers from noise.

Each evaluation adds paths to a sum on the device. The sum also counts the paths, and the count seeds the
random numbers, so one recording serves for all. The check puts the balls into a furnace: the sky is 1
everywhere and all surfaces are white, so each path must end with 1. A lone grey ball must show the outline
that geometry gives it.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

import kompute_py as kp

TRACE = """
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const uint BOUNCES = 1;
layout(binding = 0) readonly buffer Balls { vec4 balls[]; };  // centre and radius
layout(binding = 1) readonly buffer Paints { vec4 paints[]; };  // colour; w: 0 matt, 1 mirror, 2 lamp
layout(binding = 2) buffer Sum { vec4 sum[]; };  // of light; w counts the paths
layout(push_constant) uniform Picture { uint width, height; vec3 horizon, zenith; };
uint state;

float random() {  // PCG
    state = state * 747796405u + 2891336453u;
    const uint word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u;
    return float((word >> 22 ^ word) >> 8) / 16777216.0;
}

vec3 on_sphere() {
    const float z = 2.0 * random() - 1.0, angle = 6.2831853 * random();
    return vec3(sqrt(1.0 - z * z) * vec2(cos(angle), sin(angle)), z);
}

vec3 trace(vec3 from, vec3 way) {
    vec3 light = vec3(1);
    for (uint bounce = 0; bounce < BOUNCES; ++bounce) {
        float nearest = 1e9;
        uint hit = 0;
        for (uint i = 0; i < balls.length(); ++i) {
            const vec3 to = balls[i].xyz - from;
            const float b = dot(to, way), h = b * b - dot(to, to) + balls[i].w * balls[i].w;
            const float t = h < 0.0 ? -1.0 : b - sqrt(h) > 0.001 ? b - sqrt(h) : b + sqrt(h);
            if (t > 0.001 && t < nearest) nearest = t, hit = i;
        }
        if (nearest > 1e8) break;
        light *= paints[hit].rgb;
        if (paints[hit].w == 2.0) return light;
        from += nearest * way;
        const vec3 normal = (from - balls[hit].xyz) / balls[hit].w;
        way = paints[hit].w == 1.0 ? reflect(way, normal) : normalize(normal * 1.0001 + on_sphere());
    }
    return light * mix(horizon, zenith, max(way.y, 0.0));
}

void main() {
    const uint x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y, i = y * width + x;
    if (x >= width || y >= height) return;
    state = (i * 9781u + uint(sum[i].w)) * 26699u + 1u;
    const vec2 screen = 2.0 * (vec2(x, y) + vec2(random(), random())) - vec2(width, height);
    const vec3 way = normalize(vec3(screen * vec2(1, -1) / float(height), -2.6) - vec3(0, 0.15, 0));
    sum[i] += vec4(trace(vec3(0, 1.2, 6), way), 1);
}
"""
BALLS = [  # centre and radius; colour and kind
    [0, -1000, 0, 1000, 0.75, 0.75, 0.75, 0],
    [-1.9, 0.8, -0.6, 0.8, 0.85, 0.3, 0.2, 0],
    [0, 1, -1.2, 1, 0.95, 0.95, 0.95, 1],
    [1.9, 0.8, -0.4, 0.8, 0.2, 0.45, 0.85, 0],
    [-0.75, 0.35, 0.9, 0.35, 0.95, 0.8, 0.3, 1],
    [0.7, 0.3, 1, 0.3, 6, 3.6, 1.6, 2],
    [-2.4, 0.25, 1, 0.25, 1.5, 3, 6, 2],
    [0, 0.2, 1.6, 0.2, 0.4, 0.8, 0.4, 0],
]


def render(balls: list, size: int, passes: int, **sky: tuple) -> np.ndarray:
    """The mean light of each pixel's paths, eight for each pass."""
    width, height = size * 3 // 2, size
    with kp.Manager() as mgr:
        total = mgr.zeros((height, width, 4))
        scene = [mgr.tensor(part) for part in np.split(np.array(balls), 2, axis=1)]
        path = mgr.kernel(TRACE).specialize(BOUNCES=6).bind(*scene, total, width=width, height=height, **sky)
        eight = mgr.sequence().record(*[path] * 8)
        for _ in range(passes):
            eight.eval()
        light = total.read()
    return light[..., :3] / light[..., 3:]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=120, help="rows of the picture")
    parser.add_argument("--passes", type=int, default=8, help="of eight paths for each pixel")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/path_tracer.png"))
    options = parser.parse_args(argv)
    size, white = options.size, {"horizon": (1, 1, 1), "zenith": (1, 1, 1)}
    light = render(BALLS, size, options.passes, horizon=(0.1, 0.08, 0.12), zenith=(0.15, 0.25, 0.5))

    furnace = render([[*ball[:4], 1, 1, 1, 0] for ball in BALLS], size, 1, **white)
    lone = render([[0, 1, 0, 1, 0.5, 0.5, 0.5, 0]], size, 1, **white)
    y, x = np.mgrid[:size, : size * 3 // 2] * 2 / size
    way = np.stack([x - 1.5, 0.85 - y, np.full_like(x, -2.6)], axis=-1)
    away = np.linalg.norm(np.cross(way, [0, -0.2, -6]), axis=-1) / np.linalg.norm(way, axis=-1)
    parts = [(furnace, 1), (lone[away < 1 - 6 / size], 0.5), (lone[away > 1 + 6 / size], 1)]
    error = max(np.abs(part - expected).max() for part, expected in parts)
    right = error < 1e-3
    print(f"light lost or gained in the furnace and at the lone ball: {error:.1e}")
    print("right" if right else "WRONG")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    picture = 255 * (1 - np.exp(-1.5 * light)) ** (1 / 2.2)
    Image.fromarray(picture.astype(np.uint8)).save(options.out)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
