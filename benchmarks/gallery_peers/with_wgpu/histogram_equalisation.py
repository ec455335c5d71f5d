"""The gallery's histogram equalisation with wgpu-py: three pipelines in one submission."""

import numpy as np
import wgpu

COUNT = """
@group(0) @binding(0) var<storage, read> pixels: array<u32>;  // four in each
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>, 256>;
var<workgroup> inside: array<atomic<u32>, 256>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    atomicStore(&inside[local], 0u);
    workgroupBarrier();
    if (id.x < arrayLength(&pixels)) {
        for (var k = 0u; k < 4; k++) { atomicAdd(&inside[extractBits(pixels[id.x], 8 * k, 8)], 1u); }
    }
    workgroupBarrier();
    atomicAdd(&counts[local], atomicLoad(&inside[local]));
}
"""
SUM = """
@group(0) @binding(0) var<storage, read> counts: array<u32, 256>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32, 256>;
var<workgroup> inside: array<u32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) local: u32) {
    inside[local] = counts[local];
    for (var step = 1u; step < 256; step *= 2) {
        workgroupBarrier();
        var before = 0u;
        if (local >= step) { before = inside[local - step]; }
        workgroupBarrier();
        inside[local] += before;
    }
    sums[local] = inside[local];
}
"""
MAP = """
@group(0) @binding(0) var<storage, read> pixels: array<u32>;
@group(0) @binding(1) var<storage, read> sums: array<u32, 256>;
@group(0) @binding(2) var<storage, read_write> mapped: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= arrayLength(&pixels)) { return; }
    var four = 0u;
    for (var k = 0u; k < 32; k += 8) {
        four |= (sums[extractBits(pixels[id.x], k, 8)] * 255 / sums[255]) << k;
    }
    mapped[id.x] = four;
}
"""


def equalise(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How often each grey occurs, and the photograph with its greys spread evenly."""
    device = wgpu.utils.get_default_device()
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    before = device.create_buffer_with_data(data=pixels, usage=usage)
    counts, sums, after = (device.create_buffer(size=n, usage=usage) for n in (1024, 1024, pixels.size))
    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    groups = -(-pixels.size // 1024)
    for code, buffers, count in (
        (COUNT, (before, counts), groups),
        (SUM, (counts, sums), 1),
        (MAP, (before, sums, after), groups),
    ):
        module = device.create_shader_module(code=code)
        stage = {"module": module, "entry_point": "main"}
        pipeline = device.create_compute_pipeline(layout="auto", compute=stage)
        entries = [{"binding": i, "resource": {"buffer": buffer}} for i, buffer in enumerate(buffers)]
        group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
        compute.set_pipeline(pipeline)
        compute.set_bind_group(0, group)
        compute.dispatch_workgroups(count)
    compute.end()
    device.queue.submit([encoder.finish()])
    mapped = np.frombuffer(device.queue.read_buffer(after), np.uint8).reshape(pixels.shape)
    return np.frombuffer(device.queue.read_buffer(counts), np.uint32), mapped
