"""A ray marcher: a scene that is nothing but a distance function, with soft shadows.

Each invocation walks along its ray by the distance to the nearest surface, so it cannot pass through one. A
second walk, towards the sun, finds the shadow. NumPy makes the rays, so any lens is possible, and walks
along every 64th of them for comparison.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

import kompute_py as kp

FAR, EYE, LOOK_AT = 30.0, np.array([3.2, 2.3, 4.0]), np.array([0.0, 0.55, 0.0])
MARCH = """
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(constant_id = 0) const float FAR = 1.0;
layout(binding = 0) readonly buffer Ways { vec4 ways[]; };  // directions of the rays
layout(binding = 1) writeonly buffer Depths { float depths[]; };
layout(binding = 2, rgba8) writeonly uniform image2D picture;
layout(push_constant) uniform Scene { vec3 eye, sun; };

float scene(vec3 p) {  // balls cut out of a box, a ring around it, and the ground
    const vec3 q = abs(p - vec3(0, 1, 0)) - 0.8;
    const float box = length(max(q, 0.0)) + min(max(q.x, max(q.y, q.z)), 0.0);
    const float balls = length(mod(p + vec3(0.2, 0, 0.2), 0.4) - 0.2) - 0.23;
    const float ring = length(vec2(length(p.xz) - 1.9, p.y - 0.25)) - 0.25;
    return min(min(max(box, -balls), ring), p.y);
}

float march(vec3 from, vec3 way, out float light) {
    light = 1.0;
    float t = 0.01;
    for (int i = 0; i < 160 && t < FAR; ++i) {
        const float d = scene(from + t * way);
        if (d < 0.0005) { light = 0.0; break; }
        light = min(light, 12.0 * d / t);  // a narrow miss is a half shadow
        t += d;
    }
    return min(t, FAR);
}

void main() {
    const ivec2 size = imageSize(picture), at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, size))) return;
    const vec3 way = ways[at.y * size.x + at.x].xyz;
    const vec3 sky = mix(vec3(0.95, 0.75, 0.6), vec3(0.3, 0.5, 0.8), sqrt(max(way.y, 0.0)));
    float light;
    const float depth = depths[at.y * size.x + at.x] = march(eye, way, light);
    const vec3 p = eye + depth * way;
    const vec2 e = vec2(0.001, 0);
    const vec3 ahead = vec3(scene(p + e.xyy), scene(p + e.yxy), scene(p + e.yyx));
    const vec3 normal = normalize(ahead - vec3(scene(p - e.xyy), scene(p - e.yxy), scene(p - e.yyx)));
    const vec3 ground = vec3(0.35 + 0.2 * mod(floor(p.x) + floor(p.z), 2.0));
    const vec3 thing = length(p.xz) > 1.6 ? vec3(0.9, 0.3, 0.15) : vec3(0.9, 0.75, 0.4);
    const vec3 paint = p.y < 0.002 ? ground : thing;
    march(p + 0.002 * normal, sun, light);
    const float open = clamp(scene(p + 0.2 * normal) / 0.2, 0.0, 1.0);  // less light from the sky in corners
    const vec3 lit = light * max(dot(normal, sun), 0.0) * vec3(1.4, 1.2, 0.9) + open * vec3(0.2, 0.25, 0.35);
    const vec3 color = mix(sky, paint * lit, depth < FAR ? exp(-0.003 * depth * depth) : 0.0);
    imageStore(picture, at, vec4(sqrt(color), 1));
}
"""


def draw(ways: np.ndarray, sun: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far each ray goes, and the picture."""
    with kp.Manager() as mgr:
        picture, depths = mgr.image_empty(ways.shape[:2], "rgba8"), mgr.empty(ways.shape[:2])
        mgr.kernel(MARCH).specialize(FAR=FAR)(mgr.tensor(ways), depths, picture, eye=EYE, sun=sun)
        return depths.read(), picture.read()[..., :3]


def scene(p: np.ndarray) -> np.ndarray:
    """The distance from points of shape (..., 3) to the scene."""
    q = np.abs(p - [0, 1, 0]) - 0.8
    box = np.linalg.norm(np.maximum(q, 0), axis=-1) + np.minimum(q.max(-1), 0)
    balls = np.linalg.norm((p + np.array([0.2, 0, 0.2])) % 0.4 - 0.2, axis=-1) - 0.23
    ring = np.hypot(np.hypot(p[..., 0], p[..., 2]) - 1.9, p[..., 1] - 0.25) - 0.25
    return np.minimum.reduce([np.maximum(box, -balls), ring, p[..., 1]])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=240, help="rows of the picture")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/raymarch.png"))
    options = parser.parse_args(argv)
    y, x = np.mgrid[1 : -1 : options.size * 1j, -1.5 : 1.5 : options.size * 3 // 2 * 1j][..., np.newaxis]
    forward = (LOOK_AT - EYE) / np.linalg.norm(LOOK_AT - EYE)
    right = np.cross(forward, [0, 1, 0]) / np.linalg.norm(np.cross(forward, [0, 1, 0]))
    ways = forward + 0.45 * (x * right + y * np.cross(right, forward))
    ways /= np.linalg.norm(ways, axis=-1, keepdims=True)
    sun = np.array([0.6, 0.7, 0.2]) / np.linalg.norm([0.6, 0.7, 0.2])
    depths, picture = draw(np.pad(ways, ((0, 0), (0, 0), (0, 1))), sun)

    t = np.full(depths[::8, ::8].shape, 0.01)
    for _ in range(160):
        d = scene(EYE + t[..., np.newaxis] * ways[::8, ::8])
        t += np.where((d < 0.0005) | (t >= FAR), 0, d)
    same = np.isclose(np.minimum(t, FAR), depths[::8, ::8], atol=0.01).mean()
    print(f"{depths.shape} rays; {same:.1%} of NumPy's go as far: {'right' if same > 0.98 else 'WRONG'}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(options.out)
    return 0 if same > 0.98 else 1


if __name__ == "__main__":
    raise SystemExit(main())
