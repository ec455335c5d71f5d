"""The gallery's matrix products with wgpu-py and its timestamps."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import wgpu
from matplotlib.figure import Figure

HEAD = """
override N: u32;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
"""
NAIVE = """
@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= N || id.y >= N) { return; }
    var sum = 0.0;
    for (var k = 0u; k < N; k++) { sum += a[id.y * N + k] * b[k * N + id.x]; }
    c[id.y * N + id.x] = sum;
}
"""
TILED = """
const TILE = 16u;
var<workgroup> tile_a: array<array<f32, TILE>, TILE>;
var<workgroup> tile_b: array<array<f32, TILE>, TILE>;
@compute @workgroup_size(TILE, TILE)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let i = local.x;
    let j = local.y;
    var sum = 0.0;
    for (var first = 0u; first < N; first += TILE) {
        tile_a[j][i] = select(0.0, a[id.y * N + first + i], id.y < N && first + i < N);
        tile_b[j][i] = select(0.0, b[(first + j) * N + id.x], id.x < N && first + j < N);
        workgroupBarrier();
        for (var k = 0u; k < TILE; k++) { sum += tile_a[j][k] * tile_b[k][i]; }
        workgroupBarrier();
    }
    if (id.x < N && id.y < N) { c[id.y * N + id.x] = sum; }
}
"""
BLOCKED = """
override N: u32;
@group(0) @binding(0) var<storage, read> a: array<vec4<f32>>;  // four numbers of a row
@group(0) @binding(1) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> c: array<vec4<f32>>;
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = id.x;
    let y = 4 * id.y;
    let w = N / 4;
    if (x >= w || y >= N) { return; }
    var sum = mat4x4<f32>();
    for (var k = 0u; k < w; k++) {
        let i = 4 * k * w + x;
        let block = mat4x4<f32>(b[i], b[i + w], b[i + 2 * w], b[i + 3 * w]);
        for (var j = 0u; j < 4; j++) { sum[j] += block * a[(y + j) * w + k]; }
    }
    for (var j = 0u; j < 4; j++) { c[(y + j) * w + x] = sum[j]; }
}
"""


def products(left: np.ndarray, right: np.ndarray, tile: int) -> Iterator[tuple[str, np.ndarray, float]]:
    """The name, the product and the seconds of each shader."""
    n, adapter = len(left), wgpu.gpu.request_adapter_sync()
    device = adapter.request_device_sync(required_features=["timestamp-query"])
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    empty = np.full_like(left, np.nan)
    a, b, c = (device.create_buffer_with_data(data=data, usage=usage) for data in (left, right, empty))
    queries = device.create_query_set(type="timestamp", count=2)
    ticks = device.create_buffer(size=16, usage=wgpu.BufferUsage.QUERY_RESOLVE | wgpu.BufferUsage.COPY_SRC)
    timed = {"query_set": queries, "beginning_of_pass_write_index": 0, "end_of_pass_write_index": 1}
    for name, code, side in (
        ("naive", HEAD + NAIVE, 16),
        (f"tiles of {tile} x {tile}", HEAD + TILED.replace("16u", f"{tile}u"), tile),
        ("4 x 4 in registers", BLOCKED, 32),
    ):
        module = device.create_shader_module(code=code)
        stage = {"module": module, "entry_point": "main", "constants": {"N": n}}
        pipeline = device.create_compute_pipeline(layout="auto", compute=stage)
        entries = [{"binding": i, "resource": {"buffer": buffer}} for i, buffer in enumerate((a, b, c))]
        group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
        seconds = []
        for _ in range(3):
            device.queue.write_buffer(c, 0, empty)
            encoder = device.create_command_encoder()
            compute = encoder.begin_compute_pass(timestamp_writes=timed)
            compute.set_pipeline(pipeline)
            compute.set_bind_group(0, group)
            compute.dispatch_workgroups(-(-n // side), -(-n // side))
            compute.end()
            encoder.resolve_query_set(queries, 0, 2, ticks, 0)
            device.queue.submit([encoder.finish()])
            begin, end = np.frombuffer(device.queue.read_buffer(ticks), np.uint64)
            seconds.append((end - begin) / 1e9)
        yield name, np.frombuffer(device.queue.read_buffer(c), np.float32).reshape(n, n), min(seconds)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=256, help="rows and columns, a multiple of 4")
    parser.add_argument("--tile", type=int, default=16, help="side of the tiles")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/matrix_products_wgpu.png"))
    options = parser.parse_args(argv)
    n, rng, speeds, wrong = options.size, np.random.default_rng(7), {}, 0
    left, right = rng.uniform(-1, 1, (2, n, n)).astype(np.float32)
    allowed = 2 * n * np.finfo(np.float32).eps * (np.abs(left) @ np.abs(right))
    for name, product, seconds in products(left, right, options.tile):
        speeds[name] = 2 * n**3 / seconds / 1e9
        correct = bool(np.all(np.abs(product - left @ right) <= allowed))
        wrong += not correct
        print(f"{name}: {speeds[name]:.2f} GFLOP/s, {'right' if correct else 'WRONG'}")

    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh(list(speeds), list(speeds.values()), color=["#9aa5b1", "#4c78a8", "#f58518"])
    axes.bar_label(bars, fmt="%.2f", padding=4)
    axes.set(xlabel="GFLOP/s", title=f"{n} x {n} product", xlim=(0, 1.15 * max(speeds.values())))
    axes.invert_yaxis()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
