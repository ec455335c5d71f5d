"""The gallery's galaxies with wgpu-py: tiles of stars in workgroup memory."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import wgpu
from PIL import Image
from scipy.ndimage import gaussian_filter

STEP, SOFTENING, CORE, DISC = 0.004, 0.1, 1.0, 0.2  # time, length, and the two masses of a galaxy
GRAVITY = """
override SOFTENING: f32 = 0.0;
override DT: f32;
@group(0) @binding(0) var<storage, read> before: array<vec4<f32>>;  // positions and masses
@group(0) @binding(1) var<storage, read_write> after: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> velocities: array<vec4<f32>>;
var<workgroup> tile: array<vec4<f32>, 64>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let count = arrayLength(&before);
    var here = vec4<f32>();
    if (id.x < count) { here = before[id.x]; }
    var pull = vec3<f32>();
    for (var first = 0u; first < count; first += 64) {
        tile[local] = vec4<f32>();  // no mass, no pull
        if (first + local < count) { tile[local] = before[first + local]; }
        workgroupBarrier();
        for (var k = 0; k < 64; k++) {
            let way = tile[k].xyz - here.xyz;
            let nearness = inverseSqrt(dot(way, way) + SOFTENING * SOFTENING);
            pull += tile[k].w * nearness * nearness * nearness * way;
        }
        workgroupBarrier();
    }
    if (id.x >= count) { return; }
    velocities[id.x] += DT * vec4<f32>(pull, 0.0);
    after[id.x] = here + DT * velocities[id.x];  // velocities[id.x].w is 0
}
"""


def simulate(stars: np.ndarray, velocities: np.ndarray, frames: int) -> Iterator[tuple]:
    """The positions and velocities after each frame of eight steps."""
    device = wgpu.utils.get_default_device()
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    data = [np.array(array, np.float32, order="C") for array in (stars, stars, velocities)]
    a, b, v = (device.create_buffer_with_data(data=array, usage=usage) for array in data)
    module = device.create_shader_module(code=GRAVITY)
    constants = {"SOFTENING": SOFTENING, "DT": STEP}
    compute = {"module": module, "entry_point": "main", "constants": constants}
    pipeline = device.create_compute_pipeline(layout="auto", compute=compute)
    layout, groups = pipeline.get_bind_group_layout(0), []
    for buffers in ((a, b, v), (b, a, v)):
        entries = [{"binding": i, "resource": {"buffer": buffer}} for i, buffer in enumerate(buffers)]
        groups.append(device.create_bind_group(layout=layout, entries=entries))
    for _ in range(frames):
        encoder = device.create_command_encoder()
        steps = encoder.begin_compute_pass()
        steps.set_pipeline(pipeline)
        for group in groups * 4:
            steps.set_bind_group(0, group)
            steps.dispatch_workgroups(-(-len(stars) // 64))
        steps.end()
        device.queue.submit([encoder.finish()])
        yield [np.frombuffer(device.queue.read_buffer(each), np.float32).reshape(-1, 4) for each in (a, v)]


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
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/nbody_wgpu.png"))
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
