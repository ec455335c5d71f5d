"""The gallery's heat equation with wgpu-py: two buffers and two bind groups."""

import argparse
from pathlib import Path

import numpy as np
import wgpu
from matplotlib import colormaps
from PIL import Image
from scipy.fft import dstn, idstn

RATE = 0.2  # of exchange with each neighbour in a step; the scheme is stable up to 0.25
STEP = """
override RATE: f32 = 0.25;
override WIDTH: i32;
override HEIGHT: i32;
@group(0) @binding(0) var<storage, read> before: array<f32>;
@group(0) @binding(1) var<storage, read_write> after: array<f32>;

fn at(x: i32, y: i32) -> f32 {  // the surroundings are at zero
    if (x < 0 || y < 0 || x >= WIDTH || y >= HEIGHT) { return 0.0; }
    return before[y * WIDTH + x];
}

@compute @workgroup_size(16, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = i32(id.x);
    let y = i32(id.y);
    if (x >= WIDTH || y >= HEIGHT) { return; }
    let around = at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1);
    after[y * WIDTH + x] = at(x, y) + RATE * (around - 4.0 * at(x, y));
}
"""


def simulate(plate: np.ndarray, stages: list[int]) -> list[np.ndarray]:
    """The plate after so many tens of steps."""
    height, width = plate.shape
    device = wgpu.utils.get_default_device()
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    a, b = (device.create_buffer_with_data(data=plate.astype(np.float32), usage=usage) for _ in range(2))
    module = device.create_shader_module(code=STEP)
    constants = {"RATE": RATE, "WIDTH": width, "HEIGHT": height}
    compute = {"module": module, "entry_point": "main", "constants": constants}
    pipeline = device.create_compute_pipeline(layout="auto", compute=compute)
    layout, groups = pipeline.get_bind_group_layout(0), []
    for pair in ((a, b), (b, a)):
        entries = [{"binding": i, "resource": {"buffer": buffer}} for i, buffer in enumerate(pair)]
        groups.append(device.create_bind_group(layout=layout, entries=entries))
    found = []
    for before, stage in zip([0, *stages], stages, strict=False):
        for _ in range(stage - before):
            encoder = device.create_command_encoder()
            steps = encoder.begin_compute_pass()
            steps.set_pipeline(pipeline)
            for group in groups * 5:
                steps.set_bind_group(0, group)
                steps.dispatch_workgroups(-(-width // 16), -(-height // 8))
            steps.end()
            device.queue.submit([encoder.finish()])
        found.append(np.frombuffer(device.queue.read_buffer(a), np.float32).reshape(plate.shape))
    return found


def exact(plate: np.ndarray, steps: int) -> np.ndarray:
    """The plate after `steps` steps, from its waves."""
    falls = [np.sin(np.pi * np.arange(1, n + 1) / (2 * n + 2)) ** 2 for n in plate.shape]
    factor = 1 - 4 * RATE * (falls[0][:, np.newaxis] + falls[1])
    return idstn(dstn(plate, type=1) * factor**steps, type=1)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=160, help="rows of the plate")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/heat_wgpu.png"))
    options = parser.parse_args(argv)

    y, x = np.mgrid[-1 : 1 : options.size * 1j, -1.5 : 1.5 : options.size * 3 // 2 * 1j]
    radius, angle = np.hypot(np.abs(x) - 0.7, y), np.arctan2(y, np.abs(x) - 0.7)
    coils = (radius < 0.6) & ((radius / 0.2 + angle / (2 * np.pi)) % 1 < 0.45)
    plate = coils.astype(np.float64)
    stages = [0, 5, 25, 125]
    pictures = simulate(plate, stages)

    errors = [
        np.abs(got - exact(plate, 10 * stage)).max() for got, stage in zip(pictures, stages, strict=True)
    ]
    right = max(errors) < 1e-5
    print(f"{plate.shape} cells, {10 * stages[-1]} steps, largest difference to the exact plate", max(errors))
    print("right" if right else "WRONG")

    rows = [np.hstack(pictures[:2]), np.hstack(pictures[2:])]
    colors = colormaps["inferno"](np.sqrt(np.clip(np.vstack(rows), 0, 1)))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((255 * colors[..., :3]).astype(np.uint8)).save(options.out)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
