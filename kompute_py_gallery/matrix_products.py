"""Matrix products, from naive to tuned: the same numbers at very different speeds.

"naive" reads a row and a column for each element. "tiled" loads tiles into shared memory first; their side
is a specialization constant that also sets the size of a workgroup. "4 x 4" computes sixteen elements in
each invocation, in registers. GPUs usually gain from tiles; drivers for the CPU pay for barriers, and gain
from registers. Timestamps of the device measure each; NumPy has to agree, to the rounding that n additions
allow.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import kompute_py as kp

HEAD = """
#version 450
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform Size { uint n; };
"""
NAIVE = """
layout(local_size_x = 16, local_size_y = 16) in;
void main() {
    const uint x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y;
    if (x >= n || y >= n) return;
    float sum = 0.0;
    for (uint k = 0; k < n; ++k) sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}
"""
TILED = """
layout(local_size_x_id = 0, local_size_y_id = 0) in;
layout(constant_id = 0) const uint TILE = 16;
shared float tile_a[TILE][TILE], tile_b[TILE][TILE];
void main() {
    const uint x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y;
    const uint i = gl_LocalInvocationID.x, j = gl_LocalInvocationID.y;
    float sum = 0.0;
    for (uint first = 0; first < n; first += TILE) {
        tile_a[j][i] = y < n && first + i < n ? a[y * n + first + i] : 0.0;
        tile_b[j][i] = x < n && first + j < n ? b[(first + j) * n + x] : 0.0;
        barrier();
        for (uint k = 0; k < TILE; ++k) sum += tile_a[j][k] * tile_b[k][i];
        barrier();
    }
    if (x < n && y < n) c[y * n + x] = sum;
}
"""
BLOCKED = """
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) readonly buffer A { vec4 a[]; };  // four numbers of a row
layout(binding = 1) readonly buffer B { vec4 b[]; };
layout(binding = 2) writeonly buffer C { vec4 c[]; };
layout(push_constant) uniform Size { uint n; };
void main() {
    const uint x = gl_GlobalInvocationID.x, y = 4 * gl_GlobalInvocationID.y, w = n / 4;
    if (x >= w || y >= n) return;
    mat4 sum = mat4(0);
    for (uint k = 0; k < w; ++k) {
        const uint i = 4 * k * w + x;
        const mat4 block = mat4(b[i], b[i + w], b[i + 2 * w], b[i + 3 * w]);
        for (uint j = 0; j < 4; ++j) sum[j] += block * a[(y + j) * w + k];
    }
    for (uint j = 0; j < 4; ++j) c[(y + j) * w + x] = sum[j];
}
"""


def products(left: np.ndarray, right: np.ndarray, tile: int) -> Iterator[tuple[str, np.ndarray, float]]:
    """The name, the product and the seconds of each shader."""
    n, quarter = len(left), len(left) // 4
    with kp.Manager() as mgr:
        a, b, c = mgr.tensor(left), mgr.tensor(right), mgr.empty((n, n))
        naive, blocked = mgr.kernel(HEAD + NAIVE), mgr.kernel(BLOCKED)
        tiled = mgr.kernel(HEAD + TILED).specialize(TILE=tile)
        for name, product in {
            "naive": naive.bind(a, b, c, n=n),
            f"tiles of {tile} x {tile}": tiled.bind(a, b, c, n=n),
            "4 x 4 in registers": blocked.bind(a, b, c, n=n, grid=(quarter, quarter)),
        }.items():
            # Filled before, so that no product can pass with the numbers of the one before it.
            sequence = mgr.sequence(timestamps=True).record(kp.OpFill([c], np.nan), product)
            seconds = min(sequence.eval().timings()[1][1] for _ in range(3))
            yield name, c.read(), seconds


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__ and __doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=256, help="rows and columns, a multiple of 4")
    parser.add_argument("--tile", type=int, default=16, help="side of the tiles")
    parser.add_argument("--out", type=Path, default=Path("kompute-demo/matrix_products.png"))
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
