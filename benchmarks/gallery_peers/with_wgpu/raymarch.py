"""The gallery's ray marcher with wgpu-py, by its shortest way: compute_with_buffers."""

import numpy as np
from wgpu.utils.compute import compute_with_buffers

FAR, EYE, LOOK_AT = 30.0, np.array([3.2, 2.3, 4.0]), np.array([0.0, 0.55, 0.0])
MARCH = """
override FAR: f32 = 1.0;
override WIDTH: u32;
override HEIGHT: u32;
struct Scene { eye: vec3<f32>, sun: vec3<f32> };
@group(0) @binding(0) var<storage, read> ways: array<vec4<f32>>;  // directions of the rays
@group(0) @binding(1) var<storage, read_write> depths: array<f32>;
@group(0) @binding(2) var<storage, read_write> picture: array<u32>;  // a pixel's four bytes
@group(0) @binding(3) var<storage, read> given: Scene;

fn scene(p: vec3<f32>) -> f32 {  // balls cut out of a box, a ring around it, and the ground
    let q = abs(p - vec3<f32>(0, 1, 0)) - 0.8;
    let box = length(max(q, vec3<f32>())) + min(max(q.x, max(q.y, q.z)), 0.0);
    let r = p + vec3<f32>(0.2, 0, 0.2);
    let balls = length(r - 0.4 * floor(r / 0.4) - 0.2) - 0.23;
    let ring = length(vec2<f32>(length(p.xz) - 1.9, p.y - 0.25)) - 0.25;
    return min(min(max(box, -balls), ring), p.y);
}

fn march(start: vec3<f32>, way: vec3<f32>) -> vec2<f32> {  // how far, and how much light gets through
    var light = 1.0;
    var t = 0.01;
    for (var i = 0; i < 160 && t < FAR; i++) {
        let d = scene(start + t * way);
        if (d < 0.0005) { light = 0.0; break; }
        light = min(light, 12.0 * d / t);  // a narrow miss is a half shadow
        t += d;
    }
    return vec2<f32>(min(t, FAR), light);
}

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= WIDTH || id.y >= HEIGHT) { return; }
    let way = ways[id.y * WIDTH + id.x].xyz;
    let sky = mix(vec3<f32>(0.95, 0.75, 0.6), vec3<f32>(0.3, 0.5, 0.8), sqrt(max(way.y, 0.0)));
    let depth = march(given.eye, way).x;
    depths[id.y * WIDTH + id.x] = depth;
    let p = given.eye + depth * way;
    let e = vec2<f32>(0.001, 0);
    let ahead = vec3<f32>(scene(p + e.xyy), scene(p + e.yxy), scene(p + e.yyx));
    let normal = normalize(ahead - vec3<f32>(scene(p - e.xyy), scene(p - e.yxy), scene(p - e.yyx)));
    let tiles = floor(p.x) + floor(p.z);
    var paint = select(vec3<f32>(0.9, 0.75, 0.4), vec3<f32>(0.9, 0.3, 0.15), length(p.xz) > 1.6);
    if (p.y < 0.002) { paint = vec3<f32>(0.35 + 0.2 * (tiles - 2.0 * floor(tiles / 2.0))); }
    let light = march(p + 0.002 * normal, given.sun).y;
    let open = clamp(scene(p + 0.2 * normal) / 0.2, 0.0, 1.0);  // less light from the sky in corners
    let direct = light * max(dot(normal, given.sun), 0.0) * vec3<f32>(1.4, 1.2, 0.9);
    let lit = direct + open * vec3<f32>(0.2, 0.25, 0.35);
    let color = mix(sky, paint * lit, select(0.0, exp(-0.003 * depth * depth), depth < FAR));
    picture[id.y * WIDTH + id.x] = pack4x8unorm(vec4<f32>(sqrt(color), 1.0));
}
"""


def draw(ways: np.ndarray, sun: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far each ray goes, and the picture."""
    height, width = ways.shape[:2]
    found = compute_with_buffers(
        {0: ways.astype(np.float32), 3: np.array([[*EYE, 0], [*sun, 0]], np.float32)},
        {1: (height, width, "f"), 2: (height, width, 4, "B")},
        MARCH,
        constants={"FAR": FAR, "WIDTH": width, "HEIGHT": height},
        n=(-(-width // 8), -(-height // 8), 1),
    )
    return np.asarray(found[1]), np.asarray(found[2])[..., :3]
