"""The gallery's ray marcher with Taichi."""

import numpy as np
import taichi as ti

FAR, EYE, LOOK_AT = 30.0, np.array([3.2, 2.3, 4.0]), np.array([0.0, 0.55, 0.0])


@ti.func
def distance(p):  # balls cut out of a box, a ring around it, and the ground
    q = abs(p - ti.Vector([0, 1, 0])) - 0.8
    box = ti.max(q, 0.0).norm() + ti.min(ti.max(q.x, q.y, q.z), 0.0)
    r = p + ti.Vector([0.2, 0.0, 0.2])
    balls = (r - 0.4 * ti.floor(r / 0.4) - 0.2).norm() - 0.23
    ring = ti.Vector([p.xz.norm() - 1.9, p.y - 0.25]).norm() - 0.25
    return ti.min(ti.max(box, -balls), ring, p.y)


@ti.func
def march(start, way):
    t, light = 0.01, 1.0
    for _ in range(160):
        if t >= FAR:
            break
        d = distance(start + t * way)
        if d < 0.0005:
            light = 0.0
            break
        light = ti.min(light, 12.0 * d / t)  # a narrow miss is a half shadow
        t += d
    return ti.min(t, FAR), light


@ti.kernel
def render(
    ways: ti.template(), depths: ti.template(), picture: ti.template(), eye: ti.math.vec3, sun: ti.math.vec3
):
    for y, x in depths:
        way = ways[y, x]
        sky = ti.math.mix(
            ti.math.vec3(0.95, 0.75, 0.6), ti.math.vec3(0.3, 0.5, 0.8), ti.sqrt(ti.max(way.y, 0.0))
        )
        depth, _ = march(eye, way)
        p = eye + depth * way
        normal = ti.math.vec3(0.0)
        for i in ti.static(range(3)):
            e = ti.math.vec3(0.0)
            e[i] = 0.001
            normal[i] = distance(p + e) - distance(p - e)
        normal = normal.normalized()
        paint = ti.math.vec3(0.9, 0.75, 0.4)
        if p.xz.norm() > 1.6:
            paint = ti.math.vec3(0.9, 0.3, 0.15)
        if p.y < 0.002:
            paint = ti.math.vec3(0.35 + 0.2 * ti.math.mod(ti.floor(p.x) + ti.floor(p.z), 2.0))
        _, light = march(p + 0.002 * normal, sun)
        open = ti.math.clamp(distance(p + 0.2 * normal) / 0.2, 0.0, 1.0)  # less light from the sky in corners
        lit = light * ti.max(normal.dot(sun), 0.0) * ti.math.vec3(1.4, 1.2, 0.9) + open * ti.math.vec3(
            0.2, 0.25, 0.35
        )
        near = ti.exp(-0.003 * depth * depth) if depth < FAR else 0.0
        depths[y, x] = depth
        picture[y, x] = ti.cast(255 * ti.min(ti.sqrt(ti.math.mix(sky, paint * lit, near)), 1.0) + 0.5, ti.u8)


def draw(ways: np.ndarray, sun: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far each ray goes, and the picture."""
    ti.init(arch=ti.vulkan)
    shape = ways.shape[:2]
    directions, depths = ti.Vector.field(3, ti.f32, shape), ti.field(ti.f32, shape)
    picture = ti.Vector.field(3, ti.u8, shape)
    directions.from_numpy(ways[..., :3].astype(np.float32))
    render(directions, depths, picture, ti.math.vec3(EYE), ti.math.vec3(sun))
    return depths.to_numpy(), picture.to_numpy()
