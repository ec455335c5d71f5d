"""The gallery's heat equation with wgpu-py: two buffers and two bind groups."""

import numpy as np
import wgpu

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
